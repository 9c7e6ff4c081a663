"""Learning from a teacher's similarities."""

import logging
import math
import threading
import time

import numpy as np
import pyarrow as pa
import pytest
import torch

from paranmt_hf import TrainConfig
from paranmt_hf.encoders.composition import take_apart
from paranmt_hf.text.identity import distinct_texts
from paranmt_hf.training.cpu_engine import cpu_engine
from paranmt_hf.training.losses import combined_loss, listwise_loss, similarity_loss
from paranmt_hf.training.teacher_vectors import JoinedTeachers, TeacherVectors, teach
from tests.refused import refused
from tests.training.toys import encoder_of, keyed, random_text, store_of


def test_similarity_loss_worked_out_by_hand():
    student = torch.tensor([[1.0, 0.0], [2.0, 0.0], [0.0, 3.0]])
    wanted = torch.tensor([[1.0, 1.0], [1.0, 0.0], [0.0, 5.0]])
    # Cosines: student 1, 0, 0; teacher 0.7071, 0.7071, 0. Each pair counts twice, of six.
    half = math.sqrt(0.5)
    expected = ((1 - half) ** 2 + half**2 + 0) / 3
    assert float(similarity_loss(student, wanted)) == pytest.approx(expected, abs=1e-6)
    assert float(similarity_loss(wanted, wanted)) == pytest.approx(0, abs=1e-6)
    assert float(similarity_loss(student[:1], wanted[:1])) == 0


def test_weighted_similarity_loss_worked_out_by_hand():
    student = torch.tensor([[1.0, 0.0], [2.0, 0.0], [0.0, 3.0]])
    wanted = torch.tensor([[4.0, 3.0], [1.0, 0.0], [-1.0, 0.0]])
    # Cosines: student 1, 0, 0; teacher 0.8, -0.8, -1. Weights 0.85, 0.05, 0.05.
    expected = (0.85 * 0.2**2 + 0.05 * 0.8**2 + 0.05 * 1) / 3
    assert float(similarity_loss(student, wanted, weighted=True)) == pytest.approx(expected, abs=1e-6)
    vectors = torch.randn(5, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1)).requires_grad_()
    taught = torch.randn(5, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    assert torch.autograd.gradcheck(lambda rows: similarity_loss(rows, taught, weighted=True), vectors)


def test_listwise_loss_worked_out_by_hand():
    student = torch.tensor([[1.0, 0.0], [2.0, 0.0], [0.0, 3.0]])
    wanted = torch.tensor([[4.0, 3.0], [1.0, 0.0], [-1.0, 0.0]])
    # Cosines with the other two: student (1, 0), (1, 0), (0, 0); teacher (0.8, -0.8), (0.8, -1), (-0.8, -1).

    def entropy(own, taught, temperature):
        own, taught = ([math.exp(value / temperature) for value in values] for values in (own, taught))
        return -sum(t / sum(taught) * math.log(o / sum(own)) for o, t in zip(own, taught, strict=True))

    for temperature in (1.0, 0.2):
        parts = [((1, 0), (0.8, -0.8)), ((1, 0), (0.8, -1)), ((0, 0), (-0.8, -1))]
        expected = temperature * sum(entropy(*part, temperature) for part in parts) / 3
        assert float(listwise_loss(student, wanted, temperature)) == pytest.approx(expected, abs=1e-6)
    vectors = torch.randn(5, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1)).requires_grad_()
    taught = torch.randn(5, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    assert torch.autograd.gradcheck(lambda rows: listwise_loss(rows, taught, 0.1), vectors)


def test_copies_are_no_others_in_a_list():
    generator = torch.Generator().manual_seed(1)
    vectors, taught = torch.randn(4, 3, generator=generator), torch.randn(4, 5, generator=generator)
    alone = listwise_loss(vectors, taught, 0.1)
    # A copy of the first sentence: it takes no part in the list of that one, and has the same list itself.
    with_copy = listwise_loss(torch.cat([vectors, vectors[:1]]), torch.cat([taught, taught[:1]]), 0.1)
    assert torch.isfinite(with_copy)
    assert with_copy != alone
    rows = torch.randn(3, 3, generator=generator).requires_grad_()
    listwise_loss(rows, taught[:1].expand(3, 5), 0.1).backward()
    assert rows.grad is not None and not rows.grad.any()


def test_distinct_texts_are_those_of_a_dictionary():
    generator = np.random.default_rng(1)
    columns = [[f"text {number} {part}" for number in range(40)] for part in range(3)]
    keys = [generator.integers(0, 60, 40).astype(np.uint64) for _ in columns]
    known = {}
    for own, column in zip(keys, columns, strict=True):
        for key, text in zip(own.tolist(), column, strict=True):
            known.setdefault(key, text)
    arrays = [
        pa.array(["x", *columns[0]])[1:],
        pa.chunked_array([columns[1][:7], columns[1][7:]]),
        pa.array(columns[2]),
    ]
    found, texts = distinct_texts(zip(keys, arrays, strict=True))
    assert (found.tolist(), texts.to_pylist()) == (list(known), list(known.values()))
    assert [len(each) for each in distinct_texts([])] == [0, 0]


def test_two_teachers_are_the_mean_of_their_standardised_cosines():
    generator = np.random.default_rng(1)
    keys = np.arange(500, dtype=np.uint64)
    # The second one gives cosines that differ less.
    first = generator.standard_normal((500, 8)).astype(np.float16)
    second = (generator.standard_normal((500, 6)) + 2).astype(np.float16)
    teachers = [TeacherVectors(keys, first), TeacherVectors(keys, second)]
    joined = JoinedTeachers(teachers, keys)
    vectors = joined.of(keys[:40]).double()
    assert vectors.shape == (40, 14) and joined.dimension == 14
    torch.testing.assert_close(vectors.norm(dim=1), torch.ones(40).double(), atol=1e-5, rtol=0)
    cosines, spreads = [], []
    for table in (first, second):
        unit = table.astype(np.float64) / np.linalg.norm(table.astype(np.float64), axis=1, keepdims=True)
        everything = unit @ unit.T
        cosines.append(everything[:40, :40])
        spreads.append(everything.std())
    wanted = (cosines[0] / spreads[0] + cosines[1] / spreads[1]) / (1 / spreads[0] + 1 / spreads[1])
    # The spread is that of 20,000 pairs, with themselves now and then.
    np.testing.assert_allclose((vectors @ vectors.T).numpy(), wanted, atol=0.01)
    sums = joined.directions(keys[:6].reshape(3, 2))
    torch.testing.assert_close(torch.from_numpy(sums).double(), vectors[0:6:2] + vectors[1:6:2], atol=1e-3, rtol=0)


@pytest.mark.parametrize("count", [1, 2])
def test_rescaled_cosines_are_0_for_random_sentences_and_1_for_copies(count):
    generator = np.random.default_rng(1)
    keys = np.arange(2000, dtype=np.uint64)
    # All cosines are high, as those of multilingual-e5-small.
    tables = [(generator.standard_normal((2000, 8)) * 0.2 + 1).astype(np.float16) for _ in range(count)]
    joined = JoinedTeachers([TeacherVectors(keys, table) for table in tables], keys)
    vectors = joined.of(keys).double()
    cosines = vectors @ vectors.T
    assert cosines.mean() > 0.9 and joined.scale > 10
    rescaled = 1 - joined.scale * (1 - cosines)
    assert abs(float(rescaled.mean())) < 0.02
    torch.testing.assert_close(rescaled.diagonal(), torch.ones(2000).double(), atol=1e-4, rtol=0)
    if count == 1:
        mean = float(cosines.mean())
        torch.testing.assert_close(rescaled, (cosines - mean) / (1 - mean), atol=0.05, rtol=0)


@pytest.mark.parametrize(
    "settings", [{}, {"teacher_loss": "weighted"}, {"teacher_loss": "listwise", "teacher_weight": 1.0}]
)
def test_losses_learn_the_rescaled_cosines(settings):
    """A student whose cosines are the rescaled ones has no squared difference, and less of any loss than others."""
    generator = np.random.default_rng(2)
    keys = np.arange(40, dtype=np.uint64)
    table = np.hstack([generator.standard_normal((40, 6)), np.full((40, 1), 6.0)]).astype(np.float16)
    joined = JoinedTeachers([TeacherVectors(keys, table)], keys)
    config = TrainConfig(teacher="any", temperature=0.2, **settings)
    cosines = joined.of(keys).double() @ joined.of(keys).double().T
    values, vectors = torch.linalg.eigh(1 - joined.scale * (1 - cosines))
    student = (vectors * values.clamp(min=0).sqrt()).float()
    rows = np.arange(40).reshape(2, 20)
    learned = combined_loss(student, keys, rows, config, joined)
    other = combined_loss(joined.of(keys), keys, rows, config, joined)
    assert learned < other
    if not settings.get("teacher_loss"):
        assert learned < other / 3


def test_directions_of_a_pair_are_added_up():
    taught = TeacherVectors(np.arange(3, dtype=np.uint64), np.array([[3, 4], [0, 2], [5, 0]], np.float16))
    # More items than are added up at a time.
    sums = taught.directions(np.tile(np.array([[0, 1], [1, 1], [2, 0]], np.uint64), (4000, 1)))
    np.testing.assert_allclose(sums, np.tile([[0.6, 1.8], [0, 2], [1.6, 0.8]], (4000, 1)), atol=1e-3)
    assert sums.dtype == np.float16
    with refused():
        taught.directions(np.array([[0, 7]], np.uint64))


def test_vectors_are_found_by_key():
    generator = np.random.default_rng(1)
    keys = generator.integers(0, 2**64, 100, np.uint64)
    vectors = generator.standard_normal((100, 4)).astype(np.float16)
    taught = TeacherVectors(keys, vectors)
    some = generator.integers(0, 100, 300)
    np.testing.assert_array_equal(taught.of(keys[some]).numpy(), vectors[some].astype(np.float32))
    for stranger in (0, 2**64 - 1, int(keys[0]) ^ 1):
        with refused():
            taught.of(np.array([keys[0], stranger], np.uint64))


class Spelling:
    """A teacher: counts letters, and remembers what it was asked."""

    def __init__(self, fail_after=None):
        self.asked, self.fail_after = [], fail_after

    def __call__(self, sentences):
        if self.fail_after is not None and len(self.asked) >= self.fail_after:
            raise KeyboardInterrupt
        self.asked.append(sentences)
        return np.array([[sentence.count(letter) for letter in "w1234 "] for sentence in sentences], np.float32)


def keys_of(sentences):
    return keyed(sentences)[0]


def test_teach_encodes_each_sentence_once_and_goes_on_after_an_interruption(tmp_path):
    sides = random_text(40)
    distinct = set(sides[0]) | set(sides[1])
    columns = [keyed(side) for side in sides]
    whole = Spelling()
    taught = teach(columns, whole, tmp_path / "whole", part=10)
    asked = sum(whole.asked, [])
    assert sorted(asked) == sorted(distinct)
    assert [len(part) for part in whole.asked[:-1]] == [10] * (len(whole.asked) - 1)
    assert [len(sentence) for sentence in asked] == sorted(len(sentence) for sentence in asked)
    for sentence in (sides[1][0], sides[0][3]):
        np.testing.assert_array_equal(taught.of(keys_of([sentence]))[0].numpy(), Spelling()([sentence])[0])

    first, second = Spelling(fail_after=2), Spelling()
    with pytest.raises(KeyboardInterrupt):
        teach(columns, first, tmp_path / "killed", part=10)
    (tmp_path / "killed" / ".part-00002.safetensors.tmp").write_bytes(b"cut off by a kill")
    again = teach(columns, second, tmp_path / "killed", part=10)
    assert first.asked + second.asked == whole.asked
    keys = keys_of(sides[0] + sides[1])
    torch.testing.assert_close(again.of(keys), taught.of(keys), atol=0, rtol=0)


def test_vectors_are_kept_for_another_corpus(tmp_path):
    first, second = Spelling(), Spelling()
    teach([keyed(["a b", "c"])], first, tmp_path, name="spelling")
    taught = teach([keyed(["c", "w1 d", "a b"])], second, tmp_path, name="spelling")
    assert second.asked == [["w1 d"]]
    np.testing.assert_array_equal(taught.of(keys_of(["w1 d", "c"])).numpy(), Spelling()(["w1 d", "c"]))


def test_what_the_teacher_reads_decides_and_not_what_the_folder_holds(tmp_path):
    """Sentences with the same tokens have one key; of those of a corpus the first is read."""
    first, second = Spelling(), Spelling()
    teach([keyed(["W1 b", "c"])], first, tmp_path)
    taught = teach([keyed(["w1 b", "W1 B"])], second, tmp_path)
    assert second.asked == [["w1 b"]]
    np.testing.assert_array_equal(taught.of(keys_of(["W1 b"]))[0].numpy(), Spelling()(["w1 b"])[0])


def test_sentences_with_one_translation_share_its_vector(tmp_path):
    read = []

    def encode(texts):
        read.extend(texts)
        return np.array([[len(text), 1] for text in texts], np.float32)

    texts = ["one", "same text", "same text", "four", "same text"]
    for _ in range(2):
        vectors = teach([(np.arange(1, 6, dtype=np.uint64), pa.array(texts))], encode, tmp_path)
        found = vectors.of(np.array([5, 1, 2, 3, 4], np.uint64)).numpy()
        np.testing.assert_array_equal(found, [[9, 1], [3, 1], [9, 1], [9, 1], [4, 1]])
    assert sorted(read) == sorted(set(texts))


def test_two_processes_encode_each_sentence_once(tmp_path, caplog):
    """The second one starts when the first one is encoding."""
    second, results = Spelling(), []
    caplog.set_level(logging.INFO)
    other = threading.Thread(target=lambda: results.append(teach([keyed(["c", "d w1"])], second, tmp_path)))

    class First(Spelling):
        def __call__(self, sentences):
            other.start()
            end = time.monotonic() + 10
            while "waiting" not in caplog.text:
                assert time.monotonic() < end, "the second one does not say that it waits"
                time.sleep(0.01)
            return super().__call__(sentences)

    first = First()
    taught = teach([keyed(["a b", "c"])], first, tmp_path)
    other.join(10)
    assert first.asked == [["c", "a b"]] and second.asked == [["d w1"]]
    assert sorted(path.name for path in tmp_path.glob("part-*")) == [
        "part-00000.safetensors",
        "part-00001.safetensors",
    ]
    for found, sentences in ((taught, ["a b", "c"]), (results[0], ["c", "d w1"])):
        np.testing.assert_array_equal(found.of(keys_of(sentences)).numpy(), Spelling()(sentences))


def test_a_removed_file_of_vectors_costs_only_its_own(tmp_path):
    sentences = ["a", "b b", "c c c"]
    teach([keyed(sentences)], Spelling(), tmp_path, part=1)
    (tmp_path / "part-00000.safetensors").unlink()
    again, last = Spelling(), Spelling()
    teach([keyed(sentences)], again, tmp_path)
    teach([keyed(sentences)], last, tmp_path)
    assert again.asked == [["a"]] and last.asked == []


def test_damaged_part_is_named(tmp_path):
    columns = [keyed(["a b", "c"])]
    teach(columns, Spelling(), tmp_path)
    (part,) = tmp_path.glob("part-*")
    part.write_bytes(part.read_bytes()[:20])
    with refused():
        teach(columns, Spelling(), tmp_path)


@pytest.mark.parametrize("weight", [pytest.param(1.0, marks=pytest.mark.slow), 0.5])
def test_training_with_a_teacher_lowers_its_term(tmp_path, weight):
    sides = random_text(60, words=20)
    encoder = encoder_of(sides, model="word", dimension=16)
    store = store_of(sides, encoder, tmp_path / "pairs")
    taught = teach([keyed(side) for side in sides], Spelling(), tmp_path / "teacher")
    config = TrainConfig(teacher="spelling", teacher_weight=weight, batch_size=20, epochs=30, learning_rate=0.01)
    engine = cpu_engine(take_apart(encoder), config, 60, taught)

    def term():
        mega = next(store.mega_batches(60, seed=1, epoch=0))
        return float(similarity_loss(torch.from_numpy(engine.encode(mega)), taught.of(mega.keys)))

    before = term()
    for epoch in range(30):
        for mega in store.mega_batches(60, seed=1, epoch=epoch):
            losses = engine.train_on(mega, np.random.default_rng(1))
            assert len(losses) == 3
    assert before > 0.3
    assert term() < (0.1 if weight == 1 else 0.8) * before


@pytest.mark.parametrize(
    "settings",
    [{}, {"teacher_loss": "weighted"}, {"teacher_loss": "listwise", "temperature": 0.3, "teacher_weight": 1.0}],
)
def test_settings_name_the_loss(settings):
    vectors = torch.randn(4, 3, generator=torch.Generator().manual_seed(1))
    keys = np.arange(4, dtype=np.uint64)
    taught = TeacherVectors(keys, np.random.default_rng(1).standard_normal((4, 5)).astype(np.float16))
    found = combined_loss(vectors, keys, np.array([[0, 1], [2, 3]]), TrainConfig(teacher="any", **settings), taught)
    if "temperature" in settings:
        assert found == listwise_loss(vectors, taught.of(keys), 0.3)
    else:
        assert found == similarity_loss(vectors, taught.of(keys), weighted=bool(settings))
    zero = torch.zeros(3, 2, requires_grad=True)
    similarity_loss(zero, torch.eye(3)).backward()
    assert torch.isfinite(zero.grad).all()


@pytest.mark.parametrize("name", ["neighbours", "teacher_prompt"])
def test_settings_about_a_teacher_need_one(name):
    with refused(name):
        TrainConfig(**{name: "x" if name == "teacher_prompt" else True})
