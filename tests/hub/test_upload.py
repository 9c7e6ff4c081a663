"""What an upload changes in a repository, on a Hub in memory."""

import hashlib
from types import SimpleNamespace

import pytest

from paranmt_hf.hub.upload import RepositoryFiles, Target, upload
from tests.refused import refused

NAME = "org/corpus"
LARGE = b"x" * 2000


def target(**settings):
    return Target(NAME, "dataset", **settings)


def files(owns=lambda path: False, **contents):
    return RepositoryFiles(contents, owns)


def test_only_what_differs_is_sent(fake_hub, tmp_path):
    (tmp_path / "large").write_bytes(LARGE)
    first = upload(files(a=b"1", b=b"1", large=tmp_path / "large", notes=b"1"), target(private=True))
    assert (first.changed, first.tag) == (["a", "b", "large", "notes"], "v1")
    repository = fake_hub.repositories[NAME]
    assert repository.private and repository.kind == "dataset" and len(repository.commits) == 2
    again = upload(files(a=b"1", b=b"1", large=tmp_path / "large", notes=b"1"), target())
    assert (again.changed, again.tag, again.commit) == ([], "v1", first.commit) and len(repository.commits) == 2
    # Of what belongs to such files what is gone is removed; what others put there stays.
    second = upload(files(lambda path: path in "ab", b=b"2", large=tmp_path / "large", c=b"3"), target())
    assert (second.changed, second.tag) == (["a", "b", "c"], "v2")
    assert repository.files() == {"b": b"2", "large": LARGE, "notes": b"1", "c": b"3"}
    assert set(repository.files("v1")) == {"a", "b", "large", "notes"}
    with refused("private"):
        fake_hub.repositories[NAME].private = False
        upload(files(a=b"1"), target(private=True))


@pytest.mark.parametrize(
    ("settings", "tags", "name"),
    [
        ({}, {}, "v1"),
        # 10 comes after 9, and what is no number does not count.
        ({}, {"v9": 0, "v10": 0, "vx": 0}, "v11"),
        ({}, {"v9": 1, "v10": 1}, "v10"),
        ({}, {"mine": 1}, "mine"),
        ({"tag": "mine"}, {"v1": 1}, "mine"),
        ({"tag": "mine"}, {"mine": 1}, "mine"),
        ({"revision": "trial"}, {}, None),
        ({"revision": "trial", "tag": "t"}, {}, "t"),
    ],
)
def test_versions(fake_hub, settings, tags, name):
    branch = settings.get("revision", "main")
    upload(files(a=b"1"), target(revision=branch, tag="first"))
    repository = fake_hub.repositories[NAME]
    repository.tags = dict(tags)
    assert upload(files(a=b"1"), target(**settings)).tag == name
    assert repository.tags == tags | ({} if name is None else {name: 1})


def test_a_version_stays_as_it_is(fake_hub):
    made = upload(files(a=b"1"), target(tag="mine"))
    upload(files(a=b"2"), target())
    repository = fake_hub.repositories[NAME]
    assert upload(files(a=b"1"), target(tag="mine")).commit == made.commit
    with refused("tag"):
        upload(files(a=b"3"), target(tag="mine"))
    assert repository.files() == {"a": b"2"} and repository.files("mine") == {"a": b"1"}


def test_checksums_by_hand(tmp_path):
    # `git hash-object` of a file that holds "hello\n".
    known = SimpleNamespace(path="a", blob_id="ce013625030ba8dba906f756967f9e9ca394464a", lfs=None)
    lfs = SimpleNamespace(sha256=hashlib.sha256(b"hello\n").hexdigest())
    large = SimpleNamespace(path="a", blob_id="of the pointer", lfs=lfs)
    (tmp_path / "a").write_bytes(b"hello\n")
    for content, same in ((b"hello\n", True), (tmp_path / "a", True), (b"hello", False)):
        assert RepositoryFiles({"a": content}).holds("a", known) == same
        assert RepositoryFiles({"a": content}).holds("a", large) == same


def test_names_of_git_and_of_the_hub():
    for name in ("v1", "v1.0.0", "trial/2", "a_b-c", "2026"):
        assert target(tag=name).tag == name
    for name in ("a b", "..", "a..b", "-a", "a/", "a//b", "v1.lock", "v1.", "é", ""):
        for option in ("tag", "revision"):
            with refused(option):
                target(**{option: name})


def test_a_login_is_needed(login):
    login(None)
    with refused():
        upload(files(a=b"b"), target())
