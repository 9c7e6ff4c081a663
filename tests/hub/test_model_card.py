"""The cards of our models say what their records say."""

import json
import re
from pathlib import Path

import pytest
import yaml

from paranmt_hf import InputError, Results, publish
from paranmt_hf.hub.licenses import IDS, License
from paranmt_hf.paraphrase.card import paraphraser_card, shown_figures
from paranmt_hf.training.card import encoder_card
from tests.hub.releases import header

FOLDER = Path(__file__).parents[2] / "model_cards"
RECORDS = sorted(FOLDER.glob("*.json"))


def test_there_are_cards():
    assert {path.stem for path in RECORDS} >= {"base", "small", "trigram", "lstm", "word-trigram"}


def rounded(row, measure):
    return round(100 * row["values"][measure], 2)


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.stem)
def test_card_is_rendered_from_its_record(path, golden):
    record = json.loads(path.read_text(encoding="utf8"))
    card = encoder_card(record)
    golden(path.with_suffix(".md"), card)
    header = yaml.safe_load(card.split("---\n")[1])
    assert header["model-index"][0]["name"] == path.stem
    values = {entry["dataset"]["name"]: entry["metrics"][0]["value"] for entry in header["model-index"][0]["results"]}
    for row in record["results"]["tables"]["Set"]:
        assert values.get(row["name"], rounded(row, "pearson")) == rounded(row, "pearson")
    if years := record["results"]["tables"]["Year"]:
        *years, mean = years
        assert f"| Mean  |       | {100 * mean['values']['mean']:.1f} |" in card
    for year in years:
        assert values[year["name"]] == rounded(year, "mean")
    assert "trust_remote_code" in card or path.stem in ("base", "small", "lstm")
    assert "$" not in card


@pytest.fixture
def record():
    return json.loads((FOLDER / "base.json").read_text(encoding="utf8"))


def test_speed_is_shown_with_machine_and_load_alone(record):
    record["results"]["speed"] |= {"cores": None, "load": None}
    assert "a second of one core" not in encoder_card(record)
    record["results"]["speed"] |= {"cores": 2, "load": 1.5, "processor": "CPU|x"}
    card = encoder_card(record)
    assert "(CPU\\|x, 2 cores, load 1.5 in the minute before)" in card and "## Size and speed" in card


def test_the_development_set_is_no_result_whatever_its_name(record):
    """`sample` and a copy of its file are one set: what counts is the content."""
    content = {"kind": "sts", "model": "m", "settings": {}, "weights": None, "versions": {}, "notes": []}
    row = {"name": "similarity", "values": {"pearson": 0.9, "spearman": 0.9}, "items": 40}
    other = {**row, "name": "other"}
    results = {**record["results"], **content, "data": {"similarity": "sha256:1", "other": "sha256:2"}}
    results["tables"] = {
        "Set": [{**record["results"]["tables"]["Set"][-1], **each} for each in (row, other)],
        "Year": [],
    }
    for checksum, listed in (("sha256:1", ["other"]), ("sha256:3", ["similarity", "other"])):
        record["record"]["settings"]["development_checksum"] = checksum
        card = encoder_card({**record, "results": results, "precisions": {}})
        header = yaml.safe_load(card.split("---\n")[1])
        assert [each["dataset"]["name"] for each in header["model-index"][0]["results"]] == listed
        assert ("similarity (the development set)" in card) == (listed == ["other"])


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


PARAPHRASERS = sorted((FOLDER / "paraphrasers").glob("*.json"))


@pytest.mark.parametrize("path", PARAPHRASERS, ids=lambda path: path.stem)
def test_card_of_a_paraphraser_is_rendered_from_its_record(path, golden):
    record = json.loads(path.read_text(encoding="utf8"))
    text = paraphraser_card(record)
    golden(path.with_suffix(".md"), text)
    assert record["command"] in text and record["figures"] in text
    assert shown_figures([Results.from_json(values, path) for values in record["evaluations"]]) == record["figures"]


DATASET = "org/corpus"
TERMS = "My Terms 1.0 <https://example.org/terms>"


def test_listed_licences_and_one_with_a_name():
    for id in IDS - {"other"}:
        assert str(License.parse(id)) == id and License.parse(id).header == {"license": id}
    license = License.parse(TERMS)
    entries = {"license": "other", "license_name": "my-terms-1.0", "license_link": "https://example.org/terms"}
    assert license.header == entries and License.of_header(entries) == license
    assert License.parse(str(license)) == license and License.of_header({"tags": []}) is None


@pytest.mark.parametrize(
    "text",
    [None, "", "cc-by-4", "CC BY 4.0", "proprietary", "other", "cc-by-4.0\nx: y", "<https://a.org>"]
    + ["a](b) <https://a.org>", "a <a.org>", "a <https://a.org/x) [b](c>", "a <javascript:alert(1)>", "a <"]
    + ["a <https://a.org> b"],
)
def test_others_are_refused(text):
    with pytest.raises(InputError) as error:
        License.parse(text)
    assert error.value.option == "license"
    assert text not in ("cc-by-4", "CC BY 4.0") or "did you mean cc-by-4.0" in str(error.value)


def test_a_release_is_published_under_another_licence(release):
    before = (release / "build.json").read_bytes()
    plan = publish(release, DATASET, license=TERMS, dry_run=True)
    record = json.loads(plan.repository.files["build.json"])
    assert record["license"] == record["settings"]["release"]["license"] == "my-terms-1.0 <https://example.org/terms>"
    assert {key: record[key] for key in ("configs", "statistics")} == {
        key: json.loads(before)[key] for key in ("configs", "statistics")
    }
    top = header(plan.card)
    assert (top["license"], top["license_name"]) == ("other", "my-terms-1.0")
    assert "stated by who built it: [my-terms-1.0](https://example.org/terms)." in plan.card
    assert (release / "build.json").read_bytes() == before and plan.left_here == []
    # What was published comes back as a release whose licence is whole.
    (release / "build.json").write_bytes(plan.repository.files["build.json"])
    (release / "README.md").write_text(plan.card)
    assert publish(release, DATASET, dry_run=True).card == plan.card


def test_an_edited_licence_is_noticed(release):
    path, card = release / "build.json", release / "README.md"
    before, card_before = path.read_text(), card.read_text()
    for build, text in (
        (before.replace('"license": "cc-by-4.0"', '"license": "mit"'), card_before),
        (before, card_before.replace("license: cc-by-4.0", "license: mit")),
        # One that the Hub does not list may come from another version.
        (before.replace('"cc-by-4.0"', '"other"'), ""),
    ):
        path.write_text(build)
        card.write_text(text)
        with pytest.raises(InputError) as error:
            publish(release, DATASET, dry_run=True)
        assert error.value.option == "license"
    assert header(publish(release, DATASET, license="mit", dry_run=True).card)["license"] == "mit"
