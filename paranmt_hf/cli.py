"""The `paranmt` command: parse, call, print. No logic of its own."""

from __future__ import annotations

import argparse
import logging
import sys
import types
import typing
from collections.abc import Callable, Sequence
from dataclasses import MISSING, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paranmt_hf import __version__
from paranmt_hf.errors import InputError

if TYPE_CHECKING:
    from paranmt_hf.corpus.bitext import AlignedText
    from paranmt_hf.pipeline import Built

Configure = Callable[[argparse.ArgumentParser], Callable[[argparse.Namespace], None]]


def add_options(parser: argparse.ArgumentParser, kind: type, *, leave_out: Sequence[str] = ()) -> None:
    """Make a command-line option of every field of a dataclass; default and help stand with the field."""
    hints = typing.get_type_hints(kind)
    for entry in fields(kind):
        if entry.name in leave_out:
            continue
        flag = f"--{entry.name.replace('_', '-')}"
        settings: dict[str, Any] = {"help": entry.metadata.get("help", ""), "dest": entry.name}
        hint = hints[entry.name]
        if isinstance(hint, types.UnionType):
            hint = next(part for part in typing.get_args(hint) if part is not type(None))
        if hint is bool:
            parser.add_argument(flag, action="store_true", **settings)
            continue
        if typing.get_origin(hint) is typing.Literal:
            settings["choices"] = typing.get_args(hint)
        else:
            settings["type"] = hint
        if entry.default is not MISSING and entry.default not in (None, 0) and "default" not in settings["help"]:
            settings["help"] += f" (default: {entry.default})"
        required = entry.default is MISSING and entry.default_factory is MISSING
        default = None if required else entry.default
        parser.add_argument(flag, default=default, required=required, metavar=None, **settings)


def from_options(kind: type, arguments: argparse.Namespace, **given: Any) -> Any:  # noqa: ANN401
    """Make a dataclass of parsed options."""
    values = {entry.name: getattr(arguments, entry.name) for entry in fields(kind) if hasattr(arguments, entry.name)}
    return kind(**{**values, **given})


def _columns(text: str) -> dict[str, str]:
    """Parse `source=3,reference=translation.en`."""
    pairs = [part.partition("=") for part in text.split(",")]
    if not all(name.strip() and column.strip() for name, _, column in pairs):
        raise argparse.ArgumentTypeError(f"expected NAME=COLUMN,NAME=COLUMN like source=1,reference=2, found {text!r}")
    return {name.strip(): column.strip() for name, _, column in pairs}


def _configure_build(parser: argparse.ArgumentParser) -> Callable[[argparse.Namespace], None]:
    from paranmt_hf.corpus.backtranslation import TranslatorConfig
    from paranmt_hf.corpus.engine import EngineConfig
    from paranmt_hf.corpus.scorers import ScorerConfig
    from paranmt_hf.pipeline import ReleaseConfig, build

    text = parser.add_argument_group(
        "bitext: two aligned files, or one of --tsv, --parquet and --dataset with --columns"
    )
    text.add_argument("--source", type=Path, help="foreign side, one sentence per line (plain, .gz, .xz, .zst)")
    text.add_argument("--reference", type=Path, help="English side, aligned with it")
    text.add_argument("--tsv", type=Path, nargs="+", help="tab-separated files; columns are numbered from 1")
    text.add_argument("--parquet", type=Path, nargs="+", help="Parquet files")
    text.add_argument("--dataset", help="dataset on the Hub, or a folder, read as a stream")
    text.add_argument("--dataset-config", help="its config")
    text.add_argument("--dataset-split", default="train", help="its split (default: train)")
    text.add_argument("--dataset-revision", help="its revision")
    text.add_argument("--columns", type=_columns, help="where each column is: source=2,reference=1[,origin=3]")
    text.add_argument("--max-characters", type=int, default=1000, help="longer lines are dropped (default: 1000)")
    parser.add_argument("--out", type=Path, required=True, help="folder of the release")
    groups = {TranslatorConfig: "translator", ScorerConfig: "scorer", ReleaseConfig: "release", EngineConfig: "engine"}
    for kind, title in groups.items():
        group = typing.cast(argparse.ArgumentParser, parser.add_argument_group(title))
        if kind is TranslatorConfig:
            group.add_argument(
                "--translator",
                required=True,
                help="folder or Hub id of a translation model; `embedded` is the small Czech captions model",
            )
        add_options(group, kind, leave_out=["name", "threads"] if kind is TranslatorConfig else [])

    def run(arguments: argparse.Namespace) -> None:
        built = build(
            _bitext(arguments),
            arguments.out,
            translator=from_options(TranslatorConfig, arguments, name=arguments.translator, threads=None),
            scorer=from_options(ScorerConfig, arguments),
            release=from_options(ReleaseConfig, arguments),
            engine=from_options(EngineConfig, arguments),
        )
        _print_built(built)

    return run


def _bitext(arguments: argparse.Namespace) -> AlignedText:
    from paranmt_hf.corpus.bitext import HubDataset, LineFiles, ParquetFiles, TabFile

    pair = arguments.source or arguments.reference
    if sum(bool(given) for given in (pair, arguments.tsv, arguments.parquet, arguments.dataset)) != 1:
        raise InputError("give the bitext once: --source and --reference, or --tsv, or --parquet, or --dataset")
    limit = {"max_characters": arguments.max_characters}
    if pair:
        if not (arguments.source and arguments.reference):
            raise InputError("--source and --reference belong together: two files, aligned line by line")
        return LineFiles({"source": arguments.source, "reference": arguments.reference}, **limit)
    columns = arguments.columns or {"source": "source", "reference": "reference"}
    if missing := {"source", "reference"} - columns.keys():
        raise InputError(f"--columns must name source and reference; {', '.join(sorted(missing))} is missing")
    _check_names(columns, ["source", "reference", "origin"])
    options = {**limit, "optional": columns.keys() & {"origin"}}
    if arguments.tsv:
        return TabFile(arguments.tsv, _numbers(columns), **options)
    if arguments.parquet:
        return ParquetFiles(arguments.parquet, columns, **options)
    return HubDataset(
        arguments.dataset,
        columns,
        config=arguments.dataset_config,
        split=arguments.dataset_split,
        revision=arguments.dataset_revision,
        **options,
    )


def _check_names(columns: dict[str, str], known: Sequence[str]) -> None:
    if unknown := columns.keys() - set(known):
        raise InputError(f"--columns can name {', '.join(known)}, not {', '.join(sorted(unknown))}")


def _numbers(columns: dict[str, str]) -> dict[str, int]:
    for name, column in columns.items():
        if not column.isdigit() or column == "0":
            raise InputError(f"--columns {name}={column}: columns of a TSV file are numbered 1, 2, ...")
    return {name: int(column) for name, column in columns.items()}


def _configure_import(parser: argparse.ArgumentParser) -> Callable[[argparse.Namespace], None]:
    from paranmt_hf.corpus.engine import EngineConfig
    from paranmt_hf.corpus.scorers import ScorerConfig
    from paranmt_hf.pipeline import ReleaseConfig, import_pairs

    parser.add_argument("files", type=Path, nargs="+", help="TSV (plain, .gz, .xz, .zst) or Parquet files")
    parser.add_argument("--out", type=Path, required=True, help="folder of the release")
    parser.add_argument(
        "--columns",
        type=_columns,
        help="where each column is: reference=1,translation=2,para_score=3[,origin=4] (TSV) or by name (Parquet). "
        "With para_score and no scorer that score is kept",
    )
    parser.add_argument("--max-characters", type=int, default=1000, help="longer lines are dropped (default: 1000)")
    for kind in (ScorerConfig, ReleaseConfig, EngineConfig):
        add_options(parser, kind, leave_out=["keep_source"])

    def run(arguments: argparse.Namespace) -> None:
        pairs, scored = _pairs(arguments)
        keep = scored and not (arguments.scorer or arguments.vectors)
        built = import_pairs(
            pairs,
            arguments.out,
            scorer=None if keep else from_options(ScorerConfig, arguments),
            release=from_options(ReleaseConfig, arguments),
            engine=from_options(EngineConfig, arguments),
        )
        _print_built(built)

    return run


def _pairs(arguments: argparse.Namespace) -> tuple[AlignedText, bool]:
    """The reader of an import, and whether it brings a paraphrase score."""
    from paranmt_hf.corpus.bitext import ParquetFiles, TabFile, tab_fields

    parquet = {path.suffix == ".parquet" for path in arguments.files}
    if len(parquet) > 1:
        raise InputError("import either Parquet files or TSV files, not both at once")
    columns = arguments.columns
    if columns is None and parquet == {True}:
        columns = {"reference": "reference", "translation": "translation"}
    elif columns is None:
        columns = {"reference": "1", "translation": "2"}
        if tab_fields(arguments.files[0]) >= 3:
            columns["para_score"] = "3"
    if missing := {"reference", "translation"} - columns.keys():
        raise InputError(f"--columns must name reference and translation; {', '.join(sorted(missing))} is missing")
    _check_names(columns, ["reference", "translation", "para_score", "origin"])
    scored = "para_score" in columns
    if arguments.scorer or arguments.vectors:
        columns = {name: column for name, column in columns.items() if name != "para_score"}
    options = {
        "max_characters": arguments.max_characters,
        "numbers": {"para_score"} & columns.keys(),
        "optional": columns.keys() & {"origin"},
    }
    if parquet == {True}:
        return ParquetFiles(arguments.files, columns, **options), scored
    return TabFile(arguments.files, _numbers(columns), **options), scored


def _configure_score(parser: argparse.ArgumentParser) -> Callable[[argparse.Namespace], None]:
    from paranmt_hf.corpus.engine import EngineConfig
    from paranmt_hf.corpus.scorers import ScorerConfig
    from paranmt_hf.pipeline import rescore

    parser.add_argument("folder", type=Path, help="a release")
    for kind in (ScorerConfig, EngineConfig):
        add_options(parser, kind)

    def run(arguments: argparse.Namespace) -> None:
        scorer, engine = from_options(ScorerConfig, arguments), from_options(EngineConfig, arguments)
        _print_built(rescore(arguments.folder, scorer=scorer, engine=engine))

    return run


def _configure_quickstart(parser: argparse.ArgumentParser) -> Callable[[argparse.Namespace], None]:
    parser.add_argument("--out", type=Path, required=True, help="folder for everything that is made")

    def run(arguments: argparse.Namespace) -> None:
        from paranmt_hf.quickstart import quickstart

        for line in quickstart(arguments.out):
            print(line, flush=True)

    return run


def _print_built(built: Built) -> None:
    from paranmt_hf.corpus.statistics import text_histogram

    statistics = built.record["statistics"]
    print(f"{built.folder}: {statistics['rows']:,} pairs" + ("" if built.fresh else " (was built already)"))
    for name, config in built.record["configs"].items():
        print(f"  {name:<9}{config['rows']:>12,} pairs {config['file_bytes']:>15,} bytes")
    for reason, count in built.record["dropped"].items():
        print(f"  dropped  {count:>12,} {reason}")
    print("paraphrase score")
    print(text_histogram(statistics["histogram"], width=40))
    print(f"load it: load_dataset({built.folder.name!r}) in {built.folder.resolve().parent}")


COMMANDS: dict[str, tuple[str, Configure]] = {
    "quickstart": ("make a small corpus offline, from nothing", _configure_quickstart),
    "build": ("translate a bitext, score the pairs, release them", _configure_build),
    "import": ("score pairs that are translated already, and release them", _configure_import),
    "score": ("score a release again with another scorer", _configure_score),
}


def _parser(chosen: str | None) -> argparse.ArgumentParser:
    """Build the parser; only the chosen command gets its options, which keeps `--help` fast."""
    parser = argparse.ArgumentParser(prog="paranmt", description="Build, score and release paraphrase corpora.")
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
        expected = isinstance(error, InputError | OSError)
        hint = "" if expected else " (unexpected; --debug shows where)"
        kind = "" if isinstance(error, InputError) else f"{type(error).__name__}: "
        print(f"paranmt: {kind}{' '.join(str(error).split())}{hint}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
