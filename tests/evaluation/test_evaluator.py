"""The evaluator inside sentence-transformers: metrics, CSV, model card, trainer."""

import csv

import numpy as np
import pytest
import torch
from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers

from paranmt_hf import StsEvaluator
from paranmt_hf.evaluation.sts import evaluate_sts
from paranmt_hf.evaluation.sts_data import read_sts
from tests.evaluation.toys import PLANE, write_benchmark, write_senteval
from tests.refused import refused


@pytest.fixture
def model():
    """The plane's words as a stock sentence-transformers model."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.models import StaticEmbedding

    words = ["[UNK]", *list(PLANE)[:4]]
    tokenizer = Tokenizer(models.WordLevel({word: number for number, word in enumerate(words)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    weights = np.array([[0, 0], *(PLANE[word] for word in words[1:])], np.float32)
    return SentenceTransformer(modules=[StaticEmbedding(tokenizer, embedding_weights=weights)], device="cpu")


@pytest.fixture
def data(tmp_path):
    folder = tmp_path / "sts"
    rows = [("5", "x", "x"), ("3", "x", "d"), ("0", "x", "y")]
    write_senteval(folder / "STS12", "MSRpar", rows)
    write_senteval(folder / "STS12", "MSRvid", [*rows, ("5", "x", "w")])
    write_benchmark(folder / "STSBenchmark")
    return folder


def test_metrics(model, data, tmp_path):
    evaluator = StsEvaluator(data, name="mine")
    for epoch in (0.5, 1.0):
        metrics = evaluator(model, str(tmp_path / "eval"), epoch, 10)
    result = evaluate_sts(model, data, bootstrap=0)
    assert evaluator.primary_metric == "mine_sts17_track5_pearson"
    assert metrics[evaluator.primary_metric] == pytest.approx(result.value("STS17-track5"))
    assert metrics["mine_mean"] == metrics["mine_sts12_mean"] == pytest.approx(result.value("STS12"))
    assert metrics["mine_sts12_spearman"] == pytest.approx(result.value("STS12", "all_spearman"))
    assert "mine_stsb_dev_no_captions_pearson" in metrics and evaluator.greater_is_better
    with (tmp_path / "eval" / "sts_evaluation_mine_results.csv").open(encoding="utf8") as file:
        rows = list(csv.DictReader(file))
    assert [(row["epoch"], row["steps"]) for row in rows] == [("0.5", "10"), ("1.0", "10")]
    assert float(rows[1]["mean"]) == metrics["mine_mean"]


def test_some_sets(data, model):
    sets = read_sts(data)
    assert StsEvaluator(sets[:3]).primary_metric == "sts_mean"
    alone = StsEvaluator(sets[2:3], name="")
    expected = evaluate_sts(model, sets[2:3], bootstrap=0).value("STSB-dev")
    assert alone(model)[alone.primary_metric] == pytest.approx(expected)
    evaluator = StsEvaluator(data, development=True)
    assert set(evaluator(model)) == {"sts_sts17_track5_pearson", "sts_sts17_track5_spearman"}
    assert evaluator.primary_metric == "sts_sts17_track5_pearson"
    assert len(StsEvaluator(sets, development=True).sets) == 1
    with refused():
        StsEvaluator([])
    with torch.no_grad():
        model[0].embedding.weight[1] = float("nan")
    with refused():
        alone(model)


@pytest.mark.slow
def test_trainer_and_model_card(model, data, tmp_path):
    """Training moves the vectors, so the figure must be the one of the trained model; and the card must say it."""
    from sentence_transformers import SentenceTransformerTrainer, SentenceTransformerTrainingArguments
    from sentence_transformers.losses import CosineSimilarityLoss

    evaluator = StsEvaluator(data)
    before = evaluate_sts(model, data, bootstrap=0).mean
    arguments = SentenceTransformerTrainingArguments(
        output_dir=str(tmp_path / "run"),
        max_steps=2,
        per_device_train_batch_size=2,
        learning_rate=0.1,
        eval_strategy="steps",
        eval_steps=1,
        save_strategy="steps",
        save_steps=1,
        load_best_model_at_end=True,
        metric_for_best_model=f"eval_{evaluator.primary_metric}",
        report_to=[],
        disable_tqdm=True,
        use_cpu=True,
        seed=1,
    )
    examples = Dataset.from_dict({"sentence1": ["x"] * 4, "sentence2": ["w", "y"] * 2, "score": [1.0, 0.3] * 2})
    torch.manual_seed(1)
    trainer = SentenceTransformerTrainer(
        model, arguments, train_dataset=examples, loss=CosineSimilarityLoss(model), evaluator=evaluator
    )
    trainer.train()
    assert trainer.state.best_metric is not None
    metrics = evaluator(model)
    assert metrics["sts_mean"] == pytest.approx(evaluate_sts(model, data, bootstrap=0).mean)
    assert metrics["sts_mean"] != pytest.approx(before, abs=1e-3)
    model.save_pretrained(str(tmp_path / "saved"))
    card = (tmp_path / "saved" / "README.md").read_text(encoding="utf8")
    assert "Semantic Textual Similarity" in card
    assert f"| **sts17_track5_pearson** | **{metrics['sts_sts17_track5_pearson']:.4f}" in card.replace("  ", "")
    assert "sts12_mean" in card
