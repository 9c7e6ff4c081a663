"""Parsed pairs to train on: read in each direction that is asked for, less what cannot be trained on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paranmt_hf.corpus.pairs import SIDES, Pairs
from paranmt_hf.corpus.parsing.template_counts import ParseRecord, parsed_files
from paranmt_hf.corpus.parsing.templates import are_trees, templates_of
from paranmt_hf.errors import InputError
from paranmt_hf.util.progress import Progress

PARSES = {side: f"{side}_parse" for side in SIDES}


def parsers_of(sources: Sequence[str | Path]) -> str | None:
    """Check what `paranmt parse` made, and say which parsers gave the trees.

    Args:
        sources: Folders, files or datasets.

    Returns:
        The names of the parsers, between commas; None where a source does not say.

    Raises:
        InputError: A file of a folder that `paranmt parse` made is missing or was changed.
    """
    names: dict[str, None] = {}
    folders = [folder for folder in (Path(source).expanduser() for source in sources) if _is_parsed(folder)]
    for folder in folders:
        parsed_files(folder)
        names[ParseRecord.read(folder).parser] = None
    return ", ".join(names) if folders and len(folders) == len(sources) else None


def _is_parsed(folder: Path) -> bool:
    return (folder / ParseRecord.FILE).is_file()


@dataclass(frozen=True)
class ParsedPairs:
    """Pairs with trees.

    Attributes:
        pairs: The pairs.
        names: What they are from, for errors.
        max_tree: Pairs with a tree of more tokens are left out.
    """

    pairs: Pairs
    names: str
    max_tree: int

    def tables(self, direction: str, label: str, dropped: Counter[str] | None = None) -> Iterator[pa.Table]:
        """Read pairs that can be trained on.

        Args:
            direction: What is generated, see `ParaphraserTraining`.
            label: What is done, for the progress.
            dropped: Gets the number of pairs `without_tree` and of those with `long_trees`.

        Yields:
            Tables of `source`, `target`, their trees `source_parse` and `target_parse`, the target's `template`, and
            the `reference`, by which pairs are held out.

        Raises:
            InputError: There is no column of trees, or it holds something else.
        """
        dropped, done = Counter() if dropped is None else dropped, 0
        with Progress(label, unit="pairs") as progress:
            for table in self.pairs.batches():
                done += table.num_rows
                table = self._with_trees(table, dropped)
                progress.advance_to(done)
                if not table.num_rows:
                    continue
                if direction != "to-translation":
                    yield _columns(table, "translation", "reference")
                if direction != "to-reference":
                    yield _columns(table, "reference", "translation")

    def _with_trees(self, table: pa.Table, dropped: Counter[str]) -> pa.Table:
        """Leave out pairs without a tree on a side, or with a long one."""
        if missing := [name for name in PARSES.values() if name not in table.column_names]:
            raise InputError(
                f"{self.names} has no column {', '.join(missing)}; expected parsed pairs: run `paranmt parse` on them "
                "first, and train on what it makes"
            )
        trees = [_as_text(self.names, name, table[name]) for name in PARSES.values()]
        _check_trees(self.names, trees)
        whole = pc.and_(*(tree.is_valid() for tree in trees))
        short = pc.and_(*(pc.less_equal(_tokens(tree), self.max_tree) for tree in trees))
        kept = table.filter(pc.and_(whole, pc.fill_null(short, False)))
        parsed = pc.sum(whole).as_py() or 0
        dropped["without_tree"] += table.num_rows - parsed
        dropped["long_trees"] += parsed - kept.num_rows
        return kept


def _as_text(names: str, name: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Bring a column of trees into the type that `paranmt parse` gives it.

    Raises:
        InputError: It holds something that is no text, such as lists.
    """
    try:
        return column.cast(pa.string())
    except pa.ArrowException:
        raise InputError(
            f"{names}: {name} holds {column.type}; expected trees as text such as (S(NP)(VP)), as `paranmt parse` "
            "writes them: run it on the pairs"
        ) from None


def _check_trees(names: str, columns: Sequence[pa.ChunkedArray]) -> None:
    """Refuse trees of another form than `paranmt parse` writes.

    Raises:
        InputError: There is one.
    """
    for name, column in zip(PARSES.values(), columns, strict=True):
        bad = np.flatnonzero(column.is_valid().to_numpy() & ~are_trees(column))
        if len(bad):
            raise InputError(
                f"{names}: {name} has {column[int(bad[0])].as_py()[:80]!r}; expected trees without words such as "
                "(S(NP)(VP)), as `paranmt parse` writes them: run it on the pairs"
            )


def _tokens(trees: pa.ChunkedArray) -> pa.ChunkedArray:
    """Tokens of linearised trees [sentence], end included: a node has two, its beginning and its end."""
    return pc.add(pc.multiply(pc.count_substring(trees, "("), 2), 1)


def _columns(table: pa.Table, source: str, target: str) -> pa.Table:
    parse = table[PARSES[target]].cast(pa.string())
    return pa.table(
        {
            "source": table[source],
            "target": table[target],
            "source_parse": table[PARSES[source]].cast(pa.string()),
            "target_parse": parse,
            "template": templates_of(parse),
            "reference": table["reference"],
        }
    )
