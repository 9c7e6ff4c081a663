"""Records come back from JSON as they were, and what is wrong with a file is said with its key."""

import json
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paranmt_hf.util.records import as_json, describe_differences, from_json, read_json
from tests.refused import refused


@dataclass(frozen=True)
class Inner:
    name: str
    share: float | None = None


@dataclass(frozen=True)
class Sample:
    count: int
    share: float
    text: str
    flag: bool
    maybe: int | None
    choice: Literal["a", "b"]
    names: list[str]
    pair: tuple[int, float]
    many: tuple[float, ...]
    table: dict[str, int]
    inner: Inner
    inners: list[Inner]
    by_name: dict[str, Inner]
    either: list[str] | Inner
    anything: Any = None
    plain: dict = field(default_factory=dict)


VALUES = {
    "count": 3,
    "share": 0.5,
    "text": "t",
    "flag": True,
    "maybe": None,
    "choice": "a",
    "names": ["x", "y"],
    "pair": [1, 2.0],
    "many": [0.25],
    "table": {"k": 1},
    "inner": {"name": "i", "share": 1.0},
    "inners": [{"name": "j", "share": None}],
    "by_name": {"z": {"name": "l", "share": 0.0}},
    "either": {"name": "e", "share": None},
    "anything": [1, {"x": None}],
    "plain": {"a": [1]},
}

WHOLE = st.integers(-(2**60), 2**60)
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
INNERS = st.builds(Inner, st.text(), st.none() | NUMBERS)
JSON = st.recursive(
    st.none() | st.booleans() | WHOLE | NUMBERS | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
SAMPLES = st.builds(
    Sample,
    count=WHOLE,
    share=NUMBERS,
    text=st.text(),
    flag=st.booleans(),
    maybe=st.none() | WHOLE,
    choice=st.sampled_from(["a", "b"]),
    names=st.lists(st.text()),
    pair=st.tuples(WHOLE, NUMBERS),
    many=st.lists(NUMBERS, min_size=1).map(tuple),
    table=st.dictionaries(st.text(), WHOLE),
    inner=INNERS,
    inners=st.lists(INNERS),
    by_name=st.dictionaries(st.text(), INNERS),
    either=st.lists(st.text()) | INNERS,
    anything=JSON,
    plain=st.dictionaries(st.text(), JSON),
)


@pytest.mark.slow
@settings(max_examples=30)
@given(SAMPLES)
def test_there_and_back(record):
    values = as_json(record)
    assert json.loads(json.dumps(values)) == values
    again = from_json(Sample, values, "f")
    assert again == record
    assert as_json(again) == values


def test_a_sample_by_hand():
    record = from_json(Sample, VALUES, "f")
    assert record.inner == Inner("i", 1.0) and record.inners == [Inner("j")] and record.by_name == {"z": Inner("l", 0)}
    assert record.pair == (1, 2.0) and record.many == (0.25,) and record.either == Inner("e")
    assert as_json(record) == VALUES and list(as_json(record)) == list(VALUES)
    # A whole number is a number, in the record too; a key that is not known is left out; defaults fill in.
    record = from_json(Sample, {**VALUES, "share": 1, "more": 2}, "f")
    assert isinstance(record.share, float) and not hasattr(record, "more")
    fewer = {key: value for key, value in VALUES.items() if key not in ("anything", "plain")}
    assert from_json(Sample, fewer, "f").plain == {}
    assert from_json(list[Inner], [{"name": "a"}], "f") == [Inner("a")]


# Under each key of the sample, values that are not of its type.
WRONG = {
    "count": [None, True, 1.5, "3", [], {}],
    "share": [None, True, "s", float("nan"), float("inf")],
    "text": [None, 7, ["x"]],
    "flag": [None, 1, "true"],
    "maybe": [1.5, "s"],
    "choice": [None, "c"],
    "names": [None, "s", {}],
    "names[0]": [None, 1],
    "pair": [[], [1], [1, 2, 3], {}],
    "pair[0]": [1.5],
    "many": [[], "s"],
    "many[0]": ["s", None],
    "table": [None, []],
    "table.k": [1.5, None],
    "inner": [None, [], "s"],
    "inner.name": [None, 3],
    "inner.share": ["s", []],
    "inners[0].name": [None],
    "by_name.z.share": [True],
    "either": [3, None],
    "plain": [[], None],
}


def replaced(values, path, value):
    """A copy of JSON values with another one under a path such as `inners[0].name`."""
    copy = json.loads(json.dumps(values))
    steps = [int(step) if step.isdigit() else step for step in path.replace("[", ".").replace("]", "").split(".")]
    inner = copy
    for step in steps[:-1]:
        inner = inner[step]
    inner[steps[-1]] = value
    return copy


@pytest.mark.parametrize("path", WRONG)
def test_a_wrong_type_is_named_with_its_key(path):
    for value in WRONG[path]:
        with refused(path=Path("FILE")) as caught:
            from_json(Sample, replaced(VALUES, path, value), Path("FILE"))
        assert f"{path} " in str(caught.value) and "\n" not in str(caught.value)


def test_a_missing_key_is_named():
    for entry in [entry.name for entry in fields(Sample)][:-2]:
        values = {key: value for key, value in VALUES.items() if key != entry}
        with refused(path=Path("FILE")) as caught:
            from_json(Sample, values, Path("FILE"))
        assert f"{entry!r}" in str(caught.value)


@dataclass(frozen=True)
class Nested:
    before: "Nested | None" = None


def test_records_in_records():
    assert from_json(Nested, {"before": {"before": None}}, "FILE") == Nested(Nested())
    for values in (None, 3, "x", []):
        with refused(path=Path("FILE")):
            from_json(Sample, values, Path("FILE"))


def test_files(tmp_path):
    path = tmp_path / "record.json"
    for missing in (path, tmp_path):
        with refused(path=missing):
            read_json(missing, "a sample")
    for content in (b"", b"{", b"\xff{}"):
        path.write_bytes(content)
        with refused(path=path):
            read_json(path, "a sample")
    path.write_text('{"a": [1, null]}')
    assert read_json(path, "a sample") == {"a": [1, None]}


def test_identities_as_json():
    assert as_json({"a": (1, 2), 3: {"b": None}}) == {"a": [1, 2], "3": {"b": None}}


@pytest.mark.parametrize(
    ("old", "new", "differences"),
    [
        ({}, {}, ""),
        ({"a": 1}, {"a": 1}, ""),
        ({"a": 1, "b": {"c": 2, "d": 3}}, {"a": 1, "b": {"c": 2, "d": 4}}, "b.d: was 3, now 4"),
        ({"a": 1}, {"b": 2}, "a: was 1, now none; b: was none, now 2"),
        ({"a": {"x": 1}}, {"a": None}, "a: was x=1, now none"),
        ({"a": 1}, {"a": None}, "a: was 1, now none"),
        ({"a": [{"b": 1, "c": True}]}, {"a": [{"b": 1, "c": []}]}, "a.1.c: was true, now []"),
        ({"a": "x" * 200 + "1"}, {"a": "x" * 200 + "2"}, f"a: not the same '{'x' * 99}..."),
        ({"a": "x" * 200}, {"a": "y"}, f"a: was '{'x' * 99}..., now 'y'"),
        (
            {"data": f"sha256:{'a' * 64}", "files": ["b" * 64]},
            {"data": f"sha256:{'c' * 64}", "files": ["d" * 64]},
            f"data: was 'sha256:{'a' * 12}', now 'sha256:{'c' * 12}'; files: was ['{'b' * 12}'], now ['{'d' * 12}']",
        ),
        (
            dict.fromkeys("abcdefg", 1),
            dict.fromkeys("abcdefg", 2),
            "; ".join(f"{name}: was 1, now 2" for name in "abcde") + "; and 2 more",
        ),
    ],
)
def test_differences(old, new, differences):
    assert describe_differences(old, new) == differences
