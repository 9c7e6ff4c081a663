"""Train an encoder on pairs of your own, and measure it before and after.

Run:   python docs/examples/train_on_pairs.py [PAIRS.tsv]
Needs: this package. PAIRS.tsv has two sentences with the same meaning on a line, with a tab between. Without it the
       pairs are translations of the sample. Writes examples/trained-encoder.
"""

import sys
from importlib.resources import files

from datasets import Dataset, load_dataset

import paranmt_hf
from paranmt_hf import EncoderConfig, ReleaseConfig, TextInput, TrainConfig

SAMPLE = files("paranmt_hf") / "assets" / "sample"  # Sentences of the package


def found(encoder: paranmt_hf.StaticEncoder, pairs: Dataset) -> float:
    """Share of the translations whose nearest reference is their own."""
    references, translations = (encoder.encode(pairs[side]) for side in ("reference", "translation"))
    nearest = encoder.similarity(translations, references).argmax(axis=1).tolist()
    return sum(place == row for row, place in enumerate(nearest)) / len(pairs)


if __name__ == "__main__":  # worker processes of `build` import this file
    if len(sys.argv) > 1:
        pairs = Dataset.from_csv(sys.argv[1], delimiter="\t", column_names=["reference", "translation"])
    else:
        bitext = TextInput(source=SAMPLE / "sample.cs", reference=SAMPLE / "sample.en")
        terms = ReleaseConfig(license="cc-by-nc-sa-4.0")
        corpus = paranmt_hf.build(bitext, "examples/paraphrases", translator="captions-cs-en", release=terms)
        pairs = load_dataset(str(corpus.folder), split="train")
    parts = pairs.select_columns(["reference", "translation"]).train_test_split(0.3, seed=1)
    parts["train"].to_parquet("examples/my-pairs.parquet")
    # Thousands of pairs allow the defaults: batches of 100 pairs, mega-batches of 40 batches.
    start, config = EncoderConfig(init_from="small"), TrainConfig(batch_size=25, mega_batch=4)
    trained = paranmt_hf.train("examples/my-pairs.parquet", "examples/trained-encoder", encoder=start, config=config)
    print(trained.summary())
    for name, encoder in (("before", paranmt_hf.load()), ("after", trained.load())):
        print(f"{name:>6}: {found(encoder, parts['test']):.1%} of {len(parts['test'])} held-out pairs are found")
