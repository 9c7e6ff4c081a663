"""From rows to a corpus: the steps that building, importing and rescoring share.

Work in progress lies in `<out>.work` next to the corpus until it is complete. The same call after an
interruption continues there.
"""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from paranmt_hf.corpus.jobs.engine import EngineConfig
from paranmt_hf.corpus.jobs.job import run_job
from paranmt_hf.corpus.jobs.shards import Manifest, Stage, cut_into_shards
from paranmt_hf.corpus.jobs.stages import ColumnStage, ScoreStage, TranslateStage
from paranmt_hf.corpus.language_models.kept_answers import ANSWERS_FILE
from paranmt_hf.corpus.language_models.stage import AskStage
from paranmt_hf.corpus.reading.readers import Report
from paranmt_hf.corpus.release.record import RELEASE_RECORD, WORDING, ReleaseRecord, identity_of
from paranmt_hf.corpus.release.release import Release, read_record, read_tables, write_release
from paranmt_hf.corpus.release.release_card import HISTOGRAMS_PICTURE, release_card
from paranmt_hf.corpus.release.schema import OPTIONAL, SCHEMA_VERSION
from paranmt_hf.corpus.scoring.alignment import WARNING, alignment_warnings
from paranmt_hf.corpus.scoring.authorship import Authorship
from paranmt_hf.corpus.scoring.mismatch_columns import MISMATCHES
from paranmt_hf.corpus.statistics.release_counts import plot_histograms, text_histogram
from paranmt_hf.corpus.translation.translator import TranslatorConfig
from paranmt_hf.corpus.translation.unusual_lines import are_in_capitals
from paranmt_hf.encoders.named_encoder import NamedEncoder
from paranmt_hf.errors import InputError
from paranmt_hf.hub.languages import check_language
from paranmt_hf.hub.licenses import License
from paranmt_hf.hub.repository import usual_score
from paranmt_hf.text.word_rules import ENGLISH, word_tokenizer_for
from paranmt_hf.util.files import shown_path, write_bytes
from paranmt_hf.util.markers import Advanced
from paranmt_hf.util.parquet import read_schema
from paranmt_hf.util.progress import Progress
from paranmt_hf.util.records import Identity, as_json, made_with, read_json
from paranmt_hf.util.run import Result, run
from paranmt_hf.util.settings import Settings
from paranmt_hf.util.wording import brief, counted
from paranmt_hf.util.work import Holds, check_making, work_folder

logger = logging.getLogger(__name__)

SHARD_ROWS = 10_000  # Lines of one unit of work
MISFIT = 0.4  # The carried translator loses 0.1 from its test captions to other captions, and 0.7 to news
# Columns of which nearly all texts are one text, or have no letter, or that hold some single words only, are labels or
# numbers. In 1,000 rows in a row of real pairs, sorted too, at most 25 % are one text and 24 % are without a letter.
NEARLY_ALL, FEW_VALUES, FEW_ROWS, MANY_ROWS = 0.9, 20, 20, 1000

Batches = Callable[[Report], Iterable[pa.RecordBatch | pa.Table]]
# Parts of an identity about what is done to the input; each stage checks its own.
STAGES = ("pivot", "translator", "paraphraser", "scorer", "columns")
RESCORED = "rescored"  # Part of an identity: the files of a corpus that is scored again, which its record leaves out
# Packages that decide the last digits of the scores and the bytes of the files.
PACKAGES = ("ctranslate2", "numpy", "pyarrow", "sentence_transformers", "tokenizers", "torch", "transformers")


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
    def identity(self) -> dict[str, Any]:
        """Everything that determines the corpus beyond the scored rows."""
        said = {name: getattr(self, name) for name in WORDING}
        license = None if self.license is None else str(License.parse(self.license, listed=False))
        kept = {"license": license, "keep_source": self.keep_source}
        other = {} if self.language == ENGLISH else {"language": self.language}
        return kept | other | {name: value for name, value in said.items() if value is not None}

    def check_license(self) -> None:
        """Check the licence against the Hub's list, before work that takes hours."""
        License.parse(self.license)


class Built(Result[ReleaseRecord]):
    """A finished corpus."""

    def summary(self) -> str:
        """What the corpus holds, and how to load it."""
        statistics = self.record.statistics
        lines = [f"{self.folder}: {counted(statistics.rows, 'pair')}" + ("" if self.fresh else " (was built already)")]
        for name, config in self.record.configs.items():
            lines.append(f"  {name:<9}{counted(config.rows, 'pair'):>18} {config.file_bytes:>15,} bytes")
        lines += [f"  dropped  {count:>12,} {reason}" for reason, count in self.record.dropped.items()]
        for name, count in statistics.mismatches.items():
            lines.append(f"  {name:<18}{counted(count, 'pair'):>18}, {count / statistics.rows:.1%}")
        if held_out := self.record.held_out:
            lines.append(
                f"  human_score: {held_out.accuracy:.1%} of held-out sentences classified correctly, references first "
                f"in {held_out.ordered:.1%} of {held_out.pairs:,} held-out pairs"
            )
        lines += ["paraphrase score", text_histogram(statistics.histogram, width=40)]
        return "\n".join([*lines, f"load it: load_dataset({shown_path(self.folder.resolve())!r})"])


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
    own = (engine or EngineConfig()).resolved()
    for stage in stages:
        identity = identity | stage.identity
    wanted = {**identity, "release": release.identity}
    if (out / RELEASE_RECORD).is_file():
        wanted = _with_added(wanted, ReleaseRecord.read(out))
    check_stages(stages, release.language)
    built = run(
        out,
        identity_of(wanted),
        ReleaseRecord,
        lambda work, folder: write_rows(batches, work, folder, identity, stages, release, own, out.name),
        result=Built,
        command=command,
        holds=holds or holds_shards,
        read=read_record,
        # Another scorer must not cost the translations, so each stage answers for its own settings.
        work_identity={},
    )
    return built if built.fresh else _reworded(built, wanted, release)


def translator_of(out: Path, part: Literal["translator", "pivot"]) -> dict[str, Any] | None:
    """Identity of a translator of a corpus, or of the unfinished work for one; None if there is none."""
    found: Any = None
    with suppress(InputError):
        if (out / RELEASE_RECORD).is_file():
            found = ReleaseRecord.read(out).settings.get(part)
        for manifest in work_folder(out).glob("[1-9]*-*/manifest.json"):
            settings = read_json(manifest, "a manifest").get("settings", {})
            found = found or settings.get(part)
    return found if isinstance(found, dict) else None


def _with_added(wanted: Identity, record: ReleaseRecord) -> Identity:
    """Ask for the columns too that `paranmt score --add` gave a finished corpus, which is otherwise the same."""
    added = {**record.settings.get("columns", {}), **wanted.get("columns", {})}
    return {**wanted, "columns": added} if added else wanted


def _reworded(built: Built, wanted: Identity, release: ReleaseConfig) -> Built:
    """Write the card of a finished corpus again if its texts have changed."""
    if built.record.settings["release"] == wanted["release"]:
        return built
    check_making(built.folder)
    said = {name: getattr(release, name) for name in WORDING}
    settings = {**built.record.settings, "release": as_json(wanted["release"])}
    record = replace(built.record, **said, settings=settings)
    write_card(built.folder, record)
    return Built(built.folder, record.write(built.folder), fresh=False)


def holds_shards(work: Path) -> bool:
    """Whether a work folder holds expensive results: translated or scored shards, or answers."""
    return any(work.glob("[1-9]*-*/shard-*")) or (work / ANSWERS_FILE).exists()


def write_rows(
    batches: Batches,
    work: Path,
    folder: Path,
    identity: Identity,
    stages: Sequence[Stage],
    release: ReleaseConfig,
    engine: EngineConfig,
    name: str,
    before: ReleaseRecord | None = None,
) -> ReleaseRecord:
    """Send rows through stages and write a corpus into an empty folder, continuing the work in a work folder.

    The arguments are as in `make_release`; `before` is the record of a corpus that is scored again.
    """
    report = Report()

    def extra() -> dict[str, Any]:
        if not report.kept:
            raise InputError(f"the input holds no usable line: {report.describe()}")
        if report.dropped.get("undecodable", 0) > report.kept:
            raise InputError(f"most lines are not UTF-8: {report.describe()}; convert the files, such as with `iconv`")
        return {"report": report.as_dict()}

    own = {key: value for key, value in identity.items() if key not in STAGES}
    rows = engine.shard_rows or SHARD_ROWS
    manifest = cut_into_shards(batches(report), work / "0-input", own, rows, unit="lines", extra=extra)
    counts, warnings = (Counter(before.dropped), list(before.warnings)) if before else (Counter[str](), [])
    if before is None:
        warnings += check_sentences(manifest)
    capitals = before.capitals if before else _count_capitals(manifest, stages)
    manifest, stages = _run_stages(manifest, work, stages, engine, counts, warnings)
    # Selected rows are no longer next to each other.
    if "selection" not in identity:
        warnings = [one for one in warnings if not one.startswith(WARNING)] + _alignment(manifest)
    written = _write(manifest, folder, release)
    settings = {key: value for key, value in identity.items() if key != RESCORED} | {"release": release.identity}
    classifiers = [stage.weights for stage in stages if isinstance(stage, ColumnStage) and stage.weights]
    held_out = before.held_out if before else None
    record = ReleaseRecord(
        name=name,
        schema_version=SCHEMA_VERSION,
        license=settings["release"]["license"],
        **{stated: settings["release"].get(stated) for stated in WORDING},
        settings=as_json(settings),
        dropped=dict(counts),
        capitals=capitals,
        columns=written.schema.names,
        configs=written.configs,
        statistics=written.statistics.summary(),
        warnings=warnings,
        held_out=Authorship.load(classifiers[0]).held_out if classifiers else held_out,
        options=before.options if before else {},
        **made_with(*PACKAGES, *["scikit-learn"] * ("human_score" in written.schema.names)),
    )
    write_card(folder, record)
    return record


def _run_stages(
    manifest: Manifest,
    work: Path,
    stages: Sequence[Stage],
    engine: EngineConfig,
    counts: Counter[str],
    warnings: list[str],
) -> tuple[Manifest, list[Stage]]:
    """Run the stages, adding to `counts` and `warnings`; returns the last shards and the stages."""
    counts.update(manifest.extra["report"]["dropped"])
    check_scorer(manifest, stages)
    ran: list[Stage] = []
    for index, stage in enumerate(stages, 1):
        if isinstance(stage, ColumnStage | AskStage):
            stage = stage.ready(manifest, work)
        # Requests go out from one process, which keeps to their limits.
        where = EngineConfig(workers=1) if isinstance(stage, AskStage) else engine
        manifest = run_job(manifest, work / f"{index}-{stage.label}", stage, where)
        ran.append(stage)
        counts.update(manifest.dropped)
        if isinstance(stage, AskStage):
            warnings += stage.warnings()
        if isinstance(stage, TranslateStage) and (warning := misfit(manifest, stage.config)):
            logger.warning(f"warning: {warning}")
            warnings.append(warning)
    if any(counts.values()):
        logger.info("dropped: " + ", ".join(f"{count:,} {reason}" for reason, count in counts.items()))
    return manifest, ran


def _count_capitals(manifest: Manifest, stages: Sequence[Stage]) -> int:
    """Count the lines in capitals that are translated."""
    if not any(isinstance(stage, TranslateStage) for stage in stages):
        return 0
    side = "source" if "source" in read_schema(manifest.paths()[0]).names else "reference"
    tables = read_tables(manifest.paths(), [side])
    return sum(pc.sum(are_in_capitals(table[side])).as_py() or 0 for table in tables)


def _alignment(manifest: Manifest) -> list[str]:
    found = alignment_warnings(manifest.paths())
    for warning in found:
        logger.warning(f"warning: {warning}")
    return found


def _write(manifest: Manifest, folder: Path, release: ReleaseConfig) -> Release:
    columns = set(read_schema(manifest.paths()[0]).names)
    optional = [name for name in OPTIONAL & columns if name != "source" or release.keep_source]
    with Progress("release", manifest.rows, unit="pairs") as progress:
        return write_release(progress.over(read_tables(manifest.paths())), folder, optional=optional)


def write_card(folder: Path, record: ReleaseRecord) -> None:
    """Write figure and card of a corpus whose Parquet files are written."""
    picture = plot_histograms(record.statistics)
    if picture is not None:
        write_bytes(folder / HISTOGRAMS_PICTURE, picture)
    write_bytes(folder / "README.md", release_card(record, picture=picture is not None).encode())


def check_sentences(manifest: Manifest) -> list[str]:
    """Reject columns of something else than sentences, such as labels; if there are few rows, warn and say so."""
    found = []
    table = pq.read_table(manifest.paths()[0])
    for name in ("source", "reference", "translation"):
        if name not in table.column_names or not (reason := _unlike_sentences(table[name])):
            continue
        said = f"the column {name} does not seem to hold sentences: {reason}; name another column"
        if table.num_rows >= MANY_ROWS:
            raise InputError(said, option="columns")
        logger.warning(f"warning: {said}")
        found.append(said)
    return found


def _unlike_sentences(column: pa.ChunkedArray) -> str:
    """Say why texts [row] are not sentences; empty if they may be."""
    rows = len(column)
    if rows < FEW_ROWS:
        return ""
    values, counts = column.value_counts().flatten()
    most = pc.max(counts)
    if most.as_py() >= NEARLY_ALL * rows:
        return f"{most.as_py():,} of {rows:,} are {brief(values[pc.index(counts, most).as_py()].as_py())}"
    letters = pc.sum(pc.match_substring_regex(column, r"\pL")).as_py()
    if rows - letters >= NEARLY_ALL * rows:
        return f"{rows - letters:,} of {rows:,} have no letter"
    if len(values) <= FEW_VALUES and not pc.any(pc.match_substring(values, " ")).as_py():
        return f"{rows:,} rows hold {counted(len(values), 'different word')}"
    return ""


def check_scorer(manifest: Manifest, stages: Sequence[Stage]) -> None:
    """Reject a scorer that knows none of the words, before hours of translation."""
    for stage in stages:
        if isinstance(stage, ScoreStage) and isinstance(stage.config, NamedEncoder):
            first = pq.read_table(manifest.paths()[0], columns=["reference"])
            stage.config.check_knows(first["reference"].to_pylist(), word_tokenizer_for(stage.language))


def check_stages(stages: Sequence[Stage], language: str) -> None:
    """Reject stages that are for another language."""
    for stage in stages:
        if isinstance(stage, ScoreStage) and isinstance(stage.config, NamedEncoder):
            stage.config.check_language(language)
        if isinstance(stage, ColumnStage) and language != ENGLISH:
            if rules := [name for name in stage.names if name in MISMATCHES]:
                raise InputError(f"{rules[0]} is made by rules for English, not for language {language}; leave it out")


def misfit(manifest: Manifest, translator: TranslatorConfig) -> str | None:
    """Return a warning if the scores are far below the translator's usual scores."""
    expected = usual_score(translator.name)
    # Draws are less probable than what a search finds, on any text.
    if expected is None or translator.sample:
        return None
    columns = ["translation_score", *(["rank"] if translator.hypotheses > 1 else [])]
    table = pa.concat_tables(read_tables(manifest.paths(), columns))
    if translator.hypotheses > 1:
        table = table.filter(pc.equal(table["rank"], 1))
    scores = table["translation_score"].to_numpy()
    mean = float(scores.mean()) if len(scores) else -math.inf
    if mean >= expected - MISFIT:
        return None
    return (
        f"the mean translation score is {mean:.2f}, far below the {expected:.2f} that {translator.name!r} reaches on "
        "the text it was trained for: these translations are of no use; choose another `translator`"
    )
