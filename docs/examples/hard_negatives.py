"""Make a file of hard negatives for trainers of sentence-transformers.

Run:   python docs/examples/hard_negatives.py [PAIRS.parquet]
Needs: this package. PAIRS.parquet has the columns `reference` and `translation`. Without it the pairs are translations
       of the sample. Writes examples/hard-negatives.jsonl with the columns anchor, positive and negative_1 to 3.
"""

import sys

from datasets import Dataset, load_dataset
from sentence_transformers.util import mine_hard_negatives

import paranmt_hf
from paranmt_hf import SAMPLE, ReleaseConfig, TextInput, build


def main() -> None:
    """Mine with the encoder of the package, which encodes on a CPU what larger models need a GPU for."""
    if len(sys.argv) > 1:
        pairs = Dataset.from_parquet(sys.argv[1])
    else:
        bitext = TextInput(source=SAMPLE / "sample.cs", reference=SAMPLE / "sample.en")
        terms = ReleaseConfig(license="cc-by-nc-sa-4.0")
        corpus = build(bitext, "examples/paraphrases", translator="embedded", release=terms)
        pairs = load_dataset(str(corpus.folder), split="train", filters=[("para_score", ">", 0.5)])
    pairs = pairs.select_columns(["reference", "translation"]).rename_columns(
        {"reference": "anchor", "translation": "positive"}
    )
    # A sentence whose cosine is within 0.05 of the positive's may mean the same, and is left out.
    options = {"num_negatives": 3, "absolute_margin": 0.05, "output_format": "n-tuple", "verbose": False}
    found = mine_hard_negatives(pairs, paranmt_hf.load(), "anchor", "positive", **options)
    found.to_json("examples/hard-negatives.jsonl")
    print(f"examples/hard-negatives.jsonl: {len(found)} of {len(pairs)} pairs have three negatives")
    for row in found.select(range(min(3, len(found)))):
        print("\n".join(f"  {name:<10}  {text}" for name, text in row.items()), "\n")


if __name__ == "__main__":  # worker processes of `build` import this file
    main()
