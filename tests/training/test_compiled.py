"""Compiled steps and mining against those of torch: equal to rounding, and the same bytes each time."""

import json
import sys

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("numba", reason="numba is not installed: the extra `fast`")
from paranmt_hf.encoders.composition import take_apart  # noqa: E402
from paranmt_hf.errors import InputError  # noqa: E402
from paranmt_hf.training import arithmetic, loop, tile_mining  # noqa: E402
from paranmt_hf.training.arithmetic import Arithmetic, choose  # noqa: E402
from paranmt_hf.training.averaging import AveragingTrainer  # noqa: E402
from paranmt_hf.training.checkpoint import read_checkpoint  # noqa: E402
from paranmt_hf.training.compiled import CompiledTable, margin_step  # noqa: E402
from paranmt_hf.training.config import TrainConfig  # noqa: E402
from paranmt_hf.training.loop import Loop, learning_rates  # noqa: E402
from paranmt_hf.training.margin_loss import margin_loss  # noqa: E402
from paranmt_hf.training.megabatch import mine  # noqa: E402
from paranmt_hf.training.rowwise import RowwiseAdam, TrainedTable  # noqa: E402
from paranmt_hf.training.teacher import TeacherVectors  # noqa: E402
from paranmt_hf.training.tile_mining import mine_tiles, rounding_errors, whole_numbers  # noqa: E402
from paranmt_hf.training.train import train  # noqa: E402
from tests.training.test_rowwise import STEPS, run_rowwise  # noqa: E402
from tests.training.toys import encoder_of, random_text, store_of  # noqa: E402

TORCH, COMPILED = Arithmetic(), Arithmetic("compiled", "float32")
PAIRS = 100


def trainer_of(encoder, config, way, teacher=None):
    composition = take_apart(list(encoder))
    rates = learning_rates(PAIRS, config)
    tables = []
    for part in composition.parts:
        weight = part.table.weight.data
        fixed = config.freeze_words and part.reader == "word"
        frozen = not bool(weight[0].any())
        tables.append(TrainedTable(part.reader, RowwiseAdam(weight, rates), frozen=frozen, fixed=fixed))
    return AveragingTrainer(tables, composition.mode, config, teacher, way)


@pytest.mark.parametrize(
    ("model", "unknown", "settings"),
    [
        ("word", "drop", {}),
        ("trigram", "drop", {"decay": True}),
        ("word,trigram", "drop", {}),
        ("word+trigram", "train", {"decay": True}),
        ("word,trigram", "drop", {"freeze_words": True}),
        ("word", "train", {"one_sided": True}),
        ("word+trigram", "drop", {"negatives": "mix"}),
        ("word,trigram", "drop", {"teacher": "any"}),
        ("word", "drop", {"teacher": "any", "teacher_weight": 0.5, "weigh_similar": True}),
    ],
)
def test_equals_torch(tmp_path, model, unknown, settings):
    sides = random_text(PAIRS)
    # Few rows, so that unknown units are among them and rows rest between their steps.
    wide = {"dimension": 20, "words": 30, "trigrams": 60}
    config = TrainConfig(batch_size=8, mega_batch=3, learning_rate=0.01, epochs=2, **settings)
    losses, tables = {}, {}
    for way in (TORCH, COMPILED):
        encoder = encoder_of(sides, model=model, unknown=unknown, **wide)
        store = store_of(sides, encoder, tmp_path / way.steps)
        teacher = None
        if config.teacher:
            keys = np.unique(store.keys())
            taught = np.random.default_rng(5).standard_normal((len(keys), 9)).astype(np.float16)
            teacher = TeacherVectors(keys, taught)
        trainer = trainer_of(encoder, config, way, teacher)
        start = [table.optimizer.weight.clone() for table in trainer.tables]
        megas = [mega for epoch in range(2) for mega in store.mega_batches(24, seed=1, epoch=epoch)]
        random = np.random.default_rng(1)
        losses[way] = [loss for mega in megas for loss in trainer.train_on(mega, random)]
        for table, before in zip(trainer.tables, start, strict=True):
            table.optimizer.catch_up()
            assert table.fixed == torch.equal(table.optimizer.weight, before)
            assert bool(table.optimizer.weight[0].any()) == (unknown == "train")
        tables[way] = [table.optimizer for table in trainer.tables]
    assert len(losses[TORCH]) in (24, 26)
    np.testing.assert_allclose(losses[COMPILED], losses[TORCH], rtol=0, atol=2e-5)
    for ours, wanted in zip(tables[COMPILED], tables[TORCH], strict=True):
        assert ours.step == wanted.step == len(losses[TORCH])
        # Where a gradient is nearly zero, rounding decides its sign, and Adam makes a full step of it.
        difference = (ours.weight - wanted.weight).abs()
        assert difference.mean() < 2e-6 and difference.max() < 2e-3
        torch.testing.assert_close(ours.first, wanted.first, atol=1e-5, rtol=1e-3)


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


def test_catching_up_equals_torchs():
    adam = run_rowwise(decay=True)
    rows = torch.arange(60)
    wanted = run_rowwise(decay=True)
    wanted.catch_up()
    assert len(adam.drift) == STEPS + 1
    table = CompiledTable(TrainedTable("word", adam), 0)
    table.catch_up(rows.numpy())
    for name, value in adam.state().items():
        torch.testing.assert_close(value, wanted.state()[name], atol=1e-7, rtol=1e-5)


def corpus(pairs, dimension, copies=0, seed=1):
    """Vectors near each other in pairs, and keys; some references occur several times, with several translations."""
    random = np.random.default_rng(seed)
    left = random.standard_normal((pairs, dimension))
    keys = np.arange(2 * pairs, dtype=np.uint64)
    for copy in range(copies):
        left[copy], keys[copy] = left[pairs // 2], keys[pairs // 2]
    right = left + random.standard_normal((pairs, dimension))
    return torch.from_numpy(np.concatenate([left, right]).astype(np.float32)), keys


@pytest.mark.parametrize("one_sided", [False, True])
@pytest.mark.parametrize("pairs", [1, 2, 37, 620])
def test_mining_by_tiles(pairs, one_sided):
    vectors, keys = corpus(pairs, 24, copies=pairs // 10)
    vectors[0] = 0
    found = mine_tiles(vectors, keys, one_sided=one_sided)
    wanted = mine(vectors, keys, one_sided=one_sided)
    assert (found < 0).tolist() == (wanted < 0).tolist()
    # All sentences are equally far from one without a direction.
    unlike = np.arange(len(found))[found != wanted]
    assert unlike.tolist() in ([], [0])
    assert bool((wanted < 0).all()) == (pairs == 1)


def test_mining_with_int8(monkeypatch):
    vectors, keys = corpus(1500, 64, copies=20)
    wanted = mine(vectors, keys)
    found = mine_tiles(vectors, keys, precision="int8")
    assert (found == wanted).mean() > 0.995
    unit = torch.nn.functional.normalize(vectors, dim=1)
    cosines = [(unit * unit[torch.from_numpy(chosen)]).sum(dim=1) for chosen in (wanted, found)]
    assert 0 <= (cosines[0] - cosines[1]).max() < 0.01
    # More segments than places to keep their best: still the best of all, in float32 the very same.
    monkeypatch.setattr(tile_mining, "SLOTS", 4)
    assert (mine_tiles(vectors, keys, precision="int8") == wanted).mean() > 0.99
    np.testing.assert_array_equal(mine_tiles(vectors, keys), wanted)
    # What float32 has the last word on is more often right.
    monkeypatch.setattr(tile_mining, "rounding_errors", lambda *_: np.empty(0))
    alone = (mine_tiles(vectors, keys, precision="int8") == wanted).mean()
    assert 0.8 < alone < (found == wanted).mean()
    # Few sentences are compared in float32 anyway.
    few, keys = corpus(200, 64)
    np.testing.assert_array_equal(mine_tiles(few, keys, precision="int8"), mine(few, keys))


@settings(max_examples=25)
@given(st.integers(0, 2**32 - 1), st.floats(0, 3), st.sampled_from([50, 64, 300]))
def test_the_bound_of_the_error_of_int8_holds(seed, spikes, dimension):
    """Also where some vectors have a few large numbers, and so coarse whole ones, and others have not."""
    random = np.random.default_rng(seed)
    vectors = random.standard_normal((80, dimension)) * np.exp(spikes * random.standard_normal((80, dimension)))
    vectors[0], vectors[1] = 0, np.eye(dimension)[0]
    unit = torch.nn.functional.normalize(torch.from_numpy(vectors.astype(np.float32)), dim=1)
    numbers, scales = whole_numbers(unit)
    errors = rounding_errors(unit, numbers, scales)
    # No number is off by more than half of its factor.
    assert (errors <= scales / 2 * np.sqrt(dimension) * (1 + 1e-5)).all()
    products = (numbers.long() @ numbers.long().T).numpy() * np.outer(scales, scales).astype(np.float64)
    off = np.abs(products - (unit.double() @ unit.double().T).numpy())
    assert (off <= errors[:, None] + errors + np.outer(errors, errors) + 1e-6).all()


def test_no_sentence_is_much_worse_than_the_best_with_int8():
    """The best of each segment stands for it, so what is chosen is off by two errors at most."""
    random = np.random.default_rng(5)
    vectors, keys = corpus(1100, 64)
    # Every tenth vector has a few large numbers: its whole numbers are far coarser than those of the mean.
    vectors[::10] *= torch.from_numpy(np.exp(2 * random.standard_normal((220, 64))).astype(np.float32))
    unit = torch.nn.functional.normalize(vectors, dim=1)
    errors = rounding_errors(unit, *whole_numbers(unit))
    wanted, found = mine(vectors, keys), mine_tiles(vectors, keys, precision="int8")
    cosines = [(unit * unit[torch.from_numpy(chosen)]).sum(dim=1).numpy() for chosen in (wanted, found)]
    # Of the best one, and of the one that stood for its segment, which may be any.
    bounds = [errors + other + errors * other for other in (errors[wanted], errors.max())]
    assert (cosines[0] - cosines[1] <= bounds[0] + bounds[1] + 1e-5).all()
    assert (found == wanted).mean() > 0.98


def test_whole_numbers():
    numbers, scales = whole_numbers(torch.tensor([[0.5, -1.0, 0.25], [0, 0, 0]]))
    assert numbers.tolist() == [[64, -127, 32], [0, 0, 0]]
    np.testing.assert_allclose(scales, [1 / 127, 1])


def small_run(folder, sides, way=None, epochs=2, interrupted=None):
    """Train with a checkpoint after every mega-batch; stops after some of them."""
    encoder = encoder_of(sides, model="word,trigram", dimension=8)
    store = store_of(sides, encoder, folder / "pairs")
    config = TrainConfig(batch_size=10, mega_batch=2, epochs=epochs, learning_rate=0.01, checkpoint_seconds=0)
    trainer = trainer_of(encoder, config, way)
    if interrupted is not None:
        count, original = iter(range(interrupted)), trainer.train_on
        trainer.train_on = lambda *rest: original(*rest) if next(count, None) is not None else sys.exit()
    Loop(trainer, store, folder).run()
    return trainer


def weights(trainer):
    return [table.optimizer.weight.numpy().tobytes() for table in trainer.tables]


@pytest.mark.parametrize("way", [TORCH, COMPILED, Arithmetic("compiled", "int8")])
def test_a_run_goes_on_as_it_began(tmp_path, monkeypatch, way):
    """Whatever would be chosen now, a checkpoint goes on with what it was computed with, and ends with its bytes."""
    sides = random_text(PAIRS)
    whole = weights(small_run(tmp_path / "whole", sides, way))
    assert whole == weights(small_run(tmp_path / "again", sides, way))
    with pytest.raises(SystemExit):
        small_run(tmp_path / "killed", sides, way, interrupted=4)
    other = COMPILED if way == TORCH else TORCH
    resumed = small_run(tmp_path / "killed", sides, other)
    assert resumed.arithmetic == way
    assert weights(resumed) == whole
    checkpoint = read_checkpoint(tmp_path / "killed" / "checkpoint.safetensors")
    assert checkpoint[1]["history"]["arithmetic"] == way.as_dict()


def test_a_compiled_run_does_not_go_on_without_numba(tmp_path, monkeypatch):
    sides = random_text(PAIRS)
    with pytest.raises(SystemExit):
        small_run(tmp_path, sides, COMPILED, interrupted=2)
    monkeypatch.setattr(arithmetic, "compiler_works", lambda: False)
    with pytest.raises(InputError, match=r"begun with compiled loops.*pip install 'paranmt-hf\[fast\]'.*or delete"):
        small_run(tmp_path, sides)


def test_checkpoint_of_before(tmp_path, monkeypatch):
    """A checkpoint that names no arithmetic was computed with torch."""
    sides = random_text(PAIRS)
    whole = weights(small_run(tmp_path / "whole", sides, TORCH))
    original = loop.write_checkpoint

    def without(path, tensors, state):
        state = json.loads(json.dumps(state))
        del state["history"]["arithmetic"]
        original(path, tensors, state)

    with monkeypatch.context() as patch, pytest.raises(SystemExit):
        patch.setattr(loop, "write_checkpoint", without)
        small_run(tmp_path / "killed", sides, TORCH, interrupted=4)
    resumed = small_run(tmp_path / "killed", sides, COMPILED)
    assert resumed.arithmetic == TORCH and weights(resumed) == whole


def test_what_is_chosen(monkeypatch, caplog):
    monkeypatch.setattr(arithmetic, "int8_is_faster", lambda: True)
    assert choose(TrainConfig()) == Arithmetic("compiled", "int8")
    assert choose(TrainConfig(mining_precision="float32")) == Arithmetic("compiled", "float32")
    with caplog.at_level("INFO"):
        for settings in ({"optimizer": "adagrad"}, {"clip": 1.0}, {"lambda_w": 0.1}):
            assert choose(TrainConfig(**settings)) == Arithmetic("torch", "int8")
    assert "steps are computed with torch, because of --clip" in caplog.text
    monkeypatch.setattr(arithmetic, "int8_is_faster", lambda: False)
    assert choose(TrainConfig()) == COMPILED
    assert choose(TrainConfig(mining_precision="int8")) == Arithmetic("compiled", "int8")
    monkeypatch.setattr(arithmetic, "compiler_works", lambda: False)
    assert choose(TrainConfig()) == TORCH


def test_without_numba(monkeypatch):
    monkeypatch.setitem(sys.modules, "numba", None)
    arithmetic.compiler_works.cache_clear()
    try:
        assert choose(TrainConfig()) == TORCH
        with pytest.raises(InputError, match=r"--mining-precision int8.*pip install 'paranmt-hf\[fast\]'"):
            choose(TrainConfig(mining_precision="int8"))
    finally:
        monkeypatch.undo()
        arithmetic.compiler_works.cache_clear()


def test_numba_that_has_no_place_for_what_it_compiles(monkeypatch, caplog):
    def refuse(*arguments):
        raise OSError("read-only")

    monkeypatch.setattr("numba.core.caching._CacheLocator.ensure_cache_path", refuse)
    monkeypatch.delitem(sys.modules, "paranmt_hf.training.tile_kernels")
    monkeypatch.delattr("paranmt_hf.training.tile_kernels")
    arithmetic.compiler_works.cache_clear()
    try:
        assert choose(TrainConfig()) == TORCH
        assert "numba cannot be used (cannot cache function" in caplog.text and "NUMBA_CACHE_DIR" in caplog.text
    finally:
        monkeypatch.undo()
        arithmetic.compiler_works.cache_clear()


def test_what_is_not_mined_is_not_measured(monkeypatch):
    monkeypatch.setattr(arithmetic, "int8_is_faster", lambda: True)
    assert choose(TrainConfig(negatives="rand")) == COMPILED
    assert choose(TrainConfig(teacher="t")) == COMPILED
    assert choose(TrainConfig(teacher="t", teacher_weight=0.5)) == Arithmetic("compiled", "int8")


def test_int8_without_numba_is_refused_before_the_data_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr("paranmt_hf.util.optional.available", lambda package: False)
    with pytest.raises(InputError, match=r"needs the package 'numba'.*pip install 'paranmt-hf\[fast\]'"):
        train("no such data", tmp_path / "out", config=TrainConfig(mining_precision="int8"))


def test_the_processor_is_measured_on_one_thread(monkeypatch):
    """On several threads the figures of one machine were 1.2 in one run and 42 in another."""
    original, seen = torch._int_mm, set()

    def product(left, right):
        seen.add(torch.get_num_threads())
        return original(left, right)

    monkeypatch.setattr(torch, "_int_mm", product)
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        arithmetic.int8_is_faster.__wrapped__()
        assert seen == {1} and torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(threads)


def test_products_that_are_wrong_are_not_used(monkeypatch):
    """A processor's int8 is believed only where its products are right."""
    monkeypatch.setattr(torch, "_int_mm", lambda left, right: left.int() @ right.int() + 1)
    assert not arithmetic.int8_is_faster.__wrapped__()
    monkeypatch.delattr(torch, "_int_mm")
    assert not arithmetic.int8_is_faster.__wrapped__()
