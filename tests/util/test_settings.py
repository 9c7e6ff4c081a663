"""Settings: ranges and types are checked in one place, with one wording."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paranmt_hf import InputError
from paranmt_hf.util.markers import Count, Range, Share
from paranmt_hf.util.settings import Settings, is_given, values_for
from paranmt_hf.util.typed import expected_of, named_values, read
from paranmt_hf.util.yaml_files import card_header, parse_yaml, read_yaml
from tests.refused import refused


@dataclass(frozen=True)
class Chosen(Settings):
    required: int
    count: Count = 3
    share: Share = 0.5
    margin: Annotated[float, Range(above=0)] = 0.4
    rate: Annotated[float | None, Range(above=0, at_most=1)] = None
    kind: Literal["a", "b"] = "a"
    maybe: Literal["x", "y"] | None = None
    flag: bool = False
    name: str | None = None
    sizes: tuple[Count, ...] = (1, 2)
    words: Sequence[str] = ()


def test_defaults():
    settings = Chosen(1)
    assert (settings.count, settings.margin, settings.sizes) == (3, 0.4, (1, 2))
    with pytest.raises(TypeError, match="required"):
        Chosen()


NUMBERS = st.floats(0, 1)
VALUES = {
    "required": st.integers(),
    "count": st.integers(1),
    "share": NUMBERS,
    "margin": st.floats(0, exclude_min=True, allow_infinity=False),
    "rate": st.none() | st.floats(0, 1, exclude_min=True),
    "kind": st.sampled_from(["a", "b"]),
    "maybe": st.sampled_from(["x", "y", None]),
    "flag": st.booleans(),
    "sizes": st.lists(st.integers(1), min_size=1).map(tuple),
    "words": st.lists(st.text()).map(tuple),
}


@given(st.fixed_dictionaries(VALUES))
def test_values_inside_are_kept_and_read_from_text(values):
    assert {name: getattr(Chosen(**values), name) for name in values} == values
    as_text = {
        name: [str(each) for each in value] if isinstance(value, tuple) else str(value)
        for name, value in values.items()
    }
    assert values_for([Chosen], as_text, "settings") == [values]


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("required", ["x", "1", 1.0, None, True]),
        ("count", [0, 1.0, True, None]),
        ("share", [-0.1, 1.1, math.nan, "1", False]),
        ("margin", [0, math.inf, 10**400]),
        ("rate", [0, 2]),
        ("kind", ["c", None]),
        ("maybe", ["z", 1]),
        ("flag", [1, "true"]),
        ("name", [1, ["a"]]),
        ("sizes", [(), (1, 0), (1.5,), 3]),
        ("words", ["a", [1]]),
    ],
)
def test_values_outside(name, wrong):
    for value in wrong:
        with refused(name):
            Chosen(**{"required": 1, name: value})


def test_errors_of_types_name_the_range():
    with pytest.raises(InputError, match="^rate must be a number above 0 and at most 1, was 'x'$"):
        values_for([Chosen], {"rate": "x"}, "settings")


def test_a_mistyped_choice_gets_a_suggestion():
    with pytest.raises(InputError, match="perhaps you meant 'listwise'"):
        read(Literal["squares", "listwise"], "listwize", "loss")


def test_annotations():
    found = expected_of(Annotated[Literal["x", "y"] | None, "marker"])
    assert found.choices() == ("x", "y") and found.optional and found.markers == ("marker",)
    found = expected_of(Sequence[Count])
    assert (found.kind, found.several, found.range) == (int, True, Range(at_least=1))
    assert expected_of(Path | str | Sequence[str | Path] | None).several
    assert expected_of(Chosen | str).kind is str


def test_unions_as_text():
    assert read(Chosen | str | Sequence[str], "a", "x", text=True) == ("a",)
    assert read(Chosen | str | None, "none", "x", text=True) == "none"
    assert read(int | None, "none", "x", text=True) is None


def test_what_is_given():
    assert is_given(Chosen(1, count=4), "count")
    assert not is_given(Chosen(1, count=3), "count")
    assert is_given(Chosen(1), "required"), "what has no default is always given"


def test_paths_and_numbers_of_numpy_are_taken():
    settings = Chosen(np.int64(3), name=Path("a") / "b", share=np.float32(0.5), rate=1)
    assert (settings.required, settings.name, settings.share, settings.rate) == (3, str(Path("a/b")), 0.5, 1)
    assert [type(getattr(settings, name)) for name in ("required", "name", "share", "rate")] == [
        int,
        str,
        float,
        float,
    ]
    with refused("count"):
        Chosen(1, count=np.int32(0))


@pytest.mark.parametrize(
    ("text", "value"),
    [("2024-13-45", "2024-13-45"), ("no", "no"), ("010", 10), ("1:30", "1:30"), ("1e-3", 1e-3), ("~", None)],
)
def test_values_are_those_of_yaml_1_2(tmp_path, text, value):
    assert parse_yaml(f"value: {text}") == {"value": value}
    assert parse_yaml(f"value: {text}", as_text=True) == {"value": text if value is not None else None}
    (tmp_path / "README.md").write_text(f"---\nlicense: mit\nvalue: {text}\n---\n")
    assert card_header(tmp_path / "README.md") == {"license": "mit", "value": value}
    (tmp_path / "README.md").write_text("---\nlicense: !!map x\n---\n")
    assert card_header(tmp_path / "README.md") == {}


# The second one holds itself.
DEEP = [f"a: {'[' * 100}{']' * 100}\n", "a: &a\n  b: *a\n"]
BROKEN = ["a: 1\nb: [1, 2\n", "a: 1\nb: c: 2\n", "a: 1\na: 2\n", "- 1\n"]


@pytest.mark.parametrize("text", [*BROKEN, *DEEP])
def test_what_is_no_yaml_mapping_is_refused(tmp_path, text):
    (tmp_path / "grid.yaml").write_text(text)
    with refused(path=tmp_path / "grid.yaml"):
        read_yaml(tmp_path / "grid.yaml", "a grid")


def test_a_value_of_a_group_may_hold_a_comma():
    assert named_values("model=word,trigram, dimension=8") == {"model": "word,trigram", "dimension": "8"}
    for wrong in ("model=", "model=word,", "=word"):
        assert named_values(wrong) is None
