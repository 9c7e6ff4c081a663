"""Records: JSON files that describe results, and that are read back into dataclasses."""

from __future__ import annotations

import dataclasses
import json
import platform
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Self, TypedDict, TypeVar

from paranmt_hf.errors import InputError
from paranmt_hf.util.files import checksum, parse_json, read_text, write_bytes
from paranmt_hf.util.optional import versions
from paranmt_hf.util.settings import is_recorded
from paranmt_hf.util.typed import Json, read
from paranmt_hf.util.wording import in_words
from paranmt_hf.version import __version__

Identity = dict[str, Any]
T = TypeVar("T")


class MadeWith(TypedDict):
    """The fields of a `Record` about the computer and the versions of libraries."""

    versions: dict[str, str]
    machine: str
    paranmt_hf: str


def made_with(*packages: str) -> MadeWith:
    """Return the fields of a `Record` about this computer, with the versions of packages, by their names for pip."""
    return {"versions": versions(packages), "machine": platform.machine(), "paranmt_hf": __version__}


@dataclass(frozen=True, kw_only=True)
class Record:
    """The record of a result: a JSON file in the folder of the result. Subclasses add fields.

    Attributes:
        FILE: Name of the JSON file.
        KIND: What a result with such a record is, for errors: `a lexicon (paranmt lexicon build)`.
        settings: Everything that determines the result: a dataclass of settings, or JSON values.
        versions: Versions of the libraries that made the result, by name.
        machine: Type of the processor, such as `x86_64`.
        paranmt_hf: Version of this package that made the result.
        options: Options of the commands that made the result, by the name of the command, as in a `--config` file;
            empty if it was made from Python. They are not published, because they name paths.
    """

    FILE: ClassVar[str]
    KIND: ClassVar[str]

    settings: Any
    versions: dict[str, str]
    machine: str
    paranmt_hf: str
    options: dict[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def identity(self) -> Identity:
        """The JSON values of the settings; a result is found again only by a request with equal ones."""
        return as_json(self.settings)

    @classmethod
    def path(cls, out: Path) -> Path:
        """Return the path of the record of the result `out`."""
        return out / cls.FILE

    @classmethod
    def read(cls, folder: str | Path) -> Self:
        """Read the record of the result in a folder; a folder without one is rejected as no result of this kind."""
        folder = Path(folder)
        path = cls.path(folder)
        if not path.is_file():
            found = f"holds no {cls.FILE}" if folder.is_dir() else "is a file" if folder.exists() else "does not exist"
            raise InputError(f"{folder} {found}; expected {cls.KIND}", path=folder)
        return cls.from_json(read_json(path, f"the record of {cls.KIND}"), path)

    @classmethod
    def from_json(cls, values: Json, where: Path | str) -> Self:
        """Build a record from parsed JSON; `where` names the file in errors."""
        record = from_json(cls, values, where)
        if dataclasses.is_dataclass(record.settings):
            # A setting that this version does not know made a result which this version cannot describe.
            for name in _unknown_keys(values["settings"], as_json(record.settings)):
                raise InputError(f"{where} has the setting {name!r}, which paranmt-hf {__version__} does not know")
        return record

    def to_json(self) -> dict[str, Any]:
        return as_json(self)

    def to_bytes(self) -> bytes:
        """Return the content of the JSON file."""
        return as_bytes(self.to_json())

    def write(self, folder: Path) -> Self:
        """Write the record into the folder of a result, and return it."""
        write_bytes(self.path(folder), self.to_bytes())
        return self


@dataclass(frozen=True, kw_only=True)
class FileRecord(Record):
    """The record of a result that is a single file `OUT`; the record is `OUT.json` next to it.

    Attributes:
        sha256: SHA-256 of the file `OUT`, in hexadecimal.
    """

    FILE: ClassVar[str] = ".json"

    sha256: str = ""

    @classmethod
    def path(cls, out: Path) -> Path:
        return out.with_name(f"{out.name}{cls.FILE}")

    @classmethod
    def read(cls, out: str | Path) -> Self:
        path = cls.path(Path(out))
        if not path.is_file():
            raise InputError(f"there is no {path}, which says what {out} is; expected {cls.KIND}", path=path)
        return cls.from_json(read_json(path, f"the record of {cls.KIND}"), path)

    def write(self, out: Path) -> Self:
        """Write the record next to the file `out`, and return it with the checksum of that file."""
        record = dataclasses.replace(self, sha256=checksum(out))
        write_bytes(self.path(out), record.to_bytes())
        return record


def as_bytes(values: Mapping[str, Any]) -> bytes:
    """Return the JSON values of a record as the content of its file."""
    return f"{json.dumps(values, indent=1, ensure_ascii=False)}\n".encode()


def as_json(values: object) -> Identity:
    """Convert a dataclass or a mapping to JSON values, equal to those read back from a file: tuples become lists.

    Settings that do not change a result (`RunOnly`) and paths of which only the content counts (`ByContent`) are left
    out.
    """
    return dict(json.loads(json.dumps(_plain(values))))


def _plain(values: object) -> object:
    """Convert dataclasses and mappings, also nested ones, to dictionaries and lists, without unrecorded fields."""
    if dataclasses.is_dataclass(values):
        kind = type(values)
        fields = [field for field in dataclasses.fields(values) if is_recorded(kind, field.name)]
        return {field.name: _plain(getattr(values, field.name)) for field in fields}
    if isinstance(values, Mapping):
        return {name: _plain(value) for name, value in values.items()}
    return [_plain(value) for value in values] if isinstance(values, list | tuple) else values


def describe_differences(found: Mapping[str, Any], wanted: Mapping[str, Any]) -> str:
    """Describe the first five differences of two nested identities: `name: was X, now Y; ...`; empty if equal."""
    differences = _differences(found, wanted)
    more = f"; and {len(differences) - 5} more" if len(differences) > 5 else ""
    return "; ".join(differences[:5]) + more


def _differences(found: Mapping[str, Any], wanted: Mapping[str, Any], prefix: str = "") -> list[str]:
    """List the differences of two nested identities; `prefix` is the path to them, such as `settings.`."""
    differences = []
    for name in dict.fromkeys([*found, *wanted]):
        old, new = found.get(name), wanted.get(name)
        if old == new:
            continue
        if isinstance(inner := _by_name(old), dict) and isinstance(others := _by_name(new), dict):
            differences += _differences(inner, others, f"{prefix}{name}.")
            continue
        was, now = _brief(old), _brief(new)
        differences.append(f"{prefix}{name}: " + (f"was {was}, now {now}" if was != now else f"not the same {was}"))
    return differences


def _by_name(value: object) -> object:
    """Convert a list of JSON objects to an object, whose names are their numbers from 1; return other values as is."""
    if isinstance(value, list) and value and all(isinstance(entry, dict) for entry in value):
        return {str(number): entry for number, entry in enumerate(value, 1)}
    return value


def _brief(value: object) -> str:
    """Format a value for an error, with checksums shortened to 12 digits and the whole to 100 characters."""
    text = re.sub(r"\b([0-9a-f]{12})[0-9a-f]{52}\b", r"\1", in_words(value))
    return text if len(text) <= 100 else f"{text[:100]}..."


def _unknown_keys(found: Json, known: Json, prefix: str = "") -> list[str]:
    """Return the dotted names of keys that nested JSON objects have and the objects `known` do not."""
    names: list[str] = []
    if isinstance(found, dict) and isinstance(known, dict):
        for name, value in found.items():
            if name in known:
                names += _unknown_keys(value, known[name], f"{prefix}{name}.")
            else:
                names.append(f"{prefix}{name}")
    return names


def read_json(path: Path, expected: str) -> Json:
    """Read and parse a JSON file; `expected` describes the right content in errors."""
    try:
        return parse_json(read_text(path))
    except InputError:
        raise
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}; expected {expected}", path=path) from None
    except ValueError as error:
        reason = "not UTF-8" if isinstance(error, UnicodeDecodeError) else str(error)
        raise _damaged(path, f"it is not JSON ({reason}); expected {expected}") from None


def from_json(kind: type[T], values: Json, where: Path | str) -> T:
    """Build a dataclass of the class `kind` from parsed JSON; keys that it does not have are ignored.

    `where` names the file in errors. An error is about a value that is missing or has the wrong type:
    `FILE is damaged: name must be text, was 3`.
    """
    try:
        found: T = read(kind, values, "")
    except InputError as error:
        raise _damaged(where, str(error)) from None
    return found


def _damaged(where: Path | str, what: str) -> InputError:
    return InputError(f"{where} is damaged: {what}", path=where if isinstance(where, Path) else None)
