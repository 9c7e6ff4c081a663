"""`paranmt supervise`, from Python and from the command line."""

import json
import shutil

import numpy as np
import pytest
import torch

from paranmt_hf import EncoderConfig, SuperviseConfig, SupervisedModel, load, publish, supervise
from paranmt_hf.cli import main
from paranmt_hf.encoders.saving import save
from paranmt_hf.evaluation.correlation import pearson, spearman
from paranmt_hf.evaluation.transfer_data import read_tasks
from paranmt_hf.supervised import task
from paranmt_hf.supervised.config import SupervisedRecord
from paranmt_hf.text.word_vectors import WordVectors, write_vectors
from paranmt_hf.util.tables import percent
from tests.cli.commands import fails
from tests.evaluation.toys import SICK_HEADER, WORDS, write, write_all
from tests.refused import refused
from tests.toys import bytes_of
from tests.training.toys import encoder_of

SMALL = {"epochs": 3, "hidden": 4, "learning_rate": 0.05}
TINY = ["--epochs", "1", "--head", "hidden=2", "--encoder", "dimension=4"]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Tasks, encoders and a file of word vectors, which no test changes."""
    folder = tmp_path_factory.mktemp("supervise")
    write_all(folder / "senteval", items=20)
    sentences = [f"{word} of number {item}" for word in WORDS for item in range(21)]
    for model in ("word", "word,trigram", "projection", "lstm"):
        save(encoder_of((sentences, sentences), model=model, dimension=6), folder / model)
    write_vectors(folder / "v.txt", WordVectors([*WORDS, "of"], np.eye(7, dtype=np.float32)))
    return folder


@pytest.fixture
def folder(made, tmp_path, monkeypatch):
    """An empty folder to work in; `made` lies beside."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(made, out, task="SICK-R", start=None, **settings):
    encoder = EncoderConfig(init_from=str(made / start)) if start else EncoderConfig(dimension=6)
    return supervise(made / "senteval", out, config=SuperviseConfig(task, **{**SMALL, **settings}), encoder=encoder)


def recomputed(made, folder, task, part):
    """Figures of a model as somebody reaches them who loads it."""
    (found,), _ = read_tasks(made / "senteval", [task])
    items, model = found.parts[part], SupervisedModel.from_pretrained(folder)
    predicted = model.predict(*items.sides)
    if task != "SICK-R":
        classes = np.array(model.head.config.classes)
        return {"accuracy": float(np.mean(predicted == classes[items.labels]))}
    assert predicted.min() >= 1 and predicted.max() <= 5
    error = float(np.mean((predicted - items.labels) ** 2))
    return {"pearson": pearson(predicted, items.labels), "spearman": spearman(predicted, items.labels), "mse": error}


@pytest.mark.parametrize(
    ("task", "start", "settings"),
    [
        ("SICK-R", None, {}),
        ("SICK-R", "word,trigram", {"way": "initialised"}),
        ("SICK-R", "lstm", {"way": "fixed", "projection": 12}),
        ("SICK-E", "lstm", {}),
        ("SST2", "word", {"way": "fixed"}),
        ("SST5", None, {"epochs": 20}),
    ],
)
def test_what_is_loaded_predicts_what_was_reached(made, folder, task, start, settings):
    done = run(made, folder / "out", task, start, **settings)
    for part in ("dev", "test"):
        assert done.record.figures[part] == pytest.approx(recomputed(made, folder / "out", task, part), abs=1e-5)
    reached = [epoch.development for epoch in done.record.epochs]
    assert done.record.best_epoch == 1 + reached.index(max(reached))
    assert done.record.figures["dev"][next(iter(done.record.figures["dev"]))] == pytest.approx(max(reached), abs=1e-6)
    assert done.record.items == {"train": 20, "dev": 20, "test": 20}
    assert done.record == SupervisedRecord.read(folder / "out") and done.fresh
    assert not list(folder.glob(".*")) and not (folder / "out.work").exists()
    if start and settings.get("way") == "fixed":
        # The encoder is the same, and so are its vectors.
        np.testing.assert_array_equal(load(folder / "out").encode("one of"), load(made / start).encode("one of"))


def test_something_is_learned(made, folder):
    """The toys name their class four times in five."""
    done = run(made, folder / "out", "SST2", None, epochs=10)
    assert done.record.figures["test"]["accuracy"] >= 0.85
    assert list(done.load().predict(["one of number 3", "zero of number 4"])) == ["positive", "negative"]
    assert done.record.epochs[-1].loss < done.record.epochs[0].loss


def test_the_same_command_gives_the_same_bytes_and_is_not_repeated(made, folder):
    first = run(made, folder / "one", "SICK-E", "word,trigram")
    run(made, folder / "two", "SICK-E", "word,trigram")
    assert bytes_of(folder / "one") == bytes_of(folder / "two")
    again = run(made, folder / "one", "SICK-E", "word,trigram")
    assert not again.fresh and again.record == first.record
    with refused("out", path=folder / "one"):
        run(made, folder / "one", "SICK-E", "word,trigram", seed=2)
    other = run(made, folder / "three", "SICK-E", "word,trigram", seed=2)
    assert other.record.epochs != first.record.epochs


@pytest.mark.parametrize(("start", "way"), [(None, "scratch"), ("lstm", "regularised")])
def test_an_interrupted_command_continues_to_the_same_bytes(
    made, folder, checkpoint_always, killed_after, counting, start, way
):
    """Of three epochs with one step each, the third is interrupted where it is measured."""
    run(made, folder / "whole", "SICK-E", start, way=way)
    killed_after(2, run, made, folder / "out", "SICK-E", start, kind=task, name="figures_of", way=way)
    with refused(path=folder / "out.work"):
        run(made, folder / "out", "SICK-E", start, way=way, seed=2)
    found, measured = counting(task, "figures_of", run, made, folder / "out", "SICK-E", start, way=way)
    # The third epoch once more, and both parts at the end.
    assert found.fresh and measured == 3
    assert bytes_of(folder / "whole") == bytes_of(folder / "out")
    assert not (folder / "out.work").exists()


def test_pulled_back_with_all_might_it_stays(made, folder):
    strong = {"lambda_w": 1e4, "lambda_c": 1e4, "learning_rate": 1e-5}
    run(made, folder / "out", "SICK-R", "projection", **strong)
    np.testing.assert_allclose(load(folder / "out").encode(WORDS), load(made / "projection").encode(WORDS), atol=1e-3)
    free = run(made, folder / "free", "SICK-R", "projection", way="initialised")
    assert np.abs(free.load().encoder.encode(WORDS) - load(made / "projection").encode(WORDS)).max() > 0.05


def test_words_of_the_development_items_are_not_learned_from(made, folder):
    """From scratch an encoder knows the words of the training items and those of the file of vectors."""
    write_all(folder / "senteval", items=5)
    (folder / "senteval" / "SST" / "binary" / "sentiment-test").write_text("secret word\t0\nzero five\t1\n")
    config = SuperviseConfig("SST2", **SMALL)
    known = {}
    for name, encoder in {
        "own": EncoderConfig(dimension=4),
        "file": EncoderConfig(vectors=str(made / "v.txt")),
    }.items():
        done = supervise(folder / "senteval", folder / name, config=config, encoder=encoder)
        known[name] = set(done.load().encoder.composition.parts[0].vocabulary.units)
        assert done.record.notes == [
            "SST2 has 5 + 5 + 2 items where 67,349 + 872 + 1,821 are expected, so it is not comparable with published "
            "figures."
        ]
    assert "secret" not in known["own"] | known["file"]
    assert "five" in known["file"] - known["own"]
    assert done.record.inputs == {"vectors": "v.txt"} and done.record.dimension == 7


@pytest.mark.parametrize(("task", "start"), [("SICK-R", "word"), ("SST2", "word,trigram")])
def test_a_model_for_a_task_is_published(made, folder, task, start):
    record = run(made, "out", task, start, epochs=1).record
    plan = publish("out", "org/task", license="mit", dry_run=True)
    assert {"head/head.json", "head/model.safetensors", "supervised.json"} < plan.repository.files.keys()
    shown = [f"{figure:.3f}" if name == "mse" else percent(figure) for name, figure in record.figures["test"].items()]
    assert all(figure in plan.card for figure in shown)
    assert task in plan.card and 'from_pretrained("org/task")' in plan.card
    assert plan.left_here == []


def test_the_encoder_is_one_for_sentence_transformers(made, folder):
    from sentence_transformers import SentenceTransformer

    done = run(made, folder / "out", "SICK-R", "word")
    vectors = SentenceTransformer(str(folder / "out"), device="cpu").encode(["one of", "two"])
    np.testing.assert_allclose(done.load().encoder.encode(["one of", "two"]), vectors, atol=1e-6)
    # And one to begin with.
    again = EncoderConfig(init_from=str(folder / "out"))
    supervise(made / "senteval", folder / "next", config=SuperviseConfig("SICK-E", **SMALL), encoder=again)


def test_predictions(made, folder):
    model = run(made, folder / "out", "SICK-E", "word").load()
    shares = model.probabilities(["one of"], ["two of"])
    assert shares.shape == (1, 3) and shares.sum() == pytest.approx(1)
    assert model.predict(["one of"], ["two of"])[0] == model.head.config.classes[int(shares.argmax())]
    assert model.predict([], []).shape == (0,)
    # A sentence without a known word, and an empty one, are zeros like any other.
    np.testing.assert_array_equal(model.probabilities([""], ["unheard"]), model.probabilities(["unheard"], [""]))
    for arguments, option in (((["a"],), None), ((["a"], ["b", "c"]), None), (("a", "b"), "sentences")):
        with refused(option):
            model.predict(*arguments)
    single = run(made, folder / "single", "SST2", "word").load()
    with refused():
        single.predict(["a"], ["b"])


def test_command(made, folder, capsys):
    command = ["supervise", str(made / "senteval"), "--task", "SICK-R", "--out", "out", *TINY]
    assert main(command) == 0
    out = capsys.readouterr().out
    assert "out: SICK-R, scratch, " in out and "the weights are those of epoch 1 of 1" in out
    assert "Part  Items  pearson  spearman    mse\n" in out and "not comparable with published" in out
    assert "load it: paranmt_hf.SupervisedModel.from_pretrained('out')" in out
    assert main(["supervise", "--config", "out/supervised.json", "--out", "again"]) == 0
    assert bytes_of(folder / "out") == bytes_of(folder / "again")
    capsys.readouterr()
    assert main(command) == 0
    assert "(was trained already)" in capsys.readouterr().out


def sick(folder, lines, header=SICK_HEADER):
    write_all(folder / "senteval", items=4)
    write(folder / "senteval" / "SICK" / "SICK_train.txt", [header, *lines])


@pytest.mark.parametrize(
    ("task", "lines", "messages"),
    [
        ("SICK-R", ["1\ta\tb\t5.5\tNEUTRAL"], ["SICK_train.txt, line 2"]),
        ("SICK-E", ["1\ta\tb\t3\tNEUTRAL"] * 3, ["all 3 train items of SICK-E have one label"]),
        ("SICK-R", ["1\ta\tb\t3\tNEUTRAL"] * 3, ["all 3 train items of SICK-R have one label"]),
    ],
)
def test_damaged_data(folder, capsys, task, lines, messages):
    sick(folder, lines)
    fails(capsys, ["supervise", "senteval", "--task", task, "--out", "out", *TINY], *messages)
    assert sorted(path.name for path in folder.iterdir()) == ["senteval"]


def test_bad_input(made, folder, capsys):
    data = ["supervise", made / "senteval", "--out", "out"]
    task, word = ["--task", "SICK-R"], ["--init-from", made / "word"]
    fails(capsys, ["supervise", "none", *data[2:], *task], "there is no folder none")
    (folder / "empty").mkdir()
    fails(
        capsys,
        ["supervise", "empty", *data[2:], *task],
        "empty does not hold SICK-R: expected SICK/SICK_train.txt in it",
    )
    fails(capsys, ["supervise", "x", "--out", "y", "--task", "MR"], "--task")
    fails(capsys, [*data, *task, "--way", "fixed"], "--way fixed needs an encoder to start from")
    fails(capsys, [*data, *task, *word, "--encoder", "dimension=5"], "word is a model 'word' with its own vocabulary")
    fails(capsys, [*data, *task, "--init-from", "nowhere"], "no model 'nowhere': expected a folder that exists")
    fails(capsys, [*data, *task, "--encoder", "vectors=none.txt"], "none.txt: there is no such file")
    (folder / "foreign.txt").write_text("слово 1 2\n", encoding="utf8")
    fails(capsys, [*data, *task, "--encoder", "vectors=foreign.txt"], "knows none of the", "words of their language")
    save(encoder_of((["слово", "дело"], ["и"]), dimension=4), folder / "foreign")
    fails(capsys, [*data, *task, "--init-from", "foreign"], "foreign knows none of the words of SICK-R; choose an")
    (folder / "mine").mkdir()
    (folder / "mine" / "text").write_text("mine")
    fails(capsys, [*data, *task, "--out", "mine"], "was not made by this command", "choose another path")
    fails(capsys, [*data, *task, "--out", "foreign"], "was not made by this command", "choose another path")
    assert not (folder / "out").exists() and not list(folder.glob("*.work")) and not list(folder.glob(".*"))


def test_a_loss_that_is_no_number(made, folder, capsys, any_number):
    broken = encoder_of((["one of number 1"], ["two"]), dimension=4)
    with torch.no_grad():
        broken[0].embedding.weight[1:] = 3e38
    save(broken, folder / "broken")
    command = ["supervise", made / "senteval", "--task", "SICK-R", "--out", "out", "--init-from", "broken"]
    fails(capsys, command, "the loss of step 1 of epoch 1 is nan")
    words = ["--init-from", made / "word", "--optimization", "optimizer=adagrad,learning_rate=1e6"]
    fails(capsys, [*command[:-2], *words], "there is no correlation, because", "lower --optimization learning_rate")
    with torch.no_grad():
        broken[0].embedding.weight[1] = float("nan")
    save(broken, folder / "nan")
    fails(capsys, [*command[:-1], "nan"], "holds a number that is not finite")
    assert not (folder / "out").exists()


def test_damaged_models(made, folder):
    with refused(path=made / "word/head/head.json"):
        SupervisedModel.from_pretrained(made / "word")
    run(made, folder / "out", "SICK-R", "word")
    run(made, folder / "narrow", "SICK-R", None, way="scratch", hidden=3)
    (folder / "out" / "head" / "model.safetensors").write_bytes(
        (folder / "narrow" / "head" / "model.safetensors").read_bytes()
    )
    with refused(path=folder / "out/head/model.safetensors"):
        SupervisedModel.from_pretrained(folder / "out")
    # A head of one model with the encoder of another.
    shutil.rmtree(folder / "out" / "head")
    save(encoder_of((["one two"], ["of"]), dimension=4), folder / "other")
    shutil.copytree(folder / "narrow" / "head", folder / "other" / "head")
    with refused():
        SupervisedModel.from_pretrained(folder / "other")
    path = folder / "narrow" / "supervised.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "best_epoch": "1"}))
    with refused("out", path=folder / "narrow"):
        run(made, folder / "narrow", "SICK-R", None, way="scratch", hidden=3)


@pytest.mark.slow
def test_on_sick(shared_data, tmp_path):
    """From random words, on the real pairs."""
    config = SuperviseConfig("SICK-R", epochs=5)
    done = supervise(shared_data / "senteval", tmp_path / "out", config=config, encoder=EncoderConfig(dimension=50))
    assert done.record.notes == [] and done.record.figures["test"]["pearson"] > 0.6
