"""Every command line and option of the guides is one that the program takes; every link in them leads somewhere."""

import re
import shlex
from functools import cache
from pathlib import Path

import pytest

from paranmt_hf.cli import find_command
from paranmt_hf.cli.table import COMMANDS
from tests.cli.commands import flags, kept_options

ROOT = Path(__file__).parents[2]
GUIDES = [ROOT / "README.md", ROOT / "benchmarks" / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
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
        if find_command(words)[0] is not None:
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
    if guide.parent.name == "benchmarks":
        programs = "".join(path.read_text(encoding="utf8") for path in guide.parent.glob("*.py"))
        known = known | set(re.findall(r'"(--[a-z-]+)"', programs))
    assert named <= known, f"{guide.name}: {sorted(named - known)}"
    assert not re.search(r"^(<{7}|={7}|>{7})( |$)", text, re.MULTILINE)
    for target in re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", text):
        assert (guide.parent / target).exists(), f"{guide.name}: {target}"
    for path in re.findall(r"`((?:tests|paranmt_hf)/[\w/.]+)`", text):
        assert (ROOT / path).exists(), f"{guide.name}: {path}"
