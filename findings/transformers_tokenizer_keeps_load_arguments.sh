#!/usr/bin/env bash
# transformers 5.24.0: a tokenizer that was loaded with local_files_only=True and saved again has that argument, and
# whether its folder was local, in tokenizer_config.json; one that was made in memory has neither. So a model that is
# loaded and saved has other bytes than its original, and a checksum of the folder changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv --without-pip "$folder/venv"
python3 -m pip --python "$folder/venv/bin/python" install --no-compile --quiet --disable-pip-version-check \
    transformers==5.24.0 tokenizers==0.23.3

HF_HOME="$folder/cache" "$folder/venv/bin/python" - "$folder" 2> /dev/null <<'PYTHON'
import json
import sys
from pathlib import Path

import transformers
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from transformers import PreTrainedTokenizerFast

root = Path(sys.argv[1])
words = Tokenizer(WordLevel({"[UNK]": 0, "a": 1, "cat": 2}, unk_token="[UNK]"))
PreTrainedTokenizerFast(tokenizer_object=words, unk_token="[UNK]").save_pretrained(root / "made")
loaded = PreTrainedTokenizerFast.from_pretrained(root / "made", local_files_only=True)
loaded.save_pretrained(root / "again")
made, again = (json.loads((root / name / "tokenizer_config.json").read_text()) for name in ("made", "again"))
added = {name: value for name, value in again.items() if name not in made}
print(f"transformers {transformers.__version__}: saved again, tokenizer_config.json has {added} more")
sys.exit(0 if added == {"is_local": True, "local_files_only": True} else 1)
PYTHON
