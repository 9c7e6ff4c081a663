"""Trees from a file: whatever parser made them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from paranmt_hf.corpus.bitext.lines import existing
from paranmt_hf.corpus.bitext.readers import LineFiles, Report, TabFile, tab_fields
from paranmt_hf.corpus.parsing.parser import read_at
from paranmt_hf.corpus.parsing.trees import Tree
from paranmt_hf.errors import InputError

# Of a line with a tree; a sentence of 1,000 characters has a tree of about ten times that.
MAX_CHARACTERS = 1_000_000


class TreeFile:
    """A parser that looks trees up in a file.

    Its lines are `SENTENCE<tab>TREE`, in any order. Or they are trees alone, and line n is the tree of line n of the
    text that is measured; that text must be a file with a sentence on each line. A line without a tree is a sentence
    that the parser had none for.

    Args:
        path: The file; plain, .gz, .xz or .zst.
        text: The text that is measured, if it is a file of lines.

    Raises:
        InputError: The file is missing, or holds trees alone where there is no text that they belong to.
    """

    def __init__(self, path: Path, text: Path | None = None) -> None:
        existing([path])
        self.name = f"the file {path.name}"
        # The file is read once for all sentences.
        self.at_once: int | None = None
        self._path = path
        self._reader: TabFile | LineFiles
        if tab_fields(path) > 1:
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
        """Read the file: `id` (the line, from 0), `sentence` and `tree`, null or empty where there is none."""
        return iter(self._reader.batches(Report()))

    def trees(self, sentences: Sequence[str]) -> Iterator[Tree | None]:
        """Look the trees of sentences up; None for those that are not in the file or have no tree there.

        Raises:
            InputError: A tree that is looked at is none (with its line), or none of the sentences is in the file.
        """
        wanted = pa.array(sentences, pa.string()).unique()
        # As text, and the line: trees take ten times the memory.
        found: dict[str, tuple[str | None, int]] = {}
        for batch in self.batches():
            chosen = batch.filter(pc.is_in(batch["sentence"], value_set=wanted))
            for line, sentence, tree in zip(*(column.to_pylist() for column in chosen.columns), strict=True):
                found.setdefault(sentence, (tree, line + 1))
        if len(wanted) and not found:
            raise InputError(
                f"{self._path} has trees of none of the {len(wanted):,} sentences that are measured, such as "
                f"{wanted[0].as_py()!r}; parse that corpus (paranmt stats --write-samples gives its sentences)"
            )
        for sentence in sentences:
            text, line = found.get(sentence, (None, 0))
            yield read_at(text, f"{self._path}:{line}") if text else None
