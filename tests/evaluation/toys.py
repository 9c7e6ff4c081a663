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


WORDS = ("zero", "one", "two", "three", "four", "five")
QUESTIONS = ("ABBR:exp", "DESC:def", "ENTY:animal", "HUM:ind", "LOC:city", "NUM:date")
JUDGEMENTS = ("CONTRADICTION", "NEUTRAL", "ENTAILMENT")
MRPC_HEADER = "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String"
SICK_HEADER = "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment"
POLARITY = {
    "MR": ("rt-polarity.pos", "rt-polarity.neg"),
    "CR": ("custrev.pos", "custrev.neg"),
    "SUBJ": ("subj.objective", "subj.subjective"),
    "MPQA": ("mpqa.pos", "mpqa.neg"),
}


def sentence(label, item):
    """A sentence that names its class, most of the time."""
    return f"{WORDS[label if item % 5 else 0]} of number {item}"


def write(path, lines, encoding="utf8"):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes("".join(f"{line}\n" for line in lines).encode(encoding))


def write_all(folder, items=40):
    """Write the files of all tasks."""
    for task, (positive, negative) in POLARITY.items():
        write(folder / task / positive, [sentence(1, item) for item in range(items)])
        write(folder / task / negative, [sentence(0, item) for item in range(items)])
    for split in ("train", "dev", "test"):
        write(
            folder / "SST" / "binary" / f"sentiment-{split}", [f"{sentence(i % 2, i)}\t{i % 2}" for i in range(items)]
        )
        write(folder / "SST" / "fine" / f"sentiment-{split}", [f"{i % 5} {sentence(i % 5, i)}" for i in range(items)])
    for name in ("train_5500.label", "TREC_10.label"):
        write(folder / "TREC" / name, [f"{QUESTIONS[i % 6]} {sentence(i % 6, i)}" for i in range(2 * items)])
    for split in ("train", "test"):
        rows = [f"{i % 2}\t{i}\t{i}\t{sentence(1, i)}\t{sentence(i % 2, i + 1)}" for i in range(items)]
        write(folder / "MRPC" / f"msr_paraphrase_{split}.txt", ["\ufeff" + MRPC_HEADER, *rows])
    for split in ("train", "trial", "test_annotated"):
        rows = [
            f"{i}\t{sentence(1, i)}\t{sentence(i % 3, i + 1)}\t{1 + 2 * (i % 3)}.0\t{JUDGEMENTS[i % 3]}"
            for i in range(items)
        ]
        write(folder / "SICK" / f"SICK_{split}.txt", [SICK_HEADER, *rows])


class FirstWord:
    """Encodes the first word of a sentence, with a little that tells sentences apart; remembers what it was asked."""

    def __init__(self):
        self.calls = []

    def encode(self, sentences):
        self.calls.append(list(sentences))
        vectors = np.zeros((len(sentences), 8), np.float32)
        for row, text in enumerate(sentences):
            word = text.split()[0]
            vectors[row, WORDS.index(word) if word in WORDS else 6] = 1
            vectors[row, 7] = len(text) / 100
        return vectors
