import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paranmt_hf.apps.annotate.answers import AnswerStore, Imported, Rating, read_csv, sample_mark, to_csv
from tests.refused import refused

WHEN = "2026-11-22T10:00:00+00:00"


@pytest.fixture
def path(tmp_path):
    return tmp_path / "answers.csv"


def test_what_is_written(sample):
    answers = {"Ada": {1: Rating(4, 2, note="a, b", changed=WHEN), 2: Rating(revision=2)}}
    header, row = csv.reader(io.StringIO(to_csv(sample, answers)))
    item = sample.items[1]
    # An answer that was taken back is none.
    assert dict(zip(header, row, strict=True)) == {
        "sample": sample_mark(sample),
        "item": "1",
        "annotator": "Ada",
        "strength": "4",
        "fluency": "2",
        "skipped": "",
        "paraphrase": "3",
        "note": "a, b",
        "changed": WHEN,
        "reference": item.reference,
        "translation": item.translation,
    }


notes = st.text(st.characters(exclude_categories=["Cs", "Cc"]) | st.sampled_from("\n\t'=+-@,;\""), max_size=20)
given_answers = st.one_of(
    st.builds(
        Rating, st.integers(0, 5), st.integers(1, 3) | st.none(), st.just(False), notes, st.just(0), st.just(WHEN)
    ),
    st.builds(Rating, skipped=st.just(True), note=notes, changed=st.just(WHEN)),
)


@given(
    st.dictionaries(
        st.sampled_from(["Ada", "Grace Hopper", "\u674e"]), st.dictionaries(st.integers(0, 3), given_answers)
    )
)
def test_round_trip(sample, tmp_path_factory, answers):
    path = tmp_path_factory.mktemp("csv") / "a.csv"
    path.write_text(to_csv(sample, answers), encoding="utf8", newline="")
    expected = [(name, item, answer) for name, found in answers.items() for item, answer in found.items()]
    assert read_csv(path, sample) == expected


def test_no_cell_is_a_formula(sample):
    for text in ("=1+1", "+1", "-1", "@x", "\tx", "'=1"):
        (_, row) = csv.reader(io.StringIO(to_csv(sample, {"Ada": {0: Rating(1, 1, note=text)}})))
        assert row[7] == f"'{text}"


def lines(sample, *rows, header="sample,item,annotator,strength,fluency"):
    return "\n".join([header, *(row.replace("S", sample_mark(sample)) for row in rows)]) + "\n"


def test_what_spreadsheets_write(sample, path):
    path.write_bytes(
        b"\xef\xbb\xbf"
        + lines(sample, "S;1;Ada;3;2", ";;;;", header="Sample;Item;annotator;strength;fluency").encode()
    )
    assert read_csv(path, sample) == [("Ada", 1, Rating(3, 2))]
    path.write_bytes(lines(sample, "S,1,Ada,3,", "S,2,Ada,,").replace("\n", "\r\n").encode())
    # A line without any answer counts for nothing.
    assert read_csv(path, sample) == [("Ada", 1, Rating(3))]


@pytest.mark.parametrize(
    "row",
    [
        "S,1,Ada,6,2",
        "S,1,Ada,2.5,2",
        "S,1,Ada,3,4",
        "S,4,Ada,3,3",
        "S,,Ada,3,3",
        "0123456789abcdef,1,Ada,3,3",
        ",1,Ada,3,3",
        "S,1,,3,3",
        "S,1,Ada,3",
        "S,0,ada,3,3",
        'S,1,"Ada,3,3',
    ],
)
def test_a_wrong_line_is_named(sample, path, row):
    path.write_text(lines(sample, "S,0,Ada,3,3", row), encoding="utf8")
    with refused(path=path) as error:
        read_csv(path, sample)
    assert str(error.value).startswith(f"{path}, line ")


@pytest.mark.parametrize(
    "cells",
    [
        "maybe,,,",
        "yes,,,",
        ",3,,",
    ],
)
def test_wrong_cells_of_other_columns(sample, path, cells):
    header = "sample,item,annotator,strength,fluency,skipped,paraphrase,changed,note"
    path.write_text(lines(sample, f"S,0,Ada,3,3,{cells}", header=header))
    with refused(path=path):
        read_csv(path, sample)


def test_files_that_are_no_answers(sample, path):
    with refused():
        read_csv(path, sample)
    path.write_bytes(b"\xff\xfe")
    with refused():
        read_csv(path, sample)
    for text in ("", "a,b\n"):
        path.write_text(text)
        with refused(path=path):
            read_csv(path, sample)


def test_adding(sample, tmp_path):
    store = AnswerStore(tmp_path / "answers.json", sample)
    store.put("Ada", 0, Rating(5, 3))
    same, new, other = ("ada", 0, Rating(5, 3)), ("Ada", 1, Rating(2)), ("ADA", 0, Rating(4, 3))
    assert store.merge([same, new], replace=False) == Imported(1, 0, 1)
    with refused("replace"):
        store.merge([("Grace", 1, Rating(1)), other], replace=False)
    assert list(store.answers()) == ["Ada"]
    assert store.merge([other], replace=True) == Imported(0, 1, 0)
    found = store.answers()["Ada"]
    assert (found[0].strength, found[0].revision, found[1].strength) == (4, 2, 2)
    # What was taken back stands in nobody's way.
    store.put("Ada", 1, Rating(revision=1))
    assert store.merge([new], replace=False) == Imported(1, 0, 0)
