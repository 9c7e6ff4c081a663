"""`paranmt annotate`: human evaluation of a corpus. ParaNMT-50M (Wieting & Gimpel 2018), table 3."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paranmt_hf.apps.annotate.answers_csv import NOTHING, Imported, add_answers, read_csv, to_csv
from paranmt_hf.apps.annotate.labels import check_name
from paranmt_hf.apps.annotate.page import annotation_app
from paranmt_hf.apps.annotate.sample import (
    SAMPLE_FILE,
    AnnotationConfig,
    Sample,
    draw_sample,
    read_sample,
    sample_bytes,
)
from paranmt_hf.apps.annotate.store import ANSWERS_FILE, AnswerStore
from paranmt_hf.apps.annotate.table import (
    AnnotationTable,
    AnnotatorProgress,
    annotation_table,
    plot_table,
    progress_of,
)
from paranmt_hf.corpus.release import fetch_release, read_record, release_files
from paranmt_hf.errors import InputError
from paranmt_hf.hub.client import is_id, split_revision
from paranmt_hf.util.files import check_suffix, replacing
from paranmt_hf.util.local_page import address, listen, new_token, serve
from paranmt_hf.util.optional import require
from paranmt_hf.util.work import finished, folder_aside, result_folder


@dataclass(frozen=True)
class Drawn:
    """A sample in a folder, and whether it was drawn just now."""

    folder: Path
    sample: Sample
    fresh: bool


def sample_for_annotation(release: str | Path, out: str | Path, config: AnnotationConfig | None = None) -> Drawn:
    """Draw a sample of a corpus for human evaluation.

    Args:
        release: Folder of a release, or its id on the Hub.
        out: Folder of the sample; answers will lie in it too.
        config: Which pairs.

    Raises:
        InputError: The release cannot be read, a range is empty, or something else is at `out` already.
    """
    out, config = result_folder(out), config or AnnotationConfig()
    name, files, source = _located(str(release))
    ranges = {"quantiles": config.quantiles} if config.quantiles else {"ranges": list(config.ranges)}
    identity = {**source, **ranges, "per_range": config.per_range, "seed": config.seed}
    made = finished(out, identity, read_sample, lambda sample: sample.identity, made="drawn")
    if made is not None:
        return Drawn(out, made, fresh=False)
    sample = draw_sample(files, config, corpus=name, identity=identity)
    with folder_aside(out) as aside:
        (aside / SAMPLE_FILE).write_bytes(sample_bytes(sample))
    return Drawn(out, sample, fresh=True)


def _located(release: str) -> tuple[str, list[Path], dict[str, Any]]:
    """Name of a release, its files, and what tells it from others."""
    path = Path(release).expanduser()
    if path.exists() or not is_id(split_revision(release)[0]):
        folder = path.resolve()
        files = release_files(folder)
        return folder.name, files, {"files": read_record(folder, ["default"]).configs["default"].files}
    name, revision = split_revision(release)
    fetched = fetch_release(name, revision, "default")
    if fetched is None:
        raise InputError(f"dataset {name!r} is no release of this program; `paranmt import` makes one of it")
    return name, fetched[0], {"dataset": name, "revision": fetched[1]}


def serve_annotation(
    folder: str | Path,
    *,
    annotators: Sequence[str] = (),
    port: int = 0,
    announce: Callable[[str, str | None], None] = lambda address, annotator: None,
) -> dict[str, AnnotatorProgress]:
    """Show the page on which people rate, on this computer only, until Ctrl-C.

    Args:
        folder: Folder of the sample.
        annotators: Who may rate; empty for anybody, by a name that they choose on the page.
        port: Port on loopback; 0 takes any that is free.
        announce: Gets the address of the page before the page is served, one for each of `annotators`.

    Returns:
        How far each annotator is.

    Raises:
        InputError: There is no sample, the port is taken, a name is none, or starlette or uvicorn is not installed.
    """
    for package in ("starlette", "uvicorn"):
        require(package, "annotate")
    sample = read_sample(Path(folder))
    names = [check_name(name) for name in annotators]
    if len({name.casefold() for name in names}) < len(names):
        raise InputError(f"--annotator names somebody twice: {', '.join(names)}")
    with AnswerStore(Path(folder) / ANSWERS_FILE, sample) as store:
        app, token = annotation_app(sample, store, names), new_token()
        with listen(port) as listening:
            people: list[str | None] = [*names] or [None]
            for name in people:
                announce(address(listening, token, **({"annotator": name} if name else {})), name)
            # This is how the page is meant to be ended.
            with suppress(KeyboardInterrupt):
                serve(app, listening, token)
        return {name: progress_of(found, len(sample.items)) for name, found in store.answers().items()}


def _answers(folder: str | Path) -> tuple[Sample, AnswerStore]:
    sample, path = read_sample(Path(folder)), Path(folder) / ANSWERS_FILE
    if not path.is_file():
        raise InputError(f"nobody has rated a pair of {folder} yet; `paranmt annotate serve {folder}` shows them")
    return sample, AnswerStore(path, sample)


def export_annotation(folder: str | Path, path: str | Path) -> int:
    """Write all answers to a sample as CSV.

    Args:
        folder: Folder of the sample.
        path: The file.

    Returns:
        Number of answers.

    Raises:
        InputError: There are no answers, or the file cannot be written.
    """
    sample, store = _answers(folder)
    with store:
        answers = store.answers()
    _check_writable(Path(path))
    with replacing(Path(path).resolve()) as aside:
        aside.write_text(to_csv(sample, answers), encoding="utf8", newline="")
    return sum(answer.said != NOTHING for of_items in answers.values() for answer in of_items.values())


def import_annotation(folder: str | Path, path: str | Path, *, replace: bool = False) -> Imported:
    """Add the answers of a CSV file to those of a sample, all or none.

    Args:
        folder: Folder of the sample.
        path: What `export_annotation` wrote, here or on another computer.
        replace: Whether an answer of the file replaces another one of the same person to the same pair.

    Raises:
        InputError: A line is wrong, the answers are to another sample, or an answer would be replaced.
    """
    sample = read_sample(Path(folder))
    answers = read_csv(Path(path), sample)
    with AnswerStore(Path(folder) / ANSWERS_FILE, sample) as store:
        return add_answers(store, answers, Path(path), replace_others=replace)


def summarise_annotation(folder: str | Path) -> AnnotationTable:
    """Count what people say of each range, and measure how far they agree.

    Args:
        folder: Folder of the sample.

    Raises:
        InputError: There is no sample, or nobody has rated anything.
    """
    sample, store = _answers(folder)
    with store:
        return annotation_table(sample, store.answers())


def write_table(table: AnnotationTable, path: str | Path) -> None:
    """Write a table as JSON.

    Raises:
        InputError: It cannot be written.
    """
    _check_writable(Path(path))
    with replacing(Path(path).resolve()) as aside:
        aside.write_text(json.dumps(table.to_json(), indent=1, ensure_ascii=False) + "\n", encoding="utf8")


def draw_table(table: AnnotationTable, path: str | Path) -> None:
    """Draw a table as a picture, a PNG or what else the ending says.

    Raises:
        InputError: It cannot be written, or matplotlib is not installed.
    """
    path = Path(path)
    check_picture(path)
    with replacing(path.resolve()) as aside:
        plot_table(table, aside, path.suffix.lower()[1:])


def check_picture(path: Path) -> None:
    """Check that a picture of the table can be written to a path.

    Raises:
        InputError: It is a folder, its folder is not there, or its name ends in another suffix.
    """
    _check_writable(path)
    check_suffix(path, "--picture", [".png", ".svg", ".pdf"])


def _check_writable(path: Path) -> None:
    if path.is_dir():
        raise InputError(f"{path} is a folder; name a file")
    if not path.resolve().parent.is_dir():
        raise InputError(f"there is no folder {path.parent}; make it first")
