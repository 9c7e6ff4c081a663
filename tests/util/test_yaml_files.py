"""YAML that people write: what is wrong with it is an error of one class."""

import pytest
import yaml

from paranmt_hf.util.yaml_files import card_header, parse_yaml


@pytest.mark.parametrize("value", ["2024-13-45", "!!int x", "!!bool x", "!!timestamp x", '!!int ""', "!!map x"])
def test_values_that_are_not_what_they_look_like(tmp_path, value):
    with pytest.raises(yaml.YAMLError, match="not what it is marked as|expected a mapping"):
        parse_yaml(f"summary: {value}")
    (tmp_path / "README.md").write_text(f"---\nlicense: mit\ndate: {value}\n---\n")
    assert card_header(tmp_path / "README.md") == {}
