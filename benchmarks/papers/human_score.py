"""Estimate which sentences of a corpus a person wrote, by a classifier that separates references from translations.

Wieting, Mallinson and Gimpel (2017, arXiv:1706.01847), section 3, and ParaNMT-50M (preprint), section 3, filter
back-translations by it. Theirs are neural; this one is a logistic regression over hashed words and pairs of
neighbouring words. It is cross-fitted: all pairs of one reference are in one fold, which is scored by the model that
learned from the other folds, so every figure is that of pairs that no model has seen.

    python benchmarks/papers/human_score.py paranmt50m --write scores.tsv

Prints two figures, for both of which 50 % is chance: the share of sentences that are classified correctly, and the
share of pairs whose reference gets the higher score. The file has a row for each pair: `id`, and `human_score`, the
probability that a person wrote the translation. It ranks the pairs; it is not calibrated.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import GroupKFold, cross_val_predict
from sklearn.pipeline import make_pipeline

import paranmt_hf

PENALTY = 1e-5  # Strength of the L2 penalty, which also sets the size of the steps


def human_scores(references: Sequence[str], translations: Sequence[str], folds: int = 5) -> np.ndarray:
    """Return the probability that a person wrote each reference and each translation, by a model of other pairs.

    Args:
        references: The references [pair].
        translations: The translations [pair].
        folds: Number of folds; each is scored by a model that learned from the others.

    Returns:
        Probabilities [side, pair], references first.
    """
    words = HashingVectorizer(n_features=2**22, ngram_range=(1, 2), token_pattern=r"\w+|[^\w\s]")
    classifier = SGDClassifier(loss="log_loss", alpha=PENALTY, average=True, random_state=0)
    found: Any = cross_val_predict(
        make_pipeline(words, classifier),
        [*references, *translations],
        np.repeat([1, 0], len(references)),
        groups=np.tile(np.unique(references, return_inverse=True)[1], 2),
        cv=GroupKFold(folds),
        method="predict_proba",
    )
    return found[:, 1].reshape(2, -1)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print how well the two sides are told apart, and write the scores."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", help="folder of a corpus, or its id on the Hub")
    parser.add_argument("--pairs", type=int, default=2_000_000, help="maximum number of pairs, the first ones")
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--write", type=Path, help="TSV file with the id and the score of each pair")
    options = parser.parse_args(arguments)
    rows = list(islice(paranmt_hf.stream(options.corpus, columns=["id", "reference", "translation"]), options.pairs))
    references = [row["reference"] for row in rows]
    human, machine = human_scores(references, [row["translation"] for row in rows], options.folds)
    right = (np.mean(human > 0.5) + np.mean(machine <= 0.5)) / 2
    ordered = np.mean(human > machine) + np.mean(human == machine) / 2
    print(f"{len(rows):,} pairs: {right:.1%} of the sentences classified correctly, references first in {ordered:.1%}")
    if options.write:
        lines = [f"{row['id']}\t{score:.4f}\n" for row, score in zip(rows, machine, strict=True)]
        options.write.write_text("id\thuman_score\n" + "".join(lines), encoding="utf8")


if __name__ == "__main__":
    main()
