"""Packages that only some features need: whether they are installed, and their versions."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from types import ModuleType

from paranmt_hf.errors import InputError


def available(package: str) -> bool:
    """Return whether a package can be imported, without importing it."""
    return importlib.util.find_spec(package) is not None


def require(package: str, extra: str) -> ModuleType:
    """Import and return an optional package; if it is missing, the error names `extra`, which installs it.

    Args:
        package: Name of the package in `import`.
        extra: Extra of `paranmt-hf` that the package belongs to, such as `annotate`.
    """
    check_installed(package, extra)
    return importlib.import_module(package)


def check_installed(package: str, extra: str) -> None:
    """Check that an optional package is installed, without importing it; arguments as in `require`."""
    if not available(package):
        raise InputError(
            f"this needs the package {package!r}, which is not installed: pip install 'paranmt-hf[{extra}]'"
        )


def versions(packages: Iterable[str]) -> dict[str, str]:
    """Return the installed version of each package, by its name for pip; packages that are missing are left out."""
    found = {}
    for package in packages:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
