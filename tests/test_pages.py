"""What the guides show: figures are those of the records, programs use names and options that exist."""

import ast
import importlib
import inspect
import re
import shlex
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

from paranmt_hf.cli.pipeline import run_pipeline
from tests.cli.test_documented_commands import BLOCK, GUIDES

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "benchmarks"))
import fill_pages  # noqa: E402 - a program beside the package

each_page = pytest.mark.parametrize("page", GUIDES, ids=lambda path: str(path.relative_to(ROOT)))


@pytest.mark.parametrize("page", fill_pages.PAGES, ids=lambda path: path.name)
def test_figures_are_those_of_the_records(page):
    assert fill_pages.filled(page) == page.read_text(encoding="utf8")


def test_every_record_is_shown():
    for record in fill_pages.RECORDS.glob("*.json"):
        (page,) = (page for page in fill_pages.PAGES if page.stem == record.stem)
        shown = {code for _, code, shown, _ in fill_pages.steps(page.read_text(encoding="utf8")) if shown}
        assert shown == set(fill_pages.read_record(page)["outputs"]) != set()


def test_a_changed_figure_is_seen(tmp_path, monkeypatch):
    page = tmp_path / "page.md"
    monkeypatch.setattr(fill_pages, "RECORDS", tmp_path)
    (tmp_path / "page.json").write_text('{"made": "today", "outputs": {"paranmt x\\n": "7"}}')
    page.write_text("<!-- made -->x<!-- /made -->\n```\nparanmt x\n```\n<!-- output -->\n8\n<!-- /output -->\n")
    wanted = (
        "<!-- made -->today<!-- /made -->\n```\nparanmt x\n```\n<!-- output -->\n\n```text\n7\n```\n<!-- /output -->\n"
    )
    assert fill_pages.filled(page) == wanted
    page.write_text(wanted)
    assert fill_pages.filled(page) == wanted
    page.write_text(wanted.replace("paranmt x", "paranmt y"))
    with pytest.raises(SystemExit, match="no record of this block"):
        fill_pages.filled(page)


@pytest.mark.slow
def test_tutorial_runs(tmp_path):
    """Its blocks run without a network, and figures are near the recorded ones."""
    page = ROOT / "docs" / "tutorial.md"
    recorded, found = fill_pages.read_record(page)["outputs"], fill_pages.measure(page, tmp_path, None)["outputs"]
    assert found.keys() == recorded.keys()
    for code in (code for code in found if "evaluate sts" in code):
        before, after = (list(map(float, re.findall(r"\d+\.\d", each[code]))) for each in (recorded, found))
        assert len(before) == 3 and after == pytest.approx(before, abs=3)
    # Its pipeline finds what its commands made; only the records of figures are a pipeline's own.
    (tmp_path / "pipeline.yaml").write_text(pipeline_of(page))
    steps = [line for line in run_pipeline(tmp_path / "pipeline.yaml", dry_run=True) if not line.startswith("  ")]
    listed = dict(line.split(": ") for line in steps)
    there = [name for name, state in listed.items() if state.endswith(", there")]
    assert there == ["paraphrases", "vectors", "encoder", "taught"] and len(listed) == 8
    lines = list(run_pipeline(tmp_path / "pipeline.yaml"))
    assert sum("dry run: nothing was sent" in line for line in lines) == 2


def pipeline_of(page):
    """The pipeline that a page shows."""
    (text,) = re.findall(r"```yaml\n(# pipeline\.yaml\n.*?)```", page.read_text(encoding="utf8"), re.DOTALL)
    return text


@pytest.mark.parametrize("name", ["tutorial.md", "pipelines.md", "examples/pipeline.yaml"])
def test_pipelines_are_parsed(tmp_path, name):
    page = ROOT / "docs" / name
    text = page.read_text(encoding="utf8") if page.suffix == ".yaml" else pipeline_of(page)
    (tmp_path / "pipeline.yaml").write_text(text)
    lines = [line for line in run_pipeline(tmp_path / "pipeline.yaml", dry_run=True) if not line.startswith("  ")]
    assert len(lines) >= 5 and all(line.endswith(", to run") for line in lines)


@each_page
def test_programs_exist_and_take_the_options(page):
    for block in BLOCK.findall(page.read_text(encoding="utf8")):
        for program, rest in re.findall(
            r"python ((?:benchmarks|dataset_scripts)/\w+\.py)(.*)", block.replace("\\\n", " ")
        ):
            source = (ROOT / program).read_text(encoding="utf8")
            for option in (word for word in shlex.split(rest.split("|")[0], comments=True) if word.startswith("--")):
                assert re.search(rf'"(--)?{option[2:]}"', source), f"{program} {option}"


@each_page
def test_extras_exist(page):
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    for names in re.findall(r"pip\s+install '(?:\.|paranmt-hf)\[([\w,]+)\]'", page.read_text(encoding="utf8")):
        assert set(names.split(",")) <= extras.keys()


def python_blocks(page):
    return re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf8"), re.DOTALL)


def imported(tree):
    """The objects of this package that a program names, by the expression that names them."""
    found: dict[str, object] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("paranmt_hf"):
            module = importlib.import_module(node.module)
            found |= {alias.asname or alias.name: getattr(module, alias.name) for alias in node.names}
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names if alias.name.startswith("paranmt_hf")]
            found |= {name: importlib.import_module(name) for name in names}
    return found


def called(node, names):
    """The object that an expression such as `paranmt_hf.load` names; None for one that only runs would give."""
    if isinstance(node, ast.Name):
        return names.get(node.id)
    if isinstance(node, ast.Attribute):
        owner = called(node.value, names)
        return getattr(owner, node.attr) if isinstance(owner, ModuleType | type) else None
    return None


@each_page
def test_python_uses_names_and_arguments_that_exist(page):
    for block in python_blocks(page):
        tree = ast.parse(block)
        names = imported(tree)
        for node in ast.walk(tree):
            function = called(node.func, names) if isinstance(node, ast.Call) else None
            if function is not None:
                given = {keyword.arg for keyword in node.keywords}
                parameters = inspect.signature(function).parameters
                takes_all = any(each.kind is each.VAR_KEYWORD for each in parameters.values())
                assert takes_all or given <= parameters.keys(), ast.unparse(node)


def test_wrong_python_is_seen():
    tree = ast.parse("import paranmt_hf\nfrom paranmt_hf import evaluate\nparanmt_hf.load('x', nothing=1)")
    names = imported(tree)
    assert called(ast.parse("paranmt_hf.load").body[0].value, names) is names["paranmt_hf"].load
    assert called(ast.parse("evaluate").body[0].value, names) is names["evaluate"]
    with pytest.raises(AttributeError):
        imported(ast.parse("from paranmt_hf import nothing"))
