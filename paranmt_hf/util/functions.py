"""Functions of Python files and installed modules that a user names, such as `FILE.py:NAME` and `MODULE:NAME`."""

from __future__ import annotations

import importlib
import importlib.util
import re
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from paranmt_hf.errors import InputError
from paranmt_hf.util.files import checksum
from paranmt_hf.util.wording import perhaps

FUNCTION = re.compile(r"(.+\.py|[^\W\d]\w*(?:\.[^\W\d]\w*)*):[^\W\d]\w*")


def is_function(name: str) -> bool:
    """Return whether a name is that of a function, and no file or folder of this name exists."""
    return FUNCTION.fullmatch(name) is not None and not Path(name).expanduser().exists()


def file_of(name: str, option: str) -> Path:
    """Return the file of the function of a name; the function is not loaded.

    Args:
        name: `FILE.py:NAME` or `MODULE:NAME`.
        option: Name of the option, for errors.
    """
    place = name.rpartition(":")[0]
    if place.endswith(".py"):
        file = Path(place).expanduser()
        if not file.is_file():
            raise InputError(f"there is no file {place}, whose function was named", option=option, path=file)
        return file
    try:
        spec = importlib.util.find_spec(place)
    except (ImportError, ValueError):
        spec = None
    if spec is None or spec.origin is None or not spec.has_location:
        raise InputError(
            f"{name} is a function of the module {place}, which is not an installed one with a file; install it, or "
            "name a file as FILE.py:NAME",
            option=option,
        )
    return Path(spec.origin)


@contextmanager
def explained(name: str, option: str) -> Iterator[None]:
    """Convert an error that the code of a function raises in a `with` block to an `InputError` that says where.

    Args:
        name: Name of the function.
        option: Name of the option.
    """
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        where = f"line {last.lineno} of {last.filename}"
        said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        raise InputError(f"{name} failed ({where}): {said}", option=option) from error


def load_function(name: str, option: str) -> Callable[..., Any]:
    """Import the function of a name: its file runs, once for each content. Arguments as in `file_of`."""
    place, _, function = name.rpartition(":")
    file = file_of(name, option)
    with explained(name, option):
        module = _module_of(file) if place.endswith(".py") else importlib.import_module(place)
    found = getattr(module, function, None)
    if not callable(found):
        known = [each for each, value in vars(module).items() if callable(value) and each[0] != "_"]
        raise InputError(f"{place} has no function {function}{perhaps(function, known)}", option=option, path=file)
    return found


def _module_of(file: Path) -> ModuleType:
    """Run a file of Python as a module, unless it ran before with the same content."""
    name = f"named_{checksum(file)[:32]}"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, file)
        assert spec is not None and spec.loader is not None
        # Dataclasses look up the module by its name while the file runs.
        sys.modules[name] = importlib.util.module_from_spec(spec)
        try:
            with _beside(file):
                spec.loader.exec_module(sys.modules[name])
        except BaseException:
            del sys.modules[name]
            raise
    return sys.modules[name]


@contextmanager
def _beside(file: Path) -> Iterator[None]:
    """Let a file import modules that lie beside it, inside a `with` block."""
    folder = str(file.resolve().parent)
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        sys.path.remove(folder)
