"""The `paranmt` command: parse, call, print. No logic of its own."""

from __future__ import annotations

import argparse
import atexit
import logging
import os
import sys
from collections.abc import Sequence

from paranmt_hf import __version__
from paranmt_hf.cli import corpus, encoders, hub
from paranmt_hf.cli.options import Configure
from paranmt_hf.errors import InputError

COMMANDS: dict[str, tuple[str, Configure]] = {
    "quickstart": ("make a small corpus and an encoder offline, from nothing", corpus.configure_quickstart),
    "build": ("translate a bitext, score the pairs, release them", corpus.configure_build),
    "import": ("score pairs that are translated already, and release them", corpus.configure_import),
    "score": ("score a release again with another scorer", corpus.configure_score),
    "train": ("train a sentence encoder on paraphrase pairs", encoders.configure_train),
    "evaluate": ("measure encoders on semantic textual similarity", encoders.configure_evaluate),
    "average": ("average the weights of encoders trained from one start", encoders.configure_average),
    "negatives": ("show the hard negatives that mega-batches give", encoders.configure_negatives),
    "publish": ("check a release or an encoder, and put it on the Hub", hub.configure_publish),
    "vectors": ("make word vectors from a large encoder", encoders.configure_vectors),
    "export": ("write an encoder for other libraries: static, model2vec, ONNX", encoders.configure_export),
}


def _parser(chosen: str | None) -> argparse.ArgumentParser:
    """Build the parser; only the chosen command gets its options, which keeps `--help` fast."""
    parser = argparse.ArgumentParser(
        prog="paranmt", description="Paraphrase corpora by back-translation, and sentence encoders trained on them."
    )
    parser.add_argument("--version", action="version", version=f"paranmt-hf {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, (summary, configure) in COMMANDS.items():
        command = commands.add_parser(name, help=summary, description=summary[0].upper() + summary[1:] + ".")
        if name == chosen:
            command.add_argument("--debug", action="store_true", help="show the traceback of an error")
            command.set_defaults(run=configure(command))
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command.

    Returns:
        0; 1 after an error, which is told in one sentence; 130 after Ctrl-C.
    """
    argv = list(sys.argv[1:] if argv is None else argv)
    logging.basicConfig(level=logging.WARNING, format="%(message)s", stream=sys.stderr)
    logging.getLogger("paranmt_hf").setLevel(logging.INFO)
    debug = "--debug" in argv
    try:
        arguments = _parser(next((word for word in argv if word in COMMANDS), None)).parse_args(argv)
        arguments.run(arguments)
    except KeyboardInterrupt:
        print("interrupted; the same command continues where this one stopped", file=sys.stderr)
        return 130
    except Exception as error:
        if debug:
            raise
        print(f"paranmt: {' '.join(_told(error).split())}", file=sys.stderr)
        return 1
    return 0


def _told(error: Exception) -> str:
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
