"""Train a carried encoder further in the trainer of sentence-transformers, and save it as it was trained.

Run:   python docs/examples/train_further.py [RATED.tsv]
Needs: this package. RATED.tsv has a score from 0 to 5 and two sentences on a line, with tabs between. Without it these
       are the rated pairs of the sample. Writes examples/trained-further.
"""

import sys
from importlib.resources import files

from datasets import Dataset
from sentence_transformers import SentenceTransformerTrainer, SentenceTransformerTrainingArguments
from sentence_transformers.sentence_transformer.evaluation import EmbeddingSimilarityEvaluator
from sentence_transformers.sentence_transformer.losses import CosineSimilarityLoss

import paranmt_hf

SAMPLE = files("paranmt_hf") / "assets" / "sample"  # Sentences of the package

file = sys.argv[1] if len(sys.argv) > 1 else str(SAMPLE / "similarity.tsv")
rated = Dataset.from_csv(file, delimiter="\t", column_names=["label", "sentence1", "sentence2"], quoting=3)
rated = rated.map(lambda row: {"label": row["label"] / 5}).train_test_split(0.4, seed=1)
held_out = rated["test"]
evaluator = EmbeddingSimilarityEvaluator(held_out["sentence1"], held_out["sentence2"], held_out["label"])
model = paranmt_hf.load("small")
print(f"before: {evaluator(model)['spearman_cosine']:.3f} on {len(held_out)} held-out pairs")

arguments = SentenceTransformerTrainingArguments(
    "examples/trainer", num_train_epochs=2, per_device_train_batch_size=8, learning_rate=1e-3, use_cpu=True,
    eval_strategy="epoch", save_strategy="epoch", load_best_model_at_end=True, metric_for_best_model="spearman_cosine",
    report_to="none",
)  # fmt: skip
trainer = SentenceTransformerTrainer(
    model, arguments, train_dataset=rated["train"], loss=CosineSimilarityLoss(model), evaluator=evaluator
)
trainer.train()
model.save_pretrained("examples/trained-further")
after = paranmt_hf.load("examples/trained-further")
print(f"after:  {evaluator(after)['spearman_cosine']:.3f}; keep the one that is better on pairs like yours")
