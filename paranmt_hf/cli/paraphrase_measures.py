"""`paranmt evaluate paraphrases` and `paranmt evaluate canonical`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from paranmt_hf.cli.options import DATA_HELP, SCORER_OPTIONS, add_options, add_switch, from_options
from paranmt_hf.cli.parser import CommandParser, keep_options

if TYPE_CHECKING:
    from paranmt_hf.paraphrase.config import ParaphraseConfig

# Settings of a search that are the same for all ways to search. Pairs have options of some of their names.
COMMON = ("max_length", "batch_tokens", "device", "dtype")
SEARCH_OPTIONS = {"max_length": "max_pieces"}


def configure_paraphrases(parser: CommandParser) -> None:
    """Options of `paranmt evaluate paraphrases`."""
    from paranmt_hf.corpus.pairs import PairSelection
    from paranmt_hf.encoders.scorer import ScorerConfig
    from paranmt_hf.evaluation.data_configs import ItemsConfig
    from paranmt_hf.paraphrase.config import ParaphraseConfig

    parser.add_argument(
        "models", nargs="+", help="encoder-decoders by folder or Hub id, or files that `paranmt paraphrase` wrote"
    )
    parser.add_argument(
        "--data",
        nargs="+",
        default=[],
        help="a TSV file with a sentence and a reference on each line; or pairs: "
        f"{DATA_HELP}. Files of paraphrases can do without",
    )
    parser.add_argument(
        "--decodings",
        nargs="+",
        metavar="WAY",
        help="ways to search: greedy, beams=8, beams=8,groups=4,n=3, sample,temperature=0.7, sample,top_p=0.9 and the "
        "like; or one YAML file, names with settings below each (default: seven ways)",
    )
    parser.add_argument(
        "--template-parser",
        choices=("link-grammar", "stanza"),
        help="parses paraphrases of files with a column template, to say how many have theirs",
    )
    add_options(parser.add_argument_group("sentences"), ItemsConfig)
    add_options(parser.add_argument_group("pairs"), PairSelection)
    add_options(parser.add_argument_group("search"), ParaphraseConfig, only=("n", *COMMON), names=SEARCH_OPTIONS)
    add_options(parser.add_argument_group("paraphrase score"), ScorerConfig, names=SCORER_OPTIONS)
    _add_output(parser)

    def run(arguments: argparse.Namespace) -> None:
        from paranmt_hf.evaluation.generation.record import compare_paraphrases
        from paranmt_hf.evaluation.results import write_results
        from paranmt_hf.paraphrase.evaluate_paraphrases import evaluate_paraphrases
        from paranmt_hf.util.files import check_result_path

        if arguments.json:
            check_result_path(arguments.json, "--json")
        records = evaluate_paraphrases(
            arguments.models,
            arguments.data,
            decodings=arguments.decodings,
            items=from_options(ItemsConfig, arguments),
            config=_search(arguments, "n"),
            selection=from_options(PairSelection, arguments),
            scorer=from_options(ScorerConfig, arguments, SCORER_OPTIONS),
            parser=arguments.template_parser,
        )
        print(compare_paraphrases(records, "markdown" if arguments.markdown else "text"))
        print(
            f"{records[0].items:,} sentences, {records[0].references:,} references of {records[0].data}; "
            "numbers, negation, names: % of the paraphrases that differ in one from their input"
        )
        if arguments.json:
            write_results(arguments.json, records)
            _say_where(arguments)

    parser.finish(
        run,
        "paranmt evaluate paraphrases models/paraphraser --data paranmt50m --held-out --decodings greedy beams=8 "
        "--json paraphrases.json",
    )


def configure_canonical(parser: CommandParser) -> None:
    """Options of `paranmt evaluate canonical`."""
    from paranmt_hf.corpus.pairs import PairSelection
    from paranmt_hf.evaluation.data_configs import ItemsConfig
    from paranmt_hf.paraphrase.config import ParaphraseConfig
    from paranmt_hf.paraphrase.noise import WORD_RATE

    parser.add_argument("models", nargs="+", help="encoder-decoders by folder or Hub id")
    parser.add_argument(
        "--data",
        nargs="+",
        required=True,
        help="a TSV file with a noisy and a clean sentence on each line; or pairs, to whose references noise is "
        f"added: {DATA_HELP}",
    )
    parser.add_argument(
        "--noise", type=float, help=f"probability that a word of a reference changes (default: {WORD_RATE})"
    )
    add_options(parser.add_argument_group("sentences"), ItemsConfig, leave_out=("direction",))
    add_options(parser.add_argument_group("pairs"), PairSelection)
    add_options(parser.add_argument_group("search"), ParaphraseConfig, only=("beams", *COMMON), names=SEARCH_OPTIONS)
    _add_output(parser)

    def run(arguments: argparse.Namespace) -> None:
        from paranmt_hf.evaluation.generation.record import compare_canonical
        from paranmt_hf.evaluation.results import write_results
        from paranmt_hf.paraphrase.evaluate_paraphrases import evaluate_canonical
        from paranmt_hf.util.files import check_result_path

        if arguments.json:
            check_result_path(arguments.json, "--json")
        records = evaluate_canonical(
            arguments.models,
            arguments.data,
            noise=arguments.noise,
            items=from_options(ItemsConfig, arguments),
            config=_search(arguments, "beams"),
            selection=from_options(PairSelection, arguments),
        )
        print(compare_canonical(records, "markdown" if arguments.markdown else "text"))
        print(
            f"{records[0].sentences:,} sentences of {records[0].data}; edits for each 100 characters or words of the "
            "clean sentence"
        )
        if (about := records[0].noise) and about["unchanged"]:
            print(f"{about['unchanged']:,} more, to which nothing happened, are left out")
        for example in records[0].figures.examples[:5]:
            print(f"\n  noisy   {example.noisy}\n  output  {example.output}\n  clean   {example.clean}")
        if arguments.json:
            write_results(arguments.json, records)
            _say_where(arguments)

    parser.finish(
        run, "paranmt evaluate canonical models/paraphraser --data paranmt50m --held-out --json canonical.json"
    )


def _search(arguments: argparse.Namespace, *more: str) -> ParaphraseConfig:
    """Settings of a search out of the options that there are for one."""
    from paranmt_hf.paraphrase.config import ParaphraseConfig

    names = (*more, *COMMON)
    return ParaphraseConfig(**{name: getattr(arguments, SEARCH_OPTIONS.get(name, name)) for name in names})


def _add_output(parser: CommandParser) -> None:
    parser.add_argument("--json", type=Path, help="write the results into this file")
    add_switch(parser, "--markdown", dest="markdown", help="print Markdown tables")


def _say_where(arguments: argparse.Namespace) -> None:
    keep_options(arguments, arguments.json)
    print(f"results: {arguments.json}")
