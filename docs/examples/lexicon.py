"""Find the paraphrases of words in a corpus of paraphrases.

Run:   python docs/examples/lexicon.py [CORPUS [WORD ...]]
Needs: this package. CORPUS is a release, a folder or an id on the Hub. Without arguments it is made of the sample, so
       small that counts are low; in a corpus of millions leave out `min_count`. Writes examples/lexicon.
"""

import sys
from importlib.resources import files

from paranmt_hf import Lexicon, ReleaseConfig, TextInput, build

SAMPLE = files("paranmt_hf") / "assets" / "sample"  # Sentences of the package


def main() -> None:
    """Count which words stand in a sentence and which in its paraphrase, and show the nearest."""
    corpus, *words = sys.argv[1:] or [None]
    if corpus is None:
        corpus = build(
            TextInput(source=SAMPLE / "sample.cs", reference=SAMPLE / "sample.en"),
            "examples/paraphrases",
            translator="captions-cs-en",
            release=ReleaseConfig(license="cc-by-nc-sa-4.0"),
        ).folder
    lexicon = Lexicon.build(corpus, "examples/lexicon")
    print(lexicon.summary())
    print(f"{'word':<10}  {'paraphrase':<12}  {'PMI':>5}  {'count':>5}")
    for word in words or ["large", "small", "running", "sitting", "lying", "elderly"]:
        for found in lexicon.nearest(word, top=2, min_count=3):
            print(f"{word:<10}  {found.word:<12}  {found.adjusted_pmi:5.2f}  {found.count:5}")


if __name__ == "__main__":  # worker processes of `build` import this file
    main()
