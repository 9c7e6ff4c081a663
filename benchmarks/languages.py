"""Compare the carried encoders of languages with their teachers, and match translations with the multilingual one.

The pairs are the development part of the STS benchmark, translated by machine (`LANGUAGE-dev.csv`). The sentences are
those of NTREX, on which `multilingual` was not trained: for each sentence of one language, the most similar one of
another language must be its translation. Teachers are functions of `dataset_scripts/teachers_in_packages.py`.

    python benchmarks/languages.py --pairs stsb-multi-mt --ntrex NTREX-128 --teachers
"""

from __future__ import annotations

import argparse
import csv
import importlib.util
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy.stats import spearmanr

from paranmt_hf import StaticEncoder

Encode = Callable[[list[str]], np.ndarray]
SENTENCES = 1_000  # Number of sentences that are matched
ASSETS = Path(__file__).resolve().parents[1] / "paranmt_hf" / "assets"
OWN, MULTILINGUAL = ("de", "fr", "es"), "multilingual"  # The encoders; the others share the latter one
NTREX = {"en": "src.eng", "de": "ref.deu", "fr": "ref.fra", "es": "ref.spa", "it": "ref.ita", "nl": "ref.nld"}
NTREX |= {"pl": "ref.pol", "pt": "ref.por", "cs": "ref.ces"}


def unit(vectors: np.ndarray) -> np.ndarray:
    """Scale vectors [text, dimension] to length 1."""
    lengths = np.linalg.norm(np.asarray(vectors, np.float32), axis=1, keepdims=True)
    return np.asarray(vectors, np.float32) / np.maximum(lengths, 1e-12)


def similarity(encode: Encode, path: Path) -> float:
    """Return Spearman's correlation times 100 of cosines with the scores of a file of pairs."""
    with path.open(encoding="utf8", newline="") as file:
        first, second, scores = zip(*csv.reader(file), strict=True)
    cosines = (unit(encode(list(first))) * unit(encode(list(second)))).sum(axis=1)
    return 100 * float(spearmanr(cosines, [float(score) for score in scores])[0])


def matched(first: np.ndarray, second: np.ndarray) -> float:
    """Return the share in % of rows of `first` whose most similar row of `second` is the one of the same number."""
    return 100 * float((np.argmax(first @ second.T, axis=1) == np.arange(len(first))).mean())


def rate(encode: Encode, sentences: list[str]) -> float:
    """Return the number of sentences encoded in a second of CPU time, the median of 5 passes."""
    seconds = []
    for _ in range(5):
        start = time.process_time()
        encode(sentences)
        seconds.append(time.process_time() - start)
    return len(sentences) / float(np.median(seconds))


def megabytes(name: str) -> float:
    """Return the size of the files of a carried encoder."""
    return sum(path.stat().st_size for path in (ASSETS / name).iterdir()) / 1e6


def teachers() -> dict[str, Encode]:
    """Return the teachers, with their prompts."""
    path = Path(__file__).resolve().parents[1] / "dataset_scripts" / "teachers_in_packages.py"
    spec = importlib.util.spec_from_file_location("teachers_in_packages", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return {"e5": lambda texts: module.e5([f"query: {text}" for text in texts]), "use": module.use}


def main() -> None:
    """Parse the command line and print both tables."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--pairs", type=Path, required=True, help="folder with LANGUAGE-dev.csv")
    parser.add_argument("--ntrex", type=Path, required=True, help="folder with newstest2019-ref.deu.txt and the like")
    parser.add_argument("--teachers", action="store_true", help="measure the teachers too")
    arguments = parser.parse_args()
    encoders = {name: StaticEncoder.from_pretrained(name) for name in ("small", *OWN, MULTILINGUAL)}
    others = teachers() if arguments.teachers else {}
    texts = {
        code: (arguments.ntrex / f"newstest2019-{file}.txt").read_text(encoding="utf8").splitlines()[:SENTENCES]
        for code, file in NTREX.items()
    }
    measured = ["own", "multilingual", "small", *others]
    print(f"| language | encoder | MB | dimensions | {' | '.join(measured)} | sentences/s |")
    print(f"|---|---|---:|---:|{'---:|' * len(measured)}---:|")
    for code in NTREX:
        path = arguments.pairs / f"{code}-dev.csv"
        own = "small" if code == "en" else code if code in OWN else MULTILINGUAL
        encodes = [*(encoders[name].encode for name in (own, MULTILINGUAL, "small")), *others.values()]
        # There are no such pairs in English and Czech.
        figures = [f"{similarity(encode, path):.1f}" if path.exists() else "" for encode in encodes]
        dimension = encoders[own].encode([""]).shape[1]
        speed = round(rate(encoders[own].encode, texts[code]), -3)
        print(f"| {code} | `{own}` | {megabytes(own):.1f} | {dimension} | {' | '.join(figures)} | {speed:,.0f} |")
    print("\n| from, to | " + " | ".join(texts) + " |\n|---|" + "---:|" * len(texts))
    vectors = {code: unit(encoders[MULTILINGUAL].encode(lines)) for code, lines in texts.items()}
    for code, first in vectors.items():
        cells = ["" if code == other else f"{matched(first, second):.1f}" for other, second in vectors.items()]
        print(f"| {code} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
