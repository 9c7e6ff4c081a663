"""The folder of an encoder: its modules, its settings, and the integrity of its files."""

from __future__ import annotations

import re
import shutil
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from safetensors import SafetensorError, safe_open

from paranmt_hf.encoders import modules
from paranmt_hf.encoders.families import FILES, FURTHER_FILES
from paranmt_hf.encoders.modules.paranmt_tables import (
    CONFIG_FILE,
    HASHES,
    WEIGHT,
    NgramTable,
    load_json,
    read_rows,
    read_units,
)
from paranmt_hf.encoders.vocabulary import AverageTable, Vocabulary
from paranmt_hf.errors import InputError
from paranmt_hf.hub.repository import SETTINGS_FILE, SUFFIXES
from paranmt_hf.text import definitions
from paranmt_hf.text.definitions import vocabulary_of
from paranmt_hf.util.wording import brief

if TYPE_CHECKING:
    from paranmt_hf.hub.repository import Model

# Settings of a whole model.
SETTINGS = ("prompts", "default_prompt_name", "similarity_fn_name", "truncate_dim")
SIMILARITIES = ("cosine", "dot", "euclidean", "manhattan")
# Our modules in `modules.json`: by the names of the files with their code, or by where they are in this package.
PREFIX, MODULES = "paranmt_", "paranmt_hf.encoders.modules"
SAVED_SUFFIXES = (*SUFFIXES, ".md", ".png")  # Endings of the files that a copy has
LISTS = ("vocabulary.json", "parts.json", "modules.json")  # JSON files that hold a list
# The stock modules that WORD is saved as, whose path has changed between releases.
STATIC_EMBEDDING = re.compile(
    r"sentence_transformers\.(models|sentence_transformer\.modules)(\.\w+)?\.StaticEmbedding"
)
AGAIN = "put a whole copy of the model in its place"


def module_list(folder: Path, name: str) -> list[dict[str, str]]:
    """Read the modules of an encoder, in order, each with `name`, `path` and `type`; `name` is for errors."""
    try:
        entries = load_json(folder / "modules.json", list)
        listed = [{key: str(entry[key]) for key in ("name", "path", "type")} for entry in entries]
    except (ValueError, TypeError, KeyError):
        listed = []
    if not listed:
        raise InputError(
            f"{name} is not a sentence encoder: expected a readable modules.json, as a SentenceTransformer saves it"
        )
    for entry in listed:
        if entry["path"] not in ("", ".") and not re.fullmatch(r"[\w-]+", entry["path"]):
            raise InputError(
                f"{name}: modules.json names the path {entry['path']!r}, which is not a plain folder name"
            )
    return listed


def model_settings(folder: Path, name: str) -> dict[str, Any]:
    """Read those of `SETTINGS` that the file of an encoder has; `name` is for errors."""
    path = folder / SETTINGS_FILE
    if not path.is_file():
        return {}
    try:
        settings = load_json(path, dict)
    except ValueError as error:
        raise InputError(f"{name}: {error}; {AGAIN}") from error
    settings = {key: settings[key] for key in SETTINGS if settings.get(key) is not None}
    truncate = settings.get("truncate_dim")
    if truncate is not None and not (type(truncate) is int and truncate > 0):
        raise InputError(f"{name}: truncate_dim in {path} must be a whole number above 0, was {brief(truncate)}")
    if settings.get("similarity_fn_name", SIMILARITIES[0]) not in SIMILARITIES:
        found = settings["similarity_fn_name"]
        raise InputError(
            f"{name}: similarity_fn_name in {path} must be one of {', '.join(SIMILARITIES)}, was {brief(found)}"
        )
    return settings


def check_module(folder: Path, kind: str) -> None:
    """Check that all files of a module, named by its class, exist and are readable; raises a ValueError."""
    required = FILES.get(kind, ())
    for name in required:
        if not (folder / name).is_file():
            raise ValueError(f"{folder / name} is missing")
    for path in sorted(folder / name for name in {*required, *FURTHER_FILES} if name.endswith(".json")):
        if path.is_file() and not load_json(path, list if path.name in LISTS else dict) and path.name in required:
            raise ValueError(f"{path} is empty")
    for path in sorted(folder.glob("*.safetensors")):
        try:
            with safe_open(path, "np"):
                pass
        except (SafetensorError, OSError) as error:
            raise ValueError(f"{path} is damaged ({error})") from error
    if kind == "Combination":
        for name, part in chain.from_iterable(_parts(folder)):
            check_module(folder / name, part)


def _parts(folder: Path) -> list[list[tuple[str, str]]]:
    """Folder and class of each module of each encoder of a combination."""
    path = folder / "parts.json"
    try:
        parts = [[(str(entry["folder"]), str(entry["type"])) for entry in part] for part in load_json(path, list)]
    except (KeyError, TypeError):
        raise ValueError(f"{path} is damaged (expected lists of a folder and a type)") from None
    for name, _ in chain.from_iterable(parts):
        if not name.replace("_", "").isalnum():
            raise ValueError(f"{path} names the folder {name!r}, which is not a plain name")
    return parts


def read_average_tables(model: Model) -> tuple[list[AverageTable], str] | None:
    """Read the tables of an encoder that only averages rows, and how their means are combined, without torch.

    Those are WORD, TRIGRAM, their combinations, and Sent2Vec; None for another kind of encoder.
    """
    (entry, *further) = module_list(model.folder, model.name)
    folder, kind = model.folder / entry["path"], entry["type"].rpartition(".")[2]
    own = entry["type"].startswith((PREFIX, f"{MODULES}."))
    try:
        if further:
            return None
        if STATIC_EMBEDDING.fullmatch(entry["type"]):
            table = _read_stock(folder)
            return None if table is None else ([table], "concatenate")
        if own and kind == "Combination":
            return _read_combination(folder)
        if own and kind in ("WordEmbedding", "TrigramEmbedding", "NgramEmbedding"):
            return [_read_table(folder, kind)], "concatenate"
    except (ValueError, TypeError, KeyError) as error:
        raise InputError(f"{model.name}: {error}; {AGAIN}") from error
    return None


def _read_combination(folder: Path) -> tuple[list[AverageTable], str] | None:
    parts = _parts(folder)
    if not all(len(part) == 1 and part[0][1] in ("WordEmbedding", "TrigramEmbedding") for part in parts):
        return None
    mode = load_json(folder / "combination_config.json", dict).get("mode")
    tables = [_read_table(folder / name, kind) for ((name, kind),) in parts]
    widths = [table.rows.shape[1] for table in tables]
    if mode not in ("add", "concatenate") or not tables or (mode == "add" and len(set(widths)) > 1):
        raise ValueError(f"{folder / 'combination_config.json'} combines tables of {widths} dimensions by {mode!r}")
    return tables, mode


def _read_table(folder: Path, kind: str) -> AverageTable:
    units, weights = read_units(folder / "vocabulary.json"), folder / "model.safetensors"
    if kind != "NgramEmbedding":
        rows, _ = read_rows(weights, units)
        return AverageTable(Vocabulary("word" if kind == "WordEmbedding" else "trigram", units), rows)
    config = load_json(folder / CONFIG_FILE, dict)
    rows, hashes = read_rows(weights, units, HASHES)
    assert hashes is not None
    ngrams = NgramTable(config["order"], config["buckets"], hashes, len(units))
    return AverageTable(Vocabulary("ngram", units, ngrams), rows, config.get("cut", "words"))


def _read_stock(folder: Path) -> AverageTable | None:
    """Read WORD from its stock module; None if text is split in another way."""
    from tokenizers import Tokenizer

    path = folder / "tokenizer.json"
    if not path.is_file():
        raise ValueError(f"{path} is missing")
    try:
        units = vocabulary_of(Tokenizer.from_file(str(path)))
    except Exception as error:  # the tokenizers' errors have no class of their own
        raise ValueError(f"{path} is damaged ({error})") from error
    if units is None or _of_model2vec(folder / "model.safetensors"):
        return None
    return AverageTable(Vocabulary("word", units), read_rows(folder / "model.safetensors", units)[0])


def _of_model2vec(path: Path) -> bool:
    """Whether weights have the name that model2vec gives them; it also leaves unknown words out of the mean."""
    if not path.is_file():
        return False
    with suppress(SafetensorError), safe_open(path, "np") as file:
        return "embeddings" in file.keys() and WEIGHT not in file.keys()  # noqa: SIM118 - it is no mapping
    return False


def code_files() -> dict[str, str]:
    """Name and content of the files with our modules' code, as saved next to weights."""
    sources = {path.name: path for path in sorted(Path(modules.__path__[0]).glob(f"{PREFIX}*.py"))}
    sources["paranmt_text.py"] = Path(definitions.__file__)
    return {name: path.read_text(encoding="utf8") for name, path in sources.items()}


def write_code(folder: Path) -> None:
    """Write the code of our modules into the folder of a model."""
    for name, code in code_files().items():
        (folder / name).write_text(code, encoding="utf8", newline="\n")


def copy_model(model: Model, folder: Path) -> None:
    """Copy the files of an encoder into a folder, with the code that other libraries need."""
    # Listed first: the folder may be inside that of the model, or the same.
    for path in list(model.folder.rglob("*")):
        inner = path.relative_to(model.folder)
        if path.is_file() and path.suffix in SAVED_SUFFIXES and not inner.parts[0].startswith("."):
            (folder / inner).parent.mkdir(parents=True, exist_ok=True)
            with suppress(shutil.SameFileError):
                shutil.copyfile(path, folder / inner)
    if any(entry["type"].startswith(PREFIX) for entry in module_list(model.folder, model.name)):
        write_code(folder)
