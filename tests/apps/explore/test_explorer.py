"""What the page asks about a release."""

import json
import shutil
from collections import Counter

import pyarrow as pa
import pytest

from paranmt_hf import ReleaseConfig
from paranmt_hf.apps.explore.explorer import Bins, Explorer, View, bins_of
from paranmt_hf.corpus.release.release import read_tables, release_files
from tests.refused import refused
from tests.toys import scored_release

ROWS = [
    # reference, translation, score, origin
    ("The cat sat on the mat .", "A CAT sat .", 0.5, "news"),
    ("Two dogs", "Two big dogs run", 0.2, "web"),
    ("It's 100% O'Brien ; DROP TABLE", "naïve café", -0.1, "news"),
    ("A dog eats the cat's food", "Food of the cat", 0.7, "mail"),
    ("One", "Eins", 1.0, "web"),
    ("the end of a long story", "the end of the long story", 0.9, "web"),
]


@pytest.fixture(scope="module")
def release(tmp_path_factory):
    names = ("reference", "translation", "para_score", "origin")
    columns = dict(zip(names, zip(*ROWS, strict=True), strict=True))
    columns["para_score"] = pa.array(columns["para_score"], pa.float32())
    return scored_release(tmp_path_factory.mktemp("explore") / "corpus", columns, ReleaseConfig(license="mit"))


@pytest.fixture(scope="module", params=["text in memory", "text in the files"])
def opened(release, request):
    options = {} if request.param == "text in memory" else {"text_bytes": 0}
    with Explorer(release, **options) as explorer:
        yield explorer


def oracle(release, view):
    """Ids of a view, found row by row."""
    found = []
    for row in (row for table in read_tables(release_files(release)) for row in table.to_pylist()):
        inside = all(
            row[name] is not None
            and (low is None or row[name] >= low - 1e-7)
            and (high is None or row[name] <= high + 1e-7)
            for name, (low, high) in view.ranges.items()
        )
        contains = any(view.text.lower() in row[side].lower() for side in view.sides())
        if inside and contains and view.origin in (None, row["origin"]):
            found.append(row["id"])
    return found


VIEWS = [
    View(),
    View({"para_score": (0.2, 0.7)}),
    View({"para_score": (0.7, None), "reference_length": (None, 5)}),
    View({"trigram_overlap": (0.0, 1.0)}),
    View(text="cat"),
    View(text="CAT", side="translation"),
    View(text="O'Brien ; DROP"),
    View(text="100%"),
    View(text="NAÏVE"),
    View({"para_score": (None, 0.5)}, text="dogs", origin="web"),
    View(origin="nowhere"),
]


@pytest.mark.parametrize("view", VIEWS, ids=str)
def test_views_equal_a_search_row_by_row(opened, release, view):
    expected = oracle(release, view)
    assert opened.count(view) == len(expected)
    assert [row["id"] for row in opened.rows(view)] == expected


def test_pages_and_order(opened):
    assert [row["id"] for row in opened.rows(View(), sort="para_score", descending=True)] == [4, 5, 3, 0, 1, 2]
    # Sides with fewer than three tokens have no overlap; these rows come last either way.
    for descending in (False, True):
        order = [row["trigram_overlap"] for row in opened.rows(View(), sort="trigram_overlap", descending=descending)]
        assert order[-3:] == [None, None, None] or order[-1] is None
        known = [value for value in order if value is not None]
        assert known == sorted(known, reverse=descending)
    assert [row["id"] for row in opened.rows(View(), page=1, rows=4)] == [4, 5]
    assert opened.rows(View(), page=9) == []
    with refused():
        opened.rows(View(), sort="reference")


def test_histograms_count_each_row_once(opened):
    counts = opened.histograms(View())
    assert set(counts) == {"para_score", "trigram_overlap", "reference_length", "translation_length"}
    assert sum(counts["para_score"]) == sum(counts["reference_length"]) == 6
    bins = opened.bins["reference_length"]
    lengths = Counter(row["reference_length"] for row in opened.rows(View()))
    assert {
        int(bins.low + index * bins.width): n for index, n in enumerate(counts["reference_length"]) if n
    } == lengths
    assert sum(opened.histograms(View(text="dog"))["para_score"]) == 2


def test_examples_lie_in_their_ranges(opened):
    ranges = opened.examples(View(), each=1)
    assert [(part["range"], part["rows"]) for part in ranges] == [
        ("[-1.0, 0.2]", 2),
        ("(0.2, 0.4]", 0),
        ("(0.4, 0.6]", 1),
        ("(0.6, 0.8]", 1),
        ("(0.8, 1.0]", 2),
    ]
    assert [len(part["examples"]) for part in ranges] == [1, 0, 1, 1, 1]
    assert ranges[2]["examples"][0]["id"] == 0
    drawn = {
        tuple(row["id"] for part in opened.examples(View(), each=1, seed=seed) for row in part["examples"])
        for seed in range(20)
    }
    assert len(drawn) > 1
    assert opened.examples(View(), each=1, seed=3) == opened.examples(View(), each=1, seed=3)


def test_summary(opened):
    summary = opened.summary()
    assert summary["rows"] == 6
    assert summary["origins"] == {"web": 3, "news": 2, "mail": 1}
    assert set(summary["bins"]) == set(opened.columns)


def test_one_text_after_another(opened, release):
    for text in ("cat", "dog", "cat", "one"):
        assert opened.count(View(text=text)) == len(oracle(release, View(text=text)))


def test_no_release(tmp_path):
    with refused():
        Explorer(tmp_path / "nothing")


def test_names_in_a_record_are_no_part_of_a_query(release, tmp_path):
    copy = tmp_path / "corpus"
    shutil.copytree(release, copy)
    record = json.loads((copy / "build.json").read_bytes())
    record["columns"].append(f"id\" FROM range(1); COPY (SELECT 1) TO '{tmp_path}/written'; SELECT \"range")
    (copy / "build.json").write_text(json.dumps(record), encoding="utf8")
    with Explorer(copy) as explorer:
        rows = explorer.rows(View(), rows=2)
    assert [row["reference"] for row in rows] == [ROWS[0][0], ROWS[1][0]]
    assert not (tmp_path / "written").exists()


@pytest.mark.parametrize(
    ("lowest", "highest", "usual", "whole", "expected"),
    [
        (-1.0, 1.0, 0.99, False, Bins(-1.0, 0.1, 20, False)),
        (0.0, 1.0, 0.9, False, Bins(0.0, 0.05, 20, False)),
        (0.31, 0.99, 0.98, False, Bins(0.3, 0.02, 35, False)),
        # A few sentences of 900 tokens do not make all others one bar.
        (1, 900, 60, True, Bins(0.0, 2.0, 31, True)),
        (0, 1, 1, True, Bins(0.0, 1.0, 2, False)),
        (0, 0, 0, True, Bins(0.0, 1.0, 1, False)),
        (None, None, None, False, Bins(0.0, 1.0, 1, False)),
    ],
)
def test_bins(lowest, highest, usual, whole, expected):
    assert bins_of(lowest, highest, usual, whole=whole) == expected


def test_every_value_has_a_bin_and_there_are_few():
    for top in range(1, 400):
        found = bins_of(0, top, top, whole=True)
        assert found.count <= 40
        assert found.low + found.count * found.width > top


COLUMNS = ("para_score", "reference_length")


def parse(**values):
    return View.parse([(name.replace("__", "."), value) for name, value in values.items()], COLUMNS)


def test_parameters_become_a_view():
    view = parse(min__para_score="0.4", max__para_score="", max__reference_length="30", text="A cat", side="reference")
    assert view == View({"para_score": (0.4, None), "reference_length": (None, 30.0)}, "A cat", "reference")
    assert view.sides() == ("reference",)
    assert View(text="a").sides() == ("reference", "translation")
    assert parse(page="3", token="x") == View()


def test_values_are_never_part_of_the_query():
    condition, values = parse(min__para_score="0.4", origin="' OR 1=1 --").condition()
    assert condition == 'true AND "para_score" >= ?::FLOAT AND origin = ?'
    assert values == [0.4, "' OR 1=1 --"]


@pytest.mark.parametrize(
    "values",
    [
        {"min__x": "1"},
        {'min__para_score" OR 1=1': "1"},
        {"min__para_score": "high"},
        {"max__para_score": "nan"},
        {"side": "left"},
        {"text": "x" * 1001},
    ],
)
def test_what_is_wrong_is_said(values):
    with refused():
        parse(**values)
