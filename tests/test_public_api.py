"""The public names of the package: few, all there, and the same for type checkers."""

import ast
from pathlib import Path

import paranmt_hf


def test_names_are_few_and_known_to_type_checkers():
    assert len(paranmt_hf.__all__) <= 45
    assert all(hasattr(paranmt_hf, name) for name in paranmt_hf.__all__)
    tree = ast.parse(Path(paranmt_hf.__file__).read_text(encoding="utf8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    typed = {alias.asname: node.module for node in block.body for alias in node.names}
    assert typed == paranmt_hf._MODULES
