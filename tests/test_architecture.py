"""The tree in docs/architecture.md is the one that is there."""

import re
from pathlib import Path

from paranmt_hf.cli import COMMANDS

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "docs" / "architecture.md").read_text(encoding="utf8")


def test_every_file_is_named():
    files = [path for path in (ROOT / "paranmt_hf").rglob("*.py") if not path.name.startswith("__")]
    assert len(files) > 100
    # Modules that lie beside weights have the names of the encoders, and the commands those of the workflows.
    missing = [
        path.relative_to(ROOT).as_posix()
        for path in files
        if not re.search(rf"\b{path.stem}\b", TEXT)
        and not any(path.stem.startswith(name) for name in ("check_", "average", "combination"))
    ]
    assert not missing


def test_every_file_that_is_named_exists():
    names = set(re.findall(r"\b[a-z_0-9]+\.py\b", TEXT)) - {"NAME.py", "X.py"}
    known = {path.name for path in (ROOT / "paranmt_hf").rglob("*.py")} | {"test_layering.py"}
    assert not names - known


def test_a_command_is_a_file_of_cli_and_one_of_workflows():
    for name, module in COMMANDS.items():
        assert (ROOT / "paranmt_hf" / "cli" / f"{module}.py").is_file(), name
        assert (ROOT / "paranmt_hf" / "workflows" / f"{module}.py").is_file(), name
        assert name in (module, module.replace("_", "-"), module.partition("_")[0])
