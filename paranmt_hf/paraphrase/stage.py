"""Sentences of a shard become their paraphrases: what the shard jobs run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, Protocol

import pyarrow as pa

from paranmt_hf.errors import InputError
from paranmt_hf.hub.repository import locate
from paranmt_hf.paraphrase.config import ParaphraseConfig
from paranmt_hf.protocols import Encoder

# Rows of one sorted window: enough for batches of equal lengths, few enough for progress to move.
WINDOW = 500
SCHEMA = pa.schema(
    {
        "index": pa.int64(),
        "source": pa.string(),
        "paraphrase": pa.string(),
        "rank": pa.int32(),
        "score": pa.float32(),
        "note": pa.string(),
    }
)
# Settings that change no paraphrase.
WITHOUT_EFFECT = ("batch_tokens", "device")
Report = Callable[[int], None]
Work = Callable[[pa.Table, Report], tuple[pa.Table, dict[str, int]]]


class Scorer(Protocol):
    """The settings of a scorer."""

    @property
    def identity(self) -> dict[str, Any]:
        """What determines the scores, as JSON values."""
        ...

    def load(self) -> Encoder:
        """Load the encoder."""
        ...


@dataclass(frozen=True)
class ParaphraseStage:
    """Shards with `index` and `source` become shards with every column of `SCHEMA`.

    A sentence has a row for each paraphrase, `rank` counted from 1; one without has a row of rank 0 and a note.

    Attributes:
        model: Folder or Hub id of the encoder-decoder.
        config: How it searches.
        scorer: The scorer.
        threads: CPU threads of one worker; they change no result.
    """

    model: str
    config: ParaphraseConfig
    scorer: Scorer
    threads: int | None = None
    label: str = "paraphrase"

    @cached_property
    def identity(self) -> dict[str, Any]:
        """What determines the paraphrases; the model is hashed once, and the answer travels with the stage."""
        settings = {name: value for name, value in asdict(self.config).items() if name not in WITHOUT_EFFECT}
        if self.config.sample:
            # What is drawn depends on which sentences are drawn together.
            settings["batch_tokens"] = self.config.batch_tokens
        files = locate(self.model)
        return {
            "model": {"name": files.name, "revision": files.revision},
            "generation": settings,
            "scorer": self.scorer.identity,
        }

    def load(self) -> Work:
        """Load the paraphraser.

        Raises:
            InputError: The model is not the one that the job was started with.
        """
        import torch

        from paranmt_hf.paraphrase.paraphraser import Paraphraser

        if self.threads is not None:
            torch.set_num_threads(self.threads)
        files = locate(self.model)
        if files.revision != self.identity["model"]["revision"]:
            raise InputError(f"{self.model} has changed since the work began; put the former model back")
        paraphraser = Paraphraser(files, self.config, scorer=self.scorer.load())

        def work(table: pa.Table, report: Report) -> tuple[pa.Table, dict[str, int]]:
            parts, done = [], 0
            for start in range(0, max(1, table.num_rows), WINDOW):
                window = table.slice(start, WINDOW)
                parts.append(paraphrase_table(window, paraphraser))
                done += window.num_rows
                report(done)
            whole = pa.concat_tables(parts)
            notes = whole["note"].drop_null().value_counts().to_pylist()
            return whole, {entry["values"]: entry["counts"] for entry in notes}

        return work


def paraphrase_table(table: pa.Table, paraphraser: Any) -> pa.Table:  # noqa: ANN401 - a Paraphraser
    """Paraphrase sentences.

    Args:
        table: Columns `index` (int64) and `source` (string; null where it is not UTF-8).
        paraphraser: The paraphraser.

    Returns:
        A table of `SCHEMA` in the order of the input; of one sentence the most probable paraphrase first.
    """
    sources = table["source"].to_pylist()
    first = table["index"][0].as_py() if table.num_rows else 0
    results = paraphraser.paraphrase(sources, draw=first)
    columns: dict[str, list[Any]] = {name: [] for name in SCHEMA.names}
    for index, source, result in zip(table["index"].to_pylist(), sources, results, strict=True):
        rows = [(each.text, rank, each.score, None) for rank, each in enumerate(result.paraphrases, 1)]
        for text, rank, score, note in rows or [(None, 0, None, result.note)]:
            for name, value in zip(SCHEMA.names, (index, source, text, rank, score, note), strict=True):
                columns[name].append(value)
    return pa.table(columns, schema=SCHEMA)
