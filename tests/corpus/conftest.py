"""What tests of corpora share."""

import pytest

from paranmt_hf.corpus import release_run


@pytest.fixture(autouse=True, scope="module")
def no_picture():
    """Drawing takes longer than all else."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(release_run, "plot_histograms", lambda statistics, path: False)
        yield
