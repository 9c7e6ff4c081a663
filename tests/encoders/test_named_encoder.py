"""Which encoder gives the paraphrase score."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sentence_transformers import SentenceTransformer

from paranmt_hf import SentenceEncoder, StaticEncoder, import_pairs, load
from paranmt_hf.corpus.scoring.scores import cosines, paraphrase_scores, score_pairs
from paranmt_hf.encoders.named_encoder import NamedEncoder, word_table
from paranmt_hf.encoders.saving import save
from paranmt_hf.hub.repository import locate
from paranmt_hf.text.definitions import words
from paranmt_hf.text.tokens import WordTokenizer
from paranmt_hf.text.word_vectors import WordVectors, read_vectors
from tests.encoders.toys import SENTENCES, encoder, foreign_table
from tests.refused import refused
from tests.toys import LOCAL, RELEASE, rows_of

VECTORS = "a 1 0\ncat 0 2\n[UNK] 9 9\nsat 2 2\ndog 0 -1\n"


@pytest.fixture
def average(tmp_path):
    (tmp_path / "v.txt").write_text(VECTORS)
    return NamedEncoder(str(tmp_path / "v.txt")).load()


def test_average_of_vectors_leaves_unknown_words_out(average):
    """They shorten the average and do not turn it, so that no cosine changes."""
    expected = [[0.5, 1], [1, 2 / 3], [0, 0], [0, 0], [1 / 6, 0]]
    found = average.encode(["A cat", "a zebra sat", "zebra", "", "[UNK] zebra zebra a"])
    np.testing.assert_allclose(found, expected, atol=1e-6)
    # a cat / a dog: (1, 2) . (1, -1) / sqrt(5 * 2)
    references, translations = pa.array(["a cat", "zebra", "a zebra cat"]), pa.array(["a dog", "a", "dog a"])
    scores = paraphrase_scores(references, translations, average).to_pylist()
    assert scores == [pytest.approx(-1 / np.sqrt(10)), 0.0, pytest.approx(-1 / np.sqrt(10))]


def test_unknown_words_share_the_vector_that_the_file_has_for_them(tmp_path):
    (tmp_path / "v.txt").write_text("a 1 0\ncat 0 2\nUUUNKKK 0 -4\n")
    average = NamedEncoder(str(tmp_path / "v.txt")).load()
    found = average.encode(["a cat", "a zebra", "zebra lion", "", "UUUNKKK"])
    np.testing.assert_allclose(found, [[0.5, 1], [0.5, -2], [0, -4], [0, 0], [0, -4]], atol=1e-6)
    scores = paraphrase_scores(pa.array(["zebra"]), pa.array(["lion"]), average).to_pylist()
    assert scores == [1.0]


def test_vectors_of_another_language_are_refused(tmp_path):
    (tmp_path / "v.txt").write_text("kočka 1 0\npes 0 1\n")
    pq.write_table(pa.table({"reference": ["a cat.", "dogs"], "translation": ["pes", "pes"]}), tmp_path / "p.parquet")
    scorer = tmp_path / "v.txt"
    with refused():
        import_pairs(tmp_path / "p.parquet", tmp_path / "out", scorer=scorer, release=RELEASE, engine=LOCAL)
    assert not (tmp_path / "out").exists()


def test_average_of_vectors_follows_a_tokenizer_that_forgets(average):
    tokenizer = WordTokenizer(capacity=1)
    for text, expected in (("a", [1, 0]), ("cat sat", [1, 2]), ("dog", [0, -1]), ("a dog", [0.5, -0.5])):
        np.testing.assert_array_equal(average.encode_tokens(tokenizer.tables([text])[0]), [expected])


@pytest.mark.slow
def test_average_of_real_vectors_equals_its_definition(shared_data):
    vectors = read_vectors(shared_data / "vectors" / "glove.100d.100k.txt.gz", limit=5_000)
    table = pq.read_table(shared_data / "pairs" / "machine-translations.parquet").slice(0, 100)
    columns = [table[side].combine_chunks() for side in ("reference", "translation")]
    row_of = {word: row for row, word in enumerate(vectors.words)}
    sides = []
    for column in columns:
        known = [[row_of[word] for word in words(text) if word in row_of] for text in column.to_pylist()]
        sides.append(np.stack([vectors.matrix[rows].astype(np.float64).sum(axis=0) for rows in known]))
    encoder = StaticEncoder([word_table(vectors)])
    found = score_pairs(*columns, encoder, WordTokenizer())["para_score"].to_numpy()
    np.testing.assert_allclose(found, cosines(*sides), atol=1e-6)
    np.testing.assert_allclose(paraphrase_scores(*columns, encoder).to_numpy(), found, atol=1e-6)


def test_changed_vectors_are_read_anew(tmp_path):
    pq.write_table(pa.table({"reference": ["a"], "translation": ["b"]}), tmp_path / "p.parquet")
    path = tmp_path / "w.txt"
    for number, (content, score) in enumerate((("a 1 0\nb 0 1\n", 0.0), ("a 1 0\nb 1 0\n", 1.0))):
        path.write_text(content)
        out = tmp_path / f"corpus{number}"
        import_pairs(tmp_path / "p.parquet", out, scorer=path, release=RELEASE, engine=LOCAL)
        assert rows_of(out)[0]["para_score"] == score


def test_any_sentence_transformer_scores(tmp_path):
    scorer = tmp_path / "encoder"
    table = foreign_table(["[UNK]", "a", "b"], np.array([[0, 0], [1, 0], [1, 1]], np.float32))
    SentenceTransformer(modules=[table]).save_pretrained(str(scorer))
    pq.write_table(pa.table({"reference": ["a", "a b"], "translation": ["b", "a b"]}), tmp_path / "p.parquet")
    built = import_pairs(tmp_path / "p.parquet", tmp_path / "corpus", scorer=scorer, release=RELEASE, engine=LOCAL)
    assert [row["para_score"] for row in rows_of(tmp_path / "corpus")] == [pytest.approx(0.5**0.5), pytest.approx(1)]
    assert built.record.settings["scorer"]["name"] == "encoder"


def test_scorer_with_code_of_its_own_is_refused(tmp_path):
    SentenceTransformer(modules=[foreign_table(["[UNK]", "a"], np.eye(2, dtype=np.float32))]).save_pretrained(
        str(tmp_path)
    )
    (tmp_path / "evil.py").write_text("raise SystemExit('code ran')")
    modules = tmp_path / "modules.json"
    modules.write_text(modules.read_text().replace("sentence_transformers.", "evil."))
    with refused():
        NamedEncoder(str(tmp_path)).load()
    modules.unlink()
    with refused():
        NamedEncoder(str(tmp_path)).load()


def test_names(tmp_path, monkeypatch):
    """A file is one of word vectors, and a folder stays a folder, whatever characters its name has."""
    folder = tmp_path / "a@b"
    save(encoder("word"), folder)
    monkeypatch.chdir(tmp_path)
    assert NamedEncoder(str(folder)).identity["name"] == "a@b"
    assert NamedEncoder("a@b").found_anywhere == NamedEncoder(str(folder))
    (tmp_path / "small").write_text(VECTORS)
    assert NamedEncoder().vectors is None and NamedEncoder("./small").vectors
    for name in ("none.txt", "./none"):
        with refused():
            NamedEncoder(name).identity  # noqa: B018


def test_a_revision_of_the_hub(tmp_path, monkeypatch):
    asked = []

    def fetch(name, revision, **kwargs):
        asked.append((name, revision))
        return str(tmp_path / "abc")

    save(encoder("word"), tmp_path / "abc")
    monkeypatch.setattr("huggingface_hub.snapshot_download", fetch)
    assert NamedEncoder("you/model@v1").identity == {"name": "you/model", "revision": "abc"}
    assert asked == [("you/model", "v1")]


def test_default_scorer_is_the_encoder_of_the_package():
    unnamed, named = NamedEncoder.of(None), NamedEncoder("small")
    assert unnamed.identity == named.identity
    assert unnamed.identity["name"] == "small (an encoder of paranmt-hf)"
    # An average scores without torch.
    assert isinstance(unnamed.load(), StaticEncoder)
    np.testing.assert_array_equal(unnamed.load().encode(SENTENCES), load().encode(SENTENCES))
    near, far = (np.dot(*unnamed.load().encode(pair)) for pair in (["a dog", "the dog"], ["a dog", "my tax"]))
    assert near > far


def test_a_scorer_truncates_as_its_model_says(tmp_path):
    """From text and from tokens."""
    model = SentenceEncoder(modules=list(encoder("word,trigram")), device="cpu", truncate_dim=3)
    save(model, tmp_path / "model")
    scorer = NamedEncoder(str(tmp_path / "model")).load()
    np.testing.assert_array_equal(scorer.encode(SENTENCES), model.encode(SENTENCES))
    tokens = WordTokenizer().tables(SENTENCES)[0]
    np.testing.assert_array_equal(scorer.encode_tokens(tokens), model.encode(SENTENCES))


def test_a_word_of_a_file_that_looks_like_a_piece_is_left_out():
    table = word_table(WordVectors(["cat", "##s", "###"], np.eye(3, dtype=np.float32)))
    assert table.vocabulary.units == ["[UNK]", "cat", "###"] and not table.vocabulary.has_pieces
    assert not StaticEncoder([table]).encode("cats").any()


def test_a_folder_with_the_name_of_a_carried_encoder_is_told(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    save(encoder("word"), tmp_path / "base")
    with refused():
        locate("base")
    assert locate("./base").folder.resolve() == tmp_path / "base"
