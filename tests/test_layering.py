"""Who may import whom: a folder imports only from those before it in the list, and no module imports itself."""

import ast
from functools import cache
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "paranmt_hf"
FOLDERS = [
    *("errors", "version", "util", "text", "hub", "encoders", "corpus", "evaluation", "training", "paraphrase"),
    *("search", "lexicon", "experiments", "apps", "cli"),
]
MODULES = sorted(PACKAGE.rglob("*.py"))


@cache
def parsed(path: Path) -> ast.AST:
    return ast.parse(path.read_text(encoding="utf8"))


def imports(tree: ast.AST) -> set[str]:
    """Modules of the package that a module imports, also inside functions, as `paranmt_hf.corpus.release`."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            # A file that is copied next to weights imports its neighbour.
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


def upward(name: str, tree: ast.AST) -> set[str]:
    """Folders that a module imports although they come after its own."""
    if name == "paranmt_hf":
        return {found.split(".")[1] for found in imports(tree)} & {"cli"}
    own = FOLDERS.index(name.split(".")[1])
    folders = {found.split(".")[1] for found in imports(tree)}
    return {folder for folder in folders if FOLDERS.index(folder) > own}


def module_name(path: Path) -> str:
    return ".".join(["paranmt_hf", *path.relative_to(PACKAGE).with_suffix("").parts]).removesuffix(".__init__")


@pytest.mark.parametrize("path", MODULES, ids=module_name)
def test_imports_go_one_way(path):
    assert not upward(module_name(path), parsed(path))


def test_no_circles():
    """No module imports itself by way of others, imports inside functions counted."""
    known = {module_name(path): path for path in MODULES}
    assert len(known) > 80
    arrows = {
        name: {
            target
            for found in imports(parsed(path))
            for target in (found, found.rpartition(".")[0])
            if target in known and target != name
        }
        for name, path in known.items()
        # The list of public names points everywhere.
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


def test_a_wrong_import_is_found():
    assert upward("paranmt_hf.corpus.x", ast.parse("def f():\n    from paranmt_hf.training.train import fit")) == {
        "training"
    }
    assert upward("paranmt_hf.hub.x", ast.parse("import paranmt_hf.cli.values")) == {"cli"}
    assert not upward("paranmt_hf.training.x", ast.parse("from paranmt_hf.corpus.pairs import Pairs"))
