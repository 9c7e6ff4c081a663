"""What trainings of paraphrasers refuse before any work, and what they make of a work folder that was spoiled."""

import shutil

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paranmt_hf import (
    InputError,
    ParaphraseConfig,
    Paraphraser,
    ParaphraserConfig,
    ParaphraserTraining,
    train_paraphraser,
)
from paranmt_hf.cli import main
from paranmt_hf.errors import DivergedError, OtherSettingsError
from paranmt_hf.paraphrase import trainer
from tests.paraphrase.paraphraser_toys import FINDS, NOUNS, SENTENCES, stopped_training, write_bart
from tests.refused import refused

SMALL = ParaphraserConfig(pieces=330, embedding=8, hidden=8)
TREES = ParaphraserConfig(model="controlled", pieces=330, embedding=8, hidden=8, tree_hidden=8, same_template=True)
TREE = "(S(NP)(VP(NP))(.))"


def training(**settings):
    given = {"epochs": 30, "batch_tokens": 300, "held_out": 0, "checkpoint_seconds": 0, "device": "cpu"}
    return ParaphraserTraining(**{**given, **settings})


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    path = tmp_path_factory.mktemp("pairs") / "pairs.parquet"
    columns = {"reference": SENTENCES, "translation": SENTENCES[::-1]}
    trees = {f"{side}_parse": [TREE] * len(SENTENCES) for side in columns}
    pq.write_table(pa.table({**columns, **trees}), path)
    return path


@pytest.mark.slow
def test_bad_data_is_refused_and_nothing_left(pairs, tmp_path):
    def train(data, **settings):
        train_paraphraser(data, tmp_path / "out", config=SMALL, training=training(**settings))

    with refused():
        train("nothing")
    with refused():
        train(pairs, max_pieces=3)
    with refused(kind=DivergedError):
        train(pairs, learning_rate=1e30)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("text")
    with refused("out", path=tmp_path / "out"):
        train(pairs)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_where_to_report_is_checked_before_any_work(tmp_path):
    with refused("report_to"):
        train_paraphraser("missing", tmp_path / "out", config=SMALL, training=training(report_to="nowhere"))
    assert not list(tmp_path.iterdir())


def test_several_processes_are_refused(pairs, tmp_path, monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    with refused():
        train_paraphraser(pairs, tmp_path / "out", config=SMALL, training=training())


def test_no_sentence_is_longer_than_the_positions_of_a_base(tmp_path):
    write_bart(tmp_path / "bart", 32)
    long = "the man sees a dog . " * 12
    pq.write_table(pa.table({"reference": [long] * 9, "translation": ["a dog"] * 9}), tmp_path / "pairs.parquet")
    base = ParaphraserConfig(base=str(tmp_path / "bart"))
    with refused("max_pieces"):
        train_paraphraser(tmp_path / "pairs.parquet", tmp_path / "out", config=base, training=training())
    paraphraser = Paraphraser(tmp_path / "bart", ParaphraseConfig(device="cpu"))
    (result,) = paraphraser.paraphrase([long])
    assert result.note == "over 32 pieces"
    # Nor is what comes out of random weights, which find no end.
    (result,) = paraphraser.paraphrase(["a dog"])
    assert result.paraphrases


@pytest.fixture(scope="module")
def interrupted(pairs, tmp_path_factory):
    """The work folder of a training that was stopped in step 45, with checkpoints of steps 20 and 40."""
    out = tmp_path_factory.mktemp("interrupted") / "out"
    with stopped_training():
        train_paraphraser(pairs, out, config=SMALL, training=training())
    return out.with_name("out.work")


@pytest.fixture
def checkpoints(interrupted, tmp_path):
    """A copy of it; the folder of the checkpoints."""
    return shutil.copytree(interrupted, tmp_path / "out.work") / "paraphrases" / "trainer"


@pytest.mark.parametrize(
    "name", ["optimizer.pt", "trainer_state.json", "rng_state.pth", "weights.safetensors", "complete", "files.json"]
)
def test_a_damaged_checkpoint_is_named(pairs, tmp_path, checkpoints, name):
    checkpoint = checkpoints / "checkpoint-40"
    content = (checkpoint / name).read_bytes()
    (checkpoint / name).write_bytes(content[: len(content) // 2] + bytes(len(content) - len(content) // 2))
    with refused() as caught:
        train_paraphraser(pairs, tmp_path / "out", config=SMALL, training=training())
    assert str(checkpoint / name) in str(caught.value)


@pytest.mark.slow
def test_without_the_damaged_checkpoint_the_one_before_counts(pairs, tmp_path, checkpoints):
    whole = train_paraphraser(pairs, tmp_path / "whole", config=SMALL, training=training()).folder
    shutil.rmtree(checkpoints / "checkpoint-40")
    done = train_paraphraser(pairs, tmp_path / "out", config=SMALL, training=training()).folder
    assert (done / "model.safetensors").read_bytes() == (whole / "model.safetensors").read_bytes()


@pytest.mark.slow
def test_an_incomplete_checkpoint_displaces_no_complete_one(pairs, tmp_path, checkpoints):
    shutil.rmtree(checkpoints / "checkpoint-20")
    (checkpoints / "checkpoint-40" / "complete").unlink()
    (checkpoints / "checkpoint-40").rename(checkpoints / "checkpoint-900")
    with stopped_training():
        train_paraphraser(pairs, tmp_path / "out", config=SMALL, training=training())
    assert sorted(path.name for path in checkpoints.iterdir()) == ["checkpoint-20", "checkpoint-40"]


@pytest.mark.slow
def test_a_trained_parse_generator_stays_whatever_comes_then(pairs, tmp_path, monkeypatch):
    original, steps = trainer.train_pieces, []

    def diverging(*given, label):
        steps.append(label)
        if label == "train paraphrases" and steps.count(label) == 1:
            raise InputError("training diverged")
        return original(*given, label=label)

    monkeypatch.setattr("paranmt_hf.paraphrase.fit.train_pieces", diverging)
    settings = training(max_steps=2, checkpoint_seconds=600)
    with refused():
        train_paraphraser(pairs, tmp_path / "out", config=TREES, training=settings)
    folder = train_paraphraser(pairs, tmp_path / "out", config=TREES, training=settings).folder
    assert steps == ["train parses", "train paraphrases", "train paraphrases"]
    whole = train_paraphraser(pairs, tmp_path / "whole" / "out", config=TREES, training=settings).folder
    for name in ("config.json", "parse-generator/config.json", "README.md", "parse-generator/model.safetensors"):
        assert (folder / name).read_bytes() == (whole / name).read_bytes()


@pytest.mark.slow
def test_sentences_of_test_sets_are_left_out_of_parsed_pairs(pairs, tmp_path, capsys, caplog):
    caplog.set_level("INFO")
    (tmp_path / "sets.txt").write_text(f"{SENTENCES[0].upper()}!\nsomething else\n")
    # It is a reference once, and a translation once.
    wanted = len(SENTENCES) - 2
    settings = {"config": TREES, "training": training(max_steps=1, checkpoint_seconds=600)}
    done = train_paraphraser(pairs, tmp_path / "out", exclude=tmp_path / "sets.txt", **settings)
    assert done.record.pairs == wanted
    assert "2 with an excluded sentence" in caplog.text
    assert done.record.settings.data["unwanted_sentences"] == 2
    assert "--exclude SETS --out FOLDER" in (done.folder / "README.md").read_text()
    with refused("out", kind=OtherSettingsError):
        train_paraphraser(pairs, tmp_path / "out", **settings)
    words = ["paraphrase", "train", str(pairs), "--model", "controlled", "--out", str(tmp_path / "command")]
    words += ["--architecture", "pieces=330,embedding=8,hidden=8,tree_hidden=8,same_template=true"]
    words += ["--max-steps", "1", "--held-out", "0"]
    assert main([*words, "--exclude", str(tmp_path / "sets.txt")]) == 0
    assert f"  {wanted:,} pairs, 0 held out" in capsys.readouterr().out


def test_data_here_have_the_name_of_their_folder(pairs, tmp_path, monkeypatch):
    (tmp_path / "data").mkdir()
    shutil.copy(pairs, tmp_path / "data")
    monkeypatch.chdir(tmp_path / "data")
    done = train_paraphraser(".", tmp_path / "out", config=SMALL, training=training(max_steps=1))
    assert done.record.inputs == {"data": "data"}
    assert "\nparanmt paraphrase train data --architecture pieces" in (done.folder / "README.md").read_text()


@pytest.mark.slow
def test_200_pairs_are_learned_by_heart(tmp_path):
    """Overfitting: all targets come back, and the loss goes to zero."""
    words, random = [*NOUNS, *FINDS, "the", "a", "some", "with", "red", "blue", "old", "new"], np.random.default_rng(1)
    sides = [[" ".join(random.choice(words, random.integers(3, 7))) for _ in range(200)] for _ in range(2)]
    path = tmp_path / "pairs.parquet"
    pq.write_table(pa.table({"reference": sides[0], "translation": sides[1]}), path)
    config = ParaphraserConfig(pieces=400, embedding=64, hidden=64, dropout=0.0)
    settings = ParaphraserTraining(
        epochs=100,
        held_out=0,
        label_smoothing=0.0,
        batch_tokens=100,
        learning_rate=5e-3,
        warmup=50,
        evaluations=2,
        device="cpu",
    )
    done = train_paraphraser(path, tmp_path / "out", config=config, training=settings)
    assert done.record.course.losses[-1][1] < 0.05
    found = done.load()(sides[1])
    assert np.mean([own[0].text == target for own, target in zip(found, sides[0], strict=True)]) > 0.98
