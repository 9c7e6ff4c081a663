"""Measure how the distance of cosines from those of a calibration goes with the error of its probabilities.

Each set of rated pairs calibrates each encoder, and is measured with each other calibration: `Calibration.distance`
and the expected calibration error, less the error that chance alone gives, both with the share of paraphrases of the
measured set as `prior`. The sets are those of STS 2012 to 2014 with at least 200 pairs but MSRpar, the answers of the
STS benchmark, and MRPC; and for chance the two halves of each set. The last table groups all of these by distance.

    python benchmarks/calibration_distance.py --mrpc senteval/MRPC --sts sts --models small base
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np
from calibration import POSITIVE, RatedSet, chance, error_of, read_mrpc
from commands import sts_pairs

from paranmt_hf import calibrate, load

ANSWERS = ("answers-forums", "answer-answer")
EDGES = (0, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 1)


def read_sets(mrpc: Path, sts: Path) -> list[RatedSet]:
    """Read all sets with at least 200 pairs."""
    sets = [read_mrpc(mrpc, "train"), read_mrpc(mrpc, "test")]
    for file in sorted(sts.glob("STS1[234]*/STS.input.*.txt")):
        name = f"{file.parent.name[:5]} {file.name.split('.')[-2]}"
        rows = [(int(score >= POSITIVE), left, right) for score, left, right in sts_pairs(file)]
        if len(rows) >= 200 and "MSRpar" not in name:
            sets.append(RatedSet(name, rows))
    rows = []
    for file in sorted(sts.glob("STSBenchmark/sts-*.csv")):
        for line in file.read_text(encoding="utf8").splitlines():
            cells = line.split("\t")
            if cells[1] in ANSWERS:
                rows.append((int(float(cells[4]) >= POSITIVE), cells[5], cells[6]))
    return [*sets, RatedSet("answers", rows)]


def halves(each: RatedSet) -> tuple[RatedSet, RatedSet]:
    """Split a set at random into two halves."""
    drawn = np.random.default_rng(1).permutation(len(each.rows))
    first, second = np.array_split(drawn, 2)
    name = each.name
    return RatedSet(f"{name} 1", [each.rows[row] for row in first]), RatedSet(name, [each.rows[row] for row in second])


def main() -> None:
    """Parse the command line, measure, print Markdown tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mrpc", type=Path, required=True, help="folder of MRPC")
    parser.add_argument("--sts", type=Path, required=True, help="folder with STS 2012 to 2014 and the STS benchmark")
    parser.add_argument("--models", nargs="+", default=["small", "base"])
    options = parser.parse_args()
    sets = read_sets(options.mrpc, options.sts)
    found: list[tuple[float, float]] = []
    split: list[float] = []
    print("| encoder | calibrated on | measured on | distance | error with prior | by chance |")
    print("|---|---|---|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as folder:
        for model in options.models:
            encoder = load(model, device="cpu")
            calibrations = {"what it came with": encoder.calibration}
            cosines = {each.name: each.cosines(encoder) for each in sets}
            for each in sets:
                first, second = halves(each)
                for part in (each, first):
                    ratings = part.write(Path(folder))
                    made = calibrate(model, out=Path(folder) / model / part.name, ratings=[ratings])
                    calibrations[part.name] = made.record
                prior = float(second.positive.mean())
                split.append(calibrations.pop(first.name).distance(second.cosines(encoder), prior=prior))
            for source, calibration in calibrations.items():
                for each in sets:
                    # The parts of MRPC are one kind of text, so one is enough.
                    if source == each.name or each.name == "MRPC train":
                        continue
                    own, prior = cosines[each.name], float(each.positive.mean())
                    probabilities = calibration.probability(own, prior=prior)
                    distance = calibration.distance(own, prior=prior)
                    errors = error_of(probabilities, each.positive), chance(probabilities, draws=50)
                    found.append((distance, errors[0] - errors[1]))
                    figures = f"{distance:.2f} | {100 * errors[0]:.1f} | {100 * errors[1]:.1f}"
                    print(f"| {Path(model).name} | {source} | {each.name} | {figures} |", flush=True)
    print(f"\nTwo halves of a set: a distance of {np.median(split):.2f} (median), at most {max(split):.2f}.\n")
    print("| distance | sets | error with prior above chance: median | 90 % are below |")
    print("|---|---:|---:|---:|")
    distances, above = np.array(found).T
    for low, high in zip(EDGES, EDGES[1:], strict=False):
        part = above[(distances >= low) & (distances < high)]
        if len(part):
            median, most = 100 * np.quantile(part, [0.5, 0.9])
            print(f"| {low} to {high} | {len(part)} | {median:.1f} | {most:.1f} |")


if __name__ == "__main__":
    main()
