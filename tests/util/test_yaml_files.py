"""YAML that people write: what is wrong with it is an error of one class."""

import pytest
import yaml

from paranmt_hf.errors import InputError
from paranmt_hf.util.yaml_files import card_header, parse_yaml, read_yaml


@pytest.mark.parametrize("value", ["2024-13-45", "!!int x", "!!bool x", "!!timestamp x", '!!int ""', "!!map x"])
def test_values_that_are_not_what_they_look_like(tmp_path, value):
    with pytest.raises(yaml.YAMLError, match="not what it is marked as|expected a mapping"):
        parse_yaml(f"summary: {value}")
    (tmp_path / "README.md").write_text(f"---\nlicense: mit\ndate: {value}\n---\n")
    assert card_header(tmp_path / "README.md") == {}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\nb: [1, 2\n", r"line 3, column 1: expected ',' or '\]', but got '<stream end>'"),
        ("a: 1\nb: c: 2\n", "line 2, column 5: mapping values are not allowed here"),
        ("a: 1\nb: \x00\n", r"line 2: the character U\+0000 is not allowed"),
    ],
)
def test_what_is_no_yaml_is_said_in_one_sentence_with_its_line(tmp_path, text, message):
    (tmp_path / "grid.yaml").write_text(text)
    with pytest.raises(InputError, match=f"^cannot read {tmp_path}/grid.yaml: {message}; expected a grid$"):
        read_yaml(tmp_path / "grid.yaml", "a grid")
