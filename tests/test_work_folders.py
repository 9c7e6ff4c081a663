"""Whose a work folder is, what a refused input leaves, and what becomes of damaged shards."""

import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paranmt_hf import import_pairs, train
from paranmt_hf.corpus.reading.readers import LineFiles
from paranmt_hf.corpus.release import release_run
from paranmt_hf.corpus.score import rescore
from paranmt_hf.encoders.named_encoder import NamedEncoder
from paranmt_hf.errors import WriteError
from paranmt_hf.util import run
from tests.refused import refused
from tests.toys import LOCAL, RELEASE, bytes_of, full_disk, make, write_vectors
from tests.training.toys import small, write_data


def kill(*arguments, **options):
    raise KeyboardInterrupt


@pytest.fixture
def vectors(tmp_path):
    (tmp_path / "other.txt").write_text("word 1 0\nwort 1 0\na 0 1\n")
    return write_vectors(tmp_path / "vectors.txt", ["wort", "word", "a", "b", *map(str, range(20))])


@pytest.fixture
def bitext(tmp_path):
    (tmp_path / "text.de").write_text("".join(f"wort {n} a b\n" for n in range(20)))
    (tmp_path / "text.en").write_text("".join(f"word {n} a\n" for n in range(20)))
    return LineFiles({"source": tmp_path / "text.de", "reference": tmp_path / "text.en"})


def imported(data, out, vectors):
    return import_pairs(data, out, scorer=vectors, release=RELEASE, engine=LOCAL)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_scoring_leaves_the_work_of_another_command(tmp_path, bitext, vectors, monkeypatch):
    make(bitext, tmp_path / "out", vectors)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(release_run, "write_card", kill)
        make(bitext, tmp_path / "other" / "out", vectors)
    shutil.move(tmp_path / "other" / "out.work", tmp_path / "out.work")
    before = bytes_of(tmp_path / "out.work")
    other = tmp_path / "other.txt"
    with refused(path=tmp_path / "out.work"):
        rescore(tmp_path / "out", scorer=other, engine=LOCAL)
    assert bytes_of(tmp_path / "out.work") == before
    shutil.move(tmp_path / "out.work", tmp_path / "kept")
    assert rescore(tmp_path / "out", scorer=other, engine=LOCAL).fresh
    assert not (tmp_path / "out.work").exists()


@pytest.mark.parametrize("moment", ["before the swap", pytest.param("in the swap", marks=pytest.mark.slow)])
def test_another_scorer_after_a_kill(tmp_path, bitext, vectors, monkeypatch, moment):
    out, work = tmp_path / "out", tmp_path / "out.work"
    make(bitext, out, vectors)
    other, third = tmp_path / "other.txt", None
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        if moment == "before the swap":
            patch.setattr(release_run, "write_card", kill)
        else:
            patch.setattr(run, "_swap", kill)
        rescore(out, scorer=other, engine=LOCAL)
    if moment == "before the swap":
        with refused(path=work):
            rescore(out, scorer=third, engine=LOCAL)
        # What determines the release that is there has not changed.
        assert rescore(out, scorer=other, engine=LOCAL).fresh
    else:
        # The scores that were finished have their name by now.
        assert rescore(out, scorer=third, engine=LOCAL).record.settings["scorer"] == NamedEncoder().identity
    assert not work.exists()


def test_refused_inputs_leave_no_work_folder(tmp_path, bitext, vectors):
    before = names(tmp_path)
    with (tmp_path / "text.en").open("a") as more:
        more.write("one line more\n")
    with refused():
        make(bitext, tmp_path / "out", vectors)
    pq.write_table(pa.table({"reference": ["", " "], "translation": ["", ""]}), tmp_path / "empty.parquet")
    with refused():
        imported(tmp_path / "empty.parquet", tmp_path / "out", vectors)
    with refused():
        train(tmp_path / "empty.parquet", tmp_path / "out", **small())
    same = write_data(tmp_path / "same.parquet", (["a b"] * 30, ["a b"] * 30))
    with refused():
        train(same, tmp_path / "out", **small())
    assert names(tmp_path) == sorted([*before, "empty.parquet", "same.parquet"])


@pytest.mark.parametrize("stage", ["0-input", pytest.param("1-translate", marks=pytest.mark.slow), "2-score"])
def test_damaged_shards_are_made_again(tmp_path, bitext, vectors, monkeypatch, caplog, stage):
    make(bitext, tmp_path / "whole" / "out", vectors)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(release_run, "write_card", kill)
        make(bitext, tmp_path / "out", vectors)
    path = tmp_path / "out.work" / stage / "shard-000001.parquet"
    content = path.read_bytes()
    path.write_bytes(bytes(len(content)) if stage == "0-input" else content[: len(content) // 2])
    make(bitext, tmp_path / "out", vectors)
    assert f"{path} is missing or damaged and is made again" in caplog.text
    assert bytes_of(tmp_path / "out") == bytes_of(tmp_path / "whole" / "out")
    assert not (tmp_path / "out.work").exists()


@pytest.mark.slow
@pytest.mark.parametrize("what", ["_write", "write_card"])
def test_no_room_for_the_release(tmp_path, bitext, vectors, monkeypatch, what):
    make(bitext, tmp_path / "whole" / "out", vectors)
    original = getattr(release_run, what)

    def full(*arguments):
        with full_disk(100):
            return original(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(release_run, what, full)
        expected = f"^cannot (write|save) {tmp_path}/out.work.*: .*File too large; make room and run the same"
        with pytest.raises(WriteError, match=expected):
            make(bitext, tmp_path / "out", vectors)
    assert not (tmp_path / "out").exists()
    make(bitext, tmp_path / "out", vectors)
    assert bytes_of(tmp_path / "out") == bytes_of(tmp_path / "whole" / "out")
    assert not (tmp_path / "out.work").exists()
