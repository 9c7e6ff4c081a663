"""What goes wrong with a Hub is told in one sentence, and nothing is lost."""

import json
import time
from pathlib import Path

import pytest

from paranmt_hf.hub.repository import ASSETS
from tests.hub.proxy import Proxy
from tests.hub.releases import make_release

pytestmark = pytest.mark.slow
SIMILARITY = ASSETS / "sample" / "similarity.tsv"


@pytest.fixture(scope="module")
def release(tmp_path_factory):
    return make_release(tmp_path_factory.mktemp("release") / "corpus")


@pytest.fixture(scope="module")
def published(hub, release):
    name = hub.name("whole")
    assert hub.paranmt("publish", release, name).returncode == 0
    return name


@pytest.fixture(scope="module")
def model(hub, release, tmp_path_factory):
    """An encoder in a folder and on the Hub."""
    folder, name = tmp_path_factory.mktemp("model") / "word", hub.name("word")
    train = hub.paranmt("train", "--data", release, "--dimension", 4, "--epochs", 1, "--out", folder)
    assert train.returncode == 0, train.stderr
    assert hub.paranmt("publish", folder, name, "--license", "mit").returncode == 0
    return folder, name


def fails(done, sentence):
    """The command fails with one sentence, which is returned."""
    assert done.returncode == 1, done.stdout
    said = [line for line in done.stderr.splitlines() if line.startswith("paranmt: ")]
    assert len(said) == 1 and "Traceback" not in done.stderr, done.stderr
    assert sentence in said[0], said[0]
    assert "hf_" not in done.stderr + done.stdout
    return said[0]


def test_no_login(hub, release):
    fails(hub.paranmt("publish", release, hub.name("x"), token=None), "publishing needs a login")


def test_wrong_token(hub, release, model):
    wrong = "hf_wrongwrongwrong"
    sentence = "the Hub does not accept the token"
    fails(hub.paranmt("publish", release, hub.name("x"), token=wrong), sentence)
    fails(hub.paranmt("evaluate", "sts", model[1], "--data", SIMILARITY, token=wrong), sentence)


def test_name_of_somebody_else(hub, release):
    done = hub.paranmt("publish", release, "somebody-else/corpus")
    fails(done, "the Hub refuses to let this login write to dataset 'somebody-else/corpus'")


def test_token_that_only_reads(hub, release, published, tmp_path):
    other = make_release(tmp_path / "other", 50)
    with Proxy(hub.endpoint, read_only=True) as proxy:
        for folder, name in ((release, hub.name("new")), (other, published)):
            done = hub.paranmt("publish", folder, name, endpoint=proxy.url)
            fails(
                done, f"the Hub refuses to let this login write to dataset {name!r}; use a token with write permission"
            )


def test_repository_that_is_not_there(hub, tmp_path):
    name = f"{hub.user}/nothing-here"
    done = hub.paranmt("evaluate", "sts", name, "--data", SIMILARITY)
    fails(done, f"the Hub has no model {name!r} that your login may see; check the name")
    done = hub.paranmt("train", "--data", name, "--out", tmp_path / "out")
    fails(done, f"the Hub has no dataset {name!r} that your login may see; check the name")
    assert not (tmp_path / "out").exists()


def test_revision_that_is_not_there(hub, published, model, tmp_path):
    done = hub.paranmt("train", "--data", f"{published}@v9", "--out", tmp_path / "out")
    fails(done, f"dataset {published!r} on the Hub has no revision 'v9'")
    done = hub.paranmt("evaluate", "sts", f"{model[1]}@v9", "--data", SIMILARITY)
    fails(done, f"model {model[1]!r} on the Hub has no revision 'v9'")


def test_config_that_is_not_there(hub, tmp_path):
    # Of a few pairs none are in the top two tenths with both sides short enough.
    folder = make_release(tmp_path / "few", 3)
    record = json.loads((folder / "build.json").read_text())
    done = hub.paranmt("train", "--data", folder, "--selection", "subset=top", "--out", tmp_path / "out")
    fails(done, "subset must be one of default, filtered, sample")
    assert set(record["configs"]) <= {"default", "filtered", "sample"}


def test_connection_that_is_cut_while_uploading(hub, tmp_path):
    # A Hub keeps what it once got; pairs that no earlier run sent have to be sent.
    folder, name = make_release(tmp_path / "large", 3000, seed=time.time_ns()), hub.name("cut")
    sizes = sorted(path.stat().st_size for path in folder.rglob("*.parquet"))
    with Proxy(hub.endpoint, cut_after=sizes[0] + sizes[1] + 10) as proxy:
        fails(hub.paranmt("publish", folder, name, endpoint=proxy.url), "run the same command again")
        arrived = dict(proxy.uploads)
    assert 1 <= len(arrived) < 3
    with Proxy(hub.endpoint) as proxy:
        done = hub.paranmt("publish", folder, name, endpoint=proxy.url)
        assert done.returncode == 0, done.stderr
        assert sum(arrived.values()) + sum(proxy.uploads.values()) <= sum(sizes) + 100_000
        assert not {Path(path).parent for path in arrived} & {Path(path).parent for path in proxy.uploads}
    counted = hub.paranmt("train", "--data", name, "--dimension", 4, "--epochs", 1, "--out", tmp_path / "out")
    assert "3,000 pairs" in counted.stdout, counted.stderr


def test_hub_that_does_not_answer(hub, release):
    with Proxy(hub.endpoint) as proxy:
        closed = proxy.url
    done = hub.paranmt("publish", release, hub.name("x"), endpoint=closed)
    fails(done, "the connection to the Hub, http")


def test_file_that_is_damaged_on_the_way(hub, model, published, tmp_path):
    with Proxy(hub.endpoint, spoil=r"/resolve/.*\.safetensors|_lfs|_cdn") as proxy:
        done = hub.paranmt("evaluate", "sts", model[1], "--data", SIMILARITY, endpoint=proxy.url)
        fails(done, f"model.safetensors of {model[1]!r} is damaged: its checksum is not the one that the Hub names")
    with Proxy(hub.endpoint, spoil=r"/resolve/.*\.parquet|_lfs|_cdn") as proxy:
        done = hub.paranmt("train", "--data", published, "--out", tmp_path / "out", endpoint=proxy.url)
        fails(done, f"train-00000-of-00001.parquet of {published!r} is damaged: its checksum is not the one")


def test_release_of_another_schema(hub, release, tmp_path):
    from huggingface_hub import HfApi

    name = hub.name("schema")
    assert hub.paranmt("publish", release, name).returncode == 0
    record = json.loads((release / "build.json").read_text()) | {"schema_version": "2.0.0"}
    HfApi(hub.endpoint, token=hub.token).upload_file(
        path_or_fileobj=json.dumps(record).encode(), path_in_repo="build.json", repo_id=name, repo_type="dataset"
    )
    done = hub.paranmt("train", "--data", name, "--out", tmp_path / "out")
    fails(
        done, "has schema version 2.0.0, this program knows 1.0.0: use the version of paranmt-hf that its card names"
    )
    assert hub.paranmt("train", "--data", f"{name}@v1", "--epochs", 1, "--out", tmp_path / "out").returncode == 0


LICENCE = """
import sys
from paranmt_hf import InputError, publish

plan = publish(sys.argv[1], sys.argv[2], dry_run=True)
card = plan.repository.files["README.md"]
plan.repository.files["README.md"] = card.replace(b"license: cc-by-4.0", b"license: no-such-licence")
assert plan.repository.files["README.md"] != card
try:
    plan.send()
except InputError as error:
    print(error)
"""


def test_licence_that_the_hub_does_not_know(hub, release):
    """One that is in our list and not yet, or no longer, in the Hub's."""
    done = hub.python(LICENCE, release, hub.name("licence"))
    assert "license" in done.stdout.lower(), done.stderr


def test_public_repository_does_not_turn_private(hub, release, published):
    done = hub.paranmt("publish", release, published, "--private")
    fails(done, "is public already; --private is for new ones")
