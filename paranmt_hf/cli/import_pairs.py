"""`paranmt import`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from paranmt_hf.cli.added import add_column_options, authorship
from paranmt_hf.cli.built import print_built
from paranmt_hf.cli.columns import add_max_characters, check_names, columns, positions
from paranmt_hf.cli.options import SCORER_OPTIONS, add_options, from_options
from paranmt_hf.cli.parser import CommandParser, keep_options
from paranmt_hf.errors import InputError

if TYPE_CHECKING:
    from paranmt_hf.corpus.bitext.presets import Preset
    from paranmt_hf.corpus.bitext.readers import AlignedText


SUMMARY = "score pairs that are translated already, and release them"


def configure(parser: CommandParser) -> None:
    """Options of `paranmt import`."""
    from paranmt_hf.corpus.bitext.preset_files import Wanted
    from paranmt_hf.corpus.bitext.presets import preset_names, read_preset
    from paranmt_hf.corpus.import_pairs import import_pairs, stated
    from paranmt_hf.corpus.jobs.engine import EngineConfig
    from paranmt_hf.corpus.release_run import ReleaseConfig
    from paranmt_hf.corpus.schema import MadeBy
    from paranmt_hf.encoders.scorer import ScorerConfig

    parser.add_argument("files", type=Path, nargs="+", help="TSV (plain, .gz, .bz2, .xz, .zst), Parquet or PPDB files")
    parser.add_argument("--out", type=Path, required=True, help="folder of the release")
    parser.add_argument(
        "--format",
        choices=["pairs", "phrases"],
        help="pairs: TSV or Parquet files; phrases: files of PPDB, or lists of words and their paraphrases "
        "(default: pairs)",
    )
    parser.add_argument(
        "--preset",
        metavar="NAME",
        help="the files are of a known data set, whose columns, labels and licence this names: "
        f"{', '.join(preset_names())}",
    )
    parser.add_argument(
        "--label",
        choices=get_args(Wanted),
        help="with a preset that has labels: keep paraphrases (1), pairs that are none (0), or any (default: 1)",
    )
    parser.add_argument(
        "--ppdb-score",
        metavar="NAME",
        help="files of PPDB: keep this feature, such as PPDB2.0Score, as a column ppdb_score",
    )
    parser.add_argument(
        "--columns",
        type=columns,
        help="where each column is: reference=1,translation=2,para_score=3[,origin=4] (TSV) or by name (Parquet). "
        "With para_score and no scorer that score is kept",
    )
    parser.add_argument(
        "--made-by",
        choices=get_args(MadeBy),
        help="who wrote the second sentences: a machine that translated, or people (default: what the preset says, "
        "else unknown)",
    )
    add_max_characters(parser)
    add_options(parser, ScorerConfig, names=SCORER_OPTIONS)
    for kind in (ReleaseConfig, EngineConfig):
        add_options(parser, kind, leave_out=["keep_source"])
    add_column_options(parser)

    def run(arguments: argparse.Namespace) -> None:
        preset = None if arguments.preset is None else read_preset(arguments.preset)
        pairs, scored = _pairs(arguments) if preset is None else (_of_preset(preset, arguments), False)
        if preset is not None:
            for name, value in stated(preset, arguments.license).items():
                setattr(arguments, name, getattr(arguments, name) or value)
        # What was said holds, also `unknown`.
        arguments.made_by = arguments.made_by or ("unknown" if preset is None else preset.made_by)
        keep = scored and not (arguments.scorer or arguments.vectors)
        built = import_pairs(
            pairs,
            arguments.out,
            scorer=None if keep else from_options(ScorerConfig, arguments, SCORER_OPTIONS),
            release=from_options(ReleaseConfig, arguments),
            engine=from_options(EngineConfig, arguments),
            add=arguments.add,
            authorship=authorship(arguments),
            made_by=arguments.made_by,
        )
        keep_options(arguments, built.folder, fresh=built.fresh)
        print_built(built)

    parser.finish(run, "paranmt import pairs.tsv --columns reference=1,translation=2 --out corpus --license cc-by-4.0")


def _of_preset(preset: Preset, arguments: argparse.Namespace) -> AlignedText:
    """The reader of a known data set."""
    from paranmt_hf.corpus.bitext.preset_files import open_preset

    if arguments.columns:
        raise InputError("give either --preset, which knows the columns, or --columns")
    if arguments.format:
        raise InputError(f"give either --preset, which knows the format, or --format {arguments.format}")
    return open_preset(
        preset,
        arguments.files,
        label=arguments.label,
        score=arguments.ppdb_score,
        max_characters=arguments.max_characters,
        language=arguments.language,
    )


def _pairs(arguments: argparse.Namespace) -> tuple[AlignedText, bool]:
    """The reader of an import, and whether it brings a paraphrase score."""
    from paranmt_hf.corpus.bitext.phrases import PhraseFiles, first_line, is_rule
    from paranmt_hf.corpus.bitext.readers import ParquetFiles, TabFile, TextOptions, tab_fields

    if arguments.label:
        raise InputError("--label is for data sets whose labels are known; give their --preset")
    if arguments.format == "phrases":
        if arguments.columns:
            raise InputError("--columns is for TSV and Parquet files; with --format phrases leave it out")
        return PhraseFiles(arguments.files, score=arguments.ppdb_score, max_characters=arguments.max_characters), False
    if arguments.ppdb_score:
        raise InputError("--ppdb-score is for files of PPDB; give --format phrases")

    parquet = {path.suffix == ".parquet" for path in arguments.files}
    if len(parquet) > 1:
        raise InputError("import either Parquet files or TSV files, not both at once")
    columns = arguments.columns
    if columns is None and parquet == {True}:
        columns = {"reference": "reference", "translation": "translation"}
    elif columns is None:
        columns = {"reference": "1", "translation": "2"}
        fields = tab_fields(arguments.files[0])
        if fields == 1 and is_rule(first_line(arguments.files[0])):
            raise InputError(f"{arguments.files[0]} has lines of PPDB and no tabs; give --format phrases")
        if fields >= 3:
            columns["para_score"] = "3"
    if missing := {"reference", "translation"} - columns.keys():
        raise InputError(f"--columns must name reference and translation; {', '.join(sorted(missing))} is missing")
    check_names(columns, ["reference", "translation", "para_score", "origin"])
    scored = "para_score" in columns
    if arguments.scorer or arguments.vectors:
        columns = {name: column for name, column in columns.items() if name != "para_score"}
    options: TextOptions = {
        "max_characters": arguments.max_characters,
        "numbers": {"para_score"} & columns.keys(),
        "optional": columns.keys() & {"origin"},
    }
    if parquet == {True}:
        return ParquetFiles(arguments.files, columns, **options), scored
    return TabFile(arguments.files, positions(columns), **options), scored
