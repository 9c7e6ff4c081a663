"""How many near-duplicates `dedup` finds at each threshold, beside the comparison of every text with every other."""

import numpy as np
import pyarrow.parquet as pq
import pytest

from paranmt_hf import dedup
from paranmt_hf.search.dedup import DedupConfig
from paranmt_hf.text.definitions import words

THRESHOLDS = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
WORDS = [f"{first}{last}" for first in "bdfgklmnprst" for last in ("a", "el", "ing", "or", "us")]


def made_texts(count=1200, seed=1):
    """Sentences of which half are an earlier one with some words changed, a few or nearly all."""
    random, made = np.random.default_rng(seed), []
    for _ in range(count):
        own = list(random.choice(WORDS, random.integers(15, 120)))
        if made and random.random() < 0.5:
            own = made[random.integers(len(made))].split()
            for place in random.choice(len(own), random.integers(1, 9), replace=False):
                own[place] = random.choice(WORDS)
        made.append(" ".join(own))
    return made


def dropped_by_all(texts, threshold):
    """Lines whose word bigrams are like those of an earlier line that is kept, by comparing it with all of them."""
    sets, holders, kept, dropped = [], {}, set(), set()
    for line, text in enumerate(texts):
        own = words(text)
        sets.append(set(zip(own, own[1:], strict=False)) or set(own))
        others = {other for bigram in sets[line] for other in holders.get(bigram, ()) if other in kept}
        alike = [other for other in others if jaccard(sets[line], sets[other]) >= threshold]
        (dropped if alike else kept).add(line)
        for bigram in sets[line]:
            holders.setdefault(bigram, []).append(line)
    return dropped


def jaccard(one, other):
    return len(one & other) / len(one | other)


def check(texts, threshold, folder):
    (folder / "in.txt").write_text("".join(f"{text}\n" for text in texts), encoding="utf8")
    dedup(folder / "in.txt", folder / "out.txt", config=DedupConfig(by=("near",), similarity=threshold))
    kept = set((folder / "out.txt").read_text(encoding="utf8").splitlines())
    expected = dropped_by_all(texts, threshold)
    found = {line for line, text in enumerate(texts) if text not in kept}
    assert len(found & expected) >= 0.97 * len(expected)
    # A text may go although it is like one that should have gone, too.
    assert len(found - expected) <= 0.01 * len(expected)
    return len(expected)


@pytest.mark.slow
@pytest.mark.parametrize("threshold", THRESHOLDS)
def test_97_percent_are_found_at_each_threshold(threshold, tmp_path):
    assert check(list(dict.fromkeys(made_texts())), threshold, tmp_path) > 10


@pytest.mark.slow
@pytest.mark.parametrize("threshold", (0.3, 0.5, 0.7))
def test_97_percent_of_real_texts_are_found_at_each_threshold(threshold, tmp_path, shared_data):
    translations = pq.read_table(shared_data / "pairs" / "machine-translations.parquet", columns=["translation"])
    texts = [" ".join(text.split()) for text in translations["translation"].slice(0, 2000).to_pylist()]
    assert check(list(dict.fromkeys(texts)), threshold, tmp_path) > 100
