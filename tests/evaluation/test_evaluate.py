"""What `paranmt evaluate` does, from Python."""

import json
import resource
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paranmt_hf import InputError, evaluate, write_results
from paranmt_hf.cli import main
from paranmt_hf.encoders.saving import save
from paranmt_hf.evaluation.record import read_results
from paranmt_hf.evaluation.word_weights import WordWeighting
from paranmt_hf.hub.repository import ASSETS, weights_checksum
from paranmt_hf.training.check_model import results_of_weights
from paranmt_hf.util.files import check_result_path, checksum
from tests.cli.commands import fails
from tests.training.toys import encoder_of

SIMILARITY = ASSETS / "sample" / "similarity.tsv"


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    lines = [line.split("\t") for line in SIMILARITY.read_text(encoding="utf8").splitlines()]
    folder = tmp_path_factory.mktemp("models") / "word"
    save(encoder_of(([line[1] for line in lines], [line[2] for line in lines]), dimension=4), folder)
    return folder


def test_records_say_which_model_and_how_fast(model, tmp_path):
    first, second = evaluate([model, "embedded"], SIMILARITY, bootstrap=10)
    assert (first.record.model, second.record.model) == (str(model), "embedded")
    assert first.record.weights == weights_checksum(model) != second.record.weights
    assert first.record.speed.passes == 5 and first.record.speed.sentences_per_second > 0
    assert first.record.sets[0].pearson == first.result.sets[0].pearson
    assert len(first.result.sets[0].similarities) == first.record.sets[0].pairs == 40
    assert len(first.record.sets[0].interval) == 2
    write_results(tmp_path / "r.json", [first.record, second.record])
    assert read_results(tmp_path / "r.json") == [first.record, second.record]


def test_without_measuring(model):
    (evaluation,) = evaluate(model, SIMILARITY, bootstrap=0, measure=False)
    assert evaluation.record.weights is None and evaluation.record.speed is None
    assert evaluation.record.sets[0].interval is None
    with pytest.raises(InputError, match="^name a model to evaluate, a file of --vectors, or --baselines"):
        evaluate([], SIMILARITY)


def test_the_command_writes_what_python_writes(model, tmp_path, capsys):
    pytest.importorskip("sacrebleu")
    command = ["evaluate", "sts", str(model), "--data", str(SIMILARITY), "--baselines", "bleu", "--bootstrap", "10"]
    assert main([*command, "--json", str(tmp_path / "command.json")]) == 0
    out = capsys.readouterr().out
    evaluations = evaluate([model], SIMILARITY, baselines=["bleu"], bootstrap=10)
    assert out.startswith(f"{model}\n{evaluations[0].result.text()}\n\nbleu\n{evaluations[1].result.text()}\n\nModel")
    write_results(tmp_path / "python.json", [evaluation.record for evaluation in evaluations])
    entries = [json.loads((tmp_path / name).read_text()) for name in ("command.json", "python.json")]
    for written in entries:
        # How fast is another number each time.
        assert written[0].pop("speed")["sentences"] == 8
    assert entries[0] == entries[1]
    assert list(entries[0][1]) == ["model", "mean", "development", "years", "sets", "notes"], (
        "a baseline has no weights"
    )
    text = (tmp_path / "command.json").read_text()
    assert text == json.dumps(json.loads(text), indent=2) + "\n"


def test_averages_of_word_vectors(tmp_path, monkeypatch, capsys):
    """Words count by a list, by their order, and by the sides of a corpus; torch is not needed."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "v.txt").write_text("a 1 0 0\ncat 0 1 0\nsat 0 0 1\n")
    (tmp_path / "s.tsv").write_text("5\ta cat\tcat\n2\ta cat\ta sat\n0\tcat\tsat\n4\ta\ta dog\n")
    (tmp_path / "text.txt").write_text("A a a cat.\n\nThe dog sat.\n")
    pq.write_table(pa.table({"reference": ["a a a cat", "sat"], "translation": ["x", "y"]}), tmp_path / "p.parquet")
    for frequencies, (a, cat, sat) in {
        "rank": (3, 1.5, 1),
        "text.txt": (3, 1, 1),
        "p.parquet": (3, 1, 1),
    }.items():
        config = WordWeighting(weighting=("inverse-frequency",), frequencies=frequencies)
        (found,) = evaluate([], "s.tsv", vectors=["v.txt"], averages=config, bootstrap=0)
        weighted = np.array([[1 / a, 1 / cat, 0], [1 / a, 0, 1 / sat], [0, 1 / cat, 0], [0, 0, 1 / sat], [1, 0, 0]])
        unit = weighted / np.linalg.norm(weighted, axis=1, keepdims=True)
        expected = [unit[0] @ unit[2], unit[0] @ unit[1], 0, 1]
        assert found.result.sets[0].similarities == pytest.approx(expected, abs=1e-6)
        assert found.result.model == "inverse frequency of v.txt"
        assert found.record.weights == f"sha256:{checksum(tmp_path / 'v.txt')}"
        assert frequencies in found.result.text() or "v.txt (Zipf's law)" in found.result.text()
    scaled = ["--weighting", "norms", "--norms-of", "other.txt"]
    (tmp_path / "other.txt").write_text("a -1 1\ncat 3 -1\nsat 0 0\n")
    command = ["evaluate", "sts", "--vectors", "v.txt", "--data", "s.tsv", "--bootstrap", "0"]
    assert main([*command, *scaled, "--tables", "paragram", "sent2vec"]) == 0
    out = capsys.readouterr().out
    assert "scaled by norms of v.txt" in out and "Mean, 0 of 22 sets" in out and "Spearman / Pearson" in out
    without = ["evaluate", "sts", "embedded", "--data", "s.tsv", "--weighting", "sif"]
    fails(capsys, without, "--weighting is about --vectors, and changes nothing for other models")
    fails(capsys, [*command, "--norms-of", "other.txt"], "--weighting norms and --norms-of go together")
    fails(capsys, [*command, "--weighting", "sif", "--frequencies", "no.txt"], "no.txt")
    (tmp_path / "v.txt").write_text("zzz 1 0 0\n")
    fails(capsys, command, "v.txt has none of the 4 words that are asked for")
    (tmp_path / "v.txt").write_text("a nan 0 0\n")
    fails(capsys, command, "v.txt, line 1: the vector of 'a' has a number that is not finite")


def test_averages_of_an_encoders_vectors(model):
    """Without weights they give what the encoder gives, whose unknown words are zeros."""
    config = WordWeighting(weighting=("average", "blacklist"), blacklist=1)
    own, plain, without = evaluate([model], SIMILARITY, vectors=[model], averages=config, bootstrap=0)
    expected = own.result.sets[0].similarities
    assert plain.result.sets[0].similarities == pytest.approx(expected, abs=1e-6)
    # A card shows the results of the encoder, and not the last ones of its words.
    assert plain.record.weights is without.record.weights is None
    assert results_of_weights([own.record, plain.record, without.record], model) is own.record
    assert np.abs(without.result.sets[0].similarities - expected).max() > 0.01


def test_baselines_alone_need_no_torch():
    pytest.importorskip("sacrebleu")
    code = (
        "import sys; from paranmt_hf import evaluate\n"
        f"print(len(evaluate([], {str(SIMILARITY)!r}, baselines=['bleu'], bootstrap=0)), 'torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "1 False\n"


def test_a_path_that_cannot_be_written_shows_before_the_work(model, tmp_path, capsys, monkeypatch):
    with pytest.raises(InputError, match=f"^--json {tmp_path} is a folder; name a file$"):
        check_result_path(tmp_path, "--json")
    with pytest.raises(InputError, match=f"^--json {tmp_path}/no/r.json: there is no folder {tmp_path}/no; make it"):
        check_result_path(tmp_path / "no" / "r.json", "--json")
    monkeypatch.setattr("paranmt_hf.evaluation.evaluate.evaluate_sts", lambda *_, **__: pytest.fail("too late"))
    assert main(["evaluate", "sts", str(model), "--data", str(SIMILARITY), "--json", str(tmp_path)]) == 1
    assert "is a folder; name a file" in capsys.readouterr().err


def test_a_full_disk_leaves_the_old_results(model, tmp_path):
    records = [evaluation.record for evaluation in evaluate(model, SIMILARITY, bootstrap=0, measure=False)] * 20
    path = tmp_path / "r.json"
    path.write_text("old")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (500, before[1]))
    try:
        with pytest.raises(InputError, match=f"^cannot save {path}: File too large; make room"):
            write_results(path, records)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert [(entry.name, entry.read_text()) for entry in tmp_path.iterdir()] == [("r.json", "old")]


def test_a_link_and_a_pipe_are_written_through(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "r.json")
    write_results(tmp_path / "link", [])
    assert (tmp_path / "link").is_symlink() and (tmp_path / "r.json").read_text() == "[]\n"
    code = "from paranmt_hf import write_results; write_results('/dev/stdout', [])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "[]\n"
