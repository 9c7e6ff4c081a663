"""Semantic deduplication: of sentences that mean about the same, keep the first.

Run:   python docs/examples/deduplicate.py [SENTENCES.txt [COSINE]]
Needs: this package. Without arguments it reads the judged sentences of the package. Writes examples/deduplicated.txt.
"""

import sys
from pathlib import Path

from datasets import Dataset

from paranmt_hf import SAMPLE, MineConfig, mine_pairs

folder = Path("examples")
folder.mkdir(exist_ok=True)
if len(sys.argv) > 1:
    file = Path(sys.argv[1])
else:
    pairs = (SAMPLE / "similarity.tsv").read_text(encoding="utf8").splitlines()
    sentences = dict.fromkeys(sentence for pair in pairs for sentence in pair.split("\t")[1:])
    file = folder / "sentences.txt"
    file.write_text("".join(f"{sentence}\n" for sentence in sentences), encoding="utf8")

config = MineConfig(min_score=float(sys.argv[2]) if len(sys.argv) > 2 else 0.8, copies=True, top=100)
mined = mine_pairs(file, folder / "same-meaning.parquet", config=config)

# A line is dropped if an earlier line that is kept is near to it, so that chains of pairs do not drop too much.
near: dict[int, list[int]] = {}
for pair in Dataset.from_parquet(str(mined.folder)):
    near.setdefault(pair["second_line"], []).append(pair["first_line"])
lines, dropped = file.read_text(encoding="utf8").splitlines(), {}
for later in sorted(near):
    if kept := [earlier for earlier in near[later] if earlier not in dropped]:
        dropped[later] = kept[0]

kept_lines = [line for number, line in enumerate(lines, 1) if number not in dropped]
(folder / "deduplicated.txt").write_text("".join(f"{line}\n" for line in kept_lines), encoding="utf8")
print(f"{len(lines)} sentences, {len(kept_lines)} kept")
for later, earlier in list(dropped.items())[:10]:
    print(f"  dropped: {lines[later - 1]}  |  kept: {lines[earlier - 1]}")
