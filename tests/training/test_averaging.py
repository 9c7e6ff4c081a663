"""The averaging loop against autograd through a plain model with dense optimisers."""

import numpy as np
import pytest
import torch

from paranmt_hf.encoders.composition import take_apart
from paranmt_hf.errors import InputError
from paranmt_hf.training.averaging import AveragingTrainer, TrainedTable, minibatch
from paranmt_hf.training.config import TrainConfig
from paranmt_hf.training.loop import learning_rates
from paranmt_hf.training.margin_loss import margin_loss
from paranmt_hf.training.megabatch import mine
from paranmt_hf.training.rowwise import ROWWISE
from tests.training.toys import OPTIMIZERS, encoder_of, random_text, store_of

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


def plain_losses(plain, readers, megas, config):
    """The algorithm as the paper describes it, dense from end to end."""
    kind = OPTIMIZERS[config.optimizer]
    optimizer = kind([table.weight for table in plain.tables if table.weight.requires_grad], lr=config.learning_rate)
    losses = []
    for mega in megas:
        with torch.no_grad():
            negatives = mine(plain([mega.bags[reader] for reader in readers]), mega.keys, one_sided=config.one_sided)
        for start in range(0, mega.pairs, config.batch_size):
            pairs = np.arange(start, min(start + config.batch_size, mega.pairs))
            roles = [pairs, pairs + mega.pairs, negatives[pairs]]
            if not config.one_sided:
                roles.append(negatives[pairs + mega.pairs])
            if min(map(min, roles)) < 0:
                continue
            sides = [plain([mega.bags[reader].take(role) for reader in readers]) for role in roles]
            loss = margin_loss(*sides, margin=config.margin)
            losses.append(float(loss.detach()))
            if config.lambda_w:
                for table, initial in zip(plain.tables, plain.start, strict=True):
                    loss = loss + config.lambda_w * (table.weight - initial).square().sum()
            optimizer.zero_grad()
            loss.backward()
            for table in plain.tables:
                if plain.frozen and table.weight.grad is not None:
                    table.weight.grad[0] = 0
            if config.clip:
                torch.nn.utils.clip_grad_norm_(plain.parameters(), config.clip)
            optimizer.step()
    return losses


def tight_loop(encoder, config, pairs=PAIRS):
    composition = take_apart(list(encoder))
    parts, mode = composition.parts, composition.mode
    rates = learning_rates(pairs, config)
    tables = []
    for part in parts:
        weight = part.table.weight.data
        start = weight.clone() if config.lambda_w else None
        optimizer = ROWWISE[config.optimizer](weight, rates)
        fixed = config.freeze_words and part.reader == "word"
        tables.append(TrainedTable(part.reader, optimizer, start, frozen=not bool(weight[0].any()), fixed=fixed))
    return AveragingTrainer(tables, mode, config)


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
        ("word", "drop", {"one_sided": True}),
        ("word", "drop", {"optimizer": "adagrad"}),
        ("word,trigram", "train", {"optimizer": "adagrad", "lambda_w": 0.1, "clip": 0.05}),
        ("word+trigram", "drop", {"clip": 0.1}),
        ("word,trigram", "drop", {"freeze_words": True, "clip": 0.1}),
    ],
)
def test_equals_autograd_with_a_dense_optimizer(tmp_path, model, unknown, settings):
    sides = random_text(PAIRS)
    # Fewer rows than units, so that unknown units are among them.
    encoder = encoder_of(sides, model=model, dimension=12, words=30, trigrams=60, unknown=unknown)
    store = store_of(sides, encoder, tmp_path)
    config = TrainConfig(batch_size=8, mega_batch=3, learning_rate=0.01, epochs=2, **settings)
    composition = take_apart(list(encoder))
    parts, mode = composition.parts, composition.mode
    plain = Plain([part.table.weight.data for part in parts], mode, frozen=unknown == "drop")
    for part, table in zip(parts, plain.tables, strict=True):
        table.weight.requires_grad_(not (config.freeze_words and part.reader == "word"))
    initial = [part.table.weight.data.clone() for part in parts]
    assert [bool(weight[0].any()) for weight in initial] == [unknown == "train"] * len(parts)
    megas = [mega for epoch in range(2) for mega in store.mega_batches(24, seed=1, epoch=epoch)]
    wanted = plain_losses(plain, [part.reader for part in parts], megas, config)
    trainer = tight_loop(encoder, config, store.pairs)
    found = [loss for mega in megas for loss in trainer.train_on(mega, np.random.default_rng(1))]
    for table in trainer.tables:
        table.optimizer.catch_up()
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
    composition = take_apart(list(encoder))
    parts, mode = composition.parts, composition.mode
    plain = Plain([part.table.weight.data for part in parts], mode, frozen=False)
    mega = next(store.mega_batches(40, seed=1, epoch=0))
    trainer = tight_loop(encoder, config, 40)
    bags = [mega.bags[part.reader] for part in parts]
    torch.testing.assert_close(trainer.encode(mega), plain(bags).detach(), atol=1e-6, rtol=0)
    negatives = mine(plain(bags).detach(), mega.keys)
    roles = minibatch(np.arange(40), 40, negatives, one_sided=False)
    assert roles.shape == (4, 40)
    margin_loss(*(plain([bag.take(role) for bag in bags]) for role in roles), margin=0.4).backward()
    trainer.train_on(mega, np.random.default_rng(1))
    for table, other in zip(trainer.tables, plain.tables, strict=True):
        found = table.optimizer.first / 0.1
        wanted = other.weight.grad.clone()
        wanted[0] = 0
        assert wanted.abs().max() > 1e-3
        torch.testing.assert_close(found, wanted, atol=1e-6, rtol=1e-5)


def test_mega_batch_of_one_is_in_batch_selection(tmp_path):
    sides = random_text(60)
    encoder = encoder_of(sides, model="word", dimension=8)
    store = store_of(sides, encoder, tmp_path)
    config = TrainConfig(batch_size=20, mega_batch=1, epochs=1)
    trainer = tight_loop(encoder, config, store.pairs)
    weight = take_apart(list(encoder)).parts[0].table.weight.data
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
        (loss,) = trainer.train_on(mega, np.random.default_rng(1))
        assert loss == pytest.approx(float(hinge.mean()), abs=1e-5)
        trainer.tables[0].optimizer.catch_up()


def test_pairs_without_negatives_are_left_out():
    negatives = np.array([3, -1, 0, 1, 0, -1])
    assert minibatch(np.arange(3), 3, negatives, one_sided=False).tolist() == [[0], [3], [3], [1]]
    assert minibatch(np.arange(3), 3, negatives[:3], one_sided=True).tolist() == [[0, 2], [3, 5], [3, 0]]
    assert minibatch(np.arange(1, 3), 3, None, one_sided=False).tolist() == [[1, 2], [4, 5]]


def test_sentences_that_are_all_the_same_make_no_step(tmp_path):
    sides = (["a b"] * 10, ["a b"] * 10)
    encoder = encoder_of(sides, model="word", dimension=4)
    store = store_of(sides, encoder, tmp_path)
    trainer = tight_loop(encoder, TrainConfig(batch_size=5, mega_batch=2), 10)
    assert trainer.train_on(next(store.mega_batches(10, seed=1, epoch=0)), np.random.default_rng(1)) == []
    assert trainer.tables[0].optimizer.step == 0


@pytest.mark.parametrize("negatives", ["max", "rand"])
def test_loss_that_is_no_number_names_the_step(tmp_path, negatives):
    sides = random_text(PAIRS)
    encoder = encoder_of(sides, model="word", dimension=4)
    store = store_of(sides, encoder, tmp_path)
    config = TrainConfig(batch_size=10, mega_batch=2, negatives=negatives)
    trainer = tight_loop(encoder, config, store.pairs)
    megas = store.mega_batches(20, seed=1, epoch=0)
    trainer.train_on(next(megas), np.random.default_rng(1))
    take_apart(list(encoder)).parts[0].table.weight.data[1, 0] = float("nan")
    with pytest.raises(InputError, match=r"the loss of step 3 is nan; lower the learning rate"):
        trainer.train_on(next(megas), np.random.default_rng(1))


def test_random_and_mixed_negatives_are_learned_from(tmp_path):
    sides = random_text(PAIRS)
    first = {}
    for negatives in ("max", "mix", "rand"):
        encoder = encoder_of(sides, model="word", dimension=8)
        store = store_of(sides, encoder, tmp_path / negatives)
        config = TrainConfig(batch_size=50, mega_batch=2, negatives=negatives)
        mega = next(store.mega_batches(100, seed=1, epoch=0))
        first[negatives] = tight_loop(encoder, config).train_on(mega, np.random.default_rng(1))[0]
    # The harder the negatives, the larger the loss.
    assert first["rand"] < first["mix"] < first["max"]
