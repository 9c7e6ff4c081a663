"""`paranmt lexicon`."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from paranmt_hf.cli.options import DATA_HELP, add_options, from_options
from paranmt_hf.cli.parser import CommandParser, keep_options

if TYPE_CHECKING:
    from paranmt_hf.lexicon.lexicon import Paraphrase

SUMMARY = "word paraphrases found in a corpus"
BUILD, NEAREST, EVALUATE = (
    "make a lexicon out of a corpus",
    "show the paraphrases of words",
    "measure a lexicon on word similarity",
)
JSON_HELP = "write the results into this file"


def configure(parser: CommandParser) -> None:
    """Commands below `paranmt lexicon`."""
    parser.show_example("paranmt lexicon build paranmt50m --out lexicon")
    kinds = parser.kinds("WHAT")
    for name, summary, configure_it in (
        ("build", BUILD, _configure_build),
        ("nearest", NEAREST, _configure_nearest),
        ("evaluate", EVALUATE, _configure_evaluate),
    ):
        configure_it(kinds.add_parser(name, help=summary, description=f"{summary[0].upper()}{summary[1:]}."))


def _configure_build(parser: CommandParser) -> None:
    """Options of `paranmt lexicon build`."""
    from paranmt_hf.lexicon.config import LexiconConfig

    parser.add_argument("data", nargs="+", help=f"{DATA_HELP}; with scores and lengths, as releases have them")
    parser.add_argument("--out", type=Path, required=True, help="folder of the lexicon")
    add_options(parser, LexiconConfig)

    def run(arguments: argparse.Namespace) -> None:
        from paranmt_hf.lexicon.verbs import build_lexicon

        lexicon = build_lexicon(arguments.data, arguments.out, config=from_options(LexiconConfig, arguments))
        record = lexicon.record
        keep_options(arguments, lexicon.folder)
        counts = f"{record.word_pairs // 2:,} pairs of {record.words:,} words"
        print(f"{arguments.out}: {counts}, from {record.pairs:,} pairs of sentences")

    parser.finish(run, "paranmt lexicon build paranmt50m --out lexicon")


def _configure_nearest(parser: CommandParser) -> None:
    """Options of `paranmt lexicon nearest`."""
    from paranmt_hf.lexicon.lexicon import TABLE_COUNT

    parser.add_argument("lexicon", help="folder of the lexicon")
    parser.add_argument("words", nargs="+", help="words whose paraphrases are shown")
    parser.add_argument("--top", type=int, default=10, help="paraphrases of each word (default: %(default)s)")
    parser.add_argument(
        "--min-count",
        type=int,
        default=TABLE_COUNT,
        help="leave out paraphrases that were counted less often (Table 12) (default: %(default)s)",
    )
    parser.add_argument("--json", type=Path, help=JSON_HELP)

    def run(arguments: argparse.Namespace) -> None:
        from paranmt_hf.lexicon.lexicon import Lexicon
        from paranmt_hf.lexicon.verbs import write_json
        from paranmt_hf.util.files import check_result_path

        if arguments.json:
            check_result_path(Path(arguments.json), "--json")
        lexicon, found = Lexicon.open(arguments.lexicon), {}
        for word in arguments.words:
            adjusted, plain = (
                lexicon.nearest(word, top=arguments.top, by=by, min_count=arguments.min_count)
                for by in ("adjusted_pmi", "pmi")
            )
            found[word] = {"adjusted_pmi": list(map(dataclasses.asdict, adjusted))}
            found[word]["pmi"] = list(map(dataclasses.asdict, plain))
            print(_table(word, adjusted, plain, arguments.min_count), end="\n\n")
        if arguments.json:
            write_json(arguments.json, found)
            print(f"results: {arguments.json}")

    parser.finish(run, "paranmt lexicon nearest lexicon laughed happy --top 10")


def _table(word: str, adjusted: Sequence[Paraphrase], plain: Sequence[Paraphrase], min_count: int) -> str:
    """Write the paraphrases of a word by both scores, side by side."""
    if not adjusted:
        return f"{word}: no paraphrase that was counted at least {min_count:,} times (--min-count)"
    rows = [(f"{word}, by adjusted PMI", "", "count", "by PMI", "", "count")]
    for left, right in zip(adjusted, plain, strict=True):
        scores = f"{left.adjusted_pmi:.2f}", f"{right.pmi:.2f}"
        rows.append((left.word, scores[0], f"{left.count:,}", right.word, scores[1], f"{right.count:,}"))
    widths = [max(len(row[column]) for row in rows) for column in range(6)]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if column in (0, 3) else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )


def _configure_evaluate(parser: CommandParser) -> None:
    """Options of `paranmt lexicon evaluate`."""
    parser.add_argument("lexicon", help="folder of the lexicon")
    parser.add_argument(
        "--simlex", type=Path, required=True, help="SimLex-999: word, word and similarity, separated by tabs"
    )
    parser.add_argument("--ppdb", type=Path, help="lexical paraphrases of PPDB, as a baseline; plain or .gz")
    parser.add_argument("--json", type=Path, help=JSON_HELP)

    def run(arguments: argparse.Namespace) -> None:
        from paranmt_hf.lexicon.verbs import evaluate_lexicon, write_json
        from paranmt_hf.util.files import check_result_path

        if arguments.json:
            check_result_path(Path(arguments.json), "--json")
        results = evaluate_lexicon(arguments.lexicon, arguments.simlex, ppdb=arguments.ppdb)
        width = max(len(result.name) for result in results)
        print(f"{'':{width}}  word pairs   seen  Spearman x 100")
        for result in results:
            print(f"{result.name:{width}}  {result.pairs:10,}  {result.seen:5,}  {100 * result.spearman:14.1f}")
        if arguments.json:
            write_json(arguments.json, [dataclasses.asdict(result) for result in results])
            print(f"results: {arguments.json}")

    parser.finish(run, "paranmt lexicon evaluate lexicon --simlex SimLex-999.txt --ppdb ppdb-2.0-xl-lexical.gz")
