"""`paranmt annotate`: people rate a sample of a corpus on a local page, as for table 3 of ParaNMT-50M."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from paranmt_hf.apps.annotate.answers import (
    ANSWERS_FILE,
    AnswerStore,
    Imported,
    Rating,
    annotator_name,
    read_csv,
    to_csv,
)
from paranmt_hf.apps.annotate.sample import AnnotationConfig, AnnotationSample, draw_sample
from paranmt_hf.apps.annotate.table import (
    AnnotationTable,
    AnnotatorProgress,
    annotation_table,
    progress_of,
)
from paranmt_hf.corpus.release.release import find_release
from paranmt_hf.errors import InputError
from paranmt_hf.util.files import replacing, result_file, shown_path
from paranmt_hf.util.local_page import address, listen, new_token, serve
from paranmt_hf.util.markers import Writes
from paranmt_hf.util.optional import require
from paranmt_hf.util.run import Result, result_folder, run
from paranmt_hf.util.wording import counted

logger = logging.getLogger(__name__)


class SampledPairs(Result[AnnotationSample]):
    """A folder with a sample for human evaluation, to which the answers are added."""

    def summary(self) -> str:
        sample = self.record
        folder = shown_path(self.folder)
        already = "" if self.fresh else " (was made already)"
        lines = [f"{folder}: {counted(len(sample.items), 'pair')}{already}"]
        for index, part in enumerate(sample.ranges):
            count = sum(item.range == index for item in sample.items)
            fewer = ", which are all" if count == part.pairs else ""
            lines.append(f"  {part.label:<20} {count:>6} of {part.pairs:>13,}{fewer}")
        if sample.outside or sample.unscored:
            lines.append(f"  not sampled: {sample.outside:,} outside all ranges, {sample.unscored:,} without a score")
        return "\n".join([*lines, f"rate them: paranmt annotate serve {folder}"])


def sample_for_annotation(
    corpus: str | Path, out: str | Path, *, config: AnnotationConfig | None = None
) -> SampledPairs:
    """Sample pairs from ranges of the paraphrase score of a corpus, for people to rate.

    Args:
        corpus: Folder of a corpus, or its id on the Hub.
        out: Folder of the sample, and of the answers to it.
        config: Which pairs.
    """
    out, config = result_folder(out, AnnotationSample, sources=[corpus]), config or AnnotationConfig()
    found = find_release(corpus)
    ranges = {"quantiles": config.quantiles} if config.quantiles else {"ranges": list(config.ranges)}
    settings = {**found.identity, **ranges, "per_range": config.per_range, "seed": config.seed}
    return run(
        out,
        settings,
        AnnotationSample,
        lambda work, folder: draw_sample(found.files, config, corpus=found.name, settings=settings),
        result=SampledPairs,
        command="annotate sample",
    )


@dataclass(frozen=True)
class Annotators:
    """The progress of each annotator of a sample, by name."""

    progress: dict[str, AnnotatorProgress]

    def summary(self) -> str:
        return "\n".join(
            f"{name}: {found.rated} of {found.pairs} rated, {found.skipped} skipped"
            for name, found in self.progress.items()
        )


def serve_annotation(
    folder: str | Path,
    *,
    annotators: Sequence[str] = (),
    port: int = 0,
    announce: Callable[[str], None] = logger.info,
) -> Annotators:
    """Serve the rating page on this computer only, until Ctrl-C.

    Answers are stored at once; the same command continues later.

    Args:
        folder: Folder of a sample.
        annotators: Names of the people who may rate; by default anybody, under a name chosen on the page.
        port: Port on this computer; 0 for any free one.
        announce: Called before the page is served, with a line for each of `annotators` that holds the address.
    """
    for package in ("starlette", "uvicorn"):
        require(package, "annotate")
    from paranmt_hf.apps.annotate.page import annotation_app

    sample = AnnotationSample.read(folder)
    names = [annotator_name(name) for name in annotators]
    store = AnswerStore(Path(folder) / ANSWERS_FILE, sample)
    token = new_token()
    with listen(port) as listening:
        for name in names:
            announce(f"{name}: {address(listening, token, annotator=name)}")
        if not names:
            announce(f"open {address(listening, token)}")
        serve(annotation_app(sample, store, names), listening, token)
    return Annotators({name: progress_of(found, len(sample.items)) for name, found in store.answers().items()})


def _answers(folder: str | Path) -> tuple[AnnotationSample, dict[str, dict[int, Rating]]]:
    """Read a sample, and the ratings of each annotator by the index of the pair; reject a sample without answers."""
    sample, path = AnnotationSample.read(folder), Path(folder) / ANSWERS_FILE
    if not path.is_file():
        raise InputError(f"nobody has rated a pair of {folder} yet; `paranmt annotate serve {folder}` shows them")
    return sample, AnswerStore(path, sample).answers()


def summarise_annotation(folder: str | Path) -> AnnotationTable:
    """Count the labels of each range, and measure how far annotators agree (ParaNMT-50M, table 3).

    Args:
        folder: Folder of a sample.
    """
    return annotation_table(*_answers(folder))


@dataclass(frozen=True)
class ExportedAnswers:
    """A CSV file with answers, and their number."""

    file: Path
    answers: int

    def summary(self) -> str:
        return f"{shown_path(self.file)}: {counted(self.answers, 'answer')}"


def export_annotation(folder: str | Path, out: Annotated[str | Path, Writes]) -> ExportedAnswers:
    """Write all answers to a sample as CSV.

    Args:
        folder: Folder of a sample.
        out: The CSV file.
    """
    sample, answers = _answers(folder)
    file = result_file(out)
    with replacing(file) as aside:
        aside.write_text(to_csv(sample, answers), encoding="utf8", newline="")
    written = 0
    for answers_of_one in answers.values():
        written += sum(not answer.is_empty for answer in answers_of_one.values())
    return ExportedAnswers(file, written)


def import_annotation(folder: str | Path, file: str | Path, *, replace: bool = False) -> Imported:
    """Add the answers in a CSV file to those of a sample; if one of them is wrong, none is added.

    Args:
        folder: Folder of a sample.
        file: CSV file that `paranmt annotate export` wrote, here or on another computer.
        replace: Replace answers of the same person to the same pair that differ; otherwise they are an error.
    """
    sample = AnnotationSample.read(folder)
    answers = read_csv(Path(file), sample)
    try:
        return AnswerStore(Path(folder) / ANSWERS_FILE, sample).merge(answers, replace=replace)
    except InputError as error:
        # Other errors are about the answers in the folder, not about the file.
        if error.option != "replace":
            raise
        raise InputError(f"{file}: {error}", option="replace", path=Path(file)) from None
