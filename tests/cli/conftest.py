"""A folder to work in, pairs in it, and an encoder trained on them."""

import shutil

import pytest

from paranmt_hf.cli import main
from tests.cli.commands import SMALL, write_pairs


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """The current folder, empty but for word vectors."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "vectors.txt").write_text("a 1 0\nb 0 1\n")
    return tmp_path


@pytest.fixture
def pairs(folder):
    """The folder, with ten pairs in it."""
    write_pairs(folder / "pairs.parquet")
    return folder


@pytest.fixture(scope="session")
def trained(tmp_path_factory):
    """An encoder trained on the pairs."""
    folder = tmp_path_factory.mktemp("trained")
    write_pairs(folder / "pairs.parquet")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert main(["train", "--data", "pairs.parquet", "--out", "encoder", *SMALL]) == 0
    return folder / "encoder"


@pytest.fixture
def encoder(trained, pairs, capsys):
    """A copy of the encoder beside the pairs."""
    capsys.readouterr()
    return shutil.copytree(trained, pairs / "encoder")
