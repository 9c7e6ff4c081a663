import gc
import os
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import settings

from paranmt_hf.hub.repository import ASSETS

# The tests import the package from the tree that they lie in; the processes that they start must use the same one,
# whatever else is installed.
os.environ["PYTHONPATH"] = os.pathsep.join(
    filter(None, [str(Path(__file__).resolve().parents[1]), os.environ.get("PYTHONPATH")])
)
if "PYTEST_XDIST_WORKER" in os.environ:
    # There is a worker for each processor; more threads would only wait for each other.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
# What a machine does beside the tests is nothing that they are about.
settings.register_profile("without a deadline", deadline=None)
settings.load_profile("without a deadline")


def pytest_collection_finish() -> None:
    # All modules and tests are there now and stay; no garbage collection needs to look through them.
    gc.freeze()


@pytest.fixture
def any_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """Settings may be out of their ranges, as by an `object.__setattr__`: what then diverges must still be told."""
    monkeypatch.setattr("paranmt_hf.util.settings._inside", lambda value, limits: True)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real data, which is not part of the project."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = Path(os.environ.get("PARANMT_SHARED_DATA", beside))
    if not folder.is_dir():
        pytest.skip(f"needs the real data, but there is no folder {folder}; PARANMT_SHARED_DATA can name it")
    return folder


@pytest.fixture(scope="session")
def real_sentences(request: pytest.FixtureRequest) -> list[str]:
    """Some hundred sentences of news where the real data is there, and of the embedded sample otherwise."""
    try:
        path = request.getfixturevalue("shared_data") / "bitext" / "news" / "news.en"
    except pytest.skip.Exception:
        path = ASSETS / "sample" / "sample.en"
    with path.open(encoding="utf8") as file:
        return [line.rstrip("\n") for line in islice(file, 400)]
