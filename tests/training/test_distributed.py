"""Several processes that train together: threads in their place, and a stand-in for what torch sends between them."""

import math
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch

from paranmt_hf.encoders.composition import take_apart
from paranmt_hf.errors import DivergedError, InputError
from paranmt_hf.training.config import TrainConfig
from paranmt_hf.training.device.engine import device_engine
from paranmt_hf.training.device.plan import owners
from paranmt_hf.training.device.tables import distinct
from paranmt_hf.training.distributed import Processes
from paranmt_hf.training.epochs import Epochs
from paranmt_hf.training.mega_batch import excluded
from paranmt_hf.training.pair_views import DistinctSentences
from paranmt_hf.training.teacher import TeacherVectors
from tests.training.toys import encoder_of, random_text, store_of

PAIRS = 100
CPU = torch.device("cpu")


class Thread(Processes):
    """A process that is a thread; what it sends stands in a list that all share."""

    def __init__(self, rank, count, shared):
        super().__init__(rank, count)
        self.shared, self.sent = shared, 0

    def gather(self, own):
        values, barrier = self.shared
        self.sent += own.numel() * own.element_size()
        values[self.rank] = own
        barrier.wait(timeout=60)
        assert len({value.shape for value in values}) == 1
        everyone = torch.stack(values)
        barrier.wait(timeout=60)
        return everyone

    def broadcast(self, value=0.0):
        return float(self.gather(torch.tensor([value], dtype=torch.float64))[0])

    def check_same(self, what, *values):
        everyone = self.gather(torch.tensor(values))
        if not bool((everyone == everyone[0]).all()):
            raise InputError(f"not the same {what}")


def together(count, work):
    """Let threads do the same work; what each returns, or raises."""
    shared = [None] * count, threading.Barrier(count)
    threads = [Thread(rank, count, shared) for rank in range(count)]

    def run(thread):
        try:
            return work(thread)
        except InputError as error:
            return error

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(run, threads))


def teacher_of(sides, folder):
    keys = np.unique(store_of(sides, encoder_of(sides, model="word", dimension=4), folder).keys())
    return TeacherVectors(keys, np.random.default_rng(3).standard_normal((len(keys), 5)).astype(np.float16))


def trainer_of(sides, store, config, model, teacher, process):
    encoder = encoder_of(sides, model=model, dimension=12, words=30, trigrams=60)
    return device_engine(take_apart(encoder), config, store.pairs, teacher, CPU, processes=process)


def epochs(trainer, store):
    """Train, and return the losses and the tables with all that is kept of them."""
    losses, config = [], trainer.config
    for epoch in range(config.epochs):
        for index, mega in enumerate(store.mega_batches(config.mega_pairs, seed=1, epoch=epoch)):
            losses += trainer.train_on(mega, np.random.default_rng([epoch, index]))
    for table in trainer.tables:
        table.optimizer.catch_up()
    return losses, [table.optimizer.state() for table in trainer.tables], trainer


@pytest.mark.slow
@pytest.mark.parametrize(
    ("count", "model", "settings"),
    [
        (2, "word", {}),
        # The last mini-batch of an epoch has four pairs: one of five processes has none of them.
        (5, "word", {"negatives": "mix"}),
        (3, "word,trigram", {"decay": True, "clip": 0.05, "lambda_w": 0.1}),
        (2, "word+trigram", {"one_sided": True}),
        (2, "word", {"optimizer": "adagrad", "negatives": "rand"}),
        (2, "word,trigram", {"freeze_words": True, "clip": 0.1}),
        (5, "word", {"teacher": "t", "teacher_weight": 0.5}),
        (3, "word,trigram", {"teacher": "t", "teacher_loss": "listwise"}),
    ],
)
def test_several_do_what_one_does(tmp_path, count, model, settings):
    sides = random_text(PAIRS)
    config = TrainConfig(batch_size=8, mega_batch=3, learning_rate=0.01, epochs=2, **settings)
    store = store_of(sides, encoder_of(sides, model=model, dimension=12, words=30, trigrams=60), tmp_path / "pairs")
    teacher = teacher_of(sides, tmp_path / "teacher") if config.teacher else None
    wanted, alone, _ = epochs(trainer_of(sides, store, config, model, teacher, None), store)
    found = together(count, lambda thread: epochs(trainer_of(sides, store, config, model, teacher, thread), store))
    assert len(wanted) > 20
    for losses, tables, _ in found:
        assert losses == found[0][0]
        np.testing.assert_allclose(losses, wanted, atol=2e-4)
        for table, first, one in zip(tables, found[0][1], alone, strict=True):
            # Equal in every bit on all processes, and up to rounding to those of one.
            assert all(torch.equal(table[name], first[name]) for name in first)
            difference = (table["weight"] - one["weight"]).abs()
            assert difference.mean() < 2e-5
            assert difference.max() < 0.01
            assert torch.equal(table["last"], one["last"])


def test_negatives_of_a_process_are_among_its_own(tmp_path):
    sides = random_text(PAIRS)
    config = TrainConfig(batch_size=10, mega_batch=4, learning_rate=0.01, epochs=1, mine_over="rank")
    store = store_of(sides, encoder_of(sides, model="word", dimension=12, words=30), tmp_path / "pairs")
    mega = next(store.mega_batches(40, seed=1, epoch=0))
    whose = np.tile(owners(40, 10, 3), 2)
    forbidden = set(zip(*excluded(mega.keys), strict=True))

    def mined(thread):
        trainer = trainer_of(sides, store, config, "word", None, thread)
        plan = trainer.prepare(mega, np.random.default_rng(1))
        sent = trainer._send(plan)
        vectors = trainer.tables[0].encode_all()
        trainer._mine(plan, sent, torch.zeros(()))
        return plan, trainer._negatives.numpy(), torch.nn.functional.normalize(vectors, dim=1).numpy()

    for rank, (plan, negatives, vectors) in enumerate(together(3, mined)):
        np.testing.assert_array_equal(plan.asking, np.flatnonzero(whose == rank))
        asking = np.unique(np.concatenate(plan.steps))
        assert len(asking) > 10
        for sentence in asking:
            assert whose[sentence] == rank
            allowed = [other for other in plan.asking if (sentence, other) not in forbidden]
            best = max(allowed, key=lambda other: vectors[sentence] @ vectors[other])
            assert negatives[sentence] in allowed
            assert vectors[sentence] @ vectors[negatives[sentence]] == pytest.approx(
                vectors[sentence] @ vectors[best], abs=1e-6
            )
    (first, tables, _), *others = together(
        3, lambda thread: epochs(trainer_of(sides, store, config, "word", None, thread), store)
    )
    for losses, other, _ in others:
        assert losses == first
        assert torch.equal(other[0]["weight"], tables[0]["weight"])


def test_distinct_rows():
    rows, places, count = distinct(torch.tensor([5, 2, 7, 2, 7, 0]), 8, 5)
    assert (rows.tolist(), int(count)) == ([0, 2, 5, 7, 7], 3)
    assert places.tolist() == [0, 5, 1, 5, 5, 2, 5, 5]
    rows, places, count = distinct(torch.tensor([4, 3, 1, 0]), 8, 2)
    assert (rows.tolist(), int(count)) == ([0, 1], 4)
    assert places.tolist() == [0, 1, 2, 2, 2, 2, 2, 2]
    rows, places, count = distinct(torch.tensor([], dtype=torch.long), 4, 2)
    assert (rows.tolist(), places.tolist(), int(count)) == ([3, 3], [2] * 4, 0)


def test_too_few_rows_are_made_more(tmp_path):
    sides = random_text(PAIRS, words=3000)
    config = TrainConfig(batch_size=50, mega_batch=2, learning_rate=0.01, epochs=2)
    store = store_of(sides, encoder_of(sides, model="word", dimension=12), tmp_path / "pairs")

    def of(thread):
        encoder = encoder_of(sides, model="word", dimension=12)
        return device_engine(take_apart(encoder), config, store.pairs, None, CPU, processes=thread)

    wanted = together(2, lambda thread: epochs(of(thread), store))
    assert wanted[1][2].tables[0].row_bound == 256

    def narrow(thread):
        trainer, runs = of(thread), []
        run = type(trainer)._run
        trainer._run = lambda *arguments: runs.append(1) or run(trainer, *arguments)
        trainer.tables[0].row_bound = 8
        return *epochs(trainer, store), runs

    for (losses, tables, _), (again, narrowed, trainer, runs) in zip(wanted, together(2, narrow), strict=True):
        assert again == losses
        assert torch.equal(tables[0]["weight"], narrowed[0]["weight"])
        assert trainer.tables[0].row_bound == 256
        assert len(runs) == 3


def test_all_see_that_one_has_no_number(tmp_path):
    sides = random_text(PAIRS)
    config = TrainConfig(batch_size=10, mega_batch=2, learning_rate=0.01, epochs=1, negatives="rand")
    store = store_of(sides, encoder_of(sides, model="word", dimension=12, words=30), tmp_path / "pairs")

    def work(thread):
        trainer = trainer_of(sides, store, config, "word", None, thread)
        megas = list(store.mega_batches(20, seed=1, epoch=0))
        trainer.train_on(megas[0], np.random.default_rng(1))
        if thread.rank == 1:
            trainer.tables[0].optimizer.table[1:, 0] = math.nan
        trainer.train_on(megas[1], np.random.default_rng(1))

    errors = together(2, work)
    assert all(isinstance(error, DivergedError) for error in errors)
    assert len({str(error) for error in errors}) == 1
    assert "the loss of step 3 is nan" in str(errors[0])


@pytest.mark.slow
def test_the_first_alone_scores_and_writes(tmp_path, checkpoint_always):
    sides = random_text(PAIRS)
    config = TrainConfig(batch_size=10, mega_batch=2, learning_rate=0.01, epochs=9, patience=2, evaluations=2)
    store = store_of(sides, encoder_of(sides, model="word", dimension=12, words=30), tmp_path / "pairs")
    scored, scores = [], [0.1, 0.3, 0.2, 0.25]

    def work(thread):
        trainer = trainer_of(sides, store, config, "word", None, thread)
        evaluate = lambda: scored.append(thread.rank) or scores[len(scored) - 1]  # noqa: E731
        folder = tmp_path / f"{thread.rank}"
        return Epochs(trainer, store, folder, evaluate, trainer.prepare, thread).run()

    histories = together(3, work)
    assert scored == [0] * 4
    assert sorted(path.name for path in (tmp_path / "0").iterdir()) == ["best.safetensors", "checkpoint.safetensors"]
    assert not (tmp_path / "1").exists()
    for history in histories:
        assert [score for _, score in history.scores] == scores
        assert (history.best_score, history.stale) == (0.3, 2)
        assert history.losses == histories[0].losses
    # A checkpoint that one of them does not see.
    errors = together(2, work)
    assert [str(error) for error in errors] == ["not the same checkpoint"] * 2


@pytest.mark.parametrize("single", [False, True])
def test_neighbours_of_all(tmp_path, single):
    sides = random_text(PAIRS)
    weight = 1.0 if single else 0.5
    config = TrainConfig(
        **{"batch_size": 10, "mega_batch": 2, "learning_rate": 0.01, "epochs": 2},
        **{"teacher": "t", "teacher_weight": weight, "neighbours": True},
    )
    store = store_of(sides, encoder_of(sides, model="word", dimension=12, words=30), tmp_path / "pairs")
    teacher = teacher_of(sides, tmp_path / "teacher")
    items = DistinctSentences(store) if single else store

    def work(thread):
        trainer = trainer_of(sides, store, config, "word", teacher, thread)
        folder = tmp_path / f"{thread.rank if thread else 'alone'}"
        return Epochs(trainer, items, folder, None, trainer.prepare, thread).run().losses

    wanted = np.array(work(None))
    assert len(wanted) > 8
    for losses in together(2, work):
        np.testing.assert_allclose(losses, wanted, atol=1e-5)
