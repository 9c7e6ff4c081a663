"""How often `same_meaning` notices that near sentences differ, and how often it takes paraphrases for different.

    python benchmarks/same_meaning.py --sets tests/meaning --sts sts --mrpc senteval/MRPC

The sets are written by hand, each pair of one kind; the rules were made with `same_meaning.dev.tsv`, and not with
`same_meaning.test.tsv`. "By the cosine" is the calibrated probability of the vectors alone, against 0.5. Captions and
news are the pairs of the training and development parts of STS-B that people rated at least 4.5, and at least 4, of 5.
"""

from __future__ import annotations

import argparse
import csv
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa

from paranmt_hf import StaticEncoder
from paranmt_hf.meaning.differences import MeaningReader

REPEATS = 5


def handwritten(path: Path) -> dict[tuple[str, str], tuple[list[str], list[str]]]:
    """Read the sentences of a set, by label and kind, in the order of the file."""
    found: dict[tuple[str, str], tuple[list[str], list[str]]] = {}
    with path.open(encoding="utf8", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
            first, second = found.setdefault((row["label"], row["kind"]), ([], []))
            first.append(row["first"])
            second.append(row["second"])
    return found


def rated(folder: Path, genre: str, least: float, most: float) -> tuple[list[str], list[str]]:
    """Read the pairs of STS-B of a genre with a rating in a range."""
    first, second = [], []
    for part in ("train", "dev"):
        for line in (folder / "STSBenchmark" / f"sts-{part}.csv").read_text(encoding="utf8").splitlines():
            fields = line.split("\t")
            if fields[0] == genre and least <= float(fields[4]) <= most:
                first.append(fields[5])
                second.append(fields[6])
    return first, second


def paraphrases(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield the paraphrases of the training part of MRPC."""
    for line in (folder / "msr_paraphrase_train.txt").read_text(encoding="utf-8-sig").splitlines()[1:]:
        label, _, _, first, second = line.split("\t")
        if label == "1":
            yield first, second


def shares(encoder: StaticEncoder, first: list[str], second: list[str]) -> tuple[float, float, float]:
    """Return in % how many pairs differ by the rules, by the cosine, and by both together."""
    found = encoder.same_meaning(first, second)
    by_cosine = encoder.probability(first, second) < 0.5
    by_rules = [bool(meaning.reasons) for meaning in found]
    together = [not meaning.same for meaning in found]
    rules, cosine, both = (100 * statistics.mean(map(float, marks)) for marks in (by_rules, by_cosine, together))
    return rules, cosine, both


def columns_of(reader: MeaningReader) -> Callable[[list[str], list[str]], object]:
    """Return a function that judges pairs by the rules alone."""

    def judge(first: list[str], second: list[str]) -> object:
        return reader.column(pa.array(first), pa.array(second))

    return judge


def rate(function: Callable[[list[str], list[str]], object], first: list[str], second: list[str]) -> float:
    """Return how many pairs a function judges in a second on one core, the median of some runs."""
    seconds = []
    # Words are read when they are first seen, so the first run does not count.
    function(first, second)
    for _ in range(REPEATS):
        started = time.process_time()
        function(first, second)
        seconds.append(time.process_time() - started)
    return len(first) / statistics.median(seconds)


def main() -> None:
    """Parse the command line and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sets", type=Path, required=True, help="folder with same_meaning.dev.tsv and .test.tsv")
    parser.add_argument("--sts", type=Path, required=True, help="folder with STSBenchmark")
    parser.add_argument("--mrpc", type=Path, required=True, help="folder of MRPC")
    arguments = parser.parse_args()
    encoder = StaticEncoder.from_pretrained("small")
    sets = {name: handwritten(arguments.sets / f"same_meaning.{name}.tsv") for name in ("dev", "test")}
    for label, heading in (("differ", "differ, noticed (%)"), ("same", "the same, refused (%)")):
        print(f"| {heading} | pairs | by the rules, made with these | pairs | rules | cosine | both |")
        print("|---|---:|---:|---:|---:|---:|---:|")
        for key, pairs in sets["test"].items():
            if key[0] == label:
                seen = sets["dev"][key]
                cells = " | ".join(f"{share:.0f}" for share in shares(encoder, *pairs))
                print(f"| {key[1]} | {len(seen[0])} | {shares(encoder, *seen)[0]:.0f} | {len(pairs[0])} | {cells} |")
        print()
    print("| paraphrases, refused (%) | pairs | rules | cosine | both |\n|---|---:|---:|---:|---:|")
    news = list(paraphrases(arguments.mrpc))
    weighed = {
        "captions, rated 4.5 or more": rated(arguments.sts, "main-captions", 4.5, 5),
        "captions, rated 4 to 4.5": rated(arguments.sts, "main-captions", 4, 4.49),
        "news, rated 4.5 or more": rated(arguments.sts, "main-news", 4.5, 5),
        "news, rated 4 to 4.5": rated(arguments.sts, "main-news", 4, 4.49),
        "MRPC": ([pair[0] for pair in news], [pair[1] for pair in news]),
    }
    for name, pairs in weighed.items():
        cells = " | ".join(f"{share:.1f}" for share in shares(encoder, *pairs))
        print(f"| {name} | {len(pairs[0]):,} | {cells} |")
    first = [text for pairs in sets["test"].values() for text in pairs[0]] * 5
    second = [text for pairs in sets["test"].values() for text in pairs[1]] * 5
    reader = MeaningReader()
    rates = {
        "the probability by the cosine": rate(encoder.probability, first, second),
        "the rules (the column `meaning_mismatch`)": rate(columns_of(reader), first, second),
        "`same_meaning`: both, and reasons in words": rate(encoder.same_meaning, first, second),
    }
    print("\n| | pairs/s on one core |\n|---|---:|")
    for name, found in rates.items():
        print(f"| {name} | {round(found, -3):,.0f} |")


if __name__ == "__main__":
    main()
