"""Models that tests of translation share."""

import shutil
from pathlib import Path

import pytest

from tests.corpus.translation.tiny_models import FAMILIES


@pytest.fixture(scope="session")
def folders(tmp_path_factory):
    """One folder of each family."""
    root = tmp_path_factory.mktemp("models")
    for name, (make, _) in FAMILIES.items():
        make(root / name)
    return root


@pytest.fixture
def marian(folders, tmp_path):
    """A copy of the Marian folder that a test may spoil."""
    return Path(shutil.copytree(folders / "marian", tmp_path / "marian"))


@pytest.fixture
def captions(shared_data):
    """A trained captions model and 1,000 Czech captions."""
    folder, text = shared_data.parent / "models" / "tiny-cs-en", shared_data / "bitext/multi30k/test_2016_flickr.cs"
    if not folder.is_dir() or not text.is_file():
        pytest.skip("needs the captions model and Multi30k, which are not in the repository")
    return str(folder), text.read_text(encoding="utf8").splitlines()
