"""Reads the files of a source of `free_text.py`: of a commit of a repository or a folder, out of archives."""

from __future__ import annotations

import gzip
import io
import re
import subprocess
import tarfile
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

# Files of this size and larger in repositories are left out, because the text was made from copies without them.
LARGEST = 4 * 2**20
Part = dict[str, Any]  # A source of the table, or a part of one


def git(folder: Path, *arguments: str, given: bytes = b"") -> bytes:
    """Run a command of git that only reads, and return its output."""
    result = subprocess.run(["git", f"--git-dir={folder}", *arguments], input=given, capture_output=True)
    if result.returncode:
        raise FileNotFoundError(f"{folder} cannot be read: {result.stderr.decode(errors='replace').strip()}")
    return result.stdout


def committed(folder: Path, commit: str, paths: str) -> Iterator[tuple[str, bytes]]:
    """Yield the path and content of each file of a commit whose path matches; a partial copy may lack some."""
    listed = git(folder, "ls-tree", "-rz", commit).decode(errors="replace").split("\0")[:-1]
    names = {path: meta.split()[2] for meta, path in (row.split("\t", 1) for row in listed) if re.search(paths, path)}
    found = io.BytesIO(git(folder, "cat-file", "--batch", given="\n".join(names.values()).encode()))
    for name in names:
        _, _, *size = found.readline().split()
        yield name, found.read(int(size[0]) + 1)[:-1] if size else b""


def on_disk(folder: Path, paths: str) -> Iterator[tuple[str, bytes]]:
    """Yield the path and content of each file in a folder whose path matches, in the order of git."""
    names = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    yield from ((name, (folder / name).read_bytes()) for name in names if re.search(paths, name))


def entries(folder: Path, name: str, data: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield the headword and the entry of each word in a dictionary of dictd; its index has positions in base 64."""
    digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    text, seen = gzip.decompress(data), set()
    for line in (folder / name.replace(".dict.dz", ".index")).read_text(encoding="utf8").splitlines():
        word, *place = line.split("\t")[:3]
        start, size = (sum(digits.index(c) * 64**i for i, c in enumerate(reversed(number))) for number in place)
        if start not in seen and not word.startswith("00"):
            seen.add(start)
            yield word, text[start : start + size]


def unpacked(folder: Path, name: str, data: bytes, part: Part) -> Iterable[tuple[str, bytes]]:
    """Yield the names and contents of what is in an archive, a dictionary or a list of packages, or a plain file."""
    if name.endswith(".zip"):
        archive = zipfile.ZipFile(io.BytesIO(data))
        names = (inner for inner in archive.namelist() if re.search(part.get("members", ""), inner))
        return [(inner, archive.read(inner)) for inner in names]
    if name.endswith(".tar.gz"):
        with tarfile.open(fileobj=io.BytesIO(data)) as packed:
            wanted = [name for name in packed.getnames() if re.search(part.get("members", ""), name)]
            opened = ((name, packed.extractfile(name)) for name in wanted)
            return [(name, file.read()) for name, file in opened if file]
    if name.endswith(".dict.dz"):
        return entries(folder, name, data)
    if name.endswith(".json.gz"):
        return [(name, gzip.decompress(data))]
    if name.endswith(".lz4"):
        command = ["/usr/lib/apt/apt-helper", "cat-file", str(folder / name)]
        return [(name, subprocess.run(command, capture_output=True, check=True).stdout)]
    return [(name, data)]


def files(folder: Path, commit: str, part: Part) -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each file of a part."""
    bare = next((path for path in (folder / ".git", folder) if commit and (path / "HEAD").is_file()), None)
    for paths in [part["paths"]] if isinstance(part["paths"], str) else part["paths"]:
        for name, data in committed(bare, commit, paths) if bare else on_disk(folder, paths):
            if data and (len(data) < LARGEST or not commit):
                for inner, content in unpacked(folder, name, data, part):
                    yield inner, content.decode(part.get("encoding", "utf8"), errors="replace")
