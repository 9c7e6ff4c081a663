"""Encoders and data whose results can be worked out by hand."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

# In the plane: the cosine of x with x, d and y is 1, about 0.7 and 0.
PLANE = {"x": [1, 0], "y": [0, 1], "d": [1, 1], "w": [-1, 0], "nothing": [0, 0], "broken": [np.nan, 1]}
DIAGONAL = 0.5**0.5


class Plane:
    """Encodes sentences of one word, and remembers what it was asked."""

    def __init__(self, vectors: Mapping[str, Sequence[float]] = PLANE) -> None:
        self.vectors = vectors
        self.calls: list[list[str]] = []

    def encode(self, sentences: list[str]) -> np.ndarray:
        self.calls.append(sentences)
        return np.array([self.vectors[sentence] for sentence in sentences], np.float32)


class Knowing(Plane):
    """Also tells how many tokens it knows."""

    def known_tokens(self, sentences: list[str]) -> np.ndarray:
        return np.array([int(sentence != "nothing") for sentence in sentences])


def write_senteval(folder: Path, name: str, rows: Sequence[tuple[str, str, str]]) -> None:
    """Write rows of score and two sentences in SentEval's layout."""
    folder.mkdir(parents=True, exist_ok=True)
    inputs = "".join(f"{left}\t{right}\n" for _, left, right in rows)
    golds = "".join(f"{score}\n" for score, _, _ in rows)
    (folder / f"STS.input.{name}.txt").write_bytes(inputs.encode())
    (folder / f"STS.gs.{name}.txt").write_bytes(golds.encode())


def write_benchmark(folder: Path, *, track5: int = 250) -> None:
    """Write an STS benchmark: in each of dev and test two captions, two others, and half of track 5."""
    folder.mkdir(parents=True, exist_ok=True)
    for split, count in (("dev", track5 // 2), ("test", track5 - track5 // 2)):
        rows = [
            ("main-captions", "MSRvid", "5.0", "x", "x"),
            ("main-captions", "MSRvid", "1.0", "x", "y"),
            ("main-news", "headlines", "4.0", "x", "y"),
            ("main-forums", "answers-forums", "2.0", "x", "x"),
            ("main-news", "headlines", "3.0", "x", "d"),
        ]
        rows += [("main-captions", "track5.en-en", str(row % 3), "x", "ydx"[row % 3]) for row in range(count)]
        lines = [
            "\t".join([genre, file, "2017", f"{number:04d}", score, left, right])
            for number, (genre, file, score, left, right) in enumerate(rows)
        ]
        lines[0] += "\tlicence of the first\tlicence of the second"
        (folder / f"sts-{split}.csv").write_text("\n".join(lines) + "\n", encoding="utf8")
