"""Word vectors out of an encoder."""

import gzip

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paranmt_hf import VectorsConfig, distill_vectors
from paranmt_hf.distillation import vectors as workflow
from paranmt_hf.distillation.reduction import components, reduce_alone
from paranmt_hf.encoders.saving import save
from paranmt_hf.text.word_vectors import read_vectors
from tests.refused import refused
from tests.training.toys import encoder_of

WORDS = [f"w{number}" for number in range(50)]
MATRIX = np.random.default_rng(1).standard_normal((50, 7)).astype(np.float32) + 3


def test_centred_and_weighed_by_the_logarithm_of_the_rank():
    weighed = reduce_alone(WORDS, [MATRIX], None)
    assert weighed.words == WORDS
    factors = np.log(1 + np.arange(1, 51))
    assert factors[0] == pytest.approx(0.6931, abs=1e-4)
    wanted = (MATRIX - MATRIX.mean(axis=0)) * factors[:, None]
    wanted /= np.sqrt((np.linalg.norm(wanted, axis=1) ** 2).mean())
    np.testing.assert_allclose(weighed.matrix, wanted, rtol=1e-4, atol=1e-6)
    assert (np.linalg.norm(weighed.matrix, axis=1) ** 2).mean() == pytest.approx(1)


def test_principal_components_equal_the_singular_vectors_of_numpy():
    centred = MATRIX - MATRIX.mean(axis=0)
    left, sizes, _ = np.linalg.svd(centred.astype(np.float64), full_matrices=False)
    found = centred @ components(centred, 3)
    # Each component has either sign.
    wanted = left[:, :3] * sizes[:3]
    signs = np.sign((found * wanted).sum(axis=0))
    np.testing.assert_allclose(found, wanted * signs, atol=1e-4)
    full = centred @ components(centred, 7)
    np.testing.assert_allclose(full @ full.T, centred @ centred.T, atol=1e-3)
    assert reduce_alone(WORDS, [MATRIX], 3).matrix.shape == (50, 3)


@pytest.mark.parametrize("dimension", [8, 51])
def test_more_dimensions_than_there_are(dimension):
    with refused("dimension"):
        reduce_alone(WORDS, [MATRIX], dimension)


def test_bad_vectors():
    for encoded in (np.array([[np.nan, 1]]), np.ones((1, 4)), np.ones((3, 4))):
        with refused():
            reduce_alone(WORDS[: len(encoded)], [encoded.astype(np.float32)], None)


@pytest.fixture
def model(tmp_path):
    save(encoder_of((["a b c d e"], ["d e f g"]), dimension=6), tmp_path / "model")
    return tmp_path / "model"


@pytest.mark.parametrize("name", ["v.txt", "v.txt.gz"])
def test_file_is_written_and_read_again(tmp_path, model, name):
    pq.write_table(pa.table({"reference": ["a a a b", "C"], "translation": ["b a", "c ."]}), tmp_path / "p.parquet")
    config = VectorsConfig(words=3, dimension=2)
    vectors = distill_vectors(model, tmp_path / name, data=[tmp_path / "p.parquet"], config=config).vectors
    # a four times, b and c twice.
    assert vectors.words == ["a", "b", "c"]
    again = read_vectors(tmp_path / name)
    assert again.words == vectors.words
    # Five digits.
    np.testing.assert_allclose(again.matrix, vectors.matrix, rtol=1e-4, atol=1e-6)
    first = (tmp_path / name).read_bytes()
    distill_vectors(model, tmp_path / name, data=[tmp_path / "p.parquet"], config=config)
    assert (tmp_path / name).read_bytes() == first


def test_words_that_are_encoded_alone_are_kept(tmp_path, model, checkpoint_always, killed_after, counting):
    """Of two encoders, the second is interrupted at its second part of three."""
    (tmp_path / "words").write_text("a\nb\n" + "".join(f"c{number}\n" for number in range(5000)), encoding="utf8")

    def distilled(name):
        config = VectorsConfig(dimension=3)
        distill_vectors([model, model], tmp_path / name, vocabulary=tmp_path / "words", config=config)
        return (tmp_path / name).read_bytes()

    whole = distilled("whole")
    killed_after(4, distilled, "cut", kind=workflow.WithoutProgressBar, name="encode")
    assert counting(workflow.WithoutProgressBar, "encode", distilled, "cut") == (whole, 2)
    assert not (tmp_path / "cut.work").exists()


def test_vocabulary_file(tmp_path, model):
    (tmp_path / "words").write_text("b 17\na 9 x\n\nb 3\ng\nf\n", encoding="utf8")
    config = VectorsConfig(words=3)
    vectors = distill_vectors(model, tmp_path / "v", vocabulary=tmp_path / "words", config=config).vectors
    assert vectors.words == ["b", "a", "g"]
    assert vectors.matrix.shape == (3, 6)
    # Beside training data its words come after theirs.
    pq.write_table(pa.table({"reference": ["e e d"], "translation": ["b"]}), tmp_path / "p.parquet")
    both = {"data": [tmp_path / "p.parquet"], "vocabulary": tmp_path / "words"}
    assert distill_vectors(model, tmp_path / "w", **both, config=VectorsConfig(words=5)).vectors.words == list("ebdag")
    config = VectorsConfig(words=4, min_count=2)
    assert distill_vectors(model, tmp_path / "x", **both, config=config).vectors.words == list("ebag")


# Without a time: the tests must have the same names in all processes.
PACKED = gzip.compress(b"a\nb\n" * 1000, mtime=0)


@pytest.mark.parametrize(
    "content", [None, b"\n \n", b"a\n\xff\xfe\n", PACKED[:-10], PACKED[:20] + b"\xff" * 5 + PACKED[25:]]
)
def test_vocabulary_file_that_cannot_be_used(tmp_path, model, content):
    name = "words.gz" if content and content[:2] == b"\x1f\x8b" else "words"
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with refused():
        distill_vectors(model, tmp_path / "v", vocabulary=tmp_path / name)


def test_what_does_not_go_together(tmp_path, model):
    (tmp_path / "words").write_text("a\nb\n")
    with refused():
        distill_vectors(model, tmp_path / "v")
    for place in ("nowhere", "words"):
        with refused("out"):
            distill_vectors(model, tmp_path / place / "v", vocabulary=tmp_path / "words")
