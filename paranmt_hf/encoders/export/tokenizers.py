"""Tokenizers made only of components of the `tokenizers` library, so that other libraries split text as ours do.

The tokenizer of WORD is the definition in `text/definitions.py`. TRIGRAM's needs a construction:

Models and pre-tokenizers of that library split text into pieces that do not overlap, and trigrams do. Normalizers may
lengthen text, though: here they write behind every character the two that follow it, and then the text is cut into
pieces of equal length. `Replace` puts a fixed string in the place of what it finds, so copying needs a rule for each
symbol ("an empty place gets `a` where the next place holds `a`"). To make do with few rules every character is first
spelled with three digits.

An example with two digits a character instead of three, and `.` for an empty place: let `a` be spelled `11`, `b` `12`
and `c` `21`. The text `abc` becomes `11....12....21....`: behind each character are two empty places for the next one
and two for the one after that. An empty place is filled with the symbol that is two spellings further on: first the
places for the next character, then the others: `1112211221..21....`. Of the pieces of six symbols the first,
`111221`, spells `abc` and has the row of that trigram; the others have empty places left, because the text ends, and
are dropped.

The result is exact for any text. Each character of the vocabulary has its own spelling, and all others share one: a
trigram with a character that is not in the vocabulary has no row, whichever character it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, processors

from paranmt_hf.encoders.composition import Part
from paranmt_hf.text.definitions import CLITICS, PUNCTUATION, word_normalizer, word_tokenizer

PLACES = 3  # Digits of the spelling of a character
# Code points that serve as digits. Control characters take one byte, which keeps the long intermediate texts small;
# the private area follows.
SYMBOLS = [*range(0x01, 0x09), *range(0x0E, 0x20), *range(0xE000, 0xF900)]


def tokenizer_of(part: Part) -> Tokenizer:
    """Build the tokenizer whose ids are the rows of the table of a part."""
    units = list(part.vocabulary.units)
    return trigram_tokenizer(units) if part.family.units == "trigram" else word_tokenizer(units)


def portable_tokenizer(part: Part) -> Tokenizer:
    """Build the tokenizer of a part so that it works the same in JavaScript.

    It puts the id of the unknown unit, 0, at the beginning of every text.

    Three things differ in JavaScript:

    - White space is that of Unicode only where it is found by a regular expression.
    - A capital sigma at the end of a word has a lower case of its own.
    - A character beyond U+FFFF is two code units, and a rule may match between them. TRIGRAM reads all such characters
      (emoji, rare scripts) as one unknown punctuation mark here, so it has no rows for them.
    """
    units = part.vocabulary.units
    tokenizer = tokenizer_of(part)
    steps: list[normalizers.Normalizer] = [normalizers.Replace("\u03a3", "\u03c3")]
    if part.family.units == "trigram":
        unseen = next(symbol for symbol in map(chr, reversed(SYMBOLS)) if symbol not in alphabet_of(units))
        steps.append(_rule(r"[^\x{0}-\x{ffff}]", unseen))
    else:
        cut = [(r"\s+", "removed"), (f"{CLITICS}|{PUNCTUATION}", "isolated")]
        splits = [pre_tokenizers.Split(Regex(pattern), behavior=behavior) for pattern, behavior in cut]
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence(splits)
    tokenizer.normalizer = normalizers.Sequence([*steps, tokenizer.normalizer])
    tokenizer.post_processor = processors.TemplateProcessing(single=f"{units[0]} $A", special_tokens=[(units[0], 0)])
    tokenizer.enable_padding(pad_id=0, pad_token=units[0])
    return tokenizer


def trigram_tokenizer(units: Sequence[str]) -> Tokenizer:
    """Build the tokenizer of a trigram vocabulary.

    For any text, its ids are the rows of the trigrams that `text.definitions.character_ngrams` gives.

    Args:
        units: Trigram of each row; the first is the unknown one.
    """
    alphabet = alphabet_of(units)
    base = next(base for base in range(2, len(SYMBOLS)) if base**PLACES > len(alphabet))
    known = set(alphabet)
    free = (chr(number) for number in SYMBOLS if chr(number) not in known)
    mark, other, second, third, *digits = (next(free) for _ in range(base + 4))
    # All characters that are not in the vocabulary share the spelling of `other`, the last one.
    spelling = {}
    for number, character in enumerate([*alphabet, other]):
        spelling[character] = "".join(digits[number // base**place % base] for place in range(PLACES))
    steps = [*_word_steps(mark, other), _rule(f"[^{_escaped(alphabet)}]", other)]
    # Replace each character by its digits. The last digit is followed by empty places for the digits of the next two
    # characters.
    for place in range(PLACES):
        for digit in digits:
            members = [character for character, spelled in spelling.items() if spelled[place] == digit]
            if members and place < PLACES - 1:
                steps.append(_rule(f"(?=[{_escaped(members)}])", digit))
            elif members:
                steps.append(_rule(f"[{_escaped(members)}]", digit + second * PLACES + third * PLACES))
    # Fill the empty places. Every place gets the symbol two spellings further on: for the next character that is the
    # next character itself; for the character after that it is the copy behind the next character, made before.
    for empty in (second, third):
        for digit in digits:
            steps.append(_rule(f"{_escaped(empty)}(?=.{{{2 * PLACES - 1}}}{_escaped(digit)})", digit))
    # Drop the last two characters, which start no trigram.
    steps.append(_rule(f".{{{2 * PLACES}}}{_escaped(third)}{{{PLACES}}}", ""))
    ids = {"".join(map(spelling.__getitem__, unit)): row for row, unit in enumerate(units) if row}
    tokenizer = Tokenizer(models.WordLevel({units[0]: 0, **ids}, unk_token=units[0]))
    tokenizer.normalizer = normalizers.Sequence(steps)
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(f".{{{3 * PLACES}}}"), behavior="isolated")
    return tokenizer


def alphabet_of(units: Sequence[str]) -> list[str]:
    """List the distinct characters of a trigram vocabulary in the order in which they first occur.

    Vocabularies begin with frequent units, so frequent characters get the digits that the first rules write. The first
    unit, the unknown one, is skipped.
    """
    return list(dict.fromkeys(chain.from_iterable(units[1:])))


def _rule(pattern: str, content: str) -> normalizers.Replace:
    """Make a normalizer that replaces every match of a pattern by a fixed text."""
    return normalizers.Replace(Regex(pattern), content)


def _escaped(characters: Sequence[str]) -> str:
    """Write characters as escapes of a regular expression."""
    return "".join(f"\\x{{{ord(character):x}}}" for character in characters)


def _word_steps(mark: str, other: str) -> list[normalizers.Normalizer]:
    """Make normalizers that split text as `text/definitions.py` does, and leave one blank around each word.

    A place between two words is found by the characters before and behind it, and gets a blank. The apostrophe of a
    clitic is replaced by `mark` meanwhile, because alone it would be punctuation. If a text itself holds the mark, it
    becomes `other` first, which is punctuation too. No rule is needed behind a clitic: it is followed by the end of
    the text, a blank, or punctuation, which gets a blank in front.
    """
    marked = _escaped(mark)
    punctuation = rf"[^\w\s.,{marked}]|_"
    return [
        normalizers.Replace(mark, other),
        word_normalizer(),
        _rule(r"\A|\z", " "),
        _rule(r"'(?=(?:s|m|re|ve|ll|d)(?!\w))|(?<=n)'(?=t(?!\w))", mark),
        _rule(f"(?=n{marked}t)|(?={marked}[^t])", " "),
        _rule(f"(?={punctuation})|(?<={punctuation})", " "),
        # A full stop or comma stays where it is between two digits.
        _rule(r"(?<=\D)(?=[.,])|(?=[.,]\D)|(?<=\D[.,])|(?<=[.,])(?=\D)", " "),
        normalizers.Replace(mark, "'"),
        _rule(r"\s+", " "),
    ]
