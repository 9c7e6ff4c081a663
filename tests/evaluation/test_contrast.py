"""The contrast set."""

from collections import Counter

import numpy as np
import pytest

from paranmt_hf.cli import main
from paranmt_hf.evaluation.contrast import evaluate_contrast, read_triples, wilson_interval
from tests.cli.commands import fails
from tests.refused import refused

HEADER = "kind\tsentence\tparaphrase\tother\n"


class Table:
    """An encoder that looks vectors up."""

    vectors = {"s": [1, 0], "p": [0.8, 0.6], "o": [0.6, 0.8], "same": [2, 0]}

    def encode(self, sentences):
        return np.array([self.vectors[sentence] for sentence in sentences], np.float32)


def write(path, *rows):
    path.write_text(HEADER + "".join("\t".join(row) + "\n" for row in rows), encoding="utf8")
    return path


def test_by_hand(tmp_path):
    rows = [("number", "s", "p", "o"), ("name", "s", "o", "p"), ("number", "s", "same", "s")]
    (result,) = evaluate_contrast(Table(), data=write(tmp_path / "t.tsv", *rows))
    found = result.tables["Kind"]
    assert [(row.name, row.items) for row in found] == [("number", 2), ("name", 1), ("all", 3)]
    # Of the three one is closer; the third is as close, which does not count.
    assert [row["closer"] for row in found] == [0.5, 0, 1 / 3]
    assert [row["cosine_difference"] for row in found] == pytest.approx([0.1, -0.2, 0], abs=1e-7)


@pytest.mark.parametrize(("count", "total"), [(0, 45), (20, 45), (45, 45), (1, 1)])
def test_the_ends_of_the_interval_are_where_the_share_is_just_not_surprising(count, total):
    """Wilson's bounds are the shares p at which |count / total - p| is 1.96 standard deviations of a share."""
    low, high = wilson_interval(count, total)
    for bound in (low, high):
        if 0 < bound < 1 and bound != count / total:
            deviation = np.sqrt(bound * (1 - bound) / total)
            assert abs(count / total - bound) / deviation == pytest.approx(1.96, abs=1e-3)
    assert (low == 0) == (count == 0) and (high == 1) == (count == total)


def test_the_own_triples():
    triples = read_triples()
    assert Counter(triples.kinds) == dict.fromkeys(("number", "negation", "name", "direction"), 45)
    columns = (triples.sentences, triples.paraphrases, triples.others)
    assert all(len({*row}) == 3 for row in zip(*columns, strict=True))
    assert len({*triples.sentences}) == 180
    with refused():
        read_triples("nowhere.tsv")


@pytest.mark.parametrize(
    "text",
    [
        "a\tb\n",
        HEADER.replace("kind", "sort"),
        HEADER,
        HEADER + "number\ta\tb\n",
        HEADER + "number\ta\t \tb\n",
        HEADER + "all\ta\tb\tc\n",
    ],
)
def test_what_is_wrong_with_a_file(tmp_path, text):
    (tmp_path / "t.tsv").write_text(text)
    with refused():
        read_triples(tmp_path / "t.tsv")


def test_names_of_columns_in_any_case(tmp_path):
    (tmp_path / "t.tsv").write_text("Kind\tSentence\tParaphrase\tOther\nnumber\ta\tb\tc\n")
    assert read_triples(tmp_path / "t.tsv").others == ["c"]


def test_command(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["evaluate", "contrast", "small", "--json", "c.json"]) == 0
    out = capsys.readouterr().out
    assert [line.split()[1] for line in out.splitlines()[4:9]] == ["number", "negation", "name", "direction", "all"]
    assert '"items": 180' in (tmp_path / "c.json").read_text()
    with refused("models"):
        evaluate_contrast([])
    fails(capsys, ["evaluate", "contrast", "small", "--data", "none.tsv"], "none.tsv")
