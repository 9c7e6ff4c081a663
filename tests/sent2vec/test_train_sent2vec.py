"""train_sent2vec(): from sentences to an encoder, killed and resumed, and what it refuses."""

import gzip
import json
import re
import subprocess
import sys
import tracemalloc
import weakref
from dataclasses import fields, replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from safetensors.numpy import load_file
from sentence_transformers import SentenceTransformer

from paranmt_hf import Sent2VecConfig, load, publish, train_sent2vec
from paranmt_hf.encoders.modules.paranmt_averages import NgramEmbedding
from paranmt_hf.encoders.modules.paranmt_tables import ngram_buckets
from paranmt_hf.sent2vec import loop  # noqa: E402
from paranmt_hf.sent2vec import train as train_module
from paranmt_hf.sent2vec.record import Sent2VecRecord
from paranmt_hf.sent2vec.train import FEW_WORDS
from paranmt_hf.training import checkpoint
from paranmt_hf.util.records import as_json
from tests.cli.commands import kept_options
from tests.refused import refused
from tests.training.toys import random_text, synonyms

SMALL = {"dimension": 8, "min_count": 1, "min_target_count": 1, "threshold": 1.0, "epochs": 3}


def config(**settings):
    buckets = {"buckets": 1000} if "ngrams" in settings else {}
    return Sent2VecConfig(**{**SMALL, **buckets, **settings})


@pytest.fixture(scope="module")
def lines():
    return random_text(300)[0]


@pytest.fixture(scope="module")
def text(tmp_path_factory, lines):
    path = tmp_path_factory.mktemp("text") / "text.txt"
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf8")
    return path


@pytest.fixture(scope="module")
def pairs_of_words(tmp_path_factory, text):
    return train_sent2vec(text, tmp_path_factory.mktemp("model") / "out", config=config(ngrams=2, dropped_ngrams=1))


def files(folder):
    return {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def weights(folder):
    (path,) = folder.rglob("model.safetensors")
    return load_file(path)


def test_words_alone_are_a_stock_model(tmp_path, text, lines):
    trained = train_sent2vec(text, tmp_path / "out", config=config())
    for known in (FEW_WORDS - 1, FEW_WORDS):
        shown = type(trained)(trained.folder, replace(trained.record, known=known), True).summary()
        assert shown.count("warning") == (known < FEW_WORDS)
    model = SentenceTransformer(str(tmp_path / "out"), device="cpu")
    assert type(model[0]).__name__ == "StaticEmbedding"
    table = model[0].embedding.weight.detach().numpy()
    tokenizer = model[0].tokenizer.get_vocab()
    rows = [tokenizer[word] for word in lines[0].split()]
    np.testing.assert_allclose(model.encode(lines[0]), table[rows].mean(axis=0), atol=1e-6)
    assert not table[0].any()
    assert trained.record.words == len(table) - 1 == 50
    assert not (tmp_path / "out.work").exists()


def test_ngrams_are_averaged_with_their_words(pairs_of_words, lines):
    encoder = load(pairs_of_words.folder)
    (module,) = encoder
    assert isinstance(module, NgramEmbedding)
    row_of = {word: row for row, word in enumerate(module.units)}
    rows = np.array([row_of[word] for word in lines[1].split()])
    buckets, _ = ngram_buckets(rows, np.array([0, len(rows)]), 2, 1000)
    places = len(row_of) + np.searchsorted(module.hashes, buckets)
    table = module.weight.detach().numpy()
    expected = table[np.concatenate([rows, places])].mean(axis=0)
    np.testing.assert_allclose(encoder.encode([lines[1]])[0], expected, atol=1e-6)
    assert pairs_of_words.record.ngrams == len(module.hashes) > 100


@pytest.mark.parametrize(("context", "rate"), [("paper", 0.2), ("cbow", 0.05)])
def test_words_of_one_context_become_alike(tmp_path, context, rate):
    # Each concept has two words, which never meet but share their neighbours.
    generator = np.random.default_rng(1)
    rows = generator.integers(0, 2, size=(4000, 4)) + 2 * generator.permuted(np.tile(range(4), (4000, 1)), axis=1)
    topics = generator.integers(0, 5, size=4000)
    lines = [" ".join(f"w{topic}x{word}" for word in line) for topic, line in zip(topics, rows.tolist(), strict=True)]
    (tmp_path / "text.txt").write_text("\n".join(lines))
    settings = config(dimension=16, epochs=8, negatives=5, context=context, learning_rate=rate)
    trained = train_sent2vec(tmp_path / "text.txt", tmp_path / "out", config=settings)
    vectors = trained.load().encode([f"w{topic}x{word}" for topic in range(5) for word in range(8)])
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines = (vectors @ vectors.T).reshape(5, 8, 5, 8)
    topic, concept = np.indices((5, 4))
    twins = cosines[topic, 2 * concept, topic, 2 * concept + 1]
    strangers = [cosines[left, :, right] for left in range(5) for right in range(5) if left != right]
    assert twins.min() > 0.8 > 0.3 > np.mean(strangers)
    losses = [loss for _, loss in trained.record.course.losses]
    # Six logistic losses of scores of zero are 6 log 2 = 4.16.
    assert losses[-1] < losses[0] < 4.16


def test_cbow_is_a_model_of_words(tmp_path, text):
    train_sent2vec(text, tmp_path / "out", config=config(context="cbow"))
    assert type(SentenceTransformer(str(tmp_path / "out"), device="cpu")[0]).__name__ == "StaticEmbedding"
    assert "--context cbow" in (tmp_path / "out" / "README.md").read_text()
    train_sent2vec(text, tmp_path / "paper", config=config())
    found, other = (weights(tmp_path / name)["embedding.weight"] for name in ("out", "paper"))
    assert np.abs(found - other).max() > 0.01


def test_equal_runs_give_equal_bytes(tmp_path, text, pairs_of_words):
    settings = config(ngrams=2, dropped_ngrams=1)
    again = train_sent2vec(text, tmp_path / "out", config=settings)
    expected = weights(pairs_of_words.folder)
    found = weights(tmp_path / "out")
    assert all(np.array_equal(found[name], expected[name]) for name in expected)
    assert not train_sent2vec(text, tmp_path / "out", config=settings).fresh
    assert again.record.settings == pairs_of_words.record.settings
    with refused("out", path=tmp_path / "out"):
        train_sent2vec(text, tmp_path / "out", config=config(ngrams=2, dropped_ngrams=1, seed=2))


@pytest.mark.parametrize("after", [0, 7])
def test_killed_and_resumed(tmp_path, text, pairs_of_words, monkeypatch, checkpoint_always, killed_after, after):
    settings = config(ngrams=2, dropped_ngrams=1)
    monkeypatch.setattr(loop, "BLOCK", 60)
    out = tmp_path / "out"
    killed_after(after, train_sent2vec, text, out, kind=loop, name="train_sentences", config=settings)
    assert (tmp_path / "out.work" / "checkpoint.safetensors").exists() == (after > 0)
    text.touch()
    record = train_sent2vec(text, tmp_path / "out", config=settings).record
    expected, found = weights(pairs_of_words.folder), weights(tmp_path / "out")
    assert all(np.array_equal(found[name], expected[name]) for name in expected)
    assert record.course.targets == pairs_of_words.record.course.targets
    assert record.course.mean == pytest.approx(pairs_of_words.record.course.mean)


@pytest.mark.slow
def test_memory_is_that_of_the_tables(tmp_path, text, monkeypatch):
    """Nothing copies them, and what saves an encoder is not in memory next to them."""
    training = "import sys, paranmt_hf.sent2vec.loop as loop; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", training], check=True)
    table = np.zeros((1000, 1000), np.float32)
    tracemalloc.start()
    checkpoint.write_checkpoint(tmp_path / "checkpoint", {"inputs": table}, {})
    assert tracemalloc.get_traced_memory()[1] < table.nbytes / 4
    tracemalloc.stop()
    original, created, alive = train_module.save_around_rows, weakref.WeakSet(), []

    class Watched(loop.Loop):
        def __init__(self, *arguments):
            super().__init__(*arguments)
            created.add(self)

    def save(*arguments):
        alive.append(len(created))
        original(*arguments)

    monkeypatch.setattr(loop, "Loop", Watched)
    monkeypatch.setattr(train_module, "save_around_rows", save)
    train_sent2vec(text, tmp_path / "out", config=config(ngrams=2))
    assert alive == [0]


def test_threads(tmp_path, text, pairs_of_words):
    settings = config(ngrams=2, dropped_ngrams=1, threads=3)
    record = train_sent2vec(text, tmp_path / "out", config=settings).record
    assert record.course.words == pairs_of_words.record.course.words
    assert record.course.mean == pytest.approx(pairs_of_words.record.course.mean, rel=0.02)


def test_every_kind_of_text(tmp_path, release):
    left, right = synonyms(30)
    plain, packed, table = tmp_path / "a.txt", tmp_path / "b.txt.gz", tmp_path / "c.parquet"
    plain.write_text("\n".join(left[:10]))
    packed.write_bytes(gzip.compress("\n".join(right[:10]).encode()))
    pq.write_table(pa.table({"reference": left[10:], "translation": right[10:], "other": left[10:]}), table)
    trained = train_sent2vec([plain, packed, table], tmp_path / "out", config=config())
    assert (trained.record.sentences, trained.record.sources) == (60, ["a.txt", "b.txt.gz", "c.parquet"])
    named = train_sent2vec(table, tmp_path / "named", columns=["other"], config=config())
    assert (named.record.sentences, named.record.settings.data[0]["columns"]) == (20, {"sentence": "other"})
    # Of a release both sides.
    assert train_sent2vec(release, tmp_path / "release", config=config(epochs=1)).record.sentences == 120


def test_weights_beyond_all_bounds(tmp_path, text, any_number):
    with refused():
        train_sent2vec(text, tmp_path / "out", config=config(learning_rate=1e9, epochs=20))
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "content",
    [
        None,
        b"",
        b"one two three\n",
        b"\xe9t\xe9 \xe0 Paris\n" * 3,
    ],
)
def test_text_that_is_none(tmp_path, content):
    path = tmp_path / "text.txt"
    if content is not None:
        path.write_bytes(content)
    with refused():
        train_sent2vec(path, tmp_path / "out", config=config())
    assert [found.name for found in tmp_path.iterdir()] == ([] if content is None else ["text.txt"])


def test_too_large_for_memory(tmp_path, text, memory):
    memory(1000)
    with refused():
        train_sent2vec(text, tmp_path / "out", config=config())


def test_settings_of_ngrams_change_nothing_of_words():
    unused = config(dropped_ngrams=2, buckets=1000, min_ngram_count=2)
    assert as_json(unused.resolved()) == as_json(config().resolved())


def test_no_word_would_be_predicted(tmp_path, text):
    with refused():
        train_sent2vec(text, tmp_path / "out", config=config(threshold=1e-15))
    assert [path.name for path in tmp_path.iterdir()] == []


def test_damaged_record(pairs_of_words, tmp_path):
    values = json.loads((pairs_of_words.folder / "sent2vec.json").read_text())
    for settings in ({"sent2vec": {"ngrams": 0}, "data": []},):
        (tmp_path / "sent2vec.json").write_text(json.dumps({**values, "settings": settings}))
        with refused(path=tmp_path / "sent2vec.json"):
            Sent2VecRecord.read(tmp_path)


def test_published_with_a_card_that_is_true(pairs_of_words):
    about = {"summary": "A sentence."}
    plan = publish(pairs_of_words.folder, "you/sent2vec", license="mit", about=about, dry_run=True)
    text = plan.card
    assert "A sentence." in text
    assert f"Trained without supervision on {pairs_of_words.record.sentences} sentences of text.txt." in text
    assert "--ngrams 2" in text and "--dimension 8" in text and "--ngram-settings dropped_ngrams=1,buckets" in text
    assert "pagliardini-etal-2018-unsupervised" in text and "wieting-gimpel" not in text
    assert "English" not in text and "pairs" not in text.split("## Training")[1].split("## Licence")[0]
    assert {"sent2vec.json", "README.md", "model.safetensors", "paranmt_averages.py"} <= set(plan.repository.files)
    assert "README.md (the card" not in " ".join(plan.left_here)


def test_the_command_repeats_the_settings(pairs_of_words):
    (line,) = re.findall(r"^paranmt train-sent2vec .*$", (pairs_of_words.folder / "README.md").read_text(), re.M)
    kept = {name.replace("-", "_"): value for name, value in kept_options(line.split()[1:]).items()}
    given = {entry.name: kept[entry.name] for entry in fields(Sent2VecConfig) if entry.name in kept}
    assert as_json(Sent2VecConfig(**given).resolved()) == as_json(pairs_of_words.record.settings.sent2vec)


def test_documents_teach_as_their_sentences_do(tmp_path, lines):
    pytest.importorskip("sentencex")
    texts = [f"{line.capitalize()}." for line in lines]
    (tmp_path / "lines.txt").write_text("".join(f"{text}\n" for text in texts))
    (tmp_path / "documents.txt").write_text("".join(f"{' '.join(texts[n : n + 7])}\n" for n in range(0, 300, 7)))
    train_sent2vec(tmp_path / "lines.txt", tmp_path / "one", config=config())
    split = train_sent2vec(tmp_path / "documents.txt", tmp_path / "two", split=True, language="de", config=config())
    weights = [files(tmp_path / name)["model.safetensors"] for name in ("one", "two")]
    assert weights[0] == weights[1]
    assert split.record.settings.data[0]["split"]["sentence"]["language"] == split.record.settings.language == "de"
    card = (tmp_path / "two" / "README.md").read_text()
    assert "train-sent2vec documents.txt --split --language de" in card and "language:\n- de" in card
    with refused("split"):
        train_sent2vec(tmp_path / "documents.txt", tmp_path / "three", split=True, language="lo")
