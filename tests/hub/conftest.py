"""A Hub to test against, which is any endpoint named by the environment; and encoders to publish."""

import itertools
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.hub.fake_hub import FakeHub

PROXIES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")
# Caches and settings of whoever runs the tests must not decide them.
OWN = ("HF_", "HUGGINGFACE_", "TRANSFORMERS_")


@dataclass
class Hub:
    """A Hub, and an account on it that may write to its own names.

    Attributes:
        endpoint: Its address.
        token: The account's token.
        user: The account's name.
        folder: For homes of the processes.
    """

    endpoint: str
    token: str
    user: str
    folder: Path
    _numbers: itertools.count = field(default_factory=itertools.count)

    def name(self, plain):
        """A name on the Hub that no other run of the tests has used."""
        return f"{self.user}/{plain}-{os.getpid()}-{next(self._numbers)}"

    def environment(self, *, token="own", endpoint=None, home=None):
        """Variables of a process on another machine: with an empty cache, unless `home` names one."""
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(OWN) and name.lower() not in PROXIES
        }
        kept |= {
            "HF_ENDPOINT": endpoint or self.endpoint,
            "HF_HOME": str(home or self.folder / f"home-{next(self._numbers)}"),
            "HF_HUB_DISABLE_XET": "1",
            "HF_HUB_DISABLE_TELEMETRY": "1",
            "HF_UPDATE_DOWNLOAD_COUNTS": "0",
            "OMP_NUM_THREADS": "1",
        }
        if token is not None:
            kept["HF_TOKEN"] = self.token if token == "own" else token
        return kept

    def python(self, program, *arguments, **options):
        """Run a program text in a process of its own."""
        command = [sys.executable, "-c", program, *map(str, arguments)]
        return subprocess.run(command, env=self.environment(**options), capture_output=True, text=True, timeout=600)

    def loads_alike(self, program, *arguments):
        """Run a program with this package and with the code next to the weights; both find the same."""
        found = []
        for way, imported in (("package", "True"), ("code", "False")):
            loaded = self.python(program, *arguments, way)
            assert loaded.returncode == 0, loaded.stderr
            (line,) = [line for line in loaded.stdout.splitlines() if line.startswith("found")]
            ids, own = line.rsplit(" ", 1)
            assert own == imported
            found.append(ids)
        assert found[0] == found[1]

    def paranmt(self, *arguments, **options):
        """Run the command in a process of its own."""
        command = [sys.executable, "-m", "paranmt_hf.cli", *map(str, arguments)]
        return subprocess.run(command, env=self.environment(**options), capture_output=True, text=True, timeout=600)


@pytest.fixture(scope="session")
def hub(tmp_path_factory):
    endpoint = os.environ.get("PARANMT_TEST_HUB")
    if not endpoint:
        pytest.skip("needs a Hub: PARANMT_TEST_HUB names its address, PARANMT_TEST_HUB_TOKEN and _USER an account")
    token = os.environ.get("PARANMT_TEST_HUB_TOKEN", "")
    user = os.environ.get("PARANMT_TEST_HUB_USER", "")
    return Hub(endpoint, token, user, tmp_path_factory.mktemp("hub"))


@pytest.fixture(scope="session")
def trained(made, tmp_path_factory):
    """A folder with two small encoders, named by their kind."""
    from paranmt_hf.encoders.config import EncoderConfig
    from paranmt_hf.training.config import TrainConfig
    from paranmt_hf.training.train import train

    folder = tmp_path_factory.mktemp("models")
    for kind in ("word", "word,trigram"):
        train(made, folder / kind, encoder=EncoderConfig(model=kind, dimension=4), config=TrainConfig(epochs=1))
    return folder


@pytest.fixture
def login(monkeypatch):
    """Call it with the token of the login; None is nobody's."""
    return lambda token: monkeypatch.setattr("huggingface_hub.get_token", lambda: token)


@pytest.fixture
def fake_hub(monkeypatch, login):
    """A Hub in memory, and a login."""
    fake = FakeHub()
    monkeypatch.setattr("huggingface_hub.HfApi", fake)
    login("hf_secret")
    return fake


@pytest.fixture
def model(trained, tmp_path):
    return shutil.copytree(trained / "word", tmp_path / "word")
