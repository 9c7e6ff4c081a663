"""`paranmt mine`: pairs of sentences that mean about the same, found in a file or between two."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from paranmt_hf.corpus.bitext.readers import Report
from paranmt_hf.corpus.jobs.engine import EngineConfig
from paranmt_hf.corpus.jobs.stages import ScoreStage
from paranmt_hf.corpus.release_run import Built, ReleaseConfig, holds_shards, make_release
from paranmt_hf.corpus.schema import MadeBy
from paranmt_hf.corpus.sentences import SentenceFile
from paranmt_hf.encoders.scorer import ScorerConfig
from paranmt_hf.errors import InputError
from paranmt_hf.search.index import Space, SpaceConfig, holds_vectors, prepared
from paranmt_hf.util.files import replacing
from paranmt_hf.util.progress import Progress
from paranmt_hf.util.settings import check, setting
from paranmt_hf.util.work import (
    Identity,
    as_json,
    describe_differences,
    keep_identity,
    locked,
    remove,
    remove_leftover,
    result_folder,
    sweep_removed,
    work_folder,
)

# Up to so many sentences each is compared with every other one.
MOST_EXACT = 250_000
WRITE_ROWS = 20_000
NEIGHBOURS, PAIRS = "neighbours.safetensors", "pairs.parquet"
IDENTITY_KEY = b"paranmt"
# Sentences below this cosine are not equal.
NEARLY_ONE = 0.999


@dataclass(frozen=True)
class MineConfig(SpaceConfig):
    """Which pairs are mined, and how they are searched."""

    top: int = setting(10, "nearest neighbours of each sentence that it may be paired with", at_least=1, at_most=1000)
    min_score: float = setting(0.8, "smallest cosine of a pair", at_least=-1, at_most=1)
    pairing: Literal["any", "mutual"] = setting(
        "any", "any: one sentence is a neighbour of the other; mutual: each of the other"
    )
    margin: Literal["none", "ratio", "distance"] = setting(
        "none", "rank pairs by their cosine over, or less, the mean with both's neighbours (Artetxe & Schwenk 2019)"
    )
    margin_neighbours: int = setting(4, "neighbours of that mean, k in the paper", at_least=1, at_most=1000)
    min_margin: float | None = setting(None, "with --margin: smallest margin score")
    max_pairs: int | None = setting(None, "keep the best so many", at_least=1)
    copies: bool = setting(False, "take each copy of a sentence for itself, and pair copies")
    probes: int = setting(16, "lists that each sentence looks into, where there are lists", at_least=1)
    checkpoint_seconds: float = setting(60.0, "seconds of comparing between two checkpoints", at_least=0)

    def __post_init__(self) -> None:
        super().__post_init__()
        check(self)
        if self.min_margin is not None and self.margin == "none":
            raise InputError("min_margin is for --margin ratio or distance; cosines have min_score")
        if self.margin != "none" and self.margin_neighbours > self.top:
            raise InputError(
                f"margin_neighbours {self.margin_neighbours} is above top {self.top}, the neighbours kept"
            )

    @property
    def identity(self) -> dict[str, Any]:
        """What determines the pairs."""
        return {name: value for name, value in asdict(self).items() if name != "checkpoint_seconds"}


@dataclass(frozen=True)
class MinedFile:
    """Pairs in a Parquet file: where it is, how many, and whether this call made it."""

    path: Path
    pairs: int
    fresh: bool


class Mining:
    """What is mined: one or two corpora, the encoder, the settings.

    Args:
        first: A text file with one sentence on a line, a Parquet file, or the folder of a release.
        second: Another one, for pairs between the two; without it, pairs inside the first.
        encoder: Gives the vectors; the small encoder of this package if left out.
        config: Which pairs are mined.
        column: Which column of Parquet, or side of a release.
        second_column: The same of the second corpus.
    """

    def __init__(
        self,
        first: str | Path,
        second: str | Path | None = None,
        *,
        encoder: ScorerConfig | None = None,
        config: MineConfig | None = None,
        column: str | None = None,
        second_column: str | None = None,
    ) -> None:
        self.encoder, self.config = encoder or ScorerConfig(), config or MineConfig()
        self._sources = [SentenceFile(first, column)]
        if second is not None:
            self._sources.append(SentenceFile(second, second_column))
        elif second_column is not None:
            raise InputError("--second-column is the column of a second file, and there is one file")

    @property
    def identity(self) -> Identity:
        """What determines the pairs, as JSON values; files are hashed each time that it is asked for."""
        files = [source.identity for source in self._sources]
        pairs = {"kind": "mined", "files": files, "mining": self.config.identity}
        return as_json({"pairs": pairs, "scorer": self.encoder.identity})

    def run(self, work: Path) -> Path:
        """Mine the pairs, or go on with it.

        Args:
            work: A folder for this alone, which the caller holds.

        Returns:
            A Parquet file in it: `first`, `second`, `cosine`, with a margin `margin`, and the numbers of the lines,
            from 1, `first_line` and `second_line`; the best pairs first.
        """
        work.mkdir(parents=True, exist_ok=True)
        identity = self.identity
        keep_identity(work, self._vectors_identity(identity), worth=holds_vectors, doing="mining")
        path = work / PAIRS
        if not path.exists() or _identity_of(path) != identity:
            self._mine(work, path, identity)
        return path

    def _vectors_identity(self, identity: Identity) -> Identity:
        """What determines the vectors and where they lie; other pairs are made of the same ones."""
        names = [*(entry.name for entry in fields(SpaceConfig)), "copies"]
        settings = {name: getattr(self.config, name) for name in names}
        return as_json({"files": identity["pairs"]["files"], "scorer": identity["scorer"], "search": settings})

    def _mine(self, work: Path, path: Path, identity: Identity) -> None:
        from paranmt_hf.search.margin import Pairs

        spaces = self._spaces(work)
        first, second = spaces[0], spaces[-1]
        pairs, margins = self._pairs(work, first, second)
        items = [first.items(pairs.first), second.items(pairs.second)]
        if first is second:
            items = [np.minimum(*items), np.maximum(*items)]
        pairs = Pairs(items[0], items[1], pairs.cosine)
        kept = self._kept(pairs, margins, first, second)
        score = pairs.cosine if margins is None else margins
        order = kept[np.lexsort((pairs.second[kept], pairs.first[kept], -score[kept]))][: self.config.max_pairs]
        if not len(order):
            raise InputError(
                f"no two sentences have a cosine of at least {self.config.min_score:g}"
                + ("" if self.config.min_margin is None else f" and a margin of at least {self.config.min_margin:g}")
                + "; lower it, or take another encoder"
            )
        _write(path, pairs.take(order), None if margins is None else margins[order], (first, second), identity)

    def _spaces(self, work: Path) -> list[Space]:
        """Encode the corpora; lists are only made of the one that is looked into, the last."""
        config, encoder, copies = self.config, self.encoder, self.config.copies
        if len(self._sources) == 1:
            return [prepared(work / "first", self._sources[0], encoder, config, most_exact=MOST_EXACT, copies=copies)]
        plain = replace(config, method="exact", lists=None)
        first = prepared(work / "first", self._sources[0], encoder, plain, most_exact=MOST_EXACT, copies=copies)
        # As much work as inside one corpus.
        most = MOST_EXACT**2 // len(first.sentences)
        second = prepared(work / "second", self._sources[1], encoder, config, most_exact=most, copies=copies)
        return [first, second]

    def _pairs(self, work: Path, first: Space, second: Space) -> tuple[Any, np.ndarray | None]:
        """Find neighbours; make pairs of places out of them, and their margin scores."""
        from paranmt_hf.search import margin
        from paranmt_hf.search.neighbours import LOWEST, Neighbours

        config = self.config
        # What is far away counts in the means of margins.
        at_least = config.min_score if config.margin == "none" else LOWEST
        options: dict[str, Any] = {"at_least": at_least, "repeats": second.lists is not None and first is second}
        # No sentence has more neighbours than there are others.
        sizes = len(first.sentences), len(second.sentences)
        forward = Neighbours(sizes[0], min(config.top, max(1, sizes[1] - (first is second))), **options)
        backward = forward if first is second else Neighbours(sizes[1], min(config.top, sizes[0]), **options)
        self._compare(work, first, second, forward, backward)
        if first is second:
            pairs = margin.pairs_within(forward, mutual=config.pairing == "mutual", at_least=config.min_score)
        else:
            mutual = config.pairing == "mutual"
            pairs = margin.pairs_between(forward, backward, mutual=mutual, at_least=config.min_score)
        if config.margin == "none":
            return pairs, None
        means = [margin.mean_similarity(found, config.margin_neighbours) for found in (forward, backward)]
        return pairs, margin.margins(pairs, means[0], means[1], config.margin)

    def _compare(self, work: Path, first: Space, second: Space, forward: Any, backward: Any) -> None:  # noqa: ANN401
        """Compare the vectors, going on at the last checkpoint."""
        from paranmt_hf.search import inverted_index
        from paranmt_hf.search.neighbours import between, restore, save, within

        tables = {"forward": forward} if first is second else {"forward": forward, "backward": backward}
        search = json.dumps({**self.config.identity, "min_margin": None, "max_pairs": None, "pairing": None})
        done = restore(work / NEIGHBOURS, tables, search)
        if second.lists is not None:
            options = (second.lists, self.config.probes, forward, backward)
            steps = inverted_index.neighbours(first.vectors, second.vectors, *options, done=done)
        elif first is second:
            steps = within(first.vectors, forward, done=done)
        else:
            steps = between(first.vectors, second.vectors, forward, backward, done=done)
        total, saved, fresh = len(first.sentences), time.monotonic(), 0
        with Progress("compare", total) as progress:
            for part in steps:
                done, fresh = done + 1, fresh + 1
                progress.advance_to(int(part * total))
                if time.monotonic() - saved >= self.config.checkpoint_seconds:
                    save(work / NEIGHBOURS, done, tables, search)
                    saved, fresh = time.monotonic(), 0
        if fresh:
            save(work / NEIGHBOURS, done, tables, search)

    def _kept(self, pairs: Any, margins: np.ndarray | None, first: Space, second: Space) -> np.ndarray:  # noqa: ANN401
        """Indices of the pairs that are wide enough apart from others, and no copies of one sentence."""
        kept = np.ones(len(pairs), bool)
        if margins is not None and self.config.min_margin is not None:
            kept = margins >= np.float32(self.config.min_margin)
        if first is not second and not self.config.copies:
            near = np.flatnonzero(kept & (pairs.cosine > NEARLY_ONE))
            for start in range(0, len(near), WRITE_ROWS):
                some = near[start : start + WRITE_ROWS]
                sides = first.sentences.take(pairs.first[some]), second.sentences.take(pairs.second[some])
                kept[some] = ~pc.equal(*sides).to_numpy(zero_copy_only=False)
        return np.flatnonzero(kept)


def _write(
    path: Path,
    pairs: Any,  # noqa: ANN401
    margins: np.ndarray | None,
    spaces: tuple[Space, Space],
    identity: Identity,
) -> None:
    """Write pairs in their order as Parquet."""
    text = [pa.field(name, pa.string(), nullable=False) for name in ("first", "second")]
    numbers = [pa.field(name, pa.float32(), nullable=False) for name in ("cosine", "margin")]
    lines = [pa.field(name, pa.int64(), nullable=False) for name in ("first_line", "second_line")]
    fields = [*text, *numbers[: 1 if margins is None else 2], *lines]
    schema = pa.schema(fields, metadata={IDENTITY_KEY: json.dumps(identity).encode()})
    with replacing(path) as aside, pq.ParquetWriter(aside, schema, compression="zstd") as writer:
        for start in range(0, len(pairs), WRITE_ROWS):
            chosen = np.arange(start, min(start + WRITE_ROWS, len(pairs)))
            sides = list(zip(spaces, (pairs.first[chosen], pairs.second[chosen]), strict=True))
            columns = [space.sentences.take(items).cast(pa.string()) for space, items in sides]
            columns.append(pa.array(pairs.cosine[chosen].clip(-1, 1)))
            columns += [] if margins is None else [pa.array(margins[chosen])]
            columns += [pa.array(space.sentences.lines(items) + 1) for space, items in sides]
            writer.write_table(pa.table(columns, schema=schema))


def mine_pairs(mining: Mining, out: str | Path) -> MinedFile:
    """Mine pairs into a Parquet file; its columns are those of `Mining.run`.

    Args:
        mining: What is mined.
        out: The file. Work in progress lies in `<out>.work`; the same call goes on with it.
    """
    out = result_folder(out)
    identity, work = mining.identity, work_folder(out)
    if (rows := _found(out, identity)) is not None:
        # A kill at the very end leaves a work folder, or one that is half removed.
        sweep_removed(work)
        remove_leftover(out, "mine")
        return MinedFile(out, rows, fresh=False)
    with locked(work, "mine", worth=holds_vectors):
        made = mining.run(work / "mining")
        rows = pq.read_metadata(made).num_rows
        made.replace(out)
        remove(work)
    return MinedFile(out, rows, fresh=True)


def _found(out: Path, identity: Identity) -> int | None:
    """Number of pairs of a file that was mined already with the same settings; None where there is no file."""
    if not out.exists():
        return None
    known = _identity_of(out)
    if known is None:
        raise InputError(f"{out} is no file of mined pairs; choose another --out or move it away")
    if differences := describe_differences(known, identity):
        raise InputError(f"{out} was mined with other settings: {differences}; choose another --out or delete it")
    return int(pq.read_metadata(out).num_rows)


def _identity_of(path: Path) -> Identity | None:
    """What determined the pairs of a file; None for any other file."""
    try:
        known = json.loads((pq.read_metadata(path).metadata or {})[IDENTITY_KEY])
    except (pa.ArrowException, OSError, KeyError, ValueError):
        return None
    return known if isinstance(known, dict) else None


def mine(
    mining: Mining,
    out: str | Path,
    *,
    release: ReleaseConfig,
    engine: EngineConfig | None = None,
    made_by: MadeBy = "unknown",
) -> Built:
    """Mine pairs and release them; the encoder that found them is the scorer.

    Args:
        mining: What is mined.
        out: Folder of the release. Work in progress lies in `<out>.work`; the same call goes on with it.
        release: Licence and form of the release.
        engine: Where the score columns are computed.
        made_by: Who wrote the sentences; the card says so.
    """
    out = result_folder(out)
    release.check_license()
    mining.encoder.check_language(release.language)
    if made_by not in get_args(MadeBy):
        raise InputError(f"made_by must be one of {', '.join(get_args(MadeBy))}, was {made_by!r}")
    identity = mining.identity
    identity["pairs"] |= {} if made_by == "unknown" else {"made_by": made_by}

    stage = ScoreStage(mining.encoder, language=release.language)
    identity |= stage.identity
    return make_release(
        lambda report: _rows(mining.run(work_folder(out) / "mining"), report, release.rows_per_shard),
        out,
        identity,
        [stage],
        release,
        engine,
        command="mine",
        worth=lambda work: holds_shards(work) or holds_vectors(work),
    )


def _rows(pairs: Path, report: Report, rows: int) -> Iterator[pa.Table]:
    """Turn mined pairs into rows of a release; their ids are their ranks."""
    with pq.ParquetFile(pairs) as file:
        for batch in file.iter_batches(rows, columns=["first", "second"]):
            ids = np.arange(report.read, report.read + batch.num_rows)
            origin = pa.array(["mined"]).take(pa.array(np.zeros(batch.num_rows, np.int64)))
            report.read += batch.num_rows
            report.kept += batch.num_rows
            yield pa.table(
                [pa.array(ids), batch["first"], batch["second"], origin],
                names=["id", "reference", "translation", "origin"],
            )
