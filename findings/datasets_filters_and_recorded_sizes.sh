#!/usr/bin/env bash
# datasets 5.2.0: load_dataset(..., filters=...) pushes a filter down to Parquet, then compares the number of rows that
# are left with the number that the card records for the whole split, and raises NonMatchingSplitsSizesError.
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
dataset_info:
  features:
  - name: score
    dtype: float64
  splits:
  - name: train
    num_bytes: 32
    num_examples: 4
---
"""
folder = Path(sys.argv[1]) / "scores"
(folder / "data").mkdir(parents=True)
(folder / "README.md").write_text(CARD)
pq.write_table(pa.table({"score": [0.1, 0.4, 0.6, 0.9]}), folder / "data" / "train.parquet")
try:
    rows = datasets.load_dataset(str(folder), split="train", filters=[("score", ">", 0.5)])["score"]
    outcome = str(list(rows))
except Exception as error:
    outcome = type(error).__name__
streamed = [row["score"] for row in datasets.load_dataset(str(folder), split="train").filter(lambda row: row["score"] > 0.5)]
print(f"datasets {datasets.__version__}: filters=[('score', '>', 0.5)] of 4 recorded rows: {outcome}")
print(f"  the same rows by .filter() afterwards: {streamed}")
sys.exit(0 if outcome == "NonMatchingSplitsSizesError" else 1)
PYTHON
