"""The listwise loss of a teacher in a trainer of one's own."""

import datasets
import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformerTrainer, SentenceTransformerTrainingArguments

from paranmt_hf import InputError, ListwiseLoss, TrainConfig
from paranmt_hf.encoders.composition import take_apart
from paranmt_hf.training.cpu_engine import cpu_engine
from paranmt_hf.training.teacher_vectors import TeacherVectors
from tests.refused import refused
from tests.training.toys import encoder_of, store_of, synonyms

TEMPERATURE = 0.3


def batch_of(model, columns, taught):
    """Features of columns of sentences, and labels [row, column, dimension]."""
    features = [model.preprocess(list(column)) for column in columns]
    return features, torch.from_numpy(taught.reshape(len(columns), -1, taught.shape[1])).transpose(0, 1)


def test_it_is_the_loss_of_the_engine_and_its_gradient(tmp_path, monkeypatch):
    sides = synonyms(20)
    model = encoder_of(sides, model="word", dimension=8)
    config = TrainConfig(
        teacher="any",
        teacher_loss="listwise",
        temperature=TEMPERATURE,
        batch_size=20,
        mega_batch=1,
        learning_rate=0.01,
    )
    store = store_of(sides, model, tmp_path)
    mega = next(store.mega_batches(20, seed=1, epoch=0))
    taught = np.random.default_rng(1).standard_normal((40, 5)).astype(np.float16)
    # The sentences of the mega-batch, by the order of their keys.
    known = TeacherVectors(mega.keys, taught)
    texts = np.array([*sides[0], *sides[1]])
    own = dict(zip(store.keys().reshape(-1, 2).T.ravel().tolist(), texts.tolist(), strict=True))
    columns = np.array([own[key] for key in mega.keys.tolist()]).reshape(2, -1)
    loss = ListwiseLoss(model, TEMPERATURE)
    features, labels = batch_of(model, columns, known.of(mega.keys).numpy())
    value = loss(features, labels)
    value.backward()
    weight = next(parameter for parameter in model.parameters() if parameter.requires_grad)
    gradient = (weight.grad.to_dense() if weight.grad.is_sparse else weight.grad).numpy()
    engine = cpu_engine(take_apart(model), config, store.pairs, known)
    (table,) = engine.tables
    slopes, recorded = table.slopes, []
    monkeypatch.setattr(table, "slopes", lambda *given: recorded.append(given[0].copy()) or slopes(*given))
    (found,) = engine.train_on(mega, np.random.default_rng(1))
    assert found == pytest.approx(float(value.detach()), rel=1e-5)
    # The engine's gradient is of the vectors, of which each row of a sentence has its share.
    bags, wanted = mega.bags[table.reader], np.zeros_like(gradient)
    lengths = np.diff(bags.offsets)
    np.add.at(wanted, bags.rows, np.repeat(recorded[0] / lengths[:, None], lengths, axis=0))
    assert np.abs(wanted).max() > 1e-3
    np.testing.assert_allclose(gradient, wanted, atol=1e-6)


def trained(model, loss, dataset, folder, epochs):
    args = SentenceTransformerTrainingArguments(
        output_dir=str(folder),
        num_train_epochs=epochs,
        per_device_train_batch_size=20,
        learning_rate=0.02,
        save_strategy="no",
        report_to="none",
        use_cpu=True,
        disable_tqdm=True,
    )
    SentenceTransformerTrainer(model, args, train_dataset=dataset, loss=loss).train()


@pytest.mark.slow
@pytest.mark.parametrize("sides", [1, 2])
def test_a_model_learns_the_neighbours_of_a_teacher(sides, tmp_path):
    pairs = synonyms(60)
    columns = {name: list(side) for name, side in zip(("reference", "translation")[:sides], pairs, strict=False)}
    model = encoder_of(pairs, model="word", dimension=16)
    taught = np.random.default_rng(2).standard_normal((60, sides, 6)).astype(np.float32)
    label = taught[:, 0].tolist() if sides == 1 else taught.tolist()
    dataset = datasets.Dataset.from_dict({**columns, "label": label})
    texts = [text for column in columns.values() for text in column]
    wanted = taught.transpose(1, 0, 2).reshape(-1, 6)
    wanted = wanted / np.linalg.norm(wanted, axis=1, keepdims=True)

    def agreement():
        vectors = model.encode(texts, normalize_embeddings=True, show_progress_bar=False)
        return np.corrcoef((vectors @ vectors.T).ravel(), (wanted @ wanted.T).ravel())[0, 1]

    before = agreement()
    trained(model, ListwiseLoss(model, TEMPERATURE), dataset, tmp_path, epochs=30)
    assert agreement() > before + 0.2


@pytest.mark.parametrize("shape", [None, (20,), (20, 3, 5), (19, 2, 5), (20, 5)])
def test_labels_of_another_shape_are_rejected(shape):
    sides = synonyms(20)
    model = encoder_of(sides, model="word", dimension=4)
    features = [model.preprocess(list(side)) for side in sides]
    with pytest.raises(InputError):
        ListwiseLoss(model)(features, None if shape is None else torch.zeros(shape))


def test_the_temperature_is_checked():
    model = encoder_of(synonyms(20), model="word", dimension=4)
    assert ListwiseLoss(model).get_config_dict() == {"temperature": TrainConfig().temperature}
    with refused("temperature"):
        ListwiseLoss(model, 0)
