#!/usr/bin/env bash
# model2vec 0.10.0 writes folders that SentenceTransformer loads, as a StaticEmbedding. sentence-transformers 6.2.0 counts
# [UNK] in the mean of the token vectors, model2vec leaves it out. One would expect the same vector of the same text: for
# one with an unknown word its direction differs, and only its length where the row of [UNK] is zeros.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv --without-pip "$folder/venv"
install=(python3 -m pip --python "$folder/venv/bin/python" install --no-compile --quiet --disable-pip-version-check)
"${install[@]}" torch==2.13.0
"${install[@]}" sentence-transformers==6.2.0 transformers==5.24.0 model2vec==0.10.0

HF_HOME="$folder/cache" HF_HUB_OFFLINE=1 "$folder/venv/bin/python" - "$folder" <<'PYTHON'
import sys
from importlib.metadata import version

import numpy as np
from model2vec import StaticModel
from sentence_transformers import SentenceTransformer
from tokenizers import Tokenizer, models, pre_tokenizers

tokenizer = Tokenizer(models.WordLevel({"[UNK]": 0, "red": 1, "bus": 2}, unk_token="[UNK]"))
tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
print(f"model2vec {version('model2vec')}, sentence-transformers {version('sentence-transformers')}")
found = {}
for name, row in (("not zeros", [0.0, 3.0]), ("zeros", [0.0, 0.0])):
    path = f"{sys.argv[1]}/{name}"
    StaticModel(np.array([row, [3.0, 0.0], [3.0, 0.0]], dtype="float32"), tokenizer).save_pretrained(path)
    readers = StaticModel.from_pretrained(path), SentenceTransformer(path, device="cpu")
    for text in ("red bus", "red tram"):
        one, two = (reader.encode([text])[0] for reader in readers)
        lengths = np.linalg.norm(one), np.linalg.norm(two)
        found[name, text] = [round(float(number), 3) for number in (one @ two / lengths[0] / lengths[1], *lengths)]
        print(f"  {text!r}, row of [UNK] {name}: {one} and {two}, cosine and lengths {found[name, text]}")
known = found["not zeros", "red bus"] == found["zeros", "red bus"] == [1.0, 3.0, 3.0]
unknown = found["not zeros", "red tram"] == [0.707, 3.0, 2.121] and found["zeros", "red tram"] == [1.0, 3.0, 1.5]
sys.exit(0 if known and unknown else 1)
PYTHON
