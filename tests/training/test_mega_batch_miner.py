"""The margin loss and mega-batches in a trainer of one's own."""

import datasets
import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformerTrainer, SentenceTransformerTrainingArguments

from paranmt_hf import MarginLoss, MegaBatchMiner
from paranmt_hf.training.losses import margin_loss
from tests.refused import refused
from tests.training.toys import encoder_of, synonyms


def pairs_of(sides):
    return datasets.Dataset.from_dict(
        {"reference": sides[0], "translation": sides[1], "other": list(range(len(sides[0])))}
    )


def trained(model, miner, folder, epochs=3):
    args = SentenceTransformerTrainingArguments(
        output_dir=str(folder),
        num_train_epochs=epochs,
        per_device_train_batch_size=10,
        learning_rate=0.01,
        batch_sampler=miner.sampler,
        save_strategy="no",
        report_to="none",
        use_cpu=True,
        disable_tqdm=True,
    )
    trainer = SentenceTransformerTrainer(model, args, train_dataset=miner.dataset, loss=MarginLoss(model))
    return trainer.train()


def nearest(model, sides):
    left, right = (model.encode(list(side), normalize_embeddings=True, show_progress_bar=False) for side in sides)
    return float(((left @ right.T).argmax(axis=1) == np.arange(len(left))).mean())


@pytest.mark.slow
def test_a_model_learns(tmp_path):
    sides = synonyms(200)
    model = encoder_of(sides, model="word", dimension=16)
    before = nearest(model, sides)
    result = trained(model, MegaBatchMiner(model, pairs_of(sides), mega_batch=4), tmp_path)
    assert result.global_step == 60
    assert before < 0.2 and nearest(model, sides) > 0.6


def test_negatives_are_those_of_the_mega_batch(tmp_path):
    """Each pair's negatives are the most similar allowed sentences of its mega-batch, found by brute force."""
    sides = synonyms(50)
    model = encoder_of(sides, model="word", dimension=16)
    miner = MegaBatchMiner(model, pairs_of(sides), mega_batch=2)
    batches = []
    for batch in miner.sampler(miner.dataset, 10, False):
        batches.append((batch, miner.dataset[batch]))
    assert sorted(row for batch, _ in batches for row in batch) == list(range(50))
    assert [len(batch) for batch, _ in batches] == [10] * 5
    for start in (0, 2, 4):
        rows = [row for batch, _ in batches[start : start + 2] for row in batch]
        texts = [sides[0][row] for row in rows] + [sides[1][row] for row in rows]
        vectors = model.encode(texts, normalize_embeddings=True, show_progress_bar=False)
        similarities = vectors @ vectors.T
        count = len(rows)
        for index in range(2 * count):
            similarities[index, [index, (index + count) % (2 * count)]] = -2
        expected = [texts[index] for index in similarities.argmax(axis=1)]
        found = [columns for _, columns in batches[start : start + 2]]
        assert [text for columns in found for text in columns["reference_negative"]] == expected[:count]
        assert [text for columns in found for text in columns["translation_negative"]] == expected[count:]


def test_an_evaluation_between_steps_leaves_the_negatives(tmp_path):
    sides = synonyms(60)
    model = encoder_of(sides, model="word", dimension=8)
    miner = MegaBatchMiner(model, pairs_of(sides), mega_batch=3)
    batches = iter(miner.sampler(miner.dataset, 10, False))
    for _ in range(6):
        columns = miner.dataset[next(batches)]
        assert all(columns["reference_negative"]) and all(columns["translation_negative"])
        for batch in miner.sampler(miner.dataset, 4, False):
            assert all(miner.dataset[batch]["reference_negative"])


@pytest.mark.slow
def test_workers_are_refused():
    """They would read rows without negatives. A worker that fails is waited for, 5 seconds."""
    sides = synonyms(20)
    model = encoder_of(sides, model="word", dimension=4)
    miner = MegaBatchMiner(model, pairs_of(sides))
    batches = miner.sampler(miner.dataset, 4, False)
    loader = torch.utils.data.DataLoader(miner.dataset, batch_sampler=batches, num_workers=1)
    with refused():
        next(iter(loader))


def test_other_datasets_are_refused():
    sides = synonyms(20)
    model = encoder_of(sides, model="word", dimension=4)
    miner = MegaBatchMiner(model, pairs_of(sides))
    for other in (pairs_of(sides), miner.dataset.select(range(5)), miner.dataset.shuffle(1)):
        with refused():
            miner.sampler(other, 4, False)
    shuffled = MegaBatchMiner(model, pairs_of(sides).shuffle(1))
    assert len(list(shuffled.sampler(shuffled.dataset, 4, False))) == 5


def test_one_sided_and_random(tmp_path):
    sides = synonyms(40)
    model = encoder_of(sides, model="word", dimension=8)
    miner = MegaBatchMiner(model, pairs_of(sides), mega_batch=2, one_sided=True, negatives="rand")
    batch = next(iter(miner.sampler(miner.dataset, 10, False)))
    columns = miner.dataset[batch]
    assert list(columns) == ["reference", "translation", "reference_negative"]
    assert set(columns["reference_negative"]) <= set(sides[0])


def test_pairs_without_a_negative_are_left_out():
    sides = (["a", "a"], ["c", "a"])
    miner = MegaBatchMiner(encoder_of(sides, model="word", dimension=4), pairs_of(sides))
    assert list(miner.sampler(miner.dataset, 2, False)) == []


def test_the_loss_is_that_of_the_vectors():
    sides = synonyms(8)
    model = encoder_of(sides, model="word", dimension=8)
    columns = [list(side[:4]) for side in (*sides, sides[0][4:] and sides[0][::-1], sides[1][::-1])]
    features = [model.tokenize(column) for column in columns]
    vectors = [model(dict(part))["sentence_embedding"] for part in features]
    for count in (3, 4):
        found = MarginLoss(model, 0.7)([dict(part) for part in features[:count]])
        torch.testing.assert_close(found, margin_loss(*vectors[:count], margin=0.7))
    with refused():
        MarginLoss(model)([dict(part) for part in features[:2]])


def test_bad_settings():
    sides = synonyms(8)
    model = encoder_of(sides, model="word", dimension=8)
    with refused():
        MegaBatchMiner(model, datasets.Dataset.from_dict({"reference": ["a"]}))
    with refused("mega_batch"):
        MegaBatchMiner(model, pairs_of(sides), mega_batch=0)
    with refused("margin"):
        MarginLoss(model, 0)


def test_pairs_without_a_text_are_refused_with_their_index():
    sides = synonyms(20)
    model = encoder_of(sides, model="word", dimension=4)
    pairs = datasets.Dataset.from_dict({"reference": sides[0], "translation": [*sides[1][:7], None, *sides[1][8:]]})
    with refused("pairs"):
        MegaBatchMiner(model, pairs)
    MegaBatchMiner(model, pairs.select([0, 1, 2]))
