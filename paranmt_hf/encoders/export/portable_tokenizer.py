"""Tokenizers of components that give the same in JavaScript as in Rust.

Three things differ there: white space that is no regular expression is not Unicode's; a sigma at the end of a word has
a lower case of its own; and a rule that finds a place without a character may find one within a character beyond
U+FFFF, which JavaScript stores as two.
"""

from __future__ import annotations

from collections.abc import Sequence

from tokenizers import Regex, Tokenizer, normalizers, pre_tokenizers, processors

from paranmt_hf.encoders.composition import Part
from paranmt_hf.encoders.export.tokenizers import tokenizer_of
from paranmt_hf.encoders.export.trigram_tokenizer import alphabet_of, trigram_tokenizer
from paranmt_hf.errors import InputError
from paranmt_hf.text.definitions import CLITICS, PUNCTUATION

LARGEST = 0xFFFF
BEYOND = rf"[^\x{{0}}-\x{{{LARGEST:x}}}]"
# Kinds of characters that cutting text tells apart, in the order in which they are asked for, and characters up to
# U+FFFF that can stand for such: digits and letters of rare scripts, and the private area.
DIGITS = [
    zero + digit
    for zero in (
        0xA620,
        0xA8D0,
        0xA900,
        0xA9D0,
        0xAA50,
        0x1946,
        0x19D0,
        0x1A80,
        0x1A90,
        0x1B50,
        0x1BB0,
        0x1C40,
        0x1C50,
    )
    for digit in range(10)
]
KINDS = ((r"\d", DIGITS), (r"\w", range(0xA000, 0xA48D)), (r"[^\w]", range(0xF000, 0xF8FF)))


def portable_tokenizer(part: Part) -> Tokenizer:
    """Make the tokenizer of an encoder's units for JavaScript; every text begins with the id of the unknown unit."""
    units = list(part.vocabulary.units)
    steps: list[normalizers.Normalizer] = [normalizers.Replace("\u03a3", "\u03c3")]
    if part.family.units == "word":
        tokenizer = tokenizer_of(part)
        cut = [(r"\s+", "removed"), (f"{CLITICS}|{PUNCTUATION}", "isolated")]
        splits = [pre_tokenizers.Split(Regex(pattern), behavior=behavior) for pattern, behavior in cut]
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence(splits)
    else:
        more, places = _within_largest(units)
        tokenizer = trigram_tokenizer([units[0], *(unit.translate(places) for unit in units[1:])])
        # What stands for a character must not become another one.
        steps += [normalizers.Lowercase(), *more]
    tokenizer.normalizer = normalizers.Sequence([*steps, tokenizer.normalizer])
    tokenizer.post_processor = processors.TemplateProcessing(single=f"{units[0]} $A", special_tokens=[(units[0], 0)])
    tokenizer.enable_padding(pad_id=0, pad_token=units[0])
    return tokenizer


def _within_largest(units: Sequence[str]) -> tuple[list[normalizers.Normalizer], dict[int, str]]:
    """Let characters beyond U+FFFF be written as others of their kind.

    Args:
        units: The units; the first is the unknown one.

    Returns:
        The steps that do it with a text in lower case, and what each such character of the units becomes.
    """
    alphabet = alphabet_of(units)
    known = [character for character in alphabet if ord(character) > LARGEST]
    steps: list[normalizers.Normalizer] = []
    places: dict[int, str] = {}
    for kind, numbers in KINDS:
        unknown, *free = (chr(number) for number in numbers if chr(number) not in alphabet)
        of_kind = [each for each in known if ord(each) not in places and _is(each, kind)]
        if len(of_kind) > len(free):
            raise InputError(
                f"the trigrams hold {len(of_kind)} characters beyond U+FFFF of the kind {kind}, and transformers.js "
                f"can tell only {len(free)} apart; export another format"
            )
        own = dict(zip(of_kind, free, strict=False))
        # Where a text holds what stands for a character, that is as unknown as it was.
        steps += [normalizers.Replace(stands, unknown) for stands in own.values()]
        steps += [normalizers.Replace(each, stands) for each, stands in own.items()]
        steps.append(normalizers.Replace(Regex(f"(?={kind}){BEYOND}"), unknown))
        places |= {ord(each): stands for each, stands in own.items()}
    return steps, places


def _is(character: str, kind: str) -> bool:
    """Tell whether a character is of a kind, by the expressions that cut text."""
    return normalizers.Replace(Regex(kind), "").normalize_str(character) == ""
