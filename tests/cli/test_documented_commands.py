"""Every command line and option of the guides is one that the program takes; every link in them leads somewhere."""

import importlib
import re
import shlex
import subprocess
from functools import cache
from pathlib import Path

import pytest

from paranmt_hf.cli import find_command
from paranmt_hf.cli.table import COMMANDS, FAMILIES
from tests.cli.commands import flags, kept_options

ROOT = Path(__file__).parents[2]
GUIDES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", ROOT / "benchmarks" / "README.md"]
GUIDES += [*sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "docs" / "reference").glob("*.md"))]
GUIDES += [ROOT / "docs" / "examples" / "README.md"]
GUIDES += sorted((ROOT / "model_cards").rglob("*.md"))
GUIDES += [ROOT / "skills" / "paranmt" / "SKILL.md"]
BLOCK = re.compile(r"^```\w*\n(.*?)^```", re.DOTALL | re.MULTILINE)
PRINTED = re.compile(r"^```text\n.*?^```", re.DOTALL | re.MULTILINE)

each_guide = pytest.mark.parametrize("guide", GUIDES, ids=lambda path: str(path.relative_to(ROOT)))


def in_blocks(text):
    """Each command line of the blocks, without what a shell takes from it: comments, and what follows `&&`.

    What commands printed (`text`) may name files that they made.
    """
    for block in BLOCK.findall(PRINTED.sub("", text)):
        for line in block.replace("\\\n", " ").split("\n"):
            for step in line.split("&&"):
                if found := re.search(r"(?:^|\s)(?:paranmt|-m paranmt_hf\.cli) (.+)$", step):
                    yield shlex.split(found[1], comments=True)


def in_sentences(text):
    """Each command that a sentence names with options; a sentence may leave out arguments, and a block may not."""
    for span in re.findall(r"`paranmt ([^`]*)`", BLOCK.sub("", text)):
        yield shlex.split(span)


@each_guide
def test_commands_parse(guide, capsys):
    text = guide.read_text(encoding="utf8")
    for words in in_blocks(text):
        try:
            if "..." not in words:
                kept_options(words)
        except SystemExit:
            pytest.fail(f"paranmt {shlex.join(words)}\n{capsys.readouterr().err}")
    for words in [*in_blocks(text), *in_sentences(text)]:
        # `paranmt COMMAND --help` stands for all, `paranmt evaluate` for the commands below it.
        if words[:1] in ([], ["COMMAND"], ["--version"]) or (words[0] in FAMILIES and len(words) == 1):
            continue
        assert find_command(words)[0] is not None, f"{guide.name}: paranmt {shlex.join(words)}"
        unknown = {word for word in words if word.startswith("--")} - flags(words)
        assert not unknown, f"paranmt {shlex.join(words)}"


@cache
def every_option():
    """The options of all commands, and of those below them."""
    return {flag for name in COMMANDS for flag in flags(name.split())}


def test_commands_are_found():
    text = (
        "```\na b && paranmt train \\\n  --data x  # why\n```\n`paranmt publish` and `paranmt score X --scorer\nY`.\n"
    )
    assert list(in_blocks(text)) == [["train", "--data", "x"]]
    assert list(in_sentences(text)) == [["publish"], ["score", "X", "--scorer", "Y"]]
    assert "--speed" in flags(["evaluate", "sts", "X"]) and "--speed" not in flags(["evaluate"])
    assert sum(len(list(in_blocks(guide.read_text(encoding="utf8")))) for guide in GUIDES) >= 30


@each_guide
def test_options_are_known_and_links_lead_somewhere(guide):
    text = guide.read_text(encoding="utf8")
    named = set(re.findall(r"`(--[a-z-]+)", BLOCK.sub("", text)))
    known = every_option()
    if "benchmarks/" in text or guide.parent.name == "benchmarks":
        programs = "".join(path.read_text(encoding="utf8") for path in (ROOT / "benchmarks").rglob("*.py"))
        known = known | set(re.findall(r'"(--[a-z-]+)"', programs))
    assert named <= known, f"{guide.name}: {sorted(named - known)}"
    assert not re.search(r"^(<{7}|={7}|>{7})( |$)", text, re.MULTILINE)
    for target in re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", text):
        assert (guide.parent / target).exists(), f"{guide.name}: {target}"


@cache
def files():
    """All files of the project, from its root."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False).stdout
    return listed.split("\n") or [path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*")]


@cache
def identifiers():
    """All names in the code and its settings."""
    parts = ("paranmt_hf", "tests", "benchmarks", "dataset_scripts", "docs/examples")
    sources = [path for part in parts for path in (ROOT / part).rglob("*.py")]
    sources += [ROOT / "pyproject.toml", *(ROOT / "paranmt_hf" / "hub" / "cards").glob("*.md")]
    sources += (ROOT / "paranmt_hf" / "assets").rglob("*.yaml")
    texts = [path.read_text(encoding="utf8") for path in sources if path.name != Path(__file__).name]
    return set(re.findall(r"[A-Za-z_]\w*", "\n".join(texts)))


# Files that commands write, and names of other programs.
WRITTEN = {"table.md", "paraphrases/README.md"}
OF_OTHERS = {"encode_with_args", "file_mounts", "ndcg_at_10"}


def spans(text):
    """What stands in backquotes in sentences."""
    return re.findall(r"`([^`\n]+)`", BLOCK.sub("", text))


@each_guide
def test_files_exist(guide):
    for name in spans(guide.read_text(encoding="utf8")):
        if re.fullmatch(r"[\w./-]+\.(py|sh|md|ipynb|toml|cff)", name) and name not in WRITTEN:
            assert any(path == name or path.endswith(f"/{name}") for path in files()), f"{guide.name}: {name}"


@each_guide
def test_functions_and_settings_exist(guide):
    """Names with an underscore anywhere in the code; names of this package where they are said to be."""
    text = guide.read_text(encoding="utf8")
    for span in spans(text):
        name = re.sub(r"\(.*", "", span)
        if re.fullmatch(r"[a-z]+(_[a-z0-9]+)+", name) and name not in OF_OTHERS:
            assert name in identifiers(), f"{guide.name}: {name}"
        if re.fullmatch(r"paranmt_hf(\.\w+)+", name):
            assert is_importable(name), f"{guide.name}: {name}"
    for block in re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        for module, names in re.findall(r"^from (paranmt_hf[\w.]*) import (.+)$", block, re.MULTILINE):
            for name in re.findall(r"\w+", re.sub(r"#.*| as \w+", "", names)):
                assert is_importable(f"{module}.{name}"), f"{guide.name}: from {module} import {name}"


def is_importable(name):
    """Whether a dotted name leads to a module or to something in one."""
    parts = name.split(".")
    for count in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:count]))
        except ModuleNotFoundError:
            continue
        try:
            for part in parts[count:]:
                found = getattr(found, part)
        except AttributeError:
            return False
        return True
    return False


def test_what_is_not_there_is_noticed():
    assert is_importable("paranmt_hf.load") and is_importable("paranmt_hf.StaticEncoder.from_pretrained")
    assert not is_importable("paranmt_hf.rotate_encoder") and not is_importable("paranmt_hf.nothing.load")
    assert "docs/README.md" in files() and "load_and_do_not" not in identifiers()
    assert spans("`a` and\n```\n`b`\n```\n") == ["a"]
