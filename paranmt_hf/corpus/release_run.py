"""Rows through the stages to a release: what building, importing and scoring again share.

Work in progress lies in `<out>.work` beside the release and goes when the release stands. The same call after an
interruption continues there.
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa

from paranmt_hf.corpus.authorship import Authorship
from paranmt_hf.corpus.bitext.readers import Report
from paranmt_hf.corpus.check_stages import check_scorer, check_stages, misfit
from paranmt_hf.corpus.jobs.added_columns import ColumnStage
from paranmt_hf.corpus.jobs.engine import EngineConfig
from paranmt_hf.corpus.jobs.job import run_job
from paranmt_hf.corpus.jobs.shards import Manifest, Stage, write_shard
from paranmt_hf.corpus.jobs.stages import TranslateStage
from paranmt_hf.corpus.language_models.stage import AskStage, holds_answers
from paranmt_hf.corpus.record import RELEASE_RECORD, HeldOut, ReleaseRecord, check_license, record_bytes
from paranmt_hf.corpus.release import MAX_SHARD_BYTES, Release, read_record, read_tables, write_release
from paranmt_hf.corpus.release_card import HISTOGRAMS_PICTURE, release_card
from paranmt_hf.corpus.schema import OPTIONAL, SCHEMA_VERSION
from paranmt_hf.corpus.statistics import plot_histograms
from paranmt_hf.errors import InputError
from paranmt_hf.hub.languages import check_language
from paranmt_hf.hub.licenses import License
from paranmt_hf.text.word_rules import ENGLISH
from paranmt_hf.util.files import write_bytes, writing
from paranmt_hf.util.optional import versions
from paranmt_hf.util.progress import Progress
from paranmt_hf.util.records import Identity, as_json
from paranmt_hf.util.run import Holds, put_in_place, work_folder
from paranmt_hf.util.settings import Advanced, Range, RunOnly, Seed, check
from paranmt_hf.util.work import finished, locked, remove, remove_leftover
from paranmt_hf.version import __version__

logger = logging.getLogger(__name__)

Batches = Callable[[Report], Iterable[pa.RecordBatch | pa.Table]]
# What a release says of itself, where it was given.
STATED = ("license_name", "license_link", "title", "description")
# Parts of an identity that say what is done to the input, and not what it is; stages answer for them.
STAGES = ("pivot", "translator", "paraphraser", "scorer", "columns")
# What only the card says. Another wording needs no other release.
WORDING = ("title", "description")
# Whose versions stand in a release's record: they decide the last digits of the scores and the bytes of the files.
PACKAGES = ("ctranslate2", "numpy", "pyarrow", "sentence_transformers", "tokenizers", "torch", "transformers")


@dataclass(frozen=True)
class ReleaseConfig:
    """Licence and form of a release.

    Attributes:
        license: Licence of the corpus, a Hub licence id such as cc-by-4.0; every release needs one.
        license_name: With the licence `other`: its name, such as my-license-1.0.
        license_link: With the licence `other`: the address of its text.
        language: Language of both sides, an ISO 639-1 code: it decides what a word is.
        title: Title of the card; the name of the folder if left out.
        description: A sentence or two on the corpus, for the card.
        keep_source: Keep the foreign sentence, if its licence allows.
        seed: Seed of the sample and the examples.
        rows_per_shard: Number of input lines in one unit of work.
        max_shard_bytes: Largest Parquet file of the release.
        keep_work: Keep the folder of intermediate shards.
    """

    license: str | None = None
    license_name: Annotated[str | None, Advanced] = None
    license_link: Annotated[str | None, Advanced] = None
    language: str = "en"
    title: Annotated[str | None, Advanced] = None
    description: Annotated[str | None, Advanced] = None
    keep_source: Annotated[bool, Advanced] = False
    seed: Annotated[Seed, Advanced] = 0
    rows_per_shard: Annotated[int, Range(at_least=1, at_most=10_000_000), Advanced] = 10_000
    max_shard_bytes: Annotated[int, Range(at_least=1_000_000), Advanced] = MAX_SHARD_BYTES
    keep_work: Annotated[bool, Advanced, RunOnly] = False

    def __post_init__(self) -> None:
        check(self)
        check_language(self.language)

    @property
    def identity(self) -> dict[str, Any]:
        """What determines the release beyond the scored rows."""
        said = {name: getattr(self, name) for name in STATED}
        kept = {name: getattr(self, name) for name in ("license", "keep_source", "seed", "max_shard_bytes")}
        other = {} if self.language == ENGLISH else {"language": self.language}
        return kept | other | {name: value for name, value in said.items() if value is not None}

    def check_license(self) -> None:
        """Check the licence against the Hub's list, before work that takes hours.

        Raises:
            InputError: The Hub would not take it.
        """
        check_license(self.license)
        License(self.license or "", self.license_name, self.license_link).check()


@dataclass(frozen=True)
class Built:
    """A finished release.

    Attributes:
        folder: Where it is.
        record: Its `build.json`.
        fresh: Whether this call made it; else it was there already.
    """

    folder: Path
    record: ReleaseRecord
    fresh: bool


def make_release(
    batches: Batches,
    out: Path,
    identity: Identity,
    stages: Sequence[Stage],
    release: ReleaseConfig,
    engine: EngineConfig | None,
    *,
    command: str,
    worth: Holds | None = None,
) -> Built:
    """Send rows through stages and release them, or find the release that is there already.

    Args:
        batches: Reads the input, counting in the report that it is given.
        out: Folder of the release; its name is that of the corpus. Work in progress lies in `<out>.work`.
        identity: What determines the rows: the input, the translator, the scorer.
        stages: What is done to the rows, in order.
        release: Licence and form of the release.
        engine: Where the stages run.
        command: Name of the command, to which the work folder belongs.
        worth: Says whether a work folder holds what took long to make; if left out, whether it holds shards.

    Raises:
        InputError: Bad input, or `out` was made with other settings.
    """
    engine = (engine or EngineConfig()).resolved()
    out = Path(out).resolve()
    work = work_folder(out)
    wanted = {**identity, "release": release.identity}
    check_stages(stages, release.language)
    if (found := _found(out, wanted, release, command)) is not None:
        return found
    with locked(work, command, worth=worth or holds_shards):
        # Another process may have finished it meanwhile.
        if (found := _found(out, wanted, release, command)) is not None:
            return found
        record = write_rows(batches, work, work / "release", identity, stages, release, engine, name=out.name)
        with writing(out):
            put_in_place(work / "release", out)
        if not release.keep_work:
            remove(work)
    return Built(out, record, fresh=True)


def holds_shards(work: Path) -> bool:
    """Tell whether a work folder holds what took long to make: shards that are translated or scored, or answers."""
    return any(work.glob("[1-9]*-*/shard-*")) or holds_answers(work)


def _found(out: Path, wanted: Identity, release: ReleaseConfig, command: str) -> Built | None:
    """The release where it is there already, without the work folder that a kill at the very end left."""
    record = finished(
        out, _without_wording(wanted), read_made, lambda record: _without_wording(record.settings), made="built"
    )
    if record is None:
        return None
    if record.settings["release"] != wanted["release"]:
        said = {name: getattr(release, name) for name in WORDING}
        record = replace(record, **said, settings={**record.settings, "release": as_json(wanted["release"])})
        write_card(out, record)
    if not release.keep_work:
        remove_leftover(out, command)
    return Built(out, record, fresh=False)


def _without_wording(settings: Mapping[str, Any]) -> dict[str, Any]:
    release = {name: value for name, value in settings["release"].items() if name not in WORDING}
    return {**settings, "release": release}


def write_rows(
    batches: Batches,
    work: Path,
    folder: Path,
    identity: Identity,
    stages: Sequence[Stage],
    release: ReleaseConfig,
    engine: EngineConfig,
    *,
    name: str,
    recorded: Identity | None = None,
    dropped: dict[str, int] | None = None,
    warned: Sequence[str] = (),
    held_out: HeldOut | None = None,
) -> ReleaseRecord:
    """Send rows through stages and write a release of them, going on with what a work folder holds.

    Args:
        batches: As of `make_release`, like `identity`, `stages`, `release` and `engine`.
        work: The work folder, which the caller holds.
        folder: Where the release is written; what is there goes.
        identity: As above.
        stages: As above.
        release: As above.
        engine: As above.
        name: Name of the corpus.
        recorded: What the record says determined the rows, where that is not `identity`.
        dropped: Rows that are missing from the input already, by reason.
        warned: Warnings that go with the input.
        held_out: How well the classifier behind a `human_score` does that the input has already.

    Raises:
        InputError: Bad input, or the work folder holds work with other settings.
    """
    # Another scorer must not cost the translations, so each stage answers for its own settings only.
    input_identity = {key: value for key, value in identity.items() if key not in STAGES}
    input_identity["rows_per_shard"] = release.rows_per_shard
    manifest = _cut_input(batches, work / "0-input", input_identity)
    counts, warnings = dict(dropped or {}), list(warned)
    manifest, stages = _run_stages(manifest, work, stages, engine, counts, warnings)
    shutil.rmtree(folder, ignore_errors=True)
    with writing(folder):
        written = _write(manifest, folder, release)
        wanted = {**(recorded or identity), "release": release.identity}
        record = _record(name, written, wanted, counts, warnings, _held_out(stages) or held_out)
        write_card(folder, record)
    return record


def _run_stages(
    manifest: Manifest,
    work: Path,
    stages: Sequence[Stage],
    engine: EngineConfig,
    counts: dict[str, int],
    warnings: list[str],
) -> tuple[Manifest, list[Stage]]:
    """Send the cut input through the stages, counting dropped rows and collecting warnings on the way.

    Returns:
        The last shards, and the stages as they ran.
    """
    _count(counts, manifest.extra["report"]["dropped"])
    check_scorer(manifest, stages)
    ran: list[Stage] = []
    for index, stage in enumerate(stages, 1):
        if isinstance(stage, ColumnStage | AskStage):
            stage = stage.ready(manifest, work)
        # Requests go out from one process, which keeps to their limits.
        where = EngineConfig(workers=1) if isinstance(stage, AskStage) else engine
        manifest = run_job(manifest, work / f"{index}-{stage.label}", stage, where)
        ran.append(stage)
        _count(counts, manifest.dropped)
        if isinstance(stage, AskStage):
            stage.tell_use()
        if isinstance(stage, TranslateStage) and (warning := misfit(manifest, stage.config)):
            logger.warning(f"warning: {warning}")
            warnings.append(warning)
    if any(counts.values()):
        logger.info("dropped: " + ", ".join(f"{count:,} {reason}" for reason, count in counts.items()))
    return manifest, ran


def _held_out(stages: Sequence[Stage]) -> HeldOut | None:
    """How well the classifier does that a stage used."""
    found = [stage.weights for stage in stages if isinstance(stage, ColumnStage) and stage.weights]
    return Authorship.load(found[0]).held_out if found else None


def read_made(out: Path) -> ReleaseRecord:
    """Read the record of a release that is in the place of one that is to be made.

    Raises:
        InputError: Something else is there, or it is damaged.
    """
    if not (out / RELEASE_RECORD).exists():
        raise InputError(f"{out} exists and is not a release of this program; choose another --out or move it away")
    return read_record(out)


def _cut_input(batches: Batches, folder: Path, identity: Identity) -> Manifest:
    """Cut the input into shards, unless that was done."""
    manifest = Manifest.of_input(folder, identity)
    if manifest.complete:
        return manifest
    report = Report()
    # Before the progress begins: what makes the rows may show one of its own.
    rows = batches(report)
    with Progress("read", unit="lines") as progress:
        for batch in rows:
            progress.advance_to(report.read)
            if not batch.num_rows:
                continue
            table = pa.Table.from_batches([batch]) if isinstance(batch, pa.RecordBatch) else batch
            name = f"shard-{len(manifest.shards):06d}.parquet"
            manifest.shards[name] = write_shard(table, folder / name)
    if not manifest.shards:
        raise InputError(f"the input holds no usable line: {report.describe()}")
    manifest.extra["report"] = report.as_dict()
    manifest.complete = True
    manifest.save()
    return manifest


def _count(total: dict[str, int], more: dict[str, int]) -> None:
    for reason, count in more.items():
        total[reason] = total.get(reason, 0) + count


def _write(manifest: Manifest, folder: Path, release: ReleaseConfig) -> Release:
    columns = set()
    for table in read_tables(manifest.paths()[:1]):
        columns.update(table.column_names)
    rows = 0
    with Progress("release", manifest.rows, unit="pairs") as progress:

        def tables() -> Iterator[pa.Table]:
            nonlocal rows
            for table in read_tables(manifest.paths()):
                yield table
                rows += table.num_rows
                progress.advance_to(rows)

        return write_release(
            tables(),
            folder,
            optional=[name for name in OPTIONAL & columns if name != "source" or release.keep_source],
            seed=release.seed,
            max_shard_bytes=release.max_shard_bytes,
        )


def _record(
    name: str,
    written: Release,
    identity: Identity,
    dropped: dict[str, int],
    warnings: list[str],
    held_out: HeldOut | None,
) -> ReleaseRecord:
    return ReleaseRecord(
        name=name,
        version=__version__,
        schema_version=SCHEMA_VERSION,
        license=identity["release"]["license"],
        **{name: identity["release"].get(name) for name in STATED},
        settings=as_json(identity),
        dropped=dropped,
        columns=written.schema.names,
        packages=versions(PACKAGES + ("scikit-learn",) * ("human_score" in written.schema.names)),
        configs=written.configs,
        statistics=written.statistics.summary(),
        warnings=warnings,
        held_out=held_out,
    )


def write_card(folder: Path, record: ReleaseRecord) -> None:
    """Write picture, card and record of a release whose Parquet files are there."""
    picture = plot_histograms(record.statistics, folder / HISTOGRAMS_PICTURE)
    write_bytes(folder / "README.md", release_card(record, picture=picture).encode())
    write_bytes(folder / RELEASE_RECORD, record_bytes(record))
