"""Near-duplicates as a filter of `paranmt select`."""

import numpy as np
import pyarrow as pa

from paranmt_hf.corpus.selection import near_duplicates
from paranmt_hf.corpus.selection.near_duplicates import FirstOfLike, Likeness

SENTENCES = [
    "The old man walks slowly down the long road to the sea.",
    "Two dogs play in the snow.",
    "The old man walks slowly down the long road to the lake.",
    "the old man walks slowly, down the long road to the sea",
    "Nothing like the others at all.",
    "Two dogs play in the snow!",
]
TABLE = pa.table({"id": [10, 20, 30, 40, 50, 60], "reference": SENTENCES, "translation": SENTENCES[::-1]})


def judged(one: FirstOfLike, work, size: int) -> tuple[list[bool], list[float]]:
    work.mkdir()
    one.prepare(lambda: iter([TABLE.slice(0, 4), TABLE.slice(4)]), work)
    verdicts = [one.judge(TABLE.slice(start, size)) for start in range(0, len(TABLE), size)]
    return (
        np.concatenate([verdict.kept for verdict in verdicts]).tolist(),
        np.concatenate([verdict.number for verdict in verdicts]).tolist(),
    )


def test_the_first_by_id_stays(tmp_path, monkeypatch):
    monkeypatch.setattr(near_duplicates, "_BLOCK", 4)
    for size in (1, 4, 6):
        kept, firsts = judged(FirstOfLike("reference", Likeness()), tmp_path / str(size), size)
        assert kept == [True, True, False, False, True, False]
        assert firsts == [-1, -1, 10, 10, -1, 20]


def test_of_pairs_both_sides_count(tmp_path):
    kept, _ = judged(FirstOfLike("pair", Likeness()), tmp_path / "work", 6)
    assert kept == [True] * 6


class Lengths:
    """An encoder for which sentences of as many characters are alike."""

    def encode(self, sentences: list[str]) -> np.ndarray:
        return np.eye(80, dtype=np.float32)[[len(sentence) for sentence in sentences]]


def test_an_encoder_decides(tmp_path):
    one = FirstOfLike("reference", Likeness(exhaustive=True), Lengths, {"name": "lengths"})
    kept, firsts = judged(one, tmp_path / "work", 6)
    # The fourth has as many characters as the first.
    assert kept == [True, True, True, False, True, False]
    assert firsts[5] == 20
    assert one.identity["encoder"] == {"name": "lengths"}


def test_identity():
    one = FirstOfLike("pair", Likeness(similarity=0.9))
    assert one.identity["similarity"] == 0.9
    assert one.identity["of"] == "pair"
    assert "encoder" not in one.identity
    assert one.reason == "with the pair nearly that of an earlier row"
