"""A scikit-learn classifier on top of an encoder.

Run:   python docs/examples/classifier.py [LABELLED.tsv [MODEL]]
Needs: this package. LABELLED.tsv has a header, and the columns `text` and `label`; MODEL is an encoder. Without
       arguments: requests.tsv in this folder, requests to a shop, and the encoder of the package.
"""

import csv
import sys
from pathlib import Path

from sklearn.linear_model import LogisticRegression
from sklearn.metrics import classification_report
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import paranmt_hf

file = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).with_name("requests.tsv")
with file.open(encoding="utf8", newline="") as lines:
    rows = list(csv.DictReader(lines, delimiter="\t"))
texts, labels = [row["text"] for row in rows], [row["label"] for row in rows]

encoder = paranmt_hf.load(sys.argv[2] if len(sys.argv) > 2 else "small")
classifier = make_pipeline(FunctionTransformer(encoder.encode), StandardScaler(), LogisticRegression(C=0.1))
parts = train_test_split(texts, labels, test_size=0.25, stratify=labels, random_state=1)
train_texts, test_texts, train_labels, test_labels = parts
classifier.fit(train_texts, train_labels)

print(f"learned from {len(train_texts)} sentences, tested on {len(test_texts)}")
print(classification_report(test_labels, classifier.predict(test_texts), zero_division=0))
new = ["My package still has not come.", "Could I pay by card?", "I forgot my login."]
for text, probabilities in zip(new, classifier.predict_proba(new), strict=True):
    best = probabilities.argmax()
    print(f"  {probabilities[best]:.2f}  {classifier.classes_[best]:<10}  {text}")
