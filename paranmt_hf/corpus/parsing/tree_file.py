"""Trees from files, made by any parser, of any size."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paranmt_hf.corpus.bitext.readers import LineFiles, Report, TabFile, count_tab_fields
from paranmt_hf.corpus.draws import text_hashes
from paranmt_hf.corpus.parsing.trees import Tree, read_at
from paranmt_hf.errors import InputError
from paranmt_hf.util.files import existing, new_folder

# Maximum length of a tree; that of a sentence of 1,000 characters has about 10,000.
MAX_CHARACTERS = 1_000_000


class TreeFile:
    """A parser that looks up trees in a file, plain or compressed (.gz, .xz, .zst).

    Its lines are `SENTENCE<tab>TREE` in any order, or trees alone, of which line n belongs to line n of `text`. The
    tree may be empty.
    """

    def __init__(self, path: Path, text: Path | None = None) -> None:
        existing([path])
        self.name = f"the file {path.name}"
        # The file is read once.
        self.at_once: int | None = None
        self.path = path
        self._reader: TabFile | LineFiles
        if count_tab_fields(path) > 1:
            columns = {"sentence": 1, "tree": 2}
            self._reader = TabFile([path], columns, optional=["tree"], max_characters=MAX_CHARACTERS)
        elif text is not None:
            self._reader = LineFiles({"sentence": text, "tree": path}, max_characters=MAX_CHARACTERS)
        else:
            raise InputError(
                f"{path}: expected lines SENTENCE<tab>TREE, but the first line has no tab; trees alone can only "
                "belong to a text file with a sentence on each line"
            )

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Read the file: `id` (the line, from 0), `sentence` and `tree`, null or empty if missing."""
        return iter(self._reader.batches(Report()))

    def trees(self, sentences: Sequence[str]) -> Iterator[Tree | None]:
        """Look up the tree of each sentence; None if it is not in the file or has no tree."""
        wanted = pa.array(sentences, pa.string()).unique()
        # Text, with the number of its line, takes a tenth of the memory of trees.
        found: dict[str, tuple[str | None, int]] = {}
        for batch in self.batches():
            chosen = batch.filter(pc.is_in(batch["sentence"], value_set=wanted))
            for line, sentence, tree in zip(*(column.to_pylist() for column in chosen.columns), strict=True):
                found.setdefault(sentence, (tree, line + 1))
        if len(wanted) and not found:
            raise InputError(
                f"{self.path} has no tree of the {len(wanted):,} sentences, such as {wanted[0].as_py()!r}; parse the "
                "same sentences (`paranmt stats --write-samples` writes a sample)"
            )
        for sentence in sentences:
            text, line = found.get(sentence, (None, 0))
            yield read_at(text, f"{self.path}:{line}") if text else None


INDEX_SCHEMA = pa.schema({"sentence": pa.large_string(), "tree": pa.large_string(), "line": pa.int64()})
TREES, HASHES, TREE_ROWS = "trees.arrow", "hashes.npy", "rows.npy"


def write_index(file: TreeFile, folder: Path) -> None:
    """Write the index of a file of trees into a folder, atomically; takes 32 bytes of memory for each line."""
    with new_folder(folder) as aside:
        hashes = [np.empty(0, np.uint64)]
        with pa.OSFile(str(aside / TREES), "wb") as sink, pa.ipc.new_file(sink, INDEX_SCHEMA) as writer:
            for batch in file.batches():
                table = pa.table([batch["sentence"], batch["tree"], pc.add(batch["id"], 1)], names=INDEX_SCHEMA.names)
                writer.write_table(table.cast(INDEX_SCHEMA))
                hashes.append(text_hashes(batch["sentence"]))
        joined = np.concatenate(hashes)
        # The first tree of a sentence counts.
        order = np.argsort(joined, kind="stable")
        np.save(aside / HASHES, joined[order])
        np.save(aside / TREE_ROWS, order)


class TreeIndex:
    """A parser that looks up trees in an index; `name` is the file name of the trees."""

    at_once: int | None = 10_000
    _temporary: tempfile.TemporaryDirectory[str]

    def __init__(self, folder: Path, name: str) -> None:
        self.name = name
        self._trees = pa.ipc.open_file(pa.memory_map(str(folder / TREES))).read_all()
        self._hashes, self._rows = (np.load(folder / file, mmap_mode="r") for file in (HASHES, TREE_ROWS))

    @classmethod
    def of(cls, file: TreeFile) -> TreeIndex:
        """Index a file in a temporary folder, which goes with this object."""
        folder = tempfile.TemporaryDirectory(prefix="paranmt-trees-")
        write_index(file, Path(folder.name) / "index")
        index = cls(Path(folder.name) / "index", file.name)
        index._temporary = folder
        return index

    def trees(self, sentences: Sequence[str]) -> Iterator[Tree | None]:
        """Look up the tree of each sentence; None if it is not in the file or has no tree."""
        wanted = pa.array(sentences, pa.large_string())
        hashes = text_hashes(wanted)
        places = np.searchsorted(self._hashes, hashes)
        inside = np.flatnonzero(places < len(self._hashes))
        present = inside[self._hashes[places[inside]] == hashes[inside]]
        found = self._trees.take(pa.array(self._rows[places[present]]))
        entries = zip(*(found[name].to_pylist() for name in INDEX_SCHEMA.names), strict=True)
        texts = dict(zip(present.tolist(), entries, strict=True))
        for index, sentence in enumerate(sentences):
            own, text, line = texts.get(index, ("", None, 0))
            yield read_at(text, f"{self.name}:{line}") if text and own == sentence else None
