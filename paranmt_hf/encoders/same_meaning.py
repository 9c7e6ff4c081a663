"""`paranmt_hf.same_meaning`: whether two sentences mean the same, or are only near."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from paranmt_hf.encoders.calibrated import WithCalibration
from paranmt_hf.encoders.named_encoder import NamedEncoder
from paranmt_hf.encoders.static_encoder import StaticEncoder
from paranmt_hf.text.languages import ENGLISH


def same_meaning(
    first: str | Iterable[str],
    second: str | Iterable[str],
    *,
    encoder: str | Path | WithCalibration | None = None,
    threshold: float = 0.5,
    prior: float | None = None,
    language: str = ENGLISH,
) -> Any:  # noqa: ANN401 - a `Meaning` for two sentences
    """Decide whether two sentences mean the same, or each pair of two lists, and say why not.

    The cosine of two sentences says how near they are, and it is high for opposites. So this looks for differences
    that it does not see: other numbers, units, dates and versions, negations, names, opposites (on and off, open and
    closed), two words that have changed places (from Oslo to Prague), and words such as `only`, `all`, `at least` and
    `must`. The rules are for English; in other languages numbers in digits and addresses count.

    Args:
        first: The first sentences, or a single one.
        second: The second sentences, as many.
        encoder: Calibrated encoder: one that is loaded, or its folder or Hub id; that of this package for the language
            if left out.
        threshold: Smallest probability of sentences that mean the same, from 0 to 1.
        prior: Share of paraphrases among pairs such as these; that of the calibration data if left out.
        language: Language of the sentences (ISO 639-1).

    Returns:
        A `Meaning` for two sentences, a list of them for lists.
    """
    if not isinstance(encoder, WithCalibration):
        named = NamedEncoder.of(encoder, language)
        named.check_language(language)
        encoder = _loaded(named.name)
    return encoder.same_meaning(first, second, threshold=threshold, prior=prior, language=language)


@cache
def _loaded(name: str) -> StaticEncoder:
    """Load an encoder once."""
    return StaticEncoder.from_pretrained(name)
