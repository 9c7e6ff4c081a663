# /// script
# requires-python = ">=3.11"
# dependencies = [
#     "paranmt-hf",
# ]
# ///
"""Write the card of a paraphraser and the record that the card is rendered from.

    python dataset_scripts/write_paraphraser_card.py models/paraphraser --name paraphraser-small --about about.yaml \
        --figures paraphrases.json canonical.json --out model_cards/paraphrasers

`about.yaml` holds what no program can know: `data`, `commands` (a list), `license_text`. The figures are what `paranmt
paraphrase evaluate` and `paranmt paraphrase canonical` wrote with `--json`, of these weights. The record,
`paraphraser-small.json`, holds all values; `paraphraser-small.md` is rendered from it and from nothing else.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from paranmt_hf import InputError
from paranmt_hf.evaluation.results import Results, read_results
from paranmt_hf.hub.repository import weights_checksum
from paranmt_hf.paraphrase.card import card_values, paraphraser_card
from paranmt_hf.paraphrase.record import ParaphraserRecord
from paranmt_hf.util.tables import code, escape
from paranmt_hf.util.yaml_files import read_yaml


def read_figures(path: Path, weights: str) -> Results:
    """Read the figures of some weights."""
    for results in read_results(path):
        if results.weights == weights:
            return results
    raise InputError(f"{path} has no figures of the weights {weights}; measure this model")


def described(results: Results) -> str:
    """Write the figures in Markdown."""
    blocks = [code(results.settings["command"]), results.markdown()]
    if results.kind == "canonical":
        sides = ("noisy", "output", "clean")
        rows = [[*sides], ["---"] * 3, *([escape(each[side]) for side in sides] for each in results.examples[:3])]
        blocks.append("\n".join(f"| {' | '.join(row)} |" for row in rows))
    return "\n\n".join(blocks)


def main() -> None:
    """Read, record, render."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("--name", required=True)
    parser.add_argument("--about", type=Path, required=True)
    parser.add_argument("--figures", type=Path, nargs="+", required=True)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    about = read_yaml(arguments.about, "data, commands and license_text")
    weights = weights_checksum(arguments.model)
    found = [read_figures(path, weights) for path in arguments.figures]
    record = card_values(arguments.name, ParaphraserRecord.read(arguments.model))
    record |= {"data": about["data"], "command": "\n".join(about["commands"]), "license_text": about["license_text"]}
    record["figures"] = "\n\n".join(described(each) for each in found)
    record["evaluations"] = [each.to_json() for each in found]
    arguments.out.mkdir(parents=True, exist_ok=True)
    text = json.dumps(record, indent=1, ensure_ascii=False)
    (arguments.out / f"{arguments.name}.json").write_text(f"{text}\n", encoding="utf8")
    (arguments.out / f"{arguments.name}.md").write_text(paraphraser_card(record), encoding="utf8")


if __name__ == "__main__":
    main()
