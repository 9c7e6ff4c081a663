"""Ways to search for paraphrases that are compared: as words, or in a YAML file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from paranmt_hf.errors import InputError
from paranmt_hf.paraphrase.config import ParaphraseConfig
from paranmt_hf.util.settings import read_value
from paranmt_hf.util.yaml_files import read_yaml

DECODINGS = (
    "greedy",
    "beams=4",
    "beams=8",
    "beams=8,groups=4",
    "sample,temperature=0.7",
    "sample,top_p=0.9",
    "sample",
)
# What these words stand for.
WORDS: dict[str, dict[str, Any]] = {"greedy": {"beams": 1, "n": 1}, "sample": {"sample": True}}
# Given for all ways at once.
COMMON = ("device", "dtype", "batch_tokens", "seed", "max_length")


@dataclass(frozen=True)
class Decoding:
    """A way to search.

    Attributes:
        name: As it was written.
        settings: What it says, by field of `ParaphraseConfig`.
        config: The whole settings.
    """

    name: str
    settings: dict[str, Any]
    config: ParaphraseConfig


def read_decodings(given: Sequence[str], base: ParaphraseConfig) -> list[Decoding]:
    """Read ways to search.

    Args:
        given: Each a list of `field=value` with commas between, in which `greedy` stands for `beams=1,n=1` and
            `sample` for `sample=true`; or one YAML file, names with a mapping of fields to values below each.
        base: What they say nothing of.

    Raises:
        InputError: A field or value is none, or two are called alike.
    """
    if len(given) == 1 and Path(given[0]).suffix.lower() in (".yaml", ".yml"):
        return _from_file(Path(given[0]).expanduser(), base)
    found = [_decoding(text, _parsed(text), base) for text in given]
    if not found:
        raise InputError("there is no way to search; name one, such as greedy or beams=4")
    if len({each.name for each in found}) < len(found):
        raise InputError(f"each way to search is named once, got {' '.join(given)}")
    return found


def _from_file(path: Path, base: ParaphraseConfig) -> list[Decoding]:
    expected = "names of ways to search, with settings below each, such as `beams 8: {beams: 8, n: 3}`"
    values = read_yaml(path, expected)
    if not values or not all(isinstance(each, dict) for each in values.values()):
        raise InputError(f"{path}: expected {expected}")
    found = []
    for name, settings in values.items():
        try:
            found.append(_decoding(str(name), settings, base))
        except InputError as error:
            raise InputError(f"{path}, {name}: {error}") from None
    return found


def _parsed(text: str) -> dict[str, Any]:
    settings: dict[str, Any] = {}
    for part in filter(None, text.split(",")):
        name, equals, value = part.strip().partition("=")
        if not equals and name in WORDS:
            settings |= WORDS[name]
        elif not equals:
            raise InputError(f"{text!r}: expected {' or '.join(WORDS)}, or NAME=VALUE such as beams=4, found {part!r}")
        else:
            settings[name.replace("-", "_")] = value
    return settings


def _decoding(name: str, settings: dict[str, Any], base: ParaphraseConfig) -> Decoding:
    known = [field for field in ParaphraseConfig.__dataclass_fields__ if field not in COMMON]
    if unknown := [str(field) for field in settings if field not in known]:
        raise InputError(f"{name}: there is no {', '.join(unknown)} to choose here; there are {', '.join(known)}")
    try:
        own = {field: read_value(ParaphraseConfig, field, value) for field, value in settings.items()}
        return Decoding(name, own, replace(base, **own))
    except InputError as error:
        raise InputError(f"{name}: {error}") from None
