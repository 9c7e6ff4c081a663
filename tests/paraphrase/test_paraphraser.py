"""train_paraphraser() and paraphrase_file(): from pairs to a model to paraphrases, killed, resumed, refused."""

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer, BartForConditionalGeneration

from paranmt_hf import EngineConfig, PairSelection, ParaphraseConfig, Paraphraser, ParaphraserConfig, train_paraphraser
from paranmt_hf.cli import find_command, run_command
from paranmt_hf.errors import OtherSettingsError
from paranmt_hf.hub.repository import ASSETS
from paranmt_hf.paraphrase.card import card_values
from paranmt_hf.paraphrase.paraphrase_file import paraphrase_file
from tests.paraphrase import paraphraser_toys as toys
from tests.paraphrase.paraphraser_toys import LOCAL, SMALL, sentences, training, write_bart
from tests.refused import refused


def train_small(data, out, selection=None, **settings):
    return train_paraphraser(data, out, config=SMALL, training=training(**settings), selection=selection)


@pytest.fixture(scope="module")
def trained(pairs, tmp_path_factory):
    return train_small(pairs, tmp_path_factory.mktemp("model") / "out")


@pytest.mark.slow
def test_the_folder_is_a_model_of_transformers(trained, tmp_path):
    names = sorted(path.name for path in trained.folder.iterdir())
    assert names == sorted(
        ["README.md", "config.json", "generation_config.json", "model.safetensors", "modeling_paranmt_lstm.py"]
        + ["tokenizer.json", "tokenizer_config.json", "paraphraser.json"]
    )
    model, tokenizer = (kind.from_pretrained(trained.folder) for kind in (AutoModelForSeq2SeqLM, AutoTokenizer))
    found = model.generate(**tokenizer(["the man sees a dog ."], return_tensors="pt"), num_beams=2, max_new_tokens=9)
    assert found.shape[0] == 1 and model.config.use_cache
    assert not trained.folder.with_name("out.work").exists()
    # Who may read the folder may read its weights.
    modes = {path.name: path.stat().st_mode & 0o777 for path in trained.folder.iterdir()}
    assert modes["model.safetensors"] == modes["config.json"] == trained.folder.stat().st_mode & 0o666
    again = Paraphraser(trained.folder)
    again.save_pretrained(tmp_path / "copy")
    assert Paraphraser.from_pretrained(tmp_path / "copy")(LINES[:1]) == again(LINES[:1])
    record = trained.record
    assert record.pairs + record.held_out == 300 and 10 < record.held_out < 60
    assert record.course.steps == record.course.measured[-1].step
    assert record.course.pairs == 8 * record.pairs
    assert record.course.measured[0].loss > record.course.measured[-1].loss
    assert record.course.best.perplexity == pytest.approx(np.exp(record.course.best.loss))
    assert 0 <= record.course.best.bleu <= 100 and "held-out perplexity" in trained.summary()
    # One warning of a model that cannot write.
    best = record.course.best
    for perplexity in (59, 61):
        course = replace(record.course, measured=[replace(best, perplexity=float(perplexity))])
        shown = type(trained)(trained.folder, replace(record, course=course), True).summary()
        assert shown.count("warning") == (perplexity == 61)


def test_the_card_says_how_it_was_made(trained):
    text = (trained.folder / "README.md").read_text()
    (line,) = re.findall(r"^paranmt paraphrase train (.*)$", text, re.M)
    assert set(line.split(" --")) == {
        *("pairs.parquet", "architecture pieces=330,embedding=32,hidden=32", "epochs 8", "batch-tokens 200"),
        *("learning-rate 0.01", "held-out 0.1", "device cpu", "optimization warmup=2,evaluations=2", "out FOLDER"),
    }
    assert f"{trained.record.pairs:,} pairs of pairs.parquet" in text


def test_the_card_names_the_languages_of_its_sentences(trained):
    german, english = {"release": "a", "language": "de", "files": {}}, {"release": "b", "files": {}}
    for sources, codes, named in (
        ([german], ["de"], "German"),
        ([english, german], ["de", "en"], "German and English"),
    ):
        own = trained.record.settings
        settings = replace(own, data={**own.data, "sources": sources})
        values = card_values("mine", replace(trained.record, settings=settings))
        assert values["languages"] == codes
        assert values["summary"].startswith(f"Generates paraphrases of {named} sentences: a bidirectional LSTM")
    assert "paraphrases of English sentences" in (trained.folder / "README.md").read_text()


def test_a_second_call_finds_it_and_another_one_is_refused(trained, pairs):
    again = train_small(pairs, trained.folder)
    assert not again.fresh and again.record == trained.record
    with refused("out", path=trained.folder, kind=OtherSettingsError):
        train_small(pairs, trained.folder, seed=2)


@pytest.mark.slow
def test_a_run_that_was_stopped_ends_with_the_same_bytes(trained, pairs, tmp_path):
    assert trained.record.course.steps > 45
    with toys.stopped_training():
        train_small(pairs, tmp_path / "out", checkpoint_seconds=0)
    assert not (tmp_path / "out").exists()
    assert any((tmp_path / "out.work" / "paraphrases" / "trainer").glob("checkpoint-*/complete"))
    torch.manual_seed(99)
    done = train_small(pairs, tmp_path / "out", checkpoint_seconds=0)
    assert done.record.course.losses == trained.record.course.losses
    for name in ("model.safetensors", "config.json", "tokenizer.json"):
        assert (done.folder / name).read_bytes() == (trained.folder / name).read_bytes()


def test_pairs_are_chosen_and_both_directions_trained(pairs, tmp_path):
    chosen = PairSelection(min_score=0.5)
    done = train_small(pairs, tmp_path / "out", chosen, direction="both", held_out=0, max_steps=1)
    assert (done.record.pairs, done.record.held_out) == (2 * 150, 0)
    assert done.record.course.steps == 1 and not done.record.course.measured


def test_pairs_of_which_none_is_chosen_or_held_out_are_reported(pairs, tmp_path, caplog):
    with refused():
        train_small(pairs, tmp_path / "out", PairSelection(max_score=-1), max_steps=1)
    train_small(pairs, tmp_path / "one", max_steps=1, held_out=1e-9)
    assert "nothing will be measured" in caplog.text


@pytest.mark.slow
def test_another_encoder_decoder_is_trained_the_same_way(pairs, tmp_path):
    bart = write_bart(tmp_path / "bart", 40)
    settings = training(learning_rate=3e-3, max_pieces=30, epochs=3)
    done = train_paraphraser(pairs, tmp_path / "out", config=ParaphraserConfig(base=str(bart)), training=settings)
    measured = done.record.course.measured
    assert done.record.model_type == "bart" and measured[0].loss > measured[-1].loss
    assert type(AutoModelForSeq2SeqLM.from_pretrained(done.folder)) is BartForConditionalGeneration
    assert len(done.load()(["the man sees a dog ."], n=2)) == 1
    assert "trained further on pairs" in (done.folder / "README.md").read_text()


LINES = [
    "the man sees a dog .",
    "",
    "the dog likes a horse .",
    "the man sees a dog . " * 30,
    "the child finds a man .",
]


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "text.txt"
    path.write_bytes("\n".join(LINES).encode() + b"\n\xff\xfe\n")
    return path


def run(text, out, model, **settings):
    config = ParaphraseConfig(**{"max_length": 40, "device": "cpu", "min_score": -1.0, **settings})
    engine = EngineConfig("local", 1, 1, shard_rows=3)
    return paraphrase_file(text, out, model=model, config=config, engine=engine)


@pytest.mark.slow
def test_files_have_a_minimum_score_unless_another_is_given(trained, text, tmp_path):
    found = paraphrase_file(text, tmp_path / "out.tsv", model=trained.folder, engine=LOCAL).record
    everything = run(text, tmp_path / "all.parquet", trained.folder).record
    least = [record.settings["generation"]["min_score"] for record in (found, everything)]
    assert least == [0.5, -1.0]
    assert found.paraphrases <= everything.paraphrases


@pytest.mark.slow
def test_every_line_keeps_its_place(trained, text, tmp_path):
    done = run(text, tmp_path / "out.parquet", trained.folder, n=2)
    table = pq.read_table(done.folder)
    assert table.column_names == ["index", "source", "paraphrase", "rank", "score", "note"]
    rows = table.to_pylist()
    marked = {row["index"]: row["note"] for row in rows if row["note"]}
    assert marked == {1: "empty line", 3: "over 40 pieces", 5: "not UTF-8"}
    assert all((row["paraphrase"] is None) == (row["rank"] == 0) == (row["note"] is not None) for row in rows)
    assert [row["index"] for row in rows] == sorted(row["index"] for row in rows)
    assert sorted({row["index"] for row in rows}) == list(range(6))
    assert [row["source"] for row in rows if row["rank"] < 2][:3] == [LINES[0], "", LINES[2]]
    direct = Paraphraser(trained.folder, ParaphraseConfig(max_length=40))([LINES[0], LINES[2]], n=2)
    kept = [[(r["paraphrase"], r["score"]) for r in rows if r["index"] == index] for index in (0, 2)]
    assert kept == [[(each.text, np.float32(each.score)) for each in own] for own in direct]
    assert (done.record.lines, done.record.paraphrases) == (6, sum(row["rank"] > 0 for row in rows))
    assert "of 6 lines" in done.summary() and "1 empty line" in done.summary()
    assert not (tmp_path / "out.parquet.work").exists()
    assert not run(text, tmp_path / "out.parquet", trained.folder, n=2).fresh


def test_a_null_of_parquet_is_an_empty_line(trained, tmp_path):
    pq.write_table(pa.table({"text": [LINES[0], None]}), tmp_path / "rows.parquet")
    done = run(tmp_path / "rows.parquet", tmp_path / "out.parquet", trained.folder)
    last = pq.read_table(done.folder).to_pylist()[-1]
    assert (last["index"], last["source"], last["rank"], last["note"]) == (1, "", 0, "empty line")


def test_forms_hold_the_same(trained, text, tmp_path):
    table = pq.read_table(run(text, tmp_path / "out.parquet", trained.folder).folder).to_pylist()
    lines = run(text, tmp_path / "out.jsonl", trained.folder).folder.read_text().splitlines()
    assert [json.loads(line) for line in lines] == table
    head, *rows = run(text, tmp_path / "out.tsv", trained.folder).folder.read_text().splitlines()
    assert head.split("\t") == list(table[0])
    assert [row.split("\t")[:3] for row in rows] == [
        [str(row["index"]), row["source"] or "", row["paraphrase"] or ""] for row in table
    ]


@pytest.mark.slow
@pytest.mark.parametrize("settings", [{}, {"sample": True, "n": 2, "seed": 4}])
def test_work_that_was_stopped_continues(trained, tmp_path, settings):
    path = tmp_path / "text.txt"
    path.write_text("\n".join(sentences(8, seed=3)[0]) + "\n")
    whole = run(path, tmp_path / "whole.tsv", trained.folder, **settings)
    with toys.stopped_job(after=2):
        run(path, tmp_path / "out.tsv", trained.folder, **settings)
    assert not (tmp_path / "out.tsv").exists()
    again = run(path, tmp_path / "out.tsv", trained.folder, **settings)
    assert again.fresh and again.folder.read_bytes() == whole.folder.read_bytes()


def test_scores_and_settings_of_the_call(trained):
    paraphraser = Paraphraser(trained.folder)
    texts = [LINES[0], LINES[2], "", LINES[0]]
    many = paraphraser(texts, n=4, beams=6)
    assert many[0] == many[3] and many[2] == []
    # Half of a surrogate pair is read as U+FFFD, and null is refused.
    halves = paraphraser.paraphrase(
        [f"{texts[0]}\ud83d", f"{texts[0]}\ufffd", None, texts[0]], replace(paraphraser.config, n=4, beams=6)
    )
    assert halves[0] == halves[1] and halves[0].paraphrases
    assert (halves[2].paraphrases, halves[2].note) == ([], "not UTF-8") and halves[3].paraphrases == many[0]
    assert all(len({each.text for each in own}) == len(own) <= 4 for own in many)
    scores = [each.score for own in many for each in own]
    assert all(-1 <= score <= 1 for score in scores)
    bound = float(np.median(scores))
    good = paraphraser(texts, n=4, beams=6, min_score=bound)
    assert all(each.score >= bound for own in good for each in own)
    drawn = [paraphraser(texts, n=3, sample=True, temperature=1.5, seed=seed) for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]
    assert paraphraser([LINES[0]], n=3) == [paraphraser(texts, n=3)[0]]


@pytest.mark.slow
def test_groups_of_beams_do_not_depend_on_the_batch(trained):
    paraphraser = Paraphraser(trained.folder, scorer=None)
    texts, groups = sentences(10, seed=5)[0], {"n": 4, "beams": 4, "groups": 4}
    apart = paraphraser(texts, diversity=3.0, **groups)
    assert sum(map(len, apart)) > 2 * len(texts)
    assert paraphraser(texts, diversity=0.0, **groups) == paraphraser(texts, beams=1)
    assert [paraphraser([text], diversity=3.0, **groups)[0] for text in texts[:3]] == apart[:3]


@pytest.mark.parametrize(
    ("kind", "settings", "option"),
    [
        (ParaphraserConfig, {"hidden": 15}, "hidden"),
        (ParaphraserConfig, {"base": "m", "hidden": 16}, "base"),
        (ParaphraseConfig, {"sample": True, "groups": 2}, "sample"),
        (ParaphraseConfig, {"n": 201}, "n"),
        (ParaphraseConfig, {"device": "tpu"}, "device"),
    ],
)
def test_settings_that_make_no_sense_are_refused(kind, settings, option):
    with refused(option):
        kind(**settings)


@pytest.mark.parametrize(
    "line",
    [
        "paraphrase text damaged.txt.gz --out out.tsv --model encoder",
        "paraphrase augment damaged.jsonl --out out.tsv --model encoder",
        "paraphrase evaluate encoder --data damaged.tsv",
    ],
)
def test_models_are_checked_before_data_are_read(line, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "damaged.txt.gz").write_bytes(b"\x1f\x8bdamaged")
    for file in ("damaged.jsonl", "damaged.tsv"):
        (tmp_path / file).write_text("{")
    shutil.copytree(ASSETS / "small", "encoder")
    with refused(path=Path("encoder")):
        run_command(*find_command(line.split()))


def edit(path, **values):
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


def with_nan(folder):
    file = folder / "model.safetensors"
    weights = load_file(file)
    save_file({**weights, "lm_head.bias": torch.full_like(weights["lm_head.bias"], torch.nan)}, file, {"format": "pt"})


SPOILED = {
    "another kind": lambda folder: edit(folder / "config.json", model_type="bert", is_encoder_decoder=False),
    "a wrong type": lambda folder: edit(folder / "config.json", hidden_size="x"),
    "an unknown dtype": lambda folder: edit(folder / "config.json", dtype="x"),
    "deep JSON": lambda folder: (folder / "config.json").write_text("[" * 100_000),
    "no start": lambda folder: edit(folder / "config.json", decoder_start_token_id=-1),
    "no end": lambda folder: edit(folder / "config.json", eos_token_id=99_999),
    "no padding": lambda folder: edit(folder / "config.json", pad_token_id="x"),
    "weights of NaN": with_nan,
    "damaged weights": lambda folder: (folder / "model.safetensors").write_bytes(b"\0" * 100),
}


@pytest.mark.slow
@pytest.mark.parametrize("spoil", SPOILED.values(), ids=SPOILED)
def test_spoiled_models_are_refused(trained, text, tmp_path, spoil):
    broken = shutil.copytree(trained.folder, tmp_path / "broken")
    spoil(broken)
    with refused() as caught:
        run(text, tmp_path / "out.tsv", broken)
    assert caught.value.path in (broken, broken / "config.json")
    assert not list(tmp_path.glob("*.work")) and not list(tmp_path.glob("out.*"))


def test_files_and_calls_that_make_no_sense_are_refused(trained, text, tmp_path):
    (tmp_path / "mine.tsv").write_text("mine")
    for name in ("out.txt", "mine.tsv"):
        with refused("out", path=tmp_path / name):
            run(text, tmp_path / name, trained.folder)
    (tmp_path / "empty.txt").write_text("")
    with refused(path=tmp_path / "empty.txt"):
        run(tmp_path / "empty.txt", tmp_path / "out.tsv", trained.folder)
    with refused():
        run(text, tmp_path / "out.tsv", "nothing/at/all")
    paraphraser = Paraphraser(trained.folder)
    for given in ("a sentence", ["a sentence", b"another"], {"a sentence": 1}):
        with refused("sentences"):
            paraphraser(given)
    with refused("templates"):
        paraphraser(["a sentence"], templates=2)
    with pytest.raises(TypeError, match="'beam'"):
        paraphraser(LINES, beam=8)
