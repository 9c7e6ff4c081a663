"""Settings: ranges and types are checked in one place, with one wording."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import pytest

from paranmt_hf.errors import InputError
from paranmt_hf.util.markers import Count, Range, Share
from paranmt_hf.util.settings import Expected, Settings, expected_of, is_given, parsed
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


INSIDE = {
    **{"count": [1], "share": [0, 1, 1.0], "margin": [1e-9], "rate": [1, None], "kind": ["b"], "maybe": ["y", None]},
    **{"flag": [True], "name": [""], "sizes": [[5]], "words": [["a"], ()]},
}


def test_values_inside():
    for name, values in INSIDE.items():
        for value in values:
            assert getattr(Chosen(1, **{name: value}), name) == value


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"count": 0}, "count must be at least 1, was 0"),
        ({"count": 1.0}, "count must be a whole number of at least 1, was 1.0"),
        ({"count": True}, "count must be a whole number of at least 1, was true"),
        ({"count": None}, "count must be a whole number of at least 1, was none"),
        ({"required": "x"}, "required must be a whole number, was 'x'"),
        ({"share": -0.1}, "share must be from 0 to 1, was -0.1"),
        ({"share": 1.1}, "share must be from 0 to 1, was 1.1"),
        ({"share": math.nan}, "share must be a number from 0 to 1, was nan"),
        ({"share": "1"}, "share must be a number from 0 to 1, was '1'"),
        ({"share": False}, "share must be a number from 0 to 1, was false"),
        ({"margin": 0}, "margin must be above 0, was 0"),
        ({"margin": math.inf}, "margin must be above 0, was inf"),
        ({"rate": 2}, "rate must be above 0 and at most 1, was 2"),
        ({"kind": "c"}, "kind must be one of a, b, was 'c'"),
        ({"kind": None}, "kind must be one of a, b, was none"),
        ({"maybe": "z"}, "maybe must be one of x, y, was 'z'"),
        ({"flag": 1}, "flag must be true or false, was 1"),
        ({"name": 1}, "name must be text, was 1"),
        ({"sizes": ()}, r"sizes must be at least one value, was \[\]"),
        ({"sizes": (1, 0)}, "each of `sizes` must be at least 1, was 0"),
        ({"sizes": (1.5,)}, "each of `sizes` must be a whole number of at least 1, was 1.5"),
        ({"sizes": 3}, "sizes must be several values, was 3"),
        ({"words": "a"}, "words must be a list, was 'a'"),
        ({"words": [1]}, "each of `words` must be text, was 1"),
    ],
)
def test_values_outside(values, message):
    with pytest.raises(InputError, match=f"^{message}$"):
        Chosen(**{"required": 1, **values})


def test_annotations():
    found = expected_of(Annotated[Literal["x", "y"] | None, "marker"])
    assert found.choices() == ("x", "y") and found.optional and found.markers == ("marker",)
    found = expected_of(Sequence[Count])
    assert (found.kind, found.several, found.empty, found.range) == (int, True, True, Range(at_least=1))
    assert expected_of(Path | str | Sequence[str | Path] | None).several
    assert expected_of(Chosen | str).kind is str and not expected_of(tuple[int, ...]).empty


def test_what_is_given():
    assert is_given(Chosen(1, count=4), "count")
    assert not is_given(Chosen(1, count=3), "count")
    assert is_given(Chosen(1), "required"), "what has no default is always given"


def test_paths_and_numbers_of_numpy_are_taken():
    settings = Chosen(np.int64(3), name=Path("a") / "b", share=np.float32(0.5), rate=1)
    assert (settings.required, settings.name, settings.share, settings.rate) == (3, str(Path("a/b")), 0.5, 1)
    assert [type(getattr(settings, name)) for name in ("required", "name", "share", "rate")] == [int, str, float, int]
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


@pytest.mark.parametrize(
    "text",
    [
        "a: 1\nb: [1, 2\n",
        "a: 1\nb: c: 2\n",
    ],
)
def test_what_is_no_yaml_is_said_in_one_sentence_with_its_line(tmp_path, text):
    (tmp_path / "grid.yaml").write_text(text)
    with refused():
        read_yaml(tmp_path / "grid.yaml", "a grid")


def test_a_value_of_a_group_may_hold_a_comma():
    found = parsed("model=word,trigram, dimension=8", Expected(dict))
    assert found == {"model": "word,trigram", "dimension": "8"}
    for wrong in ("model=", "model=word,", "=word"):
        assert parsed(wrong, Expected(dict)) == wrong
