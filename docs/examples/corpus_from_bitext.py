"""Make a paraphrase corpus from a bitext, look at it, and load a part of it.

Run:   python docs/examples/corpus_from_bitext.py [FOREIGN.txt ENGLISH.txt TRANSLATOR LICENSE]
Needs: this package. Both files have a sentence on each line; TRANSLATOR is a model of transformers that translates
       into English, such as Helsinki-NLP/opus-mt-cs-en; LICENSE is that of the text. Without arguments: the Czech
       sample and the small translator of the package. Writes examples/paraphrases.
"""

import sys
from importlib.resources import files

from datasets import load_dataset

from paranmt_hf import ReleaseConfig, TextInput, build

SAMPLE = files("paranmt_hf") / "assets" / "sample"  # Sentences of the package


def main() -> None:
    """Translate, score and release; then read the release."""
    given = [SAMPLE / "sample.cs", SAMPLE / "sample.en", "captions-cs-en", "cc-by-nc-sa-4.0"]
    source, reference, translator, license = sys.argv[1:] or given
    built = build(
        TextInput(source=source, reference=reference),
        "examples/paraphrases",
        translator=translator,
        release=ReleaseConfig(license=license),
    )
    print(built.summary())

    pairs = load_dataset(str(built.folder), split="train")
    for pair in sorted(pairs, key=lambda pair: pair["para_score"])[:: max(1, len(pairs) // 10)]:
        print(f"  {pair['para_score']:.2f}  {pair['reference']}  |  {pair['translation']}")

    # What an encoder learns from: the same meaning, in other words. Only these rows are read.
    filters = [("para_score", ">", 0.5), ("trigram_overlap", "<", 0.7)]
    good = load_dataset(str(built.folder), split="train", filters=filters)
    print(f"{len(good)} of {len(pairs)} pairs have a score above 0.5 and an overlap below 0.7")


if __name__ == "__main__":  # worker processes of `build` import this file
    main()
