"""The cards of our paraphrasers say what their records say."""

import json
from pathlib import Path

import pytest

from paranmt_hf.paraphrase.card import paraphraser_card

RECORDS = sorted((Path(__file__).parents[2] / "model_cards" / "paraphrasers").glob("*.json"))


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.stem)
def test_a_card_is_rendered_from_its_record(path):
    record = json.loads(path.read_text(encoding="utf8"))
    text = paraphraser_card(record)
    assert path.with_suffix(".md").read_text(encoding="utf8") == text
    assert record["command"] in text and record["figures"] in text
    for evaluation in record["evaluations"]:
        assert evaluation["settings"]["command"] in text


def test_figures_stand_with_the_results():
    record = {
        "name": "x",
        "summary": "s",
        "data": "d",
        "command": "c",
        "made": "m",
        "measured": [{"step": 10, "loss": 1.5, "perplexity": 4.48, "bleu": 12.34}],
        "best": 10,
        "own": True,
        "license_text": "l",
        "figures": "| more |\n|---|\n| figures |",
    }
    text = paraphraser_card(record)
    assert "| 12.3 |\n\n| more |" in text
    assert text.index("| more |") < text.index("## Training")
    assert "| more |" not in paraphraser_card({**record, "figures": ""})
