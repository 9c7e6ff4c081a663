"""The `paranmt` command: parse, call, print. No logic of its own."""

from __future__ import annotations

import argparse
import atexit
import logging
import os
import sys
from collections.abc import Sequence
from importlib import import_module

from paranmt_hf.cli.parser import CommandParser, is_first
from paranmt_hf.errors import InputError
from paranmt_hf.version import __version__

# The module of each command: `paranmt X` is `cli/X.py`, but `import` is no name that Python takes.
COMMANDS = {
    "quickstart": "quickstart",
    "build": "build",
    "paraphrase-corpus": "paraphrase_corpus",
    "import": "import_pairs",
    "score": "score",
    "select": "select",
    "explore": "explore",
    "report": "report",
    "stats": "stats",
    "annotate": "annotate",
    "lexicon": "lexicon",
    "search": "search",
    "mine": "mine",
    "train": "train",
    "tune": "tune",
    "train-sent2vec": "train_sent2vec",
    "parse": "parse",
    "templates": "templates",
    "train-paraphraser": "train_paraphraser",
    "train-controlled": "train_controlled",
    "paraphrase": "paraphrase",
    "augment": "augment",
    "adversarial": "adversarial",
    "evaluate": "evaluate",
    "supervise": "supervise",
    "analyse": "analyse",
    "average": "average",
    "rotate": "rotate",
    "convert": "convert",
    "negatives": "negatives",
    "folds": "folds",
    "sources": "sources",
    "sizes": "sizes",
    "vectors": "vectors",
    "publish": "publish",
    "export": "export",
    "doctor": "doctor",
}


def _parser(chosen: str | None) -> argparse.ArgumentParser:
    """Build the parser; only the chosen command gets its options, which keeps `--help` fast."""
    parser = argparse.ArgumentParser(
        prog="paranmt",
        description="Paraphrase corpora by back-translation, and sentence encoders trained on them.",
        epilog="example:\n  paranmt quickstart --out demo\n\n`paranmt COMMAND --help` shows the options of a command.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"paranmt-hf {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=CommandParser)
    for name, module in COMMANDS.items():
        command = import_module(f"paranmt_hf.cli.{module}")
        summary = command.SUMMARY
        options = commands.add_parser(name, help=summary, description=f"{summary[0].upper()}{summary[1:]}.")
        if name == chosen:
            command.configure(options)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command.

    Returns:
        0; 1 after an error, which is described in one sentence; 130 after Ctrl-C.
    """
    argv = list(sys.argv[1:] if argv is None else argv)
    logging.basicConfig(level=logging.WARNING, format="%(message)s", stream=sys.stderr)
    logging.getLogger("paranmt_hf").setLevel(logging.INFO if is_first() else logging.WARNING)
    debug = "--debug" in argv
    try:
        arguments = _parser(next((word for word in argv if word in COMMANDS), None)).parse_args(argv)
        arguments.run(arguments)
    except KeyboardInterrupt:
        print("interrupted; the same command continues where this one stopped", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # Whoever reads, such as `head`, has seen enough; what else is printed goes nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception as error:
        if debug:
            raise
        print(f"paranmt: {' '.join(describe_error(error).split())}", file=sys.stderr)
        return 1
    return 0


def describe_error(error: Exception) -> str:
    """Say what went wrong in a sentence."""
    if isinstance(error, InputError):
        return str(error)
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        return f"cannot use {error.filename}: {error.strerror}; look at the path and who may write there"
    hint = "" if isinstance(error, OSError) else " (unexpected; --debug shows where)"
    return f"{type(error).__name__}: {error}{hint}"


def run() -> None:
    """Run the command as a process.

    The process ends without taking the interpreter apart: Arrow's reading threads, when they are still there, abort
    it now and then, and a command that did its work would seem to have failed.
    """
    code = main()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
