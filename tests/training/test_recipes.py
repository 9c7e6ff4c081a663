"""Recipes: they are the commands of the cards, ask for what they need, and run on small data."""

import json
import re
import shlex
from pathlib import Path

import pytest
import yaml

from paranmt_hf import EncoderConfig, PairSelection, TrainConfig, load
from paranmt_hf.cli import main
from paranmt_hf.hub.repository import LANGUAGES_OF
from paranmt_hf.training import average
from paranmt_hf.training import train as workflow
from paranmt_hf.training.recipe import read_recipe, recipe_names
from paranmt_hf.training.record import TrainingRecord
from tests.cli.commands import fails, kept_options, recorded_options
from tests.training.test_record import TRAINING
from tests.training.toys import synonyms, write_data

CARDS = Path(__file__).parents[2] / "model_cards"
# What a user brings, or chooses for one run; evaluations are those on a development set.
OWN = {"data", "vectors", "teacher", "init-from", "development", "evaluations", "exclude", "recipe", "model"}
OWN |= {"first-pairs", "max-pairs", "text", "device"}


def options(*words):
    return kept_options(["train", "--out", "out", *words])


def settings(found):
    return {name: value for name, value in found.items() if name not in OWN}


def test_there_is_one_for_each_card():
    # Encoders that `paranmt distill` made need none: their cards have the one command.
    made = {path.stem: json.loads(path.read_text(encoding="utf8"))["commands"] for path in CARDS.glob("*.json")}
    distilled = {name for name, commands in made.items() if any("paranmt distill" in each for each in commands)}
    assert distilled == {*LANGUAGES_OF} - {"small", "base"}
    assert recipe_names() == sorted({*made} - distilled)


@pytest.mark.parametrize("name", recipe_names())
def test_it_is_what_the_card_did(name, tmp_path):
    commands = json.loads((CARDS / f"{name}.json").read_text(encoding="utf8"))["commands"]
    card, *others = (options(*shlex.split(command)[2:]) for command in commands if command.startswith("paranmt train"))
    recipe, own = read_recipe(name), options("--recipe", name)
    # The same with another seed, whose weights are averaged with the first one's.
    others = [each for each in others if settings(each) | {"seed": card["seed"]} != settings(card)]
    assert own["model"] == card["model"]
    assert settings(own) == settings(card)
    assert ("vectors" in card) == ("vectors" in recipe.needs) and "teacher" in card
    assert ("text" in card) == ("text" in recipe.needs)
    assert len(others) == bool(recipe.then)
    if not others:
        return
    (tmp_path / "then.yaml").write_text(yaml.safe_dump(dict(recipe.then)))
    then, done = options("--data", "x", "--config", str(tmp_path / "then.yaml")), others[0]
    assert settings(then) == settings(done)
    assert then["max-pairs"] == done["first-pairs"]


@pytest.mark.parametrize("page", ["README.md", "docs/training.md"])
def test_what_is_documented_gives_all_that_is_needed(page):
    text = (CARDS.parent / page).read_text(encoding="utf8")
    commands = re.findall(r"paranmt train --recipe (\S+) ([^`\n]+)", text)
    assert commands
    for name, rest in commands:
        assert {f"--{option}" for option in read_recipe(name).needs} <= set(rest.split())


def test_the_guide_names_all():
    text = (CARDS.parent / "docs" / "training.md").read_text(encoding="utf8")
    named = text.partition("`--recipe` is one of ")[2].partition(":")[0]
    assert sorted(re.findall(r"`(\S+)`", named)) == recipe_names()


def test_what_is_missing_is_asked_for_by_name(capsys):
    command = ["train", "--recipe", "word-trigram", "--out", "o"]
    fails(
        capsys,
        [*command, "--teacher", "t"],
        "needs --data, --text and --vectors",
    )
    fails(capsys, command, "--teaching neighbours is about a teacher's similarities; name one with --teacher")
    fails(capsys, ["train", "--recipe", "best", "--data", "x", "--out", "o"], "--recipe must be one of base, lstm, ")


@pytest.mark.slow
def test_it_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write_data(tmp_path / "pairs.parquet", synonyms(300))
    (tmp_path / "vectors.txt").write_text("left1 1 0\nright1 0 1\n")
    small = ["--dimension", "2", "--architecture", "trigram_dimension=4,min_count=1", "--batch-size", "20"]
    command = ["train", "--recipe", "word-trigram", "--data", "pairs.parquet", "--vectors", "vectors.txt"]
    (tmp_path / "text.txt").write_text("one more sentence\nand another\n")
    command += ["--text", "text.txt", "--teacher", "small", *small, "--out", "out"]
    assert main(command) == 0
    told = capsys.readouterr().out
    assert "out: 6 dimensions" in told
    # The margin loss, whose history is shown, is of pairs alone.
    assert "  300 pairs in " in told
    assert load("out").encode("left1 left2").shape == (6,)
    record = json.loads((tmp_path / "out" / "training.json").read_text())
    assert [part["name"] for part in record["mean_of"]] == ["1-teacher", "2-margin"]
    assert record["settings"]["training"]["learning_rate"] == 0.0003
    kept = recorded_options(tmp_path / "out" / "training.json")
    step = json.loads((tmp_path / "out.steps" / "1-teacher" / "training.json").read_text())
    assert step["options"] == {}, "it alone is not the result of the command"
    assert kept["recipe"] == "word-trigram" and kept["dimension"] == 2 and kept["neighbours"] is True
    assert main(command) == 0
    assert "(was trained already)" in capsys.readouterr().out
    fails(capsys, [*command, "--seed", "2"], "1-teacher was made with other settings")
    (tmp_path / "out").rename(tmp_path / "other")
    fails(capsys, [*command[:-1], "other", "--seed", "2"], "other was made with other settings")


def test_a_folder_that_cannot_be_the_result_is_refused_before_the_work(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    command = ["train", "--recipe", "trigram", "--data", "none", "--teacher", "small", "--out"]
    (tmp_path / "other").mkdir()
    record = TRAINING.to_json()
    (tmp_path / "other" / "training.json").write_text(json.dumps(record))
    fails(capsys, [*command, "other"], "choose another path")
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "notes.txt").touch()
    fails(capsys, [*command, "notes"], "was not made by this command")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["notes", "other"]


def test_of_several_processes_the_first_one_averages(tmp_path, monkeypatch):
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    steps, out, record = [], tmp_path / "out", TRAINING.to_json()

    def averaged_elsewhere(device):
        out.mkdir()
        (out / "training.json").write_text(json.dumps(record))

    def twice(*arguments):
        raise AssertionError("averaged by two processes")

    monkeypatch.setattr(average, "average_encoders", twice)
    monkeypatch.setattr(workflow, "wait_for_all", averaged_elsewhere)
    settings = EncoderConfig(vectors="v"), TrainConfig(teacher="t"), PairSelection(), {"text": None}
    monkeypatch.setattr(workflow, "train", lambda data, out, **options: steps.append(out.name))
    workflow._train_recipe("trigram", "d", out, *settings)
    assert steps == ["1-teacher", "2-margin"]
    assert TrainingRecord.read(out).pairs == TRAINING.pairs


def test_text_alone(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "vectors.txt").write_text("one 1 0\nmore 0 1\n")
    (tmp_path / "text.txt").write_text("\n".join(f"sentence {number} has more" for number in range(60)))
    command = ["train", "--recipe", "small", "--text", "text.txt", "--vectors", "vectors.txt"]
    command += ["--teacher", "small", "--dimension", "2", "--batch-size", "20", "--out", "out"]
    assert main(command) == 0
    assert "out: 2 dimensions" in capsys.readouterr().out
    record = json.loads((tmp_path / "out" / "training.json").read_text())
    assert record["settings"]["training"]["teacher_loss"] == "listwise" and not record.get("mean_of")
    assert not (tmp_path / "out.steps").exists()
