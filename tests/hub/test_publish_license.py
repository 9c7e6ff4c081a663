"""The licence of what is published: listed by the Hub, stated once, and the same wherever it stands."""

import json

import pytest
import yaml

from paranmt_hf.cli import main
from paranmt_hf.errors import InputError
from paranmt_hf.hub.publish import publish

DATASET = "org/corpus"


def header(card):
    return yaml.safe_load(card.split("---\n")[1])


@pytest.mark.parametrize("text", ["- a list", "summary: [a]", "unknown: 1", "commands: one", "a: ]"])
def test_a_file_of_options_that_is_refused(text, release, tmp_path, capsys):
    (tmp_path / "about.yaml").write_text(text)
    assert (
        main(["publish", str(release), "org/word", "--license", "mit", "--about", str(tmp_path / "about.yaml")]) == 1
    )
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_a_release_is_published_under_another_licence(release):
    before = (release / "build.json").read_bytes()
    named = {"license_name": "my-terms-1.0", "license_link": "https://example.org/terms"}
    plan = publish(release, DATASET, license="other", **named, dry_run=True)
    record = json.loads(plan.parcel.files["build.json"])
    assert [record["license"], record["license_name"], record["license_link"]] == [
        "other", "my-terms-1.0", "https://example.org/terms",
    ]  # fmt: skip
    assert record["settings"]["release"]["license"] == "other"
    assert {key: record[key] for key in ("configs", "statistics")} == {
        key: json.loads(before)[key] for key in ("configs", "statistics")
    }
    top = header(plan.card)
    assert (top["license"], top["license_name"]) == ("other", "my-terms-1.0")
    assert "stated by who built it: [my-terms-1.0](https://example.org/terms)." in plan.card
    assert (release / "build.json").read_bytes() == before and plan.left_here == []
    # What was published comes back as a release whose licence is whole.
    (release / "build.json").write_bytes(plan.parcel.files["build.json"])
    (release / "README.md").write_text(plan.card)
    assert publish(release, DATASET, dry_run=True).card == plan.card


def test_an_edited_licence_is_noticed(release):
    path = release / "build.json"
    before = path.read_text()
    record = json.loads(before)
    path.write_text(json.dumps({**record, "license": "mit"}))
    with pytest.raises(InputError, match="build.json states the licence 'mit' and build.json under .* 'cc-by-4.0'"):
        publish(release, DATASET, dry_run=True)
    assert header(publish(release, DATASET, license="mit", dry_run=True).card)["license"] == "mit"
    record["license"] = record["settings"]["release"]["license"] = "mit"
    path.write_text(json.dumps(record))
    with pytest.raises(InputError, match="build.json states the licence 'mit' and README.md 'cc-by-4.0', so one was"):
        publish(release, DATASET, dry_run=True)
    path.write_text(before)
    card = release / "README.md"
    card.write_text(card.read_text().replace("license: cc-by-4.0", "license: mit"))
    with pytest.raises(
        InputError, match="'cc-by-4.0' and README.md 'mit', so one was edited; undo that, or say which"
    ):
        publish(release, DATASET, dry_run=True)


def test_a_licence_of_an_earlier_version_is_refused_when_published(release):
    """Records were written with any licence; that the Hub takes it must show before anything is sent."""
    path = release / "build.json"
    path.write_text(path.read_text().replace('"cc-by-4.0"', '"other"'))
    (release / "README.md").unlink()
    with pytest.raises(InputError, match="'other', which the Hub would not take: license other needs"):
        publish(release, DATASET, dry_run=True)
