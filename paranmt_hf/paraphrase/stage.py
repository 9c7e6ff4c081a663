"""Sentences of a shard become their paraphrases: what the shard jobs run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, Protocol

import pyarrow as pa

from paranmt_hf.errors import InputError
from paranmt_hf.hub.repository import Model, locate
from paranmt_hf.paraphrase.config import ParaphraseConfig
from paranmt_hf.paraphrase.syntax.kind import check_control
from paranmt_hf.text.protocols import Encoder, Syntax

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
# With the template that each paraphrase was generated after.
CONTROLLED_SCHEMA = SCHEMA.insert(3, pa.field("template", pa.string()))
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


class TreeSource(Protocol):
    """The settings of what gives trees."""

    @property
    def identity(self) -> dict[str, Any]:
        """What determines the trees, as JSON values."""
        ...

    def load(self) -> Syntax:
        """Start the parser."""
        ...


@dataclass(frozen=True)
class Control:
    """What a syntactically controlled network is asked for.

    Attributes:
        templates: The templates, as the network knows them.
        trees: Gives the trees of sentences.
    """

    templates: tuple[str, ...]
    trees: TreeSource


@dataclass(frozen=True)
class ParaphraseStage:
    """Shards with `index` and `source` become shards with every column of `schema`.

    A sentence has a row for each paraphrase, `rank` counted from 1; one without has a row of rank 0 and a note.

    Attributes:
        model: Folder or Hub id of the encoder-decoder.
        config: How it searches.
        scorer: The scorer.
        threads: CPU threads of one worker; they change no result.
        control: Templates and trees, for a syntactically controlled network.
    """

    model: str
    config: ParaphraseConfig
    scorer: Scorer
    threads: int | None = None
    label: str = "paraphrase"
    unit: str = "sentences"
    control: Control | None = None

    @property
    def schema(self) -> pa.Schema:
        """The columns of a result."""
        return SCHEMA if self.control is None else CONTROLLED_SCHEMA

    @cached_property
    def identity(self) -> dict[str, Any]:
        """What determines the paraphrases; the model is hashed once, and the answer travels with the stage."""
        from paranmt_hf.paraphrase.paraphraser import resolve_device, resolve_dtype

        settings = {name: value for name, value in asdict(self.config).items() if name not in WITHOUT_EFFECT}
        device = resolve_device(self.config.device)
        settings["dtype"] = str(resolve_dtype(self.config, device)).removeprefix("torch.")
        if self.config.sample:
            # What is drawn depends on which sentences are drawn together, and on what draws.
            settings |= {"batch_tokens": self.config.batch_tokens, "device": device.partition(":")[0]}
        files, control = locate(self.model), self.control
        check_control(files, templates=control is not None)
        return {
            "model": {"name": files.name, "revision": files.revision},
            "generation": settings,
            "scorer": self.scorer.identity,
            **({"templates": list(control.templates), "trees": control.trees.identity} if control else {}),
        }

    def _paraphraser(self, files: Model) -> Any:  # noqa: ANN401 - a Paraphraser, which brings torch
        if self.control is None:
            from paranmt_hf.paraphrase.paraphraser import Paraphraser

            return Paraphraser(files, self.config, scorer=self.scorer.load())
        from paranmt_hf.paraphrase.syntax.paraphraser import ControlledParaphraser

        return ControlledParaphraser(
            files,
            self.config,
            syntax=self.control.trees.load(),
            templates=self.control.templates,
            scorer=self.scorer.load(),
        )

    def load(self) -> Work:
        """Load the paraphraser.

        Raises:
            InputError: The model is not the one that the job was started with.
        """
        import torch

        if self.threads is not None:
            torch.set_num_threads(self.threads)
        files = locate(self.model)
        if files.revision != self.identity["model"]["revision"]:
            raise InputError(f"{self.model} has changed since the work began; put the former model back")
        paraphraser = self._paraphraser(files)

        def work(table: pa.Table, report: Report) -> tuple[pa.Table, dict[str, int]]:
            parts, done = [], 0
            for start in range(0, max(1, table.num_rows), WINDOW):
                window = table.slice(start, WINDOW)
                parts.append(paraphrase_table(window, paraphraser, self.schema))
                done += window.num_rows
                report(done)
            whole = pa.concat_tables(parts)
            notes = whole["note"].drop_null().value_counts().to_pylist()
            return whole, {entry["values"]: entry["counts"] for entry in notes}

        return work


def paraphrase_table(table: pa.Table, paraphraser: Any, schema: pa.Schema = SCHEMA) -> pa.Table:  # noqa: ANN401 - a Paraphraser
    """Paraphrase sentences.

    Args:
        table: Columns `index` (int64) and `source` (string; null where it is not UTF-8).
        paraphraser: The paraphraser.
        schema: The columns of the result.

    Returns:
        A table of `schema` in the order of the input; of one sentence the most probable paraphrase first, or with
        templates the one with the highest score.
    """
    sources = table["source"].to_pylist()
    first = table["index"][0].as_py() if table.num_rows else 0
    results = paraphraser.paraphrase(sources, draw=first)
    rows: list[dict[str, Any]] = []
    for index, source, result in zip(table["index"].to_pylist(), sources, results, strict=True):
        line = {"index": index, "source": source}
        for rank, each in enumerate(result.paraphrases, 1):
            found = {"paraphrase": each.text, "template": each.template, "score": each.score}
            rows.append({**line, **found, "rank": rank})
        if not result.paraphrases:
            rows.append({**line, "rank": 0, "note": result.note})
    return pa.table({name: [row.get(name) for row in rows] for name in schema.names}, schema=schema)
