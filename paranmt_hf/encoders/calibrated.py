"""What encoders can do that are calibrated: probabilities instead of cosines."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from paranmt_hf.errors import InputError, refuse
from paranmt_hf.hub.repository import CALIBRATION_FILE
from paranmt_hf.text.languages import ENGLISH
from paranmt_hf.text.text_lists import list_of_texts

if TYPE_CHECKING:
    from paranmt_hf.encoders.calibration import Calibration
    from paranmt_hf.hub.repository import Model

logger = logging.getLogger(__name__)
# `probability` reports pairs that are further than this from those of the calibration. Halves of a set are at most 0.1
# apart, and 200 pairs reach 0.16 by chance once in a thousand times; docs/calibration.md has the errors beyond it.
FAR = 0.2
FEW = 200  # With fewer pairs, the distance is not looked at


class WithCalibration:
    """Base class of encoders that may be calibrated: adds `calibration`, `probability` and `same_meaning`."""

    source: Model | None = None
    _has_warned = False  # Whether `probability` has reported pairs unlike those of the calibration

    @property
    def calibration(self) -> Calibration | None:
        """The calibration in the folder of the encoder; None if there is none.

        Raises:
            InputError: The weights were changed since the encoder was loaded, so its calibration is void.
        """
        found = self._stored_calibration
        refuse(
            found is not None and not self._is_as_loaded(),
            "the weights of this encoder were changed since it was loaded, so it is not calibrated any more; save it, "
            "and calibrate the saved one",
        )
        return found

    @cached_property
    def _stored_calibration(self) -> Calibration | None:
        """The calibration in the folder that the encoder was loaded from, read once."""
        # The import is here because it takes memory of each process, which encoding does not need.
        from paranmt_hf.encoders.calibration import Calibration

        return None if self.source is None else Calibration.of(self.source)

    def _is_as_loaded(self) -> bool:
        """Whether the weights are those that were loaded."""
        return True

    def probability(
        self, first: str | Iterable[str], second: str | Iterable[str], *, prior: float | None = None
    ) -> Any:  # noqa: ANN401 - a number for two sentences
        """Compute the probability that two sentences are paraphrases, or that of each pair of two lists.

        If the cosines of 200 pairs or more are distributed differently from those of the calibration data, a warning
        is logged, once for each encoder: these probabilities may be far from right. See `Calibration.distance`.

        Each call checks that the weights are those that were loaded, so one call with lists is faster than many calls
        with single sentences.

        Args:
            first: The first sentences, or a single one.
            second: The second sentences, as many.
            prior: Share of paraphrases among pairs such as these; that of the calibration data if left out. See
                `Calibration.probability`.

        Returns:
            A number from 0 to 1 for two sentences; for lists an array [pair], float64.
        """
        from paranmt_hf.encoders.calibration import encoded_cosines

        calibration = self.calibration
        if calibration is None:
            name = "this encoder" if self.source is None else f"the encoder {self.source.name}"
            raise InputError(f"{name} has no {CALIBRATION_FILE}; `paranmt calibrate` makes one from rated pairs")
        left, right = _pairs_of(first, second)
        if not left:
            return np.zeros(0)
        cosines = encoded_cosines(self, left, right, dimension=calibration.dimension)
        found = calibration.probability(cosines, prior=prior)
        if len(left) >= FEW and not self._has_warned:
            self._warn_if_far(calibration, cosines, prior)
        return float(found[0]) if isinstance(first, str) else found

    def _warn_if_far(self, calibration: Calibration, cosines: np.ndarray, prior: float | None) -> None:
        """Log a warning if cosines [pair] are distributed differently from those of the calibration data."""
        distance = calibration.distance(cosines, prior=prior)
        if distance > FAR:
            self._has_warned = True
            logger.warning(
                f"the cosines of these {len(cosines):,} pairs are distributed differently from those of the "
                f"{calibration.pairs:,} pairs that the encoder was calibrated on (a distance of {distance:.2f}, more "
                f"than {FAR}), so the probabilities may be far from right; calibrate it on rated pairs like these "
                "with `paranmt calibrate`, or give their share of paraphrases as `prior`"
            )

    def same_meaning(
        self,
        first: str | Iterable[str],
        second: str | Iterable[str],
        *,
        threshold: float = 0.5,
        prior: float | None = None,
        language: str = ENGLISH,
    ) -> Any:  # noqa: ANN401 - a `Meaning` for two sentences
        """Decide whether two sentences mean the same, or each pair of two lists; see `paranmt_hf.same_meaning`."""
        # Compiled rules bring numba, which encoding does not need.
        from paranmt_hf.meaning.judgement import judged

        refuse(not 0 <= threshold <= 1, f"threshold must be from 0 to 1, was {threshold}", option="threshold")
        left, right = _pairs_of(first, second)
        found = judged(np.asarray(self.probability(left, right, prior=prior)), left, right, threshold, language)
        return found[0] if isinstance(first, str) else found


def _pairs_of(first: str | Iterable[str], second: str | Iterable[str]) -> tuple[list[str], list[str]]:
    """Return the first and the second sentences of pairs; two sentences are one pair."""
    left = list_of_texts([first] if isinstance(first, str) else first, "first")
    right = list_of_texts([second] if isinstance(second, str) else second, "second")
    unequal = isinstance(first, str) != isinstance(second, str) or len(left) != len(right)
    refuse(unequal, "expected two sentences, or two lists with as many sentences each")
    return left, right
