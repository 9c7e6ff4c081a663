"""The stage that asks a language model for a translation or a paraphrase of each row."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from paranmt_hf.corpus.jobs.shards import Manifest, ReportRows, Work
from paranmt_hf.corpus.language_models.answers import Judge
from paranmt_hf.corpus.language_models.config import LanguageModelConfig, ModelTask
from paranmt_hf.corpus.language_models.kept_answers import ANSWERS_FILE, Answer, KeptAnswers
from paranmt_hf.corpus.language_models.server import OPTIONAL, Server
from paranmt_hf.errors import InputError
from paranmt_hf.util.optional import check_installed
from paranmt_hf.util.wording import counted

logger = logging.getLogger(__name__)

FIRST = 50  # Number of first rows of which one must have a usable answer before more answers are paid for


@dataclass(frozen=True)
class AskStage:
    """Asks a language model for the `translation` of each row; `translation_score` is the score of its answer.

    Rows have `reference`, and `source` if they are to be translated. All requests are sent from one process; the
    server does the work.
    """

    config: LanguageModelConfig  # The language model and its prompt
    task: ModelTask = "translate"  # Translate `source`, or paraphrase `reference`
    answers: Path | None = None  # The file of answers, which `ready` sets
    begun: bool = False  # Whether an earlier run has finished shards with usable answers, which `ready` sets
    unit: str = "sentences"

    def __post_init__(self) -> None:
        for package in ("openai", "py3langid"):
            check_installed(package, "llm")

    @property
    def label(self) -> str:
        """What the stage does, in one word."""
        return self.task

    @cached_property
    def identity(self) -> dict[str, Any]:
        """Everything that determines the rows, as JSON values; not the address of the server, because servers move."""
        part = "translator" if self.task == "translate" else "paraphraser"
        return {part: {**self.config.request_identity(self.task), **Judge.identity(self.config)}}

    def ready(self, manifest: Manifest, work: Path) -> AskStage:
        """Return the stage with its file of answers in the work folder; the number of sentences is logged.

        Args:
            manifest: The input shards.
            work: The work folder.
        """
        done = [work / f"1-{self.label}" / path.name for path in manifest.paths()]
        finished = [pq.read_metadata(path).num_rows for path in done if path.exists()]
        if len(finished) < len(done):
            sentences = counted(manifest.rows, "sentence")
            logger.info(f"asking {self.config.name} at {self.config.address} for {sentences}, less those kept before")
        return replace(self, answers=work / ANSWERS_FILE, begun=any(finished))

    def warnings(self) -> list[str]:
        """Return warnings for the card: about parameters that requests left out, because the server refused them."""
        if self.answers is None or not self.answers.exists():
            return []
        with closing(KeptAnswers(self.answers, {})) as kept:
            left_out = sorted(kept.omitted_parameters())
        return [f"the server of {self.config.name} takes no {name}: {OPTIONAL[name]}" for name in left_out]

    def load(self) -> Work:
        # `ready` has set the file.
        assert self.answers is not None
        server = Server(self.config)
        server.check()
        with closing(KeptAnswers(self.answers, {})) as kept:
            server.left_out |= kept.omitted_parameters()
        return _AskWork(self, server, self.answers)


class _AskWork:
    """The work of the stage: takes the kept answers of a shard, and asks for the others."""

    def __init__(self, stage: AskStage, server: Server, answers: Path) -> None:
        self._path, self._config, self._task = answers, stage.config, stage.task
        self._server = server
        self._judge = Judge(stage.config, stage.task)
        self._judged = 0
        # If an earlier run had usable answers, the first ones of this run need not be usable.
        self._usable = int(stage.begun)
        self._reasons: Counter[str] = Counter()

    def __call__(self, table: pa.Table, report: ReportRows) -> tuple[pa.Table, dict[str, int]]:
        """Process a shard.

        Raises:
            InputError: If none of the first answers of all shards is usable.
        """
        dropped: Counter[str] = Counter()
        parts = [self._with_translations(table.slice(0, 0), [], dropped)]
        start = 0

        def report_answers(count: int) -> None:
            report(start + count)

        with closing(KeptAnswers(self._path, self._config.request_identity(self._task))) as kept:
            while start < table.num_rows:
                window = table.slice(start, 2000 if self._judged else FIRST)
                answers = self._answers(self._sentences(window), kept, report_answers)
                parts.append(self._with_translations(window, answers, dropped))
                start += window.num_rows
                report(start)
                if self._judged >= FIRST and not self._usable:
                    counts = ", ".join(f"{count:,} {reason}" for reason, count in self._reasons.most_common())
                    raise InputError(
                        f"none of the first {self._judged:,} answers is usable ({counts}): check `prompt`, the model "
                        f"and `target_language`; the answers are kept in {self._path}, delete its folder to start "
                        "again"
                    )
        return pa.concat_tables(parts), dict(dropped)

    def _sentences(self, table: pa.Table) -> list[str]:
        """Return the sentences of rows that the model is asked about."""
        sentences: list[str] = table["source" if self._task == "translate" else "reference"].to_pylist()
        return sentences

    def _with_translations(self, table: pa.Table, answers: list[Answer], dropped: Counter[str]) -> pa.Table:
        """Add the sentences in answers to rows, as `translate_table` does with translations.

        Args:
            table: The rows.
            answers: The answer for each row.
            dropped: Number of rows without a usable answer, by reason, to which those of this table are added.
        """
        judged = self._judge.judge(self._sentences(table), table["reference"].to_pylist(), answers)
        columns = {name: table[name] for name in table.column_names}
        columns["translation"] = pa.array([one.text for one in judged], pa.string())
        columns["translation_score"] = pa.array([answer.score for answer in answers], pa.float32())
        usable = [one.reason is None for one in judged]
        reasons = [one.reason for one in judged if one.reason is not None]
        dropped.update(reasons)
        self._reasons.update(reasons)
        self._judged += len(judged)
        self._usable += sum(usable)
        return pa.table(columns).filter(pa.array(usable, pa.bool_()))

    def _answers(self, sentences: list[str], kept: KeptAnswers, report: Callable[[int], None]) -> list[Answer]:
        """Return the answer for each sentence, kept or new; equal sentences are asked about once.

        Args:
            sentences: The sentences.
            kept: The file of answers.
            report: Called with the number of sentences that have an answer.

        Raises:
            InputError: If the server refuses the temperature, and kept answers came with one.
        """
        distinct = list(dict.fromkeys(sentences))
        found = kept.find(distinct)
        missing = [sentence for sentence in distinct if sentence not in found]
        done = len(sentences) - len(missing)
        template = self._config.template(self._task)
        prompts = [template.replace("{sentence}", sentence) for sentence in missing]
        for index, answer in ask_all(self._server, prompts, self._config.concurrency):
            # Parameters that the server refused are written down before the first answer without them.
            omitted = self._server.left_out - kept.omitted_parameters()
            if "temperature" in omitted and len(kept):
                raise InputError(
                    f"{self._server.address} takes no temperature, but {counted(len(kept), 'answer')} came from "
                    "requests with one: continue with the server that took it, or delete "
                    f"{self._path.parent} to start again"
                )
            kept.add_omitted_parameters(omitted)
            kept.add(missing[index], answer)
            found[missing[index]] = answer
            done += 1
            report(done)
        return [found[sentence] for sentence in sentences]


def ask_all(server: Server, prompts: Sequence[str], concurrency: int) -> Iterator[tuple[int, Answer]]:
    """Ask for answers in several threads.

    The next request begins only when the caller asks for the next answer. So if the caller keeps each answer, a kill
    loses at most `concurrency` of them.

    Args:
        server: The server.
        prompts: The prompts.
        concurrency: Number of requests at the same time.

    Yields:
        Index of a prompt and its answer, in the order in which answers come.
    """
    pool = ThreadPoolExecutor(concurrency)
    waiting = enumerate(prompts)
    running = {pool.submit(server.ask, prompt): index for index, prompt in islice(waiting, concurrency)}
    try:
        while running:
            for done in wait(running, return_when=FIRST_COMPLETED).done:
                yield running[done], done.result()
                del running[done]
                for index, prompt in islice(waiting, 1):
                    running[pool.submit(server.ask, prompt)] = index
    except Exception:
        # No more requests begin, but those in progress may cost money, so their answers are yielded.
        for future, index in running.items():
            if future.exception() is None:
                yield index, future.result()
        raise
    finally:
        pool.shutdown(wait=False)
