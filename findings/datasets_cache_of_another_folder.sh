#!/usr/bin/env bash
# datasets 5.2.0: two folders of the same name, whose cards have the same header and whose Parquet files differ, are one
# in its cache: load_dataset of the second gives the rows of the first, without a word.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv --without-pip "$folder/venv"
python3 -m pip --python "$folder/venv/bin/python" install --no-compile --quiet --disable-pip-version-check datasets==5.2.0 pyarrow==26.0.1

HF_HOME="$folder/cache" HF_HUB_OFFLINE=1 HF_DATASETS_DISABLE_PROGRESS_BARS=1 "$folder/venv/bin/python" - "$folder" <<'PYTHON'
import sys
from pathlib import Path

import datasets
import pyarrow as pa
import pyarrow.parquet as pq

CARD = """---
configs:
- config_name: default
  data_files: data/*.parquet
---
"""
found = {}
for owner, rows in (("anna", ["red", "green"]), ("ben", ["one", "two", "three"])):
    folder = Path(sys.argv[1]) / owner / "corpus"
    (folder / "data").mkdir(parents=True)
    (folder / "README.md").write_text(CARD)
    pq.write_table(pa.table({"text": rows}), folder / "data" / "train.parquet")
    found[owner] = list(datasets.load_dataset(str(folder), split="train")["text"])
    print(f"datasets {datasets.__version__}: {owner}/corpus holds {rows}, load_dataset gives {found[owner]}")
sys.exit(0 if found["ben"] == ["red", "green"] else 1)
PYTHON
