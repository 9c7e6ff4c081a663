"""Encode the sentences of a file, and find those nearest to queries.

Run:   python docs/examples/encode_and_search.py [SENTENCES.txt [QUERY ...]]
Needs: this package. Without arguments it searches the sample of the package.
"""

import sys
from importlib.resources import files
from pathlib import Path

import paranmt_hf

SAMPLE = files("paranmt_hf") / "assets" / "sample"  # Sentences of the package

QUERIES = ["Kids playing with a ball.", "Somebody cooks.", "It snows."]

file, *queries = sys.argv[1:] or [SAMPLE / "sample.en"]
sentences = Path(file).read_text(encoding="utf8").splitlines()

encoder = paranmt_hf.load()  # load("base") is larger and better; a folder or a Hub id loads your own encoder
vectors = encoder.encode(sentences)
print(f"{len(sentences)} sentences, {vectors.shape[1]} dimensions")

for query in queries or QUERIES:
    scores = encoder.similarity(encoder.encode(query), vectors)[0]
    best, places = scores.topk(min(3, len(sentences)))
    print(query)
    for score, place in zip(best.tolist(), places.tolist(), strict=True):
        print(f"  {score:.2f}  {sentences[place]}")

# Too many sentences for memory: `paranmt_hf.SentenceIndex` keeps them on disk (docs/search.md).
