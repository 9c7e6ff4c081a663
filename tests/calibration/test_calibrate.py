"""Calibrating an encoder: the fit, cross-validation, rated pairs of every kind, and the folder."""

import csv
import json
import logging

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paranmt_hf import Calibration, InputError, calibrate, load, publish
from paranmt_hf.calibration.calibrate import calibration_error, folds_of, isotonic, reliability
from paranmt_hf.calibration.rated_pairs import PAIRS, read_rated_pairs
from paranmt_hf.cli import main
from paranmt_hf.encoders.model_folder import copy_model
from paranmt_hf.hub.repository import ASSETS, locate
from tests.refused import refused
from tests.toys import bytes_of


def pool_adjacent_violators(cosines, positive):
    """The fit by its definition: neighbours that do not ascend are averaged."""
    blocks = [[float(value), 1] for _, value in sorted(zip(cosines, positive, strict=True))]
    index = 0
    while index < len(blocks) - 1:
        if blocks[index][0] > blocks[index + 1][0]:
            (left, m), (right, n) = blocks[index : index + 2]
            blocks[index : index + 2] = [[(left * m + right * n) / (m + n), m + n]]
            index = max(0, index - 1)
        else:
            index += 1
    return [value for value, count in blocks for _ in range(count)]


def test_fit_is_pool_adjacent_violators():
    generator = np.random.default_rng(3)
    cosines = generator.permutation(60) / 60
    positive = generator.random(60) < cosines
    # One more pair at each end.
    wanted = pool_adjacent_violators([-1, *cosines, 2], [1, *positive, 0])[1:-1]
    corners = isotonic(cosines, positive)
    np.testing.assert_allclose(np.interp(np.sort(cosines), *zip(*corners, strict=True)), wanted, atol=1e-5)
    assert 0 < corners[0][1] and corners[-1][1] < 1


def test_many_pairs_do_not_reach_0_and_1():
    # As six digits are too few for millions of pairs.
    assert isotonic(np.repeat([0.1, 0.9], 300), np.repeat([0, 1], 300), digits=2) == [(0.1, 0.01), (0.9, 0.99)]


def test_calibration_error_by_hand():
    probabilities, positive = np.array([0.1, 0.3, 0.6, 0.9]), np.array([0, 1, 1, 1])
    bins = reliability(probabilities, positive, 2)
    assert bins == [(0.2, 0.5, 2), (0.75, 1.0, 2)] and calibration_error(bins) == pytest.approx(0.275)
    generator = np.random.default_rng(1)
    probabilities = generator.random(100_000)
    right, wrong = (generator.random(100_000) < chance for chance in (probabilities, probabilities**2))
    assert calibration_error(reliability(probabilities, right)) < 0.01
    assert calibration_error(reliability(probabilities, wrong)) > 0.1


def test_folds_share_no_sentence():
    left, right = [f"a{n // 3}" for n in range(90)], [f"b{n // 2}" for n in range(90)]
    parts = list(folds_of(left + ["x"] * 20, right + [f"y{n}" for n in range(20)], 5, seed=1))
    assert sorted(np.concatenate(parts)) == list(range(110))
    both = [
        {*np.array(left + ["x"] * 20)[part], *np.array(right + [f"y{n}" for n in range(20)])[part]} for part in parts
    ]
    assert sum(map(len, both)) == len(set.union(*both))
    with pytest.raises(InputError):
        list(folds_of(["a", "a"], ["b", "c"], 5, seed=1))


@pytest.mark.slow
def test_carried_calibrations_are_those_of_the_pairs(tmp_path):
    for name in ("small", "base"):
        found, carried = calibrate(name, out=tmp_path / name).record, Calibration.read(ASSETS / name)
        assert found.settings == carried.settings and (found.pairs, found.positives) == (558, 279)
        grid = np.linspace(-1, 1, 50)
        np.testing.assert_allclose(found.probability(grid), carried.probability(grid), atol=0.02)


@pytest.mark.slow
def test_folder_loads_and_is_found_again(tmp_path):
    made = calibrate("small", out=tmp_path / "one", ratings=["sample"])
    before = bytes_of(tmp_path / "one")
    assert made.fresh and not calibrate("small", out=tmp_path / "one", ratings=["sample"]).fresh
    assert bytes_of(tmp_path / "one") == before
    loaded, source = made.load(), load("small")
    np.testing.assert_array_equal(loaded.encode("a dog"), source.encode("a dog"))
    assert loaded.calibration == made.record != source.calibration
    assert made.record.settings.data[0].positives == made.record.positives == 12
    with refused("out"):
        calibrate("small", out=tmp_path / "one", ratings=["sample"], positive=3.0)
    # Calibrated again, it is as if the first calibration had never been.
    again = calibrate(tmp_path / "one", out=tmp_path / "two")
    assert again.record.knots == source.calibration.knots
    files = publish(tmp_path / "two", "you/two", license="mit", dry_run=True)
    assert {"calibration.json", "calibration.png"} <= files.repository.sizes.keys() and "## Calibration" in files.card
    assert not [path for path in files.left_here if path.startswith(("README", "calibration"))]


@pytest.mark.slow
def test_published_files_are_those_of_the_calibration(tmp_path):
    copy_model(locate("small"), tmp_path / "own")
    (tmp_path / "own" / "notes.txt").write_text("not published, so the published encoder has other files")
    made = calibrate(tmp_path / "own", out=tmp_path / "one")
    with refused(path=made.folder):
        publish(made.folder, "you/one", license="mit", dry_run=True)


def rated(tmp_path):
    """The same pairs in every form."""
    pairs = read_rated_pairs(PAIRS["en"], 4)
    left, right, labels = pairs.left[:60], pairs.right[:60], pairs.positive[:60].astype(int).tolist()
    columns = {"reference": left, "translation": right}
    pq.write_table(pa.table({**columns, "label": pa.array(labels, pa.int32())}), tmp_path / "labels.parquet")
    (tmp_path / "scores.tsv").write_text(
        "".join(f"{5 * a}\t{b}\t{c}\n" for a, b, c in zip(labels, left, right, strict=True))
    )
    with (tmp_path / "answers.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["sample", "item", "annotator", "strength", "reference", "translation"])
        for item, (label, one, two) in enumerate(zip(labels, left, right, strict=True)):
            # Two people, whose mean is the score, and one who skipped the pair.
            for name, strength in (("Ada", 5 if label else 3), ("Grace", 4 if label else 4), ("Max", "")):
                writer.writerow(["s1", item, name, strength, one, f"'{two}" if item == 3 else two])
    return left, right, labels


@pytest.mark.parametrize("name", ["labels.parquet", "scores.tsv", "answers.csv"])
def test_rated_pairs_of_every_kind(tmp_path, name):
    left, right, labels = rated(tmp_path)
    found = read_rated_pairs(tmp_path / name, 4.0)
    assert (found.left, found.right, found.positive.astype(int).tolist()) == (left, right, labels)


def test_pairs_without_a_label_are_counted(tmp_path):
    rows = [("a", "b", "1"), ("c", "d", ""), ("e", "f", "0"), ("g", "", "0")]
    text = "".join(f"{first},{second},{label}\n" for first, second, label in rows)
    (tmp_path / "p.csv").write_text(f"one,two,same\n{text}")
    columns = {"reference": "one", "translation": "two", "label": "same"}
    found = read_rated_pairs(tmp_path / "p.csv", 4.0, columns)
    assert (found.left, found.positive.tolist()) == (["a", "e"], [True, False])
    assert found.left_out == {"without a label": 1, "empty": 1}
    with refused("columns"):
        read_rated_pairs(tmp_path / "p.csv", 4.0, {"reference": "one", "translation": "two"})


def test_two_columns_of_labels_are_refused(tmp_path):
    names, column = ["reference", "translation", "label", "label"], pa.array(["1", "0"])
    pq.write_table(pa.Table.from_arrays([column] * 4, names=names), tmp_path / "p.parquet")
    with refused("columns", path=tmp_path / "p.parquet"):
        read_rated_pairs(tmp_path / "p.parquet", 4.0)


def test_the_columns_of_pairs_without_scores_are_named(tmp_path, caplog):
    """As the Microsoft Research Paraphrase Corpus names them."""
    path = tmp_path / "train.txt"
    path.write_text("Quality\t#1 ID\t#2 ID\t#1 String\t#2 String\n1\t7\t8\tA dog runs.\tThe dog runs.\n")
    caplog.set_level(logging.INFO)
    with refused("columns", path=path) as error:
        read_rated_pairs(path, 4.0)
    assert "'reference=#1 String,translation=#2 String,label=Quality'" in str(error.value)
    columns = {"reference": "#1 String", "translation": "#2 String", "label": "Quality"}
    found = read_rated_pairs(path, 4.0, columns)
    assert (found.left, found.right, found.positive.tolist()) == (["A dog runs."], ["The dog runs."], [True])
    assert sum("line 1" in record.getMessage() for record in caplog.records) == 1


def test_scores_in_another_spelling_count_next_to_labels(tmp_path):
    path = tmp_path / "rated.tsv"
    path.write_text("Similarity Score\tsentence1\tsentence2\tQuality\n5\tA dog runs.\tThe dog runs.\t1\n2\tA\tB\t0\n")
    assert read_rated_pairs(path, 4.0).positive.tolist() == [True, False]


@pytest.mark.parametrize("name", ["label", "Label"])
def test_the_columns_of_pairs_with_labels_are_named(tmp_path, name):
    """And not imported first, which would leave out the pairs that are no paraphrases."""
    path = tmp_path / "pairs.csv"
    path.write_text(f"sentence1,sentence2,{name}\na dog runs,the dog runs,1\n")
    with refused("columns", path=path) as error:
        read_rated_pairs(path, 4.0)
    assert f"label={name}" in str(error.value)


def test_release_with_labels(tmp_path, release):
    with pytest.raises(InputError):
        read_rated_pairs(release, 4.0)


def test_bad_input(tmp_path):
    (tmp_path / "empty.tsv").write_text("")
    (tmp_path / "columns.csv").write_text("a,b\n1,2\n")
    (tmp_path / "labels.tsv").write_text("label\treference\ttranslation\nyes\ta\tb\n")
    (tmp_path / "one.tsv").write_text("label\treference\ttranslation\n" + "1\ta\tb\n" * 30)
    (tmp_path / "names.tsv").write_text("label\tfirst\tsecond\n1\ta\tb\n")
    for name in ("empty.tsv", "columns.csv", "labels.tsv", "one.tsv", "names.tsv", "missing.tsv"):
        with pytest.raises(InputError):
            calibrate("small", out=tmp_path / "out", ratings=[tmp_path / name])
    assert not (tmp_path / "out").exists() and not (tmp_path / "out.work").exists()
    assert main(["calibrate", "small", "--out", str(tmp_path / "out"), "--ratings", "sample"]) == 0
    assert json.loads((tmp_path / "out" / "calibration.json").read_text())["pairs"] == 40
