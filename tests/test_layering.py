"""Who may import whom: a folder imports only from those before it, and no module itself; and the public names."""

import ast
import importlib
import importlib.util
import re
from pathlib import Path

import pytest

import paranmt_hf

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "paranmt_hf"
FOLDERS = (
    "errors version util text meaning hub encoders corpus evaluation training distillation sent2vec supervised tuning "
    "calibration paraphrase search lexicon apps cli"
).split()


def imports(tree: ast.AST) -> set[str]:
    """Modules of the package that a module imports, also inside functions, as `paranmt_hf.corpus.release.release`."""
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


def upward(name: str, modules: set[str]) -> set[str]:
    """Folders that a module imports although they come after its own."""
    folders = {found.split(".")[1] for found in modules}
    if name == "paranmt_hf":
        return folders & {"cli"}
    own = FOLDERS.index(name.split(".")[1])
    return {folder for folder in folders if FOLDERS.index(folder) > own}


def module_name(path: Path) -> str:
    return ".".join(["paranmt_hf", *path.relative_to(PACKAGE).with_suffix("").parts]).removesuffix(".__init__")


@pytest.fixture(scope="module")
def imported() -> dict[str, set[str]]:
    """What each module of the package imports."""
    return {module_name(path): imports(ast.parse(path.read_text(encoding="utf8"))) for path in PACKAGE.rglob("*.py")}


def test_imports_go_one_way(imported):
    assert len(imported) > 80
    found = {name: upward(name, modules) for name, modules in imported.items()}
    assert not {name: folders for name, folders in found.items() if folders}


def test_no_circles(imported):
    """No module imports itself by way of others, imports inside functions counted."""
    arrows = {
        name: {
            target
            for found in modules
            for target in (found, found.rpartition(".")[0])
            if target in imported and target != name
        }
        for name, modules in imported.items()
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
    for name, text, folders in (
        ("paranmt_hf.corpus.x", "def f():\n    from paranmt_hf.training.train import fit", {"training"}),
        ("paranmt_hf.hub.x", "import paranmt_hf.cli.values", {"cli"}),
        ("paranmt_hf.training.x", "from paranmt_hf.corpus.reading.pairs import Pairs", set()),
    ):
        assert upward(name, imports(ast.parse(text))) == folders


def test_names_are_few_and_known_to_type_checkers():
    assert len(paranmt_hf.__all__) <= 47
    assert all(hasattr(paranmt_hf, name) for name in (*paranmt_hf.__all__, *paranmt_hf._FURTHER))
    tree = ast.parse(Path(paranmt_hf.__file__).read_text(encoding="utf8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    typed = {alias.asname: node.module for node in block.body for alias in node.names}
    assert typed == paranmt_hf._MODULES | paranmt_hf._FURTHER


# Benchmarks of inner parts, which benchmarks/README.md names.
INNER = {"same_meaning", "decontamination", "negatives", "gpu_timeline", "measures", "teacher_likeness"}
INNER |= {"paragram_table7", "paragram_table8", "paragram_section5", "spaces"}
# A recipe that makes lists of the package itself.
MAKES_ASSETS = {"wordnet_lists"}
BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)


def inner_names(text: str) -> set[str]:
    """What a program uses of the package beyond its public names, in programs that it holds as text too."""
    tree = ast.parse(text)
    used = imports(tree) | {
        f"paranmt_hf.{node.attr}"
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "paranmt_hf"
    }
    inner = set(re.findall(r"(?:from|import) (paranmt_hf\.[\w.]+)", text))
    return inner | used - {f"paranmt_hf.{name}" for name in (*paranmt_hf.__all__, *paranmt_hf._FURTHER)}


def test_programs_and_guides_use_public_names():
    """A benchmark that is named as an exception has to be one."""
    programs = [*(ROOT / "dataset_scripts").glob("*.py"), *(ROOT / "benchmarks").rglob("*.py")]
    programs += (ROOT / "docs" / "examples").glob("*.py")
    found = {path.stem: inner_names(path.read_text(encoding="utf8")) for path in programs}
    assert {name for name, inner in found.items() if inner} == INNER | MAKES_ASSETS
    assert len(found) > 30
    text = (ROOT / "benchmarks" / "README.md").read_text(encoding="utf8")
    assert all(f"`{name}.py`" in text for name in INNER)
    blocks = [
        (path.name, block)
        for path in (ROOT / "README.md", *(ROOT / "docs").glob("*.md"))
        for block in BLOCK.findall(path.read_text(encoding="utf8"))
    ]
    assert len(blocks) > 30
    assert not [(name, inner) for name, block in blocks if (inner := inner_names(block))]


def test_an_inner_name_is_found():
    for text in (
        "def f():\n    from paranmt_hf.training.train import train",
        "import paranmt_hf.paraphrase.models",
        "import paranmt_hf\nparanmt_hf.training.train",
        "from paranmt_hf import training",
        "program = 'from paranmt_hf.training.train import train'",
    ):
        assert inner_names(text), text
    assert not inner_names("import paranmt_hf\nfrom paranmt_hf import train\nparanmt_hf.load()")


@pytest.mark.slow
def test_benchmarks_import_what_is_there():
    missing = []
    for path in sorted((ROOT / "benchmarks").rglob("*.py")):
        for name in imports(ast.parse(path.read_text(encoding="utf8"))):
            module, _, inner = name.rpartition(".")
            if not hasattr(importlib.import_module(module), inner) and importlib.util.find_spec(name) is None:
                missing.append(f"{path.name}: {name}")
    assert missing == []
