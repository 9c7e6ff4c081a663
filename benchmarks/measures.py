"""Measure the size and the simplicity of the package's code. Run: python benchmarks/measures.py."""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path

import paranmt_hf
from paranmt_hf.cli.table import COMMANDS

ROOT = Path(__file__).parents[1]
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def trees(folder: str) -> dict[Path, ast.Module]:
    """Return the syntax tree of each Python file below a folder, by its path."""
    return {path: ast.parse(path.read_text(encoding="utf8")) for path in sorted((ROOT / folder).rglob("*.py"))}


def lines(folder: str) -> int:
    """Count the lines of the Python files below a folder."""
    return sum(len(path.read_text(encoding="utf8").splitlines()) for path in trees(folder))


def docstring_lines(tree: ast.Module) -> set[int]:
    """Return the numbers of the lines that are part of docstrings."""
    found: set[int] = set()
    for node in ast.walk(tree):
        if is_text(node):
            found.update(range(node.lineno, node.end_lineno + 1))  # type: ignore[attr-defined]
    return found


def is_text(node: ast.AST) -> bool:
    """Return whether a statement is only a text, such as a docstring."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def code_lines(path: Path, tree: ast.Module) -> int:
    """Count the lines of a file that hold code: not blank lines, comments or docstrings."""
    texts = docstring_lines(tree)
    numbered = enumerate(path.read_text(encoding="utf8").splitlines(), 1)
    return sum(bool(line.strip()) and not line.strip().startswith("#") and at not in texts for at, line in numbered)


def private_used_once(parsed: dict[Path, ast.Module]) -> int:
    """Count the private functions and methods whose name occurs only once outside of their definition."""
    defined: list[str] = []
    used: Counter[str] = Counter()
    for tree in parsed.values():
        for node in ast.walk(tree):
            if isinstance(node, FUNCTIONS) and re.match(r"_[a-z]", node.name):
                defined.append(node.name)
            elif isinstance(node, ast.Name):
                used[node.id] += 1
            elif isinstance(node, ast.Attribute):
                used[node.attr] += 1
    return sum(used[name] == 1 for name in defined)


def names_with_two_meanings(parsed: dict[Path, ast.Module], kind: tuple[type[ast.AST], ...]) -> list[str]:
    """List the public names that two or more modules of the package define at their top level."""
    places: dict[str, set[Path]] = defaultdict(set)
    for path, tree in parsed.items():
        for node in tree.body:
            if isinstance(node, kind) and not node.name.startswith("_"):  # type: ignore[attr-defined]
                places[node.name].add(path)  # type: ignore[attr-defined]
    return sorted(name for name, found in places.items() if len(found) > 1)


def inner_names(parsed: dict[Path, ast.Module]) -> int:
    """Count the names that tests import from modules of the package, not from the package itself."""
    found = set()
    for tree in parsed.values():
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("paranmt_hf."):
                found.update((node.module, name.name) for name in node.names)
    return len(found)


def calls(parsed: dict[Path, ast.Module], name: str, counts: Callable[[ast.Call], bool]) -> int:
    """Count the calls of a method of this name for which `counts` returns True."""
    nodes = (node for tree in parsed.values() for node in ast.walk(tree))
    found = (node for node in nodes if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute))
    return sum(node.func.attr == name and counts(node) for node in found)  # type: ignore[attr-defined]


def name_of(function: ast.expr) -> str | None:
    """Return the name of the object whose method is called; None if it has no name."""
    owner = function.value if isinstance(function, ast.Attribute) else None
    return owner.id if isinstance(owner, ast.Name) else None


def main() -> None:
    """Measure and print a Markdown table."""
    package, tests = trees("paranmt_hf"), trees("tests")
    nodes = [node for tree in package.values() for node in ast.walk(tree)]
    thousand = sum(code_lines(path, tree) for path, tree in package.items()) / 1000
    statements = sum(isinstance(node, ast.stmt) and not is_text(node) for node in nodes)
    constants = sum(isinstance(node, ast.Assign | ast.AnnAssign) for tree in package.values() for node in tree.body)
    shown = {name: len(command.typed(advanced=False)) + command.writes_json for name, command in COMMANDS.items()}
    most = max(shown, key=lambda name: shown[name])
    classes = names_with_two_meanings(package, (ast.ClassDef,))
    functions = names_with_two_meanings(package, FUNCTIONS)

    def density(*kinds: type[ast.AST]) -> str:
        return f"{sum(isinstance(node, kinds) for node in nodes) / thousand:.0f}"

    rows = {
        "lines of paranmt_hf": f"{lines('paranmt_hf'):,}",
        "Python files of paranmt_hf": len(package),
        "statements": f"{statements:,}",
        "statements a code line": f"{statements / thousand / 1000:.2f}",
        "comprehensions per 1,000 code lines": density(*COMPREHENSIONS),
        "conditional expressions per 1,000 code lines": density(ast.IfExp),
        "functions per 1,000 code lines": density(*FUNCTIONS),
        "private functions used once": private_used_once(package),
        "raises": sum(isinstance(node, ast.Raise) for node in nodes),
        "module constants": f"{constants:,}",
        "commands": len(COMMANDS),
        "commands at the top level": len({name.split()[0] for name in COMMANDS}),
        "settings of all commands": sum(len(command.options) for command in COMMANDS.values()),
        "options of all commands": sum(len(command.typed()) + command.writes_json for command in COMMANDS.values()),
        "most options shown by one --help": f"{shown[most]} ({most})",
        "public names": len(paranmt_hf.__all__),
        "class names with two or more meanings": f"{len(classes)} {' '.join(classes)}",
        "function names with two or more meanings": f"{len(functions)} {' '.join(functions)}",
        "lines of tests": f"{lines('tests'):,}",
        "inner names imported by tests": inner_names(tests),
        "monkeypatch.setattr in tests": calls(tests, "setattr", lambda call: name_of(call.func) == "monkeypatch"),
        "pytest.raises with match": calls(tests, "raises", lambda call: "match" in {key.arg for key in call.keywords}),
    }
    width = max(map(len, rows))
    for measure, value in rows.items():
        print(f"{measure:<{width}}  {value}")


if __name__ == "__main__":
    main()
