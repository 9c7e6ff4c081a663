"""The documentation site: every page is in the navigation, every public name and option in the reference."""

import re
import sys
from pathlib import Path

import pytest
import yaml

import paranmt_hf
from paranmt_hf.cli.table import COMMANDS

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
sys.path.insert(0, str(DOCS / "_site"))
import site_words  # noqa: E402 - programs of the site, beside the package

GROUPS = ("Corpus", "Encoders", "Paraphrases", "Experiments")


def navigation():
    """Title and page of each entry, by its group."""
    entries = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf8"))["nav"]
    return {group: list(pages(below)) for entry in entries for group, below in entry.items()}


def pages(entries):
    for entry in entries:
        for title, below in entry.items():
            yield from [(title, below)] if isinstance(below, str) else pages(below)


def test_every_page_is_in_one_group():
    listed = [page for group in navigation().values() for _, page in group]
    assert len(listed) == len(set(listed))
    found = {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")}
    found |= {path.relative_to(ROOT).as_posix() for path in (ROOT / "model_cards").rglob("*.md")}
    assert found - set(listed) == set()


def test_start_page_lists_the_guides_of_each_group():
    text = (DOCS / "README.md").read_text(encoding="utf8")
    sections = dict(zip(*[iter(re.split(r"^## (.+)$", text, flags=re.MULTILINE)[1:])] * 2, strict=True))
    for group in GROUPS:
        guides = [(title, page) for title, page in navigation()[group] if not page.startswith("model_cards/")]
        linked = re.findall(r"^- \[([^\]]+)\]\((?:\.\./)?([^)]+)\): .+", sections[group], re.MULTILINE)
        assert linked == guides


def test_every_public_name_is_in_the_reference_once():
    named = re.findall(
        r"^::: paranmt_hf\.(\w+)$",
        "\n".join(path.read_text(encoding="utf8") for path in (DOCS / "reference").glob("*.md")),
        re.MULTILINE,
    )
    assert sorted(named) == sorted([*paranmt_hf.__all__, *paranmt_hf._FURTHER, "__version__"])


def test_every_option_of_every_command_is_listed():
    text = site_words.all_commands()
    parts = re.split(r"^### paranmt (.+)$", text, flags=re.MULTILINE)
    described = dict(zip(parts[1::2], parts[2::2], strict=True))
    assert list(described) == list(COMMANDS)
    for name, command in COMMANDS.items():
        assert f"```\n{command.example}\n```" in described[name]
        rows = dict(re.findall(r"^\| `([^`]+)` \| ([^|]+)", described[name], re.MULTILINE))
        assert rows.keys() >= {option.field if option.group else option.flag for option in command.options}
        assert all(meaning.strip() for meaning in rows.values())


def test_fields_have_meaning_type_and_default():
    griffe = pytest.importorskip("griffe")
    from site_fields import SettingsFields

    extensions = griffe.load_extensions("dataclasses", SettingsFields())
    package = griffe.load("paranmt_hf", search_paths=[ROOT], extensions=extensions)
    sections = {part.kind.value: part.value for part in package["training.config.TrainConfig"].docstring.parsed}
    margin = next(row for row in sections["parameters"] if row.name == "margin")
    assert (margin.annotation, margin.value) == ("number, above 0 and at most 2", "0.4")
    assert margin.description
    # Fields of the class below it come first.
    sections = {part.kind.value: part.value for part in package["search.mine.MineConfig"].docstring.parsed}
    assert all(row.description for row in sections["parameters"])
    annotation = package["training.train.train"].parameters["recipe"].annotation
    assert str(annotation) == "str | None"


def test_links_lead_to_pages_of_the_site(tmp_path):
    pytest.importorskip("mkdocs")
    import site_pages
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import File, Files

    config = MkDocsConfig()
    config.load_dict({"site_name": "x", "docs_dir": str(DOCS), "nav": [{"R": [{"Errors": "reference/errors.md"}]}]})
    names = ["guide.md", "reference/errors.md", *site_pages.OUTSIDE]
    files = Files([File(name, str(tmp_path), str(tmp_path), True) for name in names])

    def linked(text, name="guide.md"):
        return site_pages._linked(text, files.get_file_from_path(name), config, files)

    assert linked("[a](../benchmarks/README.md#x)") == "[a](benchmarks/README.md#x)"
    assert linked("[errors.md](reference/errors.md#x)") == "[Errors](reference/errors.md#x)"
    assert linked("[a](../guide.md)", "reference/errors.md") == "[a](../guide.md)"
    assert linked("[a](../../CHANGELOG.md)", "reference/errors.md") == "[a](../CHANGELOG.md)"
    assert linked("[`train`](../paranmt_hf/training/train.py)") == "`train`"
    assert linked("[a](no.md) [b](https://x.org)") == "[a](no.md) [b](https://x.org)"
    config["repo_url"] = "https://github.com/you/it/"
    assert linked("[a](../pyproject.toml)") == "[a](https://github.com/you/it/blob/main/pyproject.toml)"


def test_programs_and_notebooks_become_pages(tmp_path):
    pytest.importorskip("mkdocs")
    import site_pages

    program, notebook = tmp_path / "a.py", tmp_path / "b.ipynb"
    program.write_text("x = 1\n")
    assert site_pages.program_page(program) == "# a.py\n\n```python\nx = 1\n```\n"
    notebook.write_text(
        '{"cells": [{"cell_type": "markdown", "source": ["# T\\n"]},'
        ' {"cell_type": "code", "source": ["1\\n", "2"], "outputs": [{"data": {"text/plain": ["2"]}}]}]}'
    )
    assert site_pages.notebook_page(notebook) == "# T\n\n```python\n1\n2\n```\n\n```text\n2\n```\n"
