"""How like its teacher an encoder is, on sentences that it has not seen.

Sentences are put into groups of neighbours in the teacher's eyes; in each group Pearson's correlation between the
cosines of all pairs under the encoder and under the teacher, and of these the mean, in percent. Among neighbours it is
hard: that an unrelated sentence is unrelated every encoder knows.

    python benchmarks/teacher_likeness.py models/word embedded --teacher all-MiniLM-L6-v2 --text held.txt
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import paranmt_hf

GROUP = 50


def neighbour_order(vectors: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """Order sentences [sentence, dimension] so that groups of `GROUP` are neighbours; an incomplete one is last.

    All are halved along the line through two random ones, and so are the halves, down to the groups.
    """
    groups, waiting = [], [generator.permutation(len(vectors))]
    while waiting:
        items = waiting.pop()
        if len(items) <= GROUP:
            groups.append(items)
            continue
        first, second = vectors[generator.choice(items, 2, replace=False)]
        left = -(-len(items) // GROUP) // 2 * GROUP
        order = np.argpartition(vectors[items] @ (second - first), left)
        waiting += [items[order[left:]], items[order[:left]]]
    return np.concatenate(groups)


def likeness(vectors: np.ndarray, teacher: np.ndarray, order: np.ndarray) -> float:
    """Mean over groups of the correlation of cosines; vectors [sentence, dimension] of length 1, in any order."""
    upper = np.triu_indices(GROUP, 1)
    found = []
    for start in range(0, len(order) - GROUP + 1, GROUP):
        group = order[start : start + GROUP]
        own, wanted = ((side[group] @ side[group].T)[upper] for side in (vectors, teacher))
        found.append(np.corrcoef(own, wanted)[0, 1])
    return 100 * float(np.mean(found))


def main() -> None:
    """Parse the command line, print a line for each encoder."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--teacher", required=True)
    parser.add_argument("--text", type=Path, required=True, help="file with a sentence a line")
    arguments = parser.parse_args()
    sentences = list(dict.fromkeys(arguments.text.read_text(encoding="utf8").splitlines()))

    def encode(name: str) -> np.ndarray:
        encoder = paranmt_hf.load(name)
        return np.asarray(encoder.encode(sentences, normalize_embeddings=True), np.float32)

    teacher = encode(arguments.teacher)
    order = neighbour_order(teacher.astype(np.float16).astype(np.float32), np.random.default_rng(0))
    for name in arguments.models:
        print(f"{name}: {likeness(encode(name), teacher, order):.1f}", flush=True)


if __name__ == "__main__":
    main()
