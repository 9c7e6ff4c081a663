"""`paranmt analyse`, from the command line and from Python."""

import gzip

import numpy as np
import pytest

from paranmt_hf.cli import main
from paranmt_hf.encoders.saving import save
from paranmt_hf.encoders.sentence_encoder import SentenceEncoder
from paranmt_hf.evaluation.results import read_results
from paranmt_hf.evaluation.word_averages import count_words, word_vectors
from paranmt_hf.experiments.paragram_section5 import paragram_section5
from paranmt_hf.experiments.paragram_section6 import paragram_section6
from paranmt_hf.experiments.paragram_table8 import paragram_table8
from paranmt_hf.hub.repository import ASSETS
from paranmt_hf.text.definitions import is_piece
from paranmt_hf.text.word_vectors import WordVectors, write_vectors
from tests.cli.commands import fails
from tests.encoders.test_sent2vec import module as sent2vec
from tests.refused import refused
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
        "pieces": {"model": "word", "pieces": 64},
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
    pieces = word_vectors(models / "pieces").words
    assert set(word.words) < set(pieces) and not any(map(is_piece, pieces))
    # Those of Sent2Vec's n-grams stand behind those of its words.
    save(SentenceEncoder(modules=[sent2vec()], device="cpu"), folder / "sent2vec")
    found = word_vectors(folder / "sent2vec")
    assert found.words == sent2vec().units[1:]
    np.testing.assert_array_equal(found.matrix, sent2vec().weight.numpy()[1 : len(found.words) + 1])
    with refused():
        word_vectors(models / "trigram")
    with refused():
        word_vectors(models / "word", {"yak"})
    with refused():
        word_vectors("nowhere")


def test_broken_vectors_of_an_encoder(models, folder, monkeypatch):
    from paranmt_hf.encoders import loading

    loaded = loading.load(models / "word")
    loaded[0].embedding.weight.data[5, 1] = float("nan")
    monkeypatch.setattr(loading, "load", lambda _: loaded)
    with refused():
        paragram_section6([models / "word"])


def test_counting(folder, release):
    counts = count_words("text.txt")
    assert counts.counts == {"a": 2, "man": 2, "is": 1, "playing": 1, "guitar": 1, ".": 2, "the": 1, "sat": 1}
    assert counts.source == "2 sentences of text.txt"
    assert count_words(release).total == 60 * 9 * 2, "both sides"
    (folder / "empty.txt").write_text("\n\n")
    with refused():
        count_words("empty.txt")
    with refused():
        count_words("nowhere.txt")
    (folder / "broken.parquet").write_bytes(b"PAR1nothing")
    with refused():
        count_words("broken.parquet")
    packed = bytearray(gzip.compress("".join(f"word{number} {number}\n" for number in range(5000)).encode()))
    packed[40:60] = b"\xff" * 20
    (folder / "damaged.txt.gz").write_bytes(packed)
    with refused():
        count_words("damaged.txt.gz")


def test_lengths(folder, capsys):
    pytest.importorskip("matplotlib")
    command = ["experiment", "paragram-table7", "--vectors", "v.txt", "--data", SIMILARITY]
    assert main([*command, "--json", "l.json", "--picture", "l.png"]) == 0
    out = capsys.readouterr().out
    assert "average of v.txt" in out and all(name in out for name in ("<= 4", ">= 10", "results: l.json"))
    assert (folder / "l.png").is_file()
    results = read_results(folder / "l.json")
    assert [each.model for each in results] == ["average of v.txt"]
    assert list(results[0].rows)[-1].items == 40
    fails(capsys, ["experiment", "paragram-table7", "--data", SIMILARITY], "name a model to evaluate")
    fails(capsys, [*command, "--picture", "l.jpg"], "l.jpg")
    fails(capsys, [*command, "--json", "no/l.json"], "no/l.json")
    (folder / "none").mkdir()
    fails(capsys, ["experiment", "paragram-table7", "small", "--data", "none"], "none holds no STS data")


def test_neighbours(models, folder, capsys):
    command = ["experiment", "paragram-table8", str(models / "both"), str(models / "word")]
    command += ["--words", "Left3", "right7"]
    assert main([*command, "--top", "2", "--json", "n.json"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("| left3") and "both" in out and "Among the 60 most common words that all have" in out
    results = read_results(folder / "n.json")
    assert list(results[0].tables) == ["left3", "right7"]
    matrix = word_vectors(models / "word")
    unit = matrix.matrix / np.linalg.norm(matrix.matrix, axis=1, keepdims=True)
    cosines = unit @ unit[matrix.words.index("left3")]
    cosines[matrix.words.index("left3")] = -2
    best = results[1].tables["left3"][0]
    assert (best.name, best.main) == (matrix.words[cosines.argmax()], pytest.approx(cosines.max(), abs=1e-6))
    fails(capsys, [*command[:3], "--words", "two words"], "'two words' is 2 words; neighbours are those of one word")
    fails(capsys, [*command[:3], "--words", "yak", "gnu"], "yak gnu: no vector in")
    assert main([*command[:3], "--words", "yak", "left3", "--top", "1"]) == 0
    table = capsys.readouterr().out.split("\n\n")
    assert "no vector" in table[0] and table[1].startswith("| left3")
    fails(capsys, ["experiment", "paragram-table8", str(models / "trigram"), "--words", "a"], "which reads no words")
    with refused("spaces"):
        paragram_table8([], words=["a"])


def test_neighbours_by_other_frequencies(folder):
    (folder / "counts.txt").write_text("man 5\nguitar 3\nthe 2\nyak 9\n")
    (result,) = paragram_table8(["v.txt"], words=["man"], frequencies="counts.txt", common=3)
    # Of the three most common ones yak has no vector, and man is the word itself.
    assert [row.name for row in result.tables["man"]] == ["guitar"]


def test_norms(models, folder, capsys):
    pytest.importorskip("matplotlib")
    words = ["v.txt", str(models / "word")]
    assert main(["experiment", "paragram-section6", *words, "--json", "n.json"]) == 0
    assert main(["experiment", "sent2vec-figure1", *words, "--picture", "n.png"]) == 0
    assert (folder / "n.png").read_bytes().startswith(b"\x89PNG")
    out = capsys.readouterr().out
    assert "order of words in v.txt (Zipf's law)" in out and "L1, largest: " in out
    assert [each.model for each in read_results(folder / "n.json")] == ["v.txt", str(models / "word")]
    assert main(["experiment", "paragram-section6", "v.txt", "--frequencies", "text.txt"]) == 0
    assert "2 sentences of text.txt" in capsys.readouterr().out
    fails(
        capsys,
        ["experiment", "paragram-section6", str(models / "word"), "--frequencies", "text.txt"],
        "none of the 60 words of",
    )


def test_under_trained(folder, capsys):
    pytest.importorskip("matplotlib")
    command = ["experiment", "paragram-section5", "--vectors", "v.txt", "--data", SIMILARITY, "--training", "text.txt"]
    assert main([*command, "--json", "u.json", "--picture", "u.png"]) == 0
    out = capsys.readouterr().out
    assert "Counts: 2 sentences of text.txt, 8 words, of which 0 were seen 100 times or more" in out
    found = paragram_section5([], data=SIMILARITY, training="text.txt", vectors=["v.txt"], at_least=2)
    row = found[0].tables["Set"][0]
    assert 0.5 < row["unseen"] < row["under_trained"] < 1
    fails(capsys, [*command[:-1], "no.txt"], "no.txt")
