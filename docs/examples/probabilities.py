"""Probabilities that sentences are paraphrases, and the cosine above which most pairs are.

Run:   python docs/examples/probabilities.py [PAIRS.tsv [ENCODER]]
Needs: this package. PAIRS.tsv has two sentences a line with a tab between, ENCODER is calibrated
       (docs/calibration.md). Without arguments it reads the judged sentences of the package.
"""

import sys
from importlib.resources import files
from pathlib import Path

from paranmt_hf import InputError, StaticEncoder

SAMPLE = files("paranmt_hf") / "assets" / "sample"  # Sentences of the package

path = Path(sys.argv[1]) if len(sys.argv) > 1 else SAMPLE / "similarity.tsv"
encoder = StaticEncoder.from_pretrained(sys.argv[2] if len(sys.argv) > 2 else "small")

# The judged sentences have their score in front.
pairs = [line.split("\t")[-2:] for line in path.read_text(encoding="utf8").splitlines()]
first, second = zip(*pairs, strict=True)
found = encoder.probability(first, second)
# The same pairs, if only one in twenty were a paraphrase.
rare = encoder.probability(first, second, prior=0.05)
for row in sorted(range(len(pairs)), key=lambda row: -found[row])[:10]:
    print(f"{found[row]:.2f}  {rare[row]:.2f}  {first[row]}  |  {second[row]}")

for precision in (0.7, 0.8, 0.9):
    try:
        print(f"precision {precision:.0%}: cosine {encoder.calibration.threshold(precision):.3f} and above")
    except InputError as error:
        print(f"precision {precision:.0%}: {error}")
