"""A release that tests of publishing share."""

import shutil

import pytest

from tests.hub.releases import make_release


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    return make_release(tmp_path_factory.mktemp("release") / "corpus", 60)


@pytest.fixture
def release(made, tmp_path):
    return shutil.copytree(made, tmp_path / "corpus")
