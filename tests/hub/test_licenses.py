"""Licences are checked against the Hub's list before the work, and stated alike wherever they are written."""

import json

import pytest
import yaml

from paranmt_hf.errors import InputError
from paranmt_hf.hub.licenses import IDS, License
from paranmt_hf.hub.publish import publish

DATASET = "org/corpus"
TERMS = "My Terms 1.0 <https://example.org/terms>"


def header(card):
    return yaml.safe_load(card.split("---\n")[1])


@pytest.mark.parametrize("id", sorted(IDS - {"other"}))
def test_listed_licences_pass(id):
    assert str(License.parse(id)) == id and License.parse(id).header == {"license": id}


def test_a_licence_with_a_name():
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
    record = json.loads(plan.parcel.files["build.json"])
    assert record["license"] == record["settings"]["release"]["license"] == "my-terms-1.0 <https://example.org/terms>"
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
    path, card = release / "build.json", release / "README.md"
    before, card_before = path.read_text(), card.read_text()
    for build, text in (
        (before.replace('"license": "cc-by-4.0"', '"license": "mit"', 1), card_before),
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
