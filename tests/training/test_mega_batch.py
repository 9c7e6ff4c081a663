"""Mining negatives against a brute-force search over the full matrix."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from paranmt_hf import TrainConfig
from paranmt_hf.training.mega_batch import (
    TILE,
    draw_negatives,
    excluded,
    hardest,
    mine_negatives,
    mining_precision,
    select_negatives,
)
from paranmt_hf.training.mining_kernels import round_to_int8


def forbidden(keys: np.ndarray) -> np.ndarray:
    """Which sentence [row] may not get which [column]: written down as the definition says it."""
    pairs = list(zip(keys[: len(keys) // 2].tolist(), keys[len(keys) // 2 :].tolist(), strict=True))
    paired = {key: {a for a, b in pairs if b == key} | {b for a, b in pairs if a == key} for key in keys.tolist()}
    same = {key: {key, *paired[key]}.union(*(paired[other] for other in paired[key])) for key in paired}
    return np.array([[other in same[key] for other in keys.tolist()] for key in keys.tolist()])


def oracle(vectors: np.ndarray, keys: np.ndarray, one_sided: bool) -> tuple[np.ndarray, np.ndarray]:
    """The similarities with -2 for what is not allowed, and the best of each row."""
    unit = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    similarity = np.where(forbidden(keys), -2, unit @ unit.T)
    if one_sided:
        half = len(keys) // 2
        similarity = similarity[:half]
        similarity[:, half:] = -2
    return similarity, similarity.max(axis=1)


def problem(pairs: int, distinct: int, seed: int, dimension: int = 8) -> tuple[torch.Tensor, np.ndarray]:
    """Sentences drawn from a few distinct ones, so that many are copies; copies have equal vectors."""
    generator = np.random.default_rng(seed)
    table = generator.standard_normal((distinct, dimension)).astype(np.float32)
    chosen = generator.integers(0, distinct, 2 * pairs)
    return torch.from_numpy(table[chosen]), generator.integers(0, 2**63, distinct, np.uint64)[chosen]


def unit_of(vectors: torch.Tensor) -> np.ndarray:
    return torch.nn.functional.normalize(vectors, dim=1).numpy()


@given(st.integers(1, 40), st.integers(1, 60), st.integers(0, 1000), st.booleans())
def test_equals_brute_force(pairs, distinct, seed, one_sided):
    vectors, keys = problem(pairs, distinct, seed)
    found = mine_negatives(vectors, keys, one_sided=one_sided)
    similarity, best = oracle(vectors.numpy(), keys, one_sided)
    assert len(found) == (pairs if one_sided else 2 * pairs)
    none = best == -2
    np.testing.assert_array_equal(found == -1, none)
    rows = np.flatnonzero(~none)
    # Copies of the best one are as good, so similarities are compared and not positions.
    np.testing.assert_allclose(similarity[rows, found[rows]], best[rows], atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("one_sided", [False, True])
def test_more_sentences_than_a_tile(one_sided):
    vectors, keys = problem(600, 900, 1)
    assert len(keys) > 2 * TILE
    found = mine_negatives(vectors, keys, one_sided=one_sided)
    similarity, best = oracle(vectors.numpy(), keys, one_sided)
    np.testing.assert_allclose(similarity[np.arange(len(found)), found], best, atol=1e-6)
    assert not forbidden(keys)[np.arange(len(found)), found].any()


def test_hand_worked():
    # Pairs (a, b) and (c, d): a's best is d, b's is c; a and d, b and c are alike.
    vectors = torch.tensor([[1.0, 0.0], [0.1, 1.0], [0.0, 1.0], [1.0, 0.1]])
    keys = np.arange(4, dtype=np.uint64)
    assert mine_negatives(vectors, keys).tolist() == [3, 2, 1, 0]
    # Only the other pair's reference is allowed.
    assert mine_negatives(vectors, keys, one_sided=True).tolist() == [1, 0]


def test_nothing_is_allowed():
    vectors = torch.ones(4, 2)
    same = np.zeros(4, np.uint64)
    assert mine_negatives(vectors, same).tolist() == [-1] * 4
    assert mine_negatives(vectors, same, one_sided=True).tolist() == [-1] * 2
    assert draw_negatives(same, np.random.default_rng(1)).tolist() == [-1] * 4
    one_pair = np.array([1, 2], np.uint64)
    assert mine_negatives(torch.eye(2), one_pair).tolist() == [-1, -1]
    # A copy of the partner elsewhere is no negative either.
    assert mine_negatives(torch.eye(4), np.array([1, 1, 2, 2], np.uint64)).tolist() == [-1] * 4


def test_several_translations_of_one_reference():
    # Pairs (a, b), (a, c), (d, e): b and c are both paraphrases of a, and so of each other.
    keys = np.array([1, 1, 2, 3, 4, 5], np.uint64)
    alike = torch.tensor([[1.0, 0.0]] * 2 + [[0.0, 1.0]] + [[1.0, 0.1]] * 2 + [[0.1, 1.0]])
    # a, b and c get d or e, whichever is nearer; d and e get the nearest of the first two pairs.
    assert mine_negatives(alike, keys).tolist() == [5, 5, 3, 5, 5, 3]
    for seed in range(20):
        drawn = draw_negatives(keys, np.random.default_rng(seed))
        assert set(drawn[[0, 1, 3, 4]]) <= {2, 5}
        assert set(drawn[[2, 5]]) <= {0, 1, 3, 4}


def test_several_references_of_one_translation():
    # Pairs (a, c), (b, c), (d, e): a and b are translated alike.
    keys = np.array([1, 2, 3, 4, 4, 5], np.uint64)
    for seed in range(20):
        assert set(draw_negatives(keys, np.random.default_rng(seed))[:2]) <= {2, 5}
        assert set(draw_negatives(keys, np.random.default_rng(seed), one_sided=True)[:2]) == {2}
    assert mine_negatives(torch.ones(6, 2), keys)[:2].tolist() == [2, 2]
    # What three steps reach is a negative: of the pairs (a, c), (b, c), (b, e), the first one's a may get e, but no b.
    chain = np.array([1, 2, 2, 3, 3, 4], np.uint64)
    assert forbidden(chain)[0].tolist() == [True] * 5 + [False]
    assert mine_negatives(torch.ones(6, 2), chain)[0] == 5


def test_excluded_lists_what_is_forbidden():
    _, keys = problem(60, 40, 3)
    rows, columns = excluded(keys)
    matrix = np.zeros((120, 120), bool)
    matrix[rows, columns] = True
    np.testing.assert_array_equal(matrix, forbidden(keys))
    assert (np.diff(rows) >= 0).all()


def test_zero_vectors_have_a_negative():
    found = mine_negatives(torch.zeros(6, 3), np.arange(6, dtype=np.uint64))
    assert not forbidden(np.arange(6))[np.arange(6), found].any()
    assert (found >= 0).all()


@pytest.mark.parametrize("one_sided", [False, True])
def test_draw_is_allowed_seeded_and_even(one_sided):
    _, keys = problem(300, 500, 5)
    first = draw_negatives(keys, np.random.default_rng(1), one_sided=one_sided)
    np.testing.assert_array_equal(first, draw_negatives(keys, np.random.default_rng(1), one_sided=one_sided))
    assert (first != draw_negatives(keys, np.random.default_rng(2), one_sided=one_sided)).mean() > 0.9
    assert (first < (300 if one_sided else 600)).all()
    assert not forbidden(keys)[np.arange(len(first)), first].any()
    if not one_sided:
        # Of 600 draws about half fall on each side.
        assert 0.4 < (first >= 300).mean() < 0.6


def test_draw_finds_the_only_allowed_pair():
    keys = np.array([7] * 9 + [8] + [7] * 9 + [9], np.uint64)
    found = draw_negatives(keys, np.random.default_rng(0))
    assert set(found[:9]) == {9, 19}


def chosen(negatives):
    return TrainConfig(negatives=negatives, mining_precision="float32")


def test_mix_takes_half_at_random():
    vectors, keys = problem(600, 10**6, 6)
    nearest = mine_negatives(vectors, keys)
    mixed = select_negatives(vectors, keys, chosen("mix"), np.random.default_rng(3))
    np.testing.assert_array_equal(mixed, select_negatives(vectors, keys, chosen("mix"), np.random.default_rng(3)))
    # 1,200 coin tosses: five standard deviations are 0.08.
    assert abs((mixed == nearest).mean() - 0.5) < 0.08
    np.testing.assert_array_equal(select_negatives(vectors, keys, chosen("max"), np.random.default_rng(3)), nearest)
    random = select_negatives(None, keys, chosen("rand"), np.random.default_rng(3))
    np.testing.assert_array_equal(random, draw_negatives(keys, np.random.default_rng(3)))


def corpus(pairs, dimension, copies=0, seed=1):
    """Vectors near each other in pairs, and keys; some references occur several times, with several translations."""
    random = np.random.default_rng(seed)
    left = random.standard_normal((pairs, dimension))
    keys = np.arange(2 * pairs, dtype=np.uint64)
    for copy in range(copies):
        left[copy], keys[copy] = left[pairs // 2], keys[pairs // 2]
    right = left + random.standard_normal((pairs, dimension))
    return torch.from_numpy(np.concatenate([left, right]).astype(np.float32)), keys


def test_mining_with_int8():
    vectors, keys = corpus(1500, 64, copies=20)
    wanted = mine_negatives(vectors, keys)
    found = mine_negatives(vectors, keys, precision="int8")
    assert (found == wanted).mean() > 0.995
    unit = torch.nn.functional.normalize(vectors, dim=1)
    cosines = [(unit * unit[torch.from_numpy(chosen)]).sum(dim=1) for chosen in (wanted, found)]
    assert 0 <= (cosines[0] - cosines[1]).max() < 0.01
    # More segments of 128 sentences than the 64 whose best is kept: still the best of all.
    vectors, keys = corpus(4500, 64, copies=20)
    wanted = mine_negatives(vectors, keys)
    assert (mine_negatives(vectors, keys, precision="int8") == wanted).mean() > 0.99
    similarities = unit_of(vectors) @ unit_of(vectors).T
    similarities[excluded(keys)] = -2
    cosines = np.take_along_axis(similarities, wanted[:, None], axis=1)[:, 0]
    np.testing.assert_allclose(cosines, similarities.max(axis=1), atol=1e-6)
    # Few sentences are compared in float32 anyway.
    few, keys = corpus(200, 64)
    np.testing.assert_array_equal(mine_negatives(few, keys, precision="int8"), mine_negatives(few, keys))


@settings(max_examples=25)
@given(st.integers(0, 2**32 - 1), st.floats(0, 3), st.sampled_from([50, 64, 300]))
def test_the_bound_of_the_error_of_int8_holds(seed, spikes, dimension):
    """Also where some vectors have a few large integers, and so coarse whole ones, and others have not."""
    random = np.random.default_rng(seed)
    vectors = random.standard_normal((80, dimension)) * np.exp(spikes * random.standard_normal((80, dimension)))
    vectors[0], vectors[1] = 0, np.eye(dimension)[0]
    unit = torch.nn.functional.normalize(torch.from_numpy(vectors.astype(np.float32)), dim=1)
    integers, scales, errors = round_to_int8(unit.numpy())
    # No number is off by more than half of its factor.
    assert (errors <= scales / 2 * np.sqrt(dimension) * (1 + 1e-5)).all()
    products = (integers.astype(np.int64) @ integers.astype(np.int64).T) * np.outer(scales, scales).astype(np.float64)
    off = np.abs(products - (unit.double() @ unit.double().T).numpy())
    assert (off <= errors[:, None] + errors + np.outer(errors, errors) + 1e-6).all()


@pytest.mark.parametrize("one_sided", [False, True])
def test_mining_on_a_device_by_blocks(one_sided):
    generator = np.random.default_rng(4)
    keys = generator.integers(0, 40, 60).astype(np.uint64)
    vectors = torch.from_numpy(generator.standard_normal((60, 5)).astype(np.float32))
    searched = 30 if one_sided else 60
    sentences, columns = excluded(keys, one_sided=one_sided)
    bounds = np.searchsorted(sentences, np.arange(searched + 1))
    wanted = mine_negatives(vectors, keys, one_sided=one_sided)
    allowed = wanted >= 0
    assert allowed.sum() > searched // 2
    for block in (7, None):
        pair = torch.from_numpy(sentences), torch.from_numpy(columns)
        found = hardest(vectors[:searched], pair, bounds, block=block).numpy()
        np.testing.assert_array_equal(found[allowed], wanted[allowed])


@pytest.mark.parametrize(
    ("known", "precision"), [({"avx512_vnni": True}, "int8"), ({"avx2": True}, "float32"), ({}, "float32")]
)
def test_the_processor_decides_the_precision_unless_the_settings_do(monkeypatch, known, precision):
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: known)
    assert mining_precision(TrainConfig()) == precision
    assert mining_precision(TrainConfig(mining_precision="float32")) == "float32"
