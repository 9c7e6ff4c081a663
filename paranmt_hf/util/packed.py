"""Packed files: gzip, bzip2, xz and Zstandard, by the ending of their names."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zlib
from pathlib import Path
from typing import BinaryIO, cast

PACKED = (".gz", ".bz2", ".xz", ".zst")
# What reading a packed file raises if it is cut off or damaged.
DAMAGED = (OSError, EOFError, zlib.error, lzma.LZMAError)
_BLOCK = 1 << 16
_PADDING = 4  # Zeros between the streams of an xz file come in this number


def open_packed(path: Path) -> BinaryIO:
    """Open a file to read its bytes, unpacked if its name ends in one of `PACKED`; damage raises `DAMAGED`."""
    suffix = path.suffix.lower()
    if suffix == ".gz":
        return cast(BinaryIO, gzip.open(path, "rb"))
    if suffix == ".bz2":
        return cast(BinaryIO, bz2.open(path, "rb"))
    if suffix == ".xz":
        return io.BufferedReader(_XzStreams(path.open("rb")), _BLOCK)
    if suffix == ".zst":
        import pyarrow as pa

        # Arrow's own files cannot read lines.
        return io.BufferedReader(pa.CompressedInputStream(pa.OSFile(str(path)), "zstd"), _BLOCK)
    return path.open("rb")


def plain_name(path: Path) -> str:
    """Name of a file without the ending of its packing: `pairs.tsv` for `pairs.tsv.gz`."""
    return path.stem if path.suffix.lower() in PACKED else path.name


class _XzStreams(io.RawIOBase):
    """Unpacks every stream of an xz file; `lzma.open` ends without an error at zeros between streams.

    The format allows them in fours (The .xz File Format 1.2, section 2.2).
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._stream: lzma.LZMADecompressor | None = lzma.LZMADecompressor()
        self._packed = b""  # Bytes that are not unpacked yet

    def readable(self) -> bool:
        return True

    def readinto(self, target: memoryview) -> int:  # type: ignore[override]
        """Unpack the next bytes into `target`; returns their number, 0 at the end."""
        while True:
            if self._stream is None and not self._next_stream():
                return 0
            assert self._stream is not None
            if self._stream.needs_input and not self._packed:
                self._packed = self._file.read(_BLOCK)
                if not self._packed:
                    raise EOFError("the file ends within a stream of xz")
            found = self._stream.decompress(self._packed, max_length=len(target))
            self._packed = b""
            if self._stream.eof:
                self._packed, self._stream = self._stream.unused_data, None
            if found:
                target[: len(found)] = found
                return len(found)

    def _next_stream(self) -> bool:
        """Skip the zeros behind a stream, and begin the next one; False at the end of the file."""
        zeros = 0
        while True:
            rest = self._packed.lstrip(b"\0")
            zeros += len(self._packed) - len(rest)
            self._packed = rest or self._file.read(_BLOCK)
            if rest or not self._packed:
                break
        if zeros % _PADDING:
            raise lzma.LZMAError(f"{zeros} zeros follow a stream of xz, which must be a multiple of {_PADDING}")
        if self._packed:
            self._stream = lzma.LZMADecompressor()
        return bool(self._packed)

    def close(self) -> None:
        self._file.close()
        super().close()
