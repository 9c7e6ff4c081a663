r"""Tokenizers made only of components of the `tokenizers` library, so that other libraries split text as ours do.

That of WORD is the definition of `text/definitions.py`. TRIGRAM's needs a construction:

Models and pre-tokenizers of that library split text into pieces that do not overlap, and trigrams do. Normalizers may
lengthen text, though: here they write behind every character the two that follow it, and then the text is cut into
pieces of equal length. `Replace` puts a fixed string in the place of what it finds, so copying needs a rule for each
symbol ("an empty place gets `a` where the next place holds `a`"). To make do with few rules every character is first
spelled with three digits.

An example with two digits a character instead of three, and `.` for an empty place: let `a` be spelled `11`, `b` `12`
and `c` `21`. The text `abc` becomes `11....12....21....`: behind each character are two empty places for the next one
and two for the one after that. Each is filled with what is two spellings further on, first those for the next
character, then the others: `1112211221..21....`. Of the pieces of six symbols the first, `111221`, spells `abc` and
has the row of that trigram; the others have empty places left, because the text ends, and are dropped.

The result is exact for any text: the characters of the vocabulary have a spelling each, and all others share one,
because a trigram with such a character has no row whichever it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, processors

from paranmt_hf.encoders.composition import Part
from paranmt_hf.text.definitions import CLITICS, PUNCTUATION, word_normalizer, word_tokenizer

PLACES = 3
# Control characters take one byte, which keeps the long intermediate texts small; then the private area.
SYMBOLS = [*range(0x01, 0x09), *range(0x0E, 0x20), *range(0xE000, 0xF900)]


def tokenizer_of(part: Part) -> Tokenizer:
    """Build the tokenizer whose ids are the rows of an encoder's table."""
    units = part.vocabulary.units
    return trigram_tokenizer(units) if part.family.units == "trigram" else word_tokenizer(units)


def portable_tokenizer(part: Part) -> Tokenizer:
    """Convert a tokenizer so that it works the same in JavaScript; every text begins with the id of the unknown unit.

    Three things differ there: white space that is not a regular expression is not that of Unicode; a sigma at the end
    of a word has a lower case of its own; and characters beyond U+FFFF are two, between which a rule may find a place.
    TRIGRAM reads all of those (emoji, rare scripts) as one unknown punctuation mark, so it has no rows for them.
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
    """Create the tokenizer of a trigram vocabulary; its ids are the rows of `text.character_ngrams`, for any text."""
    alphabet = alphabet_of(units)
    base = next(base for base in range(2, len(SYMBOLS)) if base**PLACES > len(alphabet))
    known = set(alphabet)
    free = (chr(number) for number in SYMBOLS if chr(number) not in known)
    mark, other, second, third, *digits = (next(free) for _ in range(base + 4))
    # The last character that has a spelling is that of all others.
    spelling = {}
    for number, character in enumerate([*alphabet, other]):
        spelling[character] = "".join(digits[number // base**place % base] for place in range(PLACES))
    steps = [*_word_steps(mark, other), _rule(f"[^{_escaped(alphabet)}]", other)]
    # Replace each character by its digits, the last of them with empty places for those of the two characters that
    # follow.
    for place in range(PLACES):
        for digit in digits:
            members = [character for character, own in spelling.items() if own[place] == digit]
            if members and place < PLACES - 1:
                steps.append(_rule(f"(?=[{_escaped(members)}])", digit))
            elif members:
                steps.append(_rule(f"[{_escaped(members)}]", digit + second * PLACES + third * PLACES))
    # Fill the empty places: what one for the next character gets is two spellings further on, at any of its places;
    # and from one for the character after that it is as far to the place where the next character has the same copied
    # already.
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
    """List the characters of a vocabulary in the order in which they first occur; the first unit is the unknown one.

    Vocabularies begin with what is frequent, so frequent characters get the digits that the first rules write.
    """
    return list(dict.fromkeys(chain.from_iterable(units[1:])))


def _rule(pattern: str, content: str) -> normalizers.Replace:
    return normalizers.Replace(Regex(pattern), content)


def _escaped(characters: Sequence[str]) -> str:
    return "".join(f"\\x{{{ord(character):x}}}" for character in characters)


def _word_steps(mark: str, other: str) -> list[normalizers.Normalizer]:
    """Split as `text/definitions.py` does, with one blank around each word.

    A place between two characters is found by what is before and behind it, and gets a blank. The apostrophe of a
    clitic is replaced by `mark` meanwhile, because alone it would be punctuation; where a text holds the mark, it
    becomes `other`, which is punctuation too. What is behind a clitic needs no rule: it is the end, a blank or
    punctuation, which gets a blank in front.
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
