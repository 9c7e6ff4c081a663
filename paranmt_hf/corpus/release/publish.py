"""Publishing of corpora: checks against the record, the files and the card."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from paranmt_hf.corpus.release.record import RELEASE_RECORD, ReleaseRecord
from paranmt_hf.corpus.release.release import read_record
from paranmt_hf.corpus.release.release_card import HISTOGRAMS_PICTURE, RELEASE_FILES, release_card
from paranmt_hf.corpus.statistics.release_counts import plot_histograms
from paranmt_hf.errors import InputError
from paranmt_hf.hub.licenses import License
from paranmt_hf.hub.publish import About, Kind, PublishPlan
from paranmt_hf.hub.upload import Content
from paranmt_hf.util.wording import counted
from paranmt_hf.util.yaml_files import card_header


def check_release(folder: Path, license: str | None = None) -> ReleaseRecord:
    """Check the files and the licence of a corpus against its record.

    Args:
        folder: The corpus.
        license: Licence under which it is published instead of its own; None for its own.

    Returns:
        The record, with `license` if that is given.

    Raises:
        InputError: If a file is damaged, record and card state different licences, the Hub does not know the licence,
            or the terms of the translation model do not permit it.
    """
    record = read_record(folder)
    if license is not None:
        record = record.with_license(str(License.parse(license)))
        record.check_terms(license)
        return record
    card = card_header(folder / "README.md")
    if card and str(License.of_header(card)) != record.license:
        raise InputError(
            f"{folder / RELEASE_RECORD} states the licence {record.license!r} and README.md another one, so one was "
            "edited; undo that, or give the one that holds as `license`",
            option="license",
        )
    try:
        License.parse(record.license)
    except InputError as error:
        raise InputError(
            f"{folder} is under the licence {record.license!r}, which the Hub does not accept: {error}",
            option="license",
        ) from None
    return record


def plan_release(folder: Path, about: About, results: Sequence[Any] = ()) -> PublishPlan:
    """Check a corpus, and plan what is published: its files and its card.

    Args:
        folder: The corpus.
        about: What the publisher says of it: licence and notes.
        results: Not used, because corpora have no results of evaluation.
    """
    record = check_release(folder, about.license)
    files: dict[str, Content] = {path: folder / path for config in record.configs.values() for path in config.files}
    built = ReleaseRecord.read(folder)
    # The record is published as it is in the folder, unless the licence is another one.
    files[RELEASE_RECORD] = folder / RELEASE_RECORD if record == built else record.to_bytes()
    picture = plot_histograms(record.statistics)
    if picture:
        files[HISTOGRAMS_PICTURE] = picture

    def card(repository: str) -> str:
        return release_card(record, picture=bool(picture), repository=repository, notes=about.notes or "")

    return PublishPlan(
        files,
        card,
        release_card(built, picture=(folder / HISTOGRAMS_PICTURE).exists()),
        f"Release of {counted(record.statistics.rows, 'pair')}",
        missing=[] if picture else ["the histograms as a picture: pip install 'paranmt-hf[plots]'"],
    )


RELEASE = Kind(
    "a corpus",
    "dataset",
    "load_dataset",
    owns=lambda path: bool(RELEASE_FILES.fullmatch(path)),
    plan=plan_release,
)
