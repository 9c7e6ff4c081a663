"""What tests of selections share."""

import pytest

from paranmt_hf.corpus import release_run


@pytest.fixture(autouse=True)
def no_picture(monkeypatch):
    """Drawing takes longer than all else."""
    monkeypatch.setattr(release_run, "plot_histograms", lambda statistics, path: False)
