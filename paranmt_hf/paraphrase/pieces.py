"""Pairs as piece ids on disk, and batches of pairs of similar length."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa
import torch
from torch.utils.data import Dataset

from paranmt_hf.errors import InputError
from paranmt_hf.paraphrase.modeling_paranmt_lstm import IGNORED
from paranmt_hf.paraphrase.training_pairs import held_out_keys
from paranmt_hf.util.files import ChecksummedFile, checksum, write_bytes
from paranmt_hf.util.records import from_json, read_json

logger = logging.getLogger(__name__)
SUMMARY_FILE = "pieces.json"
Part = Literal["train", "held-out"]
PARTS: tuple[Part, Part] = ("train", "held-out")
# The control is the second sequence that a controlled model reads: the tree or template of its target.
SIDES = ("source", "target", "control")
Cut = Callable[[list[str]], Sequence[Sequence[int]]]  # Cuts a column of text into ids, special pieces included


@dataclass(frozen=True)
class PieceSummary:
    """The content of `pieces.json`: pairs of each part, checksums of the files, and pairs that were left out."""

    pairs: dict[str, int]
    files: dict[str, str]
    too_long: int
    left_out: dict[str, int]  # Before, by reason


class PieceStore:
    """Pairs of one part written by `write_pieces`, as ids of source, target and, if there is one, control."""

    def __init__(self, folder: Path, part: Part) -> None:
        sides = [side for side in SIDES if (folder / f"{part}-{side}.ids").exists()]
        self._ids = [_mapped(folder / f"{part}-{side}.ids", np.int32) for side in sides]
        self._ends = [_mapped(folder / f"{part}-{side}.ends", np.int64) for side in sides]

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
    tables: Iterable[tuple[pa.ChunkedArray, ...]],
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
    names = [f"{part}-{side}.{kind}" for part in PARTS for side in cuts for kind in ("ids", "ends")]
    files = {name: ChecksummedFile(folder / name) for name in names}
    totals, too_long = dict.fromkeys(names, 0), 0
    pairs: dict[str, int] = dict.fromkeys(PARTS, 0)
    for *columns, keys in tables:
        sides = {side: cuts[side](column.to_pylist()) for side, column in zip(cuts, columns, strict=True)}
        lengths = {side: np.fromiter(map(len, cut), np.int64, len(cut)) for side, cut in sides.items()}
        short = np.maximum(lengths["source"], lengths["target"]) <= longest
        too_long += int(np.count_nonzero(~short))
        apart = held_out_keys(keys, held_out)
        for part, chosen in zip(PARTS, (short & ~apart, short & apart), strict=True):
            rows = np.flatnonzero(chosen)
            pairs[part] += len(rows)
            for side, cut in sides.items():
                ends = totals[f"{part}-{side}.ends"] + np.cumsum(lengths[side][rows])
                if len(rows):
                    totals[f"{part}-{side}.ends"] = int(ends[-1])
                    ids = np.concatenate([cut[row] for row in rows.tolist()]).astype(np.int32)
                    files[f"{part}-{side}.ids"].write(ids.data)
                files[f"{part}-{side}.ends"].write(ends.astype(np.int64).data)
    checksums = {name: file.close() for name, file in files.items()}
    if not pairs["train"]:
        raise InputError(
            f"nothing to train on: of {sum(pairs.values()) + too_long:,} chosen pairs {too_long:,} have a sentence of "
            f"more than {longest} pieces, and {pairs['held-out']:,} are held out; look at the data and at the options "
            "that choose"
        )
    if held_out and not pairs["held-out"]:
        logger.warning(
            f"nothing will be measured: of {pairs['train']:,} pairs none is held out at a share of {held_out:g}; "
            "raise `held_out`, or give more pairs"
        )
    summary = PieceSummary(pairs, checksums, too_long, left_out())
    write_bytes(folder / SUMMARY_FILE, json.dumps(asdict(summary)).encode())
    return summary


def read_summary(folder: Path) -> PieceSummary | None:
    """Read the summary that `write_pieces` writes last; None if it is missing, or a file is damaged."""
    path = folder / SUMMARY_FILE
    if not path.exists():
        return None
    try:
        summary = from_json(PieceSummary, read_json(path, "a summary of pieces"), path)
        if all((folder / name).is_file() and checksum(folder / name) == sum for name, sum in summary.files.items()):
            return summary
    except InputError:
        pass
    return None


class Batches(Dataset[dict[str, torch.Tensor]]):
    """All batches of a run by step, so that a run continues at any step as if never interrupted.

    Batches hold pairs of similar length: pairs times pieces of the longest are at most `budget`. Pairs of equal length
    are shuffled in each epoch, and so are the batches.
    """

    def __init__(self, store: PieceStore, budget: int, *, epochs: int, seed: int, pad: int) -> None:
        self._store, self._seed, self._pad, self._epochs = store, seed, pad, epochs
        self._lengths = store.lengths
        self._starts = _cut_at(np.sort(self._lengths), budget)
        self._order: tuple[int, np.ndarray, np.ndarray] | None = None

    @property
    def per_epoch(self) -> int:
        """Number of batches of an epoch."""
        return len(self._starts) - 1

    def __len__(self) -> int:
        return self._epochs * self.per_epoch

    def __getitem__(self, step: int) -> dict[str, torch.Tensor]:
        return collate(*self._store.take(self.pairs(step)), pad=self._pad)

    def pairs(self, step: int) -> np.ndarray:
        """Indices of the pairs of a step [pair]."""
        epoch, position = divmod(step, self.per_epoch)
        if self._order is None or self._order[0] != epoch:
            generator = np.random.default_rng([self._seed, epoch])
            ties = generator.permutation(len(self._lengths))
            order = ties[np.argsort(self._lengths[ties], kind="stable")]
            self._order = (epoch, order, generator.permutation(self.per_epoch))
        _, order, batches = self._order
        batch = int(batches[position])
        return order[self._starts[batch] : self._starts[batch + 1]]


def _cut_at(lengths: np.ndarray, budget: int) -> np.ndarray:
    """Split sorted lengths [pair] into batches; returns the start of each, and the end [batch + 1]."""
    ends, bounds = len(lengths), [len(lengths)]
    while ends:
        # From the longest, whose batch is the smallest.
        ends = max(0, ends - max(1, budget // int(lengths[ends - 1])))
        bounds.append(ends)
    return np.array(bounds[::-1])


def collate(
    sources: Sequence[np.ndarray],
    targets: Sequence[np.ndarray],
    controls: Sequence[np.ndarray] | None = None,
    *,
    pad: int,
) -> dict[str, torch.Tensor]:
    """Create a batch: sources and controls padded with `pad`, targets with the index that the loss ignores."""
    return {
        "input_ids": _filled(sources, pad),
        "attention_mask": _filled([np.ones_like(ids) for ids in sources], 0),
        "labels": _filled(targets, IGNORED),
        **({"control_ids": _filled(controls, pad)} if controls is not None else {}),
    }


def _filled(rows: Sequence[np.ndarray], value: int) -> torch.Tensor:
    filled = np.full((len(rows), max(map(len, rows))), value, np.int64)
    for row, ids in zip(filled, rows, strict=True):
        row[: len(ids)] = ids
    return torch.from_numpy(filled)
