"""From rows to a corpus: the steps that building, importing and rescoring share.

Work in progress lies in `<out>.work` next to the corpus until it is complete. The same call after an
interruption continues there.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import pyarrow as pa

from paranmt_hf.corpus.jobs.engine import EngineConfig
from paranmt_hf.corpus.jobs.job import run_job
from paranmt_hf.corpus.jobs.shards import Manifest, Stage, cut_into_shards
from paranmt_hf.corpus.jobs.stages import TranslateStage
from paranmt_hf.corpus.language_models.kept_answers import ANSWERS_FILE
from paranmt_hf.corpus.language_models.stage import AskStage
from paranmt_hf.corpus.reading.readers import Report
from paranmt_hf.corpus.release.input_checks import (
    check_scorers,
    check_sentences,
    check_stages,
    count_capitals,
    misfit,
)
from paranmt_hf.corpus.release.record import RELEASE_RECORD, WORDING, ReleaseRecord, identity_of
from paranmt_hf.corpus.release.release import WrittenRelease, read_record, read_tables, write_release
from paranmt_hf.corpus.release.release_card import HISTOGRAMS_PICTURE, release_card
from paranmt_hf.corpus.release.schema import OPTIONAL, SCHEMA_VERSION
from paranmt_hf.corpus.scoring.alignment import WARNING, alignment_warnings
from paranmt_hf.corpus.statistics.release_counts import plot_histograms, text_histogram
from paranmt_hf.errors import InputError
from paranmt_hf.hub.languages import check_language
from paranmt_hf.hub.licenses import License
from paranmt_hf.text.word_rules import ENGLISH
from paranmt_hf.util.files import shown_path, write_bytes
from paranmt_hf.util.markers import Advanced
from paranmt_hf.util.parquet import read_schema
from paranmt_hf.util.progress import Progress
from paranmt_hf.util.records import Identity, as_json, made_with, read_json
from paranmt_hf.util.run import Result, run
from paranmt_hf.util.settings import Settings
from paranmt_hf.util.wording import counted
from paranmt_hf.util.work import Holds, check_making, work_folder

logger = logging.getLogger(__name__)

Way = Literal["translator", "pivot"]  # Which translation of a corpus: into English, or into the pivot language
Batches = Callable[[Report], Iterable[pa.RecordBatch | pa.Table]]
RESCORED = "rescored"  # Part of an identity: the files of a corpus that is scored again, which its record leaves out


@dataclass(frozen=True)
class ReleaseConfig(Settings):
    """Licence and form of a corpus.

    Attributes:
        license: Licence of the corpus: a Hub licence id such as cc-by-4.0, or a name with a link such as
            `My Terms <https://example.org/terms>`; every corpus needs one.
        language: Language of both sides, an ISO 639-1 code: it determines the word tokens.
        title: Title of the card; the name of the folder if left out.
        description: A sentence or two on the corpus, for the card.
        keep_source: Keep the foreign sentence, if its licence allows.
    """

    license: str | None = None
    language: str = "en"
    title: Annotated[str | None, Advanced] = None
    description: Annotated[str | None, Advanced] = None
    keep_source: Annotated[bool, Advanced] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_language(self.language)

    @property
    def wording(self) -> dict[str, Any]:
        """The texts of the card."""
        return {name: getattr(self, name) for name in WORDING}

    @property
    def identity(self) -> dict[str, Any]:
        """Everything that determines the corpus beyond the scored rows."""
        license = None if self.license is None else str(License.parse(self.license, listed=False))
        found: dict[str, Any] = {"license": license, "keep_source": self.keep_source}
        if self.language != ENGLISH:
            found["language"] = self.language
        return found | {name: text for name, text in self.wording.items() if text is not None}

    def check_license(self) -> None:
        """Check the licence against the Hub's list, before work that takes hours."""
        License.parse(self.license)


class Built(Result[ReleaseRecord]):
    """A finished corpus."""

    def summary(self) -> str:
        """What the corpus holds, and how to load it."""
        statistics = self.record.statistics
        lines = [f"{self.folder}: {counted(statistics.rows, 'pair')}" + ("" if self.fresh else " (was built already)")]
        lines += self.record.config_lines()
        lines += [f"  dropped  {count:>12,} {reason}" for reason, count in self.record.dropped.items()]
        for name, count in statistics.mismatches.items():
            lines.append(f"  {name:<18}{counted(count, 'pair'):>18}, {count / statistics.rows:.1%}")
        lines += ["paraphrase score", text_histogram(statistics.histogram, width=40)]
        return "\n".join([*lines, f"load it: load_dataset({shown_path(self.folder.resolve())!r})"])


@dataclass(frozen=True)
class ReleaseRun:
    """A corpus to make: rows that go through stages."""

    name: str  # Name of the corpus
    batches: Batches  # Reads the input, counting in the report that it is given
    identity: Identity  # What determines the rows: the input and the stages
    stages: Sequence[Stage]
    release: ReleaseConfig
    engine: EngineConfig
    before: ReleaseRecord | None = None  # The record of a corpus that is scored again

    def write(self, work: Path, folder: Path) -> ReleaseRecord:
        """Write the corpus into an empty folder, continuing the work in a work folder."""
        before = self.before
        manifest = self._cut(work)
        counts = Counter(manifest.extra["report"]["dropped"])
        if before is None:
            capitals, warnings = count_capitals(manifest, self.stages), check_sentences(manifest)
        else:
            capitals, warnings = before.capitals, list(before.warnings)
            counts.update(before.dropped)
        check_scorers(manifest, self.stages)
        for index, stage in enumerate(self.stages, 1):
            manifest = self._run_stage(stage, manifest, work, index, warnings)
            counts.update(manifest.dropped)
        if any(counts.values()):
            logger.info("dropped: " + ", ".join(f"{count:,} {reason}" for reason, count in counts.items()))
        # Selected rows are no longer next to each other.
        if "selection" not in self.identity:
            found = alignment_warnings(manifest.paths())
            for warning in found:
                logger.warning(f"warning: {warning}")
            warnings = [one for one in warnings if not one.startswith(WARNING)] + found
        written = _write(manifest, folder, self.release)
        settings = {name: value for name, value in self.identity.items() if name != RESCORED}
        record = ReleaseRecord(
            name=self.name,
            schema_version=SCHEMA_VERSION,
            license=self.release.identity["license"],
            **self.release.wording,
            settings=as_json(settings | {"release": self.release.identity}),
            dropped=dict(counts),
            capitals=capitals,
            columns=written.schema.names,
            configs=written.configs,
            statistics=written.statistics.summary(),
            warnings=warnings,
            options=before.options if before else {},
            # They decide the last digits of the scores and the bytes of the files.
            **made_with(
                "ctranslate2", "numpy", "pyarrow", "sentence_transformers", "tokenizers", "torch", "transformers"
            ),
        )
        write_card(folder, record)
        return record

    def _cut(self, work: Path) -> Manifest:
        """Cut the input into shards, or find them cut."""
        report = Report()

        def extra() -> dict[str, Any]:
            if not report.kept:
                raise InputError(f"the input holds no usable line: {report.describe()}")
            if report.dropped.get("undecodable", 0) > report.kept:
                raise InputError(
                    f"most lines are not UTF-8: {report.describe()}; convert the files, such as with `iconv`"
                )
            return {"report": report.as_dict()}

        # What is done to the input, each stage checks itself.
        stages = {"pivot", "translator", "paraphraser", "scorer", "columns"}
        own = {part: value for part, value in self.identity.items() if part not in stages}
        rows = self.engine.shard_rows or 10_000
        return cut_into_shards(self.batches(report), work / "0-input", own, rows, unit="lines", extra=extra)

    def _run_stage(self, stage: Stage, manifest: Manifest, work: Path, index: int, warnings: list[str]) -> Manifest:
        """Run a stage over the shards of the one before, adding to the warnings."""
        folder = work / f"{index}-{stage.label}"
        if isinstance(stage, AskStage):
            stage = stage.ready(manifest, work)
            # Requests go out from one process, which keeps to their limits.
            manifest = run_job(manifest, folder, stage, EngineConfig(workers=1))
            warnings += stage.warnings()
            return manifest
        manifest = run_job(manifest, folder, stage, self.engine)
        if isinstance(stage, TranslateStage) and (warning := misfit(manifest, stage.config)):
            logger.warning(f"warning: {warning}")
            warnings.append(warning)
        return manifest


def make_release(
    batches: Batches,
    out: Path,
    identity: Identity,
    stages: Sequence[Stage],
    release: ReleaseConfig,
    engine: EngineConfig | None,
    *,
    command: str,
    holds: Holds | None = None,
) -> Built:
    """Send rows through stages and release them, or find the finished corpus.

    The name of the folder is that of the corpus. `batches` reads the input, counting in the report that it is given,
    and `identity` determines the input. `holds` says whether a work folder holds expensive work; if left out, whether
    it holds shards.
    """
    for stage in stages:
        identity = identity | stage.identity
    wanted = {**identity, "release": release.identity}
    if (out / RELEASE_RECORD).is_file():
        # The columns too that `paranmt score --add` gave the finished corpus, which is otherwise the same.
        added = {**ReleaseRecord.read(out).settings.get("columns", {}), **wanted.get("columns", {})}
        if added:
            wanted["columns"] = added
    check_stages(stages, release.language)
    made = ReleaseRun(out.name, batches, identity, stages, release, (engine or EngineConfig()).resolved())
    built = run(
        out,
        identity_of(wanted),
        ReleaseRecord,
        made.write,
        result=Built,
        command=command,
        holds=holds or holds_shards,
        read=read_record,
        # Another scorer must not cost the translations, so each stage answers for its own settings.
        work_identity={},
    )
    settings = {**built.record.settings, "release": as_json(wanted["release"])}
    if built.fresh or built.record.settings == settings:
        return built
    # Only the texts of the card of the finished corpus have changed.
    check_making(built.folder)
    record = replace(built.record, **release.wording, settings=settings)
    write_card(built.folder, record)
    return Built(built.folder, record.write(built.folder), fresh=False)


def _write(manifest: Manifest, folder: Path, release: ReleaseConfig) -> WrittenRelease:
    optional = OPTIONAL & set(read_schema(manifest.paths()[0]).names)
    if not release.keep_source:
        optional -= {"source"}
    with Progress("release", manifest.rows, unit="pairs") as progress:
        return write_release(progress.over(read_tables(manifest.paths())), folder, optional=optional)


def write_card(folder: Path, record: ReleaseRecord) -> None:
    """Write picture and card of a corpus whose Parquet files are written."""
    picture = plot_histograms(record.statistics)
    if picture is not None:
        write_bytes(folder / HISTOGRAMS_PICTURE, picture)
    write_bytes(folder / "README.md", release_card(record, picture=picture is not None).encode())


def holds_shards(work: Path) -> bool:
    """Whether a work folder holds expensive results: translated or scored shards, or answers."""
    return any(work.glob("[1-9]*-*/shard-*")) or (work / ANSWERS_FILE).exists()


def translator_of(out: Path, part: Way) -> dict[str, Any] | None:
    """Identity of a translator of a corpus, or of the unfinished work for one; None if there is none."""
    found: Any = None
    with suppress(InputError):
        if (out / RELEASE_RECORD).is_file():
            found = ReleaseRecord.read(out).settings.get(part)
        for manifest in work_folder(out).glob("[1-9]*-*/manifest.json"):
            settings = read_json(manifest, "a manifest").get("settings", {})
            found = found or settings.get(part)
    return found if isinstance(found, dict) else None
