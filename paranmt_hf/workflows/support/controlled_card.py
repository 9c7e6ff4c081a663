"""The card of a syntactically controlled network, from its record."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from paranmt_hf.hub.markdown import code, escape
from paranmt_hf.hub.paraphraser_card import paraphraser_card
from paranmt_hf.paraphrase.config import ParaphraserConfig, ParaphraserTraining
from paranmt_hf.paraphrase.syntax.config import SyntaxConfig
from paranmt_hf.paraphrase.syntax.record import ControlledRecord
from paranmt_hf.paraphrase.syntax.templates import Templates
from paranmt_hf.workflows.support.model_record import license_text
from paranmt_hf.workflows.support.paraphraser_card import command_line, made_with

# As many as the paper's network was asked for (section 3.3).
SHOWN = 20
SUMMARY = (
    "Generates paraphrases of English sentences that have the syntax asked for: a syntactically controlled paraphrase "
    "network after Iyyer, Wieting, Gimpel and Zettlemoyer (2018), arXiv:1804.06059. From the tree of a sentence and a "
    "template it generates a tree, and after that tree and the sentence a paraphrase, with pieces of the sentence "
    "copied where that is probable."
)


def write_controlled_card(folder: Path, name: str, record: ControlledRecord, templates: Templates) -> None:
    """Write the card into the folder of a network."""
    (folder / "README.md").write_text(paraphraser_card(_values(name, record, templates)), encoding="utf8")


def _values(name: str, record: ControlledRecord, templates: Templates) -> dict[str, Any]:
    best = record.course.best
    shown = templates.most_frequent(SHOWN)
    return {
        "name": name,
        "summary": SUMMARY,
        "data": f"Trained on {record.pairs:,} parsed pairs of {escape(record.inputs['data'])}; {record.held_out:,} "
        "more pairs, whose references are in none of these, were held out. Left out were "
        f"{record.without_tree:,} pairs with a sentence that has no tree, {record.long_trees:,} with a long tree and "
        f"{record.too_long:,} with a long sentence.",
        "command": command_line(
            "train-controlled",
            record.inputs["data"],
            record.settings,
            {"paraphraser": ParaphraserConfig, "syntax": SyntaxConfig, "training": ParaphraserTraining},
        ),
        "made": f"{made_with(record)} {record.tree_tokens:,} tokens of trees. The parse generator took "
        f"{record.parse_course.seconds:,.0f} seconds of {code(record.device)} before that.",
        "measured": [asdict(each) for each in record.course.measured],
        "best": best.step if best is not None else record.course.steps,
        "own": True,
        "license_text": license_text(None),
        "templates": [(template, templates.counts[template]) for template in shown],
        "parses": [asdict(each) for each in record.parse_course.measured],
    }
