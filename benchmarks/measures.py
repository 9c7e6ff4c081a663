"""How large and how plain the package is: lines, files, options, names. Run: python benchmarks/measures.py."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import paranmt_hf
from paranmt_hf.cli.table import COMMANDS

ROOT = Path(__file__).parents[1]


def files(folder: str) -> list[Path]:
    """Python files below a folder."""
    return sorted((ROOT / folder).rglob("*.py"))


def lines(folder: str) -> int:
    """Lines of them."""
    return sum(len(path.read_text(encoding="utf8").splitlines()) for path in files(folder))


def names_with_two_meanings(kind: type[ast.stmt] | tuple[type[ast.stmt], ...]) -> list[str]:
    """Public names that two or more modules of the package define at their top level."""
    places: dict[str, set[Path]] = defaultdict(set)
    for path in files("paranmt_hf"):
        for node in ast.parse(path.read_text(encoding="utf8")).body:
            if isinstance(node, kind) and not node.name.startswith("_"):  # type: ignore[attr-defined]
                places[node.name].add(path)  # type: ignore[attr-defined]
    return sorted(name for name, found in places.items() if len(found) > 1)


def main() -> None:
    """Print the table."""
    options = {name: len(command.typed()) + command.writes_json for name, command in COMMANDS.items()}
    shown = {name: len(command.typed(advanced=False)) + command.writes_json for name, command in COMMANDS.items()}
    most = max(shown, key=lambda name: shown[name])
    classes = names_with_two_meanings(ast.ClassDef)
    functions = names_with_two_meanings((ast.FunctionDef, ast.AsyncFunctionDef))
    rows = {
        "lines of paranmt_hf": f"{lines('paranmt_hf'):,}",
        "Python files of paranmt_hf": len(files("paranmt_hf")),
        "lines of tests": f"{lines('tests'):,}",
        "options of all commands": sum(options.values()),
        "most options shown by one --help": f"{shown[most]} ({most})",
        "commands at the top level": len({name.split()[0] for name in COMMANDS}),
        "public names": len(paranmt_hf.__all__),
        "class names with two or more meanings": f"{len(classes)} {' '.join(classes)}",
        "function names with two or more meanings": f"{len(functions)} {' '.join(functions)}",
    }
    width = max(map(len, rows))
    for measure, value in rows.items():
        print(f"{measure:<{width}}  {value}")


if __name__ == "__main__":
    main()
