"""The numpy-only encoder: the vectors of `load`, without torch."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Normalize

import paranmt_hf
from paranmt_hf import SentenceEncoder, StaticEncoder, load
from paranmt_hf.encoders.saving import save
from paranmt_hf.encoders.static_average import StaticAverage
from paranmt_hf.encoders.vocabulary import AverageTable, Vocabulary
from paranmt_hf.text.tokens import WordTokenizer
from tests.encoders.test_sent2vec import module as sent2vec
from tests.encoders.toys import AVERAGES, REDUCED, SENTENCES, TRIGRAMS, WORDS, encoder, foreign_table, rows
from tests.refused import refused

BAGS = [name for name in AVERAGES + REDUCED if "projection" not in name and "dan" not in name]
OTHERS = ["projection", "projection,trigram", "dan-two-layers", "lstm", "word,lstm", "rnn-relu"]
NGRAMS = {
    "sent2vec": ("words", 2, "float32"),
    "sent2vec-blanks": ("blanks", 3, "float16"),
    "words": ("blanks", 1, "int8"),
}
SETTINGS = {"prompts": {"query": None, "loud": "cat! "}, "similarity_fn_name": "dot", "truncate_dim": 3}


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for each kind of encoder."""
    top = tmp_path_factory.mktemp("encoders")
    for name in BAGS + OTHERS:
        save(encoder(name), top / name)
    for name, (cut, order, precision) in NGRAMS.items():
        save(SentenceEncoder(modules=[sent2vec(order, cut, precision)], device="cpu"), top / name)
    save(SentenceEncoder(modules=list(encoder("word,trigram")), device="cpu", **SETTINGS), top / "settings")
    return top


@pytest.mark.parametrize("name", [*BAGS, *NGRAMS, "settings"])
def test_vectors_are_those_of_load(saved: Path, name: str) -> None:
    """One by one, and in columns if there are many."""
    static, full = StaticEncoder.from_pretrained(saved / name), load(saved / name)
    vectors = static.encode(SENTENCES)
    assert np.abs(vectors).sum() > 1 and vectors.dtype == np.float32
    assert vectors.shape == (len(SENTENCES), static.dimension)
    np.testing.assert_array_equal(vectors, full.encode(SENTENCES))
    np.testing.assert_allclose(vectors, SentenceTransformer.encode(full, SENTENCES), atol=1e-6)
    for sentence, vector in zip(SENTENCES, vectors, strict=True):
        np.testing.assert_array_equal(static.encode(sentence), vector)
    static.warm_up()
    np.testing.assert_array_equal(static.encode(SENTENCES * 20), np.tile(vectors, (20, 1)))
    np.testing.assert_array_equal(full.encode(SENTENCES * 20), np.tile(vectors, (20, 1)))
    assert static.known_tokens(SENTENCES).tolist() == full.known_tokens(SENTENCES).tolist()


def test_options_of_other_encoders_change_nothing(saved: Path) -> None:
    average = StaticEncoder.from_pretrained(saved / "word")
    found = average.encode(SENTENCES, batch_size=1, show_progress_bar=True)
    np.testing.assert_array_equal(found, average.encode(SENTENCES))


@pytest.mark.parametrize("name", OTHERS)
def test_other_encoders_are_refused(saved: Path, name: str) -> None:
    with refused():
        StaticEncoder.from_pretrained(saved / name)


TABLES = [
    AverageTable(Vocabulary("word", WORDS), rows(WORDS, 5)),
    AverageTable(Vocabulary("trigram", TRIGRAMS), rows(TRIGRAMS, 5, 2)),
]


@given(
    st.lists(st.text(alphabet=" the cat sat.isn'té3,5Z\u2019", max_size=30), max_size=6),
    st.sampled_from(["add", "concatenate"]),
)
def test_both_ways_give_equal_bits(sentences: list[str], mode: str) -> None:
    average = StaticAverage(TABLES, mode)
    few, table = average.encode(sentences), WordTokenizer().tables(sentences)[0]
    np.testing.assert_array_equal(few, average.encode_tokens(table))


@pytest.mark.parametrize("mode", ["add", "concatenate"])
def test_what_is_remembered_changes_nothing(mode: str) -> None:
    forgetful, average = StaticAverage(TABLES, mode, remembered=2), StaticAverage(TABLES, mode)
    for sentence in SENTENCES * 2:
        np.testing.assert_array_equal(forgetful.encode([sentence]), average.encode([sentence]))
        np.testing.assert_array_equal(forgetful.encode([sentence] * 100), average.encode([sentence] * 100))


def test_means_by_hand() -> None:
    average = StaticAverage(
        [AverageTable(Vocabulary("word", ["[UNK]", "a", "b"]), np.float32([[0, 4], [1, 2], [3, 8]]))]
    )
    assert average.encode(["a b", "b zebra", "", "a a a b"]).tolist() == [[2, 5], [1.5, 6], [0, 0], [1.5, 3.5]]
    assert average.encode([]).shape == (0, 2)


def test_long_sentences_and_many(saved: Path) -> None:
    """A sentence of more characters than one by one; and more than are encoded before the columns' packages load."""
    static = StaticEncoder.from_pretrained(saved / "word,trigram")
    sentences = [*SENTENCES, "the cat sat. zebra " * 400, *SENTENCES * 50]
    expected = np.concatenate([static.encode([sentence]) for sentence in sentences])
    np.testing.assert_array_equal(static.encode(sentences), expected)
    np.testing.assert_array_equal(static.encode(sentences * 25, threads=2), np.tile(expected, (25, 1)))


OPTIONS = [
    {"normalize_embeddings": True},
    {"truncate_dim": 2},
    {"truncate_dim": 50},
    {"truncate_dim": 2, "normalize_embeddings": True},
    {"prompt": "The cat. "},
    {"prompt_name": "loud"},
    {"prompt_name": "query"},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_options(saved: Path, options: dict[str, object]) -> None:
    static, full = StaticEncoder.from_pretrained(saved / "settings"), load(saved / "settings")
    for inputs in (SENTENCES, "The cat’s", "", [], tuple(SENTENCES)):
        np.testing.assert_array_equal(static.encode(inputs, **options), full.encode(inputs, **options))
    with refused():
        static.encode("a", prompt_name="none")


def test_the_default_prompt_is_used(tmp_path: Path) -> None:
    model = SentenceEncoder(
        modules=list(encoder("word")), device="cpu", prompts={"it": "cat "}, default_prompt_name="it"
    )
    save(model, tmp_path / "model")
    static = StaticEncoder.from_pretrained(tmp_path / "model")
    np.testing.assert_array_equal(static.encode("sat"), model.encode("sat"))
    np.testing.assert_array_equal(static.encode("sat"), encoder("word").encode("cat sat"))


@pytest.mark.parametrize("name", ["cosine", "dot", "euclidean", "manhattan"])
def test_similarity_is_that_of_sentence_transformers(tmp_path: Path, name: str) -> None:
    model = SentenceEncoder(modules=list(encoder("word,trigram")), device="cpu", similarity_fn_name=name)
    save(model, tmp_path / "model")
    static, vectors = StaticEncoder.from_pretrained(tmp_path / "model"), model.encode(SENTENCES)
    expected = model.similarity(vectors, vectors[:3]).numpy()
    np.testing.assert_allclose(static.similarity(vectors, vectors[:3]), expected, atol=1e-5)
    assert static.similarity(vectors[0], vectors).shape == (1, len(SENTENCES))


@pytest.mark.parametrize("name", ["word", "word,trigram", "sent2vec-blanks", "settings"])
def test_what_it_saves_is_the_model(saved: Path, tmp_path: Path, name: str) -> None:
    StaticEncoder.from_pretrained(saved / name).save_pretrained(tmp_path / "copy")
    expected = StaticEncoder.from_pretrained(saved / name).encode(SENTENCES)
    np.testing.assert_array_equal(StaticEncoder.from_pretrained(tmp_path / "copy").encode(SENTENCES), expected)
    files = {path.relative_to(saved / name) for path in (saved / name).rglob("*")}
    assert files == {path.relative_to(tmp_path / "copy") for path in (tmp_path / "copy").rglob("*")}
    # Into its own folder, and into one inside.
    for again in ("copy", "copy/inner"):
        StaticEncoder.from_pretrained(tmp_path / "copy").save_pretrained(tmp_path / again)
        np.testing.assert_array_equal(StaticEncoder.from_pretrained(tmp_path / again).encode(SENTENCES), expected)
    assert not (tmp_path / "copy" / "inner" / "inner").exists()
    with refused():
        StaticEncoder(TABLES).save_pretrained(tmp_path / "other")


def test_copies_in_other_processes_and_threads(saved: Path) -> None:
    static = StaticEncoder.from_pretrained(saved / "word,trigram")
    expected, errors = static.encode(SENTENCES), list[Exception]()
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(static)).encode(SENTENCES), expected)

    def work() -> None:
        try:
            for repeated in (1, 200) * 5:
                found = static.encode(SENTENCES * repeated)
                np.testing.assert_array_equal(found, np.tile(expected, (repeated, 1)))
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors


def test_stock_modules_that_are_not_word(tmp_path: Path) -> None:
    other = foreign_table(["[UNK]", "Cat"], rows(["[UNK]", "Cat"], 4))
    for number, modules in enumerate([[other], [encoder("word")[0].stock(), Normalize()]]):
        folder = tmp_path / str(number)
        SentenceTransformer(modules=modules, device="cpu").save(str(folder), create_model_card=False)
        with refused():
            StaticEncoder.from_pretrained(folder)


COLD = """
import sys
import paranmt_hf

heavy = {"torch", "sentence_transformers", "transformers", "datasets", "pandas", "scipy", "numba", "pyarrow"}
assert not {"numpy", *heavy} & set(sys.modules), "importing the package is cheap"
import numpy as np
out, sentences, folders = sys.argv[1], eval(sys.argv[2]), sys.argv[3:]
models = [paranmt_hf.StaticEncoder.from_pretrained(folder) for folder in folders]
found = [model.encode(sentences) for model in models]
assert not heavy & set(sys.modules), heavy & set(sys.modules)
many = models[-1].encode(sentences * 5000)
assert "numba" in sys.modules and not {"torch", "sentence_transformers"} & set(sys.modules)
np.testing.assert_array_equal(many[-len(sentences):], found[-1])
np.savez(out, *found)
"""


@pytest.mark.slow
def test_a_new_process_gives_vectors_without_torch(saved: Path, tmp_path: Path) -> None:
    folders = [str(saved / name) for name in ("word", "trigram-int8", "word,trigram", "sent2vec-blanks")]
    command = [sys.executable, "-c", COLD, str(tmp_path / "out.npz"), repr(SENTENCES), *folders, "small"]
    environment = {**os.environ, "PYTHONPATH": str(Path(paranmt_hf.__file__).parents[1])}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    found = np.load(tmp_path / "out.npz")
    for name, folder in zip(found.files, [*folders, "small"], strict=True):
        np.testing.assert_array_equal(found[name], load(folder).encode(SENTENCES))
