"""Reading of YAML files that people write, each a mapping, with clear errors and without running code."""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import yaml

from paranmt_hf.errors import InputError
from paranmt_hf.util.files import check_regular
from paranmt_hf.util.settings import values_for

S = TypeVar("S")


class _Loader(yaml.SafeLoader):
    """A loader of YAML 1.2 that rejects duplicate keys and reads dates as text.

    The loaders of PyYAML follow YAML 1.1, in which `010` is 8, `1:30` is 90, `no` is false and `1e-3` is text.
    """

    yaml_implicit_resolvers: ClassVar[dict[str, list[tuple[str, re.Pattern[str]]]]] = {}

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:  # noqa: ANN401
        names = [key.value for key, _ in node.value]
        if twice := [key for key, _ in node.value if names.count(key.value) > 1]:
            raise yaml.YAMLError(f"line {twice[-1].start_mark.line + 1}: {twice[-1].value!r} is given twice")
        return super().construct_mapping(node, deep)


class _TextLoader(_Loader):
    """A loader like `_Loader` that reads every value except null as text, as it is written."""

    yaml_implicit_resolvers: ClassVar[dict[str, list[tuple[str, re.Pattern[str]]]]] = {}


for loader in (_TextLoader, _Loader):
    loader.add_implicit_resolver("tag:yaml.org,2002:null", re.compile("^(?:~|null|Null|NULL|)$"), None)
# The core schema of YAML 1.2.2 (section 10.3.2) without octal and hexadecimal numbers.
for name, pattern in (
    ("bool", "true|True|TRUE|false|False|FALSE"),
    ("int", "[-+]?[0-9]+"),
    ("float", r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)"),
):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{name}", re.compile(f"^(?:{pattern})$"), None)


# The constructor of PyYAML would read `010` in base 8.
_Loader.add_constructor("tag:yaml.org,2002:int", lambda loader, node: int(loader.construct_scalar(node)))


def parse_yaml(text: str, *, as_text: bool = False) -> Any:  # noqa: ANN401 - whatever is there
    """Parse YAML into plain values: mappings, lists, text, numbers, booleans and None.

    Args:
        text: The YAML.
        as_text: Read every value except null as text, as it is written.

    Raises:
        yaml.YAMLError: If the text is not YAML, has a key twice in a mapping, or is nested more than 50 levels deep.
    """
    try:
        # Both loaders are safe: they create plain values only.
        values = yaml.load(text, Loader=_TextLoader if as_text else _Loader)  # noqa: S506
        level = [values]
        for _ in range(50):
            # Anchors may repeat a value, or put one into itself, so each value of a level is taken once, by its id.
            level = list({id(inner): inner for value in level for inner in _inner_values(value)}.values())
        if level:
            raise RecursionError
    except RecursionError:
        raise yaml.YAMLError("it is nested too deeply") from None
    except ValueError as error:
        raise yaml.YAMLError(str(error)) from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = "" if mark is None else f"line {mark.line + 1}, column {mark.column + 1}: "
        raise yaml.YAMLError(f"{place}{error.problem or error.context}") from None
    return values


def _inner_values(value: Any) -> Collection[Any]:  # noqa: ANN401
    """Return the values in a list or mapping; empty for any other value."""
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def read_yaml(path: Path, expected: str, *, as_text: bool = False) -> dict[str, Any]:
    """Read a YAML file that holds a mapping; an empty file gives an empty one.

    Args:
        path: The file.
        expected: Description of the right content, for errors.
        as_text: Read every value except null as text, as it is written.
    """
    check_regular(path)
    try:
        values = parse_yaml(path.read_text(encoding="utf8"), as_text=as_text)
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}; expected {expected}", path=path) from None
    except (yaml.YAMLError, ValueError) as error:
        reason = "it is not UTF-8" if isinstance(error, UnicodeDecodeError) else " ".join(str(error).split())
        raise InputError(f"cannot read {path}: {reason}; expected {expected}", path=path) from None
    if values is None:
        return {}
    if not isinstance(values, dict):
        kind = "a list" if isinstance(values, list) else f"{type(values).__name__} and no mapping"
        raise InputError(f"{path} holds {kind}; expected {expected}", path=path)
    return values


def card_header(path: Path) -> dict[str, Any]:
    """Read the YAML header of a card (`README.md`); empty if there is no card or header, or it cannot be read."""
    try:
        text = path.read_text(encoding="utf8") if path.is_file() else ""
        found = re.match(r"\s*---[ \t]*\r?\n(.*?)\r?\n---[ \t]*(?:\r?\n|\Z)", text, re.DOTALL)
        values = parse_yaml(found[1]) if found else None
    except (OSError, ValueError, yaml.YAMLError):
        return {}
    return values if isinstance(values, dict) else {}


def as_yaml(values: dict[str, Any]) -> str:
    """Format a mapping of plain values as YAML, in its order."""
    text: str = yaml.safe_dump(values, sort_keys=False, allow_unicode=True, default_flow_style=False, width=1000)
    return text


def settings_of(kind: type[S], given: str | Path | S, what: str) -> S:
    """Return the settings of a model, given as its name, a YAML file of settings, or the settings themselves.

    Args:
        kind: The settings class, which has a field `name`.
        given: A name becomes settings with this name and the defaults; a path ending in `.yaml` or `.yml` is read.
        what: What the settings are of, for errors: `a language model`.
    """
    if not isinstance(given, str | Path):
        return given
    path = Path(given)
    if path.suffix not in (".yaml", ".yml"):
        return kind(**{"name": str(given)})
    values = read_yaml(path, f"settings of {what}", as_text=True)
    given_values = {name: value for name, value in values.items() if value is not None}
    try:
        (found,) = values_for([kind], given_values, what)
        if "name" not in found:
            raise InputError(f"there is no name of {what}")
        return kind(**found)
    except InputError as error:
        raise InputError(f"{path}: {error}", path=path) from None
