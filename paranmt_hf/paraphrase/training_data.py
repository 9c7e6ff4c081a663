"""What paraphrasers are trained on: pairs as text, the same as piece ids on disk, and batches of similar length."""

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
MAX_TREE = 150  # Maximum number of tokens of a tree, which are brackets and labels
SUMMARY_FILE = "pieces.json"
TRAIN, HELD_OUT = "train", "held-out"  # The parts of the pairs
# Cuts a column of text into ids, special pieces included.
Cut = Callable[[list[str]], Sequence[Sequence[int]]]


def held_out_keys(keys: pa.ChunkedArray, share: float) -> np.ndarray:
    """Mark held-out rows [row] by the hash of their key, so that the choice is the same in every corpus.

    What a smaller share holds out, a larger one does too.
    """
    if not share:
        return np.zeros(len(keys), bool)
    return text_numbers(keys, size=4) < np.uint64(share * 2**32)


@dataclass
class TrainingPairs:
    """Pairs to train on, as tables of text; `names` are those of their sources, for errors.

    Of a controlled network, pairs without two trees of at most `MAX_TREE` tokens are left out, and unless the `config`
    says otherwise, those whose trees have the same template. `dropped` counts these in the last reading.
    """

    pairs: Pairs
    names: str
    config: ParaphraserConfig
    training: ParaphraserTraining
    dropped: Counter[str] = field(default_factory=Counter)

    def without_noise(self) -> TrainingPairs:
        """The same pairs, whose sources are never noisy."""
        return replace(self, training=replace(self.training, noise=0.0), dropped=Counter())

    @property
    def controlled(self) -> bool:
        """Whether they are for a syntactically controlled network."""
        return self.config.model == "controlled"

    def tables(self, label: str, direction: str | None = None) -> Iterator[pa.Table]:
        """Read the pairs that can be trained on, in each direction of the training.

        Yields tables of `source`, `target` and `reference`; with trees also `source_parse`, `target_parse` and the
        target's `template`.
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
        """Pairs in one direction; `first` is the number of the first row."""
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
        """Drop pairs without a tree on a side, with a long one, or with two of the same template."""
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
        # Each node has two tokens, its beginning and its end, and the tree ends with one more.
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
        """Convert a column to the type that `paranmt parse` writes, and reject values that are not trees."""
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
    """The content of `pieces.json`: pairs of each part, and pairs that were left out."""

    pairs: dict[str, int]
    too_long: int
    left_out: dict[str, int]  # Before, by reason
    files: dict[str, str]  # SHA-256 of each file


class PieceStore:
    """Pairs of one part written by `write_pieces`, as ids of source, target and, if there is one, control."""

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
        """Pieces of the longest side of each pair [pair], int32."""
        return np.max([np.diff(ends, prepend=0) for ends in self._ends], axis=0).astype(np.int32)

    def take(self, pairs: np.ndarray) -> list[list[np.ndarray]]:
        """Return the ids of the sources, the targets and, if there are any, the controls of the given pairs."""
        sides = []
        for ids, ends in zip(self._ids, self._ends, strict=True):
            starts = np.where(pairs > 0, ends[pairs - 1], 0)
            sides.append([ids[start:end] for start, end in zip(starts, ends[pairs], strict=True)])
        return sides


def _mapped(path: Path, kind: type) -> np.ndarray:
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
    """Encode pairs to pieces and write them, each part separately.

    Whether a pair is held out is decided by its key alone, so all pairs of one key are in the same part. `tables` are
    columns of text, one for each of `cuts`, and keys, such as the references. Pairs with a source or target of more
    than `longest` pieces are left out; `left_out` counts those that were left out before, by reason.
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
    """Writes the ids of one side, and where each sentence ends."""

    def __init__(self, path: Path) -> None:
        self._names = (path.name, path.with_suffix(".ends").name)
        self._ids = ChecksummedFile(path)
        self._ends = ChecksummedFile(path.with_suffix(".ends"))
        self._total = 0

    def write(self, rows: Sequence[Sequence[int]]) -> None:
        """Write the ids of sentences."""
        if rows:
            ends = self._total + np.cumsum([len(ids) for ids in rows], dtype=np.int64)
            self._total = int(ends[-1])
            self._ids.write(np.concatenate(rows).astype(np.int32).data)
            self._ends.write(ends.data)

    def close(self) -> dict[str, str]:
        """Close the files when they are on the disk; returns their checksums by their names."""
        return dict(zip(self._names, (self._ids.close(), self._ends.close()), strict=True))


def read_summary(folder: Path) -> PieceSummary | None:
    """Read the summary that `write_pieces` writes last; None if it is missing, or a file is not as it was written."""
    path = folder / SUMMARY_FILE
    if not path.exists():
        return None
    summary = from_json(PieceSummary, read_json(path, "a summary of pieces"), path)
    for name, written in summary.files.items():
        if not (folder / name).is_file() or checksum(folder / name) != written:
            return None
    return summary
