"""Who may import whom: each layer only what lies below it, and stages never each other."""

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "paranmt_hf"
# From the bottom to the top; what stands beside each other in a set does not import each other.
LAYERS: list[set[str]] = [
    {"errors", "version"},
    {"text"},
    {"cutting"},
    {"tokens"},
    {"overlap", "word_rules"},
    {"protocols"},
    {"util"},
    {"vectors"},
    {"hub"},
    {"corpus", "encoders", "evaluation", "lexicon", "search"},
    {"training"},
    {"supervised", "paraphrase"},
    {"workflows"},
    {"cli"},
]
# The stages above others know encoders through the table of families, and nothing of the other stages.
MAY_NOT = {
    (stage, other)
    for stage in ("training", "supervised", "paraphrase")
    for other in ("corpus", "evaluation", "lexicon", "search")
}


def imports(tree: ast.AST) -> set[str]:
    """Modules of our own that a module imports, wherever in it, as `paranmt_hf.corpus.release`."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            # Copies of these files next to weights find one another in this way.
            if node.level == 1 and node.module.startswith(("modeling_", "paranmt_")):
                continue
            assert not node.level, "imports are absolute"
            names = [f"{node.module}.{item.name}" for item in node.names]
        elif isinstance(node, ast.Import):
            names = [item.name for item in node.names]
        else:
            continue
        found |= {name for name in names if name.startswith("paranmt_hf.")}
    return found


def layer_of(part: str) -> int:
    found = [number for number, layer in enumerate(LAYERS) if part in layer]
    assert found, f"{part} is a new part: say in LAYERS where it lies"
    return found[0]


def parts(tree: ast.AST) -> set[str]:
    return {name.split(".")[1] for name in imports(tree)}


def illegal(part: str, tree: ast.AST) -> set[str]:
    """What a module of a part imports and must not."""
    others = parts(tree) - {part}
    if part == "__init__":
        return others & {"cli"}
    own = layer_of(part)
    return {other for other in others if layer_of(other) >= own or (part, other) in MAY_NOT}


MODULES = sorted(PACKAGE.rglob("*.py"))


def module_name(path: Path) -> str:
    return ".".join(["paranmt_hf", *path.relative_to(PACKAGE).with_suffix("").parts]).removesuffix(".__init__")


def test_there_are_modules():
    assert len(MODULES) > 80


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_imports_go_one_way(path):
    part = path.relative_to(PACKAGE).with_suffix("").parts[0]
    wrong = illegal(part, ast.parse(path.read_text(encoding="utf8")))
    assert not wrong, f"{part} must not import {', '.join(sorted(wrong))}"


def test_no_circles():
    """No module imports itself by way of others, imports inside functions counted."""
    known = {module_name(path): path for path in MODULES}
    arrows = {
        name: {
            target
            for found in imports(ast.parse(path.read_text(encoding="utf8")))
            for target in (found, found.rpartition(".")[0])
            if target in known and target != name
        }
        for name, path in known.items()
        # The package's own list of public names points everywhere.
        if name != "paranmt_hf"
    }
    done: set[str] = set()

    def visit(name: str, way: tuple[str, ...]) -> None:
        assert name not in way, f"a circle: {' -> '.join([*way[way.index(name) :], name])}"
        if name in done:
            return
        for target in sorted(arrows.get(name, ())):
            visit(target, (*way, name))
        done.add(name)

    for name in sorted(arrows):
        visit(name, ())


def test_the_check_finds_a_wrong_import():
    assert parts(ast.parse("def f():\n    from paranmt_hf.hub.upload import x")) == {"hub"}
    assert parts(ast.parse("import paranmt_hf.training.trainer\nfrom paranmt_hf import cli")) == {"training", "cli"}
    assert illegal("corpus", ast.parse("from paranmt_hf.encoders.config import Kind")) == {"encoders"}
    assert illegal("hub", ast.parse("from paranmt_hf.workflows.build import build")) == {"workflows"}
    assert illegal("training", ast.parse("from paranmt_hf.corpus.pairs import Pairs")) == {"corpus"}
    assert not illegal("training", ast.parse("from paranmt_hf.encoders.config import Kind"))
