"""Word tokens in languages other than English, and comparison of sentences in any language.

A word is a run of letters, marks and digits (Unicode); an apostrophe between letters is part of it (`geht's`,
`м'ята`), so are the joiners of Persian and Indic scripts. Punctuation marks are tokens of their own, except a full
stop or comma between two digits. French, Italian and Catalan words that lose their vowel before the next one (`l'`,
`qu'`) stand alone. Scripts that put no blank between words are cut into characters, each with its marks. Case counts
for nothing, and a typographic apostrophe counts as a plain one.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from tokenizers import Regex, pre_tokenizers

from paranmt_hf.text.definitions import cut_chunk, word_normalizer
from paranmt_hf.text.normal_form import change_rows, normal_form, rows_with
from paranmt_hf.text.tokens import WordTokenizer

ENGLISH = "en"
# Words that stand before an apostrophe and are tokens with it.
ELISIONS = {
    "ca": "[dlmnst]",
    "fr": "[cdjlmnst]|qu|jusqu|lorsqu|puisqu|quoiqu",
    "it": "[cdlmnstv]|un|gl|all|dall|dell|nell|sull|coll|quell|quest|bell|sant|anch|com|dov|cos",
}
NO_BLANKS = r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]\p{M}*"
PUNCTUATION = r"[^\w\s.,'\u200c\u200d]|_|(?<!\d)[.,]|[.,](?!\d)|(?<!\w)'|'(?!\w)"


# Blocks of Unicode in which all characters of these scripts are.
_NO_BLANKS_BLOCKS = ((0x0E00, 0x0F00), (0x1000, 0x10A0), (0x1780, 0x1800), (0x2E80, 0xAC00), (0xF900, 0xFB00))
_REST = 0x20000  # From here on are Chinese characters.


def with_blanks(column: pa.Array) -> pa.Array:
    """Put a blank before and behind each character of scripts that have none between words (string) [text]."""
    rows = rows_with(column, _no_blanks())
    return change_rows(
        column, rows, lambda texts: pc.replace_substring_regex(texts, pattern=f"({NO_BLANKS})", replacement=r" \1 ")
    )


@cache
def _no_blanks() -> np.ndarray:
    """Mark the code points of scripts without blanks [code point]."""
    marks = np.zeros(_REST + 1, bool)
    for start, stop in _NO_BLANKS_BLOCKS:
        marks[start:stop] = True
    marks[_REST] = True
    return marks


@cache
def _pre_tokenizer(language: str) -> pre_tokenizers.PreTokenizer:
    elision = rf"(?<!\w)(?:{ELISIONS[language]})'(?=\w)|" if language in ELISIONS else ""
    pattern = Regex(f"{elision}{NO_BLANKS}|{PUNCTUATION}")
    return pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Split(pattern, behavior="isolated")]
    )


def cutter(language: str) -> Callable[[str], list[str]]:
    """Return the pipeline that splits text of a language (ISO 639-1 code) into word tokens; see `definitions.py`.

    >>> cutter("fr")("J'ai vu l'homme d'aujourd'hui.")
    ["j'", 'ai', 'vu', "l'", 'homme', "d'", "aujourd'hui", '.']
    """
    if language == ENGLISH:
        return cut_chunk
    normalizer, pre_tokenizer = word_normalizer(), _pre_tokenizer(language)

    def cut(text: str) -> list[str]:
        return [token for token, _ in pre_tokenizer.pre_tokenize_str(normalizer.normalize_str(text))]

    return cut


def word_tokenizer_for(language: str) -> WordTokenizer:
    """Create the tokenizer for columns of sentences of a language."""
    return WordTokenizer(cut=cutter(language))


NOT_LETTERS = r"[^\p{L}\p{M}\p{N}]+"  # Marks are vowels in many scripts.

# What makes another number of its digits: a sign before them, a decimal point between them. Rare letters take their
# place.
SIGN, POINT = r"(^|[^\p{L}\p{M}\p{N}])-(\p{N})", r"(\p{N})\.(\p{N})"


def letters(column: pa.Array | pa.ChunkedArray, between: str = "") -> pa.Array | pa.ChunkedArray:
    """Reduce sentences, in their normal form, to letters with their marks and numbers in lower case.

    `between` replaces the rest.
    """
    column = pc.replace_substring_regex(pc.utf8_lower(normal_form(column)), pattern=SIGN, replacement="\\1\u1428\\2")
    column = pc.replace_substring_regex(column, pattern=POINT, replacement="\\1\ua78f\\2")
    return pc.replace_substring_regex(column, pattern=NOT_LETTERS, replacement=between)
