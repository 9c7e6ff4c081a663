"""evaluate_paraphrases(): models, files, decodings, noisy sentences, what is refused."""

import shlex
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paranmt_hf import (
    PairSelection,
    ParaphraseConfig,
    Paraphraser,
    ParaphraserConfig,
    ParaphraserTraining,
    train_paraphraser,
)
from paranmt_hf.cli import find_command, main, run_command
from paranmt_hf.corpus.reading.pairs import Pairs
from paranmt_hf.evaluation.results import read_results
from paranmt_hf.paraphrase.card import shown_figures
from paranmt_hf.paraphrase.config import read_decodings
from paranmt_hf.paraphrase.evaluate import DECODINGS, MeasuredSentences, evaluate_paraphrases, together
from paranmt_hf.paraphrase.noise import add_noise
from paranmt_hf.paraphrase.paraphrase_file import paraphrase_file, read_paraphrases
from paranmt_hf.paraphrase.training_data import TrainingPairs, held_out_keys
from tests.paraphrase.paraphraser_toys import LOCAL, SMALL
from tests.refused import refused

SHORT = ParaphraseConfig(max_length=20, seed=3)
COMPARED = ["greedy", "beams=3,n=2", "sample,temperature=0.5"]


def figures_of(row):
    """All that does not depend on the time."""
    return {name: value for name, value in row.values.items() if name != "sentences_per_second"}


def measured(models, pairs=(), compare=("beams=3,n=2",), *, decoding=SHORT, items=7, **sentences):
    sentences = MeasuredSentences(items=items, **sentences)
    return evaluate_paraphrases(models, data=pairs, sentences=sentences, compare=compare, decoding=decoding).results


@pytest.fixture(scope="module")
def model(pairs, tmp_path_factory):
    training = ParaphraserTraining(
        epochs=4, learning_rate=0.01, batch_tokens=300, held_out=0.1, warmup=2, evaluations=1, device="cpu", noise=0.3
    )
    return train_paraphraser(pairs, tmp_path_factory.mktemp("model") / "out", config=SMALL, training=training).folder


@pytest.fixture(scope="module")
def record(model, pairs):
    (found,) = measured(model, pairs, COMPARED)
    return found


def test_rows_are_the_decodings_and_the_baselines(record):
    assert [row.name for row in record.rows] == [*COMPARED, "copied input", "first reference"]
    *rows, copied, reference = record.rows
    assert copied["copies"] == 1 and "bleu" not in reference.values
    assert copied.items == 7 and record.settings["references"] >= 7
    assert ["among_bleu" in row.values for row in rows] == [False, True, False]
    settings = [{"beams": 1, "n": 1}, {"beams": 3, "n": 2}, {"sample": True, "temperature": 0.5}]
    assert [row.details["settings"] for row in rows] == settings
    assert record.settings["command"] == (
        "paranmt paraphrase evaluate out --data pairs.parquet --items 7 --decoding max_length=20,seed=3 "
        "--compare greedy beams=3,n=2 sample,temperature=0.5"
    )
    assert record.settings["variants"].keys() == {"bleu", "meteor", "scorer"}
    assert "sacrebleu" in record.versions and "nltk" in record.versions


@pytest.mark.slow
@pytest.mark.parametrize("decoding", ["beams=3", "beams=3,order=score", "beams=3,min_score=-1"])
def test_outputs_are_those_of_the_paraphraser(model, pairs, decoding):
    """A paraphraser that chooses by scores gets a scorer."""
    (found,) = measured(model, pairs, [decoding])
    paraphraser = Paraphraser(model, SHORT)
    for example in found.examples:
        (three,) = paraphraser([example["source"]], n=3, beams=3, keep_copies=True)
        best = max(three, key=lambda each: each.score) if "order" in decoding else three[0]
        assert example["outputs"][decoding] == [best.text]


@pytest.mark.slow
def test_a_seed_decides(record, model, pairs):
    again, other = (measured(model, pairs, COMPARED[2:], decoding=replace(SHORT, seed=seed))[0] for seed in (3, 4))
    assert again.data == record.data != other.data
    first, second = (next(row for row in found.rows if row.name == COMPARED[2]) for found in (again, record))
    assert figures_of(first) == figures_of(second)


@pytest.mark.slow
def test_which_sentences(model, pairs):
    (found,) = measured(model, pairs, ["greedy"], items=0, direction="to-translation")
    table = pq.read_table(pairs).select(["reference", "translation"])
    assert next(found.rows).items == len(set(table["reference"].to_pylist()))
    assert found.settings["references"] == len(table.to_pandas().drop_duplicates())
    apart = table.filter(pa.array(held_out_keys(table["reference"], 0.1)))
    (found,) = measured(model, pairs, ["greedy"], items=0, held_out=True)
    assert next(found.rows).items == len(set(apart["translation"].to_pylist())) < 60


@pytest.mark.slow
def test_a_file_is_measured_as_its_model(model, pairs, tmp_path):
    (whole,) = measured(model, pairs, items=0)
    lines, sources = tmp_path / "lines.txt", sorted(set(pq.read_table(pairs)["translation"].to_pylist()))
    lines.write_text("\n".join(sources) + "\n")
    config = ParaphraseConfig(n=2, beams=3, max_length=20, min_score=-1.0)
    for suffix in ("parquet", "jsonl", "tsv"):
        out = tmp_path / f"out.{suffix}"
        paraphrase_file(lines, out, model=model, config=config, engine=LOCAL)
        (found,) = measured(out, pairs, items=0)
        assert [row.name for row in found.rows] == [f"out.{suffix}", "copied input", "first reference"]
        assert figures_of(next(found.rows)) == figures_of(next(whole.rows))
    both = measured([model, out], pairs, items=0)
    starts = [line.split("|")[1].strip() for line in together(both).splitlines() if line.startswith("|")]
    assert starts[2:] == [f"{model.name}: beams=3,n=2", "copied input", "first reference", "out.tsv"]
    (alone,) = measured(tmp_path / "out.tsv")
    assert alone.value("out.tsv", "bleu") is None
    assert alone.value("out.tsv", "self_bleu") == pytest.approx(next(whole.rows)["self_bleu"])
    (tmp_path / "others.tsv").write_text("one thing\tanother thing\n")
    with refused("models", path=tmp_path / "out.tsv"):
        measured(tmp_path / "out.tsv", tmp_path / "others.tsv")


def test_decodings():
    found = read_decodings(DECODINGS, ParaphraseConfig(n=3, max_length=30))
    assert [each.config.beams for each in found[:4]] == [1, 4, 8, 8]
    assert [each.config.n for each in found] == [1, 3, 3, 3, 3, 3, 3]
    assert all(each.config.max_length == 30 for each in found)
    for name in ("beam=4", "beams", "beams=x", "beams=0", "sample,groups=2", "device=cpu", ""):
        with refused("compare"):
            read_decodings([name], ParaphraseConfig())


def test_noise_is_added_to_references(model, pairs):
    (found,) = measured(model, pairs, (), items=9, noise=0.4)
    noise, noisy = found.settings["noise"], next(row for row in found.rows if row.name == "noisy input")
    assert noisy.items + noise["unchanged"] == 9 and sum(noise["changes"].values()) >= noisy.items
    assert noisy["equal"] == 0 and noisy["character_edits"] > 0
    assert [row.name for row in found.rows] == ["beams=4", "beams=4, clean input", "noisy input"]
    for example in found.examples[: noisy.items]:
        (clean,) = example["references"]
        assert example["source"] == add_noise(clean, 0.4, 3)[0] != clean
    assert "--items 9 --noise 0.4" in found.settings["command"]


def test_the_command_of_a_card_runs_or_is_not_shown(model, pairs, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model").symlink_to(model)
    pq.write_table(pq.read_table(pairs).rename_columns(["one", "two", "para_score"]), "other.parquet")
    given = {"data": "other.parquet", "columns": {"reference": "one", "translation": "two"}, "scorer": "small"}
    given["sentences"] = MeasuredSentences(items=2, noise=0.9)
    (found,) = evaluate_paraphrases("model", decoding=SHORT, **given).results
    assert main([*shlex.split(found.settings["command"])[1:], "--json", "figures.json"]) == 0
    (again,) = read_results("figures.json")
    assert (again.settings, again.data) == (found.settings, found.data)
    (found,) = evaluate_paraphrases("model", decoding=replace(SHORT, order="score"), **given).results
    assert found.settings["command"] is None and shown_figures([found]).startswith("| Decoding")


def test_noisy_and_clean_sentences_of_a_file(model, tmp_path):
    path = tmp_path / "noisy.tsv"
    path.write_text(
        "the man sees a dog .\tteh man sees a dog .\nthe bird follows a cat .\tthe bird bird follows a cat .\n"
    )
    evaluation = evaluate_paraphrases(model, data=path, sentences=MeasuredSentences(noise=0), decoding=SHORT)
    (found,) = evaluation.results
    assert (next(found.rows).items, found.settings["noise"]) == (2, {})
    assert found.value("noisy input", "character_edits") == pytest.approx(100 * (2 + 5) / (20 + 24))
    assert "  noisy   teh man sees a dog ." in evaluation.summary()


def test_noise_of_training_leaves_held_out_pairs_alone(pairs):
    table = pq.read_table(pairs)
    training = ParaphraserTraining(noise=0.5, held_out=0.2, seed=1)
    own = TrainingPairs(Pairs([pairs], PairSelection()), "pairs", ParaphraserConfig(), training)
    (made,) = [table["source"].to_pylist() for table in own.tables("read")]
    apart = held_out_keys(table["reference"], 0.2)
    changed = np.array([one != other for one, other in zip(made, table["translation"].to_pylist(), strict=True)])
    assert not changed[apart].any()
    assert 0.4 < changed[~apart].mean() < 0.6
    row = int(np.flatnonzero(changed)[0])
    assert made[row] == add_noise(table["reference"][row].as_py(), 0.15, f"1 {row}")[0]


@pytest.mark.parametrize(
    ("words", "option", "path"),
    [
        ("MODEL", "data", None),
        ("MODEL --data none.tsv", None, "none.tsv"),
        ("OUT --data PAIRS --held-out", "held_out", None),
        ("OUT --data PAIRS --noise 0.1", "noise", None),
        ("MODEL --data PAIRS --noise 2", "noise", None),
        ("MODEL --data PAIRS --noise 1e-9", "noise", None),
        ("MODEL --data PAIRS --selection max_score=-1", "data", None),
        ("no.tsv", None, "no.tsv"),
        ("two.tsv", "models", "two.tsv"),
        ("no-model --data PAIRS --noise 0.1", None, None),
    ],
)
def test_refused(words, option, path, model, pairs, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "two.tsv").write_text("a b\tc d\n")
    (tmp_path / "out.tsv").write_text("source\tparaphrase\trank\na b\tc d\t1\n")
    names = {"MODEL": str(model), "PAIRS": str(pairs), "OUT": "out.tsv"}
    with refused(option) as caught:
        run_command(*find_command(["paraphrase", "evaluate", *(names.get(word, word) for word in words.split())]))
    assert path is None or caught.value.path.name == path


@pytest.mark.slow
def test_the_command_prints_a_table_and_writes_a_record(model, pairs, tmp_path, capsys):
    out = tmp_path / "figures.json"
    words = [str(model), "--data", str(pairs), "--items", "5", "--decoding", "max_length=20", "--json", str(out)]
    assert main(["paraphrase", "evaluate", *words, "--compare", "greedy"]) == 0
    shown = capsys.readouterr().out
    assert "copied input" in shown and "greedy" in shown and "Self-BLEU" in shown
    (found,) = read_results(out)
    assert found.kind == "paraphrases" and next(found.rows).items == 5
    out.unlink()
    assert main(["paraphrase", "evaluate", *words, "--noise", "0.1"]) == 0
    shown = capsys.readouterr().out
    (found,) = read_results(out)
    unchanged = found.settings["noise"]["unchanged"]
    assert found.kind == "canonical" and unchanged + next(found.rows).items == 5 and unchanged
    assert "noisy input" in shown and f"{unchanged} more, which noise did not change, are left out" in shown


LINE = b'{"source":"a dog","rank":1,"paraphrase":"dogs"}\n'


def test_files_of_paraphrases_of_any_format(tmp_path):
    (tmp_path / "a.jsonl").write_bytes(LINE.replace(b"1", b"2").replace(b"dogs", b"hounds") + LINE)
    assert read_paraphrases(tmp_path / "a.jsonl") == {"a dog": ["dogs", "hounds"]}
    (tmp_path / "a.csv").write_text("source,rank,paraphrase\na dog,1,dogs\na cat,0,\n")
    assert read_paraphrases(tmp_path / "a.csv") == {"a dog": ["dogs"], "a cat": []}


@pytest.mark.parametrize(
    ("old", "new", "option"),
    [
        (b"dogs", b"d\xff", None),
        (b"a dog", b"\xff", None),
        (b"rank", b"r\xff", "models"),
        (b"1", b'"first"', "models"),
        (b"1", b"1.5", "models"),
        (b"1", b"1e999", "models"),
        (b'"dogs"', b"[3]", None),
    ],
)
def test_values_that_are_no_paraphrases(tmp_path, old, new, option):
    path = tmp_path / "a.jsonl"
    path.write_bytes(LINE.replace(old, new))
    with refused(option, path=path):
        read_paraphrases(path)
