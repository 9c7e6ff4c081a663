"""Publish a release, an encoder or a paraphraser on the Hub: checked first, with a card rendered from its record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict, Unpack

from paranmt_hf.corpus.check_release import check_release, draw_histograms
from paranmt_hf.corpus.record import RELEASE_RECORD, ReleaseRecord
from paranmt_hf.corpus.release_card import HISTOGRAMS_PICTURE, RELEASE_FILES, release_card
from paranmt_hf.errors import InputError
from paranmt_hf.evaluation.results import Results
from paranmt_hf.hub.check_folder import left_here, read_notes, refuse_unsafe
from paranmt_hf.hub.licenses import License
from paranmt_hf.hub.upload import Content, Parcel, Published, Target, upload
from paranmt_hf.paraphrase.publish import (
    CODE_PATHS,
    belongs_to_a_paraphraser,
    check_published,
    is_paraphraser,
    load_checked,
    paraphraser_files,
)
from paranmt_hf.training.card import AboutModel
from paranmt_hf.training.check_model import (
    RESULTS_FILE,
    belongs_to_a_model,
    check_dimension,
    check_whole,
    model_files,
    results_of_weights,
)
from paranmt_hf.training.provenance import origin_of
from paranmt_hf.training.supervised.config import SupervisedRecord


class Where(TypedDict, total=False):
    """Where a folder goes on the Hub, beside the name; what is left out is as `Target` has it.

    Attributes:
        private: Make a new repository private.
        revision: The branch that gets the files; `main`.
        tag: Name of the version; on the main branch the next of `v1`, `v2`, ...
    """

    private: bool
    revision: str
    tag: str | None


@dataclass(frozen=True)
class Plan:
    """What would be published, and what it would lack.

    Attributes:
        target: Where.
        parcel: The files.
        card: The card, as it would stand there.
        missing: What a reader would miss, in sentences.
        left_here: Files of the folder that are not published.
        loader: What loads it.
    """

    target: Target
    parcel: Parcel
    card: str
    missing: list[str]
    left_here: list[str]
    loader: str = "paranmt_hf.load"

    def send(self) -> Published:
        """Publish it; called again it sends what is missing, and nothing if all is there.

        Raises:
            InputError: There is no login that may write, or the connection broke.
        """
        return upload(self.parcel, self.target)


def plan_dataset(
    folder: str | Path,
    name: str,
    *,
    license: License | None = None,
    notes: str | Path | None = None,
    **where: Unpack[Where],
) -> Plan:
    """Check a release and lay out what is published; touches nothing.

    Args:
        folder: The release.
        name: `organisation/name` on the Hub.
        license: The licence that it is published under, in place of the one that it was built with; the record and the
            card that are published state it, and those in the folder stay as they are.
        notes: Markdown file with a section of one's own for the card.
        where: `private`, `revision` and `tag`, see `Where`.

    Raises:
        InputError: The folder is no whole release of this schema, or holds what a repository must not.
    """
    target = Target(name, "dataset", **where)
    folder = Path(folder).expanduser()
    if (folder / "modules.json").exists():
        raise InputError(f"{folder} is an encoder and no release; publish it with `paranmt publish model`")
    record = check_release(folder, license)
    refuse_unsafe(folder)
    return _plan_release(folder, record, target, read_notes(notes))


def publish_dataset(
    folder: str | Path,
    name: str,
    *,
    license: License | None = None,
    notes: str | Path | None = None,
    **where: Unpack[Where],
) -> Published:
    """Publish a release as a dataset: `plan_dataset(...).send()`, with the same arguments."""
    return plan_dataset(folder, name, license=license, notes=notes, **where).send()


def _plan_release(folder: Path, record: ReleaseRecord, target: Target, notes: str) -> Plan:
    files: dict[str, Content] = {path: folder / path for config in record.configs.values() for path in config.files}
    checksums = {path: checksum for config in record.configs.values() for path, checksum in config.files.items()}
    built = ReleaseRecord.parse(folder, str(folder))
    # As it lies there, unless it is published under another licence.
    files[RELEASE_RECORD] = folder / RELEASE_RECORD if record == built else record.to_bytes()
    missing = []
    if picture := draw_histograms(record):
        files[HISTOGRAMS_PICTURE] = picture
    else:
        missing.append("the histograms as a picture: pip install 'paranmt-hf[plots]'")
    version = target.tag or ("v1" if target.revision == "main" else None)
    card = release_card(record, picture=picture is not None, repository=target.name, version=version, notes=notes)
    files["README.md"] = card.encode()
    message = f"Release of {record.statistics.rows:,} pairs"
    parcel = Parcel(files, lambda path: bool(RELEASE_FILES.fullmatch(path)), message, checksums)
    own_card = release_card(built, picture=(folder / HISTOGRAMS_PICTURE).exists())
    return Plan(target, parcel, card, missing, left_here(folder, files, own_card), "load_dataset")


def plan_model(
    folder: str | Path,
    name: str,
    *,
    about: AboutModel,
    results: str | Path | Sequence[Results] | None = None,
    notes: str | Path | None = None,
    **where: Unpack[Where],
) -> Plan:
    """Check an encoder or a paraphraser and lay out what is published; touches nothing.

    Args:
        folder: What `paranmt train`, `convert` or `paraphrase train` wrote.
        name: `organisation/name` on the Hub.
        about: What no program can know: licence, and words on the data.
        results: Of an encoder, what `paranmt evaluate sts --json` wrote for these weights, or the records that
            `evaluate` gives.
        notes: Markdown file with a section of one's own for the card.
        where: `private`, `revision` and `tag`, see `Where`.

    Raises:
        InputError: The folder is neither, holds code or weights that are not this package's, or the results are
            those of other weights.
    """
    from paranmt_hf.encoders.loading import load
    from paranmt_hf.encoders.model_folder import code_files

    target = Target(name, "model", **where)
    folder = Path(folder).expanduser()
    if (folder / RELEASE_RECORD).exists():
        raise InputError(f"{folder} is a release and no encoder; publish it with `paranmt publish dataset`")
    if (folder / SupervisedRecord.FILE).exists():
        raise InputError(
            f"{folder} is a model for a task, made by `paranmt supervise`, which this command does not publish; send "
            "it with huggingface_hub's upload_folder, as docs/supervised.md shows"
        )
    if not folder.is_dir():
        raise InputError(f"there is no folder {folder}; expected an encoder made by `paranmt train`")
    if is_paraphraser(folder):
        if results is not None:
            raise InputError(f"results are those of an encoder, and {folder} is a paraphraser; leave them out")
        return _plan_paraphraser(folder, target, about, read_notes(notes))
    origin = origin_of(folder)
    record = origin.read(folder)
    encoder = load(folder, device="cpu")
    refuse_unsafe(folder, code_files())
    own_words = read_notes(notes)
    check_dimension(encoder, record.dimension, folder, origin.file)
    figures = None if results is None else results_of_weights(results, folder)
    plan = _plan_encoder(folder, record, target, about, figures, own_words)
    check_whole(plan.parcel, encoder, folder)
    return plan


def publish_model(
    folder: str | Path,
    name: str,
    *,
    about: AboutModel,
    results: str | Path | Sequence[Results] | None = None,
    notes: str | Path | None = None,
    **where: Unpack[Where],
) -> Published:
    """Publish an encoder or a paraphraser as a model: `plan_model(...).send()`, with the same arguments."""
    return plan_model(folder, name, about=about, results=results, notes=notes, **where).send()


def _plan_encoder(
    folder: Path,
    made: Any,  # noqa: ANN401 - the record of how it came to be
    target: Target,
    about: AboutModel,
    results: Results | None,
    notes: str,
) -> Plan:
    from paranmt_hf.hub.model_card import eval_results, model_card

    origin = origin_of(folder)
    record = origin.card(target.name.split("/")[1], folder, made, about, results)
    card = model_card({**record, "repository": target.name, "notes": notes})
    files = model_files(folder)
    files["README.md"] = card.encode()
    if (entries := eval_results(record)) is not None:
        files[RESULTS_FILE] = entries.encode()
    parcel = Parcel(files, belongs_to_a_model, f"Encoder {record['name']}")
    own_card = origin.own_card(folder, folder.resolve().name, made)
    return Plan(target, parcel, card, origin.missing(made, about, results), left_here(folder, files, own_card))


def _plan_paraphraser(folder: Path, target: Target, about: AboutModel, notes: str) -> Plan:
    from paranmt_hf.hub.paraphraser_card import paraphraser_card
    from paranmt_hf.paraphrase.card import card_values, missing_of_paraphraser
    from paranmt_hf.paraphrase.record import ParaphraserRecord

    record = ParaphraserRecord.read(folder)
    refuse_unsafe(folder, CODE_PATHS)
    model = load_checked(folder, record)
    name, templates = target.name.split("/")[1], getattr(model, "templates", None)
    values = card_values(name, record, templates, about)
    card = paraphraser_card({**values, "repository": target.name, "notes": notes})
    files = paraphraser_files(folder, record)
    files["README.md"] = card.encode()
    parcel = Parcel(files, belongs_to_a_paraphraser, f"Paraphraser {name}")
    check_published(parcel, model, folder)
    own_card = paraphraser_card(card_values(folder.resolve().name, record, templates))
    missing = missing_of_paraphraser(record, about)
    return Plan(target, parcel, card, missing, left_here(folder, files, own_card), "paranmt_hf.load_paraphraser")
