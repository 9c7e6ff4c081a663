"""Give pairs hard negatives for trainers of sentence-transformers.

Run:   python docs/examples/hard_negatives.py [PAIRS.parquet]
Needs: this package. PAIRS.parquet has the columns `reference` and `translation`. Without it the pairs are translations
       of the sample. Writes the dataset examples/hard-negatives: anchor, positive and negative_1 to negative_3.
"""

import sys
from importlib.resources import files

from paranmt_hf import HardNegativesConfig, PairSelection, ReleaseConfig, TextInput, build, hard_negatives

SAMPLE = files("paranmt_hf") / "assets" / "sample"  # Sentences of the package


def main() -> None:
    """Mine with the encoder of the package, which encodes on a CPU what larger models need a GPU for."""
    pairs, selection = sys.argv[1] if len(sys.argv) > 1 else None, None
    if pairs is None:
        bitext = TextInput(source=SAMPLE / "sample.cs", reference=SAMPLE / "sample.en")
        terms = ReleaseConfig(license="cc-by-nc-sa-4.0")
        pairs = str(build(bitext, "examples/paraphrases", translator="captions-cs-en", release=terms).folder)
        selection = PairSelection(min_score=0.5)
    # A sentence whose cosine is within 0.05 of the positive's may mean the same, and is left out.
    config = HardNegativesConfig(number=3, margin=0.05)
    made = hard_negatives(pairs, "examples/hard-negatives", config=config, selection=selection)
    print(made.summary())
    for row in made.load().select(range(min(3, made.record.rows))):
        print("\n".join(f"  {name:<10}  {text}" for name, text in row.items()), "\n")


if __name__ == "__main__":  # worker processes of `build` import this file
    main()
