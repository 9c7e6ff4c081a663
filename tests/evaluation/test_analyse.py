"""`paranmt analyse`, from the command line and from Python."""

import gzip
import json

import numpy as np
import pytest
import yaml

from paranmt_hf.cli import main
from paranmt_hf.encoders.saving import save
from paranmt_hf.encoders.sentence_encoder import SentenceEncoder
from paranmt_hf.errors import InputError
from paranmt_hf.evaluation.analysis.analyse import analyse_neighbours, analyse_norms, analyse_under_trained
from paranmt_hf.evaluation.word_averages import count_words, word_vectors
from paranmt_hf.hub.repository import ASSETS
from paranmt_hf.text.word_vectors import WordVectors, write_vectors
from tests.cli.commands import fails
from tests.encoders.test_sent2vec import module as sent2vec
from tests.training.toys import encoder_of, synonyms

SIMILARITY = str(ASSETS / "sample" / "similarity.tsv")


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """A WORD, a TRIGRAM, an LSTM and both together, over one vocabulary."""
    folder = tmp_path_factory.mktemp("models")
    sides = synonyms(30)
    for name, settings in {
        "word": {"model": "word"},
        "trigram": {"model": "trigram"},
        "both": {"model": "trigram,word"},
        "lstm": {"model": "lstm", "word_dimension": 4},
    }.items():
        save(encoder_of(sides, dimension=4, **settings), folder / name)
    return folder


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = [line.split("\t")[1:] for line in (ASSETS / "sample" / "similarity.tsv").read_text().splitlines()]
    words = sorted({word.strip(".,").lower() for line in lines for side in line for word in side.split()})
    vectors = np.random.default_rng(0).standard_normal((len(words), 6)).astype(np.float32)
    write_vectors(tmp_path / "v.txt", WordVectors(words, vectors))
    (tmp_path / "text.txt").write_text("A man is playing a guitar.\nThe man sat.\n")
    return tmp_path


def test_word_vectors_of_encoders(models, folder):
    word = word_vectors(models / "word")
    assert "left0" in word.words and "[UNK]" not in word.words and word.matrix.shape == (60, 4)
    some = word_vectors(models / "word", {"left3", "yak"})
    assert some.words == ["left3"]
    assert some.matrix[0].tolist() == word.matrix[word.words.index("left3")].tolist()
    for name in ("both", "lstm"):
        assert sorted(word_vectors(models / name).words) == sorted(word.words)
    # Those of Sent2Vec's n-grams stand behind those of its words.
    save(SentenceEncoder(modules=[sent2vec()], device="cpu"), folder / "sent2vec")
    found = word_vectors(folder / "sent2vec")
    assert found.words == sent2vec().units[1:]
    np.testing.assert_array_equal(found.matrix, sent2vec().weight.numpy()[1 : len(found.words) + 1])
    with pytest.raises(InputError, match="trigram is TRIGRAM, which reads no words; expected an encoder with word"):
        word_vectors(models / "trigram")
    with pytest.raises(InputError, match="word has no vector of any of the 1 words that are asked for"):
        word_vectors(models / "word", {"yak"})
    with pytest.raises(InputError, match="there is no nowhere: expected a file of word vectors, the folder of an"):
        word_vectors("nowhere")


def test_broken_vectors_of_an_encoder(models, folder, monkeypatch):
    from paranmt_hf.encoders import loading

    loaded = loading.load(models / "word")
    loaded[0].embedding.weight.data[5, 1] = float("nan")
    monkeypatch.setattr(loading, "load", lambda _: loaded)
    with pytest.raises(InputError, match=r"the vector of 'left\d+' has a number that is not finite"):
        analyse_norms([models / "word"])


def test_counting(folder, release):
    counts = count_words("text.txt")
    assert counts.counts == {"a": 2, "man": 2, "is": 1, "playing": 1, "guitar": 1, ".": 2, "the": 1, "sat": 1}
    assert counts.source == "2 sentences of text.txt"
    assert count_words(release).total == 60 * 9 * 2, "both sides"
    (folder / "empty.txt").write_text("\n\n")
    with pytest.raises(InputError, match="holds no word, so no word has a frequency"):
        count_words("empty.txt")
    with pytest.raises(InputError, match="nowhere.txt"):
        count_words("nowhere.txt")
    (folder / "broken.parquet").write_bytes(b"PAR1nothing")
    with pytest.raises(InputError, match="broken.parquet: expected a Parquet file, but cannot read it"):
        count_words("broken.parquet")
    packed = bytearray(gzip.compress("".join(f"word{number} {number}\n" for number in range(5000)).encode()))
    packed[40:60] = b"\xff" * 20
    (folder / "damaged.txt.gz").write_bytes(packed)
    with pytest.raises(InputError, match=r"damaged.txt.gz: cannot be read to its end"):
        count_words("damaged.txt.gz")


def test_lengths(folder, capsys):
    pytest.importorskip("matplotlib")
    command = ["analyse", "lengths", "--vectors", "v.txt", "--data", SIMILARITY, "--up-to", "5", "7"]
    more = ["--weighting", "average", "blacklist", "--blacklist", "3", "--bootstrap", "20"]
    assert main([*command, *more, "--json", "l.json", "--picture", "l.png"]) == 0
    out = capsys.readouterr().out
    assert out.split("\n")[0].split("  ")[-2:] == ["average of v.txt", "blacklist of v.txt"]
    assert "\n<= 5" in out and "\n6 to 7" in out and "\n>= 8" in out and "picture: l.png\nfigures: l.json" in out
    values = json.loads((folder / "l.json").read_text())
    assert values["models"] == ["average of v.txt", "blacklist of v.txt"] and values["bins"][-1]["pairs"] == 40
    assert yaml.safe_load((folder / "l.json.paranmt.yaml").read_text())["up-to"] == [5, 7]
    assert main(["analyse", "lengths", "--config", "l.json.paranmt.yaml", "--json", "again.json"]) == 0
    assert (folder / "again.json").read_bytes() == (folder / "l.json").read_bytes()
    fails(capsys, ["analyse", "lengths", "--data", SIMILARITY], "name an encoder, or a file of --vectors")
    without = ["analyse", "lengths", "embedded", "--data", SIMILARITY, "--sif-a", "0.1"]
    fails(capsys, without, "--sif-a is about --vectors, and changes nothing for other models")
    fails(capsys, [*command[:-2], "7", "5"], "--up-to must be whole numbers from 1 that ascend, was 7 5")
    fails(capsys, [*command, "--picture", "l.jpg"], "--picture l.jpg: expected a name that ends in .png")
    fails(capsys, [*command, "--json", "no/l.json"], "--json no/l.json: there is no folder no")
    (folder / "none").mkdir()
    fails(capsys, ["analyse", "lengths", "embedded", "--data", "none"], "none holds no STS data")


def test_neighbours(models, folder, capsys):
    command = ["analyse", "neighbours", str(models / "both"), str(models / "word"), "--words", "Left3", "right7"]
    assert main([*command, "--top", "2", "--json", "n.json"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("left3") and "both" in out and "among the 60 most common words that all have" in out
    values = json.loads((folder / "n.json").read_text())
    assert [each["word"] for each in values["words"]] == ["left3", "right7"]
    matrix = word_vectors(models / "word")
    unit = matrix.matrix / np.linalg.norm(matrix.matrix, axis=1, keepdims=True)
    cosines = unit @ unit[matrix.words.index("left3")]
    cosines[matrix.words.index("left3")] = -2
    best = values["words"][0]["neighbours"][1][0]
    assert (best["word"], best["cosine"]) == (matrix.words[cosines.argmax()], pytest.approx(cosines.max(), abs=1e-6))
    fails(capsys, [*command[:3], "--words", "two words"], "'two words' is 2 words; neighbours are those of one word")
    fails(capsys, [*command[:3], "--words", "yak", "gnu"], "yak gnu: no vector in")
    assert main([*command[:3], "--words", "yak", "left3", "--top", "1"]) == 0
    table = capsys.readouterr().out.split("\n\n")
    assert table[0].split() == ["yak", str(models / "both"), "1", "not", "known"] and table[1].startswith("left3")
    fails(capsys, [*command, "--top", "0"], "--top must be at least 1, was 0")
    fails(capsys, ["analyse", "neighbours", str(models / "trigram"), "--words", "a"], "which reads no words")
    with pytest.raises(InputError, match="name encoders or files of word vectors"):
        analyse_neighbours([], ["a"])


def test_neighbours_by_other_frequencies(folder):
    (folder / "counts.txt").write_text("man 5\nguitar 3\nthe 2\nyak 9\n")
    table = analyse_neighbours(["v.txt"], ["man"], frequencies="counts.txt", common=3)
    # Of the three most common ones yak has no vector, and man is the word itself.
    assert table.common == 2 and [each.word for each in table.words[0].neighbours[0]] == ["guitar"]


def test_norms(models, folder, capsys):
    pytest.importorskip("matplotlib")
    assert main(["analyse", "norms", "v.txt", str(models / "word"), "--json", "n.json", "--picture", "n.png"]) == 0
    out = capsys.readouterr().out
    assert "order of the words of each (Zipf's law)" in out and "v.txt, L1, largest: " in out
    values = json.loads((folder / "n.json").read_text())
    assert [each["name"] for each in values["vectors"]] == ["v.txt", str(models / "word")]
    assert main(["analyse", "norms", "v.txt", "--frequencies", "text.txt", "--common", "2", "--markdown"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("| Vectors | Norm | Words | Unseen |") and "2 sentences of text.txt" in out
    (norms,) = analyse_norms(["v.txt"], first_words=5).vectors
    assert norms.words == 5
    fails(capsys, ["analyse", "norms", "v.txt", "--first-words", "1"], "--first-words must be at least 2, was 1")
    fails(capsys, ["analyse", "norms", "v.txt", "--sif-a", "0"], "--sif-a must be above 0, was 0")
    fails(capsys, ["analyse", "norms", str(models / "word"), "--frequencies", "text.txt"], "none of the 60 words of")


def test_under_trained(folder, capsys):
    pytest.importorskip("matplotlib")
    command = ["analyse", "under-trained", "--vectors", "v.txt", "--data", SIMILARITY, "--training", "text.txt"]
    assert main([*command, "--at-least", "2", "--json", "u.json", "--picture", "u.png"]) == 0
    out = capsys.readouterr().out
    assert (
        "Seen < 2" in out and "Counts: 2 sentences of text.txt, 8 words, of which 3 were seen 2 times or more" in out
    )
    found = json.loads((folder / "u.json").read_text())["sets"][0]
    assert 0.5 < found["unseen"] < found["under_trained"] < 1
    table = analyse_under_trained([], SIMILARITY, "text.txt", vectors=["v.txt"], at_least=2)
    assert table.to_json() == json.loads((folder / "u.json").read_text())
    fails(capsys, [*command, "--at-least", "0"], "--at-least must be at least 1, was 0")
    fails(capsys, [*command, "--references", "no.tsv"], "cannot read no.tsv")
    fails(capsys, [*command[:-1], "no.txt"], "no.txt")
