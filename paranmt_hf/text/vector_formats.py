"""Recognise the format of a file of word vectors by its first bytes: text, word2vec's binary, or a refused one."""

from __future__ import annotations

import struct
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from paranmt_hf.errors import InputError, refuse
from paranmt_hf.util.files import open_lines
from paranmt_hf.util.wording import counted

HEAD = 1 << 16  # Number of first bytes that are looked at
# The number with which every `.bin` file of fastText and Sent2Vec begins, and the version of the format of Sent2Vec.
MAGIC, SENT2VEC_VERSION = 793712314, 11
LONGEST_WORD = 1 << 16  # Maximum number of bytes of a word
# First bytes of other files, and what an error says about such a file.
_OTHERS = {
    b"PAR1": "is Parquet; write a word and its numbers on each line of a text file",
    b"\x80": "is a pickle, such as gensim's own file, which is not read because it can run code; write it with "
    "`save_word2vec_format` of gensim",
    b"\x93NUMPY": "is an array of numpy, which has no words; write a word and its numbers on each line of a text file",
    b"\x89HDF": "is HDF5; write a word and its numbers on each line of a text file",
    b"\xff\xfe": "is text in UTF-16; convert it, such as with `iconv -f UTF-16 -t UTF-8`",
    b"\xfe\xff": "is text in UTF-16; convert it, such as with `iconv -f UTF-16 -t UTF-8`",
}


def header(line: bytes) -> tuple[int, int] | None:
    """Parse the numbers of words and dimensions in a word2vec header; None if the line is not a header."""
    fields = line.split()
    if len(fields) == 2 and all(field.isdigit() and len(field) < 19 for field in fields):
        return int(fields[0]), int(fields[1])
    return None


def is_binary(path: Path) -> bool:
    """Whether a file is in word2vec's binary format, and not text.

    Raises:
        InputError: It has another format, which the error names.
    """
    with open_lines(path, "word vectors from") as file:
        head = file.read(HEAD)
    other = _other_format(path, head)
    refuse(other, f"{path} {other}", path=path)
    first, _, rest = head.partition(b"\n")
    found = header(first)
    if found is not None and _holds_binary(rest, found[1]):
        return True
    expected = "expected text with a word and its numbers on each line, or word2vec's binary"
    refuse(b"\0" in head, f"{path} is not text; {expected}", path=path)
    return False


def _other_format(path: Path, head: bytes) -> str | None:
    """Say which other format a file has, and what to do with it; None if it may hold word vectors."""
    if head.startswith(b"PK\x03\x04"):
        try:
            with zipfile.ZipFile(path) as archive:
                names = [name for name in archive.namelist() if not name.endswith("/")]
        except (zipfile.BadZipFile, OSError):
            return "is a damaged zip archive; get it again"
        more = ", ..." if len(names) > 5 else ""
        return f"is a zip archive; unpack it and name one of its files: {', '.join(names[:5])}{more}"
    if head[257:262] == b"ustar":
        return "is a tar archive; unpack it (`tar -xf`) and name one of its files"
    if len(head) < 14 * 4 or head[:4] != struct.pack("<i", MAGIC):
        return next((advice for start, advice in _OTHERS.items() if head.startswith(start)), None)
    # The number is followed by the version and twelve settings. Setting 7, the kind of model, is 4 for Sent2Vec.
    _, version, *settings = struct.unpack_from("<14i", head)
    if version == SENT2VEC_VERSION and settings[7] == 4:
        return (
            "is a model of Sent2Vec, an encoder of its own; make a folder of it with `paranmt encoder convert`, and "
            "give that folder where an encoder is asked for"
        )
    return (
        "is a model of fastText, which makes vectors of words from their pieces; give the .vec file that comes with "
        "it, or have its program write the vectors of your words (`fasttext print-word-vectors model.bin < words.txt`)"
    )


def _holds_binary(rest: bytes, width: int) -> bool:
    """Whether the bytes after a header are a word and numbers of four bytes each, and not a line of text.

    Args:
        rest: The first bytes after the header.
        width: Number of dimensions in the header.
    """
    fields = rest.partition(b"\n")[0].replace(b"\t", b" ").rstrip().split(b" ")
    try:
        # In text, the line ends with as many numbers as the header says.
        [float(field) for field in fields[-width:]]
    except ValueError:
        pass
    else:
        if len(fields) > width:
            return False
    numbers = rest.partition(b" ")[2][: 4 * width]
    # Look for bytes that do not occur in UTF-8 text: nearly every vector of binary numbers holds one.
    try:
        numbers.decode("utf8")
    except UnicodeDecodeError as error:
        # The bytes may end inside a character, which proves nothing.
        if error.reason != "unexpected end of data":
            return True
    return any(byte < 32 and byte not in b"\t\n\r" for byte in numbers)


def binary_entries(file: BinaryIO, path: Path) -> Iterator[tuple[bytes, bytes]]:
    """Read the words and vectors of word2vec's binary format.

    After a header, the file holds for each word its name, a blank, and its numbers, little-endian float32. A line end
    may precede a word: the program of word2vec writes one, and gensim does not.

    Yields:
        Each word, and the bytes of its vector.
    """
    promised, width = header(file.readline(HEAD)) or (0, 0)
    wrong = not 1 <= width <= 100_000
    refuse(wrong, f"{path} is damaged: its first line promises {width:,} dimensions", path=path)
    size, buffer, at = 4 * width, b"", 0
    for number in range(1, promised + 1):
        blank = buffer.find(b" ", at)
        while blank < 0 or len(buffer) < blank + 1 + size:
            if (len(buffer) if blank < 0 else blank) - at > LONGEST_WORD:
                raise InputError(f"{path} is damaged: word {number:,} has more than {LONGEST_WORD:,} bytes", path=path)
            block = file.read(1 << 20)
            refuse(
                not block,
                f"{path} is cut off: its first line promises {counted(promised, 'word')}, {number - 1:,} follow; copy "
                "it again",
                path=path,
            )
            buffer, at = buffer[at:] + block, 0
            blank = buffer.find(b" ", at)
        yield buffer[at:blank].lstrip(b"\n"), buffer[blank + 1 : blank + 1 + size]
        at = blank + 1 + size
    more = (buffer[at:] + file.read(HEAD)).strip(b"\n")
    refuse(more, f"{path} is damaged: more follows its {counted(promised, 'word')}; copy it again", path=path)
