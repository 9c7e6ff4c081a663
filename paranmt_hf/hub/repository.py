"""Location of the files of models and datasets: a folder or a snapshot of the Hub, nothing outside it; no pickles."""

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
"""Folder of the package's own sentences: `sample.cs` and `sample.en`, a bitext, and `similarity.tsv`, judged pairs."""
ModelKind = Literal["encoder", "translator"]
# The models that the package carries: a name is that of a folder in the assets.
CAPTIONS = "captions-cs-en"
CARRIED: dict[ModelKind, tuple[str, ...]] = {"encoder": ("small", "base"), "translator": (CAPTIONS,)}
# The default encoder. It is a path because a folder `small` of the user makes the name ambiguous, but not the default.
SMALL = ASSETS / "small"

PICKLES = ("*.bin", "*.pt", "*.pth", "*.pkl", "*.ckpt", "*.h5", "*.msgpack", "*.ot")
SETTINGS_FILE = "config_sentence_transformers.json"  # Settings of a whole encoder
CALIBRATION_FILE = "calibration.json"  # It changes no vector, so neither checksum nor loaders see it
# Endings of the files that make up a model: what its checksum is over, and what its loaders get to see.
SUFFIXES = (".json", ".safetensors", ".spm", ".model", ".txt", ".codes")


@dataclass(frozen=True)
class Model:
    """A located model."""

    name: str  # Hub id, or name of the folder
    folder: Path  # Where its files are
    revision: str  # Commit hash on the Hub, or `sha256:` and the checksum of the folder's files


def folder_of(name: str, kind: ModelKind) -> Path:
    """Return the expected folder of a model, which may be one that the package carries."""
    if name not in CARRIED[kind]:
        return Path(name).expanduser()
    # `paranmt quickstart` works in the folder of the assets.
    if Path(name).is_dir() and Path(name).resolve() != (ASSETS / name).resolve():
        raise InputError(f"{name} is both a model of the package and a folder here; write ./{name} for the folder")
    return ASSETS / name


def is_carried(name: str, kind: ModelKind) -> bool:
    """Whether a name, or a folder, is that of a model that the package carries."""
    path = Path(name)
    return name in CARRIED[kind] or (path.parent == ASSETS and path.name in CARRIED[kind])


def locate(model: str | Path | Model | None, revision: str | None = None, *, kind: ModelKind = "encoder") -> Model:
    """Find a model by folder or Hub id, downloading it if necessary, and compute its checksum.

    A Hub id such as `Helsinki-NLP/opus-mt-cs-en` may be followed by `@` and a revision; see `CARRIED` for the names of
    models that the package carries; None is the encoder `small`. A model that was located already is returned as it
    is, so that its files are read once.
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
    """Reject names that cannot be located, without downloading or reading a model."""
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
            f"no model {name!r}: expected a folder that exists or a Hub id like 'organisation/name'"
            f"{perhaps_path(name, *CARRIED[kind])}"
        )


def plain_name(name: str) -> str:
    """Name of a model without parent folders: that of its folder, or its id on the Hub.

    A link to a folder keeps its own name, because that is the one that a person chose.
    """
    folder = Path(name).expanduser()
    if not folder.is_dir():
        return name
    return folder.name if folder.name not in ("", "..") else folder.resolve().name


def _check_safe(folder: Path) -> None:
    """Reject a folder without safetensors."""
    for path in folder.rglob("*"):
        check_regular(path)
    files = sorted(path for path in folder.rglob("*") if path.is_file() and not path.name.startswith("."))
    _refuse_links(folder)
    if not any(path.suffix == ".safetensors" for path in files):
        raise InputError(_advice(folder, [path for path in files if _is_pickle(path)]))
    safe = {path.parent for path in files if path.name in ("model.safetensors", "model.safetensors.index.json")}
    # A part of a stacked model in a folder of its own, whose weights would be read from a pickle.
    if unsafe := [path for path in files if _is_pickle(path) and path.parent not in safe]:
        raise InputError(_advice(folder, unsafe))
    for path in files:
        _refuse_leading_out(path)
        _refuse_integers(path)


def _own_files(folder: Path) -> list[Path]:
    found = (path for path in folder.rglob("*") if path.suffix in SUFFIXES and path != folder / CALIBRATION_FILE)
    shown = (path for path in found if not any(part.startswith(".") for part in path.relative_to(folder).parts))
    return sorted(path for path in shown if path.is_file())


def _refuse_links(folder: Path) -> None:
    """Reject links to folders and to files elsewhere; links of the Hub cache lead to its `blobs`."""
    if folder.is_relative_to(ASSETS):
        # Some installers make links of all files of a package.
        return
    for path in sorted(path for path in folder.rglob("*") if path.is_symlink()):
        if path.is_dir():
            raise InputError(f"{path} is a link to a folder; put the folder itself there")
        if not is_inside(folder, path):
            raise InputError(f"{path} is a link that leads out of {folder}; put the file itself there")


def is_inside(folder: Path, path: Path) -> bool:
    """Whether a path, links resolved, is in a folder; for a snapshot, the `blobs` of the Hub cache are too."""
    inside = [folder.resolve()]
    if inside[0].parent.name == "snapshots":
        inside.append(inside[0].parent.parent / "blobs")
    return any(resolved(path).is_relative_to(place) for place in inside)


def _refuse_leading_out(path: Path) -> None:
    """Reject a configuration that names weights, a tokenizer or code elsewhere."""
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
    # Settings by which the configuration of a module makes the loader read other files than the model's own.
    leading_out = ("tokenizer_name_or_path", "processor_name", "tokenizer_file", "kernel_config", "use_kernels")
    for key, value in _entries(_json_or_none(path)) if path.match("sentence_*config.json") else ():
        if key in leading_out and value:
            raise InputError(f"{path} sets {key!r}, which leads out of the model; remove it")


def _refuse_integers(path: Path) -> None:
    """Reject weights stored as whole numbers without a scale, which torch would take for floats without a word."""
    if path.suffix != ".safetensors":
        return
    # A damaged file is reported when it is loaded.
    with suppress(SafetensorError, OSError), safe_open(path, "np") as file:
        names = list(file.keys())
        # What names of scales of quantised weights end in.
        scaled = any(name.endswith(("scale", "scales", "SCB", "absmax")) for name in names)
        for name in names:
            if not re.search(r"(^|\.)(weight|bias)(_\w+)?$", name):
                continue
            part = file.get_slice(name)
            kind = part.get_dtype()
            if "bias" in name.rpartition(".")[2] and len(part.get_shape()) > 1:
                # GPT-Neo and others save the mask of attention under this name.
                continue
            rounded = ("I16", "I32", "I64", "U16", "U32", "U64", "BOOL") + (() if scaled else ("I8", "U8"))
            if kind in rounded:
                raise InputError(
                    f"{path}: the weights {name!r} are whole numbers ({kind}) without a scale, so they were rounded; "
                    "save the model with floating-point weights",
                    path=path,
                )


def _json_or_none(path: Path) -> Any:  # noqa: ANN401 - whatever is there
    """Parse a JSON file; None if it is damaged, which is reported when it is loaded."""
    try:
        return parse_json(path.read_text(encoding="utf8"))
    except (OSError, ValueError):
        return None


def _entries(value: Any) -> Iterator[tuple[str, Any]]:  # noqa: ANN401
    """Every key of a JSON value with its value, at any depth."""
    waiting = [value]
    while waiting:
        inner = waiting.pop()
        if isinstance(inner, dict):
            yield from inner.items()
            waiting += inner.values()
        elif isinstance(inner, list):
            waiting += inner


def link_or_copy(path: Path, place: Path) -> None:
    """Link a file to a second path, or copy it where the system has no links."""
    try:
        place.symlink_to(path.resolve())
    except OSError:
        shutil.copy(path, place)


@contextmanager
def without_pickles(model: Model) -> Iterator[Path]:
    """Link the files of a model into a folder without pickles, so that no configuration can name one for a loader."""
    with tempfile.TemporaryDirectory() as folder:
        for path in _own_files(model.folder):
            place = Path(folder) / path.relative_to(model.folder)
            place.parent.mkdir(parents=True, exist_ok=True)
            link_or_copy(path, place)
        yield Path(folder)


def files_checksum(folder: Path) -> str:
    """Checksum of the names and contents of all files of a model that decide its vectors.

    Records of this package are left out, because they hold times and machines, and so are the versions of the
    libraries that saved it: the same training twice gives the same checksum.
    """
    return f"sha256:{_checksum_of(folder, [path for path in _own_files(folder) if not is_record(path)])}"


def weights_checksum(folder: Path) -> str:
    """Checksum of the names and contents of all safetensors files, which identifies a model in files of results."""
    return f"sha256:{_checksum_of(folder, sorted(folder.rglob('*.safetensors')))}"


def _checksum_of(folder: Path, files: Sequence[Path]) -> str:
    """Checksum over the names and contents of files."""
    digest = hashlib.sha256()
    for path in files:
        settings = _json_or_none(path) if path.name == SETTINGS_FILE else None
        if isinstance(settings, dict):
            # Without the versions of libraries.
            settings.pop("__version__", None)
            found = hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()
        else:
            found = checksum(path)
        digest.update(f"{path.relative_to(folder).as_posix()} {found}\n".encode())
    return digest.hexdigest()


def _is_pickle(path: Path) -> bool:
    """Whether a file may hold weights as a pickle."""
    # Trainers of transformers write these next to the weights of a checkpoint, and no loader of a model reads them.
    of_trainers = ("optimizer.pt", "scheduler.pt", "scaler.pt", "rng_state*.pth", "training_args.bin")
    return any(map(path.match, PICKLES)) and not any(map(path.match, of_trainers))


def _advice(folder: Path, pickles: list[Path]) -> str:
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
    """Mean translation score of a translator on its own test set, from its `about.json`; None without one."""
    about = _json_or_none(folder_of(name, "translator") / "about.json")
    score = about.get("mean_translation_score") if isinstance(about, dict) else None
    # A logarithm of probabilities; whatever else stands there says nothing.
    return float(score) if isinstance(score, int | float) and -1e3 < score <= 0 else None


def own_files(folder: Path, build: Callable[[], Any]) -> dict[str, list[Path]]:
    """List the data files of each split of a dataset in a folder, and reject files outside it.

    The card may name any path, and a link may lead anywhere; a folder from elsewhere must not make this machine read
    its owner's files, or fetch others. `build` makes the builder of `datasets`, which reads no data.
    """
    found: Mapping[Any, Any] = build().config.data_files or {}
    files = {str(split): [_own(folder, str(name)) for name in names] for split, names in found.items()}
    return {split: sorted(paths) for split, paths in files.items()}


def _own(folder: Path, name: str) -> Path:
    if "://" in name or not is_inside(folder, Path(name)):
        raise InputError(
            f"{folder} names the data file {name}, which lies outside of that folder and is not read; put it there, "
            "and correct data_files in its README.md"
        )
    check_regular(Path(name))
    return Path(name)
