"""The stage that asks a language model for a translation or a paraphrase of each row, and what it costs."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from paranmt_hf.corpus.jobs.shards import Manifest, Report, Work
from paranmt_hf.corpus.language_models.answers import ANSWERS_FILE, Answer, Judge, KeptAnswers
from paranmt_hf.corpus.language_models.config import LanguageModelConfig, Task, fill
from paranmt_hf.corpus.language_models.requests import Asker, MinuteLimits, cost_of, money, price
from paranmt_hf.corpus.language_models.server import Server
from paranmt_hf.errors import InputError

logger = logging.getLogger(__name__)

# Rows that are asked for together, and the first ones: if none of these is any good, the others would be paid for
# nothing.
WINDOW, FIRST = 2000, 50


@dataclass(frozen=True)
class AskStage:
    """Shards with `reference`, and `source` to translate, get `translation` and `translation_score`.

    All requests go out from one process, which keeps to the limits; the server does the work.

    Attributes:
        config: The language model, and what it is asked.
        task: Translate `source`, or paraphrase `reference`.
        answers: The file of answers, once it is known: see `ready`.
        begun: Whether shards with good answers are done, as `ready` finds.
    """

    config: LanguageModelConfig
    task: Task = "translate"
    answers: Path | None = None
    begun: bool = False
    unit: str = "sentences"

    @property
    def label(self) -> str:
        """What the stage does."""
        return self.task

    @cached_property
    def identity(self) -> dict[str, Any]:
        """What determines the rows; the server's address is not among it, because servers move."""
        part = "translator" if self.task == "translate" else "paraphraser"
        return {part: {**self.config.request_identity(self.task), **Judge.identity(self.config)}}

    def ready(self, manifest: Manifest, work: Path) -> AskStage:
        """Say what the requests will cost, and where answers are kept.

        Args:
            manifest: The shards of input.
            work: The work folder.
        """
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

    def tell_use(self) -> None:
        """Say how many tokens the server has counted for all answers that are kept."""
        if self.answers is None or not self.answers.exists():
            return
        kept = KeptAnswers(self.answers, {})
        answers, input_tokens, output_tokens = kept.tokens()
        kept.close()
        if input_tokens + output_tokens:
            paid = price(self.config, input_tokens, output_tokens)
            logger.info(
                f"{answers:,} answers, {input_tokens:,} tokens of requests and {output_tokens:,} of answers"
                + ("" if paid is None else f", which cost {money(paid)}")
            )

    def load(self) -> Work:
        """Reach the server."""
        if self.answers is None:
            raise ValueError("`ready` says where answers are kept")
        path, config = self.answers, self.config
        judge, server = Judge(config, self.task), Server(config)
        server.check()
        limits = MinuteLimits(config.requests_per_minute, config.tokens_per_minute)
        # A run that continues after good answers does not check the first ones again.
        seen, good = 0, int(self.begun)
        reasons: Counter[str] = Counter()

        def work(table: pa.Table, report: Report) -> tuple[pa.Table, dict[str, int]]:
            nonlocal seen, good
            parts, dropped, done = [], Counter[str](), 0
            kept = KeptAnswers(path, config.request_identity(self.task))
            try:
                for window in _windows(table, 0 if seen else FIRST):
                    asked = _Asking(config, self.task, kept, Asker(server, config, limits))
                    part, missing = asked.answered(window, judge, partial(_ahead, report, done))
                    parts.append(part)
                    dropped.update(missing)
                    reasons.update(missing)
                    done, seen, good = done + window.num_rows, seen + window.num_rows, good + part.num_rows
                    report(done)
                    _check_useful(seen, good, reasons, path)
            finally:
                kept.close()
            return pa.concat_tables(parts), dict(dropped)

        return work


class _Asking:
    """Asks for what is not kept yet."""

    def __init__(self, config: LanguageModelConfig, task: Task, kept: KeptAnswers, asker: Asker) -> None:
        self._template, self._task, self._kept, self._asker = config.template(task), task, kept, asker

    def answered(
        self, table: pa.Table, judge: Judge, report: Callable[[int], None]
    ) -> tuple[pa.Table, dict[str, int]]:
        """Give a table its translations, as `translate_table` does, and count the rows left out, by reason."""
        references = table["reference"].to_pylist()
        sentences = table["source"].to_pylist() if self._task == "translate" else references
        answers = self._answers(sentences, report)
        texts, reasons = judge.judge(sentences, references, answers)
        scores = np.array([np.nan if answer.score is None else answer.score for answer in answers], np.float32)
        columns = {
            "translation": pa.array(texts, pa.string()),
            "translation_score": pa.array(scores, from_pandas=True),
        }
        rest = {name: table[name] for name in table.column_names if name not in columns}
        kept = pa.table({**rest, **columns}).filter(pa.array([text is not None for text in texts], pa.bool_()))
        return kept, dict(Counter(reason for reason in reasons if reason))

    def _answers(self, sentences: list[str], report: Callable[[int], None]) -> list[Answer]:
        """Find the answer of each sentence, or ask for it; equal sentences are asked for once."""
        distinct = list(dict.fromkeys(sentences))
        found = self._kept.find(distinct)
        missing = [sentence for sentence in distinct if sentence not in found]
        done = len(sentences) - len(missing)
        prompts = [fill(self._template, sentence) for sentence in missing]
        for index, answer in self._asker.ask(prompts):
            self._kept.add(missing[index], answer)
            found[missing[index]] = answer
            done += 1
            report(done)
        return [found[sentence] for sentence in sentences]


def holds_answers(work: Path) -> bool:
    """Tell whether a work folder holds answers of a server, which may have cost something."""
    return (work / ANSWERS_FILE).exists()


def _ahead(report: Report, before: int, count: int) -> None:
    report(before + count)


def _windows(table: pa.Table, first: int) -> Iterator[pa.Table]:
    """Cut a table, the first piece perhaps shorter; one without rows is one piece."""
    start, size = 0, first or WINDOW
    while start < max(1, table.num_rows):
        yield table.slice(start, size)
        start, size = start + size, WINDOW


def _check_useful(seen: int, good: int, reasons: Counter[str], path: Path) -> None:
    """Stop before many answers are paid for of which none is any good."""
    if seen >= FIRST and not good:
        counts = ", ".join(f"{count:,} {reason}" for reason, count in reasons.most_common())
        raise InputError(
            f"of the first {seen:,} answers none is usable ({counts}): look at --prompt, the model and "
            f"--target-language; the answers are kept in {path}, delete its folder to start again"
        )
