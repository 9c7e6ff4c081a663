"""The files of transfer tasks, in their own formats and encodings, and what is wrong with one."""

import bz2
import gzip

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paranmt_hf import InputError
from paranmt_hf.evaluation.transfer_data import TASKS, read_tasks
from tests.evaluation.toys import MRPC_HEADER, SICK_HEADER, sentence, write, write_all
from tests.refused import refused


@pytest.fixture
def folder(tmp_path):
    write_all(tmp_path)
    return tmp_path


def read(folder, name):
    (task,), missing = read_tasks(folder, [name])
    assert not missing
    return task


def test_all_tasks(folder, monkeypatch):
    monkeypatch.setenv("HOME", str(folder.parent))
    tasks, missing = read_tasks(f"~/{folder.name}")
    assert [task.name for task in tasks] == list(TASKS) and not missing
    parts = {task.name: {name: (len(part), len(part.sides)) for name, part in task.parts.items()} for task in tasks}
    assert parts["MR"] == parts["MPQA"] == {"all": (80, 1)}
    assert parts["SST2"] == parts["SST5"] == {"train": (40, 1), "dev": (40, 1), "test": (40, 1)}
    assert parts["TREC"] == {"train": (80, 1), "test": (80, 1)}
    assert parts["MRPC"] == {"train": (40, 2), "test": (40, 2)}
    assert parts["SICK-R"] == parts["SICK-E"] == {"train": (40, 2), "dev": (40, 2), "test": (40, 2)}
    assert set(tasks[9].parts["test"].labels.tolist()) == {0, 1, 2}
    assert set(tasks[8].parts["test"].labels.tolist()) == {1.0, 3.0, 5.0}
    assert tasks[0].notes == (
        "MR has 80 items where 10,662 are expected, so it is not comparable with published figures.",
    )
    assert tasks[8].notes == (
        "SICK-R has 40 + 40 + 40 items where 4,500 + 500 + 4,927 are expected, so it is not comparable with published "
        "figures.",
    )
    assert tasks[8].checksum != tasks[9].checksum, "equal sentences, other labels"


def test_shortest_first_then_by_label_then_as_in_the_file(tmp_path):
    write(tmp_path / "CR" / "custrev.pos", ["a b c", "d", "e"])
    write(tmp_path / "CR" / "custrev.neg", ["f", "", "g  h"])
    part = read(tmp_path, "CR").parts["all"]
    assert part.sides[0] == ["f", ".", "d", "e", "g h", "a b c"], "a line without a word is read as a full stop"
    assert part.labels.tolist() == [0, 0, 1, 1, 0, 1]


def test_subjective_sentences_are_class_0(folder):
    (folder / "SUBJ" / "subj.objective").rename(folder / "SUBJ" / "plot.tok.gt9.5000")
    part = read(folder, "SUBJ").parts["all"]
    assert part.labels[part.sides[0].index(sentence(1, 1))] == 1


@pytest.mark.parametrize(("encoding", "text"), [("latin-1", "café 1½\x85"), ("utf8", "café 1½ 一")])
def test_encodings(tmp_path, encoding, text):
    write(tmp_path / "MR" / "rt-polarity.pos", [f"{text} good"], encoding)
    write(tmp_path / "MR" / "rt-polarity.neg", ["bad"])
    assert " ".join(f"{text} good".split()) in read(tmp_path, "MR").parts["all"].sides[0]


def test_windows_lines_and_other_names(tmp_path):
    write(tmp_path / "TREC" / "TREC.train", ["NUM:date When 's it ?\r"])
    write(tmp_path / "TREC" / "TREC.test", ["HUM:ind Who : me ?\r"])
    task = read(tmp_path, "TREC")
    assert task.parts["train"].sides == (["When 's it ?"],) and task.parts["test"].sides == (["Who : me ?"],)
    assert (task.parts["train"].labels.tolist(), task.parts["test"].labels.tolist()) == ([5], [3])


@given(st.lists(st.text(st.characters(codec="latin-1", exclude_characters="\n\r\0"), min_size=1), min_size=1))
def test_every_line_is_an_item(tmp_path_factory, lines):
    folder = tmp_path_factory.mktemp("any")
    write(folder / "MPQA" / "mpqa.pos", [*lines, "x"], "latin-1")
    write(folder / "MPQA" / "mpqa.neg", ["y"])
    labels = read(folder, "MPQA").parts["all"].labels
    assert (labels == 1).sum() == len(lines) + 1


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress])
def test_packed_files_and_blank_lines_at_the_end(folder, pack):
    plain = read(folder, "MRPC").checksum
    path = folder / "MRPC" / "msr_paraphrase_train.txt"
    path.write_bytes(pack(path.read_bytes() + b"\n\r\n"))
    assert read(folder, "MRPC").checksum == plain


def test_a_missing_task_is_named(folder):
    for name in ("MR/rt-polarity.pos", "MR/rt-polarity.neg", "SICK/SICK_train.txt"):
        (folder / name).unlink()
    for name in ("trial", "test_annotated"):
        (folder / "SICK" / f"SICK_{name}.txt").unlink()
    tasks, missing = read_tasks(folder)
    assert missing == ["MR", "SICK-R", "SICK-E"] and len(tasks) == 7
    with refused():
        read_tasks(folder, ["CR", "MR"])


@pytest.mark.parametrize(
    ("name", "number", "line"),
    [
        ("TREC/TREC_10.label", 3, "XYZ:a b"),
        ("TREC/TREC_10.label", 80, "NUM:da"),
        ("SST/binary/sentiment-dev", 2, "0 a b"),
        ("SST/fine/sentiment-dev", 2, "a b\t1"),
        ("MRPC/msr_paraphrase_train.txt", 41, "1\t2\t3\tcut"),
        ("MRPC/msr_paraphrase_train.txt", 9, "x\t2\t3\ta\tb"),
        ("MRPC/msr_paraphrase_train.txt", 1, SICK_HEADER),
        ("SICK/SICK_trial.txt", 4, "1\ta\tb\tNEUTRAL\t3.0"),
        ("SICK/SICK_trial.txt", 4, "1\ta\tb\t5.5\tNEUTRAL"),
        ("SICK/SICK_trial.txt", 4, "1\ta\tb\t3.0\tneutral"),
        ("SICK/SICK_trial.txt", 4, "1\ta\t \t3.0\tNEUTRAL"),
    ],
)
def test_damaged_lines(folder, name, number, line):
    lines = (folder / name).read_text(encoding="utf8").split("\n")
    lines[number - 1] = line
    (folder / name).write_text("\n".join(lines), encoding="utf8")
    with refused():
        read_tasks(folder)


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("MR/rt-polarity.neg", None),
        ("MR/rt-polarity.neg", lambda content: b"\n"),
        ("MR/rt-polarity.pos", lambda content: content.decode().encode("utf-16")),
        ("MRPC/msr_paraphrase_train.txt", lambda content: content.decode().encode("utf-16")),
        ("MRPC/msr_paraphrase_test.txt", lambda content: f"{MRPC_HEADER}\n".encode()),
        # Cut off within a sentence.
        ("SICK/SICK_test_annotated.txt", lambda content: content[:-1]),
    ],
)
def test_damaged_files(folder, name, damage):
    content = (folder / name).read_bytes()
    (folder / name).unlink()
    if damage:
        (folder / name).write_bytes(damage(content))
    with pytest.raises(InputError) as caught:
        read_tasks(folder)
    assert name in str(caught.value)


def test_nothing_there(tmp_path):
    for place, names in ((tmp_path / "no" / "where", None), (tmp_path, None), (tmp_path, ["STS"])):
        with refused():
            read_tasks(place, names)


@pytest.mark.slow
def test_real_data(shared_data):
    tasks, missing = read_tasks(shared_data / "senteval")
    assert not any(task.notes for task in tasks), "all counts are those of published figures"
    by_name = {task.name: task for task in tasks}
    assert {"MR", "CR", "TREC", "MRPC", "SICK-R", "SICK-E"} <= by_name.keys()
    assert np.bincount(by_name["MR"].parts["all"].labels).tolist() == [5331, 5331]
    assert np.bincount(by_name["MRPC"].parts["test"].labels).tolist() == [578, 1147]
    assert np.bincount(by_name["TREC"].parts["test"].labels).tolist() == [9, 138, 94, 65, 81, 113]
    assert any("é" in text for text in by_name["MR"].parts["all"].sides[0])
