#!/usr/bin/env bash
# sentencex 1.0.32: the parts that `segment` returns join to the document again, paragraph breaks included, but not those
# of a document above some 10,000 bytes, of which it drops paragraph breaks: two of 1,999 here. `get_sentence_boundaries`
# lacks the same ones; its positions are right.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv --without-pip "$folder/venv"
python3 -m pip --python "$folder/venv/bin/python" install --no-compile --quiet --disable-pip-version-check sentencex==1.0.32

"$folder/venv/bin/python" - <<'PYTHON'
import sys
from importlib.metadata import version

from sentencex import get_sentence_boundaries, segment

lost = {}
for paragraphs in (400, 2000):
    document = "\n\n".join(["A dog runs."] * paragraphs)
    parts = segment("en", document)
    lost[len(document)] = (parts.count("\n\n"), len(document) - len("".join(parts)))
    boundaries = get_sentence_boundaries("en", document)
    right = all(document[one["start_index"] : one["end_index"]] == one["text"] for one in boundaries)
    print(f"{len(document):,} bytes: {paragraphs - 1:,} paragraph breaks, {lost[len(document)][0]:,} among the parts; positions right: {right}")
print(f"sentencex {version('sentencex')}: characters lost: {[count for _, count in lost.values()]}")
short, long = (count for _, count in lost.values())
sys.exit(0 if short == 0 and long > 0 else 1)
PYTHON
