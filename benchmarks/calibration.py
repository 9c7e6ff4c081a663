"""Measure whether probabilities of calibrated encoders are right, on text like that of the calibration and on other.

For each encoder, and each two sets of rated pairs: calibrate on the first and measure on the second the expected
calibration error (15 bins of equal count) as it is and with the share of paraphrases of the second set as `prior`;
next to it the error that chance alone gives; and the precision on the second set at `threshold(0.9)`, with that prior.
The last rows are those of one curve that is fitted on the measured sets themselves.

The sets are MRPC (labels), and the sets of STS 2012 to 2014 in two parts, captions and news (a score of 4 or more is a
paraphrase); `--carried` adds the calibrations that the encoders came with. MSRpar, which is drawn from MRPC, is left
out. STS and MRPC are for measuring: neither settings nor weights of the package come from them.

    python benchmarks/calibration.py --mrpc senteval/MRPC --sts sts --models small base
"""

from __future__ import annotations

import argparse
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from commands import mrpc_pairs, paranmt, sts_pairs
from sklearn.isotonic import IsotonicRegression

from paranmt_hf import InputError, load

PRECISION, POSITIVE, BINS = 0.9, 4.0, 15
PARTS = {
    "captions": ("MSRvid", "images"),
    "news": ("headlines", "deft-news", "tweet-news", "SMTeuroparl", "surprise.SMTnews"),
}


@dataclass(frozen=True)
class RatedSet:
    """A set of pairs of sentences that people rated."""

    name: str
    rows: list[tuple[int, str, str]]  # Label (1 for a paraphrase) and both sentences of each pair

    @property
    def positive(self) -> np.ndarray:
        """Whether each pair is a paraphrase [pair]."""
        return np.array([label == 1 for label, _, _ in self.rows])

    def write(self, folder: Path) -> Path:
        """Write the set as a file for `paranmt calibrate` into a folder, and return its path."""
        path = folder / f"{self.name}.tsv"
        lines = ["label\treference\ttranslation", *("\t".join(map(str, row)) for row in self.rows)]
        path.write_text("\n".join(lines), encoding="utf8")
        return path

    def cosines(self, encoder: Any) -> np.ndarray:  # noqa: ANN401
        """Return the cosine of the two sentences of each pair [pair]."""
        sides = [encoder.encode([row[side] for row in self.rows], normalize_embeddings=True) for side in (1, 2)]
        return np.einsum("ij,ij->i", *sides)


def read_mrpc(folder: Path, part: str) -> RatedSet:
    """Read a part of MRPC, `train` or `test`, from its folder."""
    rows = [(label, left.strip(), right.strip()) for label, left, right in mrpc_pairs(folder, part)]
    return RatedSet(f"MRPC {part}", rows)


def read_part(folder: Path, name: str) -> RatedSet:
    """Read the sets of STS 2012 to 2014 that belong to one of `PARTS`, as one set."""
    files = sorted(file for part in PARTS[name] for file in folder.glob(f"STS1[234]*/STS.input.{part}.txt"))
    rows = [(int(score >= POSITIVE), left, right) for file in files for score, left, right in sts_pairs(file)]
    return RatedSet(f"STS {name}", rows)


def error_of(probabilities: np.ndarray, positive: np.ndarray) -> float:
    """Return the expected calibration error over bins with equally many pairs, from 0 to 1."""
    parts = np.array_split(np.argsort(probabilities, kind="stable"), BINS)
    gaps = [abs(probabilities[part].mean() - positive[part].mean()) * len(part) for part in parts]
    return float(sum(gaps) / len(probabilities))


def chance(probabilities: np.ndarray, seed: int = 1, draws: int = 200) -> float:
    """Return the mean calibration error of labels that are drawn at random with exactly these probabilities."""
    drawn = np.random.default_rng(seed).random((draws, len(probabilities))) < probabilities
    return float(np.mean([error_of(probabilities, labels) for labels in drawn]))


def figures(calibration: Any, cosines: np.ndarray, positive: np.ndarray) -> list[str]:  # noqa: ANN401
    """Return the figures of a calibration on a set of pairs: errors, and precision and share at the threshold."""
    prior = float(positive.mean())
    as_is, shifted = calibration.probability(cosines), calibration.probability(cosines, prior=prior)
    errors = [error_of(as_is, positive), error_of(shifted, positive), chance(shifted)]
    try:
        above = cosines >= calibration.threshold(PRECISION, prior=prior)
        reached = [f"{100 * positive[above].mean():.1f}" if above.any() else "no pair", f"{100 * above.mean():.1f}"]
    except InputError:
        reached = ["not reachable", ""]
    return [*(f"{100 * error:.1f}" for error in errors), *reached]


def shared_curve(cosines: list[np.ndarray], positive: list[np.ndarray]) -> list[np.ndarray]:
    """Return the probabilities of the pairs of each set, by one curve that fits all sets best, each with its prior.

    The curve is fitted on the sets that it is measured on: no function of the cosine for all sets can do much better.
    """
    weights = [np.where(own, 0.5 / own.mean(), 0.5 / (1 - own.mean())) / len(own) for own in positive]
    curve = IsotonicRegression(y_min=1e-4, y_max=1 - 1e-4, out_of_bounds="clip")
    curve.fit(np.concatenate(cosines), np.concatenate(positive).astype(float), sample_weight=np.concatenate(weights))
    found = []
    for each, own in zip(cosines, positive, strict=True):
        probability = curve.predict(each)
        odds = probability / (1 - probability) * own.mean() / (1 - own.mean())
        found.append(odds / (1 + odds))
    return found


def main() -> None:
    """Parse the command line, measure, print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mrpc", type=Path, required=True, help="folder of MRPC")
    parser.add_argument("--sts", type=Path, required=True, help="folder with STS 2012 to 2014")
    parser.add_argument("--models", nargs="+", default=["small", "base"])
    parser.add_argument("--pairs", type=int, help="this many pairs of each set, drawn at random, for slow encoders")
    parser.add_argument("--carried", action="store_true", help="also the calibrations that the encoders came with")
    options = parser.parse_args()
    sets = [read_mrpc(options.mrpc, "train"), read_mrpc(options.mrpc, "test")]
    sets += [read_part(options.sts, name) for name in PARTS]
    for index, each in enumerate(sets):
        drawn = np.random.default_rng(1).permutation(len(each.rows))[: options.pairs]
        sets[index] = RatedSet(each.name, [each.rows[row] for row in sorted(drawn)])
        print(f"{each.name}: {len(drawn):,} pairs, {sets[index].positive.mean():.1%} paraphrases")
    print(f"\nExpected calibration error in percent, {BINS} bins; precision and share of pairs at threshold(0.9)\n")
    print("| encoder | calibrated on | measured on | error | with prior | by chance | precision | pairs |")
    print("|---|---|---|---:|---:|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as folder:
        for number, name in enumerate(options.models):
            measure(name, sets, Path(folder) / str(number), carried=options.carried)


def measure(name: str, sets: list[RatedSet], folder: Path, *, carried: bool) -> None:
    """Print the rows of an encoder; `folder` is for its calibrated copies."""
    folder.mkdir()
    encoder = load(name, device="cpu")
    found = {}
    for each in sets:
        if each.name != "MRPC test":
            paranmt("calibrate", name, "--out", folder / each.name, "--ratings", each.write(folder))
            found[each.name] = load(folder / each.name, device="cpu").calibration
    if carried and encoder.calibration is not None:
        found["what it came with"] = encoder.calibration
    measured = [each for each in sets if each.name != "MRPC train"]
    cosines = [each.cosines(encoder) for each in measured]
    for each, own in zip(measured, cosines, strict=True):
        for source, calibration in found.items():
            if source != each.name:
                values = figures(calibration, own, each.positive)
                print(f"| {Path(name).name} | {source} | {each.name} | {' | '.join(values)} |", flush=True)
    for each, shared in zip(measured, shared_curve(cosines, [each.positive for each in measured]), strict=True):
        values = [f"{100 * error:.1f}" for error in (error_of(shared, each.positive), chance(shared))]
        print(f"| {Path(name).name} | these three together | {each.name} | | {' | '.join(values)} | | |", flush=True)


if __name__ == "__main__":
    main()
