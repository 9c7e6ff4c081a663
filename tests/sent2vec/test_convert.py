"""`paranmt encoder convert`: the vectors of the Sent2Vec program in an encoder for the Hub."""

from __future__ import annotations

import gzip
import struct

import numpy as np
import pytest
from safetensors.numpy import load_file
from sentence_transformers import SentenceTransformer

import paranmt_hf
from paranmt_hf import average_encoders, cli, publish
from paranmt_hf.encoders.modules.paranmt_tables import store
from paranmt_hf.sent2vec.convert import ConvertConfig, convert_model
from tests.refused import refused
from tests.sent2vec.sent2vec_files import TEXTS, WORDS, BinFile, vector


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "model.bin"
    path.write_bytes(BinFile(WORDS).write())
    return path


def convert(source, out, **settings):
    return convert_model(source, out, license="mit", config=ConvertConfig(**settings))


@pytest.mark.parametrize("order", [1, 2, 3])
def test_vectors_are_those_of_the_program(order, tmp_path):
    """With text cut at blanks."""
    file = BinFile(WORDS, order=order)
    (tmp_path / "model.bin").write_bytes(file.write())
    made = convert(tmp_path / "model.bin", tmp_path / "out", cut="blanks")
    encoder = paranmt_hf.load(tmp_path / "out")
    expected = np.stack([vector(file, text) for text in TEXTS])
    np.testing.assert_allclose(encoder.encode(TEXTS), expected, atol=1e-6)
    assert made.record.order == order
    assert (made.record.words, made.record.ngrams) == (10, 0 if order == 1 else 50)
    # The row of the program's placeholder is left out, and the bytes of one word are no text.
    assert not encoder[0].weight[0].any()
    assert made.record.unreachable == 1


def test_words_cut_raw_text(model, tmp_path):
    """`It's` is two words in lower case; of the vocabulary `co-op` and two bytes are never met."""
    made = convert(model, tmp_path / "out")
    encoder = paranmt_hf.load(tmp_path / "out")
    file = BinFile(WORDS)
    np.testing.assert_allclose(encoder.encode("The cat sat. It's"), vector(file, "the cat sat . it 's"), atol=1e-6)
    assert made.record.unreachable == 2


def test_unigrams_are_a_stock_model(tmp_path):
    """They load in plain sentence-transformers without a flag; unknown words shorten a vector and do not turn it."""
    file = BinFile(WORDS, order=1, bucket=2)
    (tmp_path / "model.bin").write_bytes(file.write())
    assert "WORD of 4 dimensions" in convert(tmp_path / "model.bin", tmp_path / "out").summary()
    plain = SentenceTransformer(str(tmp_path / "out"), device="cpu")
    np.testing.assert_allclose(plain.encode("The cat sat"), vector(file, "the cat sat"), atol=1e-6)
    np.testing.assert_allclose(plain.encode("The cat sat zebra"), vector(file, "the cat sat") * 3 / 4, atol=1e-6)
    assert load_file(tmp_path / "out" / "model.safetensors")["embedding.weight"].shape == (11, 4)


@pytest.mark.parametrize("cut", ["words", "blanks"])
@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("precision", ["float32", "float16", "int8"])
def test_written_as_modules_write(precision, order, cut, tmp_path):
    """The file that is written row after row has the tensors of a module that is saved whole."""
    file = BinFile(WORDS, order=order)
    (tmp_path / "model.bin").write_bytes(file.write())
    convert(tmp_path / "model.bin", tmp_path / "out", precision=precision, cut=cut)
    rows = file.rows()[: 61 if order == 2 else 11]
    rows[0] = 0
    expected = store(rows, precision)
    found = load_file(tmp_path / "out" / "model.safetensors")
    if order == 2 or cut == "blanks":
        expected["ngrams.hashes"] = np.arange(50 if order == 2 else 0)
    assert found.keys() == expected.keys()
    for name, tensor in expected.items():
        np.testing.assert_array_equal(found[name], tensor)
        assert found[name].dtype == tensor.dtype
    encoder = paranmt_hf.load(tmp_path / "out")
    np.testing.assert_allclose(encoder[0].weight.numpy(), rows, atol=1e-2)


@pytest.mark.parametrize("bucket", [50, 300_000])
def test_only_ngrams_of_a_text(bucket, tmp_path):
    """Sentences of the text keep their vectors; what is left out is left out of the average. In one block and more."""
    file, model = BinFile(WORDS, bucket=bucket), tmp_path / "model.bin"
    model.write_bytes(file.write())
    text = tmp_path / "text.txt"
    text.write_text("The cat sat.\nIt's the café\n", encoding="utf8")
    made = convert(model, tmp_path / "out", text=str(text))
    encoder = paranmt_hf.load(tmp_path / "out")
    assert made.record.ngrams == 6
    for raw, cut in (("The cat sat.", "the cat sat ."), ("It's the café", "it 's the café")):
        np.testing.assert_allclose(encoder.encode(raw), vector(file, cut), atol=1e-6)
    np.testing.assert_allclose(encoder.encode("it sat"), file.rows()[[4, 6]].mean(axis=0), atol=1e-6)
    text.write_text("zebra cat\n", encoding="utf8")
    with refused("text"):
        convert(model, tmp_path / "none", text=str(text))


def test_from_a_packed_file(model, tmp_path):
    convert(model, tmp_path / "plain")
    (tmp_path / "model.bin.gz").write_bytes(gzip.compress(model.read_bytes()))
    convert(tmp_path / "model.bin.gz", tmp_path / "packed")
    weights = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("plain", "packed")]
    assert weights[0] == weights[1]


def test_again_and_otherwise(model, tmp_path):
    """Known by content: the same file under another name is the same; nothing is left behind by an error."""
    out = tmp_path / "out"
    first = convert(model, out)
    model.rename(tmp_path / "other.bin")
    again = convert(tmp_path / "other.bin", out)
    assert again.record == first.record and first.fresh and not again.fresh
    with refused("out", path=out):
        convert(tmp_path / "other.bin", out, cut="blanks")
    model.write_bytes(BinFile(WORDS, tokens=7).write())
    with refused("out", path=out):
        convert(model, out)
    model.write_bytes(BinFile(WORDS).write()[:-3])
    with refused("model", path=model):
        convert(model, tmp_path / "cut")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model.bin", "other.bin", "out"]


def test_numbers_too_large_for_half(tmp_path):
    file = BinFile(WORDS)
    rows = file.rows()
    rows[4, 0] = 1e5
    (tmp_path / "model.bin").write_bytes(file.write(rows))
    with refused("precision"):
        convert(tmp_path / "model.bin", tmp_path / "out", precision="float16")


def test_published(model, tmp_path):
    """With the licence that was stated, the card of its record, and the code that it needs elsewhere."""
    out = tmp_path / "out"
    convert(model, out)
    plan = publish(out, "you/sent2vec", dry_run=True)
    assert {
        "conversion.json",
        "paranmt_averages.py",
        "paranmt_tables.py",
        "vocabulary.json",
    } <= plan.repository.sizes.keys()
    assert plan.left_here == []
    assert "license: mit" in plan.card
    assert "`-dim 4 -epoch 3 -minCount 2 -neg 10 -t 0.0001 -wordNgrams 2 -bucket 50`" in plan.card
    assert "2 of the 10 words are never met" in plan.card
    assert "English" not in plan.card


def test_a_file_that_is_cut_off_reserves_no_memory(tmp_path):
    """It says that it has two thousand million buckets, and ends before the first."""
    whole = BinFile(WORDS, order=2, bucket=50).write()
    position = whole.index(struct.pack("<i", 50))
    content = whole[:position] + struct.pack("<i", 2_000_000_000) + whole[position + 4 :]
    (tmp_path / "model.bin").write_bytes(content)
    with refused("model", path=tmp_path / "model.bin"):
        convert(tmp_path / "model.bin", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_not_averaged(model, tmp_path):
    """The card of a mean tells how its models were trained, which no conversion knows."""
    convert(model, tmp_path / "out")
    with refused("models", path=tmp_path / "out"):
        average_encoders([tmp_path / "out", tmp_path / "out"], tmp_path / "mean")


def test_command(model, tmp_path, capsys):
    out = tmp_path / "out"
    words = ["encoder", "convert", str(model), "--out", str(out), "--license", "mit"]
    assert cli.main(words) == 0
    printed = capsys.readouterr().out
    assert "Sent2Vec of 4 dimensions, 10 words and 50 buckets of n-grams of up to 2 words" in printed
    assert "2 words never met" in printed and "already" not in printed
    assert cli.main(words) == 0
    assert "(was converted already): Sent2Vec of 4 dimensions" in capsys.readouterr().out
    assert cli.main(["publish", str(out), "you/it", "--dry-run"]) == 0
    assert "conversion.json" in capsys.readouterr().out
    assert cli.main([*words[:4], str(tmp_path / "no"), "--license", "mitt"]) == 1
    assert "did you mean mit?" in capsys.readouterr().err
    assert cli.main(["encoder", "convert", str(tmp_path / "none.bin"), *words[3:]]) == 1
    assert "none.bin" in capsys.readouterr().err
