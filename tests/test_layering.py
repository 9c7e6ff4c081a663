"""Who may import whom, so that stages meet only through arguments."""

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "paranmt_hf"
BASE = {"text", "tokens", "vectors", "optional", "errors", "progress", "models", "remote", "files"}
STAGES = {"corpus", "encoders", "training", "lexicon", "evaluation", "generation"}
TOP = {
    "cli",
    "distilling",
    "fitting",
    "mixing",
    "model_record",
    "negatives",
    "pipeline",
    "publishing",
    "quickstart",
    "release_card",
    "run_settings",
    "scorers",
    "unused_options",
}


def parts_of_package(tree: ast.AST) -> set[str]:
    """Names of our own parts that a module imports, wherever in it."""
    found = set()
    for node in ast.walk(tree):
        names = []
        if isinstance(node, ast.ImportFrom) and node.module:
            assert not node.level, "imports are absolute"
            names = (
                [node.module] if node.module != "paranmt_hf" else [f"paranmt_hf.{item.name}" for item in node.names]
            )
        elif isinstance(node, ast.Import):
            names = [item.name for item in node.names]
        found |= {name.split(".")[1] for name in names if name.startswith("paranmt_hf.")}
    return found - {"__version__"}


def allowed(part: str) -> set[str]:
    if part in BASE:
        return BASE
    if part in STAGES:
        return BASE | {part}
    if part == "hub":
        return BASE | {"hub"}
    assert part in TOP | {"__init__"}, f"{part} is a new part: say here what it may import"
    return BASE | STAGES | {"hub"} | TOP - ({"cli"} if part != "cli" else set())


MODULES = sorted(PACKAGE.rglob("*.py"))


def test_there_are_modules():
    assert len(MODULES) > 15


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_imports_go_one_way(path):
    part = path.relative_to(PACKAGE).with_suffix("").parts[0]
    illegal = parts_of_package(ast.parse(path.read_text(encoding="utf8"))) - allowed(part)
    assert not illegal, f"{part} must not import {', '.join(sorted(illegal))}"


def test_the_check_finds_a_wrong_import():
    assert parts_of_package(ast.parse("def f():\n    from paranmt_hf.hub.cards import x")) == {"hub"}
    assert parts_of_package(ast.parse("import paranmt_hf.training.trainer\nfrom paranmt_hf import cli")) == {
        "training",
        "cli",
    }
    assert "hub" not in allowed("corpus")
