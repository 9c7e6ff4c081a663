import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real data, which is not part of the project."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = Path(os.environ.get("PARANMT_SHARED_DATA", beside))
    if not folder.is_dir():
        pytest.skip(f"needs the real data, but there is no folder {folder}; PARANMT_SHARED_DATA can name it")
    return folder
