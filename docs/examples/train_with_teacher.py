"""Train a small encoder on plain text: it learns how similar a teacher finds the sentences.

Run:   python docs/examples/train_with_teacher.py [TEXT.txt [TEACHER]]
Needs: this package. TEXT.txt has a sentence on each line; TEACHER is any model of sentence-transformers, a folder or
       an id on the Hub such as sentence-transformers/all-MiniLM-L6-v2. Without arguments: the sample, and the
       encoder of the package as the teacher. Writes examples/taught.
"""

import sys
from importlib.resources import files
from pathlib import Path

from paranmt_hf import EncoderConfig, TrainConfig, VectorsConfig, distill_vectors, load, train

SAMPLE = files("paranmt_hf") / "assets" / "sample"  # Sentences of the package

text = sys.argv[1] if len(sys.argv) > 1 else SAMPLE / "sample.en"
teacher = sys.argv[2] if len(sys.argv) > 2 else "small"

Path("examples").mkdir(exist_ok=True)
# The encoder starts from the teacher's vectors of single words, reduced to 100 dimensions.
vectors = distill_vectors(teacher, "examples/teacher.txt.gz", text=[text], config=VectorsConfig(dimension=100))
print(vectors.summary())

trained = train(
    None,
    "examples/taught",
    text=[text],
    encoder=EncoderConfig(model="word", dimension=100, vectors=str(vectors.folder)),
    config=TrainConfig(teacher=teacher, epochs=20, batch_size=16),
    development="sample",  # 40 judged pairs of the package; the weights that are best on them are kept
)
print(trained.summary())

sentences = ["A man is playing a guitar.", "Someone plays the guitar.", "A man is playing football.", "It will rain."]
for name, encoder in (("teacher", load(teacher)), ("taught", trained.load())):
    scores = encoder.similarity(*[encoder.encode(sentences)] * 2)[0].tolist()
    print(f"{name:>8}: {', '.join(f'{score:.2f}  {text}' for score, text in zip(scores, sentences, strict=True))}")
