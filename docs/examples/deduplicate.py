"""Semantic deduplication: of sentences that mean about the same, keep the first.

Run:   python docs/examples/deduplicate.py [SENTENCES.txt [COSINE]]
Needs: this package. Without arguments it reads the judged sentences of the package. Writes examples/deduplicated.txt.
"""

import sys
from importlib.resources import files
from pathlib import Path

import pyarrow.parquet as pq

from paranmt_hf import DedupConfig, dedup

SAMPLE = files("paranmt_hf") / "assets" / "sample"  # Sentences of the package

folder = Path("examples")
folder.mkdir(exist_ok=True)
if len(sys.argv) > 1:
    file = Path(sys.argv[1])
else:
    pairs = (SAMPLE / "similarity.tsv").read_text(encoding="utf8").splitlines()
    sentences = dict.fromkeys(sentence for pair in pairs for sentence in pair.split("\t")[1:])
    file = folder / "sentences.txt"
    file.write_text("".join(f"{sentence}\n" for sentence in sentences), encoding="utf8")

config = DedupConfig(by=("exact", "meaning"), cosine=float(sys.argv[2]) if len(sys.argv) > 2 else 0.8)
dropped = folder / "dropped.parquet"
made = dedup(file, folder / f"deduplicated{file.suffix}", config=config, keep_dropped=dropped)
print(made.summary())
for row in pq.read_table(dropped).slice(0, 10).to_pylist():
    print(f"  dropped: {row['text']}  |  like: {row['like_text']}  ({row['score']:.2f})")
