"""From a bitext, or from pairs already translated, to a release: the stages put together.

Work in progress lies in `<out>.work` beside the release and goes when the release stands. The same call after an
interruption continues there.
"""

from __future__ import annotations

import json
import logging
import math
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pyarrow as pa

from paranmt_hf import __version__
from paranmt_hf.corpus.bitext.readers import AlignedText, Report
from paranmt_hf.corpus.jobs.engine import EngineConfig, run_job
from paranmt_hf.corpus.jobs.shards import Manifest, Stage, describe_differences, locked, sweep, write_shard
from paranmt_hf.corpus.jobs.stages import ScoreStage, TranslateStage
from paranmt_hf.corpus.release import MAX_SHARD_BYTES, Release, read_record, read_tables, release_files, write_release
from paranmt_hf.corpus.schema import SCHEMA_VERSION
from paranmt_hf.corpus.statistics import plot_histograms
from paranmt_hf.corpus.translation.translator import TranslatorConfig
from paranmt_hf.encoders.scorer import ScorerConfig
from paranmt_hf.errors import InputError
from paranmt_hf.hub.repository import usual_score
from paranmt_hf.util.files import write_bytes
from paranmt_hf.util.optional import available
from paranmt_hf.util.progress import Progress
from paranmt_hf.workflows.support.release_card import PICTURE, release_card

logger = logging.getLogger(__name__)

# The embedded translator loses 0.1 from its test captions to other captions, and 0.7 to news.
MISFIT = 0.4
# Whose versions stand in a release's record: they decide the last digits of the scores and the bytes of the files.
PACKAGES = ("ctranslate2", "numpy", "pyarrow", "sentence_transformers", "tokenizers", "torch", "transformers")


@dataclass(frozen=True)
class ReleaseConfig:
    """What the release is and what it says of itself."""

    license: str | None = field(
        default=None, metadata={"help": "licence of the corpus, a Hub licence id such as cc-by-4.0; required"}
    )
    keep_source: bool = field(default=False, metadata={"help": "keep the foreign sentence, if its licence allows"})
    seed: int = field(default=0, metadata={"help": "decides the sample and the examples"})
    rows_per_shard: int = field(default=10_000, metadata={"help": "lines of input that make one unit of work"})
    max_shard_bytes: int = field(default=MAX_SHARD_BYTES, metadata={"help": "largest Parquet file of the release"})
    keep_work: bool = field(default=False, metadata={"help": "keep the folder of intermediate shards"})

    def __post_init__(self) -> None:
        text = self.license or ""
        if not text or not all(character.isalnum() or character in "-." for character in text) or text != text.lower():
            raise InputError(
                "a corpus needs a licence, so that its users know what they may do: give a Hub licence id "
                f"(cc-by-4.0, cc0-1.0, other, ...), not {self.license!r}"
            )
        if self.rows_per_shard < 1:
            raise InputError(f"rows per shard must be at least 1, not {self.rows_per_shard!r}")
        if self.max_shard_bytes < 1_000_000:
            raise InputError(f"the largest file must have at least 1,000,000 bytes, not {self.max_shard_bytes!r}")

    @property
    def settings(self) -> dict[str, Any]:
        """What determines the release beyond the scored rows."""
        return {name: getattr(self, name) for name in ("license", "keep_source", "seed", "max_shard_bytes")}


@dataclass(frozen=True)
class Built:
    """A finished release.

    Attributes:
        folder: Where it is.
        record: The content of its `build.json`.
        fresh: Whether this call made it; else it was there already.
    """

    folder: Path
    record: dict[str, Any]
    fresh: bool


def build(
    bitext: AlignedText,
    out: Path,
    *,
    translator: TranslatorConfig,
    scorer: ScorerConfig,
    release: ReleaseConfig,
    engine: EngineConfig | None = None,
) -> Built:
    """Back-translate a bitext, score the pairs and release them (ParaNMT-50M, section 3).

    Args:
        bitext: Aligned text with the columns `source` and `reference`.
        out: Folder of the release; its name is the name of the corpus.
        translator: The translation model and its search.
        scorer: The encoder of the paraphrase score.
        release: Licence and form of the release.
        engine: Where translation and scoring run.

    Raises:
        InputError: Bad input, or `out` was made with other settings.
    """
    engine = (engine or EngineConfig()).settled()
    if engine.workers > 1 and (translator.device or "").startswith("cuda:"):
        raise InputError(
            f"device {translator.device!r} is one GPU, and there are {engine.workers} workers with a GPU each: give "
            "--device cuda, or --workers 1"
        )
    scorer.load()  # A scorer that cannot be read must show now and not after days of translating.
    # Translators beside each other share the cores, so none may take them all.
    translate, score = TranslateStage(translator, engine.threads), ScoreStage(scorer)
    settings = {"bitext": bitext.fingerprint(), **translate.settings, **score.settings}
    stages: list[Stage] = [translate, score]
    return _run(
        lambda report: bitext.batches(report, rows=release.rows_per_shard), out, settings, stages, release, engine
    )


def import_pairs(
    pairs: AlignedText,
    out: Path,
    *,
    scorer: ScorerConfig | None,
    release: ReleaseConfig,
    engine: EngineConfig | None = None,
) -> Built:
    """Score pairs that are already translated, and release them.

    Args:
        pairs: Aligned text with the columns `reference` and `translation`, and `para_score` if there is no scorer.
        out: Folder of the release.
        scorer: The encoder of the paraphrase score; None keeps the score that came with the pairs.
        release: Licence and form of the release.
        engine: Where scoring runs.

    Raises:
        InputError: Bad input, or `out` was made with other settings.
    """
    stage = ScoreStage(scorer)
    settings = {"pairs": pairs.fingerprint(), **stage.settings}
    return _run(
        lambda report: pairs.batches(report, rows=release.rows_per_shard), out, settings, [stage], release, engine
    )


def rescore(folder: Path, *, scorer: ScorerConfig, engine: EngineConfig | None = None) -> Built:
    """Score a release again with another scorer; of the rows only the column `para_score` changes.

    The old release stays in place until the new one is complete.

    Raises:
        InputError: The folder is not a release.
    """
    folder = Path(folder).resolve()
    work = _work(folder)
    if not (work / "old").exists():
        release_files(folder)
    with locked(work):
        _finish_swap(folder)
        record = read_record(folder)
        parts = {name: value for name, value in record["settings"].items() if name != "release"}
        if parts["scorer"] == scorer.identity:
            shutil.rmtree(work)
            return Built(folder, record, fresh=False)
        files = release_files(folder)

        def batches(report: Report) -> Iterator[pa.Table]:
            for table in read_tables(files):
                report.read += table.num_rows
                report.kept += table.num_rows
                yield table

        parts["scorer"] = scorer.identity
        built = _run(
            batches,
            work / "new",
            {**parts, "rescored": record["configs"]["default"]["files"]},
            [ScoreStage(scorer)],
            ReleaseConfig(**record["settings"]["release"]),
            engine,
            name=folder.name,
            record_settings=parts,
            dropped=record["dropped"],
            warned=record.get("warnings", ()),
        )
        folder.rename(work / "old")
        _finish_swap(folder)
        shutil.rmtree(work)
    return Built(folder, built.record, fresh=True)


def _work(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}.work")


def _finish_swap(folder: Path) -> None:
    """Put the release that was scored again into its place; also after a kill in the middle of that."""
    work = _work(folder)
    if (work / "old").exists():
        if not folder.exists():
            (work / "new").rename(folder)
        shutil.rmtree(work / "old")


def _run(
    batches: Callable[[Report], Iterable[pa.RecordBatch | pa.Table]],
    out: Path,
    settings: dict[str, Any],
    stages: Sequence[Stage],
    release: ReleaseConfig,
    engine: EngineConfig | None,
    *,
    name: str | None = None,
    record_settings: dict[str, Any] | None = None,
    dropped: dict[str, int] | None = None,
    warned: Sequence[str] = (),
) -> Built:
    engine = (engine or EngineConfig()).settled()
    out = Path(out).resolve()
    work = _work(out)
    wanted = {**(record_settings or settings), "release": release.settings}
    if (record := _finished(out, wanted)) is not None and not work.exists():
        return Built(out, record, fresh=False)
    with locked(work):
        if (record := _finished(out, wanted)) is not None:
            # Left over from a command that was killed at its very end, or kept on purpose.
            if not release.keep_work:
                shutil.rmtree(work)
            return Built(out, record, fresh=False)
        # Another scorer must not cost the translations, so each stage answers for its own settings only.
        cut = {name: value for name, value in settings.items() if name not in ("translator", "scorer")}
        manifest = _prepare(batches, work / "0-input", {**cut, "rows_per_shard": release.rows_per_shard})
        counts, warnings = dict(dropped or {}), list(warned)
        _count(counts, manifest.extra["report"]["dropped"])
        for number, stage in enumerate(stages, 1):
            manifest = run_job(manifest, work / f"{number}-{stage.label}", stage, engine)
            _count(counts, manifest.dropped)
            if isinstance(stage, TranslateStage) and (warning := _misfit(manifest, stage.config)):
                logger.warning(f"warning: {warning}")
                warnings.append(warning)
        if any(counts.values()):
            logger.info("dropped: " + ", ".join(f"{count:,} {reason}" for reason, count in counts.items()))
        final = work / "release"
        shutil.rmtree(final, ignore_errors=True)
        written = _write(manifest, final, release)
        record = {**_record(name or out.name, written, wanted, counts), "warnings": warnings}
        _write_card(final, record)
        if out.exists():  # An empty folder, else it would have been refused.
            out.rmdir()
        final.rename(out)
        if not release.keep_work:
            shutil.rmtree(work)
    return Built(out, record, fresh=True)


def _finished(out: Path, settings: dict[str, Any]) -> dict[str, Any] | None:
    """The record of a finished release with these settings; None when there is nothing yet."""
    if out.is_dir() and not any(out.iterdir()) or not out.exists():
        return None
    if not (out / "build.json").exists():
        raise InputError(f"{out} exists and is not a release of this program; choose another --out or move it away")
    record = read_record(out)
    if differences := describe_differences(record["settings"], json.loads(json.dumps(settings))):
        raise InputError(
            f"{out} was built with other settings: {'; '.join(differences)}; choose another --out or delete it"
        )
    return record


def _prepare(
    batches: Callable[[Report], Iterable[pa.RecordBatch | pa.Table]], folder: Path, settings: dict[str, Any]
) -> Manifest:
    """Cut the input into shards; quick beside what follows, so an interrupted cut starts again."""
    # An unfinished cut has cost nothing yet: a mended file or a changed column must not be refused for its sake.
    manifest = Manifest.open(folder, settings, restart=True)
    if manifest.complete:
        manifest.forget_damaged()
        if manifest.complete:
            return manifest
    sweep(folder)
    manifest.shards.clear()
    manifest.save()
    report = Report()
    with Progress("read") as progress:
        for batch in batches(report):
            progress.advance_to(report.read)
            if not batch.num_rows:
                continue
            table = pa.Table.from_batches([batch]) if isinstance(batch, pa.RecordBatch) else batch
            name = f"shard-{len(manifest.shards):06d}.parquet"
            digest = write_shard(table, folder / name)
            manifest.shards[name] = {"rows": table.num_rows, "sha256": digest, "dropped": {}}
    if not manifest.shards:
        raise InputError(f"the input holds no usable line: {report.describe()}")
    manifest.extra["report"] = report.as_dict()
    manifest.complete = True
    manifest.save()
    return manifest


def _misfit(manifest: Manifest, translator: TranslatorConfig) -> str | None:
    """Tell when this text gets far less than the score that the translator reaches on its own kind of text."""
    expected = usual_score(translator.name)
    if expected is None:
        return None
    scores = pa.concat_tables(read_tables(manifest.paths(), ["translation_score"]))["translation_score"].to_numpy()
    mean = float(scores.mean()) if len(scores) else -math.inf
    if mean >= expected - MISFIT:
        return None
    return (
        f"the mean translation score is {mean:.2f}, far below the {expected:.2f} that {translator.name!r} reaches on "
        "the text it was trained for: these translations are of no use; choose another --translator"
    )


def _count(total: dict[str, int], more: dict[str, int]) -> None:
    for reason, count in more.items():
        total[reason] = total.get(reason, 0) + count


def _write(manifest: Manifest, folder: Path, release: ReleaseConfig) -> Release:
    columns = set()
    for table in read_tables(manifest.paths()[:1]):
        columns.update(table.column_names)
    rows = 0
    with Progress("release", manifest.rows) as progress:

        def tables() -> Iterator[pa.Table]:
            nonlocal rows
            for table in read_tables(manifest.paths()):
                yield table
                rows += table.num_rows
                progress.advance_to(rows)

        return write_release(
            tables(),
            folder,
            source=release.keep_source and "source" in columns,
            origin="origin" in columns,
            seed=release.seed,
            max_shard_bytes=release.max_shard_bytes,
        )


def _record(name: str, written: Release, settings: dict[str, Any], dropped: dict[str, int]) -> dict[str, Any]:
    return {
        "name": name,
        "version": __version__,
        "schema_version": SCHEMA_VERSION,
        "license": settings["release"]["license"],
        "settings": json.loads(json.dumps(settings)),
        "dropped": dropped,
        "columns": written.schema.names,
        "packages": {package: version(package) for package in PACKAGES if available(package)},
        "configs": {config: asdict(files) for config, files in written.configs.items()},
        "statistics": written.statistics.summary(),
    }


def _write_card(folder: Path, record: dict[str, Any]) -> None:
    picture = plot_histograms(record["statistics"], folder / PICTURE)
    write_bytes(folder / "README.md", release_card(record, picture=picture).encode())
    write_bytes(folder / "build.json", (json.dumps(record, indent=1, ensure_ascii=False) + "\n").encode())
