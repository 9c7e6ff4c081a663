"""Word tokens in languages other than English, and comparison of sentences in any language.

- A word is a run of letters, marks and digits (Unicode).
- An apostrophe between letters is part of a word (`geht's`, `м'ята`), and so are the joiners of Persian and Indic
  scripts.
- A punctuation mark is a token of its own, except a full stop or comma between two digits.
- French, Italian and Catalan words that lose their vowel before the next one (`l'`, `qu'`) are tokens, and so are
  Dutch words that are an apostrophe and a letter (`'s morgens`), and Italian `po'`.
- Scripts that put no blank between words are cut into characters, each with its marks.
- Case is ignored, and a typographic apostrophe counts as a plain one.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from tokenizers import Regex, pre_tokenizers

from paranmt_hf.text.definitions import cut_chunk, word_normalizer
from paranmt_hf.text.languages import ENGLISH
from paranmt_hf.text.normal_form import change_rows, normal_form, rows_with
from paranmt_hf.text.tokens import WordTokenizer

# Words that end with an apostrophe before the next word, by language; with the apostrophe they are tokens.
ELISIONS = {
    "ca": "[dlmnst]",
    "fr": "[cdjlmnst]|qu|jusqu|lorsqu|puisqu|quoiqu",
    "it": "[cdlmnstv]|un|gl|all|dall|dell|nell|sull|coll|quell|quest|bell|sant|anch|com|dov|cos",
}
# Short forms with an apostrophe at an end, by language, which are tokens.
SHORT_FORMS = {"nl": "'[kmnrst]", "it": "po'"}
# A character of a script that puts no blank between words, with its marks.
NO_BLANKS = r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]\p{M}*"


def with_blanks(column: pa.Array) -> pa.Array:
    """Put a blank before and behind each character of scripts that put none between words.

    Args:
        column: The texts [text], string.
    """
    rows = rows_with(column, _no_blanks())
    return change_rows(
        column, rows, lambda texts: pc.replace_substring_regex(texts, pattern=f"({NO_BLANKS})", replacement=r" \1 ")
    )


@cache
def _no_blanks() -> np.ndarray:
    """Return for each code point [code point] whether its Unicode block has a script without blanks between words."""
    # The last value counts for all code points from 0x20000 on, which are Chinese characters.
    marks = np.zeros(0x20000 + 1, bool)
    marks[-1] = True
    for start, stop in ((0x0E00, 0x0F00), (0x1000, 0x10A0), (0x1780, 0x1800), (0x2E80, 0xAC00), (0xF900, 0xFB00)):
        marks[start:stop] = True
    return marks


@cache
def _pre_tokenizer(language: str) -> pre_tokenizers.PreTokenizer:
    """Build the pre-tokenizer of a language."""
    elision = rf"(?<!\w)(?:{ELISIONS[language]})'(?=\w)|" if language in ELISIONS else ""
    elision += rf"(?<!\w){SHORT_FORMS[language]}(?!\w)|" if language in SHORT_FORMS else ""
    punctuation = r"[^\w\s.,'\u200c\u200d]|_|(?<!\d)[.,]|[.,](?!\d)|(?<!\w)'|'(?!\w)"
    pattern = Regex(f"{elision}{NO_BLANKS}|{punctuation}")
    return pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Split(pattern, behavior="isolated")]
    )


def cutter(language: str) -> Callable[[str], list[str]]:
    """Return the function that splits text of a language (ISO 639-1 code) into word tokens; see `definitions.py`.

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
    """Create the tokenizer for columns of sentences in a language (ISO 639-1 code)."""
    return WordTokenizer(cut=cutter(language))


def letters(column: pa.Array | pa.ChunkedArray, between: str = "") -> pa.Array | pa.ChunkedArray:
    """Convert sentences to their normal form in lower case, and keep only letters, their marks and numbers.

    Args:
        column: The sentences [sentence].
        between: Text that replaces each run of other characters.
    """
    column = pc.utf8_lower(normal_form(column))
    for pattern, replacement in (
        # A minus sign before digits, and a decimal point between them, make another number. Both become a rare letter,
        # so that they are kept.
        (r"(^|[^\p{L}\p{M}\p{N}])-(\p{N})", "\\1\u1428\\2"),
        (r"(\p{N})\.(\p{N})", "\\1\ua78f\\2"),
        # Marks are kept, because they are vowels in many scripts.
        (r"[^\p{L}\p{M}\p{N}]+", between),
    ):
        column = pc.replace_substring_regex(column, pattern=pattern, replacement=replacement)
    return column
