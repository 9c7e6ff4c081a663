"""The steps from rows to a corpus, which building, importing, mining and rescoring share.

Work in progress is in the folder `<out>.work` next to the corpus until that is complete. The same call after an
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
from paranmt_hf.corpus.jobs.repeats import with_repeats
from paranmt_hf.corpus.jobs.shards import Manifest, Stage, cut_into_shards
from paranmt_hf.corpus.jobs.stages import PivotStage, TranslateStage
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
from paranmt_hf.corpus.scoring.alignment import (
    ALIGNMENT,
    WARNING,
    Misaligned,
    alignment_warnings,
    misaligned_sections,
    with_alignment,
)
from paranmt_hf.corpus.statistics.release_counts import plot_histograms, text_histogram
from paranmt_hf.errors import InputError
from paranmt_hf.hub.licenses import License
from paranmt_hf.text.languages import ENGLISH, check_language
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

# Part of the settings with a translation model: into the language of the corpus, or into the pivot language.
Way = Literal["translator", "pivot"]
# Reads the input, and counts its rows in the report.
Batches = Callable[[Report], Iterable[pa.RecordBatch | pa.Table]]
# Part of the identity of a corpus that is scored again: its files so far. The record does not keep it.
RESCORED = "rescored"


@dataclass(frozen=True)
class ReleaseConfig(Settings):
    """Licence and form of a corpus.

    Attributes:
        license: Licence of the corpus: a Hub licence id such as cc-by-4.0, or a name with a link such as
            `My Terms <https://example.org/terms>`; every corpus needs one.
        language: Language of both sides (ISO 639-1 code), which determines how text is cut into words.
        title: Title of the card; the name of the folder if left out.
        description: A sentence or two about the corpus, for the card.
        keep_source: Keep the foreign sentence as the column source, if its licence allows.
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
        """The texts of the card, by their names; None for one that is not given."""
        return {name: getattr(self, name) for name in WORDING}

    @property
    def identity(self) -> dict[str, Any]:
        """Everything that determines the corpus besides the scored rows, as JSON values."""
        license = None if self.license is None else str(License.parse(self.license, listed=False))
        found: dict[str, Any] = {"license": license, "keep_source": self.keep_source}
        if self.language != ENGLISH:
            found["language"] = self.language
        return found | {name: text for name, text in self.wording.items() if text is not None}

    def check_license(self) -> None:
        """Check that the Hub knows the licence, before work that takes hours."""
        License.parse(self.license)


class Built(Result[ReleaseRecord]):
    """A finished corpus in its folder."""

    def summary(self) -> str:
        """Describe what the corpus holds, and how to load it."""
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
    """A corpus to make: input rows, and the stages that they go through."""

    name: str  # Name of the corpus
    batches: Batches  # Reads the input rows
    identity: Identity  # What determines the rows: the input and the stages
    stages: Sequence[Stage]  # The stages, in order
    release: ReleaseConfig  # Licence and form
    engine: EngineConfig  # Where the stages run
    before: ReleaseRecord | None = None  # Record of the corpus that is scored again; None for a new corpus

    def write(self, work: Path, folder: Path) -> ReleaseRecord:
        """Make the corpus, and return its record.

        Args:
            work: Work folder; what earlier calls finished in it is used.
            folder: Empty folder for the corpus.
        """
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
        found = None
        # The check of alignment needs neighbouring rows, which a selection tears apart.
        if "selection" not in self.identity:
            found = misaligned_sections(manifest.paths())
            misaligned = alignment_warnings(found)
            for warning in misaligned:
                logger.warning(f"warning: {warning}")
            warnings = [one for one in warnings if not one.startswith(WARNING)] + misaligned
        has_alignment = ALIGNMENT in self.identity.get("columns", {})
        written = _write(manifest, folder, self.release, found if has_alignment else None)
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
            # The versions of these packages decide the last digits of scores and the bytes of files.
            **made_with(
                "ctranslate2", "numpy", "pyarrow", "sentence_transformers", "tokenizers", "torch", "transformers"
            ),
        )
        write_card(folder, record)
        return record

    def _cut(self, work: Path) -> Manifest:
        """Cut the input into shards, or find the shards of an earlier call."""
        report = Report()

        def extra() -> dict[str, Any]:
            if not report.kept:
                raise InputError(f"the input holds no usable line: {report.describe()}")
            if report.dropped.get("undecodable", 0) > report.kept:
                raise InputError(
                    f"most lines are not UTF-8: {report.describe()}; convert the files, such as with `iconv`"
                )
            return {"report": report.as_dict()}

        # The input shards do not depend on the stages, each of which checks its own settings.
        stages = {"pivot", "translator", "paraphraser", "scorer", "columns"}
        input_identity = {part: value for part, value in self.identity.items() if part not in stages}
        rows = self.engine.shard_rows or 10_000
        return cut_into_shards(self.batches(report), work / "0-input", input_identity, rows, unit="lines", extra=extra)

    def _run_stage(self, stage: Stage, manifest: Manifest, work: Path, index: int, warnings: list[str]) -> Manifest:
        """Run the stage of number `index` over the shards of the one before, and append its warnings to `warnings`."""
        folder = work / f"{index}-{stage.label}"
        if isinstance(stage, AskStage):
            stage = stage.ready(manifest, work)
            # One process sends all requests, so that it can keep within their limits.
            manifest = run_job(manifest, folder, stage, EngineConfig(workers=1))
            warnings += stage.warnings()
            return manifest
        if isinstance(stage, TranslateStage | PivotStage):
            stage = with_repeats(stage, manifest, work, index, self.engine)
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
    """Send rows through stages and release them as a corpus, or return the corpus if it is finished already.

    Args:
        batches: Reads the input rows.
        out: Folder of the corpus, whose name is that of the corpus.
        identity: What determines the input, as JSON values.
        stages: The stages, in order.
        release: Licence and form.
        engine: Where the stages run; None for the defaults.
        command: Name of the command, for the work folder and for messages.
        holds: Whether a work folder holds work that is expensive to repeat; None for `holds_shards`.

    Raises:
        InputError: If `out` holds a corpus that was made in another way.
    """
    for stage in stages:
        identity = identity | stage.identity
    wanted = {**identity, "release": release.identity}
    if (out / RELEASE_RECORD).is_file():
        # A finished corpus may have columns that `paranmt score --add` added; it is still the same corpus.
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
        # Each stage checks its own settings, so that translations are kept when only the scorer changes.
        work_identity={},
    )
    settings = {**built.record.settings, "release": as_json(wanted["release"])}
    if built.fresh or built.record.settings == settings:
        return built
    # The corpus is finished, and only the texts of its card have changed.
    check_making(built.folder)
    record = replace(built.record, **release.wording, settings=settings)
    write_card(built.folder, record)
    return Built(built.folder, record.write(built.folder), fresh=False)


def _write(
    manifest: Manifest, folder: Path, release: ReleaseConfig, misaligned: Sequence[Misaligned] | None
) -> WrittenRelease:
    """Write the Parquet files of a corpus from the shards of the last stage.

    Args:
        manifest: The shards.
        folder: Empty folder for the corpus.
        release: Licence and form.
        misaligned: Sections for the column `alignment`; None if that is not made.
    """
    optional = OPTIONAL & set(read_schema(manifest.paths()[0]).names)
    if not release.keep_source:
        optional -= {"source"}
    tables = read_tables(manifest.paths())
    if misaligned is not None:
        optional |= {ALIGNMENT}
        tables = with_alignment(tables, misaligned)
    with Progress("release", manifest.rows, unit="pairs") as progress:
        return write_release(progress.over(tables), folder, optional=optional)


def write_card(folder: Path, record: ReleaseRecord) -> None:
    """Write the picture and the card of a corpus whose Parquet files are written."""
    picture = plot_histograms(record.statistics)
    if picture is not None:
        write_bytes(folder / HISTOGRAMS_PICTURE, picture)
    write_bytes(folder / "README.md", release_card(record, picture=picture is not None).encode())


def holds_shards(work: Path) -> bool:
    """Whether a work folder holds work that is expensive to repeat: translated or scored shards, or answers."""
    return any(work.glob("[1-9]*-*/shard-*")) or (work / ANSWERS_FILE).exists()


def translator_of(out: Path, part: Way) -> dict[str, Any] | None:
    """Return the identity of a translation model of a corpus, or of unfinished work for one; None if there is none."""
    found: Any = None
    with suppress(InputError):
        if (out / RELEASE_RECORD).is_file():
            found = ReleaseRecord.read(out).settings.get(part)
        for manifest in work_folder(out).glob("[1-9]*-*/manifest.json"):
            settings = read_json(manifest, "a manifest").get("settings", {})
            found = found or settings.get(part)
    return found if isinstance(found, dict) else None
