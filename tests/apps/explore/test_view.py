import pytest

from paranmt_hf.apps.explore.view import View
from paranmt_hf.errors import InputError

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
    ("values", "message"),
    [
        ({"min__x": "1"}, "'x' is no numeric column of this release; it has para_score, reference_length"),
        ({'min__para_score" OR 1=1': "1"}, "is no numeric column"),
        ({"min__para_score": "high"}, "min.para_score must be a number, was 'high'"),
        ({"max__para_score": "nan"}, "max.para_score must be a number, was 'nan'"),
        ({"side": "left"}, "side must be one of either, reference, translation, was 'left'"),
        ({"text": "x" * 1001}, "text must have at most 1,000 characters, has 1,001"),
    ],
)
def test_what_is_wrong_is_said(values, message):
    with pytest.raises(InputError, match=message):
        parse(**values)
