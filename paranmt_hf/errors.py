"""The error for input that a person can put right."""

from __future__ import annotations


class InputError(ValueError):
    """Bad input, named in one sentence: what was expected, what came, where, and what to do.

    The command line prints the sentence alone; anything else that is raised counts as a fault of the program.
    """


class WriteError(InputError):
    """Something cannot be written, most often for want of room; the same command goes on when it can."""


class UnfitError(InputError):
    """Settings that fit neither together nor to the data they are for: others may."""


class DivergedError(InputError):
    """A loss that is no number: the settings of a training run do not fit its data."""


class LostProcessError(InputError):
    """Another process of the same work is gone; what was made so far stays, and the same command goes on."""
