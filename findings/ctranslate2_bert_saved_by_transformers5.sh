#!/usr/bin/env bash
# ctranslate2 4.8.5: its converter refuses a BertModel that transformers 5.24.0 saved, with an AttributeError, because it
# reads `position_embedding_type`, which transformers 5 neither writes nor has; with that key added to config.json the
# same folder is converted.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv --without-pip "$folder/venv"
install() { python3 -m pip --python "$folder/venv/bin/python" install --no-compile --quiet --disable-pip-version-check "$@"; }
install torch==2.13.0
install ctranslate2==4.8.5 transformers==5.24.0

"$folder/venv/bin/python" - "$folder" 2> /dev/null <<'PYTHON'
import json
import sys
from pathlib import Path

import ctranslate2
import transformers
from transformers import BertConfig, BertModel, BertTokenizerFast

model = Path(sys.argv[1]) / "model"
words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "dog", "runs"]
BertModel(BertConfig(vocab_size=len(words), hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32)).save_pretrained(model)
BertTokenizerFast(vocab={word: number for number, word in enumerate(words)}).save_pretrained(model)


def convert(name):
    try:
        ctranslate2.converters.TransformersConverter(str(model)).convert(f"{model}-{name}")
    except AttributeError as error:
        return f"AttributeError: {error}"
    return "converted"


as_saved = convert("as-saved")
settings = json.loads((model / "config.json").read_text())
(model / "config.json").write_text(json.dumps(settings | {"position_embedding_type": "absolute"}))
with_key = convert("with-key")
print(f"ctranslate2 {ctranslate2.__version__}, transformers {transformers.__version__}")
print(f"as saved: {as_saved}\nwith position_embedding_type in config.json: {with_key}")
sys.exit(0 if "position_embedding_type" in as_saved and with_key == "converted" else 1)
PYTHON
