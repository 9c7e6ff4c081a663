"""Calibrate an encoder: isotonic regression from the cosine to the probability of a paraphrase.

Zadrozny & Elkan 2002, "Transforming classifier scores into accurate multiclass probability estimates". The curve is
fitted by the pool-adjacent-violators algorithm.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np

from paranmt_hf.calibration.null_pairs import NullTexts, null_distribution, read_null_texts
from paranmt_hf.calibration.rated_pairs import PAIRS, RatedPairs, read_rated_pairs
from paranmt_hf.encoders.calibration import Calibration, CalibrationSettings, encoded_cosines
from paranmt_hf.encoders.loading import load
from paranmt_hf.encoders.model_folder import copy_model
from paranmt_hf.encoders.named_encoder import NamedEncoder
from paranmt_hf.errors import InputError, refuse
from paranmt_hf.hub.repository import files_checksum, locate
from paranmt_hf.text.languages import ENGLISH
from paranmt_hf.training.publish import rewrite_card
from paranmt_hf.training.record import CALIBRATION_PICTURE, EncoderResult
from paranmt_hf.util.files import shown_path
from paranmt_hf.util.markers import Range
from paranmt_hf.util.optional import available
from paranmt_hf.util.records import made_with
from paranmt_hf.util.run import result_folder, run

if TYPE_CHECKING:
    from paranmt_hf.encoders.sentence_encoder import SentenceEncoder

logger = logging.getLogger(__name__)
DIGITS = 6  # Decimal places of cosines and probabilities


class Calibrated(EncoderResult[Calibration]):
    """The copy of an encoder that has a calibration."""

    def summary(self) -> str:
        """Return lines about the data, the calibration error, and the cosine above which the precision is high."""
        record = self.record
        share = f"{record.positives:,} of {record.pairs:,} pairs are paraphrases ({record.prior:.1%})"
        try:
            cosine = f"cosine {record.threshold(0.9):.3f} and above: a precision of at least 90%"
        except InputError as error:
            cosine = str(error)
        left_out = [
            f"  {data.name}: {count:,} more pairs {reason}"
            for data in record.settings.data
            for reason, count in data.left_out.items()
        ]
        return "\n".join(
            [
                f"{shown_path(self.folder)}: {share}",
                *left_out,
                f"  calibration error {record.error:.1%} by cross-validation; {cosine}",
                *_null_lines(record),
                f"load it: paranmt_hf.load({shown_path(self.folder)!r})",
            ]
        )


def _null_lines(record: Calibration) -> list[str]:
    """Return lines about the null distribution of a calibration, if it has one."""
    null, data = record.null, record.settings.null
    if null is None or data is None:
        return []
    low, high = null.interval
    return [
        f"  cosine {null.threshold:.4f} and above: at most one in {data.rate:,} of {null.pairs:,} pairs of texts of "
        f"{data.name} (95% interval {low:.4f} to {high:.4f})",
        f"  the nearest of the other texts is that near for {null.near:,} of {data.drawn:,} texts "
        f"({null.near / data.drawn:.1%})",
    ]


def calibrate(
    model: str | Path,
    *,
    out: str | Path,
    ratings: Sequence[str | Path] = (),
    columns: Mapping[str, str] | None = None,
    positive: float = 4.0,
    null_text: str | Path | None = None,
    null_column: str | None = None,
    null_rate: Annotated[int, Range(at_least=100)] = 10_000,
) -> Calibrated:
    """Calibrate an encoder: learn from rated pairs how likely two sentences of each cosine are paraphrases.

    The result is a copy of the encoder with `calibration.json`. The probabilities are those among pairs such as the
    rated ones, of which the same share are paraphrases.

    Args:
        model: Folder or Hub id of an encoder; `small`, `base`, `de`, ... are those of the package.
        out: Folder of the calibrated encoder.
        ratings: Rated pairs: corpora, and files of any format (docs/formats.md) with the columns label, reference and
            translation; CSV files of `paranmt annotate export`; TSV and Parquet files with a score and two sentences.
            558 pairs of the package in the language of the encoder if left out.
        columns: Columns of files with labels: reference=sentence1,translation=sentence2,label=is_duplicate.
        positive: Where pairs have scores and no labels, the smallest score of a paraphrase.
        null_text: Sentences of yours in a file of any format (docs/formats.md), or a corpus, for a threshold without
            ratings: 10,000 of them, drawn at random, are compared with each other.
        null_column: Column of `null_text`; in a corpus `reference` (default) or `translation`.
        null_rate: N: the threshold is the cosine that at most one in N pairs of these sentences reaches.
    """
    located = locate(model)
    out = result_folder(out, Calibration, sources=[located.folder])
    refuse(null_column is not None and null_text is None, "`null_column` needs `null_text`", option="null_column")
    null = None if null_text is None else read_null_texts(null_text, null_column, null_rate)
    sets = [read_rated_pairs(source, positive, columns) for source in ratings or [_own_pairs(model)]]
    data = [each.stated for each in sets]
    for each in data:
        for reason, count in each.left_out.items():
            logger.info(f"{each.name}: left out, {reason}: {count:,}")
    pairs = sum(each.pairs for each in data)
    positives = sum(each.positives for each in data)
    if min(positives, pairs - positives) < 10:
        raise InputError(
            f"{positives} of {pairs} rated pairs are paraphrases; expected at least 10 that are and 10 that are not: "
            f"give more, or another `positive` than {positive:g} if they have scores",
            option="ratings",
        )
    settings = CalibrationSettings(files_checksum(located.folder), data, positive, null.stated if null else None)

    def make(work: Path, folder: Path) -> Calibration:
        encoder = load(located)
        record = fit(settings, sets, encoder, null)
        copy_model(located, folder)
        # The folder may have the picture of an earlier calibration.
        (folder / CALIBRATION_PICTURE).unlink(missing_ok=True)
        plot_calibration(record, folder / CALIBRATION_PICTURE, out.name)
        # The card shows the calibration, so the record is written first.
        record.write(folder)
        rewrite_card(folder, out.name)
        return record

    return run(out, settings, Calibration, make, result=Calibrated, command="calibrate")


def _own_pairs(model: str | Path) -> Path:
    """Return the rated pairs of this package in the language of an encoder, which is English if it is not known."""
    spoken = NamedEncoder(str(model)).languages
    if not spoken or {ENGLISH, "multilingual"} & {*spoken}:
        return PAIRS[ENGLISH]
    found = next((PAIRS[language] for language in spoken if language in PAIRS), None)
    if found is None:
        raise InputError(
            f"the package has no rated pairs in {', '.join(spoken)}; give some as `ratings`", option="ratings"
        )
    return found


def fit(
    settings: CalibrationSettings, sets: Sequence[RatedPairs], encoder: SentenceEncoder, null: NullTexts | None = None
) -> Calibration:
    """Fit the calibration of an encoder to rated pairs.

    The curve is fitted to all pairs. The bins come from ten-fold cross-validation, in which the pairs of a fold share
    no sentence with the others.

    Args:
        settings: Everything that determines the calibration.
        sets: The rated pairs of each source.
        encoder: The encoder to calibrate.
        null: Texts for the null distribution; None for none.
    """
    unrelated = None
    if null is not None:
        vectors = np.asarray(encoder.encode(null.texts, normalize_embeddings=True), np.float32)
        unrelated = null_distribution(vectors, null.stated.rate)
    left = [text for each in sets for text in each.left]
    right = [text for each in sets for text in each.right]
    positive = np.concatenate([each.positive for each in sets])
    cosines = np.round(encoded_cosines(encoder, left, right), DIGITS)
    predicted = np.empty(len(cosines))
    for held_out in folds_of(left, right, folds=10, seed=1):
        rest = np.setdiff1d(np.arange(len(cosines)), held_out)
        corners = isotonic(cosines[rest], positive[rest])
        predicted[held_out] = np.interp(cosines[held_out], *np.array(corners).T)
    bins = reliability(predicted, positive)
    return Calibration(
        settings=settings,
        knots=isotonic(cosines, positive),
        counts=counts_above(cosines, positive),
        bins=bins,
        error=round(calibration_error(bins), DIGITS),
        dimension=encoder.get_embedding_dimension(),
        pairs=len(cosines),
        positives=int(positive.sum()),
        null=unrelated,
        **made_with("numpy", "scikit-learn"),
    )


def isotonic(cosines: np.ndarray, positive: np.ndarray, digits: int = DIGITS) -> list[tuple[float, float]]:
    """Fit an ascending curve from cosines to the share of positives.

    One more positive at the lowest cosine, and one more negative at the highest, keep the curve from 0 and 1, which no
    number of pairs can prove.

    Args:
        cosines: Cosine of each pair [pair].
        positive: Whether each pair is a paraphrase [pair].
        digits: Decimal places of the result.

    Returns:
        The corners of the curve, a cosine and a share each, ascending.
    """
    from sklearn.isotonic import IsotonicRegression

    model = IsotonicRegression().fit([cosines.min(), *cosines, cosines.max()], [1, *positive, 0])
    # With millions of pairs a share may be so near to 0 or 1 that it would be rounded to them.
    shares = model.y_thresholds_.clip(10**-digits, 1 - 10**-digits)
    corners = zip(model.X_thresholds_, shares, strict=True)
    return [(round(float(cosine), digits), round(float(share), digits)) for cosine, share in corners]


def folds_of(left: Sequence[str], right: Sequence[str], folds: int, seed: int) -> Iterator[np.ndarray]:
    """Split pairs into parts that share no sentence.

    Args:
        left: First sentence of each pair [pair].
        right: Second sentence of each pair [pair].
        folds: Maximum number of parts.
        seed: Seed of the split.

    Yields:
        The positions of the pairs of each part, ascending.

    Raises:
        InputError: All pairs are connected by shared sentences.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    rows: dict[str, int] = {}
    first = [rows.setdefault(text, len(rows)) for text in left]
    second = [rows.setdefault(text, len(rows)) for text in right]
    links = coo_array((np.ones(len(first)), (first, second)), shape=(len(rows), len(rows)))
    count, groups = connected_components(links, directed=False)
    if count < 2:
        raise InputError("all rated pairs share sentences, so none can be held out; give others", option="ratings")
    parts = np.random.default_rng(seed).permutation(count)[groups[first]] % folds
    for part in np.unique(parts):
        yield np.flatnonzero(parts == part)


def reliability(probabilities: np.ndarray, positive: np.ndarray, bins: int = 15) -> list[tuple[float, float, int]]:
    """Compare predicted probabilities with the share of positives, in bins of equally many pairs by probability.

    Args:
        probabilities: Predicted probability of each pair [pair].
        positive: Whether each pair is a paraphrase [pair].
        bins: Maximum number of bins.

    Returns:
        For each bin its mean probability, share of positives, and number of pairs.
    """
    summaries = []
    for pairs in np.array_split(np.argsort(probabilities, kind="stable"), min(bins, len(probabilities))):
        mean, share = float(probabilities[pairs].mean()), float(positive[pairs].mean())
        summaries.append((round(mean, DIGITS), round(share, DIGITS), len(pairs)))
    return summaries


def calibration_error(bins: Sequence[tuple[float, float, int]]) -> float:
    """Compute the expected calibration error: the mean difference of probability and share over all pairs.

    Args:
        bins: The bins that `reliability` returns.
    """
    pairs = sum(count for _, _, count in bins)
    return sum(abs(mean - share) * count for mean, share, count in bins) / pairs


def counts_above(cosines: np.ndarray, positive: np.ndarray) -> list[tuple[float, int, int]]:
    """Count the pairs, and the positives among them, at or above some of the cosines.

    Args:
        cosines: Cosine of each pair [pair].
        positive: Whether each pair is a paraphrase [pair].

    Returns:
        At most 100 cosines, ascending, each with the number of pairs at or above it and that of positives among them.
    """
    order = np.sort(cosines)
    ranks = np.linspace(0, len(order) - 1, min(100, len(order))).astype(int)
    found = []
    for cosine in np.unique(order[ranks]):
        above = cosines >= cosine
        found.append((float(cosine), int(above.sum()), int(positive[above].sum())))
    return found


def plot_calibration(calibration: Calibration, path: Path, title: str) -> None:
    """Draw the share of paraphrases by probability, and the probability by cosine, if matplotlib is installed.

    Args:
        calibration: The calibration to draw.
        path: The picture to write.
        title: Title of the picture.
    """
    if not available("matplotlib"):
        return
    import matplotlib.figure

    figure = matplotlib.figure.Figure(figsize=(8, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.plot([0, 1], [0, 1], color="tab:gray", linewidth=1)
    means, shares, _ = zip(*calibration.bins, strict=True)
    left.plot(means, shares, marker="o")
    left.set(xlabel="probability, by cross-validation", ylabel="share of paraphrases", xlim=(0, 1), ylim=(0, 1))
    right.plot(*zip(*calibration.knots, strict=True))
    right.set(xlabel="cosine", ylabel="probability", ylim=(0, 1))
    figure.suptitle(title)
    figure.savefig(path, dpi=120)
