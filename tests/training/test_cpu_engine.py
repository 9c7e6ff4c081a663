"""The engine on the CPU against dense autograd, and the same bytes each time."""

import sys

import numpy as np
import pytest
import torch

from paranmt_hf import TrainConfig
from paranmt_hf.encoders.composition import take_apart
from paranmt_hf.text.tokens import Bags
from paranmt_hf.training.cpu_engine import CpuTable, cpu_engine
from paranmt_hf.training.epochs import Epochs
from paranmt_hf.training.losses import margin_loss
from paranmt_hf.training.mega_batch import mine_negatives, minibatch
from paranmt_hf.training.optimizers import Schedule
from paranmt_hf.training.step_kernels import margin_gradient
from paranmt_hf.training.teacher_vectors import TeacherVectors
from tests.refused import refused
from tests.training.toys import OPTIMIZERS, dense_steps, encoder_of, random_text, store_of

PAIRS = 100


class Plain(torch.nn.Module):
    """The same encoders, written with nothing but torch."""

    def __init__(self, weights, mode, frozen):
        super().__init__()
        self.tables = torch.nn.ModuleList(
            [torch.nn.EmbeddingBag.from_pretrained(weight.clone(), freeze=False, mode="mean") for weight in weights]
        )
        self.start = [weight.clone() for weight in weights]
        self.mode, self.frozen = mode, frozen

    def forward(self, bags):
        vectors = []
        for table, bag in zip(self.tables, bags, strict=True):
            rows, offsets = torch.from_numpy(bag.rows).long(), torch.from_numpy(bag.offsets)
            vectors.append(table(rows, offsets[:-1]))
        return sum(vectors) if self.mode == "add" else torch.cat(vectors, dim=1)


def plain_losses(plain, readers, megas, config, teacher=None):
    """The losses of dense steps."""

    def encode(mega, sentences):
        return plain([mega.bags[reader].take(sentences) for reader in readers])

    def pull():
        pairs = zip(plain.tables, plain.start, strict=True)
        return config.lambda_w * sum((table.weight - initial).square().sum() for table, initial in pairs)

    tables = [table.weight for table in plain.tables]
    trained = [table for table in tables if table.requires_grad]
    frozen = tables if plain.frozen else []
    return dense_steps(encode, trained, megas, config, teacher=teacher, pull=pull, frozen=frozen)


def engine_of(encoder, config, pairs=PAIRS, teacher=None):
    return cpu_engine(take_apart(encoder), config, pairs, teacher)


@pytest.mark.parametrize(
    ("model", "unknown", "settings"),
    [
        ("word", "drop", {}),
        ("trigram", "drop", {}),
        ("word,trigram", "drop", {}),
        ("word+trigram", "drop", {}),
        ("word", "train", {}),
        ("word,trigram", "train", {"lambda_w": 0.1}),
        ("word", "drop", {"lambda_w": 0.1}),
        ("word", "drop", {"lambda_w": 1e-5, "clip": 0.1}),
        ("word", "drop", {"one_sided": True}),
        ("word", "drop", {"optimizer": "adagrad"}),
        ("word,trigram", "train", {"optimizer": "adagrad", "lambda_w": 0.1, "clip": 0.05}),
        ("word+trigram", "drop", {"clip": 0.1}),
        ("word,trigram", "drop", {"freeze_words": True, "clip": 0.1}),
        ("word,trigram", "drop", {"teacher": "any"}),
        ("word", "drop", {"teacher": "any", "teacher_weight": 0.5, "teacher_loss": "weighted"}),
    ],
)
def test_equals_autograd_with_a_dense_optimizer(tmp_path, model, unknown, settings):
    sides = random_text(PAIRS)
    # Fewer rows than units, so that unknown units are among them.
    encoder = encoder_of(sides, model=model, dimension=12, words=30, trigrams=60, unknown=unknown)
    store = store_of(sides, encoder, tmp_path)
    config = TrainConfig(batch_size=8, mega_batch=3, learning_rate=0.01, epochs=2, **settings)
    composition = take_apart(encoder)
    parts, mode = composition.parts, composition.mode
    plain = Plain([part.table.weight.data for part in parts], mode, frozen=unknown == "drop")
    for part, table in zip(parts, plain.tables, strict=True):
        table.weight.requires_grad_(not (config.freeze_words and part.unit_kind == "word"))
    initial = [part.table.weight.data.clone() for part in parts]
    assert [bool(weight[0].any()) for weight in initial] == [unknown == "train"] * len(parts)
    megas = [mega for epoch in range(2) for mega in store.mega_batches(24, seed=1, epoch=epoch)]
    teacher = None
    if config.teacher:
        keys = np.unique(store.keys())
        taught = np.random.default_rng(5).standard_normal((len(keys), 9)).astype(np.float16)
        teacher = TeacherVectors(keys, taught)
    wanted = plain_losses(plain, [part.unit_kind for part in parts], megas, config, teacher)
    engine = engine_of(encoder, config, store.pairs, teacher)
    found = [loss for mega in megas for loss in engine.train_on(mega, np.random.default_rng(1))]
    for table in engine.tables:
        table.catch_up()
    assert len(found) == len(wanted) > 15
    # Float32 sums in another order, over 26 steps; the loss itself is about 0.8.
    np.testing.assert_allclose(found, wanted, atol=2e-4)
    for part, table, before in zip(parts, plain.tables, initial, strict=True):
        moved = (table.weight.detach() - before).abs().max()
        assert moved > 0.05 or (moved == 0 and not table.weight.requires_grad)
        # Where a gradient is nearly zero, rounding decides its sign, and Adam makes a full step of it.
        difference = (part.table.weight.data - table.weight.detach()).abs()
        assert difference.mean() < 2e-5
        assert difference.max() < 0.01
        assert bool(part.table.weight.data[0].any()) == (unknown == "train")


def test_gradient_of_one_step_is_exact(tmp_path):
    """The first step of Adam has the gradient in its average, without its square root in the way."""
    sides = random_text(40)
    encoder = encoder_of(sides, model="word+trigram", dimension=6, words=30)
    store = store_of(sides, encoder, tmp_path)
    config = TrainConfig(batch_size=40, mega_batch=1, epochs=1)
    composition = take_apart(encoder)
    parts, mode = composition.parts, composition.mode
    plain = Plain([part.table.weight.data for part in parts], mode, frozen=False)
    mega = next(store.mega_batches(40, seed=1, epoch=0))
    engine = engine_of(encoder, config, 40)
    bags = [mega.bags[part.unit_kind] for part in parts]
    np.testing.assert_allclose(engine.encode(mega), plain(bags).detach(), atol=1e-6, rtol=0)
    negatives = mine_negatives(plain(bags).detach(), mega.keys)
    roles = minibatch(np.arange(40), 40, negatives, one_sided=False)
    assert roles.shape == (4, 40)
    margin_loss(*(plain([bag.take(role) for bag in bags]) for role in roles), margin=0.4).backward()
    engine.train_on(mega, np.random.default_rng(1))
    for table, other in zip(engine.tables, plain.tables, strict=True):
        found = table.state()["first"] / 0.1
        wanted = other.weight.grad.clone()
        wanted[0] = 0
        assert wanted.abs().max() > 1e-3
        torch.testing.assert_close(found, wanted, atol=1e-6, rtol=1e-5)


def test_mega_batch_of_one_is_in_batch_selection(tmp_path):
    sides = random_text(60)
    encoder = encoder_of(sides, model="word", dimension=8)
    store = store_of(sides, encoder, tmp_path)
    config = TrainConfig(batch_size=20, mega_batch=1, epochs=1)
    engine = engine_of(encoder, config, store.pairs)
    weight = take_apart(encoder).parts[0].table.weight.data
    for mega in store.mega_batches(config.mega_pairs, seed=1, epoch=0):
        assert mega.pairs == 20
        # The pairs of a mini-batch, encoded with the weights of now, and each sentence's best among them.
        bags = mega.bags["word"]
        vectors = torch.stack(
            [weight[bags.rows[a:b]].mean(dim=0) for a, b in zip(bags.offsets, bags.offsets[1:], strict=False)]
        )
        unit = torch.nn.functional.normalize(vectors, dim=1)
        similarity = unit @ unit.T
        partner = np.roll(mega.keys, 20)
        keys = mega.keys
        mask = (keys[:, None] == keys) | (partner[:, None] == keys) | (keys[:, None] == partner)
        similarity[torch.from_numpy(mask)] = -2
        best = similarity.max(dim=1).values
        own = (unit[:20] * unit[20:]).sum(dim=1)
        hinge = (0.4 - own + best[:20]).clamp(min=0) + (0.4 - own + best[20:]).clamp(min=0)
        (loss,) = engine.train_on(mega, np.random.default_rng(1))
        assert loss == pytest.approx(float(hinge.mean()), abs=1e-5)
        engine.tables[0].catch_up()


def test_pairs_without_negatives_are_left_out():
    negatives = np.array([3, -1, 0, 1, 0, -1])
    assert minibatch(np.arange(3), 3, negatives, one_sided=False).tolist() == [[0], [3], [3], [1]]
    assert minibatch(np.arange(3), 3, negatives[:3], one_sided=True).tolist() == [[0, 2], [3, 5], [3, 0]]
    assert minibatch(np.arange(1, 3), 3, None, one_sided=False).tolist() == [[1, 2], [4, 5]]


def test_sentences_that_are_all_the_same_make_no_step(tmp_path):
    sides = (["a b"] * 10, ["a b"] * 10)
    encoder = encoder_of(sides, model="word", dimension=4)
    store = store_of(sides, encoder, tmp_path)
    engine = engine_of(encoder, TrainConfig(batch_size=5, mega_batch=2), 10)
    assert engine.train_on(next(store.mega_batches(10, seed=1, epoch=0)), np.random.default_rng(1)) == []
    assert engine.tables[0].step == 0


def test_loss_that_is_no_number_names_the_step(tmp_path):
    sides = random_text(PAIRS)
    encoder = encoder_of(sides, model="word", dimension=4)
    store = store_of(sides, encoder, tmp_path)
    config = TrainConfig(batch_size=10, mega_batch=2)
    engine = engine_of(encoder, config, store.pairs)
    megas = store.mega_batches(20, seed=1, epoch=0)
    engine.train_on(next(megas), np.random.default_rng(1))
    take_apart(encoder).parts[0].table.weight.data[1, 0] = float("nan")
    with refused():
        engine.train_on(next(megas), np.random.default_rng(1))


def margin_step(vectors, roles, margin):
    gradient, moves = np.empty_like(vectors), np.empty(len(vectors), np.bool_)
    return margin_gradient(vectors, roles, margin, gradient, moves), gradient, moves


@pytest.mark.parametrize("roles", [4, 3])
def test_gradient_of_the_margin_loss(roles):
    """Every kind of pair: both terms count, one of them, none; vectors of length zero, and of nearly none."""
    random = np.random.default_rng(3)
    vectors = random.standard_normal((roles, 40, 7)).astype(np.float32)
    vectors[1, :15] = vectors[0, :15] + 0.1 * vectors[1, :15]
    vectors[0, 20], vectors[2, 21], vectors[1, 22] = 0, 0, 1e-20
    flat = vectors.reshape(-1, 7)
    leaf = torch.from_numpy(flat.copy()).requires_grad_()
    loss = margin_loss(*leaf.chunk(roles), margin=0.4)
    loss.backward()
    found, gradient, moves = margin_step(flat, roles, 0.4)
    assert found == pytest.approx(float(loss.detach()), abs=1e-6)
    gradient[~moves] = 0
    assert 0.1 < moves.mean() < 0.9
    wanted = leaf.grad.numpy()
    # A vector without length has the gradient of its direction, divided by 1e-12.
    allowed = 1e-7 + 1e-6 * np.abs(wanted).max(axis=1, keepdims=True) + 1e-4 * np.abs(wanted)
    assert (np.abs(gradient - wanted) <= allowed).all()


def test_margin_loss_by_hand():
    """s = (1, 0), s' = (0, 2), t = (3, 0), t' = (0, -1): 0.4 - 0 + 1, and 0.4 - 0 - 1, which does not count."""
    vectors = np.array([[1, 0], [0, 2], [3, 0], [0, -1]], np.float32)
    loss, gradient, moves = margin_step(vectors, 4, 0.4)
    assert loss == pytest.approx(1.4)
    assert moves.tolist() == [True, True, True, False]
    # s moves with s' and against t, but for what lies along itself; t lies along s.
    np.testing.assert_allclose(gradient[:3], [[0, -1], [-0.5, 0], [0, 0]], atol=1e-7)


def small_run(folder, sides, interrupted=None, **settings):
    """Train with a checkpoint after every mega-batch; stops after some of them."""
    encoder = encoder_of(sides, model="word,trigram", dimension=8)
    store = store_of(sides, encoder, folder / "pairs")
    settings = {"batch_size": 10, "mega_batch": 2, "epochs": 2, "learning_rate": 0.01, **settings}
    engine = engine_of(encoder, TrainConfig(**settings))
    if interrupted is not None:
        count, original = iter(range(interrupted)), engine.train_on
        engine.train_on = lambda *rest: original(*rest) if next(count, None) is not None else sys.exit()
    Epochs(engine, store, folder).run()
    return [table.weight.numpy().tobytes() for table in engine.tables]


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"optimizer": "adagrad", "clip": 0.1},
        {"lambda_w": 0.1},
        {"lambda_w": 1e-5, "clip": 0.1},
        {"mining_precision": "int8"},
    ],
)
def test_a_resumed_run_ends_with_the_same_bytes(tmp_path, checkpoint_always, settings):
    sides = random_text(PAIRS)
    whole = small_run(tmp_path / "whole", sides, **settings)
    assert whole == small_run(tmp_path / "again", sides, **settings)
    with pytest.raises(SystemExit):
        small_run(tmp_path / "killed", sides, interrupted=4, **settings)
    assert small_run(tmp_path / "killed", sides, **settings) == whole


@pytest.mark.parametrize("optimizer", ["adam", "adagrad"])
def test_the_pull_of_rows_that_rest_for_hundreds_of_steps_equals_a_dense_optimizer(optimizer):
    # Row 1 is read in each of 400 steps, row 2 in the first and the last alone.
    start = np.random.default_rng(1).standard_normal((3, 4)).astype(np.float32)
    rates = np.linspace(0.05, 0.01, 400)
    table = CpuTable(torch.from_numpy(start.copy()), Schedule(rates, optimizer), pull=0.01)
    plain = torch.from_numpy(start.astype(np.float64)).requires_grad_()
    dense = OPTIMIZERS[optimizer]([plain], lr=0.05)
    bags, distances = Bags(np.array([1, 2], np.int32), np.arange(3)), []
    for step, rate in enumerate(rates):
        chosen = np.arange(2 if step in (0, 399) else 1)
        gradient = np.full((len(chosen), 4), np.cos(step), np.float32)
        table.add_means(bags, chosen, np.zeros((len(chosen), 4), np.float32))
        table.update(*table.slopes(gradient, np.ones(len(chosen), np.bool_)))
        plain.grad = 0.02 * (plain.detach() - torch.from_numpy(start))
        plain.grad[bags.rows[chosen]] += float(gradient[0, 0])
        dense.param_groups[0]["lr"] = float(rate)
        dense.step()
        distances.append(float((plain.detach() - torch.from_numpy(start))[2].norm()))
        if step == 398:
            # Steps in between did not touch row 2.
            assert table.state()["last"].tolist() == [0, 399, 1]
    np.testing.assert_allclose(table.weight.numpy(), plain.detach().numpy(), atol=2e-5)
    # Meanwhile the pull moved row 2 much further than that.
    assert abs(distances[398] - distances[20]) > 0.01
