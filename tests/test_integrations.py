"""The programs of docs/integrations.md run, each where the libraries that it imports are installed."""

import ast
import importlib.util
import re
import sys
from pathlib import Path

import pytest

from paranmt_hf import load
from paranmt_hf.encoders.saving import save

PAGE = (Path(__file__).parents[1] / "docs" / "integrations.md").read_text(encoding="utf8")
PROGRAMS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
LIBRARIES = {"langchain": "LangChain", "llama_index": "LlamaIndex", "haystack": "Haystack"}


def imports(program):
    """Modules that a program imports, with those above them."""
    trees = ast.walk(ast.parse(program))
    return sorted({node.module for node in trees if isinstance(node, ast.ImportFrom)} - {"typing"})


def library(program):
    return next(title for name, title in LIBRARIES.items() if f"from {name}" in program)


def missing(module):
    """The first part of a module's name that is not there; None where all of it is."""
    for end in range(module.count(".") + 1):
        name = ".".join(module.split(".")[: end + 1])
        if name not in sys.modules and importlib.util.find_spec(name) is None:
            return name
    return None


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    top = tmp_path_factory.mktemp("integrations")
    save(load(), top / "models" / "word-trigram")
    return top


def test_there_are_two_programs_for_each_library():
    assert sorted(map(library, PROGRAMS)) == ["Haystack"] * 2 + ["LangChain"] * 2 + ["LlamaIndex"] * 2
    assert sum("paranmt_hf.load(" in program for program in PROGRAMS) == 3
    for program in PROGRAMS:
        assert '"models/word-trigram"' in program
        assert "assert " in program


@pytest.mark.parametrize("program", PROGRAMS, ids=map(library, PROGRAMS))
def test_program(program, models, monkeypatch):
    if absent := next(filter(None, map(missing, imports(program))), None):
        pytest.skip(f"needs {absent}, which is no part of this package; docs/integrations.md says what to install")
    monkeypatch.chdir(models)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HAYSTACK_TELEMETRY_ENABLED", "False")
    namespace = {"__name__": "program"}
    # The program asserts what it finds.
    exec(program, namespace)
    assert any(name in namespace for name in ("store", "index"))
