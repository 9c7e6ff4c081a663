"""The help of every command, its options and its example."""

import re
import shlex
import subprocess
import sys

import pytest

from paranmt_hf.cli import main, overview
from paranmt_hf.cli.command import flag_of
from paranmt_hf.cli.table import COMMANDS, FAMILIES, GROUPS
from paranmt_hf.encoders.config import OF_PAIRS
from tests.cli.commands import kept_options

# What a person reads at once.
MOST_SHOWN, MOST_COMMANDS = 20, 27
# Options of all commands; this number only goes down, but for prompts of teachers, documents, differences in meaning,
# thresholds without ratings, and processes of a server.
MOST_OPTIONS = 403

each_command = pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)


def help_of(words, capsys):
    with pytest.raises(SystemExit) as end:
        main(words)
    assert end.value.code == 0
    return capsys.readouterr().out


@each_command
def test_help_shows_the_usual_options_and_help_all_the_others(command, capsys):
    usual = command.typed(advanced=False)
    assert len(usual) <= MOST_SHOWN
    brief = help_of([*command.name.split(), "--help"], capsys)
    whole = help_of([*command.name.split(), "--help-all"], capsys)
    for option in command.options:
        assert option.help, f"{command.name}: {option.flag} is not explained"
        if option.group is None:
            assert f" {option.flag}" in whole
            assert bool(re.search(rf" {option.flag}[ ,]", brief)) != option.advanced
        else:
            assert f"{option.field}: " in whole
            assert (option.group.name in usual) == (f" {flag_of(option.group.name)} " in brief)
    assert brief.startswith(f"usage: paranmt {command.name} ") and command.example in brief
    assert all(option in brief for option in ("--config", "--debug", "--help-all"))
    assert "shows 1 more options" not in brief
    for group in [command.function, *command.settings.values()]:
        assert group.__doc__


@each_command
def test_examples_can_be_parsed_and_summaries_fit_on_a_line(command):
    assert 10 < len(command.summary) < 65 and command.summary[0].islower() and command.summary[-1] != "."
    assert command.example.startswith(f"paranmt {command.name} ")
    kept_options(shlex.split(command.example)[1:])


def test_options_and_commands_stay_few():
    assert sum(len(command.typed()) + command.writes_json for command in COMMANDS.values()) <= MOST_OPTIONS
    assert len({name.split()[0] for name in COMMANDS}) <= MOST_COMMANDS


def test_the_list_of_commands():
    text = overview()
    for heading, commands in GROUPS.items():
        assert not commands or f"\n{heading}:\n" in text
    for name in COMMANDS:
        assert f"\n  {name.split()[0]} " in text
    below = {name.split()[0] for name in COMMANDS if " " in name}
    assert below == FAMILIES.keys() and not below & COMMANDS.keys()


def test_commands_below_a_command(capsys):
    assert main(["lexicon", "--help"]) == 0
    text = capsys.readouterr().out
    assert all(f"\n  {name} " in text for name in ("build", "nearest", "evaluate"))
    assert main(["lexicon"]) == 2


@pytest.mark.parametrize(
    ("words", "suggestion"),
    [
        (["trian", "--out", "x"], "'paranmt train'"),
        (["lexicon", "nearst"], "'paranmt lexicon nearest'"),
        (["zzz"], "`paranmt --help` lists all"),
    ],
)
def test_mistyped_commands(words, suggestion, capsys):
    assert main(words) == 2
    assert suggestion in capsys.readouterr().err


def test_mistyped_and_missing_options(capsys):
    for words, shown in (
        (["lexicon", "nearest", "a", "b", "--topp", "3"], "--top INT"),
        (["lexicon", "nearest", "a"], "WORDS is missing"),
        (["train"], "--out"),
    ):
        with pytest.raises(SystemExit) as end:
            main(words)
        assert end.value.code == 2 and shown in capsys.readouterr().err


@pytest.mark.slow
def test_help_loads_nothing_heavy():
    # One process for all commands: the first one that loads a heavy module is named.
    code = """
import contextlib, io, sys
from paranmt_hf.cli import main
main(["--help"])
assert not {"numpy", "pyarrow", "datasets", "torch", "tyro"} & sys.modules.keys(), "the list of commands"
from paranmt_hf.cli.table import COMMANDS
for name in COMMANDS:
    with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
        main([*name.split(), "--help"])
    assert not {"torch", "transformers"} & sys.modules.keys(), name
print("all of them")
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.stdout.endswith("all of them\n"), result.stderr


def test_every_family_is_named():
    explained = {option.name: option.help for option in COMMANDS["train"].options}["model"]
    assert set(re.findall(r"\w+", explained)) >= set(OF_PAIRS)


def test_columns_of_a_table_are_no_options(capsys):
    shown = " ".join(help_of(["paraphrase", "augment", "--help-all"], capsys).replace("│", " ").split())
    assert "`index` (of its sentence in FILE, from 0)" in shown
