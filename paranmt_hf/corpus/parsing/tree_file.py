"""Files of trees: a file in which trees are looked up, and a file in which a command keeps the trees it has parsed."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from functools import cached_property
from pathlib import Path
from sys import intern
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from filelock import FileLock, Timeout

from paranmt_hf.corpus.parsing.trees import Tree, read_at
from paranmt_hf.corpus.reading.heading import Heading
from paranmt_hf.corpus.reading.lines import read_blocks
from paranmt_hf.corpus.reading.readers import LineFiles, Reader, Report, TableFiles
from paranmt_hf.corpus.reading.tab_separated import TabSeparated
from paranmt_hf.errors import InputError
from paranmt_hf.text.identity import hash_texts
from paranmt_hf.util.files import check_regular, existing, new_folder, writing
from paranmt_hf.util.wording import brief

MAX_CHARACTERS = 1_000_000  # Largest length of a tree; the tree of a sentence of 1,000 characters has about 10,000
SCHEMA = pa.schema({"sentence": pa.large_string(), "tree": pa.large_string(), "line": pa.int64()})
# Files of an index: the rows of `SCHEMA`, the hashes of the sentences in ascending order, and the row of each hash.
TREES, HASHES, ROWS = "trees.arrow", "hashes.npy", "rows.npy"


class TreeFile:
    """A parser that looks up trees in a file, plain or packed.

    The file has lines `SENTENCE<tab>TREE` in any order, of which the first one of a sentence counts; or trees alone,
    the tree on line n being that of line n of `text`. A tree may be empty.

    `stream` reads the file once. For `trees`, which is called often, the trees are copied into an index at the first
    call; this takes 32 bytes of memory for each line.

    Args:
        path: The file.
        text: File with the sentences of a file of trees alone.
        index: Folder of the index; None for a temporary folder.

    Raises:
        InputError: If the file is missing, or has trees alone and there is no `text`.
    """

    at_once: int | None = 10_000

    def __init__(self, path: Path, text: Path | None = None, *, index: Path | None = None) -> None:
        existing([path])
        self.path = path
        self.name = f"the file {path.name}"
        self._text, self._folder = text, index
        self._columns = next(read_blocks(path)).partition(b"\n")[0].count(b"\t") + 1
        if self._columns == 1 and text is None:
            raise InputError(
                f"{path}: expected lines SENTENCE<tab>TREE, but the first line has no tab; trees alone can only "
                "belong to a text file with a sentence on each line",
                path=path,
            )

    def trees(self, sentences: Sequence[str]) -> Iterator[Tree | None]:
        """Look up the tree of each sentence; None if it is not in the file, or its tree is empty."""
        hashes, rows, table = self._index
        wanted = hash_texts(pa.array(sentences, pa.large_string()))
        positions = np.searchsorted(hashes, wanted)
        inside = np.flatnonzero(positions < len(hashes))
        present = inside[hashes[positions[inside]] == wanted[inside]]
        found = table.take(pa.array(rows[positions[present]])).to_pylist()
        entries = dict(zip(present.tolist(), found, strict=True))
        for number, sentence in enumerate(sentences):
            entry = entries.get(number)
            if entry is None or entry["sentence"] != sentence or not entry["tree"]:
                yield None
            else:
                yield read_at(entry["tree"], f"{self.path.name}:{entry['line']}")

    def stream(self, sentences: Collection[str]) -> Iterator[list[tuple[str, Tree | None]]]:
        """Read the trees of some sentences, block by block, in the order of the file.

        Yields:
            Sentences with their trees; sentences that the file lacks come last, with None.
        """
        missing = set(sentences)
        if not missing:
            return
        for batch in self._reader().batches(Report()):
            found: list[tuple[str, Tree | None]] = []
            for row, sentence in enumerate(batch["sentence"].to_pylist()):
                if sentence in missing:
                    missing.remove(sentence)
                    tree, line = batch["tree"][row].as_py(), batch["id"][row].as_py() + 1
                    found.append((sentence, read_at(tree, f"{self.path.name}:{line}") if tree else None))
            yield found
            if not missing:
                return
        yield [(sentence, None) for sentence in sentences if sentence in missing]

    def write_index(self) -> None:
        """Write the index into its folder, unless it is there or there is no such folder."""
        if self._folder is None or self._folder.exists():
            return
        hashes = [np.empty(0, np.uint64)]
        with new_folder(self._folder) as aside:
            with pa.OSFile(str(aside / TREES), "wb") as sink, pa.ipc.new_file(sink, SCHEMA) as writer:
                for batch in self._reader().batches(Report()):
                    columns = [batch["sentence"], batch["tree"], pc.add(batch["id"], 1)]
                    writer.write_table(pa.table(columns, names=SCHEMA.names).cast(SCHEMA))
                    hashes.append(hash_texts(batch["sentence"]))
            joined = np.concatenate(hashes)
            # The sort is stable, so the first of equal hashes is that of the first tree.
            order = np.argsort(joined, kind="stable")
            np.save(aside / HASHES, joined[order])
            np.save(aside / ROWS, order)

    @cached_property
    def _index(self) -> tuple[np.ndarray, np.ndarray, pa.Table]:
        """The index: hashes of sentences, ascending; for each hash its row in the table; and the table of `SCHEMA`."""
        if self._folder is None:
            # The temporary folder is removed with this object.
            self._temporary = tempfile.TemporaryDirectory(prefix="paranmt-trees-")
            self._folder = Path(self._temporary.name) / "index"
        self.write_index()
        table = pa.ipc.open_file(pa.memory_map(str(self._folder / TREES))).read_all()
        return np.load(self._folder / HASHES, mmap_mode="r"), np.load(self._folder / ROWS, mmap_mode="r"), table

    def _reader(self) -> Reader:
        """Open the file, with the columns `sentence` and `tree`."""
        if self._columns == 1:
            assert self._text is not None
            return LineFiles({"sentence": self._text, "tree": self.path}, max_characters=MAX_CHARACTERS)
        # Line 1 is always a row, and quotes are text, because sentences may be single words and have quotes.
        table = TabSeparated(self.path, Heading(self._columns, (), ()))
        columns = {"sentence": "1", "tree": "2"}
        return TableFiles([table], columns, optional=["tree"], max_characters=MAX_CHARACTERS)


def lock_kept(path: Path) -> AbstractContextManager[Any]:
    """Lock a file of kept trees for a `with` block, because lines that two processes write would mix.

    Raises:
        InputError: If another process has locked it.
    """
    with writing(path):
        lock = FileLock(path.with_name(f".{path.name}.lock"))
        try:
            return lock.acquire(blocking=False)
        except Timeout:
            raise InputError(
                f"another process writes trees into {path}; wait for it, or name another file", path=path
            ) from None


def read_kept(path: Path, parser: str, wanted: Collection[str], cut: Callable[[Tree], str]) -> dict[str, str | None]:
    """Read kept trees, and return a text made from the tree of each wanted sentence.

    The file begins with the name of the parser. An interrupted command may leave an incomplete last line, which is
    removed. A missing file is created.

    Args:
        path: The file.
        parser: Name of the parser.
        wanted: The sentences.
        cut: Makes the text from a tree.

    Returns:
        The texts of the sentences in the file; None for a sentence without a tree.

    Raises:
        InputError: If the file is of another parser.
    """
    check_regular(path)
    head = f"#parser\t{parser}\n".encode()
    found: dict[str, str | None] = {}
    with writing(path), path.open("a+b") as file:
        file.seek(0)
        first = file.readline()
        if first != head:
            if not head.startswith(first):
                start = brief(first.decode(errors="replace").strip())
                raise InputError(
                    f"{path} begins with {start}, expected trees of {parser}; name another file", path=path
                )
            file.truncate(0)
            file.write(head)
            return found
        whole = len(first)
        for number, line in enumerate(file, 2):
            if not line.endswith(b"\n"):
                break
            whole += len(line)
            sentence, _, tree = line.decode(errors="replace").rstrip("\n").partition("\t")
            if sentence in wanted:
                found[sentence] = intern(cut(read_at(tree, f"{path}:{number}"))) if tree else None
        file.truncate(whole)
    return found


def append_kept(path: Path, trees: Iterable[tuple[str, Tree | None]]) -> None:
    """Append sentences and their trees to a file of kept trees, and wait until they are on the disk."""
    with writing(path), path.open("a", encoding="utf8", newline="\n") as file:
        file.writelines(f"{sentence}\t{tree or ''}\n" for sentence, tree in trees)
        file.flush()
        os.fsync(file.fileno())
