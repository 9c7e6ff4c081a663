"""What an error that a person can correct carries."""

import pickle
from pathlib import Path

import pytest

from paranmt_hf import InputError
from paranmt_hf.errors import WriteError


@pytest.mark.parametrize("kind", [InputError, WriteError])
def test_errors_cross_processes_with_their_fields(kind):
    error = kind("a sentence", option="out", path=Path("a"))
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), again.option, again.path) == (kind, "a sentence", "out", Path("a"))
