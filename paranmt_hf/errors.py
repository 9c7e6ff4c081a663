"""Errors about input that the user can correct."""

from __future__ import annotations

from pathlib import Path


class InputError(ValueError):
    """An error about input that the user can correct.

    Its message is one sentence: what was expected, what was found, where, and what to do. The command line prints only
    this sentence and exits with status 1; any other exception is a fault of the program. Every function of the package
    that reads input from a user may raise it, so docstrings do not list it.

    Args:
        message: The sentence.
        option: Name of the Python parameter that the error is about, such as `out`. The command line shows it as the
            option `--out`. None if the error is about no parameter.
        path: The file or folder that the error is about; None if it is about neither.
    """

    def __init__(self, message: str, *, option: str | None = None, path: Path | None = None) -> None:
        super().__init__(message)
        self.option, self.path = option, path


def refuse(wrong: object, message: str, *, option: str | None = None, path: Path | None = None) -> None:
    """Raise an `InputError` with the other arguments if `wrong` is true, or is a value that is not empty."""
    if wrong:
        raise InputError(message, option=option, path=path)


class WriteError(InputError):
    """A failure to write, usually because the disk is full; the same command continues once there is space."""


class OtherSettingsError(InputError):
    """An existing result, or unfinished work, was made with settings that differ from the given ones."""


class NotMadeError(InputError):
    """A result does not exist, where results are only looked for and none are made (see `only_finding`)."""


class UnfitError(InputError):
    """Settings that do not fit each other or the data; a search for settings goes on with others."""


class DivergedError(InputError):
    """A loss or a weight that is not finite, because the settings of a training run do not fit its data."""


class LostProcessError(InputError):
    """Another process of the same run has ended; the work so far is kept, and the same command continues it."""
