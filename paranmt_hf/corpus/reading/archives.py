"""Archives, such as those of OPUS and GloVe: refused, with their members and the command that unpacks them."""

from __future__ import annotations

import io
import re
import tarfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

from paranmt_hf.corpus.reading.lines import unpacked
from paranmt_hf.errors import InputError

SHOWN = 8  # Members that the error names
LOOKED_AT = 1 << 24  # Bytes of a tar file that are searched for members, which have no list
# What archives hold next to the data: notes, and the numbers of the sentences of OPUS.
ASIDE = re.compile(r"(^|/)(readme|licen[cs]e|copying|\.|__macosx)|\.ids$|/$", re.IGNORECASE)
MOSES = re.compile(r"(.+)\.([a-z]{2,3}(?:[_-][A-Za-z]+)?)")  # corpus.cs-en.cs


def archive_error(path: Path) -> InputError:
    """The error that refuses an archive."""
    is_zip = zipfile.is_zipfile(path) or path.suffix.lower() == ".zip"
    members = _zip_members(path) if is_zip else _tar_members(path)
    useful = [name for name in members if not ASIDE.search(name)]
    shown = ", ".join(useful[:SHOWN]) + (", ..." if len(useful) > SHOWN else "")
    unpack = f"unzip {path.name}" if is_zip else f"tar -xf {path.name}"
    pair = _moses_pair(useful)
    use = "the unpacked files"
    if pair:
        use = f"for `paranmt build`: --source {pair[0]} --reference {pair[1]}; for the other commands: {pair[1]}"
    return InputError(
        f"{path} is an archive of {shown or 'no data'}; unpack it with `{unpack}`, and give {use}", path=path
    )


def _zip_members(path: Path) -> list[str]:
    try:
        with zipfile.ZipFile(path) as archive:
            return archive.namelist()
    except zipfile.BadZipFile:
        return []


def _tar_members(path: Path) -> list[str]:
    """The first members of a tar archive."""
    names = []
    start = b""
    for block in unpacked(path):
        start += block
        if len(start) >= LOOKED_AT:
            break
    try:
        with tarfile.open(fileobj=io.BytesIO(start), mode="r:") as archive:
            for member in archive:
                names.append(member.name + "/" * member.isdir())
    except tarfile.TarError:
        # A member reaches beyond what was read.
        pass
    return names


def _moses_pair(names: Sequence[str]) -> tuple[str, str] | None:
    """The two sides of a bitext among names of files: equal but for the language at the end, English last."""
    found = [match for name in names if (match := MOSES.fullmatch(name))]
    if len(found) != 2 or found[0][1] != found[1][1]:
        return None
    first, second = sorted(found, key=lambda match: match[2] == "en")
    return first[0], second[0]
