"""The cards of our encoders say what their records say."""

import json
from pathlib import Path

import pytest
import yaml

from paranmt_hf.hub.model_card import model_card

FOLDER = Path(__file__).parents[2] / "model_cards"
RECORDS = sorted(FOLDER.glob("*.json"))


def test_there_are_cards():
    assert {path.stem for path in RECORDS} >= {"word", "trigram", "lstm", "word-trigram"}


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.stem)
def test_card_is_rendered_from_its_record(path):
    record = json.loads(path.read_text(encoding="utf8"))
    card = model_card(record)
    assert path.with_suffix(".md").read_text(encoding="utf8") == card
    header = yaml.safe_load(card.split("---\n")[1])
    assert header["model-index"][0]["name"] == path.stem
    values = {entry["dataset"]["name"]: entry["metrics"][0]["value"] for entry in header["model-index"][0]["results"]}
    for year in record["results"]["years"]:
        assert values[year["name"]] == round(100 * year["mean"], 2)
    assert f"**{100 * record['results']['mean']:.1f}**" in card
    assert "trust_remote_code" in card or path.stem in ("word", "lstm")
    assert "$" not in card


@pytest.mark.parametrize(
    ("unknown", "said"),
    [
        ("drop", "not in the vocabulary\ncount, but have vectors of zeros."),
        ("train", "not in the vocabulary\nshare one trained vector."),
        (
            "share",
            "not in the vocabulary\nshare the trained vector that the word vectors it started from have",
        ),
        (None, "not in the vocabulary\ncount, but have vectors of zeros."),
    ],
)
def test_what_becomes_of_unknown_words(unknown, said):
    record = json.loads((FOLDER / "word.json").read_text(encoding="utf8"))
    record["training"]["settings"]["encoder"]["unknown"] = unknown
    assert said in model_card(record)
