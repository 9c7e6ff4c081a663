"""Wrong translations as negatives."""

from copy import deepcopy

import numpy as np
import pytest
import torch
from torch.nn.functional import cosine_similarity

from paranmt_hf.encoders.composition import take_apart
from paranmt_hf.training import pair_views
from paranmt_hf.training.config import TrainConfig
from paranmt_hf.training.cpu_engine import cpu_engine
from paranmt_hf.training.pair_store import PairStore
from paranmt_hf.training.pair_views import PairsWithErrors, along, neighbour_order, with_errors
from tests.training.toys import encoder_of, store_of, synonyms


def test_replaced_by_hand():
    """Of four pairs the first has a wrong translation closer than its negative, the second one that is farther."""
    angles = torch.tensor([0.0, 0, 0, 0, 0.1, 0.1, 0.1, 0.1, 0.3, 1.5, 0.2])
    vectors = torch.stack([angles.cos(), angles.sin()], dim=1) * torch.arange(1, 12)[:, None]
    vectors[3] = torch.tensor([0.6, 0.8])
    chosen = np.array([3, 3, 0, -1, 3, 3, 0, 3])
    errors = np.array([8, 9, -1, 10])
    np.testing.assert_array_equal(with_errors(chosen, vectors, errors), [8, 3, 0, -1, 8, 3, 0, 10])
    np.testing.assert_array_equal(with_errors(chosen[:4], vectors, errors), [8, 3, 0, -1])
    np.testing.assert_array_equal(chosen, [3, 3, 0, -1, 3, 3, 0, 3])


@pytest.fixture
def stores(tmp_path):
    """Pairs of which every other reference has wrong translations, one or two; and one that nobody asks for."""
    references, translations = synonyms(60)
    encoder = encoder_of((references, translations), dimension=8)
    # Each is right but for its last word, so that nothing in a mega-batch is more similar.
    stems = [translation.rsplit(" ", 1)[0] for translation in translations]
    wrong = [(reference, f"{stem} right29") for reference, stem in zip(references[1::2], stems[1::2], strict=True)]
    wrong += [(reference, f"{stem} right28") for reference, stem in zip(references[1::4], stems[1::4], strict=True)]
    wrong += [("left0", "right5")]
    store_of((references, translations), encoder, tmp_path / "pairs")
    errors = store_of(tuple(map(list, zip(*wrong, strict=True))), encoder, tmp_path / "errors")
    return encoder, tmp_path / "pairs", errors, wrong


def text_of(encoder, bags):
    (part,) = take_apart(encoder).parts
    words = np.array(part.vocabulary.units)[bags.rows]
    return [" ".join(words[low:high]) for low, high in zip(bags.offsets[:-1], bags.offsets[1:], strict=True)]


def test_each_pair_gets_a_wrong_translation_of_its_reference(stores):
    encoder, folder, errors, wrong = stores
    store = PairsWithErrors(folder, errors, 1.0, seed=1)
    assert store.count() == 30
    met = set()
    for epoch in range(12):
        for mega in store.mega_batches(40, seed=1, epoch=epoch):
            sentences = text_of(encoder, mega.bags["word"])
            assert len(sentences) == len(mega.keys) + (mega.errors >= 0).sum()
            for pair, error in enumerate(mega.errors.tolist()):
                right = sentences[mega.pairs + pair]
                given = {text for reference, text in wrong if reference == sentences[pair]}
                # Where the copy of the right one was drawn, there is none.
                assert sentences[error] in given - {right} if error >= 0 else not given or right in given
                met |= {(sentences[pair], sentences[error])} if error >= 0 else set()
    assert met == set(wrong[:-1]) - set(zip(*synonyms(60), strict=True)) and len(met) > 35, (
        "in some epochs each of several is drawn"
    )


def test_a_share_of_them_the_same_each_time_and_in_any_order(stores):
    _, folder, errors, _ = stores
    half = PairsWithErrors(folder, errors, 0.5, seed=1)
    counts = [int((mega.errors >= 0).sum()) for mega in half.mega_batches(60, seed=1, epoch=0)]
    assert 6 < counts[0] < 24
    runs = [list(half.mega_batches(20, seed=1, epoch=2)) for _ in range(2)]
    later = list(half.mega_batches(20, seed=1, epoch=2, start=1))
    for first, second in [*zip(*runs, strict=True), *zip(runs[0][1:], later, strict=True)]:
        np.testing.assert_array_equal(first.errors, second.errors)
        np.testing.assert_array_equal(first.bags["word"].rows, second.bags["word"].rows)
    order = np.arange(59, -1, -1)
    assert sum(int((mega.errors >= 0).sum()) for mega in half.in_order([order], 20)) > 0


def test_a_copy_of_the_translation_is_no_error(tmp_path):
    sides = (["a b", "a b", "c d"], ["x y", "z", "q"])
    encoder = encoder_of(sides, dimension=4)
    store_of(sides, encoder, tmp_path / "pairs")
    errors = store_of((["a b"], ["x y"]), encoder, tmp_path / "errors")
    (mega,) = PairsWithErrors(tmp_path / "pairs", errors, 1.0, seed=1).mega_batches(3, seed=1, epoch=0)
    sentences = text_of(encoder, mega.bags["word"])
    assert [sentences[3 + pair] for pair in np.flatnonzero(mega.errors >= 0)] == ["z"]


def trained(encoder, megas, **settings):
    config = TrainConfig(batch_size=10, mega_batch=6, learning_rate=0.01, **settings)
    engine = cpu_engine(take_apart(encoder), config, 1000)
    losses = [engine.train_on(mega, np.random.default_rng(1)) for mega in megas]
    engine.tables[0].catch_up()
    return losses, engine.tables[0].weight


@pytest.mark.parametrize("negatives", ["max", "rand"])
def test_training_pushes_them_away(stores, negatives):
    """After the same course with them as negatives they are farther from their references than without."""
    encoder, folder, errors, _ = stores
    closeness = []
    for store in (PairsWithErrors(folder, errors, 1.0, seed=1), PairStore(folder)):
        megas = [mega for epoch in range(8) for mega in store.mega_batches(60, seed=1, epoch=epoch)]
        losses, weight = trained(deepcopy(encoder), megas, negatives=negatives)
        assert len(losses) == 8 and losses[-1][-1] < losses[0][0]
        wrong = errors.everything().bags["word"]
        vectors = torch.nn.functional.embedding_bag(
            torch.from_numpy(wrong.rows.astype(np.int64)), weight, torch.from_numpy(wrong.offsets[:-1].copy())
        )
        closeness.append(float(cosine_similarity(vectors[0:-2:2], vectors[1:-2:2]).mean()))
    assert closeness[0] < closeness[1] - 0.1


def groups_of(order, size):
    return [order[start : start + size] for start in range(0, len(order), size)]


@pytest.mark.parametrize(("count", "size"), [(1, 4), (4, 4), (5, 4), (64, 8), (103, 8), (1000, 7)])
def test_every_item_once_and_the_rest_last(count, size):
    vectors = np.random.default_rng(1).standard_normal((count, 6)).astype(np.float16)
    order = neighbour_order(torch.from_numpy(vectors), size, np.random.default_rng(2))
    assert sorted(order.tolist()) == list(range(count))
    assert order.dtype == np.int64
    again = neighbour_order(torch.from_numpy(vectors), size, np.random.default_rng(2))
    np.testing.assert_array_equal(order, again)


def test_far_clusters_are_not_mixed():
    # Sixteen clusters of eight, each around a corner of a cube in four dimensions.
    corners = np.array([[bit >> place & 1 for place in range(4)] for bit in range(16)])
    shuffle = np.random.default_rng(1).permutation(128)
    cluster = np.repeat(np.arange(16), 8)[shuffle]
    noise = np.random.default_rng(2).standard_normal((128, 4)) * 1e-3
    vectors = (corners[cluster] + noise).astype(np.float32)
    order = neighbour_order(torch.from_numpy(vectors), 32, np.random.default_rng(3))
    spread = [vectors[group].var(axis=0).sum() for group in groups_of(order, 32)]
    # The whole has a variance of a quarter in each of four dimensions; two halvings take away at least some.
    assert vectors.var(axis=0).sum() == pytest.approx(1, abs=0.01)
    assert np.mean(spread) < 0.8


def test_groups_are_nearer_than_random_ones(monkeypatch):
    monkeypatch.setattr(pair_views, "WIDENED_ROWS", {"cpu": 100})
    generator = np.random.default_rng(1)
    vectors = generator.standard_normal((2000, 20)) * np.geomspace(1, 0.05, 20)
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float16)

    def cosine(order):
        parts = [vectors[group].astype(np.float64) for group in groups_of(order, 20)]
        return np.mean([(part @ part.T).sum() - 20 for part in parts]) / (20 * 19)

    assert abs(cosine(generator.permutation(2000))) < 0.05
    assert cosine(neighbour_order(torch.from_numpy(vectors), 20, np.random.default_rng(2))) > 0.5


def test_places_on_a_line(monkeypatch):
    monkeypatch.setattr(pair_views, "WIDENED_ROWS", {"cpu": 2})
    vectors = np.array([[1, 2], [3, 4], [5, 6]], np.float16)
    places = along(torch.from_numpy(vectors), np.array([2, 0, 1]), torch.tensor([10.0, 1.0]))
    np.testing.assert_array_equal(places, np.array([56, 12, 34], np.float32))
    assert places.dtype == np.float32
