"""The calibration of an encoder: from the cosine of two sentences to the probability that they are paraphrases."""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from paranmt_hf.encoders.null_distribution import NullData, NullDistribution
from paranmt_hf.errors import InputError, refuse
from paranmt_hf.hub.repository import CALIBRATION_FILE, Model, files_checksum
from paranmt_hf.util.records import Record
from paranmt_hf.util.wording import counted


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
