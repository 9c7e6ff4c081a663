"""Records: JSON files about results, which are read back into dataclasses."""

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
    """Fields of a `Record` about the computer and the libraries."""

    versions: dict[str, str]
    machine: str
    paranmt_hf: str


def made_with(*packages: str) -> MadeWith:
    """Return the fields of a `Record` about this computer, with the versions of some installed packages."""
    return {"versions": versions(packages), "machine": platform.machine(), "paranmt_hf": __version__}


@dataclass(frozen=True, kw_only=True)
class Record:
    """The record of a result, a JSON file in its folder; subclasses add fields.

    Attributes:
        FILE: Name of the file.
        KIND: What such a result is, for errors: `a lexicon (paranmt lexicon build)`.
        settings: What determines the result: a dataclass of settings, or JSON values.
        versions: Versions of the libraries that made it.
        machine: Kind of the processor, such as `x86_64`.
        paranmt_hf: Version of this package.
        options: Options of the commands that made it, by the name of the command, as in a `--config` file; empty if it
            was made in Python. They name paths, so they are not published.
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
        """What a request must have in common with this result to reuse it."""
        return as_json(self.settings)

    @classmethod
    def path(cls, out: Path) -> Path:
        """Path of the record of a result."""
        return out / cls.FILE

    @classmethod
    def read(cls, folder: str | Path) -> Self:
        folder = Path(folder)
        path = cls.path(folder)
        if not path.is_file():
            found = f"holds no {cls.FILE}" if folder.is_dir() else "is a file" if folder.exists() else "does not exist"
            raise InputError(f"{folder} {found}; expected {cls.KIND}", path=folder)
        return cls.from_json(read_json(path, f"the record of {cls.KIND}"), path)

    @classmethod
    def from_json(cls, values: Json, where: Path | str) -> Self:
        """Build a record from parsed JSON; `where` is the file, for errors."""
        record = from_json(cls, values, where)
        if dataclasses.is_dataclass(record.settings):
            # With them another version made something else.
            for name in _unknown_keys(values["settings"], as_json(record.settings)):
                raise InputError(f"{where} has the setting {name!r}, which paranmt-hf {__version__} does not know")
        return record

    def to_json(self) -> dict[str, Any]:
        return as_json(self)

    def to_bytes(self) -> bytes:
        return as_bytes(self.to_json())

    def write(self, folder: Path) -> Self:
        """Write the record into the folder of a result; returns the written record."""
        write_bytes(self.path(folder), self.to_bytes())
        return self


@dataclass(frozen=True, kw_only=True)
class FileRecord(Record):
    """The record of a result of one file, in `OUT.json` next to `OUT`.

    Attributes:
        sha256: Checksum of the file.
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
        """Write the record of the file `out` next to it; returns the written record."""
        record = dataclasses.replace(self, sha256=checksum(out))
        write_bytes(self.path(out), record.to_bytes())
        return record


def as_bytes(values: Mapping[str, Any]) -> bytes:
    """Format the JSON values of a record as the content of its file."""
    return f"{json.dumps(values, indent=1, ensure_ascii=False)}\n".encode()


def as_json(values: object) -> Identity:
    """Convert a dataclass or a mapping to JSON values, as reading them back returns them.

    Settings that do not change a result (`RunOnly`) are left out.
    """
    return dict(json.loads(json.dumps(_plain(values))))


def _plain(values: object) -> object:
    if dataclasses.is_dataclass(values):
        kind = type(values)
        fields = [field for field in dataclasses.fields(values) if is_recorded(kind, field.name)]
        return {field.name: _plain(getattr(values, field.name)) for field in fields}
    if isinstance(values, Mapping):
        return {name: _plain(value) for name, value in values.items()}
    return [_plain(value) for value in values] if isinstance(values, list | tuple) else values


def describe_differences(found: Mapping[str, Any], wanted: Mapping[str, Any]) -> str:
    """Differences of two nested identities: `name: was X, now Y; ...`, the first few; empty if they are equal."""
    differences = _differences(found, wanted)
    more = f"; and {len(differences) - 5} more" if len(differences) > 5 else ""
    return "; ".join(differences[:5]) + more


def _differences(found: Mapping[str, Any], wanted: Mapping[str, Any], prefix: str = "") -> list[str]:
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
    """Give the objects of a list their places as names; other values are unchanged."""
    if isinstance(value, list) and value and all(isinstance(part, dict) for part in value):
        return {str(place): part for place, part in enumerate(value, 1)}
    return value


def _brief(value: object) -> str:
    """Format a value, with checksums and long lists shortened."""
    text = re.sub(r"\b([0-9a-f]{12})[0-9a-f]{52}\b", r"\1", in_words(value))
    return text if len(text) <= 100 else f"{text[:100]}..."


def _unknown_keys(found: Json, known: Json, prefix: str = "") -> list[str]:
    """Names of the keys of nested JSON objects that are not known."""
    names: list[str] = []
    if isinstance(found, dict) and isinstance(known, dict):
        for name, value in found.items():
            if name in known:
                names += _unknown_keys(value, known[name], f"{prefix}{name}.")
            else:
                names.append(f"{prefix}{name}")
    return names


def read_json(path: Path, expected: str) -> Json:
    """Parse a JSON file; `expected` describes its content in errors."""
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
    """Build a dataclass from parsed JSON; unknown keys are ignored, and `where` is the file, for errors.

    An error names a missing value or one of another type: `FILE is damaged: name must be text, was 3`.
    """
    try:
        found: T = read(kind, values, "")
    except InputError as error:
        raise _damaged(where, str(error)) from None
    return found


def _damaged(where: Path | str, what: str) -> InputError:
    return InputError(f"{where} is damaged: {what}", path=where if isinstance(where, Path) else None)
