"""Versions and checksums, without a Hub."""

import hashlib
from types import SimpleNamespace

import pytest

from paranmt_hf.errors import InputError
from paranmt_hf.hub.upload import Parcel, Target, _differences, _ensure_tag, stage, upload


class Client:
    """Stands in for the Hub's client: some files, and the tags that are made."""

    def __init__(self, files=()):
        self.made, self.files = {}, list(files)

    def create_tag(self, name, *, repo_type, tag, revision):
        self.made[tag] = revision

    def list_repo_tree(self, name, **_):
        return [SimpleNamespace(path="data"), *self.files]


def target(**settings):
    return Target("org/corpus", "dataset", **settings)


@pytest.mark.parametrize(
    ("settings", "tags", "name", "made"),
    [
        ({}, {}, "v1", {"v1": "head"}),
        # 10 comes after 9, and what is no number does not count.
        ({}, {"v9": "a", "v10": "b", "vx": "c"}, "v11", {"v11": "head"}),
        ({}, {"v9": "head", "v10": "head"}, "v10", {}),
        ({}, {"mine": "head"}, "mine", {}),
        ({"tag": "mine"}, {"v1": "head"}, "mine", {"mine": "head"}),
        ({"tag": "mine"}, {"mine": "head"}, "mine", {}),
        ({"revision": "trial"}, {}, None, {}),
        ({"revision": "trial", "tag": "t"}, {}, "t", {"t": "head"}),
    ],
)
def test_versions(settings, tags, name, made):
    client = Client()
    assert _ensure_tag(client, target(**settings), tags, "head") == name
    assert client.made == made


def entry(path, content, *, large=False):
    if large:
        lfs = SimpleNamespace(sha256=hashlib.sha256(content).hexdigest())
        return SimpleNamespace(path=path, blob_id="of the pointer", lfs=lfs)
    blob = hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
    return SimpleNamespace(path=path, blob_id=blob, lfs=None)


def test_checksums_by_hand(tmp_path):
    # `git hash-object` of a file that holds "hello\n".
    known = SimpleNamespace(path="a", blob_id="ce013625030ba8dba906f756967f9e9ca394464a", lfs=None)
    (tmp_path / "a").write_bytes(b"hello\n")
    assert Parcel({"a": b"hello\n"}).holds("a", known) and not Parcel({"a": b"hello"}).holds("a", known)
    parcel = Parcel({"a": tmp_path / "a"})
    assert parcel.holds("a", known)
    assert parcel.holds("a", entry("a", b"hello\n", large=True))
    assert not parcel.holds("a", entry("a", b"hello", large=True))
    assert Parcel({"a": b"hello\n"}).holds("a", entry("a", b"hello\n", large=True))
    # What is known is not taken again.
    told = Parcel({"a": tmp_path / "a"}, known={"a": hashlib.sha256(b"other").hexdigest()})
    assert told.holds("a", entry("a", b"other", large=True))


def test_what_is_sent_and_removed(tmp_path):
    client = Client(
        [
            entry("same", b"1"),
            entry("changed", b"1"),
            entry("data/old.parquet", b"1", large=True),
            entry("notes.txt", b"1"),
        ]
    )
    parcel = Parcel({"same": b"1", "changed": b"2", "new": b"3"}, lambda path: path.startswith("data/"))
    assert _differences(client, parcel, target()) == ["changed", "data/old.parquet", "new"]


def test_staged_as_a_folder(tmp_path):
    (tmp_path / "large").write_bytes(b"x")
    (tmp_path / "staged").mkdir()
    stage(Parcel({"data/a.parquet": tmp_path / "large", "README.md": b"card"}), tmp_path / "staged")
    assert (tmp_path / "staged" / "data" / "a.parquet").read_bytes() == b"x"
    assert (tmp_path / "staged" / "README.md").read_bytes() == b"card"


def test_names_of_git_and_of_the_hub(monkeypatch):
    for name in ("v1", "v1.0.0", "trial/2", "a_b-c", "2026"):
        assert target(tag=name).tag == name
    for name in ("a b", "..", "a..b", "-a", "a/", "a//b", "v1.lock", "v1.", "é", ""):
        for option in ("tag", "revision"):
            with pytest.raises(InputError) as error:
                target(**{option: name})
            assert error.value.option == option
    monkeypatch.setattr("huggingface_hub.get_token", lambda: None)
    with pytest.raises(InputError, match="publishing needs a login: run `hf auth login`"):
        upload(Parcel({"a": b"b"}), target())
