"""Commands that make corpora: quickstart, build, import, score."""

from __future__ import annotations

import argparse
import typing
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from paranmt_hf.cli.options import add_options, columns, from_options
from paranmt_hf.errors import InputError

if TYPE_CHECKING:
    from paranmt_hf.corpus.bitext.readers import AlignedText
    from paranmt_hf.workflows.build import Built


def configure_build(parser: argparse.ArgumentParser) -> Callable[[argparse.Namespace], None]:
    """Options of `paranmt build`."""
    from paranmt_hf.corpus.jobs.engine import EngineConfig
    from paranmt_hf.corpus.translation.translator import TranslatorConfig
    from paranmt_hf.encoders.scorer import ScorerConfig
    from paranmt_hf.workflows.build import ReleaseConfig, build

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
    text.add_argument("--columns", type=columns, help="where each column is: source=2,reference=1[,origin=3]")
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
    from paranmt_hf.corpus.bitext.readers import HubDataset, LineFiles, ParquetFiles, TabFile

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


def configure_import(parser: argparse.ArgumentParser) -> Callable[[argparse.Namespace], None]:
    """Options of `paranmt import`."""
    from paranmt_hf.corpus.jobs.engine import EngineConfig
    from paranmt_hf.encoders.scorer import ScorerConfig
    from paranmt_hf.workflows.build import ReleaseConfig, import_pairs

    parser.add_argument("files", type=Path, nargs="+", help="TSV (plain, .gz, .xz, .zst) or Parquet files")
    parser.add_argument("--out", type=Path, required=True, help="folder of the release")
    parser.add_argument(
        "--columns",
        type=columns,
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
    from paranmt_hf.corpus.bitext.readers import ParquetFiles, TabFile, tab_fields

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


def configure_score(parser: argparse.ArgumentParser) -> Callable[[argparse.Namespace], None]:
    """Options of `paranmt score`."""
    from paranmt_hf.corpus.jobs.engine import EngineConfig
    from paranmt_hf.encoders.scorer import ScorerConfig
    from paranmt_hf.workflows.build import rescore

    parser.add_argument("folder", type=Path, help="a release")
    for kind in (ScorerConfig, EngineConfig):
        add_options(parser, kind)

    def run(arguments: argparse.Namespace) -> None:
        scorer, engine = from_options(ScorerConfig, arguments), from_options(EngineConfig, arguments)
        _print_built(rescore(arguments.folder, scorer=scorer, engine=engine))

    return run


def configure_quickstart(parser: argparse.ArgumentParser) -> Callable[[argparse.Namespace], None]:
    """Options of `paranmt quickstart`."""
    parser.add_argument("--out", type=Path, required=True, help="folder for everything that is made")

    def run(arguments: argparse.Namespace) -> None:
        from paranmt_hf.workflows.quickstart import quickstart

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
