"""Packed files: gzip, bzip2, xz and Zstandard, recognised by their first bytes, whatever their names."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast

from paranmt_hf.errors import InputError

# What reading a packed file raises if it is cut off or damaged.
DAMAGED = (OSError, EOFError, zlib.error, lzma.LZMAError)
_BLOCK = 1 << 16


class Packing(NamedTuple):
    """One way to pack a file."""

    name: str
    suffix: str
    signatures: tuple[bytes, ...]  # How its files begin
    open: Callable[[Path], BinaryIO]  # Opens a file to read its bytes unpacked
    create: Callable[[Path], Any]  # Creates a file to write bytes into it


def _open_zstd(path: Path) -> BinaryIO:
    import pyarrow as pa

    # Arrow's own files cannot read lines.
    return io.BufferedReader(pa.CompressedInputStream(pa.OSFile(str(path)), "zstd"), _BLOCK)


def _create_zstd(path: Path) -> Any:  # noqa: ANN401 - a stream of pyarrow
    import pyarrow as pa

    return pa.CompressedOutputStream(pa.OSFile(str(path), "wb"), "zstd")


PACKINGS = (
    Packing(
        "gzip",
        ".gz",
        (b"\x1f\x8b",),
        lambda path: cast(BinaryIO, gzip.open(path, "rb")),
        lambda path: gzip.GzipFile(path, "wb", mtime=0),
    ),
    Packing(
        "bzip2",
        ".bz2",
        # Text may begin with BZh and a digit too; the first block, or the end of an empty file, follows.
        tuple(b"BZh%d" % level + block for level in range(1, 10) for block in (b"1AY&SY", b"\x17rE8P\x90")),
        lambda path: io.BufferedReader(_Streams(path.open("rb"), bz2.BZ2Decompressor), _BLOCK),
        lambda path: bz2.open(path, "wb"),
    ),
    Packing(
        "xz",
        ".xz",
        (b"\xfd7zXZ\0",),
        lambda path: io.BufferedReader(_Streams(path.open("rb"), lzma.LZMADecompressor, padding=4), _BLOCK),
        lambda path: lzma.open(path, "wb"),
    ),
    Packing(
        "Zstandard",
        ".zst",
        # A frame, or one of the 16 kinds of frames that are skipped.
        (b"\x28\xb5\x2f\xfd", *[bytes([kind]) + b"\x2a\x4d\x18" for kind in range(0x50, 0x60)]),
        _open_zstd,
        _create_zstd,
    ),
)
PACKED = tuple(packing.suffix for packing in PACKINGS)


def find_packing(path: Path) -> Packing | None:
    """Find how a file is packed; one that is not packed as its name says is rejected."""
    with path.open("rb") as file:
        head = file.read(16)
    for packing in PACKINGS:
        if head.startswith(packing.signatures):
            return packing
    for packing in PACKINGS:
        if head and path.suffix.lower() == packing.suffix:
            raise InputError(
                f"{path} is not packed by {packing.name}, as its name says; if it is text, rename it to {path.stem}, "
                "else get it again",
                path=path,
            )
    return None


def open_packed(path: Path) -> BinaryIO:
    """Open a file to read its bytes, unpacked if it is packed; damage raises `DAMAGED`."""
    packing = find_packing(path)
    return path.open("rb") if packing is None else packing.open(path)


def unpacked_name(path: Path) -> str:
    """Name of a file without the ending of its packing: `pairs.tsv` for `pairs.tsv.gz`."""
    return path.stem if path.suffix.lower() in PACKED else path.name


class _Streams(io.RawIOBase):
    """Unpacks every stream of a file; the standard library ends without an error at what is between streams.

    Where `padding` is not 0, zeros in multiples of it may follow a stream (The .xz File Format 1.2, section 2.2).
    """

    def __init__(self, file: BinaryIO, decompressor: Callable[[], Any], padding: int = 0) -> None:
        self._file, self._decompressor, self._padding = file, decompressor, padding
        self._stream: Any = decompressor()
        self._packed = b""  # Bytes that are not unpacked yet

    def readable(self) -> bool:
        return True

    def readinto(self, target: memoryview) -> int:  # type: ignore[override]
        """Unpack the next bytes into `target`; returns their number, 0 at the end."""
        while True:
            if self._stream is None and not self._next_stream():
                return 0
            if self._stream.needs_input and not self._packed:
                self._packed = self._file.read(_BLOCK)
                if not self._packed:
                    raise EOFError("the file ends within a stream")
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
            rest = self._packed.lstrip(b"\0") if self._padding else self._packed
            zeros += len(self._packed) - len(rest)
            self._packed = rest or self._file.read(_BLOCK)
            if rest or not self._packed:
                break
        if zeros and zeros % self._padding:
            raise lzma.LZMAError(f"{zeros} zeros follow a stream, which must be a multiple of {self._padding}")
        if self._packed:
            self._stream = self._decompressor()
        return bool(self._packed)

    def close(self) -> None:
        self._file.close()
        super().close()
