"""Distill a fast encoder for your own text from a large encoder, and search with it.

Run:   python docs/examples/distil_encoder.py [TEXT.txt [MODEL [QUERY ...]]]
Needs: this package. TEXT.txt has a sentence on each line; MODEL is any model of sentence-transformers.
       Without arguments: the sample, and the encoder of the package, of whose words only those of the text are
       kept. Writes examples/my-encoder and examples/my-index.
"""

import sys
from importlib.resources import files

from paranmt_hf import DistillConfig, SentenceIndex, distill

SAMPLE = files("paranmt_hf") / "assets" / "sample"  # Sentences of the package

text = sys.argv[1] if len(sys.argv) > 1 else SAMPLE / "sample.en"
teacher = sys.argv[2] if len(sys.argv) > 2 else "small"
queries = sys.argv[3:] or ["Children in the street."]

# With a large teacher leave the sizes out: training then starts from the package's `base`, if that knows the words.
config = DistillConfig(dimension=100) if teacher == "small" else DistillConfig()
distilled = distill(teacher, out="examples/my-encoder", text=text, config=config)
print(distilled.summary())

index = SentenceIndex.build(text, "examples/my-index", encoder=distilled.folder)
for query in queries:
    print(query)
    for hit in index.search([query], top=3)[0]:
        print(f"  {hit.cosine:.2f}  {hit.sentence}")
