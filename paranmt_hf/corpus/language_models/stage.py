"""The stage that asks a language model for a translation or a paraphrase of each row, and what it costs."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from paranmt_hf.corpus.jobs.shards import Manifest, Report, Work
from paranmt_hf.corpus.language_models.answers import ANSWERS_FILE, Answer, Judge, KeptAnswers
from paranmt_hf.corpus.language_models.config import LanguageModelConfig, ModelTask
from paranmt_hf.corpus.language_models.requests import Asker, MinuteLimits, cost_of, money, price
from paranmt_hf.corpus.language_models.server import OPTIONAL, Server
from paranmt_hf.errors import InputError
from paranmt_hf.util.wording import counted

logger = logging.getLogger(__name__)

# Rows that are asked for together, and the first ones, of which at least one must be usable before more are paid for.
WINDOW, FIRST = 2000, 50


@dataclass(frozen=True)
class AskStage:
    """Shards with `reference`, and `source` to translate, get `translation` and `translation_score`.

    All requests go out from one process, which keeps to the limits; the server does the work.
    """

    config: LanguageModelConfig  # The language model, and what it is asked
    task: ModelTask = "translate"  # Translate `source`, or paraphrase `reference`
    answers: Path | None = None  # The file of answers; see `ready`
    begun: bool = False  # Whether shards with usable answers are done; see `ready`
    unit: str = "sentences"

    @property
    def label(self) -> str:
        """What the stage does."""
        return self.task

    @cached_property
    def identity(self) -> dict[str, Any]:
        """Everything that determines the rows; the server's address is not part of it, because servers move."""
        part = "translator" if self.task == "translate" else "paraphraser"
        return {part: {**self.config.request_identity(self.task), **Judge.identity(self.config)}}

    def ready(self, manifest: Manifest, work: Path) -> AskStage:
        """Log the estimated cost; returns the stage with the file of answers in the work folder."""
        done = work / f"1-{self.label}"
        left = [path for path in manifest.paths() if not (done / path.name).exists()]
        if left:
            cost = cost_of(self.config, self.task, map(pq.read_table, left))
            where = f"{self.config.name} at {self.config.address}"
            kept = " less what is kept from before" if (work / ANSWERS_FILE).exists() else ""
            logger.info(f"{where}: {cost.summary()}{kept}")
        finished = [done / path.name for path in manifest.paths() if (done / path.name).exists()]
        begun = any(pq.read_metadata(path).num_rows for path in finished)
        return replace(self, answers=work / ANSWERS_FILE, begun=begun)

    def warnings(self) -> list[str]:
        """Notes for the readers of the card: parameters that the server refused, so that requests left them out."""
        if self.answers is None or not self.answers.exists():
            return []
        with closing(KeptAnswers(self.answers, {})) as kept:
            left_out = sorted(kept.left_out())
        return [f"the server of {self.config.name} takes no {name}: {OPTIONAL[name]}" for name in left_out]

    def tell_use(self) -> None:
        """Log the number of tokens that the server counted for all stored answers."""
        if self.answers is None or not self.answers.exists():
            return
        with closing(KeptAnswers(self.answers, {})) as kept:
            answers, input_tokens, output_tokens = kept.tokens()
        if input_tokens + output_tokens:
            paid = price(self.config, input_tokens, output_tokens)
            logger.info(
                f"{counted(answers, 'answer')}, {input_tokens:,} tokens of requests and {output_tokens:,} of answers"
                + ("" if paid is None else f", which cost {money(paid)}")
            )

    def load(self) -> Work:
        # `ready` sets it.
        assert self.answers is not None
        server = Server(self.config)
        server.check()
        with closing(KeptAnswers(self.answers, {})) as kept:
            server.left_out |= kept.left_out()
        return _AskWork(self, server, self.answers)


class _AskWork:
    """Requests the missing answers, shard by shard."""

    def __init__(self, stage: AskStage, server: Server, answers: Path) -> None:
        self._path, self._config, self._task = answers, stage.config, stage.task
        self._judge = Judge(self._config, self._task)
        limits = MinuteLimits(self._config.requests_per_minute, self._config.tokens_per_minute)
        self._server, self._asker = server, Asker(server, self._config, limits)
        # A run that continues after usable answers does not check the first ones again.
        self._seen, self._good = 0, int(stage.begun)
        self._reasons: Counter[str] = Counter()

    def __call__(self, table: pa.Table, report: Report) -> tuple[pa.Table, dict[str, int]]:
        parts, dropped, done = [], Counter[str](), 0
        with closing(KeptAnswers(self._path, self._config.request_identity(self._task))) as kept:
            for window in _windows(table, 0 if self._seen else FIRST):
                part, missing = self._answered(window, kept, report, done)
                parts.append(part)
                dropped.update(missing)
                self._reasons.update(missing)
                done += window.num_rows
                self._seen += window.num_rows
                self._good += part.num_rows
                report(done)
                self._check_useful()
        return pa.concat_tables(parts), dict(dropped)

    def _answered(
        self, table: pa.Table, kept: KeptAnswers, report: Report, done: int
    ) -> tuple[pa.Table, dict[str, int]]:
        """Add translations to a table, as `translate_table` does, and count the dropped rows by reason."""
        references = table["reference"].to_pylist()
        sentences = table["source"].to_pylist() if self._task == "translate" else references
        answers = self._answers(sentences, kept, lambda count: report(done + count))
        texts, reasons = self._judge.judge(sentences, references, answers)
        scores = np.array([np.nan if answer.score is None else answer.score for answer in answers], np.float32)
        columns = {
            "translation": pa.array(texts, pa.string()),
            "translation_score": pa.array(scores, from_pandas=True),
        }
        rest = {name: table[name] for name in table.column_names if name not in columns}
        usable = pa.table({**rest, **columns}).filter(pa.array([text is not None for text in texts], pa.bool_()))
        return usable, dict(Counter(reason for reason in reasons if reason))

    def _answers(self, sentences: list[str], kept: KeptAnswers, report: Callable[[int], None]) -> list[Answer]:
        """Find the answer of each sentence, or request it; equal sentences are requested once."""
        distinct = list(dict.fromkeys(sentences))
        found = kept.find(distinct)
        missing = [sentence for sentence in distinct if sentence not in found]
        done, template = len(sentences) - len(missing), self._config.template(self._task)
        prompts = [template.replace("{sentence}", sentence) for sentence in missing]
        for index, answer in self._asker.ask(prompts):
            self._keep_left_out(kept)
            kept.add(missing[index], answer)
            found[missing[index]] = answer
            done += 1
            report(done)
        return [found[sentence] for sentence in sentences]

    def _keep_left_out(self, kept: KeptAnswers) -> None:
        """Record the parameters that the server refused, before the first answer without them is kept."""
        fresh = self._server.left_out - kept.left_out()
        if "temperature" in fresh and kept.tokens()[0]:
            count = counted(kept.tokens()[0], "answer")
            raise InputError(
                f"{self._server.address} takes no temperature, but {count} came from requests with one: continue "
                f"with the server that took it, or delete {self._path.parent} to start again"
            )
        kept.leave_out(fresh)

    def _check_useful(self) -> None:
        """Stop if none of the first answers is usable, before many are paid for."""
        if self._seen >= FIRST and not self._good:
            counts = ", ".join(f"{count:,} {reason}" for reason, count in self._reasons.most_common())
            raise InputError(
                f"none of the first {self._seen:,} answers is usable ({counts}): check `prompt`, the model and "
                f"`target_language`; the answers are kept in {self._path}, delete its folder to start again"
            )


def holds_answers(work: Path) -> bool:
    """Whether a work folder holds answers of a server, which may have been paid for."""
    return (work / ANSWERS_FILE).exists()


def _windows(table: pa.Table, first: int) -> Iterator[pa.Table]:
    """Split a table; the first piece may be shorter, and an empty table is one piece."""
    start, size = 0, first or WINDOW
    while start < max(1, table.num_rows):
        yield table.slice(start, size)
        start, size = start + size, WINDOW
