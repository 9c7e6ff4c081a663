"""`paranmt evaluate paraphrases` and `paranmt evaluate canonical`."""

from __future__ import annotations

from paranmt_hf.cli.paraphrase_measures import configure_canonical, configure_paraphrases
from paranmt_hf.cli.parser import CommandParser

SUMMARY = "measure paraphrasers"


def configure(parser: CommandParser) -> None:
    """Commands below `paranmt evaluate` that are not converted yet."""
    parser.show_example("paranmt evaluate canonical models/paraphraser --data corpus")
    kinds = parser.kinds("TASK")
    for name, summary, add in (
        ("paraphrases", "their paraphrases: references, copies, meaning, diversity", configure_paraphrases),
        ("canonical", "noisy sentences: how near the output is to the clean ones", configure_canonical),
    ):
        add(kinds.add_parser(name, help=f"paraphrasers: {summary}", description=f"Measure paraphrasers on {summary}."))
