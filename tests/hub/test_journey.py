"""From a bitext to a model that anybody loads: each step in a process of its own, with an empty cache, over HTTP."""

import json
import shutil

import numpy as np
import pytest

from paranmt_hf.hub.repository import ASSETS

pytestmark = pytest.mark.slow

LOAD = """
import json, sys
from datasets import load_dataset

name = sys.argv[1]
whole, filtered = load_dataset(name, split="train"), load_dataset(name, "filtered", split="train")
version = load_dataset(name, split="train", revision="v1")
good = load_dataset(name, split="train", filters=[("para_score", ">", 0.7)])
wanted = {"columns": ["reference", "para_score"], "filters": [("para_score", ">", 0.7)]}
rows = list(load_dataset(name, split="train", streaming=True, **wanted))
import paranmt_hf

own = paranmt_hf.stream(f"{name}@v1", **wanted)
assert next(iter(own)) == rows[0] and list(own) == rows and len(good) == len(rows)
print(json.dumps({
    "columns": whole.column_names, "rows": len(whole), "filtered": len(filtered), "version": len(version),
    "stream": len(rows), "above": sum(score > 0.7 for score in whole["para_score"]),
    "lowest": min(row["para_score"] for row in rows), "stream columns": sorted(rows[0]),
}))
"""

PLAIN = """
import sys
import numpy as np
from sentence_transformers import SentenceTransformer

name, out, flag, *revision = sys.argv[1:]
options = {"trust_remote_code": True} if flag == "trust" else {}
model = SentenceTransformer(name, revision=revision[0] if revision else None, **options)
assert "paranmt_hf" not in sys.modules
np.save(out, model.encode(["A dog runs.", "Two women talk on a bench!", ""]))
"""

OURS = """
import sys
import numpy as np
import paranmt_hf

name, out = sys.argv[1:]
np.save(out, paranmt_hf.load(name).encode(["A dog runs.", "Two women talk on a bench!", ""]))
"""


def succeeds(done):
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout


def lines(folder, count):
    for language in ("cs", "en"):
        text = (ASSETS / "sample" / f"sample.{language}").read_text(encoding="utf8").splitlines(keepends=True)
        (folder / f"few.{language}").write_text("".join(text[:count]), encoding="utf8")
    return folder / "few.cs", folder / "few.en"


@pytest.fixture(scope="module")
def corpus(hub, tmp_path_factory):
    """A corpus, built and published."""
    folder = tmp_path_factory.mktemp("corpus")
    source, reference = lines(folder, 120)
    command = ("build", "--source", source, "--reference", reference, "--translator", "captions-cs-en", "--engine")
    succeeds(hub.paranmt(*command, "workers=1", "--out", folder / "corpus", "--license", "cc-by-nc-sa-4.0"))
    name = hub.name("corpus")
    assert "version v1" in succeeds(hub.paranmt("publish", folder / "corpus", name))
    return folder / "corpus", name


def test_corpus_is_loaded_by_anybody(hub, corpus):
    folder, name = corpus
    record = json.loads((folder / "build.json").read_text())
    found = json.loads(succeeds(hub.python(LOAD, name)).splitlines()[-1])
    assert found["columns"] == record["columns"]
    assert found["rows"] == found["version"] == record["configs"]["default"]["rows"] == 120
    assert found["filtered"] == record["configs"]["filtered"]["rows"]
    assert 0 < found["stream"] == found["above"] < 120 and found["lowest"] > 0.7
    assert found["stream columns"] == ["para_score", "reference"]


def test_unchanged_corpus_makes_no_commit_and_another_one_a_version(hub, corpus, tmp_path):
    from huggingface_hub import HfApi

    folder, _ = corpus
    name = hub.name("versions")
    client = HfApi(hub.endpoint, token=hub.token)
    succeeds(hub.paranmt("publish", folder, name))
    before = client.list_repo_commits(name, repo_type="dataset")
    again = succeeds(hub.paranmt("publish", folder, name))
    assert "unchanged, everything was there already, version v1" in again
    assert len(client.list_repo_commits(name, repo_type="dataset")) == len(before)

    source, reference = lines(tmp_path, 30)
    command = ("build", "--source", source, "--reference", reference, "--translator", "captions-cs-en", "--out")
    succeeds(hub.paranmt(*command, tmp_path / "other", "--license", "cc-by-nc-sa-4.0", "--engine", "workers=1"))
    assert "version v2" in succeeds(hub.paranmt("publish", tmp_path / "other", name))
    clash = hub.paranmt("publish", tmp_path / "other", name, "--tag", "v1")
    assert clash.returncode == 1 and "has a version 'v1' already, with other files" in clash.stderr
    assert "unchanged" in succeeds(hub.paranmt("publish", folder, name, "--tag", "v1"))
    # The files of an earlier version, while the branch has others.
    for sent, tag in ((folder, "first"), (tmp_path / "other", "second")):
        assert f"version {tag}" in succeeds(hub.paranmt("publish", sent, name, "--tag", tag))
    before = client.list_repo_commits(name, repo_type="dataset")
    again = succeeds(hub.paranmt("publish", folder, name, "--tag", "first"))
    assert "unchanged" in again and "version first" in again
    assert len(client.list_repo_commits(name, repo_type="dataset")) == len(before)
    branch = ("publish", folder, name, "--revision", "trial", "--tag", "trial-1")
    assert "version trial-1" in succeeds(hub.paranmt(*branch))
    refs = client.list_repo_refs(name, repo_type="dataset")
    assert {tag.name for tag in refs.tags} == {"v1", "v2", "first", "second", "trial-1"}
    assert {"main", "trial"} == {branch.name for branch in refs.branches}
    count = (
        "import sys; from datasets import load_dataset as l; print(len(l(sys.argv[1], revision=sys.argv[2])['train']))"
    )
    for revision, rows in (("v1", 120), ("v2", 30), ("trial", 120)):
        assert succeeds(hub.python(count, name, revision)).split()[-1] == str(rows)


def test_fewer_files_leave_no_old_ones(hub, corpus, tmp_path, monkeypatch):
    from huggingface_hub import HfApi

    # Not every Hub has the store behind it that uploads otherwise go to.
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_DISABLE_XET", True)

    folder, _ = corpus
    name = hub.name("shards")
    client = HfApi(hub.endpoint, token=hub.token)
    succeeds(hub.paranmt("publish", folder, name))
    stale = "data/train-00001-of-00002.parquet"
    path = folder / "data" / "train-00000-of-00001.parquet"
    client.upload_file(path_or_fileobj=path.read_bytes(), path_in_repo=stale, repo_id=name, repo_type="dataset")
    client.upload_file(path_or_fileobj=b"mine", path_in_repo="notes.txt", repo_id=name, repo_type="dataset")
    succeeds(hub.paranmt("publish", folder, name))
    files = client.list_repo_files(name, repo_type="dataset")
    assert stale not in files and "notes.txt" in files


@pytest.mark.parametrize("kind", ["word", "word-trigram", "lstm"])
def test_model_is_trained_from_the_hub_and_loaded_by_anybody(hub, corpus, tmp_path, kind):
    name, out = hub.name(kind), tmp_path / "model"
    train = ("train", "--data", f"{corpus[1]}@v1", "--model", kind, "--dimension", 12, "--epochs", 1, "--out", out)
    assert "120 pairs" in succeeds(hub.paranmt(*train))
    recorded = json.loads((out / "training.json").read_text())["settings"]["data"]["sources"][0]
    assert recorded["dataset"] == corpus[1] and len(recorded["revision"]) == 40

    results = tmp_path / "results.json"
    similarity = ASSETS / "sample" / "similarity.tsv"
    succeeds(hub.paranmt("evaluate", "sts", out, "--data", similarity, "--json", results))
    publish = ("publish", out, name, "--results", results, "--license", "mit")
    assert "version v1" in succeeds(hub.paranmt(*publish))
    assert "unchanged" in succeeds(hub.paranmt(*publish))

    succeeds(hub.python(OURS, out, tmp_path / "local.npy"))
    succeeds(hub.python(OURS, name, tmp_path / "ours.npy"))
    succeeds(hub.python(OURS, f"{name}@v1", tmp_path / "version.npy"))
    flag = "trust" if kind == "word-trigram" else "no"
    succeeds(hub.python(PLAIN, name, tmp_path / "plain.npy", flag, "v1"))
    local = np.load(tmp_path / "local.npy")
    assert np.abs(local[:2]).sum() > 0
    for other in ("ours", "version"):
        np.testing.assert_array_equal(np.load(tmp_path / f"{other}.npy"), local)
    np.testing.assert_allclose(np.load(tmp_path / "plain.npy"), local, atol=1e-6)
    if kind == "word-trigram":
        refused = hub.python(PLAIN, name, tmp_path / "refused.npy", "no")
        assert refused.returncode == 1 and "trust_remote_code" in refused.stderr


def test_private_model_needs_the_token(hub, corpus, tmp_path):
    out, name = tmp_path / "model", hub.name("private")
    succeeds(hub.paranmt("train", "--data", corpus[0], "--dimension", 4, "--epochs", 1, "--out", out))
    succeeds(hub.paranmt("publish", out, name, "--license", "mit", "--private"))
    succeeds(hub.python(OURS, name, tmp_path / "vectors.npy"))
    refused = hub.paranmt("evaluate", "sts", name, "--data", ASSETS / "sample" / "similarity.tsv", token=None)
    assert refused.returncode == 1 and "Traceback" not in refused.stderr
    assert f"the Hub has no model {name!r} that can be seen without a login" in refused.stderr.splitlines()[-1]
    shutil.rmtree(out)
