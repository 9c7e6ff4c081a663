"""The cards of our models say what their records say."""

import json
import re
from pathlib import Path

import pytest
import yaml

from paranmt_hf.paraphrase.card import paraphraser_card
from paranmt_hf.training.card import encoder_card

FOLDER = Path(__file__).parents[2] / "model_cards"
RECORDS = sorted(FOLDER.glob("*.json"))


def test_there_are_cards():
    assert {path.stem for path in RECORDS} >= {"word", "trigram", "lstm", "word-trigram"}


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.stem)
def test_card_is_rendered_from_its_record(path):
    record = json.loads(path.read_text(encoding="utf8"))
    card = encoder_card(record)
    assert path.with_suffix(".md").read_text(encoding="utf8") == card
    header = yaml.safe_load(card.split("---\n")[1])
    assert header["model-index"][0]["name"] == path.stem
    values = {entry["dataset"]["name"]: entry["metrics"][0]["value"] for entry in header["model-index"][0]["results"]}
    *years, mean = record["results"]["tables"]["Year"]
    for year in years:
        assert values[year["name"]] == round(100 * year["values"]["mean"], 2)
    assert f"| Mean  |       | {100 * mean['values']['mean']:.1f} |" in card
    assert "trust_remote_code" in card or path.stem in ("word", "lstm")
    assert "$" not in card


@pytest.fixture
def record():
    return json.loads((FOLDER / "word.json").read_text(encoding="utf8"))


def test_the_name_of_a_development_set_stays_code(record):
    record["record"]["settings"]["development"] = "my`<b>`set"
    record["record"]["development"], record["results"] = 0.5, None
    assert "On the development set, `my'<b>'set`, on which settings" in encoder_card(record)


def test_speed_is_shown_with_machine_and_load_alone(record):
    assert record["results"]["speed"] and "a second of one core" not in encoder_card(record)
    record["results"]["speed"] |= {"cores": 2, "load": 1.5, "processor": "CPU|x"}
    card = encoder_card(record)
    assert "(CPU\\|x, 2 cores, load 1.5 in the minute before)" in card and "## Size and speed" in card


def test_picture_and_licence_where_there_are_any(record):
    assert "training.png" not in encoder_card(record)
    card = encoder_card({**record, "picture": "training.png"})
    assert "\n\n![Loss and development score over the steps](training.png)\n\n## Limits" in card
    named = {"license": "other", "license_name": "mine-1.0", "license_link": "https://a.org"}
    header = yaml.safe_load(encoder_card({**record, "license": "Mine 1.0 <https://a.org>"}).split("---\n")[1])
    assert {name: header[name] for name in named} == named
    del record["license"]
    assert "license" not in yaml.safe_load(encoder_card(record).split("---\n")[1])


@pytest.mark.parametrize("name", ["a|b", "`a`", "a](http://x)", "<script>", 'a"b', "a\n---\nlicense: x", "```\nx"])
def test_a_name_stays_a_name(record, name):
    plain = encoder_card(record).split("\n---\n", 1)[1]
    record |= {"name": name}
    record["record"]["inputs"] = {"init_from": name, "teacher": name}
    record["record"]["mean_of"] = [{"name": name, "revision": "1"}]
    header, text = encoder_card(record).split("\n---\n", 1)
    assert yaml.safe_load(header.removeprefix("---\n"))["license"] == record["license"]
    assert sum(line.startswith("```") for line in text.split("\n")) == sum(
        line.startswith("```") for line in plain.split("\n")
    )
    compile(text.split("```python\n")[1].split("\n```")[0], "card", "exec")
    heading = next(line for line in text.split("\n") if line.startswith("# "))
    assert not re.search(r"(?<!\\)[|`\[\]<>]", heading)
    assert "<script" not in text.replace("\\<script", "").replace("`<script>`", "").replace('"<script>"', "")


@pytest.mark.parametrize(
    ("unknown", "said"),
    [
        ("drop", "not in the vocabulary count, but have vectors of zeros."),
        ("train", "not in the vocabulary share one trained vector."),
        (
            "share",
            "not in the vocabulary share the trained vector that the word vectors it started from have",
        ),
        (None, "not in the vocabulary count, but have vectors of zeros."),
    ],
)
def test_what_becomes_of_unknown_words(unknown, said):
    record = json.loads((FOLDER / "word.json").read_text(encoding="utf8"))
    record["record"]["settings"]["encoder"]["unknown"] = unknown
    assert said in encoder_card(record)


def test_sizes_without_results_have_no_empty_columns(record):
    record["precisions"] = {"as stored": {"bytes": 1_700_000, "mean": None, "development": None}}
    assert "| stored rows | megabytes |\n|---|---:|\n| as stored | 1.7 |\n" in encoder_card(record)


PARAPHRASERS = sorted((FOLDER / "paraphrasers").glob("*.json"))


@pytest.mark.parametrize("path", PARAPHRASERS, ids=lambda path: path.stem)
def test_card_of_a_paraphraser_is_rendered_from_its_record(path):
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
