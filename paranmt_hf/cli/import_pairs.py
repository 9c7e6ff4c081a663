"""`paranmt import`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from paranmt_hf.cli.built import print_built
from paranmt_hf.cli.columns import check_names, columns, numbers
from paranmt_hf.cli.options import Run, add_options, from_options
from paranmt_hf.errors import InputError

if TYPE_CHECKING:
    from paranmt_hf.corpus.bitext.readers import AlignedText


SUMMARY = "score pairs that are translated already, and release them"


def configure(parser: argparse.ArgumentParser) -> Run:
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
        print_built(built)

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
    check_names(columns, ["reference", "translation", "para_score", "origin"])
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
    return TabFile(arguments.files, numbers(columns), **options), scored
