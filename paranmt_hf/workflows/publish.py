"""Publish a release or an encoder on the Hub: checked first, with a card that is rendered from its record."""

from __future__ import annotations

import fnmatch
import json
import re
import tempfile
import textwrap
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from paranmt_hf.corpus.record import RELEASE_RECORD, ReleaseRecord
from paranmt_hf.corpus.release import FOLDERS, read_record, release_files
from paranmt_hf.corpus.schema import arrow_schema
from paranmt_hf.corpus.statistics import plot_histograms
from paranmt_hf.errors import InputError
from paranmt_hf.hub.repository import PICKLES, weights_checksum
from paranmt_hf.hub.upload import Content, Parcel, Published, Target, stage, upload
from paranmt_hf.util.optional import available
from paranmt_hf.workflows.support.model_record import AboutModel, model_record, read_training
from paranmt_hf.workflows.support.release_card import HISTOGRAMS_PICTURE, release_card

if TYPE_CHECKING:
    from paranmt_hf.encoders.loading import SentenceEncoder

RESULTS_FILE = ".eval_results/sts.yaml"
# Files of an encoder that go with it: these names, in its folder and in those of its modules.
MODEL_FILES = re.compile(
    r"(\d+_\w+/)?(model\.safetensors|modules\.json|parts\.json|vocabulary\.json|vocab\.txt|config\.json"
    r"|(average|combination|directions|wordembedding|lstm|pooling|sentence_bert)_config\.json|config_sentence_transformers\.json"
    r"|tokenizer(_config)?\.json|special_tokens_map\.json|training\.(json|png))"
)
CODE_FILES = re.compile(r"paranmt_hf_\w+\.py")
RELEASE_FILES = re.compile(rf"({'|'.join(FOLDERS.values())})/[^/]+\.parquet|{re.escape(HISTOGRAMS_PICTURE)}")
# What damaged or edited records raise where they are read.
DAMAGED = (KeyError, TypeError, ValueError, AttributeError, IndexError, StopIteration)
# Says whether a folder and what goes of it are one model.
PROBE = ["A man is playing a guitar.", "Isn't it 3.5 km to the town?", ""]


@dataclass(frozen=True)
class Plan:
    """What would be published, and what it would lack.

    Attributes:
        target: Where.
        parcel: The files.
        card: The card, as it would stand there.
        missing: What a reader would miss, in sentences.
        left_here: Files of the folder that are not published.
    """

    target: Target
    parcel: Parcel
    card: str
    missing: list[str]
    left_here: list[str]


def plan_dataset(folder: str | Path, target: Target, notes: str | Path | None = None) -> Plan:
    """Check a release and lay out what is published; touches nothing.

    Args:
        folder: The release.
        target: Where to.
        notes: Markdown file with a section of one's own for the card.

    Raises:
        InputError: The folder is no whole release of this schema, or holds what a repository must not.
    """
    folder = Path(folder).expanduser()
    if (folder / "modules.json").exists():
        raise InputError(f"{folder} is an encoder and no release; publish it with `paranmt publish model`")
    record = read_record(folder)
    refuse_unsafe(folder)
    written = _read_notes(notes)
    try:
        return _plan_release(folder, record, target, written)
    except InputError:
        raise
    except DAMAGED as error:
        raise InputError(
            f"{folder / RELEASE_RECORD} is damaged ({_said(error)}); copy or build {folder} again"
        ) from None


def _plan_release(folder: Path, record: ReleaseRecord, target: Target, notes: str) -> Plan:
    schema = arrow_schema(source="source" in record.columns, origin="origin" in record.columns)
    for name, config in record.configs.items():
        _check_rows(folder, name, config.rows, schema)
    _check_sizes(folder, record)
    files: dict[str, Content] = {path: folder / path for config in record.configs.values() for path in config.files}
    files[RELEASE_RECORD] = folder / RELEASE_RECORD
    missing = []
    if picture := _picture(record):
        files[HISTOGRAMS_PICTURE] = picture
    else:
        missing.append("the histograms as a picture: pip install 'paranmt-hf[plots]'")
    version = target.tag or ("v1" if target.branch == "main" else None)
    card = release_card(record, picture=picture is not None, repository=target.name, version=version, notes=notes)
    _check_card(card, list(files), record)
    files["README.md"] = card.encode()
    known = {path: digest for config in record.configs.values() for path, digest in config.files.items()}
    message = f"Release of {record.statistics.rows:,} pairs"
    parcel = Parcel(files, lambda path: bool(RELEASE_FILES.fullmatch(path)), message, known)
    plan = Plan(target, parcel, card, missing, _others(folder, list(files)))
    return _with_own_card(plan, folder, release_card(record, picture=(folder / HISTOGRAMS_PICTURE).exists()))


def plan_model(
    folder: str | Path,
    target: Target,
    about: AboutModel,
    results: str | Path | None = None,
    notes: str | Path | None = None,
) -> Plan:
    """Check an encoder and lay out what is published; touches nothing.

    Args:
        folder: What `paranmt train` wrote.
        target: Where to.
        about: What no program can know: licence, and words on the data.
        results: What `paranmt evaluate sts --json` wrote for these weights.
        notes: Markdown file with a section of one's own for the card.

    Raises:
        InputError: The folder is no encoder, holds code or weights that are not this package's, or the results are
            those of other weights.
    """
    from paranmt_hf.encoders.loading import code_files, load

    folder = Path(folder).expanduser()
    if (folder / RELEASE_RECORD).exists():
        raise InputError(f"{folder} is a release and no encoder; publish it with `paranmt publish dataset`")
    if not folder.is_dir():
        raise InputError(f"there is no folder {folder}; expected an encoder made by `paranmt train`")
    training = read_training(folder)
    encoder = load(folder, device="cpu")
    refuse_unsafe(folder, code_files())
    written = _read_notes(notes)
    _check_dimension(encoder, training, folder)
    found = None if results is None else _results_of(Path(results).expanduser(), folder)
    try:
        return _plan_encoder(folder, encoder, training, target, about, found, written)
    except InputError:
        raise
    except DAMAGED as error:
        where = folder / "training.json" if found is None else f"{folder / 'training.json'} or {results}"
        raise InputError(f"{where} is damaged ({_said(error)}); make it again") from None


def _plan_encoder(
    folder: Path,
    encoder: SentenceEncoder,
    training: dict[str, Any],
    target: Target,
    about: AboutModel,
    found: dict[str, Any] | None,
    notes: str,
) -> Plan:
    from paranmt_hf.hub.model_card import eval_results, model_card

    record = model_record(target.name.split("/")[1], folder, training, about, found)
    card = model_card({**record, "repository": target.name, "notes": notes})
    files: dict[str, Content] = {path: folder / path for path in _files(folder) if MODEL_FILES.fullmatch(path)}
    files |= _code_of(folder)
    files["README.md"] = card.encode()
    missing = []
    if found is None:
        missing.append("results: paranmt evaluate sts FOLDER --data STS --json FILE, then --results FILE")
    elif (entries := eval_results(record)) is not None:
        files[RESULTS_FILE] = entries.encode()
    if not about.commands and ("mean_of" in training or "start" in training.get("inputs", {})):
        missing.append("the commands of the models it came from: --about FILE with 'commands'")
    for name in ("summary", "data", "license_text"):
        if not getattr(about, name):
            missing.append(f"words of your own on the {name.replace('_', ' ')}: --about FILE with {name!r}")
    parcel = Parcel(files, _is_of_a_model, f"Encoder {record['name']}")
    _check_whole(parcel, encoder, folder)
    return _with_own_card(Plan(target, parcel, card, missing, _others(folder, list(files))), folder, None)


def _read_notes(path: str | Path | None) -> str:
    try:
        return "" if path is None else Path(path).expanduser().read_text(encoding="utf8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read {path}: {_said(error)}; expected a Markdown file in UTF-8") from None


def _with_own_card(plan: Plan, folder: Path, rendered: str | None) -> Plan:
    """Say so where a card of somebody's own lies in the folder, which is not sent."""
    card = folder / "README.md"
    if card.exists() and (rendered is None or card.read_text(encoding="utf8", errors="replace") != rendered):
        plan.left_here.append("README.md (the card is rendered from records; --notes FILE adds to it)")
    return plan


def publish_dataset(
    folder: str | Path,
    name: str,
    *,
    notes: str | Path | None = None,
    private: bool = False,
    revision: str = "main",
    tag: str | None = None,
) -> Published:
    """Publish a release as a dataset; called again it sends what is missing, and nothing if all is there.

    Args:
        folder: The release.
        name: `organisation/name` on the Hub.
        notes: Markdown file with a section of one's own for the card.
        private: Make a new repository private.
        revision: The branch that gets the files.
        tag: Name of the version; on the main branch the next of `v1`, `v2`, ... if left out.

    Raises:
        InputError: The release fails a check, there is no login that may write, or the connection broke.
    """
    plan = plan_dataset(folder, Target(name, "dataset", private, revision, tag), notes)
    return upload(plan.parcel, plan.target)


def publish_model(
    folder: str | Path,
    name: str,
    *,
    about: AboutModel,
    results: str | Path | None = None,
    notes: str | Path | None = None,
    private: bool = False,
    revision: str = "main",
    tag: str | None = None,
) -> Published:
    """Publish an encoder as a model; other arguments as `publish_dataset`.

    Args:
        folder: The encoder.
        name: `organisation/name` on the Hub.
        about: Licence, and words on the data.
        results: What `paranmt evaluate sts --json` wrote for these weights.
        notes: As for a dataset, and so are the others.
        private: A new repository is private.
        revision: Branch.
        tag: Version.

    Raises:
        InputError: The encoder fails a check, there is no login that may write, or the connection broke.
    """
    plan = plan_model(folder, Target(name, "model", private, revision, tag), about, results, notes)
    return upload(plan.parcel, plan.target)


def _files(folder: Path) -> list[str]:
    """Paths of the files in a folder, hidden ones left out."""
    paths = [path.relative_to(folder) for path in sorted(folder.rglob("*")) if path.is_file()]
    return [path.as_posix() for path in paths if not any(part.startswith(".") for part in path.parts)]


def _others(folder: Path, published: Sequence[str]) -> list[str]:
    return [path for path in _files(folder) if path not in published]


def refuse_unsafe(folder: Path, own: Collection[str] = ()) -> None:
    """Refuse code, pickles, and links that lead out of the folder.

    Args:
        folder: What is to be published.
        own: Names of code files of this package, which are not sent as they lie there but written anew.

    Raises:
        InputError: There is such a file.
    """
    for path in sorted(folder.rglob("*")):
        if path.is_symlink() and not path.resolve().is_relative_to(folder.resolve()):
            raise InputError(f"{path} is a link that leads out of {folder}; put what it leads to there")
        if path.suffix == ".py" and path.relative_to(folder).as_posix() not in own:
            raise InputError(f"{path} is code that is not this package's, which is not published; move it away")
        if any(path.match(pattern) for pattern in PICKLES):
            raise InputError(f"{path} can hold a pickle, which runs code when it is read; move it away")


def _code_of(folder: Path) -> dict[str, bytes]:
    """The code that a model needs where this package is absent, as this version has it, which has loaded the model."""
    from paranmt_hf.encoders.loading import PREFIX, code_files

    kinds = [entry["type"] for entry in json.loads((folder / "modules.json").read_text(encoding="utf8"))]
    if not any(kind.startswith(PREFIX) for kind in kinds):
        return {}
    return {name: code.encode() for name, code in code_files().items()}


def _check_whole(parcel: Parcel, encoder: SentenceEncoder, folder: Path) -> None:
    """Load what goes as a reader would, and compare its vectors with those of the folder."""
    from paranmt_hf.encoders.loading import load

    with tempfile.TemporaryDirectory() as place:
        stage(parcel, Path(place))
        found = load(place, device="cpu").encode(PROBE, show_progress_bar=False)
    if not np.array_equal(found, encoder.encode(PROBE, show_progress_bar=False)) or not np.isfinite(found).all():
        raise InputError(f"{folder} gives other vectors than its published files would; train or copy it again")


def _is_of_a_model(path: str) -> bool:
    return path == RESULTS_FILE or bool(MODEL_FILES.fullmatch(path) or CODE_FILES.fullmatch(path))


def _said(error: BaseException) -> str:
    """Name an error and what it is about, in a few words."""
    text = textwrap.shorten(str(error), 100, placeholder=" ...")
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _check_rows(folder: Path, config: str, rows: int, schema: Any) -> None:  # noqa: ANN401
    """Compare the Parquet files of a config with the schema and the record."""
    found = 0
    for path in release_files(folder, config):
        try:
            file = pq.ParquetFile(path)
        except pa.ArrowException as error:
            raise InputError(f"cannot read {path}: {error}; copy or build {folder} again") from None
        with file:
            found += file.metadata.num_rows
            if not file.schema_arrow.remove_metadata().equals(schema):
                raise InputError(f"{path} has other columns than the schema of a release; build it again")
    if found != rows:
        raise InputError(f"{folder}: config {config!r} has {found:,} rows, its record says {rows:,}; build it again")


def _check_sizes(folder: Path, record: ReleaseRecord) -> None:
    """Compare what the card says of sizes with the files."""
    for name, config in record.configs.items():
        if config.file_bytes != sum((folder / path).stat().st_size for path in config.files):
            raise InputError(
                f"{folder}: the record has another size for config {name!r} than its files; build it again"
            )
    if record.statistics.rows != record.configs["default"].rows:
        raise InputError(f"{folder}: the record's statistics are of another number of rows; build it again")


def _picture(record: ReleaseRecord) -> bytes | None:
    if not available("matplotlib"):
        return None
    with tempfile.TemporaryDirectory() as place:
        plot_histograms(record.statistics, Path(place) / HISTOGRAMS_PICTURE)
        return (Path(place) / HISTOGRAMS_PICTURE).read_bytes()


def _check_card(card: str, files: Sequence[str], record: ReleaseRecord) -> None:
    """Read the card's header as the Hub does, and compare it with the files."""
    header = yaml.safe_load(card.split("---\n")[1])
    rows = {info["config_name"]: info["splits"][0]["num_examples"] for info in header["dataset_info"]}
    if rows != {name: config.rows for name, config in record.configs.items()}:
        raise InputError(f"the card's row counts {rows} are not those of the record; build the release again")
    for config in header["configs"]:
        pattern = config["data_files"][0]["path"]
        expected = set(record.configs[config["config_name"]].files)
        if {path for path in files if fnmatch.fnmatchcase(path, pattern)} != expected:
            raise InputError(f"the card's pattern {pattern!r} does not match the files of its config")


def _results_of(path: Path, folder: Path) -> dict[str, Any]:
    """Find the results of these weights in a results file."""
    try:
        entries = json.loads(path.read_text(encoding="utf8"), parse_constant=_refuse_constant)
        found = [entry for entry in entries if entry.get("weights") == weights_checksum(folder)]
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise InputError(
            f"cannot read results from {path} ({type(error).__name__}); expected a file that `paranmt evaluate sts "
            f"{folder} --data STS --json {path}` wrote"
        ) from None
    if not found:
        raise InputError(
            f"{path} holds no results of the weights in {folder}; measure them: paranmt evaluate sts {folder} "
            f"--data STS --json {path}"
        )
    result = found[-1]
    if missing := {"years", "sets", "notes", "mean", "development"} - result.keys():
        raise InputError(
            f"{path} lacks {', '.join(sorted(missing))}; write it again with `paranmt evaluate sts --json`"
        )
    return dict(result)


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is no result")


def _check_dimension(encoder: Any, training: dict[str, Any], folder: Path) -> None:  # noqa: ANN401
    found = encoder.get_embedding_dimension()
    if found != training["dimension"]:
        raise InputError(
            f"{folder} gives vectors of {found} dimensions, its training.json says {training['dimension']}; they do "
            "not belong together"
        )
