"""YAML that people write: what is wrong with it is an error of one class."""

import pytest

from paranmt_hf.errors import InputError
from paranmt_hf.util.yaml_files import card_header, parse_yaml, read_yaml


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
    ("text", "message"),
    [
        ("a: 1\nb: [1, 2\n", r"line 3, column 1: expected ',' or '\]', but got '<stream end>'"),
        ("a: 1\nb: c: 2\n", "line 2, column 5: mapping values are not allowed here"),
    ],
)
def test_what_is_no_yaml_is_said_in_one_sentence_with_its_line(tmp_path, text, message):
    (tmp_path / "grid.yaml").write_text(text)
    with pytest.raises(InputError, match=f"^cannot read {tmp_path}/grid.yaml: {message}; expected a grid$"):
        read_yaml(tmp_path / "grid.yaml", "a grid")
