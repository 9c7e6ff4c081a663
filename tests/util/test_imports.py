"""Garbage collection is left out while large libraries are imported, and compiled functions run without numba."""

import gc
import sys

import pytest

from paranmt_hf.util.imports import uncollected
from paranmt_hf.util.machine import compiled


def test_collection_is_as_before():
    with uncollected():
        assert not gc.isenabled()
        with uncollected():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()
    with pytest.raises(ImportError), uncollected():
        raise ImportError
    assert gc.isenabled()


def test_without_numba_functions_run_in_python(monkeypatch):
    monkeypatch.setitem(sys.modules, "numba", None)

    @compiled(fast=True)
    def double(number):
        return 2 * number

    @compiled(plain=double)
    def slow(number):
        return number + number

    assert double("a") == "aa" and slow is double
