"""Distil word vectors for a domain from a large encoder, and search with them.

Run:   python docs/examples/distil_domain.py [TEXT.txt [MODEL [WORD ...]]]
Needs: this package. TEXT.txt is text of the domain, a sentence on each line; MODEL is any model of
       sentence-transformers. Without arguments: the sample, and the encoder of the package.
       Writes examples/domain.txt.gz, which `--vectors` of `paranmt train` takes.
"""

import sys
from importlib.resources import files
from pathlib import Path

import numpy as np

from paranmt_hf import SentenceIndex, VectorsConfig, distill_vectors

SAMPLE = files("paranmt_hf") / "assets" / "sample"  # Sentences of the package

text = sys.argv[1] if len(sys.argv) > 1 else SAMPLE / "sample.en"
model = sys.argv[2] if len(sys.argv) > 2 else "small"
words = sys.argv[3:] or ["dog", "street", "playing", "soup"]

Path("examples").mkdir(exist_ok=True)
# Only words of the domain get a vector, so the file is small: the most frequent 20,000 at most.
config = VectorsConfig(words=20_000, dimension=100)
distilled = distill_vectors(model, "examples/domain.txt.gz", text=[text], config=config)
print(distilled.summary())

vectors = distilled.vectors
matrix = vectors.matrix / np.linalg.norm(vectors.matrix, axis=1, keepdims=True)
for word in words:
    if word in vectors.words:
        nearest = np.argsort(-matrix @ matrix[vectors.words.index(word)])[1:5]
        print(f"  {word}: {', '.join(vectors.words[place] for place in nearest)}")

# A file of word vectors is an encoder wherever one is named: a sentence is the average of its words.
index = SentenceIndex.build(text, "examples/domain-index", encoder=distilled.folder)
for hit in index.search(["Children in the street."], top=3)[0]:
    print(f"  {hit.cosine:.2f}  {hit.sentence}")
