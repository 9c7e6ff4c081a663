"""What `paranmt evaluate` does, from Python."""

import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paranmt_hf import InputError, evaluate, load
from paranmt_hf.cli import main
from paranmt_hf.encoders.saving import save
from paranmt_hf.evaluation import speed as module
from paranmt_hf.evaluation.results import Evaluation, read_results
from paranmt_hf.evaluation.speed import encoding_speed
from paranmt_hf.evaluation.word_weights import WordWeighting
from paranmt_hf.hub.repository import ASSETS, weights_checksum
from paranmt_hf.training.publish import results_of_weights
from paranmt_hf.util.files import checksum
from tests.cli.commands import fails
from tests.refused import refused
from tests.toys import full_disk
from tests.training.toys import encoder_of

SIMILARITY = ASSETS / "sample" / "similarity.tsv"


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    lines = [line.split("\t") for line in SIMILARITY.read_text(encoding="utf8").splitlines()]
    folder = tmp_path_factory.mktemp("models") / "word"
    save(encoder_of(([line[1] for line in lines], [line[2] for line in lines]), dimension=4), folder)
    return folder


def test_records_say_which_model_and_how_fast(model, tmp_path):
    found = evaluate([model, "small"], data=SIMILARITY, bootstrap=10, speed=True)
    first, second = found
    assert (first.model, second.model) == (str(model), "small")
    assert first.weights == weights_checksum(model) != second.weights
    assert first.speed.passes == 5 and first.speed.sentences_per_second > 0
    assert len(first.similarities["similarity"]) == first.tables["Set"][0].items == 40
    assert len(first.tables["Set"][0].interval) == 2
    found.write(tmp_path / "r.json")
    assert read_results(tmp_path / "r.json") == [first, second]


def test_without_measuring(model):
    (result,) = evaluate(model, data=SIMILARITY, bootstrap=0)
    assert result.speed is None and result.tables["Set"][0].interval is None
    (same,) = evaluate(load(model), data=SIMILARITY, bootstrap=0)
    assert (same.tables, same.weights) == (result.tables, result.weights)
    with refused("models"):
        evaluate([], data=SIMILARITY)


class Lengths:
    """A measure of pairs that needs no vectors."""

    def similarities(self, left, right):
        return np.array([-abs(len(one) - len(other)) for one, other in zip(left, right, strict=True)])


def test_models_are_objects_with_names(model):
    encoder = load(model)
    named = evaluate({"mine": encoder, "theirs": model, "lengths": Lengths()}, data=SIMILARITY, bootstrap=0)
    assert [each.model for each in named] == ["mine", "theirs", "lengths"]
    assert named[0].tables == named[1].tables != named[2].tables and named[2].weights is None
    (alone,) = evaluate(Lengths(), data=SIMILARITY, bootstrap=0)
    assert (alone.model, alone.tables) == ("Lengths", named[2].tables)


def test_stored_in_other_precisions(model, tmp_path):
    found = evaluate(model, data=SIMILARITY, bootstrap=0, stored=["float16", "int8"], baselines=["bleu"])
    assert [each.settings.get("stored") for each in found] == [None, "float16", "int8", None]
    own, half, small, _ = found
    assert own.weights == half.weights == small.weights == weights_checksum(model)
    load(model).stored_as("int8").save_pretrained(tmp_path / "int8")
    assert half.settings["bytes"] < (model / "model.safetensors").stat().st_size
    assert small.settings["bytes"] == (tmp_path / "int8" / "model.safetensors").stat().st_size
    (again,) = evaluate(tmp_path / "int8", data=SIMILARITY, bootstrap=0)
    assert small.tables == again.tables != own.tables
    assert results_of_weights(list(found), model) == [own, half, small]
    with pytest.raises(InputError):
        results_of_weights([half, small], model)


def test_the_command_writes_what_python_writes(model, tmp_path, capsys):
    pytest.importorskip("sacrebleu")
    command = ["evaluate", "sts", str(model), "--data", str(SIMILARITY), "--baselines", "bleu"]
    assert main([*command, "--json", str(tmp_path / "command.json")]) == 0
    out = capsys.readouterr().out
    found = evaluate([model], data=SIMILARITY, baselines=["bleu"])
    assert out.startswith(found.summary())
    found.write(tmp_path / "python.json")
    assert (tmp_path / "command.json").read_bytes() == (tmp_path / "python.json").read_bytes()
    assert found[1].weights is None, "a baseline has no weights"


def test_averages_of_word_vectors(tmp_path, monkeypatch, capsys):
    """Words count by a list, by their order, and by the sides of a corpus; torch is not needed."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "v.txt").write_text("a 1 0 0\ncat 0 1 0\nsat 0 0 1\n")
    (tmp_path / "s.tsv").write_text("5\ta cat\tcat\n2\ta cat\ta sat\n0\tcat\tsat\n4\ta\ta dog\n")
    (tmp_path / "text.txt").write_text("A a a cat.\n\nThe dog sat.\n")
    pq.write_table(pa.table({"reference": ["a a a cat", "sat"], "translation": ["x", "y"]}), tmp_path / "p.parquet")
    for frequencies, (a, cat, sat) in {"rank": (3, 1.5, 1), "text.txt": (3, 1, 1), "p.parquet": (3, 1, 1)}.items():
        config = WordWeighting(weighting=("inverse-frequency",), frequencies=frequencies)
        (found,) = evaluate([], data="s.tsv", vectors=["v.txt"], averages=config, bootstrap=0)
        weighted = np.array([[1 / a, 1 / cat, 0], [1 / a, 0, 1 / sat], [0, 1 / cat, 0], [0, 0, 1 / sat], [1, 0, 0]])
        unit = weighted / np.linalg.norm(weighted, axis=1, keepdims=True)
        expected = [unit[0] @ unit[2], unit[0] @ unit[1], 0, 1]
        assert found.similarities["s"] == pytest.approx(expected, abs=1e-6)
        assert found.model == "inverse frequency of v.txt"
        assert found.weights == f"sha256:{checksum(tmp_path / 'v.txt')}"
        assert frequencies in found.text() or "v.txt (Zipf's law)" in found.text()
    scaled = ["--weighting", "norms", "--norms-of", "other.txt"]
    (tmp_path / "other.txt").write_text("a -1 1\ncat 3 -1\nsat 0 0\n")
    command = ["evaluate", "sts", "--vectors", "v.txt", "--data", "s.tsv"]
    assert main([*command, *scaled, "--tables", "paragram", "sent2vec"]) == 0
    out = capsys.readouterr().out
    assert "scaled by norms of v.txt" in out and "Mean, 0 of 22 sets" in out and "Spearman / Pearson" in out
    fails(capsys, [*command, "--norms-of", "other.txt"], "--norms-of and the weighting norms must be given together")
    fails(capsys, [*command, "--weighting", "sif", "--frequencies", "no.txt"], "no.txt")
    (tmp_path / "v.txt").write_text("zzz 1 0 0\n")
    fails(capsys, command, "v.txt has none of the 4 words that are asked for")
    (tmp_path / "v.txt").write_text("a nan 0 0\n")
    fails(capsys, command, "v.txt, line 1: the vector of 'a' has a number that is not finite")


def test_averages_of_an_encoders_vectors(model):
    """Without weights they give what the encoder gives, whose unknown words are zeros."""
    config = WordWeighting(weighting=("average", "blacklist"), blacklist=1)
    own, plain, without = evaluate([model], data=SIMILARITY, vectors=[model], averages=config, bootstrap=0)
    expected = own.similarities["similarity"]
    assert plain.similarities["similarity"] == pytest.approx(expected, abs=1e-6)
    # A card shows the results of the encoder, and not the last ones of its words.
    assert plain.weights is without.weights is None
    assert results_of_weights([own, plain, without], model) == [own]
    assert np.abs(without.similarities["similarity"] - expected).max() > 0.01


@pytest.mark.slow
def test_baselines_alone_need_no_torch():
    pytest.importorskip("sacrebleu")
    code = (
        "import sys; from paranmt_hf import evaluate\n"
        f"print(len(evaluate([], data={str(SIMILARITY)!r}, baselines=['bleu'], bootstrap=0)), 'torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "1 False\n"


def test_a_path_that_cannot_be_written_shows_before_the_work(model, tmp_path, capsys):
    assert main(["evaluate", "sts", str(model), "--data", "none.tsv", "--json", str(tmp_path)]) == 1
    assert "is a folder; name a file" in capsys.readouterr().err


def test_a_full_disk_leaves_the_old_results(model, tmp_path):
    records = evaluate(model, data=SIMILARITY, bootstrap=0).results * 20
    path = tmp_path / "r.json"
    path.write_text("old")
    with full_disk(500), pytest.raises(InputError, match=f"^cannot save {path}: File too large; make room"):
        Evaluation(records).write(path)
    assert [(entry.name, entry.read_text()) for entry in tmp_path.iterdir()] == [("r.json", "old")]


def test_a_link_and_a_pipe_are_written_through(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "r.json")
    Evaluation([]).write(tmp_path / "link")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "r.json").read_text() == "[]\n"
    code = "from paranmt_hf.evaluation.results import Evaluation; Evaluation([]).write('/dev/stdout')"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "[]\n"


class Counting:
    """An encoder on a clock that it moves itself: 2 ms for a sentence, 1 ms for those of the third part."""

    def __init__(self, monkeypatch):
        self.seen, self.now = [], 0.0
        monkeypatch.setattr(module.time, "process_time", lambda: self.now)

    def encode(self, sentences):
        self.now += len(sentences) * (0.001 if len(self.seen) == 2 else 0.002)
        self.seen.append(sentences)
        return np.zeros((len(sentences), 1))


def test_median_over_disjoint_parts(monkeypatch):
    encoder = Counting(monkeypatch)
    sentences = [f"sentence number {number}" for number in range(40)]
    speed = encoding_speed(encoder, sentences * 2, passes=3, count=8)
    # One part more than passes, the first of which does not count; rates are 500, 1000, 500.
    assert [len(part) for part in encoder.seen] == [8, 8, 8, 8]
    assert sum(encoder.seen, []) == sentences[:32]
    assert speed.sentences_per_second == 500 and speed.passes == 3
    assert speed.sentences == 8 and speed.words == 3.0 and speed.processor


def test_few_sentences_and_slow_encoders(monkeypatch):
    encoder = Counting(monkeypatch)
    assert encoding_speed(encoder, ["a", "b", "c", "d", "a b"], passes=3).sentences == 1
    assert encoding_speed(encoder, ["a", "b", "a"], passes=3) is None
    monkeypatch.setattr(module.time, "monotonic", lambda: 30.0 * len(encoder.seen))
    assert encoding_speed(encoder, [str(number) for number in range(100)], passes=5).passes == 1
