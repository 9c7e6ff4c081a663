"""A syntactically controlled network is checked and laid out for the Hub; no Hub is needed."""

import json
import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from safetensors.torch import load_file, save_file

from paranmt_hf import About, ParaphraserConfig, ParaphraserTraining, load_paraphraser, publish
from paranmt_hf.cli import main
from paranmt_hf.corpus.jobs.engine import EngineConfig
from paranmt_hf.corpus.parsing.parse import parse_pairs
from paranmt_hf.corpus.parsing.trees import read_tree
from paranmt_hf.errors import InputError
from paranmt_hf.hub.upload import stage
from paranmt_hf.paraphrase.train import train_paraphraser
from tests.paraphrase.paraphraser_toys import SENTENCES
from tests.paraphrase.test_publish_paraphraser import EDITED, edit_record

NAME = "org/controlled"
TREES = ["(S (NP the man) (VP sees (NP a dog)) .)", "(S (VP sees) (NP him))"]


class Toy:
    """Gives one tree or the other."""

    at_once = None

    def __init__(self, name="stanza 1.9"):
        self.name = name

    def trees(self, sentences):
        return [read_tree(TREES[len(sentence) % 2]) for sentence in sentences]


@pytest.fixture(scope="module")
def parsed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("parsed")
    columns = {"reference": SENTENCES, "translation": SENTENCES[::-1]}
    pq.write_table(pa.table(columns), folder / "pairs.parquet")
    return parse_pairs(
        folder / "pairs.parquet", folder / "parsed", parser=Toy(), engine=EngineConfig("local", 1, 1)
    ).folder


def train(parsed, out):
    return train_paraphraser(
        parsed,
        out,
        config=ParaphraserConfig(model="controlled", pieces=330, embedding=8, hidden=8, tree_hidden=8),
        training=ParaphraserTraining(max_steps=1, held_out=0.2, device="cpu"),
    )


@pytest.fixture(scope="module")
def trained(parsed, tmp_path_factory):
    return train(parsed, tmp_path_factory.mktemp("trained") / "network").folder


@pytest.fixture
def model(trained, tmp_path):
    return shutil.copytree(trained, tmp_path / "network")


def test_it_is_laid_out(model):
    (model / "secrets.txt").write_text("mine")
    plan = publish(model, NAME, license="mit", about=About(datasets=["org/pairs"]), dry_run=True)
    names = {path.relative_to(model).as_posix() for path in model.rglob("*") if path.is_file()} - {"secrets.txt"}
    assert set(plan.parcel.files) == names and plan.left_here == ["secrets.txt"]
    assert {"templates.json", "parse-generator/model.safetensors", "modeling_paranmt_controlled.py"} < names
    head = yaml.safe_load(plan.card.split("---\n")[1])
    assert head["license"] == "mit" and head["datasets"] == ["org/pairs"]
    assert 'load_paraphraser("org/controlled")' in plan.card and plan.loader == "paranmt_hf.load_paraphraser"
    assert "Generates paraphrases of English sentences that have the syntax asked for" in plan.card
    assert "| `(S(NP)(VP))` |" in plan.card and "The trees are those of stanza 1.9." in plan.card
    assert "paranmt paraphrase train parsed --model controlled --pieces 330" in plan.card
    # Equal runs have equal cards in their folders.
    assert "seconds on `cpu`" in plan.card and "seconds" not in (model / "README.md").read_text()
    assert plan.missing == [
        "your own words on the data: 'data' in --about FILE",
        "your own words on the license text: 'license_text' in --about FILE",
    ]
    for name in ("parse-generator/modeling_paranmt_lstm.py", "parse-generator/config.json", "templates.json"):
        assert plan.parcel.owns(name)
    assert not plan.parcel.owns("parse-generator/mine.txt") and not plan.parcel.owns("mine.py")


def test_what_people_say_stands_in_the_card(model):
    said = {"summary": "A summary.", "data": "Some data.", "license_text": "Because.", "commands": ["do this"]}
    card = publish(model, NAME, license="mit", about=About(**said), dry_run=True).card
    for words in ("A summary.", "Some data.", "Because.", "```\ndo this\n```"):
        assert words in card
    assert "paraphrase train" not in card


def test_what_goes_is_a_network(model, tmp_path):
    plan = publish(model, NAME, license="mit", dry_run=True)
    stage(plan.parcel, tmp_path / "staged")
    # As it arrives elsewhere: files in the place of links.
    shutil.copytree(tmp_path / "staged", tmp_path / "sent")
    found = [
        load_paraphraser(folder, parser=Toy(), device="cpu", max_length=9)(SENTENCES[:3], templates=2)
        for folder in (model, tmp_path / "sent")
    ]
    assert found[0] == found[1] and any(found[0])


def _edit(path, **values):
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


def _break_weights(model):
    path = model / "parse-generator" / "model.safetensors"
    weights = load_file(path)
    first = next(iter(weights))
    save_file({**weights, first: weights[first] * float("nan")}, path, {"format": "pt"})


@pytest.mark.parametrize(
    ("spoil", "match"),
    [
        (
            lambda model: _edit(model / "paraphraser.json", parameters=7),
            "parameters [0-9]+, its paraphraser.json says 7",
        ),
        (
            lambda model: edit_record(model, "parses.tree_tokens", 7),
            "tree_tokens [0-9]+, its paraphraser.json says 7",
        ),
        (lambda model: _edit(model / "templates.json", **{"(S(S))": 1}), "templates 3, its paraphraser.json says 2"),
        (lambda model: (model / "parse-generator" / "other.py").write_text(""), "is code that is not this package's"),
        (
            lambda model: _edit(model / "parse-generator" / "config.json", auto_map={"AutoConfig": "you/x--y.Z"}),
            "parse-generator/config.json names the code 'you/x--y.Z'",
        ),
        (_break_weights, "holds weights that are not finite"),
        (lambda model: shutil.rmtree(model / "parse-generator"), "has no parse-generator, so it is incomplete"),
        (lambda model: (model / "templates.json").unlink(), "has no templates.json, so it is incomplete"),
    ],
)
def test_what_is_wrong_is_told(model, spoil, match):
    spoil(model)
    with pytest.raises(InputError, match=match):
        publish(model, NAME, license="mit", dry_run=True)


@pytest.mark.parametrize(("key", "value", "match"), [*EDITED, ("parses", [], r"an object under 'parses', found \[\]")])
def test_an_edited_record_is_damaged(model, key, value, match):
    edit_record(model, key, value)
    with pytest.raises(InputError, match=f"paraphraser.json is damaged: .*{match}"):
        publish(model, NAME, license="mit", dry_run=True)


def test_the_command(model, capsys):
    words = ["publish", str(model), NAME, "--dry-run", "--license", "mit"]
    assert main(words) == 0
    printed = capsys.readouterr().out
    assert "parse-generator/model.safetensors" in printed and "dry run: nothing was sent" in printed
    assert main([*words, "--results", "r.json"]) == 1
    assert "results are shown for encoders" in capsys.readouterr().err


def test_trees_of_another_parser_are_warned_of(model, caplog):
    load_paraphraser(model, parser=Toy("stanza 2.0"), device="cpu")
    load_paraphraser(model, parser=Toy("my own"), device="cpu")
    assert not caplog.records
    load_paraphraser(model, parser=Toy("link-grammar 5.12"), device="cpu")
    assert "was trained on trees of stanza 1.9 and gets those of link-grammar 5.12" in caplog.text
    assert "use the parser stanza" in caplog.text


def test_parsed_pairs_of_which_a_file_is_missing_are_refused(parsed, tmp_path):
    copy = shutil.copytree(parsed, tmp_path / "parsed")
    (path,) = copy.glob("pairs-*.parquet")
    table = pq.read_table(path)
    pq.write_table(table.slice(0, 9), path)
    with pytest.raises(InputError, match=r"pairs-00000-of-00001.parquet is missing or differs from its record"):
        train(copy, tmp_path / "out")
    assert not (tmp_path / "out.work").exists()


def test_fewer_than_one_template_is_refused(model):
    paraphraser = load_paraphraser(model, parser=Toy(), device="cpu", max_length=9)
    for count in (0, -1):
        with pytest.raises(InputError, match=f"templates must be at least 1, was {count}"):
            paraphraser(SENTENCES[:1], templates=count)
    with pytest.raises(InputError, match="expected templates, got none"):
        paraphraser(SENTENCES[:1], templates=[])


def test_a_file_of_trees_is_read_once_and_may_lack_a_sentence(model, tmp_path, monkeypatch):
    (tmp_path / "trees.tsv").write_text(f"{SENTENCES[0]}\t{TREES[0]}\n{SENTENCES[1]}\t{TREES[1]}\n")
    paraphraser = load_paraphraser(model, parser=tmp_path / "trees.tsv", device="cpu", max_length=9)
    (tmp_path / "trees.tsv").unlink()
    by_toy = load_paraphraser(model, parser=Toy(), device="cpu", max_length=9)
    monkeypatch.setattr(Toy, "trees", lambda self, sentences: [read_tree(TREES[0])])
    found = paraphraser(SENTENCES[:1])
    assert found == by_toy(SENTENCES[:1]) and found[0]
    (result,) = paraphraser.paraphrase(SENTENCES[5:6])
    assert (result.paraphrases, result.note) == ([], "no tree")
