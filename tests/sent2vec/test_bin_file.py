"""Reading the files of the Sent2Vec program: every way to be damaged is one error, and memory follows what came."""

from __future__ import annotations

import gzip
import io
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paranmt_hf import InputError
from paranmt_hf.sent2vec.bin_file import BinReader, Sent2VecWords, open_model, read_vector_blocks, read_vocabulary
from tests.refused import refused
from tests.sent2vec.sent2vec_files import WORDS, BinFile

PATH = Path("model.bin")


def read(content: bytes, block: int = 2**22) -> tuple[Sent2VecWords, np.ndarray]:
    """Read a whole model."""
    reader = BinReader(io.BytesIO(content), PATH, block=block)
    found = read_vocabulary(reader)
    return found, np.concatenate([rows for _, rows in read_vector_blocks(reader, found)])


@pytest.mark.parametrize("further", [0, 1])
@pytest.mark.parametrize("block", [1, 48, 2**22])
def test_round_trip(further: int, block: int) -> None:
    """Words, settings and rows are those of the file, in blocks of any size."""
    file = BinFile(WORDS, order=3, further=further, labels=[b"__label__x"])
    found, rows = read(file.write(), block)
    assert found.units == ["[UNK]", *(word.decode() for word in WORDS[1:-1]), "bytes ff fe"]
    assert found.labels == 1
    values = {"dim": 4, "wordNgrams": 3, "bucket": 50, "epoch": 3, "tokens": 1000, "t": 1e-4}
    assert found.settings.items() >= {**values, "loss": "negative sampling"}.items()
    np.testing.assert_array_equal(rows, file.rows())


OTHERS = ["cbow", "skipgram", "supervised", "cbow-c+w-ngrams"]
DAMAGE = {
    "magic": dict(magic=7),
    "version": dict(version=13),
    "kind": dict(settings={"model": 9}),
    "dim": dict(settings={"dim": -1}),
    "order": dict(settings={"wordNgrams": 2**31 - 1}),
    "buckets": dict(settings={"bucket": 0}),
    "threshold": dict(threshold=float("nan")),
    "vocabulary": dict(sizes=(2**31 - 1, 2**31 - 1, 0)),
    "labels": dict(sizes=(11, 12, -1)),
    "no words": dict(sizes=(1, 1, 0)),
    "tokens": dict(tokens=-5),
    "pruned": dict(pruned=4),
    "first": dict(words=[b"the", b"cat"]),
    "twice": dict(words=[*WORDS, b"cat"]),
    "endless": dict(words=[WORDS[0], b"x" * 70_000]),
    "kind of word": dict(words=[WORDS[0], b"a"], labels=[b"l"], sizes=(3, 3, 0)),
    "quantised": dict(quantised=1),
    "flag": dict(quantised=2),
    "rows": dict(matrix=(2**62, 4)),
    "columns": dict(matrix=(62, -4)),
    "end": dict(tail=b"x"),
    **{f"{model} {version}": dict(model=model, version=version) for model in OTHERS for version in (11, 12)},
}


@pytest.mark.parametrize("name", DAMAGE)
def test_damage_and_other_models(name: str) -> None:
    with refused("model", path=PATH):
        read(BinFile(**{"words": WORDS, **DAMAGE[name]}).write())  # type: ignore[arg-type]


@pytest.mark.parametrize("row", [2, 11 + 3])
def test_not_finite(row: int) -> None:
    file = BinFile(WORDS)
    rows = file.rows()
    rows[row, 1] = np.inf
    with refused("model", path=PATH):
        read(file.write(rows))


@pytest.mark.parametrize("damage", [slice(None, -9), slice(None, 200)])
def test_packed(damage: slice, tmp_path: Path) -> None:
    file, path = BinFile(WORDS), tmp_path / "model.bin"
    path.write_bytes(gzip.compress(file.write()))
    with open_model(path) as reader:
        found = read_vocabulary(reader)
        np.testing.assert_array_equal(
            np.concatenate([rows for _, rows in read_vector_blocks(reader, found)]), file.rows()
        )
    path.write_bytes(path.read_bytes()[damage])
    with refused("model", path=path), open_model(path) as reader:
        list(read_vector_blocks(reader, read_vocabulary(reader)))


SMALL = BinFile(WORDS[:4], dim=2, bucket=3).write()


def test_cut_off_anywhere() -> None:
    for length in range(len(SMALL)):
        with refused("model", path=PATH):
            read(SMALL[:length])


@settings(max_examples=100)
@given(st.integers(0, len(SMALL) - 1), st.integers(1, 255), st.integers(1, 4))
def test_any_flipped_bytes_give_an_error_or_a_model(place: int, change: int, count: int) -> None:
    """Nothing else, and never much memory for a file of a few hundred bytes."""
    content = bytearray(SMALL)
    for index in range(place, min(place + count, len(content))):
        content[index] ^= change
    tracemalloc.start()
    try:
        found, rows = read(bytes(content))
    except InputError as error:
        assert "model.bin" in str(error)
    else:
        assert len(rows) - len(found.units) - found.settings["bucket"] in (0, 1)
    finally:
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert peak < 20e6
