"""Are the probabilities of a calibrated encoder right, on pairs like those of the calibration and on other text?

For each encoder, and each two sets of rated pairs: calibrate on the first and measure on the second the expected
calibration error (15 bins of equal count) as it is and with the share of paraphrases of the second set as `prior`;
next to it the error that chance alone gives; and the precision on the second set at `threshold(0.9)`, with that prior.

The sets are MRPC (labels), and the sets of STS 2012 to 2014 in two parts, captions and news (a score of 4 or more is a
paraphrase); `--carried` adds the calibrations that the encoders came with. MSRpar, which is drawn from MRPC, is left
out. STS and MRPC are for measuring: neither settings nor weights of the package come from them.

    python benchmarks/calibration.py --mrpc senteval/MRPC --sts sts --models embedded base
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from paranmt_hf import InputError, load
from paranmt_hf.encoders.calibration import Calibration, CalibrationData, CalibrationSettings, encoded_cosines
from paranmt_hf.evaluation.sts_data import read_sts
from paranmt_hf.training.calibrate import BINS, FOLDS, RatedPairs, calibration_error, fit

PRECISION, POSITIVE = 0.9, 4.0
PARTS = {
    "captions": ("MSRvid", "images"),
    "news": ("headlines", "deft-news", "tweet-news", "SMTeuroparl", "surprise.SMTnews"),
}


def read_mrpc(path: Path) -> RatedPairs:
    """Read a part of MRPC."""
    rows = [line.split("\t") for line in path.read_text(encoding="utf-8-sig").splitlines()[1:]]
    left, right = ([row[side].strip() for row in rows] for side in (3, 4))
    return RatedPairs(path.stem, "", left, right, np.array([row[0] == "1" for row in rows]))


def read_part(folder: Path, name: str) -> RatedPairs:
    """Join some sets of the years of STS."""
    sets = [each for each in read_sts(folder) if each.year and each.name in PARTS[name]]
    left, right = ([text for each in sets for text in getattr(each, side)] for side in ("left", "right"))
    return RatedPairs(f"STS {name}", "", left, right, np.concatenate([each.gold for each in sets]) >= POSITIVE)


def chance(probabilities: np.ndarray, seed: int = 1, draws: int = 200) -> float:
    """The calibration error of labels that are drawn with exactly these probabilities."""
    drawn = np.random.default_rng(seed).random((draws, len(probabilities))) < probabilities
    return float(np.mean([calibration_error(probabilities, labels) for labels in drawn]))


def first(pairs: RatedPairs, count: int | None) -> RatedPairs:
    """Keep the first pairs of a set."""
    kept = slice(count)
    return RatedPairs(pairs.name, "", pairs.left[kept], pairs.right[kept], pairs.positive[kept])


def calibrated(encoder: Any, pairs: RatedPairs) -> Calibration:  # noqa: ANN401
    """Calibrate an encoder on a set."""
    data = [CalibrationData(pairs.name, pairs.sha256, len(pairs.left), int(pairs.positive.sum()))]
    return fit(CalibrationSettings("", data, POSITIVE, FOLDS, 1), [pairs], encoder)


def row(calibration: Calibration, cosines: np.ndarray, positive: np.ndarray) -> list[str]:
    """The figures of a calibration on the pairs of a set."""
    prior = float(positive.mean())
    as_is, shifted = calibration.probability(cosines), calibration.probability(cosines, prior=prior)
    errors = [calibration_error(as_is, positive), calibration_error(shifted, positive), chance(shifted)]
    try:
        above = cosines >= calibration.threshold(PRECISION, prior=prior)
        reached = [f"{100 * positive[above].mean():.1f}" if above.any() else "no pair", f"{100 * above.mean():.1f}"]
    except InputError:
        reached = ["not reachable", ""]
    return [*(f"{100 * error:.1f}" for error in errors), *reached]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mrpc", type=Path, required=True, help="folder of MRPC")
    parser.add_argument("--sts", type=Path, required=True, help="folder with STS 2012 to 2014")
    parser.add_argument("--models", nargs="+", default=["embedded", "base"])
    parser.add_argument("--pairs", type=int, help="at most this many pairs of each set, for slow encoders")
    parser.add_argument("--carried", action="store_true", help="also the calibrations that the encoders came with")
    options = parser.parse_args()
    sets = [read_mrpc(options.mrpc / f"msr_paraphrase_{part}.txt") for part in ("train", "test")]
    sets = [first(pairs, options.pairs) for pairs in [*sets, *(read_part(options.sts, name) for name in PARTS)]]
    for pairs in sets:
        print(f"{pairs.name}: {len(pairs.left):,} pairs, {pairs.positive.mean():.1%} paraphrases")
    print(f"\nExpected calibration error in percent, {BINS} bins; precision and share of pairs at threshold(0.9)\n")
    print("| encoder | calibrated on | measured on | error | with prior | by chance | precision | pairs |")
    print("|---|---|---|---:|---:|---:|---:|---:|")
    for name in options.models:
        encoder = load(name, device="cpu")
        fitted = {pairs.name: calibrated(encoder, pairs) for pairs in sets if "test" not in pairs.name}
        if options.carried and encoder.calibration is not None:
            fitted["what it came with"] = encoder.calibration
        for pairs in sets:
            cosines = encoded_cosines(encoder, pairs.left, pairs.right)
            for source, calibration in fitted.items():
                if source != pairs.name and "train" not in pairs.name:
                    figures = row(calibration, cosines, pairs.positive)
                    print(f"| {Path(name).name} | {source} | {pairs.name} | {' | '.join(figures)} |", flush=True)


if __name__ == "__main__":
    main()
