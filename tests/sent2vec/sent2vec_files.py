"""Files in the layout of the Sent2Vec program, written here with `struct` alone, independent of what reads them."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

import numpy as np

MODELS = {"cbow": 1, "skipgram": 2, "supervised": 3, "sent2vec": 4, "cbow-c+w-ngrams": 5}


@dataclass
class BinFile:
    """What a file says, to be changed at will before it is written."""

    words: list[bytes]
    dim: int = 4
    order: int = 2
    bucket: int = 50
    further: int = 1
    labels: list[bytes] = field(default_factory=list)
    magic: int = 793712314
    version: int = 11
    model: str = "sent2vec"
    settings: dict[str, int] = field(default_factory=dict)
    threshold: float = 1e-4
    tokens: int = 1000
    pruned: int = -1
    quantised: int = 0
    matrix: tuple[int, int] | None = None
    sizes: tuple[int, int, int] | None = None
    tail: bytes = b""

    def rows(self) -> np.ndarray:
        """Vectors of words, buckets and what is beside them [row, dimension]."""
        count = len(self.words) + self.bucket + self.further
        return np.random.default_rng(7).uniform(-1, 1, (count, self.dim)).astype(np.float32)

    def write(self, rows: np.ndarray | None = None) -> bytes:
        """Bytes of the file."""
        rows = self.rows() if rows is None else rows
        settings = {
            "dim": self.dim, "ws": 5, "epoch": 3, "minCount": 2, "neg": 10, "wordNgrams": self.order, "loss": 2,
            "model": MODELS[self.model], "bucket": self.bucket, "minn": 3, "maxn": 6, "lrUpdateRate": 100,
        } | self.settings  # fmt: skip
        parts = [struct.pack("<ii", self.magic, self.version)]
        for name, value in settings.items():
            parts.append(struct.pack("<i", value))
            if name == "bucket" and self.model == "cbow-c+w-ngrams":
                parts.append(struct.pack("<i", 1000))
        parts.append(struct.pack("<d", self.threshold))
        entries = [(word, 0) for word in self.words] + [(word, 1) for word in self.labels]
        sizes = self.sizes or (len(entries), len(self.words), len(self.labels))
        parts.append(struct.pack("<iiiqq", *sizes, self.tokens, self.pruned))
        parts += [word + b"\0" + struct.pack("<qb", 9, kind) for word, kind in entries]
        parts.append(struct.pack("<Bqq", self.quantised, *(self.matrix or rows.shape)) + rows.tobytes())
        targets = np.zeros((len(self.words), self.dim), np.float32)
        parts.append(struct.pack("<Bqq", 0, *targets.shape) + targets.tobytes())
        return b"".join(parts) + self.tail


def vector(file: BinFile, text: str) -> np.ndarray:
    """The vector of a text, one unit after the other in Python's whole numbers."""
    ids = [file.words.index(token) for token in text.encode().split() if token in file.words]
    rows, chosen = file.rows(), list(ids)
    for start in range(len(ids)):
        hashed = ids[start]
        for other in ids[start + 1 : start + file.order]:
            hashed = (hashed * 116049371 + other) % 2**64
            chosen.append(len(file.words) + hashed % file.bucket)
    return rows[chosen].mean(axis=0) if chosen else np.zeros(file.dim, np.float32)


WORDS = [b"<PLACEHOLDER>", b"</s>", b"the", b"cat", b"sat", b".", b"it", b"'s", "café".encode(), b"co-op", b"\xff\xfe"]
TEXTS = ["the cat sat .", "it 's the café", "zebra", "", "the zebra cat\tsat co-op", "cat cat cat"]
