"""The help of every command and of those below it."""

import argparse
import re
import subprocess
import sys
import time

import pytest

from paranmt_hf.cli import COMMANDS, _parser, main
from paranmt_hf.cli.export import FORMATS

LEAVES = ["quickstart", "build", "import", "score", "select", "train", "evaluate sts", "average", "negatives"]
LEAVES += ["publish dataset", "publish model", "vectors distill", "export", "search index", "search query"]
LEAVES += [
    "mine",
    "supervise",
    "explore",
    "report",
    "stats",
    "lexicon build",
    "lexicon nearest",
    "lexicon evaluate",
    "evaluate transfer",
]
LEAVES += ["folds", "sources", "sizes", "tune", "evaluate overfitting", "evaluate mteb", "convert", "train-sent2vec"]
LEAVES += ["evaluate contrast", "rotate", "train-paraphraser", "train-controlled", "paraphrase", "parse", "templates"]
LEAVES += ["augment", "adversarial", "doctor", "paraphrase-corpus"]
LEAVES += [f"analyse {what}" for what in ("lengths", "neighbours", "norms", "under-trained")]
LEAVES += [f"annotate {step}" for step in ("sample", "serve", "table", "export", "import")]
PARENTS = ["analyse", "evaluate", "publish", "vectors", "annotate", "lexicon", "search"]


def help_of(command, capsys):
    with pytest.raises(SystemExit) as end:
        main([*command.split(), "--help"])
    assert end.value.code == 0
    return capsys.readouterr().out


def parser_of(command):
    name, *kind = command.split()
    parser = _parser(name)._subparsers._group_actions[0].choices[name]
    return parser._subparsers._group_actions[0].choices[kind[0]] if kind else parser


def test_all_commands_are_here():
    assert {leaf.split()[0] for leaf in LEAVES} == set(COMMANDS)


@pytest.mark.parametrize("command", LEAVES)
def test_its_own_usage_an_example_and_each_option_once(command, capsys):
    text = help_of(command, capsys)
    assert text.startswith(f"usage: paranmt {command} ")
    assert f"example:\n  paranmt {command} " in text
    options = re.findall(r"^  (?:-h, )?(--[a-z-]+)", text, re.MULTILINE)
    shown = [action for action in parser_of(command)._actions if action.help != argparse.SUPPRESS]
    assert sorted(options) == sorted(action.option_strings[-1] for action in shown if action.option_strings)
    assert len(set(options)) == len(options)
    assert {"--config", "--debug"} <= set(options)


@pytest.mark.parametrize("command", LEAVES)
def test_examples_can_be_parsed(command):
    import shlex

    example = parser_of(command).epilog.partition("\n")[2]
    name, *words = shlex.split(example)[1:]
    assert _parser(name).parse_args([name, *words]).command == name


@pytest.mark.parametrize(
    ("command", "option", "shown"),
    [
        ("train", "--learning-rate", "above 0 and at most 1"),
        ("train", "--margin", "above 0 and at most 2"),
        ("train", "--temperature", "from 0.001 to 10"),
        ("train", "--scrambling", "from 0 to 1"),
        ("train-sent2vec", "--learning-rate", "above 0 and at most 1"),
        ("supervise", "--learning-rate", "above 0 and at most 1"),
    ],
)
def test_ranges_are_shown(command, option, shown):
    (text,) = [action.help for action in parser_of(command)._actions if option in action.option_strings]
    assert text.endswith(f"; {shown}")


@pytest.mark.parametrize("command", LEAVES)
def test_choices_and_defaults_are_shown(command):
    parser = parser_of(command)
    for action in parser._actions:
        if action.option_strings and action.help != argparse.SUPPRESS:
            text = action.help % {**vars(action), "prog": parser.prog} if "%(" in action.help else action.help
            # One way to write a default, once.
            assert "by default" not in text and len(re.findall(r"\(default: [^)]+\)", text)) <= 1, text
            if action.default not in (None, []) and action.nargs != 0:
                assert "(default: " in text, f"{command}: {action.option_strings}"
            assert text and text[0] != " "


@pytest.mark.parametrize("command", PARENTS)
def test_parents_name_what_is_below(command, capsys):
    text = help_of(command, capsys)
    assert text.startswith(f"usage: paranmt {command} ")
    assert f"example:\n  paranmt {command} " in text
    for leaf in LEAVES:
        if leaf.startswith(f"{command} "):
            assert re.search(rf"^    {leaf.split()[1]}\s", text, re.MULTILINE)


def test_dataset_and_model_options_are_not_mixed(capsys):
    assert "--results" not in help_of("publish dataset", capsys)
    assert "--results" in help_of("publish model", capsys)
    with pytest.raises(SystemExit) as end:
        main(["publish", "dataset", "a", "b/c", "--results", "r.json"])
    assert end.value.code == 2
    assert "unrecognized arguments: --results" in capsys.readouterr().err


@pytest.mark.parametrize(("name", "options"), [("analyse neighbours", "a --words b"), ("train", "--data a --out b")])
def test_an_unknown_option_shows_the_usage_of_its_command(name, options, capsys):
    with pytest.raises(SystemExit) as end:
        main([*name.split(), *options.split(), "--nothing", "x"])
    usage, error = capsys.readouterr().err.split("\n")[:2]
    assert end.value.code == 2 and usage.startswith(f"usage: paranmt {name} ")
    assert error == f"paranmt {name}: error: unrecognized arguments: --nothing x"


def test_train_shows_usual_options_first(capsys):
    text = help_of("train", capsys)
    usual, _, advanced = text.partition("\nadvanced:\n")
    assert "--epochs" in usual and "--data" in usual and "--model" in usual and "--lambda-c" not in usual
    assert "--lambda-c" in advanced and "--report-to" in advanced
    # A usage line of forty options tells nobody anything.
    assert text.split("\n")[0] == "usage: paranmt train --out OUT [options]"


def test_formats_of_exports_are_those_there_are():
    from paranmt_hf.encoders.export import export

    assert tuple(export.FORMATS) == FORMATS


def test_help_takes_less_than_a_second():
    seconds = []
    # The best of three, because others may be at work on the machine.
    for _ in range(3):
        start = time.monotonic()
        subprocess.run([sys.executable, "-m", "paranmt_hf.cli", "--help"], check=True, capture_output=True)
        seconds.append(time.monotonic() - start)
    assert min(seconds) < 1


def test_no_help_loads_torch():
    # One process for all of them: the first one that loads torch is named.
    code = """
import contextlib, io, sys
from paranmt_hf.cli import main
for words in sys.argv[1:]:
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown), contextlib.suppress(SystemExit):
        main([*words.split(), "--help"])
    assert "usage: paranmt" in shown.getvalue() and "torch" not in sys.modules, words
print("all of them")
"""
    result = subprocess.run([sys.executable, "-c", code, *LEAVES, *PARENTS], capture_output=True, text=True)
    assert result.stdout == "all of them\n", result.stderr
