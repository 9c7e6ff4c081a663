"""Finding the files of models and datasets, in a folder or a snapshot of the Hub.

Files outside of it, pickles and code are never read.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from safetensors import SafetensorError, safe_open

from paranmt_hf.errors import InputError
from paranmt_hf.hub.client import absent_here, check_download, fetching, is_id, perhaps_path, split_revision
from paranmt_hf.util.files import check_regular, checksum, is_record, parse_json, resolved

ASSETS = Path(__file__).parents[1] / "assets"
SAMPLE = ASSETS / "sample"
"""Folder of the sentences that the package carries: a bitext, `sample.cs` and `sample.en`, and `similarity.tsv`, pairs
with similarities that people gave."""
ModelKind = Literal["encoder", "translator"]
CAPTIONS = "captions-cs-en"
MULTILINGUAL = "multilingual"
# Languages (ISO 639-1 codes) of each encoder that the package carries, by the name of its folder in the assets.
LANGUAGES_OF: dict[str, tuple[str, ...]] = {
    "small": ("en",),
    "base": ("en",),
    "de": ("de",),
    "fr": ("fr",),
    "es": ("es",),
    MULTILINGUAL: ("en", "de", "fr", "es", "cs", "it", "nl", "pl", "pt"),
}
# Names of the models that the package carries.
CARRIED: dict[ModelKind, tuple[str, ...]] = {"encoder": tuple(LANGUAGES_OF), "translator": (CAPTIONS,)}
# The default encoder. It is a path, not a name: if the user has a folder `small`, that name is ambiguous, but the
# default still works.
SMALL = ASSETS / "small"

PICKLES = ("*.bin", "*.pt", "*.pth", "*.pkl", "*.ckpt", "*.h5", "*.msgpack", "*.ot")
SETTINGS_FILE = "config_sentence_transformers.json"  # Settings of a whole encoder
CALIBRATION_FILE = "calibration.json"  # It changes no vector, so it is not in the checksum, and loaders do not see it
# Endings of the files that make up a model. Its checksum is over these files, and loaders see only them.
SUFFIXES = (".json", ".safetensors", ".spm", ".model", ".txt", ".codes")


@dataclass(frozen=True)
class Model:
    """A model whose files were found."""

    name: str  # Hub id, or name of the folder
    folder: Path  # Where its files are
    revision: str  # Commit hash on the Hub, or `sha256:` and the checksum of the folder's files


def encoder_for(language: str) -> Path:
    """Return the folder of the default encoder for a language (ISO 639-1), which may not know it."""
    if language == "en":
        return SMALL
    return ASSETS / (language if language in LANGUAGES_OF else MULTILINGUAL)


def folder_of(name: str, kind: ModelKind) -> Path:
    """Return the folder that a name stands for: that of a carried model, or the name as a path, which may not exist.

    A name of a carried model is rejected if there is a folder of this name in the current folder too.
    """
    if name not in CARRIED[kind]:
        return Path(name).expanduser()
    # The second condition is for `paranmt quickstart`, whose current folder is that of the assets.
    if Path(name).is_dir() and Path(name).resolve() != (ASSETS / name).resolve():
        raise InputError(f"{name} is both a model of the package and a folder here; write ./{name} for the folder")
    return ASSETS / name


def is_carried(name: str, kind: ModelKind) -> bool:
    """Return whether a name or a path is that of a model which the package carries."""
    path = Path(name)
    return name in CARRIED[kind] or (path.parent == ASSETS and path.name in CARRIED[kind])


def locate(model: str | Path | Model | None, revision: str | None = None, *, kind: ModelKind = "encoder") -> Model:
    """Find a model, download it if necessary, and check that it can be read safely.

    Args:
        model: A folder, the name of a carried model (see `CARRIED`), or a Hub id such as `Helsinki-NLP/opus-mt-cs-en`,
            which may be followed by `@` and a revision. None is the encoder `small`. A `Model` is returned as it is,
            so that its files are read only once.
        revision: Branch, tag or commit on the Hub; None for the one in `model`, or the default.
        kind: What the model is; it decides which carried models the name can stand for.

    Returns:
        The model. Its revision is a commit on the Hub, or the checksum of a folder.
    """
    if isinstance(model, Model):
        if revision is not None and revision != model.revision:
            raise InputError(f"{model.name} is located at the revision {model.revision}, not {revision!r}")
        return model
    name = str(SMALL if model is None else model)
    folder = folder_of(name, kind)
    check_regular(folder)
    if not folder.is_dir() and revision is None:
        name, revision = split_revision(name)
    if folder.is_dir():
        if revision is not None:
            raise InputError(f"{name} is a folder, which has no revision {revision!r}; leave the revision out")
        _check_safe(folder)
        return Model(plain_name(str(folder)), folder, files_checksum(folder))
    _check_id(name, kind)
    from huggingface_hub import snapshot_download

    ignored = [*PICKLES, "*.py", "onnx/*", "openvino/*"]
    with fetching(name, "model", revision):
        fetched = Path(snapshot_download(name, revision=revision, ignore_patterns=ignored))
    _check_safe(fetched)
    for path in fetched.rglob("*.safetensors"):
        check_download(path, name)
    return Model(name, fetched, fetched.name)


def check_name(model: str, *, kind: ModelKind = "encoder") -> None:
    """Reject the name of a model that `locate` could not find, without downloading or reading a model."""
    folder = folder_of(model, kind)
    check_regular(folder)
    if folder.is_dir():
        return
    _check_id(split_revision(model)[0], kind)
    if absent_here(model) is not None:
        locate(model, kind=kind)


def _check_id(name: str, kind: ModelKind) -> None:
    """Reject the name of a model that is neither a folder nor a valid Hub id."""
    folder = folder_of(name, kind)
    if folder.parent == ASSETS:
        raise InputError(
            f"this installation of paranmt-hf was made without the {kind} {folder.name!r}; give another `{kind}`, a "
            "folder or an id on the Hub",
            path=folder,
        )
    if not is_id(name):
        raise InputError(
            f"no model {name!r}: expected a folder that exists, a Hub id like 'organisation/name', or a model of the "
            f"package: {', '.join(CARRIED[kind])}{perhaps_path(name, *CARRIED[kind])}"
        )


def plain_name(name: str) -> str:
    """Return the name of a model without parent folders: the name of its folder, or its id on the Hub.

    A link to a folder keeps its own name, because a person chose it.
    """
    folder = Path(name).expanduser()
    if not folder.is_dir():
        return name
    return folder.name if folder.name not in ("", "..") else folder.resolve().name


def _check_safe(folder: Path) -> None:
    """Reject a folder whose model cannot be read safely.

    That is one without safetensors, with weights that only a pickle holds, with links or configurations that lead out
    of it, or with weights that were rounded to whole numbers.
    """
    for path in folder.rglob("*"):
        check_regular(path)
    files = sorted(path for path in folder.rglob("*") if path.is_file() and not path.name.startswith("."))
    _refuse_links(folder)
    if not any(path.suffix == ".safetensors" for path in files):
        raise InputError(_advice(folder, [path for path in files if _is_pickle(path)]))
    safe = {path.parent for path in files if path.name in ("model.safetensors", "model.safetensors.index.json")}
    # A module of a model in a folder below, whose weights would be read from a pickle.
    if unsafe := [path for path in files if _is_pickle(path) and path.parent not in safe]:
        raise InputError(_advice(folder, unsafe))
    for path in files:
        _refuse_leading_out(path)
        _refuse_integers(path)


def _model_files(folder: Path) -> list[Path]:
    """Return the files that make up a model (see `SUFFIXES`), without its calibration and hidden files."""
    found = (path for path in folder.rglob("*") if path.suffix in SUFFIXES and path != folder / CALIBRATION_FILE)
    shown = (path for path in found if not any(name.startswith(".") for name in path.relative_to(folder).parts))
    return sorted(path for path in shown if path.is_file())


def _refuse_links(folder: Path) -> None:
    """Reject links to folders, and links to files outside of a folder (see `is_inside`)."""
    if folder.is_relative_to(ASSETS):
        # Some installers make all files of a package links.
        return
    for path in sorted(path for path in folder.rglob("*") if path.is_symlink()):
        if path.is_dir():
            raise InputError(f"{path} is a link to a folder; put the folder itself there")
        if not is_inside(folder, path):
            raise InputError(f"{path} is a link that leads out of {folder}; put the file itself there")


def is_inside(folder: Path, path: Path) -> bool:
    """Return whether a path, with links resolved, is inside a folder.

    For a snapshot in the Hub's cache, the `blobs` of the same repository are inside too, because its links lead there.
    """
    allowed = [folder.resolve()]
    if allowed[0].parent.name == "snapshots":
        allowed.append(allowed[0].parent.parent / "blobs")
    return any(resolved(path).is_relative_to(parent) for parent in allowed)


def _refuse_leading_out(path: Path) -> None:
    """Reject a configuration file that names weights, a tokenizer or code outside of the model."""
    if path.name == "adapter_config.json":
        raise InputError(
            f"{path.parent} is an adapter to another model; merge it into that model (merge_and_unload) and save it"
        )
    if path.name.endswith(".safetensors.index.json"):
        content = _json_or_none(path)
        weight_map = content.get("weight_map") if isinstance(content, dict) else None
        for name in weight_map.values() if isinstance(weight_map, dict) else ():
            if not isinstance(name, str) or Path(name).name != name or not name.endswith(".safetensors"):
                raise InputError(f"{path} names the weights {name!r}; expected a .safetensors file in that folder")
    # Settings of a module that make its loader read files outside of the model.
    leading_out = ("tokenizer_name_or_path", "processor_name", "tokenizer_file", "kernel_config", "use_kernels")
    for key, value in _entries(_json_or_none(path)) if path.match("sentence_*config.json") else ():
        if key in leading_out and value:
            raise InputError(f"{path} sets {key!r}, which leads out of the model; remove it")


def _refuse_integers(path: Path) -> None:
    """Reject a safetensors file with weights stored as whole numbers without a scale.

    torch would convert them to floats without an error, though they were rounded.
    """
    if path.suffix != ".safetensors":
        return
    # A damaged file is reported when it is loaded.
    with suppress(SafetensorError, OSError), safe_open(path, "np") as file:
        names = list(file.keys())
        # Names of the scales of quantised weights end in one of these.
        scaled = any(name.endswith(("scale", "scales", "SCB", "absmax")) for name in names)
        for name in names:
            if not re.search(r"(^|\.)(weight|bias)(_\w+)?$", name):
                continue
            tensor = file.get_slice(name)
            kind = tensor.get_dtype()
            if "bias" in name.rpartition(".")[2] and len(tensor.get_shape()) > 1:
                # GPT-Neo and others save the mask of attention as `bias`, with more than one axis.
                continue
            rounded = ("I16", "I32", "I64", "U16", "U32", "U64", "BOOL") + (() if scaled else ("I8", "U8"))
            if kind in rounded:
                raise InputError(
                    f"{path}: the weights {name!r} are whole numbers ({kind}) without a scale, so they were rounded; "
                    "save the model with floating-point weights",
                    path=path,
                )


def _json_or_none(path: Path) -> Any:  # noqa: ANN401 - whatever is there
    """Parse a JSON file; None if it cannot be read or is damaged, which is reported when the model is loaded."""
    try:
        return parse_json(path.read_text(encoding="utf8"))
    except (OSError, ValueError):
        return None


def _entries(value: Any) -> Iterator[tuple[str, Any]]:  # noqa: ANN401
    """Yield every key in a JSON value with its value, at any depth."""
    waiting = [value]
    while waiting:
        inner = waiting.pop()
        if isinstance(inner, dict):
            yield from inner.items()
            waiting += inner.values()
        elif isinstance(inner, list):
            waiting += inner


def link_or_copy(path: Path, place: Path) -> None:
    """Make `place` a link to the file `path`, or a copy of it if the system allows no links."""
    try:
        place.symlink_to(path.resolve())
    except OSError:
        shutil.copy(path, place)


@contextmanager
def without_pickles(model: Model) -> Iterator[Path]:
    """Give a `with` block a temporary folder with the files of a model but no pickles and no code.

    A loader of this folder cannot read a pickle, whatever the configuration of the model names.
    """
    with tempfile.TemporaryDirectory() as folder:
        for path in _model_files(model.folder):
            link = Path(folder) / path.relative_to(model.folder)
            link.parent.mkdir(parents=True, exist_ok=True)
            link_or_copy(path, link)
        yield Path(folder)


def files_checksum(folder: Path) -> str:
    """Return `sha256:` and a checksum over the names and contents of the files of a model that decide its vectors.

    If a training is repeated, the checksum is the same: records of this package are left out, because they hold times
    and machines, and so are the versions of the libraries that saved the model.
    """
    return f"sha256:{_checksum_of(folder, [path for path in _model_files(folder) if not is_record(path)])}"


def weights_checksum(folder: Path) -> str:
    """Return `sha256:` and a checksum over the names and contents of all safetensors files of a model.

    It identifies the model in files of evaluation results.
    """
    return f"sha256:{_checksum_of(folder, sorted(folder.rglob('*.safetensors')))}"


def _checksum_of(folder: Path, files: Sequence[Path]) -> str:
    """Return a SHA-256 over the relative paths and contents of files in a folder, in hexadecimal."""
    digest = hashlib.sha256()
    for path in files:
        settings = _json_or_none(path) if path.name == SETTINGS_FILE else None
        if isinstance(settings, dict):
            # The versions of libraries do not count.
            settings.pop("__version__", None)
            found = hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()
        else:
            found = checksum(path)
        digest.update(f"{path.relative_to(folder).as_posix()} {found}\n".encode())
    return digest.hexdigest()


def _is_pickle(path: Path) -> bool:
    """Return whether a file may hold the weights of a model as a pickle, by its name."""
    # Trainers of transformers write these files next to the weights of a checkpoint. No loader of a model reads them.
    of_trainers = ("optimizer.pt", "scheduler.pt", "scaler.pt", "rng_state*.pth", "training_args.bin")
    return any(map(path.match, PICKLES)) and not any(map(path.match, of_trainers))


def _advice(folder: Path, pickles: list[Path]) -> str:
    """Return the error about a folder without safetensors, which may hold weights as pickles, and what to do."""
    if not pickles and not any((folder / name).is_file() for name in ("modules.json", "config.json")):
        return f"{folder} is not a model: there is no modules.json (of encoders) or config.json in it"
    names = ", ".join(path.relative_to(folder).as_posix() for path in pickles[:3])
    if len(pickles) > 3:
        names += f" and {len(pickles) - 3} more"
    if not pickles:
        return f"{folder} holds no weights; expected the folder of a model, with model.safetensors in it"
    holds = f"weights in {names}, which is not read because it can run code"
    return (
        f"{folder} holds {holds}; expected model.safetensors: load the model once in a place you trust and call "
        "save_pretrained(), or name a revision that has safetensors (on the Hub often refs/pr/1)"
    )


def usual_score(name: str) -> float | None:
    """Return the mean translation score of a translator on its test set, from its `about.json`; None if it has none.

    Such a score is a logarithm of probabilities, at most 0.
    """
    about = _json_or_none(folder_of(name, "translator") / "about.json")
    score = about.get("mean_translation_score") if isinstance(about, dict) else None
    # Any other value is ignored.
    return float(score) if isinstance(score, int | float) and -1e3 < score <= 0 else None


def own_files(folder: Path, build: Callable[[], Any]) -> dict[str, list[Path]]:
    """List the data files of each split of a dataset in a folder, and reject files outside of it.

    The card may name any path, and a link may lead anywhere. A dataset from somebody else must not make this machine
    read private files of its user, or download others.

    Args:
        folder: Folder of the dataset.
        build: Creates the builder of the library `datasets` for it, which reads no data.

    Returns:
        The files of each split by its name, in alphabetical order.
    """
    found: Mapping[Any, Any] = build().config.data_files or {}
    files = {str(split): [_checked_inside(folder, str(name)) for name in names] for split, names in found.items()}
    return {split: sorted(paths) for split, paths in files.items()}


def _checked_inside(folder: Path, name: str) -> Path:
    """Return the path of a data file of a dataset; reject an address, and a file outside of the folder."""
    if "://" in name or not is_inside(folder, Path(name)):
        raise InputError(
            f"{folder} names the data file {name}, which lies outside of that folder and is not read; put it there, "
            "and correct data_files in its README.md"
        )
    check_regular(Path(name))
    return Path(name)
