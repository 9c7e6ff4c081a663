"""Encoders that the trainer of sentence-transformers trains further: what is saved is what was trained."""

import numpy as np
import pytest
from datasets import Dataset
from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer, SentenceTransformerTrainingArguments
from sentence_transformers.base.evaluation import BaseEvaluator
from sentence_transformers.sentence_transformer.losses import CosineSimilarityLoss

from paranmt_hf import StaticEncoder, load
from paranmt_hf.encoders.modules.paranmt_averages import AverageEmbedding
from paranmt_hf.encoders.saving import save
from tests.encoders.toys import SENTENCES, encoder

PAIRS = {
    "sentence1": ["the cat sat .", "it is 3.5", "the café is it", "cat"] * 4,
    "sentence2": ["cat sat", "is it 3.5 .", "the cat", "café"] * 4,
    "label": [1.0, 0.9, 0.2, 0.0] * 4,
}


class Scores(BaseEvaluator):
    """Gives scores that are decided beforehand, and keeps the vectors that each was given for."""

    def __init__(self, scores):
        super().__init__()
        self.scores, self.seen, self.primary_metric = iter(scores), [], "score"

    def __call__(self, model, output_path=None, epoch=-1, steps=-1):
        self.seen.append(model.encode(SENTENCES))
        return {"score": next(self.scores)}


def trained(model, folder, scores=(), resume=None, **options):
    """Train for six steps, with an evaluation and a checkpoint after every second one if there are scores."""
    evaluator = Scores(scores) if scores else None
    if scores:
        options |= {"eval_strategy": "steps", "save_strategy": "steps", "eval_steps": 2, "save_steps": 2}
        options |= {"load_best_model_at_end": True, "metric_for_best_model": "eval_score", "greater_is_better": True}
    options = {"save_strategy": "no", "learning_rate": 1e-3, "max_steps": 6} | options
    arguments = SentenceTransformerTrainingArguments(
        str(folder), per_device_train_batch_size=4, use_cpu=True, report_to="none", disable_tqdm=True, **options
    )
    trainer = SentenceTransformerTrainer(
        model=model,
        args=arguments,
        train_dataset=Dataset.from_dict(PAIRS),
        loss=CosineSimilarityLoss(model),
        evaluator=evaluator,
    )
    trainer.train(resume_from_checkpoint=resume)
    return trainer, evaluator


@pytest.mark.slow
@pytest.mark.parametrize("name", ["word-int4", "word-float16", "trigram-int8", "trigram,word-int8", "projection-int8"])
def test_what_is_saved_is_what_was_trained(name, tmp_path):
    model = encoder(name)
    before = model.encode(SENTENCES)
    # The default rate of the trainer, whose steps are smaller than those of 4 bits.
    trained(model, tmp_path / "trainer", learning_rate=5e-5)
    after = model.encode(SENTENCES)
    assert np.abs(after - before).max() > 1e-5
    model.save_pretrained(str(tmp_path / "stock"))
    save(model, tmp_path / "own")
    for folder in (tmp_path / "stock", tmp_path / "own"):
        np.testing.assert_allclose(load(folder).encode(SENTENCES), after, atol=1e-6)
        theirs = SentenceTransformer(str(folder), device="cpu", trust_remote_code=True)
        # The stock loop adds the rows of a long sentence in another order.
        np.testing.assert_allclose(theirs.encode(SENTENCES), after, atol=3e-6)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["word-int4", "trigram", "trigram,word-int8", "word,lstm", "blstm-average-max"])
def test_the_best_checkpoint_is_the_best(name, tmp_path):
    model = encoder(name)
    trainer, evaluator = trained(model, tmp_path, scores=[0.1, 0.9, 0.5])
    assert trainer.state.best_model_checkpoint.endswith("checkpoint-4")
    np.testing.assert_allclose(model.encode(SENTENCES), evaluator.seen[1], atol=1e-6)
    assert np.abs(evaluator.seen[2] - evaluator.seen[1]).max() > 1e-4
    # Continued from the last checkpoint, whose vectors are those that were evaluated then.
    again = load(tmp_path / "checkpoint-6")
    np.testing.assert_allclose(again.encode(SENTENCES), evaluator.seen[2], atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["word-int4", "trigram,word-int8"])
def test_a_stock_model_with_the_code_of_its_folder(saved, name, tmp_path):
    model = SentenceTransformer(str(saved / name), device="cpu", trust_remote_code=True)
    trainer, evaluator = trained(model, tmp_path / "trainer", scores=[0.1, 0.9, 0.5])
    np.testing.assert_allclose(model.encode(SENTENCES), evaluator.seen[1], atol=1e-6)
    assert np.abs(evaluator.seen[2] - evaluator.seen[1]).max() > 1e-4
    model.save_pretrained(str(tmp_path / "saved"))
    np.testing.assert_allclose(load(tmp_path / "saved").encode(SENTENCES), evaluator.seen[1], atol=3e-6)


@pytest.mark.slow
def test_training_continues_from_a_checkpoint(tmp_path):
    whole = encoder("trigram,word-int8")
    trained(whole, tmp_path / "whole", save_strategy="steps", save_steps=4)
    resumed = encoder("trigram,word-int8")
    trained(resumed, tmp_path / "resumed", resume=str(tmp_path / "whole" / "checkpoint-4"))
    np.testing.assert_allclose(resumed.encode(SENTENCES), whole.encode(SENTENCES), atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["small", "base"])
def test_the_carried_encoders(name, tmp_path):
    texts = ["A man plays a guitar.", "Someone plays a guitar.", "It rains."]
    model = load(name)
    model.save_pretrained(str(tmp_path / "before"))
    assert load(tmp_path / "before")[0].precision == "int4", "rows that were not trained stay as small as they are"
    trained(model, tmp_path / "trainer")
    after = model.encode(texts)
    assert np.abs(after - load(name).encode(texts)).max() > 1e-4
    model.save_pretrained(str(tmp_path / "after"))
    np.testing.assert_allclose(load(tmp_path / "after").encode(texts), after, atol=1e-6)
    np.testing.assert_allclose(StaticEncoder.from_pretrained(tmp_path / "after").encode(texts), after, atol=1e-6)
    model.stored_as("int4").save_pretrained(str(tmp_path / "small"))
    assert load(tmp_path / "small")[0].precision == "int4"


def test_rows_that_are_rounded_have_the_vectors_that_are_saved(tmp_path):
    model = encoder("trigram").stored_as("int8")
    model.save_pretrained(str(tmp_path))
    np.testing.assert_array_equal(load(tmp_path).encode(SENTENCES), model.encode(SENTENCES))
    tables = [module for module in load(tmp_path).modules() if isinstance(module, AverageEmbedding)]
    assert [table.precision for table in tables] == ["int8"]
