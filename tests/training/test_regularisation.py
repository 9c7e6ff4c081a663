"""Penalties against sums by hand, and whole steps of the trainer against a dense loop in plain torch."""

import numpy as np
import pytest
import torch
from torch import nn

from paranmt_hf import TrainConfig
from paranmt_hf.encoders.building import trainable
from paranmt_hf.encoders.composition import take_apart
from paranmt_hf.encoders.prefixes import sequence_features
from paranmt_hf.training.fit import fit_encoder
from paranmt_hf.training.losses import (
    penalty,
    rows_towards_initial,
    towards_initial,
    towards_zero,
)
from paranmt_hf.training.optimizers import clip_weights, leave_first_row
from paranmt_hf.training.trainer import bag_features
from tests.training.toys import dense_steps, encoder_of, random_text, store_of


def test_penalties_by_hand():
    first, second = nn.Parameter(torch.tensor([1.0, 2.0])), nn.Parameter(torch.tensor([[3.0]]))
    fixed = nn.Parameter(torch.ones(5), requires_grad=False)
    assert float(penalty(towards_zero([first, second, fixed], 0.5)).detach()) == 0.5 * (1 + 4 + 9)
    pulls = towards_initial([first, second, fixed], 10.0)
    assert float(penalty(pulls).detach()) == 0
    with torch.no_grad():
        first.add_(torch.tensor([1.0, -2.0]))
    total = penalty(pulls)
    assert float(total.detach()) == 10 * (1 + 4)
    total.backward()
    assert first.grad.tolist() == [20, -40] and second.grad.tolist() == [[0]]
    assert penalty([]) == 0 == penalty(towards_zero([first], 0.0))


def test_rows_that_no_pair_has_are_left_alone():
    """The penalty and the gradient are those of the whole table, where the others stay."""
    table = nn.Parameter(torch.arange(10.0).reshape(5, 2))
    (some,) = rows_towards_initial(table, torch.tensor([1, 3]), 0.5)
    (whole,) = towards_initial([table], 0.5)
    with torch.no_grad():
        table[1] += 2
        table[3, 0] -= 1
    found = []
    for pull in (some, whole):
        table.grad = None
        pull.penalty().backward()
        found.append((float(pull.penalty().detach()), table.grad))
    assert found[0][0] == found[1][0] == 0.5 * (4 + 4 + 1)
    assert found[0][1].is_sparse and torch.equal(found[0][1].to_dense(), found[1][1])
    assert found[1][1][1].tolist() == [2, 2] and found[1][1][3].tolist() == [-1, 0]
    assert rows_towards_initial(table, torch.tensor([1]), 0.0) == []


def test_clipping_by_hand():
    first, second, without = (nn.Parameter(torch.zeros(shape)) for shape in ((2,), (1, 1), (1,)))
    first.grad, second.grad = torch.tensor([3.0, 0.0]), torch.tensor([[4.0]])
    clip_weights([first, second, without], 6.0)
    assert first.grad.tolist() == [3, 0]
    clip_weights([first, second, without], 1.0)
    np.testing.assert_allclose([first.grad[0], second.grad[0, 0]], [0.6, 0.8], rtol=1e-6)


def test_clipping_of_sparse_gradients_adds_up_what_belongs_to_a_row():
    table, other = nn.Embedding(5, 2, sparse=True), nn.Parameter(torch.zeros(1))
    # Row 3 twice: its gradient is (2, 2), whose norm with the 1 of the other weight is 3.
    (table(torch.tensor([3, 3])).sum() + other.sum()).backward()
    clip_weights([table.weight, other], 1.0)
    dense = table.weight.grad.to_dense()
    np.testing.assert_allclose(dense[3], [2 / 3, 2 / 3], rtol=1e-6)
    assert float(other.grad) == pytest.approx(1 / 3)
    assert not dense[[0, 1, 2, 4]].any()


@pytest.mark.parametrize("sparse", [False, True])
def test_first_row_keeps_no_gradient(sparse):
    table = nn.Embedding(4, 2, sparse=sparse)
    hook = leave_first_row(table.weight)
    table(torch.tensor([0, 2, 2, 0])).sum().backward()
    assert table.weight.grad.to_dense().tolist() == [[0, 0], [0, 0], [2, 2], [0, 0]]
    hook.remove()
    table.zero_grad()
    table(torch.tensor([0])).sum().backward()
    assert table.weight.grad.to_dense()[0].tolist() == [1, 1]


def plain_losses(model, store, config):
    """Equation 1 as it is printed: whole matrices in every step, no row apart."""
    (part,) = take_apart(model).parts
    table, others = part.table.weight, part.weights
    features = sequence_features if part.family.ordered else bag_features
    start = [weight.detach().clone() for weight in [table, *others]]
    to_initial = part.family.centre == "initial"

    def encode(mega, sentences):
        bags = mega.bags[part.unit_kind].take(sentences)
        return model(features(bags.rows, bags.offsets))["sentence_embedding"]

    def pull():
        total = config.lambda_w * (table - start[0]).square().sum()
        for weight, centre in zip(others, start[1:], strict=True):
            total = total + config.lambda_c * (weight - centre * to_initial).square().sum()
        return total

    trained = others if config.freeze_words else [table, *others]
    megas = store.mega_batches(config.mega_pairs, seed=config.seed, epoch=0)
    return dense_steps(encode, trained, megas, config, pull=pull, frozen=[table])


@pytest.mark.parametrize(
    ("model", "settings"),
    [
        ("rnn", {"lambda_w": 0.05, "lambda_c": 0.05, "clip": 0.5}),
        ("irnn", {"optimizer": "adagrad", "lambda_c": 1000, "clip": 1.0, "learning_rate": 0.05}),
        ("dan", {"optimizer": "adagrad", "clip": 0.2, "learning_rate": 0.05}),
        ("plstm", {"freeze_words": True, "lambda_c": 0.01}),
        ("projection", {"optimizer": "adagrad", "freeze_words": True, "lambda_c": 0.1, "clip": 0.01}),
    ],
)
def test_steps_of_the_trainer_equal_dense_ones(tmp_path, model, settings):
    """A mega-batch of one mini-batch: the batch is the pool of negatives."""
    sides = random_text(60)
    config = TrainConfig(
        **{"batch_size": 15, "mega_batch": 1, "epochs": 1, "scrambling": 0, "learning_rate": 0.01, **settings}
    )
    found, wanted = (trainable(encoder_of(sides, model=model, dimension=6, words=30)) for _ in range(2))
    store = store_of(sides, found, tmp_path / "pairs")
    assert store.rows_of("word").tolist() == list(range(31))
    before = {name: weight.clone() for name, weight in found.state_dict().items()}
    history = fit_encoder(found.train(), store, config, tmp_path)
    losses = plain_losses(wanted.train(), store, config)
    assert len(losses) == 4
    np.testing.assert_allclose([loss for _, loss in history.losses], losses, atol=2e-4)
    moved = {name: (weight - before[name]).abs().max() for name, weight in found.state_dict().items()}
    (part,) = take_apart(found).parts
    for name, weight in wanted.state_dict().items():
        difference = (found.state_dict()[name] - weight).abs()
        # Where a gradient is nearly zero, rounding decides its sign, and a first step of both has full size.
        assert difference.mean() < 2e-5 and difference.max() < 2 * config.learning_rate, name
    frozen = next(name for name, weight in found.named_parameters() if weight is part.table.weight)
    assert (moved[frozen] == 0) == config.freeze_words
    assert all(change > 0.001 for name, change in moved.items() if name != frozen)
    assert all(weight.requires_grad and not weight._backward_hooks for weight in found.parameters())
    assert not part.table.weight[0].any()


@pytest.mark.slow
def test_an_identity_rnn_is_held_at_its_start(tmp_path):
    """With the paper's largest lambda_c it stays an average, while its words are learned; without it does not."""
    sides = random_text(60)
    distances = {}
    for strength in (1000, 0):
        model = trainable(encoder_of(sides, model="irnn", dimension=6))
        store = store_of(sides, model, tmp_path / f"pairs-{strength}")
        config = TrainConfig(batch_size=15, mega_batch=1, epochs=5, lambda_c=strength, decay=True)
        fit_encoder(model, store, config, tmp_path / f"{strength}")
        distances[strength] = float((model[1].state.weight - torch.eye(6)).abs().max().detach())
    assert distances[1000] < 0.005 < 0.008 < distances[0]
