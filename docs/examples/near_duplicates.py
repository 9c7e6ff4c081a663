"""Find near-duplicates in a column of a dataset of `datasets`.

Run:   python docs/examples/near_duplicates.py [DATASET COLUMN]
Needs: this package. DATASET is a Parquet file, or a folder or an id on the Hub, of which the split `train` is read.
       Without arguments it reads the judged sentences of the package.
"""

import sys
from importlib.resources import files
from pathlib import Path

from datasets import Dataset, load_dataset

from paranmt_hf import MineConfig, mine_pairs

SAMPLE = files("paranmt_hf") / "assets" / "sample"  # Sentences of the package

if len(sys.argv) > 1:
    name, column = sys.argv[1:]
    dataset = Dataset.from_parquet(name) if name.endswith(".parquet") else load_dataset(name, split="train")
else:
    pairs = (SAMPLE / "similarity.tsv").read_text(encoding="utf8").splitlines()
    sentences = dict.fromkeys(sentence for pair in pairs for sentence in pair.split("\t")[1:])
    dataset, column = Dataset.from_dict({"text": list(sentences)}), "text"

Path("examples").mkdir(exist_ok=True)
dataset.select_columns([column]).to_parquet("examples/column.parquet")
# Millions of rows work too: vectors and sentences stay on disk (docs/search.md).
config = MineConfig(min_score=0.8, copies=True)
mined = mine_pairs("examples/column.parquet", "examples/near-duplicates.parquet", column=column, config=config)

pairs = Dataset.from_parquet(str(mined.folder))
print(f"{mined.record.pairs} pairs of near-duplicates among {len(dataset)} rows")
for pair in pairs.select(range(min(10, len(pairs)))):
    # Lines are counted from 1, rows of a dataset from 0.
    first, second = pair["first_line"] - 1, pair["second_line"] - 1
    print(f"  {pair['cosine']:.2f}  {first}: {pair['first']}  |  {second}: {pair['second']}")
