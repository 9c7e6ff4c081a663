"""What tests of training share."""

import pytest


@pytest.fixture
def checkpoint_always(monkeypatch):
    """Write a checkpoint after every mega-batch."""
    monkeypatch.setattr("paranmt_hf.training.checkpoint.CHECKPOINT_SECONDS", 0)
