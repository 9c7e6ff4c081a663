#!/usr/bin/env bash
# sentence-transformers 6.2.0: mine_hard_negatives(cache_folder=...) names its files of vectors by the model's base model
# and the texts. A model of StaticEmbedding has none: the second such model that uses the folder gets the vectors of the
# first, and so its negatives, without a warning. One would expect the negatives that it gives without a cache.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv --without-pip "$folder/venv"
install=(python3 -m pip --python "$folder/venv/bin/python" install --no-compile --quiet --disable-pip-version-check)
"${install[@]}" torch==2.13.0
"${install[@]}" sentence-transformers==6.2.0 transformers==5.24.0 datasets==5.2.0

HF_HOME="$folder/cache" HF_HUB_OFFLINE=1 HF_DATASETS_DISABLE_PROGRESS_BARS=1 "$folder/venv/bin/python" - "$folder" <<'PYTHON'
import sys

import sentence_transformers
import torch
from datasets import Dataset
from sentence_transformers import SentenceTransformer, util
from sentence_transformers.sentence_transformer.modules import StaticEmbedding
from tokenizers import Tokenizer, models

WORDS = ["bank", "credit", "loan", "river"]
pairs = Dataset.from_dict({"anchor": ["bank"], "positive": ["credit"]})


def static(vectors):
    tokenizer = Tokenizer(models.WordLevel({word: number for number, word in enumerate(WORDS)}))
    return SentenceTransformer(modules=[StaticEmbedding(tokenizer, torch.tensor(vectors))], device="cpu")


def negative(model, cache_folder=None):
    options = {"corpus": WORDS[1:], "num_negatives": 1, "cache_folder": cache_folder, "verbose": False}
    return util.mine_hard_negatives(pairs, model, **options)["negative"][0]


money = static([[1.0, 0.0], [1.0, 0.0], [0.9, 0.1], [0.0, 1.0]])
water = static([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.9, 0.1]])
alone = [negative(model) for model in (money, water)]
shared = [negative(model, f"{sys.argv[1]}/vectors") for model in (money, water)]
print(f"sentence-transformers {sentence_transformers.__version__}: negatives of 'bank' by two models")
print(f"  without a cache: {alone}\n  with one cache_folder: {shared}")
sys.exit(0 if alone == ["loan", "river"] and shared == ["loan", "loan"] else 1)
PYTHON
