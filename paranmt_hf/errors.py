"""The errors that a user can correct."""

from __future__ import annotations

from pathlib import Path


class InputError(ValueError):
    """Bad input, in one sentence: what was expected, what was found, where, and what to do.

    The command line prints the sentence alone and exits with status 1; any other exception is a fault of the program.
    Every function of the package that reads what a user gives may raise it, so docstrings do not list it.

    Args:
        message: The sentence.
        option: The Python parameter that it is about, such as `out`; the command line shows it as an option.
        path: The file or folder that it is about.
    """

    def __init__(self, message: str, *, option: str | None = None, path: Path | None = None) -> None:
        super().__init__(message)
        self.option, self.path = option, path


def refuse(wrong: object, message: str, *, option: str | None = None, path: Path | None = None) -> None:
    """Raise an `InputError` if something is wrong."""
    if wrong:
        raise InputError(message, option=option, path=path)


class WriteError(InputError):
    """Writing failed, usually because the disk is full; the same command continues when there is space."""


class OtherSettingsError(InputError):
    """A result, or work in progress, was made with other settings than those that are given."""


class NotMadeError(InputError):
    """A result is not there, and was only looked for."""


class UnfitError(InputError):
    """Settings that are incompatible with each other or their data; others may work."""


class DivergedError(InputError):
    """A loss or weight is not finite: the settings of a training run do not fit its data."""


class LostProcessError(InputError):
    """Another process of the same run is lost; the work so far is kept, and the same command continues."""
