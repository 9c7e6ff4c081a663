"""The programs of tables and figures of the papers, run small."""

import runpy
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paranmt_hf import ReleaseConfig
from tests.evaluation.toys import WORDS, write_all
from tests.toys import scored_release
from tests.training.toys import synonyms

PAPERS = Path(__file__).parents[1] / "benchmarks" / "papers"
ROWS = 120
FAST = "dimension=16 batch-size=10 mega-batch=2 learning-rate=0.05 epochs=6".split()
pytestmark = pytest.mark.slow


@pytest.fixture
def program(monkeypatch, capsys):
    """Run a program and return what it printed."""
    monkeypatch.setattr(sys, "path", [str(PAPERS), *sys.path])

    def run(name, *arguments):
        runpy.run_path(str(PAPERS / f"{name}.py"))["main"]([str(argument) for argument in arguments])
        return capsys.readouterr().out

    return run


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """Pairs whose translations are those of their references only from the score 0.5 on."""
    references, translations = synonyms(ROWS, seed=1)
    # In steps of 1/60, each score twice, in no order.
    scores = np.random.default_rng(1).permutation(np.repeat(np.arange(60) / 60, 2)).astype(np.float32)
    shuffled = translations[1:] + translations[:1]
    made = [good if score >= 0.5 else bad for good, bad, score in zip(translations, shuffled, scores, strict=True)]
    columns = {"reference": references, "translation": made, "para_score": pa.array(scores)}
    columns["origin"] = ["good" if score >= 0.5 else "bad" for score in scores]
    return scored_release(tmp_path_factory.mktemp("corpus") / "corpus", columns, ReleaseConfig(license="mit"))


@pytest.fixture(scope="module")
def development(tmp_path_factory):
    """Twenty pairs that mean the same, and twenty that do not."""
    left, right = synonyms(40, seed=7)
    other = right[20:][1:] + right[20:][:1]
    scores = [5.0] * 20 + [0.0] * 20
    lines = [f"{score}\t{a}\t{b}\n" for score, a, b in zip(scores, left, right[:20] + other, strict=True)]
    path = tmp_path_factory.mktemp("development") / "pairs.tsv"
    path.write_text("".join(lines))
    return path


def rows_of(printed):
    """The cells of each row of the tables that were printed."""
    lines = [line for line in printed.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_table_5(program, corpus, development, tmp_path):
    words = [corpus, "--out", tmp_path / "out", "--models", "word", "--development", development]
    words += ["--scores", "para_score", "--folds", 4, "--training", *FAST, "max-pairs=25"]
    printed = program("paranmt_table5", *words)
    details = [row for row in rows_of(printed) if row[0] == "para_score" and row[1] in "1234"]
    # 120 rows, each score twice: a fold holds fifteen scores.
    ends = [(round(60 * float(row[2])), round(60 * float(row[3]))) for row in details]
    assert ends == [(0, 14), (15, 29), (30, 44), (45, 59)]
    assert [row[4:7] for row in details] == [["30", "30", "25"]] * 4
    means = [float(row[-1]) for row in details]
    assert min(means[2:]) > 60 > max(means[:2])
    # What was trained is found again.
    assert program("paranmt_table5", *words) == printed


def test_table_4(program, corpus, development, tmp_path):
    words = [corpus, "--out", tmp_path / "out", "--models", "word", "--development", development]
    rows = rows_of(program("paranmt_table4", *words, "--training", *FAST, "max-pairs=40"))
    found = {row[0]: row[1:] for row in rows if row[0] in ("good", "bad")}
    assert [found[name][:2] for name in ("good", "bad")] == [["60", "40"]] * 2
    assert float(found["good"][-1]) > 60 > float(found["bad"][-1])


def test_table_6(program, corpus, development, tmp_path):
    words = [corpus, "--out", tmp_path / "out", "--models", "word", "--development", development]
    rows = rows_of(program("paranmt_table6", *words, "--training", "dimension=16", "epochs=1"))
    assert [row[:2] for row in rows if row[0].isdigit()] == [["1", "120"], ["20", "120"], ["40", "120"]]
    encoders = sorted(path.name for path in (tmp_path / "out").iterdir() if path.is_dir())
    assert encoders == ["M-1-word", "M-20-word", "M-40-word"]


def test_sizes(program, corpus, development, tmp_path):
    words = [corpus, "--models", "word", "--development", development, "--sizes", 20, 5000, "--training", *FAST]
    found = {}
    for order in ("given", "random"):
        rows = rows_of(program("paragram_figure1", *words, "--out", tmp_path / order, "--order", order))
        found[order] = {row[0]: row[-1] for row in rows if row[0].isdigit()}
        assert list(found[order]) == ["20", "120"]
    # The same pairs, in whatever order.
    assert found["given"]["120"] == found["random"]["120"]


def test_fixed_vectors_as_features(program, tmp_path):
    write_all(tmp_path / "senteval", items=20)
    texts = [f"{word} of number {item}" for word in WORDS for item in range(4)]
    pq.write_table(pa.table({"reference": texts, "translation": texts[::-1]}), tmp_path / "pairs.parquet")
    words = [tmp_path / "pairs.parquet", "--data", tmp_path / "senteval", "--out", tmp_path / "out"]
    words += ["--tasks", "SICK-R", "--dimension", 4, "--epochs", 1, "--projections", 6, "--lambdas", 0.1, 1e-4]
    rows = rows_of(program("paragram_table6", *words))
    assert [row[0] for row in rows[-2:]] == ["PARAGRAM-PHRASE", "projection to 6"]
    assert all(-100 <= float(row[1]) <= 100 for row in rows[-2:])
    # Two optimizers and two values of lambda_s were tried for each encoder.
    assert len(list((tmp_path / "out").glob("SICK-R-*"))) == 8


@pytest.fixture
def spaces(tmp_path):
    """Three words whose order by norm and by neighbourhood is known."""
    (tmp_path / "v.txt").write_text("the 1 0\ncat 0 2\ndog 0.1 3\nrare 4 4\n")
    (tmp_path / "counts.txt").write_text("the 1000\ncat 100\ndog 10\nrare 1\n")
    return tmp_path / "v.txt", tmp_path / "counts.txt"


def test_neighbours(program, spaces):
    rows = rows_of(program("paragram_table8", spaces[0], "--frequencies", spaces[1], "--words", "cat", "--top", 2))
    # cos(cat, dog) = 3 / sqrt(9.01), cos(cat, rare) = 1 / sqrt(2).
    assert rows[-2:] == [["1", "dog 1.00"], ["2", "rare 0.71"]]


def test_norms(program, spaces, tmp_path, drawing):
    printed = program("paragram_section6", spaces[0], "--frequencies", spaces[1])
    # Rarer words have longer vectors, without exception.
    assert [row[1:3] for row in rows_of(printed)[-2:]] == [["l1", "100.0"], ["l2", "100.0"]]
    assert "l2, largest: rare, dog, cat, the; smallest: the, cat, dog, rare." in printed
    program("sent2vec_figure1", spaces[0], "--frequencies", spaces[1], "--picture", tmp_path / "norms.png")
    assert (tmp_path / "norms.png").read_bytes().startswith(b"\x89PNG")


def test_lengths(program, tmp_path):
    lines = ["5\ta\ta", "0\ta\tb", "4\ta b c d e\ta b c d e", "1\ta b c d e\tf g h i j"]
    (tmp_path / "pairs.tsv").write_text("\n".join(lines) + "\n")
    vectors = "".join(f"{letter} {number} {number**2 % 7}\n" for number, letter in enumerate("abcdefghij", 1))
    (tmp_path / "v.txt").write_text(vectors)
    printed = program("paragram_table7", "--vectors", tmp_path / "v.txt", "--data", tmp_path / "pairs.tsv")
    # Two pairs of one word and two of five words: each correlation is that of two points.
    assert rows_of(printed)[-1][1:] == ["100.0", "100.0", "", "", "", "", "", rows_of(printed)[-1][-1]]


def test_under_trained_words(program, spaces, tmp_path):
    (tmp_path / "one.tsv").write_text("5\tthe cat\tthe cat\n0\tthe cat\trare dog\n3\tcat\tdog\n")
    words = ["small", "--data", tmp_path / "one.tsv", "--training", spaces[1], "--at-least", 100]
    rows = rows_of(program("paragram_section5", *words))
    # Of ten tokens dog occurs twice and rare once.
    assert ["one", "30.0"] in [row[:2] for row in rows]
