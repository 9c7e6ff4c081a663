"""Who wrote a sentence: the classifier finds what is there to find, and nothing else."""

import re

import numpy as np
import pytest

from benchmarks.papers import human_score
from benchmarks.papers.human_score import human_scores
from paranmt_hf import ReleaseConfig, import_pairs
from tests.toys import LOCAL

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def texts():
    """200 references of random words, three times each; a machine writes 'of' for every fourth word."""
    generator = np.random.default_rng(0)
    words = [f"w{number}" for number in range(300)]
    references = [" ".join(generator.choice(words, 8)) for _ in range(200) for _ in range(1)]
    references = [reference for reference in references for _ in range(3)]
    machine = [" ".join("of" if i % 4 == 3 else w for i, w in enumerate(r.split())) for r in references]
    return references, machine


def test_it_finds_what_tells_the_sides_apart(texts):
    human, machine = human_scores(*texts, folds=3)
    assert np.mean(human > 0.5) > 0.95 and np.mean(machine <= 0.5) > 0.95
    assert np.mean(human > machine) > 0.99


def test_nothing_to_find_is_chance(texts):
    """Both sides are drawn alike. A classifier that had seen a reference would know it again."""
    generator = np.random.default_rng(1)
    other = [" ".join(generator.permutation(reference.split())) for reference in texts[0][::3]]
    human, machine = human_scores(texts[0][::3] * 3, other * 3, folds=3)
    assert 0.4 < (np.mean(human > 0.5) + np.mean(machine <= 0.5)) / 2 < 0.6


def test_figures_of_a_corpus(texts, tmp_path, capsys):
    lines = (f"{reference}\t{translation}\t0.5\n" for reference, translation in zip(*texts, strict=True))
    (tmp_path / "pairs.tsv").write_text("".join(lines))
    corpus = tmp_path / "corpus"
    import_pairs(tmp_path / "pairs.tsv", corpus, release=ReleaseConfig(license="mit"), engine=LOCAL)
    human_score.main([str(corpus), "--write", str(tmp_path / "scores.tsv")])
    found = re.fullmatch(r"600 pairs: (.+)% of the .* first in (.+)%\n", capsys.readouterr().out)
    assert found and float(found[1]) > 95 and float(found[2]) > 99
    rows = [line.split("\t") for line in (tmp_path / "scores.tsv").read_text().splitlines()]
    assert rows[0] == ["id", "human_score"] and [int(row[0]) for row in rows[1:]] == list(range(600))
    assert np.mean([float(row[1]) for row in rows[1:]]) < 0.2
