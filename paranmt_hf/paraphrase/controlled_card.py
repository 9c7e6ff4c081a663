"""The card of a syntactically controlled network, from its record."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from paranmt_hf.hub.markdown import code, escape
from paranmt_hf.hub.paraphraser_card import paraphraser_card
from paranmt_hf.hub.publish import About
from paranmt_hf.paraphrase.card import command_line, license_text, made_with, said_of_terms, spoken
from paranmt_hf.paraphrase.config import ParaphraserConfig, ParaphraserTraining
from paranmt_hf.paraphrase.syntax.config import SyntaxConfig
from paranmt_hf.paraphrase.syntax.record import ControlledRecord
from paranmt_hf.paraphrase.syntax.templates import Templates

# As many as the paper's network was asked for (section 3.3).
SHOWN = 20
SUMMARY = (
    "Generates paraphrases of {} sentences that have the syntax asked for: a syntactically controlled paraphrase "
    "network after Iyyer, Wieting, Gimpel and Zettlemoyer (2018), arXiv:1804.06059. From the tree of a sentence and a "
    "template it generates a tree, and after that tree and the sentence a paraphrase, with pieces of the sentence "
    "copied where that is probable."
)


def write_controlled_card(folder: Path, name: str, record: ControlledRecord, templates: Templates) -> None:
    """Write the card into the folder of a network."""
    text = paraphraser_card(controlled_card_values(name, record, templates))
    (folder / "README.md").write_text(text, encoding="utf8")


def controlled_card_values(
    name: str, record: ControlledRecord, templates: Templates, about: About | None = None
) -> dict[str, Any]:
    """Put the record of a card together.

    Args:
        name: Name of the network.
        record: What training wrote down.
        templates: What it was trained on.
        about: What people say; None before anybody did.

    Returns:
        What `paraphraser_card` takes.
    """
    best = record.course.best
    shown = templates.most_frequent(SHOWN)
    said: dict[str, Any] = asdict(about) if about is not None else {}
    return {
        "name": name,
        **said_of_terms(said, record.settings),
        "summary": said.get("summary") or SUMMARY.format(spoken(record.settings)),
        "data": said.get("data")
        or f"Trained on {record.pairs:,} parsed pairs of {escape(record.inputs['data'])}; {record.held_out:,} "
        "more pairs, whose references are in none of these, were held out. Left out were "
        f"{record.without_tree:,} pairs with a sentence that has no tree, {record.long_trees:,} with a long tree and "
        f"{record.too_long:,} with a long sentence.{_parser(record)}",
        "command": "\n".join(said.get("commands", ()))
        or command_line(
            "train-controlled",
            record.inputs["data"],
            record.settings,
            {"paraphraser": ParaphraserConfig, "syntax": SyntaxConfig, "training": ParaphraserTraining},
        ),
        "made": f"{made_with(record, timed=about is not None)} {record.tree_tokens:,} tokens of trees."
        + (_time_of_parses(record) if about is not None else ""),
        "measured": [asdict(each) for each in record.course.measured],
        "best": best.step if best is not None else record.course.steps,
        "own": True,
        "license_text": said.get("license_text") or license_text(about),
        "templates": [(template, templates.counts[template]) for template in shown],
        "parses": [asdict(each) for each in record.parse_course.measured],
    }


def _time_of_parses(record: ControlledRecord) -> str:
    seconds = f"{record.parse_course.seconds:,.0f} seconds"
    return f" The parse generator took {seconds} of {code(record.device)} before that."


def _parser(record: ControlledRecord) -> str:
    return f" The trees are those of {escape(record.inputs['parser'])}." if "parser" in record.inputs else ""
