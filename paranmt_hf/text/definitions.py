"""The definitions of word tokens and character trigrams that scores, encoders and statistics share.

Words are lower-cased and cut the way of the Penn Treebank: the clitics `n't 's 'm 're 've 'll 'd` stand alone, and
every punctuation mark is a token of its own, except a full stop or comma between two digits. Before that,

- a typographic apostrophe (U+2019), an acute accent (U+00B4) and the letter apostrophe (U+02BC) become a plain one;
- soft hyphens, zero-width blanks, word joiners and byte order marks are removed;
- a letter and its accent become one character (NFC).

The definition is a pipeline of the `tokenizers` library, so that it can be part of a model.

No rule looks across white space, so a chunk of text between blanks always gives the same tokens. The fast path for
columns of sentences, `tokens.py`, depends on that. This file needs no package but `tokenizers`, because it is also put
next to the weights of models that people load without this package.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache

from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers

CLITICS = r"n't(?!\w)|'(?:s|m|re|ve|ll|d)(?!\w)"
PUNCTUATION = r"[^\w\s.,]|_|(?<!\d)[.,]|[.,](?!\d)"
# Prefix of a piece that continues a word, with which no word token begins; and the number of characters of the longest
# word that is cut into pieces.
PIECE, LONGEST_CUT = "##", 100
# For ASCII characters, regular expressions mean the same in Python and in `tokenizers`.
_PLAIN_CUTS = re.compile(f"({CLITICS}|{PUNCTUATION})")


def word_normalizer() -> normalizers.Normalizer:
    """Build the first half of the pipeline: plain apostrophes, no invisible characters, NFC, lower case."""
    # Each step makes the pipeline slower, so the other rules of `normal_form.py` are not part of it. The joiners of
    # Persian and Indic scripts stay, because they are not invisible there.
    return normalizers.Sequence(
        [
            normalizers.Replace(Regex("[\u2019\u00b4\u02bc]"), "'"),
            normalizers.Replace(Regex("[\u00ad\u200b\u2060\ufeff]"), ""),
            normalizers.NFC(),
            normalizers.Lowercase(),
        ]
    )


def word_pre_tokenizer() -> pre_tokenizers.PreTokenizer:
    """Build the second half of the pipeline: chunks between white space, cut at clitics and punctuation."""
    return pre_tokenizers.Sequence(
        [
            pre_tokenizers.WhitespaceSplit(),
            pre_tokenizers.Split(Regex(f"{CLITICS}|{PUNCTUATION}"), behavior="isolated"),
        ]
    )


@cache
def _pipeline() -> tuple[normalizers.Normalizer, pre_tokenizers.PreTokenizer]:
    """Build both halves of the pipeline, once."""
    return word_normalizer(), word_pre_tokenizer()


def words(text: str) -> list[str]:
    """Split one text into word tokens.

    >>> words("It's 3.5 miles, isn't it?")
    ['it', "'s", '3.5', 'miles', ',', 'is', "n't", 'it', '?']
    """
    normalizer, pre_tokenizer = _pipeline()
    return [token for token, _ in pre_tokenizer.pre_tokenize_str(normalizer.normalize_str(text))]


def cut_chunk(chunk: str) -> list[str]:
    """Split a chunk of text without blanks into word tokens: as `words` does, but faster for ASCII characters."""
    if not chunk.isascii():
        return words(chunk)
    if chunk.isalnum():
        return [chunk.lower()]
    if not chunk.isprintable():
        return words(chunk)
    lowered = chunk.lower()
    if lowered[:-1].isalnum():
        return [lowered[:-1], lowered[-1]]
    return [token for token in _PLAIN_CUTS.split(lowered) if token]


def is_piece(unit: str) -> bool:
    """Whether a unit of a word vocabulary is a piece that continues a word, such as `##ing`.

    Since `#` is a token of its own, no word begins with `##`.
    """
    return len(unit) > len(PIECE) and unit.startswith(PIECE) and "#" not in unit[len(PIECE) :]


def rows_of_word(word: str, find: Callable[[str], int | None]) -> list[int]:
    """Look up the row of a word, or else the rows of its pieces; row 0 if the pieces do not make up the word.

    Pieces are chosen from the left, each the longest one with a row, as in WordPiece (Wu et al. 2016,
    arXiv:1609.08144): with rows for `read`, `##er` and `##ers` the word `readers` is `read ##ers`.

    Args:
        word: The word.
        find: Function that returns the row of a word or piece, None if it has none.
    """
    row = find(word)
    if row is not None or len(word) > LONGEST_CUT:
        return [row or 0]
    found, start, prefix = list[int](), 0, ""
    while start < len(word):
        end = len(word)
        while (row := find(prefix + word[start:end])) is None:
            end -= 1
            if end == start:
                return [0]
        found.append(row)
        start, prefix = end, PIECE
    return found


def word_tokenizer(units: list[str]) -> Tokenizer:
    """Create the tokenizer of a word vocabulary: it splits text as `words` does, and gives the rows of `rows_of_word`.

    Args:
        units: Word or piece of each row; the first is the unknown word.
    """
    vocabulary = {unit: row for row, unit in enumerate(units)}
    if any(map(is_piece, units)):
        cut = models.WordPiece(vocabulary, unk_token=units[0], max_input_chars_per_word=LONGEST_CUT)
        tokenizer = Tokenizer(cut)
    else:
        tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token=units[0]))
    tokenizer.normalizer = word_normalizer()
    tokenizer.pre_tokenizer = word_pre_tokenizer()
    return tokenizer


def vocabulary_of(tokenizer: Tokenizer) -> list[str] | None:
    """Return the units of a tokenizer that `word_tokenizer` made, in the order of their rows; None for any other."""
    ids = tokenizer.get_vocab()
    units = sorted(ids, key=ids.__getitem__)
    if not units or [ids[unit] for unit in units] != list(range(len(units))):
        return None
    expected = models.WordPiece if any(map(is_piece, units)) else models.WordLevel
    if not isinstance(tokenizer.model, expected) or tokenizer.get_added_tokens_decoder():
        return None
    if isinstance(tokenizer.model, models.WordPiece) and (
        tokenizer.model.continuing_subword_prefix != PIECE or tokenizer.model.max_input_chars_per_word != LONGEST_CUT
    ):
        return None
    if (
        tokenizer.truncation is not None
        or _rules(tokenizer) != _rules(word_tokenizer(units[:1]))
        or tokenizer.model.unk_token != units[0]
    ):
        return None
    return units


def _rules(tokenizer: Tokenizer) -> tuple[bytes, bytes]:
    """Return the normalizer and the pre-tokenizer of a tokenizer, serialised for comparison."""
    normalizer, pre_tokenizer = tokenizer.normalizer, tokenizer.pre_tokenizer
    if normalizer is None or pre_tokenizer is None:
        return b"", b""
    return normalizer.__getstate__(), pre_tokenizer.__getstate__()


def character_ngrams(text: str, size: int = 3) -> list[str]:
    """Split one text into character n-grams (ParaNMT-50M, Wieting & Gimpel 2018, section 4).

    One blank before, between and after the words counts as a character.

    >>> character_ngrams("I'm in")
    [' i ', "i '", " 'm", "'m ", 'm i', ' in', 'in ']
    """
    tokens = words(text)
    line = f" {' '.join(tokens)} " if tokens else ""
    return [line[start : start + size] for start in range(len(line) - size + 1)]
