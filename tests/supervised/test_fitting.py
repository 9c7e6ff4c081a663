"""Training: equation 2 by hand, and the whole against autograd over whole tables."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.nn.functional import kl_div

from paranmt_hf import SuperviseConfig
from paranmt_hf.encoders.building import trainable
from paranmt_hf.encoders.composition import take_apart
from paranmt_hf.evaluation.transfer_heads import target_distributions
from paranmt_hf.supervised.fitting import FixedVectors, Items, TrainedEncoder, fit_head, probabilities
from tests.refused import refused
from tests.supervised.toys import TEXTS, cut, encoder, head_of, items_of

LAMBDAS = {"lambda_s": 0.02, "lambda_c": 0.03, "lambda_w": 0.05}


def settings(way="regularised", optimizer="adam", **changes):
    config = SuperviseConfig("SICK-E", way, hidden=3, epochs=2, batch_size=4, optimizer=optimizer)
    return replace(config.resolved(start=True), **{**LAMBDAS, **changes})


def source_of(model, **options):
    return TrainedEncoder(model, take_apart(model).parts, cut(model), **options)


def flat(weights):
    return torch.cat([weight.detach().flatten() for weight in weights])


def plain(model, head, items, config):
    """The algorithm as the paper describes it: whole tables, and penalties that are part of the loss."""
    composition = take_apart(model)
    words = {id(part.table.weight) for part in composition.parts if part.unit_kind == "word"}
    tables = {id(part.table.weight) for part in composition.parts}
    # An identity-RNN is always pulled to where it began.
    to_start = config.way == "regularised" or composition.name == "irnn"
    trained = [own for own in model.parameters() if not (config.freeze_words and id(own) in words)]
    parameters = [*trained, *head.parameters()]
    start = {id(own): own.detach().clone() for own in model.parameters()}
    if config.optimizer == "adam":
        steps = torch.optim.Adam(parameters, lr=config.learning_rate)
    else:
        steps = torch.optim.Adagrad(parameters, lr=config.learning_rate, initial_accumulator_value=1e-6, eps=0)
    model.train()
    for epoch in range(config.epochs):
        order = np.random.default_rng([config.seed, epoch]).permutation(len(items))
        for begin in range(0, len(items), config.batch_size):
            chosen = order[begin : begin + config.batch_size]
            sides = [
                model(model.preprocess([TEXTS[text] for text in items.sentences[side, chosen]]))["sentence_embedding"]
                for side in range(2)
            ]
            loss = kl_div(head(*sides), items.targets[chosen], reduction="batchmean")
            for own in model.parameters():
                centre = start[id(own)]
                if id(own) in tables:
                    loss = loss + config.lambda_w / 2 * (own - centre).square().sum()
                elif to_start:
                    loss = loss + config.lambda_c / 2 * (own - centre).square().sum()
                else:
                    loss = loss + config.lambda_c / 2 * own.square().sum()
            loss = loss + config.lambda_s / 2 * sum(own.square().sum() for own in head.parameters())
            steps.zero_grad()
            loss.backward()
            for part in composition.parts:
                if part.table.weight.grad is not None:
                    part.table.weight.grad[0] = 0
            steps.step()


@pytest.mark.parametrize(
    ("model", "way", "optimizer"),
    [
        *((name, "regularised", "adam") for name in ("word", "lstm", "projection", "dan", "rnn", "plstm")),
        pytest.param("blstm", "regularised", "adam", marks=pytest.mark.slow),
        ("word,trigram", "regularised", "adagrad"),
        ("word", "initialised", "adam"),
        ("projection", "initialised", "adagrad"),
        ("irnn", "initialised", "adam"),
        pytest.param("word+lstm", "initialised", "adagrad", marks=pytest.mark.slow),
    ],
)
def test_equal_to_whole_tables_and_autograd(tmp_path, model, way, optimizer):
    own, other = trainable(encoder(model)), encoder(model)
    head, head2, items, config = head_of(**width(own)), head_of(**width(own)), items_of(), settings(way, optimizer)
    before = flat(own.parameters())
    source = source_of(own)
    # A figure that rises keeps the last epoch.
    fit_head(source, head, items, items, config, rising(), tmp_path)
    source.put_back()
    plain(other, head2, items, config)
    torch.testing.assert_close(flat(own.parameters()), flat(other.parameters()), atol=2e-6, rtol=1e-4)
    torch.testing.assert_close(flat(head.parameters()), flat(head2.parameters()), atol=2e-6, rtol=1e-4)
    assert (flat(own.parameters()) - before).abs().max() > 1e-3, "something was learned"


@pytest.mark.parametrize(("model", "moves"), [("word", False), ("word,trigram", True), ("projection", True)])
def test_words_that_are_not_updated(tmp_path, model, moves):
    """Footnote 16: the words stay as they are to the bit, and all else is trained as without them."""
    own, other = encoder(model), encoder(model)
    head, head2, items = head_of(**width(own)), head_of(**width(own)), items_of()
    config = settings("initialised", freeze_words=True)
    before, words = flat(own.parameters()), take_apart(own).parts[0].table.weight.detach().clone()
    source = source_of(own, freeze_words=True)
    fit_head(source, head, items, items, config, rising(), tmp_path)
    source.put_back()
    plain(other, head2, items, config)
    assert torch.equal(take_apart(own).parts[0].table.weight, words)
    torch.testing.assert_close(flat(own.parameters()), flat(other.parameters()), atol=2e-6, rtol=1e-4)
    torch.testing.assert_close(flat(head.parameters()), flat(head2.parameters()), atol=2e-6, rtol=1e-4)
    assert bool((flat(own.parameters()) != before).any()) == moves


def width(model):
    return {"dimension": model.get_embedding_dimension()}


def rising():
    figures = iter(range(100))
    return lambda shares: float(next(figures))


def test_rows_of_other_words_rest(tmp_path):
    model = encoder()
    before = model[0].weight.clone()
    source = source_of(model)
    assert len(source.parameters[0]) < len(before)
    fit_head(source, head_of(), items_of(), items_of(), settings("initialised"), rising(), tmp_path)
    source.put_back()
    row_of = {unit: row for row, unit in enumerate(model[0].units)}
    moved = (model[0].weight != before).any(dim=1)
    assert not moved[[0, row_of["elsewhere"], row_of["alone"], row_of["unseen"]]].any()
    assert moved.sum() > 10


@pytest.mark.parametrize("model", ["word", "lstm", "trigram+lstm", "projection"])
def test_vectors_under_training_are_those_of_encode(model):
    own = encoder(model)
    expected = own.encode(TEXTS)
    source = source_of(own)
    places = np.array([3, 12, 3, 0])
    np.testing.assert_allclose(source.vectors(places).numpy(), expected[places], atol=1e-6)
    np.testing.assert_allclose(source.trained_vectors(places).detach().numpy(), expected[places], atol=1e-6)
    source.put_back()
    np.testing.assert_allclose(own.encode(TEXTS), expected, atol=1e-6)


def test_the_loss_by_hand(tmp_path):
    """A score of 3.6 has mass 0.4 on 3 and 0.6 on 4; its divergence from equal shares is ln 5 less its entropy."""
    items = Items(np.array([[0], [1]]), torch.from_numpy(target_distributions(np.array([3.6]))))
    head = head_of(classes=list("12345"), values=[1.0, 2.0, 3.0, 4.0, 5.0])
    for layer in head.parameters():
        layer.data.zero_()
    source = FixedVectors(torch.zeros(2, 4))
    np.testing.assert_allclose(probabilities(source, head, items), np.full((1, 5), 0.2))
    config = settings("fixed", epochs=1, lambda_s=0.0)
    (epoch,) = fit_head(source, head, items, items, config, rising(), tmp_path)
    entropy = -(0.4 * np.log(0.4) + 0.6 * np.log(0.6))
    assert epoch.loss == pytest.approx(np.log(5) - entropy, rel=1e-5)


def test_the_best_epoch_is_kept(tmp_path):
    """The first of equals; the result is that of a run that ends there."""
    vectors = torch.randn(13, 4, generator=torch.Generator().manual_seed(1))
    found = {}
    for name, figures, epochs in (("kept", [0.2, 0.5, 0.5, 0.1], 4), ("two", [0.2, 0.5], 2)):
        figures, head = iter(figures), head_of()
        config = settings("fixed", epochs=epochs)
        measure = lambda shares: next(figures)  # noqa: B023, E731
        course = fit_head(FixedVectors(vectors), head, items_of(), items_of(), config, measure, tmp_path / name)
        found[name] = flat(head.parameters())
        assert len(course) == epochs
    assert torch.equal(found["kept"], found["two"])


class Stopped(FixedVectors):
    """Counts the steps, and is interrupted in one of them."""

    def __init__(self, matrix, step=None):
        super().__init__(matrix)
        self.step, self.steps = step, 0

    def trained_vectors(self, sentences):
        self.steps += 1
        if self.steps == self.step:
            raise KeyboardInterrupt
        return super().trained_vectors(sentences)


@pytest.mark.parametrize(("step", "done"), [(2, 0), (4, 1), (6, 1)])
@pytest.mark.parametrize("optimizer", ["adam", "adagrad"])
def test_an_interruption_changes_nothing(tmp_path, checkpoint_always, optimizer, step, done):
    """Two epochs of three steps are interrupted in one of them, and continue with its epoch."""
    vectors = torch.randn(13, 4, generator=torch.Generator().manual_seed(1))
    config = settings("fixed", optimizer)

    def train(source, head, folder):
        # The second epoch is worse than the first.
        shares = lambda found: -float(np.abs(found).max())  # noqa: E731
        return fit_head(source, head, items_of(), items_of(seed=2), config, shares, folder)

    whole, head = head_of(), head_of()
    expected = train(FixedVectors(vectors), whole, tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        train(Stopped(vectors, step), head, tmp_path / "stopped")
    again, rest = head_of(), Stopped(vectors)
    assert train(rest, again, tmp_path / "stopped") == expected
    assert rest.steps == 6 - 3 * done
    assert torch.equal(flat(again.parameters()), flat(whole.parameters()))
    # What is finished is only restored.
    assert train(Stopped(vectors, 1), again, tmp_path / "stopped") == expected


def test_the_number_of_threads_changes_nothing(tmp_path):
    vectors = torch.randn(13, 4, generator=torch.Generator().manual_seed(1))
    threads, found = torch.get_num_threads(), []
    for count in (1, 2):
        torch.set_num_threads(count)
        head = head_of()
        fit_head(
            FixedVectors(vectors), head, items_of(), items_of(), settings("fixed"), rising(), tmp_path / f"{count}"
        )
        found.append(flat(head.parameters()))
        assert torch.get_num_threads() == count
    torch.set_num_threads(threads)
    assert torch.equal(*found)


def test_a_last_step_that_diverges(tmp_path):
    """It shows in no loss, for there is no step after it."""
    source = FixedVectors(torch.randn(13, 4, generator=torch.Generator().manual_seed(1)))
    source.trained_vectors = source.vectors
    source.vectors = lambda sentences: torch.full((len(sentences), 4), float("nan"))
    with refused():
        fit_head(source, head_of(), items_of(), items_of(), settings("fixed", epochs=1), rising(), tmp_path)


def test_a_loss_that_is_no_number(tmp_path):
    vectors = torch.full((13, 4), float("inf"))
    with refused():
        fit_head(FixedVectors(vectors), head_of(), items_of(), items_of(), settings("fixed"), rising(), tmp_path)
