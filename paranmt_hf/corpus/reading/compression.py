"""Compressed files: gzip, bzip2, xz and Zstandard, recognised by their first bytes, whatever their names."""

from __future__ import annotations

import bz2
import gzip
import lzma
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import pyarrow as pa

from paranmt_hf.errors import InputError

BLOCK_BYTES = 1 << 20
HEAD_BYTES = 1 << 16  # The beginning of a file that shows its format


class Compression(NamedTuple):
    """One way to compress a file."""

    name: str
    suffix: str
    signatures: tuple[bytes, ...]
    read: Callable[[BinaryIO], Iterator[bytes]]  # Reads the unpacked bytes of an open file, in blocks
    create: Callable[[Path], Any]  # Opens a file to write into it


def _gzip_blocks(file: BinaryIO) -> Iterator[bytes]:
    with gzip.GzipFile(fileobj=file, mode="rb") as unpacked:
        while block := unpacked.read(BLOCK_BYTES):
            yield block


def _zstd_blocks(file: BinaryIO) -> Iterator[bytes]:
    with pa.CompressedInputStream(pa.PythonFile(file, "r"), "zstd") as unpacked:
        while block := unpacked.read(BLOCK_BYTES):
            yield block


def _bz2_blocks(file: BinaryIO) -> Iterator[bytes]:
    return _stream_blocks(file, bz2.BZ2Decompressor)


def _xz_blocks(file: BinaryIO) -> Iterator[bytes]:
    return _stream_blocks(file, lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ))


def _stream_blocks(file: BinaryIO, decompressor: Callable[[], Any]) -> Iterator[bytes]:
    """Read streams that follow each other, with zero bytes between them.

    The classes of the standard library end without an error at what follows the first padding.
    """
    packed = file.read(BLOCK_BYTES)
    while packed:
        stream = decompressor()
        while not stream.eof:
            yield stream.decompress(packed, BLOCK_BYTES)
            packed = file.read(BLOCK_BYTES) if stream.needs_input else b""
            if stream.needs_input and not packed and not stream.eof:
                raise EOFError("it ends within a stream")
        packed = (stream.unused_data + packed).lstrip(b"\0")
        while not packed and (more := file.read(BLOCK_BYTES)):
            packed = more.lstrip(b"\0")


GZIP = Compression("gzip", ".gz", (b"\x1f\x8b",), _gzip_blocks, lambda path: gzip.GzipFile(path, "wb", mtime=0))
BZIP2 = Compression("bzip2", ".bz2", (b"BZh",), _bz2_blocks, lambda path: bz2.open(path, "wb"))
XZ = Compression("xz", ".xz", (b"\xfd7zXZ\0",), _xz_blocks, lambda path: lzma.open(path, "wb"))
ZSTANDARD = Compression(
    "Zstandard",
    ".zst",
    # Those of a frame, and of the 16 kinds of frames that are skipped.
    (b"\x28\xb5\x2f\xfd", *[bytes([kind]) + b"\x2a\x4d\x18" for kind in range(0x50, 0x60)]),
    _zstd_blocks,
    lambda path: pa.CompressedOutputStream(pa.OSFile(str(path), "wb"), "zstd"),
)
COMPRESSIONS = (GZIP, BZIP2, XZ, ZSTANDARD)


def compression_of(path: Path) -> Compression | None:
    """Find how a file is compressed; one that is not what its name says is rejected."""
    with path.open("rb") as file:
        head = file.read(8)
    for compression in COMPRESSIONS:
        # Text may begin with the letters BZh; a digit and the first block follow in a file of bzip2.
        if head.startswith(compression.signatures) and (compression is not BZIP2 or _is_bzip2(head)):
            return compression
    for compression in COMPRESSIONS:
        if head and path.suffix.lower() == compression.suffix:
            raise InputError(
                f"{path} is not compressed by {compression.name}, as its name says; if it is text, rename it to "
                f"{path.stem}, else get it again",
                path=path,
            )
    return None


def _is_bzip2(head: bytes) -> bool:
    return head[3:4].isdigit() and head[4:8] in (b"1AY&", b"\x17rE8")


def plain_name(path: Path) -> str:
    """Name of a file in lower case, without the suffix of its compression."""
    name = path.name.lower()
    for compression in COMPRESSIONS:
        name = name.removesuffix(compression.suffix)
    return name


def unpacked(path: Path) -> Iterator[bytes]:
    """Read the bytes of a file in blocks, unpacked if it is compressed."""
    compression = compression_of(path)
    try:
        with path.open("rb") as file:
            if compression is not None:
                yield from compression.read(file)
            else:
                while block := file.read(BLOCK_BYTES):
                    yield block
    except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
        raise InputError(
            f"{path}: cannot be read completely ({error}); the file is cut off or damaged: get it again", path=path
        ) from None


def first_bytes(path: Path) -> bytes:
    """Read the beginning of a file, `HEAD_BYTES` or the whole file, unpacked."""
    head = b""
    for block in unpacked(path):
        head += block
        if len(head) >= HEAD_BYTES:
            break
    return head[:HEAD_BYTES]
