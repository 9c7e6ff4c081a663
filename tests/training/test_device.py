"""The loop on a device against the loop on the CPU, run on torch's CPU device."""

import math

import numpy as np
import pytest
import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from paranmt_hf import TrainConfig
from paranmt_hf.encoders.composition import take_apart
from paranmt_hf.errors import DivergedError
from paranmt_hf.training.device.engine import device_engine
from paranmt_hf.training.device.graph import WARM_UP, Capturing
from paranmt_hf.training.teacher_vectors import TeacherVectors
from tests.refused import refused
from tests.training.test_cpu_engine import engine_of
from tests.training.toys import encoder_of, random_text, store_of

PAIRS = 100
CPU = torch.device("cpu")


def trained(kind, sides, folder, model, unknown, config, teacher=None, device=CPU):
    encoder = encoder_of(sides, model=model, dimension=12, words=30, trigrams=60, unknown=unknown)
    store = store_of(sides, encoder, folder)
    if kind == "device":
        trainer = device_engine(take_apart(encoder), config, store.pairs, teacher, device)
    else:
        trainer = engine_of(encoder, config, store.pairs, teacher)
    losses = []
    for epoch in range(config.epochs):
        for index, mega in enumerate(store.mega_batches(config.mega_pairs, seed=1, epoch=epoch)):
            losses += trainer.train_on(mega, np.random.default_rng([epoch, index]))
    for optimizer in trainer.optimizers:
        optimizer.catch_up()
    return losses, trainer.optimizers


@pytest.mark.parametrize(
    ("model", "unknown", "settings"),
    [
        ("word", "drop", {}),
        ("word,trigram", "drop", {"decay": True}),
        ("word+trigram", "drop", {"negatives": "mix"}),
        ("word", "train", {"negatives": "rand"}),
        ("word", "drop", {"one_sided": True}),
        ("word", "drop", {"one_sided": True, "negatives": "mix"}),
        ("word", "drop", {"optimizer": "adagrad"}),
        ("word,trigram", "train", {"optimizer": "adagrad", "lambda_w": 0.1, "clip": 0.05}),
        ("word,trigram", "drop", {"freeze_words": True, "clip": 0.1}),
        ("word", "drop", {"teacher": "t", "teacher_weight": 0.5}),
        ("word", "drop", {"teacher": "t", "teacher_loss": "weighted"}),
    ],
)
def test_equals_the_loop_on_the_cpu(tmp_path, model, unknown, settings):
    sides = random_text(PAIRS)
    config = TrainConfig(batch_size=8, mega_batch=3, learning_rate=0.01, epochs=2, **settings)
    teacher = None
    if config.teacher:
        encoder = encoder_of(sides, model=model, dimension=12, words=30)
        keys = np.unique(store_of(sides, encoder, tmp_path / "teacher").keys())
        vectors = np.random.default_rng(3).standard_normal((len(keys), 5)).astype(np.float16)
        teacher = TeacherVectors(keys, vectors)
    wanted, plain = trained("cpu", sides, tmp_path / "a", model, unknown, config, teacher)
    found, device = trained("device", sides, tmp_path / "b", model, unknown, config, teacher)
    assert len(found) == len(wanted) > 20
    np.testing.assert_allclose(found, wanted, atol=2e-4)
    for one, other in zip(device, plain, strict=True):
        assert one.step == other.step == len(found)
        difference = (one.weight - other.weight).abs()
        # Where a gradient is nearly zero, rounding decides its sign, and Adam makes a full step of it.
        assert difference.mean() < 2e-5
        assert difference.max() < 0.01
        # What makes up for missed steps of lambda_w is kept on the CPU alone.
        assert one.state().keys() == other.state().keys() - {"factors", "distances"}


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU here")
@pytest.mark.parametrize("settings", [{}, {"clip": 0.1, "decay": True}, {"lambda_w": 0.1}, {"optimizer": "adagrad"}])
def test_equals_the_loop_on_the_cpu_also_on_a_gpu(tmp_path, settings, caplog):
    config = TrainConfig(batch_size=4, mega_batch=6, learning_rate=0.01, epochs=3, **settings)
    sides, rest = random_text(PAIRS), ("word,trigram", "drop", config)
    wanted, plain = trained("cpu", sides, tmp_path / "a", *rest)
    found, device = trained("device", sides, tmp_path / "b", *rest, device=torch.device("cuda"))
    assert "cannot be captured" not in caplog.text
    np.testing.assert_allclose(found, wanted, atol=1e-3)
    for one, other in zip(device, plain, strict=True):
        assert (one.weight - other.weight).abs().mean() < 1e-4


# No look back to the host

# Ways of a tensor to the host, or of its values into shapes, each of which lets the host wait for a GPU.
LOOKS = {"cpu", "numpy", "tolist", "item", "__bool__", "__float__", "__int__", "__index__", "__array__"}
# What a step may call: no shape of theirs depends on values, and all of them run on the device alone.
OPERATIONS = set(
    """
    _to_copy add add_ addcmul_ cat clamp clamp_min cumsum div eq flip ge index_add_ index_select lerp_
    linalg_vector_norm masked_fill mul mul_ neg new_zeros pow reciprocal rsub searchsorted select slice
    split_with_sizes sqrt stack sub sum unbind unsqueeze view zero_ zeros_like
    """.split()
)


class NoLooks(TorchFunctionMode):
    """Counts looks at a device, and refuses them if it is told to."""

    def __init__(self, refuse=False):
        super().__init__()
        self.refuse, self.count = refuse, 0

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if getattr(func, "__name__", "") in LOOKS:
            assert not self.refuse, f"{func.__name__} looks at the device"
            self.count += 1
        return func(*args, **(kwargs or {}))


class Operations(TorchDispatchMode):
    """Notes which operations run."""

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.names.append(func._schema.name.removeprefix("aten::"))
        result = func(*args, **(kwargs or {}))
        for leaf in tree_leaves((args, kwargs or {})):
            # A mask in place of indices would have a shape that depends on its values.
            assert not (isinstance(leaf, torch.Tensor) and leaf.dtype == torch.bool and "index" in self.names[-1])
        return result


def prepared(folder, config, device=CPU, model="word,trigram", **options):
    sides = random_text(PAIRS)
    encoder = encoder_of(sides, model=model, dimension=12, words=30, trigrams=60)
    store = store_of(sides, encoder, folder)
    trainer = device_engine(take_apart(encoder), config, store.pairs, None, device, **options)
    megas = store.mega_batches(config.mega_pairs, seed=1, epoch=0)
    plans = [trainer.prepare(mega, np.random.default_rng(1)) for mega in megas]
    return trainer, plans


@pytest.mark.slow
@pytest.mark.parametrize("settings", [{"clip": 0.1, "lambda_w": 0.1}, {"optimizer": "adagrad", "one_sided": True}])
def test_a_mega_batch_is_looked_at_once(tmp_path, settings):
    config = TrainConfig(batch_size=8, mega_batch=3, learning_rate=0.01, epochs=1, **settings)
    trainer, plans = prepared(tmp_path / "cpu", config)
    for plan in plans:
        with NoLooks() as looks:
            trainer.train_on(plan, None)
        assert looks.count <= 3, "the results to the host, as an array, as numbers"
    trainer.tables[0].optimizer.step = 0
    with NoLooks(refuse=True):
        trainer._run(plans[0], 0)
    with Operations() as operations:
        trainer._step(trainer._sentences)
    assert set(operations.names) <= OPERATIONS, set(operations.names) - OPERATIONS
    # On this device tensors have shapes and no values: what runs there asks for none.
    trainer, plans = prepared(tmp_path / "meta", config, torch.device("meta"))
    results = trainer._run(plans[0], 0)
    assert results.shape == (len(plans[0].steps) + 1, 3)
    with pytest.raises(NotImplementedError):
        trainer.train_on(plans[0], None)


class Recorded(Capturing):
    """A CUDA graph on the CPU: notes operations with their memory, and runs them again on that memory."""

    def __init__(self, fails=False):
        self.fails, self.captures, self.replays, self.warm = fails, 0, 0, 0

    def warm_up(self, step):
        self.warm += 1
        step()

    def capture(self, step):
        self.captures += 1
        if self.fails:
            raise RuntimeError("operation not permitted when stream is capturing\nmore")
        kept = [tensor.clone() for tensor in self.state()]
        with Tape() as tape:
            step()
        # A capture does not run what it captures.
        for tensor, value in zip(self.state(), kept, strict=True):
            tensor.copy_(value)

        def replay():
            self.replays += 1
            tape.replay()

        return replay


class Tape(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.calls = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        self.calls.append((func, args, kwargs or {}, result))
        return result

    @torch.no_grad()
    def replay(self):
        for func, args, kwargs, results in self.calls:
            again = func(*args, **kwargs)
            for old, new in zip(tree_leaves(results), tree_leaves(again), strict=True):
                if isinstance(old, torch.Tensor) and old.data_ptr() != new.data_ptr():
                    old.copy_(new)


@pytest.mark.parametrize("settings", [{"clip": 0.1, "lambda_w": 0.1, "decay": True}, {"negatives": "mix"}])
def test_a_captured_step_is_the_same_step(tmp_path, settings):
    config = TrainConfig(batch_size=4, mega_batch=6, learning_rate=0.01, epochs=1, **settings)
    losses, weights = [], []
    for capturing in (None, Recorded(), Recorded(fails=True)):
        trainer, plans = prepared(tmp_path / f"{len(losses)}", config, capturing=capturing)
        if capturing is not None:
            tables = trainer.tables
            capturing.state = lambda tables=tables, trainer=trainer: [
                trainer._result,
                *(tensor for table in tables for tensor in table._local),
            ]
        losses.append([loss for plan in plans for loss in trainer.train_on(plan, None)])
        for table in trainer.tables:
            table.optimizer.catch_up()
        weights.append([table.optimizer.weight for table in trainer.tables])
        if capturing is not None and not capturing.fails:
            # Shapes grew in the first mega-batches and stay then.
            assert 1 <= capturing.captures <= 3
            assert capturing.warm == WARM_UP * capturing.captures
            assert capturing.replays > 8
        elif capturing is not None:
            assert capturing.captures == 1 and capturing.replays == 0
    assert len(losses[0]) > 20
    for other in (1, 2):
        np.testing.assert_allclose(losses[other], losses[0], rtol=1e-6)
        for one, another in zip(weights[0], weights[other], strict=True):
            torch.testing.assert_close(another, one, atol=1e-6, rtol=0)


# Bounds, errors, mining


def test_too_small_a_bound_is_made_larger(tmp_path):
    config = TrainConfig(batch_size=8, mega_batch=3, learning_rate=0.01, epochs=1)
    usual, plans = prepared(tmp_path / "a", config)
    wanted = [usual.train_on(plan, None) for plan in plans]
    trainer, plans = prepared(tmp_path / "b", config)
    runs = []
    trainer._run = lambda *arguments: runs.append(1) or type(trainer)._run(trainer, *arguments)
    for plan, losses in zip(plans, wanted, strict=True):
        for table, own in zip(trainer.tables, plan.rows, strict=True):
            # A guess of just the pairs' own units leaves no room for their negatives.
            table.bound = own.own_units
            table._places = torch.arange(table.bound)
        assert trainer.train_on(plan, None) == pytest.approx(losses, abs=1e-6)
    assert len(runs) == 2 * len(plans)


@pytest.mark.parametrize(("negatives", "row"), [("max", 1), ("rand", 1)])
def test_loss_that_is_no_number_names_the_step(tmp_path, negatives, row):
    config = TrainConfig(batch_size=10, mega_batch=2, negatives=negatives)
    trainer, plans = prepared(tmp_path, config, model="word")
    trainer.train_on(plans[0], None)
    table = trainer.tables[0].optimizer
    before = table.averages[0].clone()
    table.table[row, 0] = math.nan
    with refused(kind=DivergedError):
        trainer.train_on(plans[1], None)
    # Nothing of that mega-batch was written.
    assert torch.equal(table.averages[0], before)


def test_too_little_memory_is_said(tmp_path, monkeypatch):
    def full(*arguments, **options):
        raise torch.cuda.OutOfMemoryError("CUDA out of memory. Tried to allocate 7 GiB.")

    trainer, plans = prepared(tmp_path, TrainConfig(batch_size=10, mega_batch=2), model="word")
    monkeypatch.setattr("paranmt_hf.training.device.engine.hardest", full)
    with refused("mega_batch"):
        trainer.train_on(plans[0], None)
