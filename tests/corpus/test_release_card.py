"""The card of a release says how its pairs came about, and text from elsewhere stays text."""

import re
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from paranmt_hf.corpus.bitext.readers import ParquetFiles, TabFile
from paranmt_hf.corpus.import_pairs import import_pairs
from paranmt_hf.corpus.release import read_record
from paranmt_hf.corpus.release_card import release_card
from paranmt_hf.corpus.release_run import ReleaseConfig
from paranmt_hf.errors import InputError
from paranmt_hf.hub.publish import publish
from tests.toys import LOCAL

RELEASE = ReleaseConfig(license="mit")
# What would say that a machine wrote the pairs.
OF_MACHINES = re.compile(
    r"translat(?!ion`|ion_length|ion\\_length|ion\)|ion `|ion \|)|hypothesis|beam|machine", re.IGNORECASE
)


def make(folder, release=RELEASE, **options):
    table = {"a": ["a b", "b"], "b": ["a c", "b"], "score": [0.5, 1.0], "system": ["x|y", None]}
    pq.write_table(pa.table(table), folder.with_suffix(".parquet"))
    columns = {"reference": "a", "translation": "b", "para_score": "score", "origin": "system"}
    pairs = ParquetFiles([folder.with_suffix(".parquet")], columns, numbers={"para_score"}, optional={"origin"})
    return import_pairs(pairs, folder, scorer=None, release=release, engine=LOCAL, **options)


@pytest.fixture(scope="module")
def plain_record(tmp_path_factory):
    return make(tmp_path_factory.mktemp("release") / "corpus").record


def body(card):
    """The card without header, examples of commands and citation."""
    text = card.split("---\n", 2)[2].split("## Citation")[0]
    return re.sub(r"```.*?```", "", text, flags=re.DOTALL)


def test_pairs_that_people_wrote(tmp_path):
    record = make(tmp_path / "corpus", made_by="people").record
    assert record.settings["pairs"]["made_by"] == "people"
    assert "translation_score" not in record.columns
    card = (tmp_path / "corpus" / "README.md").read_text()
    assert not OF_MACHINES.findall(body(card)), body(card)
    assert "Each pair is two sentences that people wrote" in card
    assert "second sentence of the pair, written by people" in card
    top = yaml.safe_load(card.split("---\n")[1])
    assert top["language_creators"] == ["found"] and "back-translation" not in top["tags"]
    schema = pq.read_schema(tmp_path / "corpus" / "data" / "train-00000-of-00001.parquet")
    assert [feature["name"] for feature in top["dataset_info"][0]["features"]] == schema.names
    assert publish(tmp_path / "corpus", "org/corpus", dry_run=True).left_here == []


def test_pairs_of_a_machine_and_pairs_that_nobody_knows(tmp_path):
    make(tmp_path / "machine", made_by="machine")
    card = (tmp_path / "machine" / "README.md").read_text()
    assert "The translations are a machine's" in card and "machine-generated" in card
    assert "best hypothesis" not in card
    record = make(tmp_path / "unknown").record
    # The record is that of releases before there was a choice, which are still taken for built.
    assert "made_by" not in record.settings["pairs"]
    card = (tmp_path / "unknown" / "README.md").read_text()
    assert not OF_MACHINES.findall(body(card)), body(card)
    assert "it was not stated who or what wrote the second sentences" in card
    with pytest.raises(InputError, match="made_by must be one of machine, people, unknown, was 'me'"):
        make(tmp_path / "other", made_by="me")


def test_origin_is_what_was_mapped_to_it(tmp_path):
    make(tmp_path / "corpus")
    card = (tmp_path / "corpus" / "README.md").read_text()
    assert "| `origin` | string | what stands in the input's column 'system' (null where that is empty) |" in card
    (tmp_path / "t.tsv").write_text("a\tb\t0.5\tnews\n")
    columns = {"reference": 1, "translation": 2, "para_score": 3, "origin": 4}
    pairs = TabFile([tmp_path / "t.tsv"], columns, numbers={"para_score"}, optional={"origin"})
    import_pairs(pairs, tmp_path / "tab", scorer=None, release=RELEASE, engine=LOCAL)
    assert "what stands in the input's column number 4" in (tmp_path / "tab" / "README.md").read_text()


def test_title_description_and_uses(tmp_path):
    words = {"title": "Pairs | of\nmine", "description": "Mine, from [here](http://x)."}
    record = make(tmp_path / "corpus", replace(RELEASE, **words)).record
    assert (record.title, record.description) == (words["title"], words["description"])
    assert record.settings["release"]["title"] == words["title"]
    assert read_record(tmp_path / "corpus") == record
    card = release_card(record, picture=True)
    assert "\n# Pairs \\| of mine\n\nMine, from \\[here\\](http://x).\n\n2 pairs of English" in card
    assert yaml.safe_load(card.split("---\n")[1])["pretty_name"] == "Pairs | of mine"
    assert card.count("http://x") == 1 and "- **release**: license `mit`" in card
    assert "**Intended:**" in card and "**Out of scope:**" in card
    assert "Provenance: `id` counts the rows of the input" in card and "`origin` repeats what the input says" in card


def test_one_histogram(plain_record):
    drawn, typed = (release_card(plain_record, picture=picture) for picture in (True, False))
    assert "histograms.png" in drawn and "####" not in drawn
    assert "histograms.png" not in typed and "####" in typed


@pytest.mark.parametrize(
    "name", ["a|b", "`a`", "a](http://x)", "<script>alert(1)</script>", 'a"b', "a\n---\nlicense: mit", "```\nx", "$x"]
)
def test_a_name_stays_a_name(plain_record, name):
    record = replace(plain_record, name=name)
    card = release_card(record, picture=True)
    plain = release_card(replace(record, name="corpus"), picture=True)
    header, text = (card.split("\n---\n", 1)[part] for part in (0, 1))
    top = yaml.safe_load(header.removeprefix("---\n"))
    assert top["pretty_name"] == " ".join(name.split()) and top["license"] == "mit"
    # One line for each line of a card with a harmless name, and fences in the same places.
    assert len(text.split("\n")) == len(plain.split("\n---\n", 1)[1].split("\n"))
    for line, other in zip(text.split("\n"), plain.split("\n---\n", 1)[1].split("\n"), strict=True):
        assert line.startswith("```") == other.startswith("```")
    heading = next(line for line in text.split("\n") if line.startswith("# "))
    assert not re.search(r"(?<!\\)[|`\[\]<>]", heading)
    code = text.split("```python\n")[1].split("\n```")[0]
    compile(code, "card", "exec")


def test_another_wording_needs_no_other_release(tmp_path):
    folder = tmp_path / "corpus"
    first = make(folder)
    data = {path: path.read_bytes() for path in folder.rglob("*.parquet")}
    worded = replace(RELEASE, title="Words and | bars", description="A first try.")
    again = make(folder, worded)
    assert not again.fresh
    assert {path: path.read_bytes() for path in folder.rglob("*.parquet")} == data
    card = (folder / "README.md").read_text(encoding="utf8")
    assert "# Words and \\| bars" in card and "A first try." in card
    record = read_record(folder)
    assert (record.title, record.description) == ("Words and | bars", "A first try.")
    assert record == again.record
    (tmp_path / "other").mkdir()
    # The folder is the one that a build with this wording makes.
    other = make(tmp_path / "other" / "corpus", worded)
    assert (other.folder / "build.json").read_bytes() == (folder / "build.json").read_bytes()
    assert (other.folder / "README.md").read_bytes() == (folder / "README.md").read_bytes()
    make(folder)
    assert read_record(folder) == first.record
    with pytest.raises(InputError, match="made with other settings: .*keep_source"):
        make(folder, replace(worded, keep_source=True))
