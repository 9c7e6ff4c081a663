"""Rotated tables: cosines stay, and first dimensions hold what they should."""

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer

from paranmt_hf.encoders.composition import take_apart
from paranmt_hf.encoders.rotation import (
    blocks,
    even_rotation,
    principal_rotation,
    refuse_other_weights,
    rotate_parts,
    rotate_together,
    second_moment,
)
from tests.encoders.toys import cosines
from tests.refused import refused
from tests.training.toys import encoder_of, random_text

TEXT = random_text(30)
SENTENCES = ["w1 w2 w9", "w3", "w1 unheard w4 w4", "", "Unheard"]


def test_even_rotations_are_orthogonal_seeded_and_spread_alike():
    rotation = even_rotation(60, 1)
    np.testing.assert_allclose(rotation @ rotation.T, np.eye(60), atol=1e-12)
    np.testing.assert_array_equal(rotation, even_rotation(60, 1))
    assert np.abs(rotation - even_rotation(60, 2)).max() > 0.1
    # The direction of one dimension is spread over all; of 60 random shares of 1 none is large.
    assert (rotation[0] ** 2).max() < 0.2
    # Neither sign is preferred, also on the diagonal, where a plain decomposition prefers one.
    signs = [np.diag(even_rotation(5, seed)) > 0 for seed in range(100)]
    assert 0.4 < np.mean(signs) < 0.6


def test_second_moment_by_hand():
    batches = [np.array([[3.0, 4.0], [0.0, 0.0]], np.float32), np.array([[0.0, 2.0]], np.float32)]
    np.testing.assert_allclose(second_moment(batches), np.array([[0.36, 0.48], [0.48, 1.64]]) / 2, atol=1e-7)
    with refused():
        second_moment([np.zeros((2, 3), np.float32)])


def test_principal_components_by_hand():
    """Most of the variance lies along (2, -1), so that is the first component, its largest number positive."""
    first, second = np.array([2.0, -1.0]) / np.sqrt(5), np.array([1.0, 2.0]) / np.sqrt(5)
    moment = 3 * np.outer(first, first) + 1 * np.outer(second, second)
    np.testing.assert_allclose(principal_rotation(moment), np.stack([first, second], axis=1), atol=1e-12)


def test_blocks_of_the_diagonal():
    matrix = np.arange(25.0).reshape(5, 5)
    first, second = blocks(matrix, [2, 3])
    np.testing.assert_array_equal(first, [[0, 1], [5, 6]])
    np.testing.assert_array_equal(second, [[12, 13, 14], [17, 18, 19], [22, 23, 24]])


@pytest.mark.parametrize("model", ["word", "word+trigram", "word,trigram"])
def test_cosines_stay(model):
    encoder = encoder_of(TEXT, model=model, dimension=6)
    before = encoder.encode(SENTENCES)
    width = before.shape[1]
    rotation = even_rotation(width, 3)
    together = rotate_together(encoder_of(TEXT, model=model, dimension=6), rotation)
    after = together.encode(SENTENCES)
    np.testing.assert_allclose(after, before @ rotation, atol=1e-6)
    np.testing.assert_allclose(cosines(after), cosines(before), atol=1e-6)
    assert not after[3:].any(), "unknown words and no words stay zeros"
    # The slow way of sentence-transformers gives the same vectors.
    np.testing.assert_allclose(SentenceTransformer.encode(together, SENTENCES), after, atol=1e-6)
    assert take_apart(list(together)).name == model.replace(",", "+")


def test_first_columns_are_first_dimensions():
    rotation = even_rotation(12, 3)
    whole, cut = (
        rotate_together(encoder_of(TEXT, model="word,trigram", dimension=6), matrix).encode(SENTENCES)
        for matrix in (rotation, rotation[:, :5])
    )
    np.testing.assert_allclose(cut, whole[:, :5], atol=1e-6)


def test_parts_by_themselves():
    encoder = encoder_of(TEXT, model="word,trigram", dimension=6, trigram_dimension=4)
    before = encoder.encode(SENTENCES)
    rotations = [even_rotation(6, 1), even_rotation(4, 2)]
    rotated = rotate_parts(encoder, rotations)
    expected = np.concatenate([before[:, :6] @ rotations[0], before[:, 6:] @ rotations[1]], axis=1)
    np.testing.assert_allclose(rotated.encode(SENTENCES), expected, atol=1e-6)
    assert take_apart(list(rotated)).name == "word,trigram"


def test_settings_stay():
    encoder = encoder_of(TEXT, dimension=6)
    encoder.prompts["query"], encoder.truncate_dim = "w1 ", 3
    rotated = rotate_together(encoder, np.eye(6))
    assert rotated.prompts["query"] == "w1 " and rotated.encode("w2").shape == (3,)


def test_others_are_refused():
    with refused():
        refuse_other_weights(encoder_of(TEXT, model="lstm", dimension=6), "m")
