"""SICK and PIT as sets of pairs, and tables with the rows and columns of the sibling papers."""

import numpy as np
import pytest

from paranmt_hf import evaluate
from paranmt_hf.evaluation.correlation import pearson, spearman
from paranmt_hf.evaluation.sts_data import read_sts
from tests.evaluation.toys import DIAGONAL, SICK_HEADER, Plane, write, write_senteval
from tests.refused import refused

ROWS = [("5", "x", "x"), ("1", "x", "y"), ("2", "x", "d"), ("0", "y", "w")]
COSINES = [1, 0, DIAGONAL, 0]


def write_sick(folder, train=(("5.0", "x", "x"), ("1.0", "x", "y")), test=(("4.0", "x", "x"), ("2", "x", "y"))):
    for name, rows in (("SICK_train.txt", train), ("SICK_test_annotated.txt", test)):
        lines = [f"{n}\t{left}\t{right}\t{score}\tNEUTRAL" for n, (score, left, right) in enumerate(rows)]
        write(folder / name, [SICK_HEADER, *lines])


def write_pit(folder, labels="5210"):
    rows = [
        f"7\ttopic\t{left}\t{right}\t{label}\ttag\ttag"
        for label, (_, left, right) in zip(labels, ROWS[: len(labels)], strict=True)
    ]
    write(folder / "test.data", rows)


@pytest.fixture
def data(tmp_path):
    folder = tmp_path / "sts"
    write_senteval(folder / "STS12-en-test", "MSRpar", ROWS)
    write_senteval(folder / "STS12-en-test", "MSRvid", [("0", *ROWS[0][1:]), *ROWS[1:]])
    write_senteval(folder / "STS14-en-test", "deft-news", ROWS)
    write_senteval(folder / "STS14-en-test", "OnWN", [*ROWS[:3], ("3", "y", "w")])
    write_sick(tmp_path / "sick")
    write_pit(tmp_path / "pit")
    return tmp_path


def test_sick_and_pit(data):
    (sick,) = read_sts(data / "sick")
    assert (sick.name, sick.gold.tolist(), sick.left, sick.right) == ("SICK", [5, 1, 4, 2], ["x"] * 4, ["x", "y"] * 2)
    assert {part: mask.tolist() for part, mask in sick.subsets.items()} == {
        "train": [True, True, False, False],
        "test": [False, False, True, True],
    }
    (pit,) = read_sts(data / "pit")
    assert (pit.name, pit.gold.tolist(), pit.right) == ("Twitter", [5, 2, 1, 0], ["x", "y", "d", "w"])
    assert {each.name for each in read_sts(data)} == {"SICK", "Twitter"}, "as folders in a folder"
    with refused():
        evaluate(Plane(), data=[data / "sick", data / "sick"])


def test_damaged_sick_and_pit(data):
    path = data / "sick" / "SICK_train.txt"
    path.write_text("1\ta\tb\t3\tNEUTRAL\n")
    with refused():
        read_sts(data / "sick")
    path.write_text(f"{SICK_HEADER}\n1\ta\tb\tmuch\tNEUTRAL\n")
    with refused():
        read_sts(data / "sick")
    path.write_text(f"{SICK_HEADER}\n1\ta\tb\n")
    with refused():
        read_sts(data / "sick")
    path.unlink()
    (sick,) = read_sts(data / "sick")
    assert list(sick.subsets) == ["test"] and len(sick) == 2
    (data / "pit" / "test.data").write_text("7\ttopic\tx\ty\t(3, 2)\ttag\ttag\n")
    with refused():
        read_sts(data / "pit")


def table_of(data, name, models=("plane",)):
    """A table of `evaluate`: its rows by their first cell, the first of which has the heading, and what is below."""
    found = evaluate(dict.fromkeys(models, Plane()), data=data, tables=[name], bootstrap=0).summary()
    (text,) = [block for block in found.split("\n\n") if "STS12 mean" in block or "Average of STS14" in block]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.split("\n")]
    missing = [block for block in found.split("\n\n") if block.startswith("Missing in the data")]
    return {row[0]: row[1:] for row in rows}, "".join(missing)


def test_the_table_of_22_sets(data):
    rows, missing = table_of([data / "sts", data / "sick", data / "pit"], "paragram", ("one", "two"))
    first, second = (100 * pearson(COSINES, gold) for gold in ([5, 1, 2, 0], [0, 1, 2, 0]))
    assert rows["Pearson x 100"] == ["50 %", "75 %", "best", "one", "two"]
    assert rows["STS12 MSRpar"] == ["51.5", "57.6", "73.4"] + [f"{first:.1f}"] * 2
    assert rows["STS12 MSRvid"] == ["75.5", "80.3", "88.0"] + [f"{second:.1f}"] * 2
    assert rows["STS12 SMTeuroparl"] == ["44.4", "48.1", "56.7"] + ["missing"] * 2
    assert rows["STS13 mean, 0 of 4 sets"] == ["missing"] * 5 and rows["STS15 belief"][3:] == ["missing"] * 2
    # (51.5 + 75.5) / 2, (57.6 + 80.3) / 2, (73.4 + 88.0) / 2.
    assert rows["STS12 mean, 2 of 5 sets"] == ["63.5", "69.0", "80.7"] + [f"{(first + second) / 2:.1f}"] * 2
    assert rows["SICK test"][3:] == ["100.0"] * 2
    fourth, pit = (100 * pearson(COSINES, gold) for gold in ([5, 1, 2, 3], [5, 2, 1, 0]))
    assert rows["Twitter"][3:] == [f"{pit:.1f}"] * 2
    assert rows["Mean, 6 of 22 sets"][3:] == [f"{(first + second + first + fourth + 100 + pit) / 6:.1f}"] * 2
    assert missing.startswith("Missing in the data: STS12 SMTeuroparl, STS12 surprise.OnWN,")
    assert "Twitter." not in missing
    # The means of the systems that table 2 of arXiv:1511.08198 prints for each year.
    printed = {"STS12": (54.5, 59.5, 70.3), "STS13": (45.3, 51.4, 65.3), "STS14": (64.7, 71.4, 76.7)}
    for year, means in {**printed, "STS15": (70.2, 75.8, 80.2)}.items():
        systems = [row[:3] for title, row in rows.items() if title.startswith(year) and " mean" not in title]
        assert np.abs(np.array(systems, float).mean(axis=0) - means).max() < 0.06


def test_the_table_of_sent2vec(data):
    rows, missing = table_of([data / "sts", data / "sick"], "sent2vec")
    cells = dict(zip(rows["Spearman / Pearson"], rows["plane"], strict=True))

    def cell(gold, cosines=COSINES):
        return 100 * spearman(cosines, gold), 100 * pearson(cosines, gold)

    news, words, sick = cell([5, 1, 2, 0]), cell([5, 1, 2, 3]), cell([5, 1, 4, 2], [1, 0, 1, 0])
    for name, figures in (("News", news), ("WordNet", words), ("SICK train + test", sick)):
        assert cells[name] == "{:.1f} / {:.1f}".format(*figures)
    means = [sum(each) / 3 for each in zip(news, words, sick, strict=True)]
    assert cells["Mean of 3"] == "{:.1f} / {:.1f}".format(*means)
    # Of the first version, over the sets of 2014 alone.
    average = [sum(each) / 2 for each in zip(news, words, strict=True)]
    assert cells["Average of STS14, 2 of 6 sets (version 1)"] == "{:.1f} / {:.1f}".format(*average)
    assert list(cells).index("Average of STS14, 2 of 6 sets (version 1)") == 6
    assert cells["Forum"] == cells["Images"] == "missing"
    assert cells["SICK train"] == cells["SICK test"] == "100.0 / 100.0"
    assert missing == "Missing in the data: STS14 deft-forum, STS14 tweet-news, STS14 images, STS14 headlines."


def test_one_part_of_sick_is_not_both(data):
    """With the test part alone the column of both, and its part of the mean, are missing."""
    (data / "sick" / "SICK_train.txt").unlink()
    rows, missing = table_of([data / "sts", data / "sick"], "sent2vec")
    cells = dict(zip(rows["Spearman / Pearson"], rows["plane"], strict=True))
    assert cells["SICK train + test"] == cells["SICK train"] == "missing"
    assert cells["SICK test"] == "100.0 / 100.0"
    assert "Mean of 2" in cells
    assert missing.endswith("SICK, SICK train.")


@pytest.mark.parametrize("name", ["paragram", "sent2vec"])
def test_without_any_of_the_sets(data, name):
    write(data / "own.tsv", ["\t".join(row) for row in ROWS])
    rows, missing = table_of(data / "own.tsv", name)
    assert "missing" in str(rows) and missing.startswith("Missing in the data: ")
