"""Packed files: every stream is read, and damage is an error."""

import bz2
import gzip
import lzma

import pyarrow as pa
import pytest

from paranmt_hf.util.files import open_lines
from paranmt_hf.util.packed import unpacked_name
from tests.refused import refused

LINES = b"one\ntwo\n"
PACK = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": lambda content: pa.compress(content, "zstd", asbytes=True),
}


def read(path):
    with open_lines(path, "lines of") as lines:
        return list(lines)


@pytest.mark.parametrize("suffix", [*PACK, ".GZ"])
def test_every_stream_of_a_file_is_read(tmp_path, suffix):
    path = tmp_path / f"lines.txt{suffix}"
    path.write_bytes(PACK[suffix.lower()](LINES) * 2)
    assert read(path) == [b"one\n", b"two\n"] * 2
    assert unpacked_name(path) == "lines.txt"


@pytest.mark.parametrize("zeros", [0, 4, 8, 70_000])
def test_zeros_between_streams_of_xz(tmp_path, zeros):
    """xz 5.8 calls such a file valid (`xz -t`), and `xz -d` unpacks all of it."""
    path = tmp_path / "lines.txt.xz"
    path.write_bytes(lzma.compress(LINES) + bytes(zeros) + lzma.compress(LINES) + bytes(zeros))
    assert read(path) == [b"one\n", b"two\n"] * 2


DAMAGED = [(suffix, pack(LINES * 1000)[:-9]) for suffix, pack in PACK.items()]
# What is no stream of xz.
DAMAGED += [(".xz", lzma.compress(LINES) + tail) for tail in (bytes(7), b"other bytes")]


@pytest.mark.parametrize(("suffix", "content"), DAMAGED, ids=[*PACK, ".xz-zeros", ".xz-other"])
def test_a_file_that_is_cut_off_or_damaged(tmp_path, suffix, content):
    path = tmp_path / f"lines.txt{suffix}"
    path.write_bytes(content)
    with refused(path=path):
        read(path)
