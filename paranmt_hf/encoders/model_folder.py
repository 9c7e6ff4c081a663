"""The folder of an encoder: the list of its modules, its settings, and the code of our modules."""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paranmt_hf.encoders import modules
from paranmt_hf.encoders.modules.paranmt_tables import load_json
from paranmt_hf.errors import InputError, refuse
from paranmt_hf.hub.repository import SETTINGS_FILE, SUFFIXES
from paranmt_hf.text import definitions
from paranmt_hf.util.files import replacing

if TYPE_CHECKING:
    from paranmt_hf.hub.repository import Model

# Settings of a whole encoder, not of a module.
SETTINGS = ("prompts", "default_prompt_name", "similarity_fn_name", "truncate_dim")
# In `modules.json` our modules are named in one of two ways: by the file with their code in the folder, which begins
# with PREFIX, or by their place in this package, which begins with MODULES.
PREFIX = "paranmt_"
MODULES = "paranmt_hf.encoders.modules"
AGAIN = "put a whole copy of the model in its place"  # Advice at the end of messages about damaged files
# Files of modules, in the folder of the encoder or in a folder for one module.
MODULE_FILES = re.compile(
    r"(\d+_\w+/)?((\w+_)?config\.json|parts\.json|special_tokens_map\.json|tokenizer\.json|vocab\.txt|vocabulary\.json"
    r"|model\.safetensors)"
)


@dataclass(frozen=True)
class ModuleEntry:
    """One module in the `modules.json` of an encoder."""

    folder: str  # Its folder inside that of the encoder; empty or `.` if its files are directly in that of the encoder
    reference: str  # Its class, as `file.Class` or as `package.module.Class` of an installed package

    @property
    def kind(self) -> str:
        """Name of its class, without file or package."""
        return self.reference.rpartition(".")[2]


def module_list(model: Model) -> list[ModuleEntry]:
    """Read the list of an encoder's modules, in order.

    Raises:
        InputError: There is no readable list, or a folder in it is not a plain name.
    """
    try:
        entries = load_json(model.folder / "modules.json", list)
        listed = [ModuleEntry(str(entry["path"]), str(entry["type"])) for entry in entries]
    except (ValueError, TypeError, KeyError):
        listed = []
    refuse(
        not listed,
        f"{model.name} is not a sentence encoder: expected a readable modules.json, as a SentenceTransformer saves it",
        path=model.folder,
    )
    for entry in listed:
        refuse(
            entry.folder not in ("", ".") and not re.fullmatch(r"[\w-]+", entry.folder),
            f"{model.name}: modules.json names the path {entry.folder!r}, which is not a plain folder name",
            path=model.folder,
        )
    return listed


def model_settings(model: Model) -> dict[str, Any]:
    """Read the settings of an encoder as a whole: those of `SETTINGS` that its file has, by name."""
    path = model.folder / SETTINGS_FILE
    if not path.is_file():
        return {}
    try:
        found = load_json(path, dict)
    except ValueError as error:
        raise InputError(f"{model.name}: {error}; {AGAIN}", path=model.folder) from error
    return {name: found[name] for name in SETTINGS if found.get(name) is not None}


def code_files() -> dict[str, str]:
    """Return the content of each file with the code of our modules, by the name that it gets next to weights."""
    sources = {path.name: path for path in sorted(Path(modules.__path__[0]).glob(f"{PREFIX}*.py"))}
    sources["paranmt_text.py"] = Path(definitions.__file__)
    return {name: path.read_text(encoding="utf8") for name, path in sources.items()}


def write_code(folder: Path) -> None:
    """Write the code of our modules into the folder of a model."""
    for name, code in code_files().items():
        (folder / name).write_text(code, encoding="utf8", newline="\n")


def copy_model(model: Model, folder: Path) -> None:
    """Copy the files of an encoder into a folder, with the code of our modules that other libraries need."""
    # All files are listed before any is copied, because the target may be inside the folder of the model, or the same.
    for path in list(model.folder.rglob("*")):
        relative = path.relative_to(model.folder)
        if path.is_file() and path.suffix in (*SUFFIXES, ".md", ".png") and not relative.parts[0].startswith("."):
            target = folder / relative
            target.parent.mkdir(parents=True, exist_ok=True)
            if target.exists() and target.samefile(path):
                continue
            # A former file of this name is replaced and not written to, because processes may have it mapped.
            with replacing(target) as aside:
                shutil.copyfile(path, aside)
    if any(entry.reference.startswith(PREFIX) for entry in module_list(model)):
        write_code(folder)
