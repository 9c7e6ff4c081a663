"""Labels of pairs: what is no paraphrase is not trained on, wherever the label comes from."""

import decimal
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paranmt_hf import Lexicon, PairSelection, distill
from paranmt_hf.cli import main
from paranmt_hf.corpus.reading.labels import paraphrase_labels
from paranmt_hf.corpus.reading.pairs import Pairs
from tests.cli.commands import SMALL
from tests.refused import refused

LEFT = [f"{word} x" for word in "abcdefgh"]
RIGHT = [f"{word} y" for word in "abcdefgh"]
LABELS = [1, 0, 1, 1, 0, None, 1, 1]
PARAPHRASES = ["a x", "c x", "d x", "g x", "h x"]
LEFT_OUT = {"pairs labelled as no paraphrases": 2, "pairs without a label": 1}
FORMS = {
    "integers": pa.array(LABELS, pa.int64()),
    # As pandas 3.1 writes a column of 0, 1 and missing values.
    "floats": pa.array([np.nan if label is None else float(label) for label in LABELS]),
    # As DuckDB 2.0 writes a column of 0.0 and 1.0.
    "decimals": pa.array([None if label is None else decimal.Decimal(label) for label in LABELS], pa.decimal128(2, 1)),
    "booleans": pa.array([None if label is None else bool(label) for label in LABELS]),
    "digits": pa.array([None if label is None else str(label) for label in LABELS]),
    # As pandas writes True and False into CSV files, where what is missing is empty.
    "words": pa.array(["" if label is None else str(bool(label)) for label in LABELS]),
    # As polars 2.1 writes text.
    "views": pa.array([None if label is None else f"{label}.0" for label in LABELS], pa.string_view()),
    "views of bytes": pa.array([None if label is None else f"{label}".encode() for label in LABELS], pa.binary_view()),
    "categories": pa.array([None if label is None else str(label) for label in LABELS]).dictionary_encode(),
}


def write(path, label="label", values=LABELS, sides=("reference", "translation")):
    pq.write_table(pa.table({sides[0]: LEFT, sides[1]: RIGHT, label: values}), path)
    return path


def references(pairs):
    return [row for table in pairs.batches() for row in table["reference"].to_pylist()]


@pytest.mark.parametrize("form", FORMS)
def test_labels_of_every_form_are_read(tmp_path, form):
    path = write(tmp_path / "p.parquet", values=FORMS[form])
    for whole in (False, True):
        pairs = Pairs([path], PairSelection(), all_columns=whole)
        assert references(pairs) == PARAPHRASES
        assert pairs.left_out_by == LEFT_OUT
        assert not whole or next(pairs.batches())["label"].to_pylist() == [1] * 5
    assert paraphrase_labels(FORMS[form], "", 0).to_pylist() == LABELS


@pytest.mark.parametrize(
    "values",
    [[5, *LABELS[1:]], [3.8, *LABELS[1:]], ["entailment"] * 8, [-1] * 8, [["1"]] * 8],
    ids=["marks", "similarities", "names", "hidden", "lists"],
)
def test_other_values_are_refused(tmp_path, values):
    path = write(tmp_path / "p.parquet", values=values)
    with refused("columns", path=path):
        references(Pairs([path], PairSelection()))


def test_columns_are_named(tmp_path):
    # The columns of QQP, and a column of the name that is not asked for.
    path = write(tmp_path / "p.parquet", "is_duplicate", sides=("question1", "question2"))
    names = {"reference": "question1", "translation": "question2"}
    named = Pairs([path], PairSelection(), columns={**names, "label": "is_duplicate"})
    assert references(named) == PARAPHRASES and named.left_out_by == LEFT_OUT
    plain = Pairs([path], PairSelection(), columns=names)
    assert references(plain) == LEFT
    assert plain.identity != named.identity


@pytest.mark.parametrize("name", ["Label", "labels", "Is_Duplicate", "isDuplicate"])
def test_a_column_that_is_spelt_otherwise_is_advised(tmp_path, name, caplog):
    """It would be silently taken for a column of anything else, and its pairs for paraphrases."""
    path = write(tmp_path / "p.parquet", name, sides=("sentence1", "sentence2"))
    columns = {"reference": "sentence1", "translation": "sentence2"}
    Pairs([path], PairSelection(), columns=columns)
    assert f"label={name}" in caplog.text
    with refused("columns") as caught:
        Pairs([path], PairSelection())
    assert f"reference=sentence1,translation=sentence2,label={name}" in str(caught.value)


@pytest.mark.parametrize("name", ["p.parquet", "p.csv", "p.tsv"])
def test_commands_without_columns_of_pairs_advise_an_import(tmp_path, name):
    """The columns of `distill` are those of its text, and `lexicon build` has none."""
    path, text = tmp_path / name, tmp_path / "text.txt"
    text.write_text("a dog runs\n")
    if name == "p.tsv":
        # Without names, and with 0 and 1 that may be labels or scores.
        path.write_text("a dog runs\tthe dog runs\t1\na cat\tthe cat\t0\n")
    elif name == "p.csv":
        path.write_text("sentence1,sentence2,same\na dog runs,the dog runs,1\n")
    else:
        write(path, sides=("sentence1", "sentence2"))
    with refused("columns", path=path) as of_distill:
        distill(out=tmp_path / "encoder", text=text, data=path)
    with refused("columns", path=path) as of_lexicon:
        Lexicon.build(path, tmp_path / "lexicon")
    assert all(f"paranmt import {path}" in str(error.value) for error in (of_distill, of_lexicon))


def test_two_columns_of_labels_are_refused(tmp_path):
    names = ["reference", "translation", "label", "label"]
    table = pa.Table.from_arrays([pa.array(LEFT), pa.array(RIGHT), pa.array(LABELS), pa.array(LABELS)], names=names)
    pq.write_table(table, tmp_path / "p.parquet")
    with refused("columns", path=tmp_path / "p.parquet"):
        Pairs([tmp_path / "p.parquet"], PairSelection())


@pytest.mark.slow
def test_the_record_and_the_card_count_them(tmp_path):
    path = write(tmp_path / "p.parquet")
    assert main(["train", "--data", str(path), "--out", str(tmp_path / "out"), *SMALL]) == 0
    record = json.loads((tmp_path / "out" / "training.json").read_text())
    assert record["pairs"] == 5 and record["left_out"] == LEFT_OUT
    assert "2 pairs labelled as no paraphrases" in (tmp_path / "out" / "README.md").read_text()


def test_a_label_that_is_named_counts_beside_a_column_label(tmp_path):
    rows = ["a\tb\tlabel\tgold", "x one\ty one\t0\t1", "x two\ty two\t1\t0"]
    (tmp_path / "p.tsv").write_text("\n".join(rows) + "\n")
    pairs = Pairs(
        [tmp_path / "p.tsv"], PairSelection(), columns={"reference": "a", "translation": "b", "label": "gold"}
    )
    assert [table["reference"].to_pylist() for table in pairs.batches()] == [["x one"]]
