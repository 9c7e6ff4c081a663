"""The training data of paraphrasers: pairs as text, and the same pairs as ids of pieces on disk."""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paranmt_hf.corpus.parsing.parse import PARSES
from paranmt_hf.corpus.parsing.trees import are_trees, templates_of
from paranmt_hf.corpus.reading.pairs import Pairs
from paranmt_hf.corpus.statistics.draws import text_numbers
from paranmt_hf.errors import InputError
from paranmt_hf.paraphrase.config import ParaphraserConfig, ParaphraserTraining
from paranmt_hf.paraphrase.noise import add_noise
from paranmt_hf.util.files import ChecksummedFile, checksum, write_bytes
from paranmt_hf.util.progress import Progress
from paranmt_hf.util.records import from_json, read_json

logger = logging.getLogger(__name__)
MAX_TREE = 150  # Maximum number of tokens of a tree; tokens are opening brackets with labels, and closing brackets
SUMMARY_FILE = "pieces.json"
TRAIN, HELD_OUT = "train", "held-out"  # The parts of the pairs
# Encodes texts to ids of pieces [text][piece], special pieces included.
Cut = Callable[[list[str]], Sequence[Sequence[int]]]


def held_out_keys(keys: pa.ChunkedArray, share: float) -> np.ndarray:
    """Mark the rows that are held out of training [row], bool.

    The hash of a row's key decides, so that the choice is the same in every corpus. Rows that a smaller share holds
    out are also held out by a larger share.

    Args:
        keys: Key of each row, such as its reference [row].
        share: Share of the keys that are held out, in [0, 1].
    """
    if not share:
        return np.zeros(len(keys), bool)
    return text_numbers(keys, size=4) < np.uint64(share * 2**32)


@dataclass
class TrainingPairs:
    """The pairs that a paraphraser is trained on, read as tables of text.

    For a controlled network, pairs are left out that lack a tree, have a tree of more than `MAX_TREE` tokens, or,
    unless `config.same_template` is set, have two trees of the same template.

    Attributes:
        pairs: The selected pairs.
        names: Names of their sources, for errors.
        config: Settings of the model.
        training: Settings of the training.
        dropped: Number of pairs that the last reading left out for their trees, by reason.
    """

    pairs: Pairs
    names: str
    config: ParaphraserConfig
    training: ParaphraserTraining
    dropped: Counter[str] = field(default_factory=Counter)

    def without_noise(self) -> TrainingPairs:
        """Return the same pairs, but without noise in their sources."""
        return replace(self, training=replace(self.training, noise=0.0), dropped=Counter())

    @property
    def controlled(self) -> bool:
        """Whether the pairs are for a syntactically controlled network."""
        return self.config.model == "controlled"

    def tables(self, label: str, direction: str | None = None) -> Iterator[pa.Table]:
        """Read the pairs that can be trained on.

        Args:
            label: Label of the progress bar.
            direction: Direction of the pairs, as in `ParaphraserTraining`; that of the training if None.

        Yields:
            Tables with the columns `source`, `target` and `reference`; for a controlled network also `source_parse`,
            `target_parse` and `template`, the template of the target. With `both` directions, each pair is in two
            tables.
        """
        self.dropped.clear()
        direction = direction or self.training.direction
        read = 0
        with Progress(label, unit="pairs") as progress:
            for table in self.pairs.batches():
                first, read = read, read + table.num_rows
                if self.controlled:
                    table = self._with_trees(table)
                progress.advance_to(read)
                if not table.num_rows:
                    continue
                if direction in ("to-reference", "both"):
                    yield self._directed(table, "translation", "reference", first)
                if direction in ("to-translation", "both"):
                    yield self._directed(table, "reference", "translation", first)
        if not read:
            raise InputError(f"nothing to train on: {self.pairs.left_out}; look at the options that choose pairs")

    def _directed(self, table: pa.Table, source: str, target: str, first: int) -> pa.Table:
        """Return pairs in one direction, from the column `source` to the column `target`.

        `first` is the number of the first pair, which decides noise.
        """
        columns = {"source": table[source], "target": table[target], "reference": table["reference"]}
        if self.controlled:
            columns["source_parse"] = table[PARSES[source]]
            columns["target_parse"] = table[PARSES[target]]
            columns["template"] = templates_of(table[PARSES[target]])
        elif self.training.noise:
            # Sources that are not held out become their noisy target, with the probability `noise`.
            drawn = np.random.default_rng([self.training.seed, first]).random(len(table)) < self.training.noise
            drawn &= ~held_out_keys(table["reference"], self.training.held_out)
            noisy, clean = [], table[target].filter(pa.array(drawn)).to_pylist()
            for row, text in zip(np.flatnonzero(drawn), clean, strict=True):
                noisy.append(add_noise(text, 0.15, f"{self.training.seed} {first + row}")[0])
            before = table[source].combine_chunks()
            columns["source"] = pc.replace_with_mask(before, pa.array(drawn), pa.array(noisy, before.type))
        return pa.table(columns)

    def _with_trees(self, table: pa.Table) -> pa.Table:
        """Leave out pairs that lack a tree, have a long tree or two trees of the same template, and count them."""
        trees = []
        for name in PARSES.values():
            if name not in table.column_names:
                raise InputError(
                    f"{self.names} has no column {name}; run `paranmt parse` on the pairs first, and train on its "
                    "result",
                    option="data",
                )
            trees.append(self._checked_trees(name, table[name]))
            table = table.set_column(table.column_names.index(name), name, trees[-1])
        parsed = pc.and_(*(column.is_valid() for column in trees))
        # Each node has two tokens, one where it begins and one where it ends. The end token of the tree is one more.
        lengths = [pc.add(pc.multiply(pc.count_substring(column, "("), 2), 1) for column in trees]
        short = pc.less_equal(pc.max_element_wise(*lengths), MAX_TREE)
        kept = table.filter(pc.and_(parsed, short))
        with_trees = int(np.count_nonzero(parsed))
        self.dropped["without_tree"] += table.num_rows - with_trees
        self.dropped["long_trees"] += with_trees - kept.num_rows
        if self.config.same_template:
            return kept
        other = kept.filter(pc.not_equal(*(templates_of(kept[name]) for name in PARSES.values())))
        self.dropped["same_template"] += kept.num_rows - other.num_rows
        return other

    def _checked_trees(self, name: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
        """Return a column of trees as text; raises `InputError` for values that are not linearised trees.

        `name` is the name of the column, for errors.
        """
        expected = "expected trees without words such as (S(NP)(VP)), as `paranmt parse` writes them"
        try:
            trees = column.cast(pa.string())
        except pa.ArrowException:
            raise InputError(f"{self.names}: {name} holds {column.type}; {expected}", option="data") from None
        bad = np.flatnonzero(trees.is_valid().to_numpy() & ~are_trees(trees))
        if len(bad):
            found = trees[int(bad[0])].as_py()[:80]
            raise InputError(f"{self.names}: {name} has {found!r}; {expected}", option="data")
        return trees


@dataclass(frozen=True)
class PieceSummary:
    """The counts of pairs that `write_pieces` wrote, the content of `pieces.json`."""

    pairs: dict[str, int]  # Number of pairs of each part
    too_long: int  # Number of pairs that were left out because of a long sentence
    left_out: dict[str, int]  # Number of pairs that the selection left out before, by reason
    files: dict[str, str]  # SHA-256 of each file, in hexadecimal, by its name


class PieceStore:
    """The pairs of one part that `write_pieces` wrote, as ids of pieces.

    The sides of a pair are its source, its target and, for a controlled network, its control.
    """

    def __init__(self, folder: Path, part: str) -> None:
        self._ids: list[np.ndarray] = []
        self._ends: list[np.ndarray] = []
        for side in ("source", "target", "control"):
            path = folder / f"{part}-{side}.ids"
            if path.exists():
                self._ids.append(_mapped(path, np.int32))
                self._ends.append(_mapped(path.with_suffix(".ends"), np.int64))

    def __len__(self) -> int:
        return len(self._ends[0])

    @property
    def lengths(self) -> np.ndarray:
        """Number of pieces of the longest side of each pair [pair], int32."""
        return np.max([np.diff(ends, prepend=0) for ends in self._ends], axis=0).astype(np.int32)

    def take(self, pairs: np.ndarray) -> list[list[np.ndarray]]:
        """Return the ids of the given pairs [side][pair][piece]; sides are source, target and perhaps control."""
        sides = []
        for ids, ends in zip(self._ids, self._ends, strict=True):
            starts = np.where(pairs > 0, ends[pairs - 1], 0)
            sides.append([ids[start:end] for start, end in zip(starts, ends[pairs], strict=True)])
        return sides


def _mapped(path: Path, kind: type) -> np.ndarray:
    """Memory-map a file of numbers; an empty file, which cannot be mapped, gives an empty array."""
    return np.memmap(path, kind, "r") if path.stat().st_size else np.empty(0, kind)


def write_pieces(
    tables: Iterable[Sequence[pa.ChunkedArray]],
    folder: Path,
    cuts: Mapping[str, Cut],
    *,
    longest: int,
    held_out: float,
    left_out: Callable[[], dict[str, int]] = dict,
) -> PieceSummary:
    """Encode pairs to ids of pieces, and write them in two parts, training and held-out pairs.

    The key of a pair alone decides whether it is held out, so all pairs with the same key are in the same part.

    Args:
        tables: Tuples of columns of text: one for each of `cuts`, in this order, and the keys, such as the references.
        folder: Folder of the files.
        cuts: Encoders to ids by side: `source`, `target` and perhaps `control`.
        longest: Maximum number of pieces of a source or target; pairs with a longer one are left out.
        held_out: Share of the keys that are held out.
        left_out: Returns the number of pairs that the selection left out, by reason; called after the last table.

    Raises:
        InputError: No pair is left to train on.
    """
    writers = {}
    for part in (TRAIN, HELD_OUT):
        for side in cuts:
            writers[part, side] = _PieceWriter(folder / f"{part}-{side}.ids")
    pairs = dict.fromkeys((TRAIN, HELD_OUT), 0)
    too_long = 0
    for *columns, keys in tables:
        sides = {side: cuts[side](column.to_pylist()) for side, column in zip(cuts, columns, strict=True)}
        lengths = [np.fromiter(map(len, sides[side]), np.int64, len(keys)) for side in ("source", "target")]
        short = np.maximum(*lengths) <= longest
        too_long += int(np.count_nonzero(~short))
        apart = held_out_keys(keys, held_out)
        for part, chosen in ((TRAIN, short & ~apart), (HELD_OUT, short & apart)):
            rows = np.flatnonzero(chosen).tolist()
            pairs[part] += len(rows)
            for side, ids in sides.items():
                writers[part, side].write([ids[row] for row in rows])
    files: dict[str, str] = {}
    for writer in writers.values():
        files |= writer.close()
    if not pairs[TRAIN]:
        raise InputError(
            f"nothing to train on: of {sum(pairs.values()) + too_long:,} chosen pairs {too_long:,} have a sentence of "
            f"more than {longest} pieces, and {pairs[HELD_OUT]:,} are held out; look at the data and at the options "
            "that choose"
        )
    if held_out and not pairs[HELD_OUT]:
        logger.warning(
            f"nothing will be measured: of {pairs[TRAIN]:,} pairs none is held out at a share of {held_out:g}; "
            "raise `held_out`, or give more pairs"
        )
    summary = PieceSummary(pairs, too_long, left_out(), files)
    write_bytes(folder / SUMMARY_FILE, json.dumps(asdict(summary)).encode())
    return summary


class _PieceWriter:
    """A writer of the ids of one side of pairs, and of the end of each sentence among these ids."""

    def __init__(self, path: Path) -> None:
        self._names = (path.name, path.with_suffix(".ends").name)
        self._ids = ChecksummedFile(path)
        self._ends = ChecksummedFile(path.with_suffix(".ends"))
        self._total = 0

    def write(self, rows: Sequence[Sequence[int]]) -> None:
        """Add the ids of sentences [sentence][piece]."""
        if rows:
            ends = self._total + np.cumsum([len(ids) for ids in rows], dtype=np.int64)
            self._total = int(ends[-1])
            self._ids.write(np.concatenate(rows).astype(np.int32).data)
            self._ends.write(ends.data)

    def close(self) -> dict[str, str]:
        """Close both files, and return their SHA-256 by their names."""
        return dict(zip(self._names, (self._ids.close(), self._ends.close()), strict=True))


def read_summary(folder: Path) -> PieceSummary | None:
    """Read the summary that `write_pieces` writes last; None if it is missing, or a file was changed since."""
    path = folder / SUMMARY_FILE
    if not path.exists():
        return None
    summary = from_json(PieceSummary, read_json(path, "a summary of pieces"), path)
    for name, written in summary.files.items():
        if not (folder / name).is_file() or checksum(folder / name) != written:
            return None
    return summary
