"""The calibration of an encoder: from the cosine of two sentences to the probability that they are paraphrases."""

from __future__ import annotations

import hashlib
import json
import logging
import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from paranmt_hf.encoders.null_distribution import NullData, NullDistribution
from paranmt_hf.errors import InputError, refuse
from paranmt_hf.hub.repository import CALIBRATION_FILE, Model, files_checksum
from paranmt_hf.text.languages import ENGLISH
from paranmt_hf.text.text_lists import list_of_texts
from paranmt_hf.util.records import Record
from paranmt_hf.util.wording import counted

logger = logging.getLogger(__name__)
# `probability` reports pairs that are further than this from those of the calibration. Halves of a set are at most 0.1
# apart, and 200 pairs reach 0.16 by chance once in a thousand times; docs/calibration.md has the errors beyond it.
FAR = 0.2
FEW = 200  # With fewer pairs, the distance is not looked at


@dataclass(frozen=True)
class CalibrationData:
    """The rated pairs of one source that an encoder was calibrated on.

    Attributes:
        name: Name of the file or folder.
        sha256: Checksum of the sentences and ratings.
        pairs: Number of pairs.
        positives: Number of pairs that are paraphrases.
        left_out: Number of rows that were left out, by reason.
    """

    name: str
    sha256: str
    pairs: int
    positives: int
    left_out: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class CalibrationSettings:
    """Everything that determines a calibration.

    Attributes:
        encoder: Checksum of the files of the encoder.
        data: The rated pairs, by source.
        positive: The smallest score of a paraphrase, where data have scores and no labels.
        null: Texts of the null distribution; None if there is none.
    """

    encoder: str
    data: list[CalibrationData]
    positive: float
    null: NullData | None = None


@dataclass(frozen=True, kw_only=True)
class Calibration(Record):
    """The content of `calibration.json`: how likely paraphrases are at each cosine.

    Attributes:
        knots: Corners of the curve, ascending: a cosine and its probability. The curve is straight between two
            corners.
        counts: For some cosines, ascending: the cosine, the number of pairs at or above it, and how many of these are
            paraphrases.
        bins: Groups of equally many pairs, by their predicted probability: its mean, the share of paraphrases, and the
            number of pairs. The predictions are those of cross-validation.
        error: Expected calibration error of these bins, from 0 to 1.
        dimension: Dimension of the sentence vectors.
        pairs: Number of pairs that it was made from.
        positives: Number of paraphrases among them.
        null: How the cosines of unrelated texts are distributed; None if no such texts were given.
    """

    FILE: ClassVar[str] = CALIBRATION_FILE
    KIND: ClassVar[str] = "the calibration of an encoder (`paranmt calibrate`)"

    settings: CalibrationSettings
    knots: list[tuple[float, float]]
    counts: list[tuple[float, int, int]]
    bins: list[tuple[float, float, int]] = field(default_factory=list)
    error: float
    dimension: int
    pairs: int
    positives: int
    null: NullDistribution | None = None

    @property
    def prior(self) -> float:
        """Share of paraphrases in the calibration data, which its probabilities assume if no other is given."""
        return self.positives / self.pairs

    def probability(self, cosines: np.ndarray, *, prior: float | None = None) -> np.ndarray:
        """Compute the probability that pairs with these cosines are paraphrases.

        Args:
            cosines: Cosine of each pair [pair].
            prior: Share of paraphrases among the pairs that are looked at, between 0 and 1; None for that of the
                calibration data. Another share multiplies the odds (Bayes' rule), which assumes that the cosines of
                paraphrases, and those of other pairs, are distributed as in the calibration data.

        Returns:
            Probabilities [pair], float64, between 0 and 1.
        """
        found = np.interp(np.asarray(cosines, np.float64), *np.array(self.knots).T)
        if prior is None:
            return np.asarray(found)
        odds = found / (1 - found) * _odds(prior, "prior") / _odds(self.prior, "prior")
        return np.asarray(odds / (1 + odds))

    def threshold(self, precision: float = 0.9, *, confidence: float = 0.95, prior: float | None = None) -> float:
        """Find the smallest cosine at or above which at least this share of pairs are paraphrases.

        The share is not the counted one, but the lower end of Wilson's one-sided interval on the calibration data, so
        that it is not reached by chance.

        Args:
            precision: The share, between 0 and 1.
            confidence: Confidence of the interval, from 0.5 to below 1; 0.5 takes the share as it was counted.
            prior: Share of paraphrases among all pairs, as in `probability`.

        Raises:
            InputError: No cosine has this precision.
        """
        wrong = not 0.5 <= confidence < 1
        refuse(wrong, f"confidence must be at least 0.5 and below 1, was {confidence}", option="confidence")
        # Importing scipy takes longer than encoding a sentence, so it happens only here.
        from scipy.stats import binomtest

        wanted = _odds(precision, "precision")
        best = 0.0
        factor = 1.0 if prior is None else _odds(prior, "prior") / _odds(self.prior, "prior")
        for cosine, pairs, good in self.counts:
            interval = binomtest(good, pairs, alternative="greater").proportion_ci(confidence, method="wilson")
            odds = factor * interval.low / (1 - interval.low) if interval.low < 1 else math.inf
            if odds >= wanted:
                return cosine
            best = max(best, odds)
        raise InputError(
            f"no cosine has a precision of {precision:g} on the {counted(self.pairs, 'pair')} of the calibration; the "
            f"highest is {best / (1 + best):.3f}",
            option="precision",
        )

    def null_threshold(self, one_in: int | None = None) -> float:
        """Find the smallest cosine that at most one in N pairs of unrelated texts reaches.

        Args:
            one_in: N, which the texts of `--null-text` must be enough for; that of `--null-rate` if left out.

        Returns:
            The cosine. For another N than that of `--null-rate` it is rounded up to one of `null.counts`.

        Raises:
            InputError: The calibration has no null distribution, or it has too few pairs.
        """
        null, data = self.null, self.settings.null
        if null is None or data is None:
            raise InputError(
                "this calibration has no texts of which most are unrelated; `paranmt calibrate --null-text` takes some"
            )
        refuse(one_in is not None and one_in < 1, f"one_in must be at least 1, was {one_in}", option="one_in")
        found = null.cosine_of(one_in or data.rate)
        if found is None:
            raise InputError(
                f"{counted(null.pairs, 'pair')} of texts are too few for a threshold of one in {one_in:,}",
                option="one_in",
            )
        return found

    def distance(self, cosines: np.ndarray, *, prior: float | None = None) -> float:
        """Compute how differently cosines are distributed from those of the calibration data.

        This is the distance of Kolmogorov and Smirnov: the largest difference of the shares of pairs at or above a
        cosine, over the cosines of `counts`, whose shares are about 1 % apart.

        Args:
            cosines: Cosine of each pair [pair].
            prior: Share of paraphrases among these pairs; None for that of the calibration data, whose paraphrases
                and other pairs are weighted so that they have this share.

        Returns:
            The distance, from 0 to 1.
        """
        values = np.sort(np.asarray(cosines, np.float64))
        refuse(values.ndim != 1 or not len(values), "expected the cosines of at least one pair")
        points, pairs, good = np.array(self.counts).T
        prior = self.prior if prior is None else prior
        _odds(prior, "prior")
        expected = prior * good / self.positives + (1 - prior) * (pairs - good) / (self.pairs - self.positives)
        found = 1 - np.searchsorted(values, points) / len(values)
        return float(np.abs(found - expected).max())

    def stated(self, prior: float | None = None) -> dict[str, Any]:
        """Return what determines the probabilities, as JSON values for the record of a column of probabilities.

        Args:
            prior: Share of paraphrases that the probabilities assume; None for that of the calibration data.
        """
        if prior is not None:
            _odds(prior, "prior")
        checksum = hashlib.sha256(json.dumps(self.knots).encode()).hexdigest()
        return {
            "calibrated_on": [data.name for data in self.settings.data],
            "prior": prior or self.prior,
            "knots": f"sha256:{checksum}",
        }

    @classmethod
    def of(cls, model: Model) -> Calibration | None:
        """Read the calibration in the folder of an encoder; None if it has none.

        Raises:
            InputError: The calibration was made for other files than those of the folder.
        """
        if not (model.folder / CALIBRATION_FILE).is_file():
            return None
        found = cls.read(model.folder)
        refuse(
            found.settings.encoder != files_checksum(model.folder),
            f"{model.folder / CALIBRATION_FILE} does not fit the files next to it: a .json, .txt or .safetensors file "
            "was changed or added; remove what was added, or calibrate the encoder again",
            path=model.folder,
        )
        return found


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


def encoded_cosines(
    encoder: Any,  # noqa: ANN401 - with `encode`
    first: list[str],
    second: list[str],
    *,
    dimension: int | None = None,
) -> np.ndarray:
    """Compute the cosine of the vectors of two sentences, for each pair.

    Args:
        encoder: Any object with the `encode` of a `SentenceTransformer`.
        first: First sentence of each pair.
        second: Second sentence of each pair.
        dimension: Dimensions that the vectors must have; None if any will do.

    Returns:
        Cosines [pair], float64, in [-1, 1].
    """
    rows = {text: row for row, text in enumerate(dict.fromkeys([*first, *second]))}
    vectors = np.asarray(encoder.encode(list(rows), normalize_embeddings=True))
    refuse(
        dimension not in (None, vectors.shape[1]),
        f"the encoder gives {counted(vectors.shape[1], 'dimension')}, and its calibration is for {dimension}; "
        "calibrate it as it is used",
    )
    left = vectors[[rows[text] for text in first]]
    right = vectors[[rows[text] for text in second]]
    return np.clip(np.einsum("ij,ij->i", left, right, dtype=np.float64), -1, 1)


def _odds(share: float, name: str) -> float:
    """Return the odds of a share, share / (1 - share); the share must be between 0 and 1, exclusive."""
    refuse(not 0 < share < 1, f"{name} must be above 0 and below 1, was {share}", option=name)
    return share / (1 - share)
