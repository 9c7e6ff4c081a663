"""Files packed by gzip, bzip2, xz or Zstandard, which are recognised by their first bytes whatever their names."""

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

# Errors that reading a packed file raises if it is cut off or damaged.
DAMAGED = (OSError, EOFError, zlib.error, lzma.LZMAError)
_BLOCK = 1 << 16


class Packing(NamedTuple):
    """A format of packed files."""

    name: str
    suffix: str
    signatures: tuple[bytes, ...]  # First bytes of its files, one of these
    open: Callable[[Path], BinaryIO]  # Opens a packed file for reading unpacked bytes
    create: Callable[[Path], Any]  # Creates a packed file for writing unpacked bytes


def _open_zstd(path: Path) -> BinaryIO:
    import pyarrow as pa

    # The buffer adds reading of lines, which Arrow's streams lack.
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
        # Text may begin with `BZh` and a digit too, so the signature goes on: to the mark of the first block, or the
        # mark of the end in an empty file.
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
        # The mark of a frame of data, or one of the 16 marks of frames that readers skip.
        (b"\x28\xb5\x2f\xfd", *[bytes([kind]) + b"\x2a\x4d\x18" for kind in range(0x50, 0x60)]),
        _open_zstd,
        _create_zstd,
    ),
)
PACKED = tuple(packing.suffix for packing in PACKINGS)


def find_packing(path: Path) -> Packing | None:
    """Find the format in which a file is packed, by its first bytes; None for a plain file.

    A file is rejected if its name has the ending of a packed format, such as `.gz`, but its bytes are of none.
    """
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
    """Open a file for reading bytes, which are unpacked if it is packed; a damaged file raises one of `DAMAGED`."""
    packing = find_packing(path)
    return path.open("rb") if packing is None else packing.open(path)


def unpacked_name(path: Path) -> str:
    """Return the name of a file without the ending of a packed format: `pairs.tsv` for `pairs.tsv.gz`."""
    return path.stem if path.suffix.lower() in PACKED else path.name


class _Streams(io.RawIOBase):
    """A reader of all streams of a bzip2 or xz file, one after the other.

    The readers of the standard library end at damaged bytes between two streams as if the file ended there; this one
    raises an error.

    Args:
        file: The packed file.
        decompressor: Creates the decompressor of one stream.
        padding: Zeros in multiples of this number may follow a stream (The .xz File Format 1.2, section 2.2); 0 if no
            zeros may.
    """

    def __init__(self, file: BinaryIO, decompressor: Callable[[], Any], padding: int = 0) -> None:
        self._file, self._decompressor, self._padding = file, decompressor, padding
        self._stream: Any = decompressor()
        self._packed = b""  # Bytes that are not unpacked yet

    def readable(self) -> bool:
        return True

    def readinto(self, target: memoryview) -> int:  # type: ignore[override]
        """Unpack the next bytes into `target`; return their number, which is 0 at the end of the file."""
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
        """Skip the zeros behind a stream, and begin the next one; return False at the end of the file."""
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
