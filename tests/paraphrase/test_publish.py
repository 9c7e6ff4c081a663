"""Both kinds of paraphrasers are checked and laid out for the Hub; no Hub is needed."""

import json
import re
import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from safetensors.torch import load_file, save_file

from paranmt_hf import (
    ParaphraseConfig,
    Paraphraser,
    ParaphraserConfig,
    ParaphraserTraining,
    parse_pairs,
    publish,
    train_paraphraser,
)
from paranmt_hf.cli import main
from paranmt_hf.corpus.parsing.trees import read_tree
from paranmt_hf.paraphrase.card import paraphraser_card
from paranmt_hf.paraphrase.evaluate import MeasuredSentences, evaluate_paraphrases
from tests.paraphrase.paraphraser_toys import LOCAL, SENTENCES
from tests.refused import refused

NAME = "org/mine"
TREES = ["(S (NP the man) (VP sees (NP a dog)) .)", "(S (VP sees) (NP him))"]
TRAINING = ParaphraserTraining(max_steps=1, held_out=0.2, device="cpu")
SIZES = {"pieces": 330, "embedding": 8, "hidden": 8}
CONTROLLED = ParaphraserConfig(model="controlled", tree_hidden=8, same_template=True, **SIZES)


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
    path = folder / "pairs.parquet"
    pq.write_table(pa.table({"reference": SENTENCES, "translation": SENTENCES[::-1]}), path)
    return parse_pairs(path, folder / "parsed", parser=Toy(), engine=LOCAL).folder


@pytest.fixture(scope="module")
def trained(parsed, tmp_path_factory):
    folder = tmp_path_factory.mktemp("trained")
    (folder / "sets.txt").write_text(f"{SENTENCES[0]}!\n")
    settings = {"training": TRAINING, "exclude": folder / "sets.txt"}
    plain = train_paraphraser(parsed, folder / "plain", config=ParaphraserConfig(**SIZES), **settings)
    controlled = train_paraphraser(parsed, folder / "controlled", config=CONTROLLED, **settings)
    assert plain.record.pairs + plain.record.held_out == len(SENTENCES) - 2
    return {"plain": plain.folder, "controlled": controlled.folder}


@pytest.fixture
def plain(trained, tmp_path):
    return shutil.copytree(trained["plain"], tmp_path / "plain")


@pytest.fixture
def controlled(trained, tmp_path):
    return shutil.copytree(trained["controlled"], tmp_path / "controlled")


def load(folder, parser="stanza 1.9"):
    return Paraphraser.from_pretrained(folder, parser=Toy(parser), device="cpu", max_length=9)


@pytest.mark.parametrize("kind", ["plain", "controlled"])
def test_it_is_laid_out(trained, tmp_path, kind):
    model = shutil.copytree(trained[kind], tmp_path / kind)
    (model / "secrets.txt").write_text("mine")
    (model / "modeling_paranmt_lstm.py").write_text("import os")
    plan = publish(model, NAME, license="mit", about={"datasets": ["org/pairs"]}, dry_run=True)
    names = {path.relative_to(model).as_posix() for path in model.rglob("*") if path.is_file()} - {"secrets.txt"}
    assert set(plan.repository.files) == names and plan.left_here == ["secrets.txt"]
    head = yaml.safe_load(plan.card.split("---\n")[1])
    assert head["license"] == "mit" and head["datasets"] == ["org/pairs"] and head["library_name"] == "transformers"
    assert 'Paraphraser.from_pretrained("org/mine")' in plan.card and "published under mit" not in plan.card
    # The code is that of the package.
    assert b"class ParaNMTLstmForConditionalGeneration" in plan.repository.files["modeling_paranmt_lstm.py"]
    more = "" if kind == "plain" else " --model controlled"
    shape = "pieces=330,embedding=8,hidden=8" + ("" if kind == "plain" else ",tree_hidden=8,same_template=true")
    line = next(line for line in plan.card.split("\n") if line.startswith("paranmt paraphrase train"))
    assert line == (
        f"paranmt paraphrase train parsed{more} --architecture {shape} --max-steps 1 --learning-rate 0.001 "
        "--held-out 0.2 --device cpu --exclude SETS --out FOLDER"
    )
    # Equal runs have equal cards in their folders.
    assert "seconds on `cpu`" in plan.card and "seconds" not in (model / "README.md").read_text()
    assert plan.missing == [
        "your own words on the data: 'data' in --about FILE",
        "your own words on the license text: 'license_text' in --about FILE",
    ]
    assert plan.repository.owns("modeling_paranmt_lstm.py") and not plan.repository.owns("mine.txt")
    assert not plan.repository.owns("parse-generator/mine.txt") and not plan.repository.owns("mine.py")
    if kind == "controlled":
        assert {"templates.json", "parse-generator/model.safetensors", "modeling_paranmt_controlled.py"} < names
        assert "Generates paraphrases of English sentences that have the syntax asked for" in plan.card
        assert "| `(S(NP)(VP))` |" in plan.card and "The trees are those of stanza 1.9." in plan.card
        for name in ("parse-generator/modeling_paranmt_lstm.py", "parse-generator/config.json", "templates.json"):
            assert plan.repository.owns(name)


@pytest.mark.slow
def test_what_people_say_is_in_the_card(controlled):
    said = {"summary": "A summary.", "data": "Some data.", "license_text": "Because.", "commands": ["do this"]}
    card = publish(controlled, NAME, license="mit", about=said, dry_run=True).card
    for words in ("A summary.", "Some data.", "Because.", "```\ndo this\n```"):
        assert words in card
    assert "paraphrase train" not in card


@pytest.mark.slow
def test_figures_of_an_evaluation_are_on_the_card(plain, controlled, tmp_path):
    (tmp_path / "noisy.tsv").write_text("".join(f"{text}\t{text}x\n" for text in SENTENCES[:4]))
    results = evaluate_paraphrases(
        [plain],
        data=tmp_path / "noisy.tsv",
        sentences=MeasuredSentences(noise=0),
        decoding=ParaphraseConfig(max_length=9),
    )
    path = tmp_path / "figures.json"
    results.write(path)
    plan = publish(plain, NAME, license="mit", results=path, dry_run=True)
    assert results[0].settings["command"] in plan.card
    assert re.search(r"^\| noisy *\| output *\| clean *\|\n\| -+ \| -+ \| -+ \|$", plan.card, re.M)
    values = json.loads(json.dumps(plan.values))
    assert paraphraser_card(values) == plan.card and values["evaluations"] == results.to_json()
    with refused("results"):
        publish(controlled, NAME, license="mit", results=results, dry_run=True)


@pytest.mark.slow
def test_what_is_sent_is_a_network(controlled, tmp_path):
    plan = publish(controlled, NAME, license="mit", dry_run=True)
    for path, content in plan.repository.files.items():
        (tmp_path / "sent" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "sent" / path).write_bytes(content if isinstance(content, bytes) else content.read_bytes())
    load(controlled).save_pretrained(tmp_path / "saved")
    found = [
        load(folder)(SENTENCES[:3], templates=2) for folder in (controlled, tmp_path / "sent", tmp_path / "saved")
    ]
    assert found[0] == found[1] == found[2] and any(found[0])


def _edit(path, **values):
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


def _break_weights(folder):
    path = folder / "model.safetensors"
    weights = load_file(path)
    first = next(iter(weights))
    save_file({**weights, first: weights[first] * float("nan")}, path, {"format": "pt"})


def edit_record(folder, key, value):
    """Write another value at a place such as `settings.data` of the record of a model."""
    path = folder / "paraphraser.json"
    inner = values = json.loads(path.read_text())
    *parents, last = key.split(".")
    for name in parents:
        inner = inner[name]
    inner[last] = value
    path.write_text(json.dumps(values))


OTHER_CODE = {"AutoConfig": "you/x--y.Z"}
SPOILED = {
    "another model": lambda folder: edit_record(folder, "parameters", 7),
    "damaged record": lambda folder: edit_record(folder, "settings.training.direction", "sideways"),
    "code": lambda folder: (folder / "other.py").write_text(""),
    "pickle": lambda folder: (folder / "pytorch_model.bin").write_bytes(b""),
    "other code": lambda folder: _edit(folder / "config.json", auto_map=OTHER_CODE),
    "other code in a list": lambda folder: _edit(folder / "generation_config.json", auto_map=["you/x--y.Z"]),
    "NaN": _break_weights,
    "no weights": lambda folder: (folder / "model.safetensors").unlink(),
}
SPOILED_NETWORKS = {
    "code": lambda folder: (folder / "parse-generator" / "other.py").write_text(""),
    "other code": lambda folder: _edit(folder / "parse-generator" / "config.json", auto_map=OTHER_CODE),
    "NaN": lambda folder: _break_weights(folder / "parse-generator"),
    "no parse generator": lambda folder: shutil.rmtree(folder / "parse-generator"),
    "no templates": lambda folder: (folder / "templates.json").unlink(),
}


@pytest.mark.parametrize("spoil", SPOILED.values(), ids=SPOILED)
def test_a_spoiled_model_is_refused(plain, spoil):
    spoil(plain)
    with refused():
        publish(plain, NAME, license="mit", dry_run=True)


@pytest.mark.parametrize("spoil", SPOILED_NETWORKS.values(), ids=SPOILED_NETWORKS)
def test_a_spoiled_network_is_refused(controlled, spoil):
    spoil(controlled)
    with refused():
        publish(controlled, NAME, license="mit", dry_run=True)


@pytest.mark.slow
def test_the_command(controlled, capsys, tmp_path):
    (tmp_path / "about.yaml").write_text("notes: For *news*.")
    words = ["publish", str(controlled), NAME, "--dry-run", "--license", "mit"]
    words += ["--about", str(tmp_path / "about.yaml")]
    assert main(words) == 0
    printed = capsys.readouterr().out
    assert "## Notes\n\nFor *news*.\n\n## Citation" in printed and "dry run: nothing was sent" in printed
    assert "parse-generator/model.safetensors" in printed
    assert main([*words, "--results", "r.json"]) == 1
    assert "r.json" in capsys.readouterr().err


@pytest.mark.slow
def test_trees_of_another_parser_are_warned_of(controlled, caplog):
    load(controlled, "stanza 2.0")
    load(controlled, "my own")
    assert not caplog.records
    load(controlled, "link-grammar 5.12")
    assert "was trained on trees of stanza 1.9 and gets those of link-grammar 5.12" in caplog.text
    assert "use the parser stanza" in caplog.text


def test_parsed_pairs_of_which_a_file_is_missing_are_refused(parsed, tmp_path):
    copy = shutil.copytree(parsed, tmp_path / "parsed")
    (path,) = copy.glob("pairs-*.parquet")
    table = pq.read_table(path)
    pq.write_table(table.slice(0, 9), path)
    with refused(path=path):
        train_paraphraser(copy, tmp_path / "out", config=CONTROLLED, training=TRAINING)
    assert not (tmp_path / "out.work").exists()


@pytest.mark.slow
def test_a_file_of_trees_is_read_once_and_may_lack_a_sentence(controlled, tmp_path):
    (tmp_path / "trees.tsv").write_text(f"{SENTENCES[0]}\t{TREES[0]}\n{SENTENCES[1]}\t{TREES[1]}\n")
    paraphraser = Paraphraser.from_pretrained(controlled, parser=tmp_path / "trees.tsv", device="cpu", max_length=9)
    paraphraser(SENTENCES[:1])
    (tmp_path / "trees.tsv").unlink()
    found = paraphraser(SENTENCES[:1])

    class First(Toy):
        def trees(self, sentences):
            return [read_tree(TREES[0])]

    other = Paraphraser.from_pretrained(controlled, parser=First(), device="cpu", max_length=9)
    assert found == other(SENTENCES[:1], has_template=False) and found[0]
    (result,) = paraphraser.paraphrase(SENTENCES[5:6])
    assert (result.paraphrases, result.note) == ([], "no tree")
