"""Pairs of every format, with columns of any names: the same pairs are imported, trained on and searched."""

import csv
import gzip
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datasets import ClassLabel, Dataset, Features, Value

from paranmt_hf import PairSelection, ReleaseConfig, import_pairs
from paranmt_hf.cli import main
from paranmt_hf.corpus.reading.pairs import Pairs
from tests.cli.commands import SMALL
from tests.refused import refused

ROWS = [(f"{word} x runs", f'{word} y, "runs"', label) for word, label in zip("abcdefghij", "1101011110", strict=True)]
PARAPHRASES = [row[0] for row in ROWS if row[2] == "1"]
NAMES = ("sentence_A", "sentence_B", "gold")
COLUMNS = {"reference": "sentence_A", "translation": "sentence_B", "label": "gold"}
OPTION = ["--columns", "reference=sentence_A,translation=sentence_B,label=gold"]


def write_separated(path, delimiter, dialect):
    with path.open("w", newline="", encoding="utf8") as file:
        writer = csv.writer(file, delimiter=delimiter, **dialect)
        writer.writerows([NAMES, *ROWS])


def write_rows(path):
    """Write the pairs as the ending of the name says."""
    records = [dict(zip(NAMES, row, strict=True)) for row in ROWS]
    if path.name.endswith(".gz"):
        write_rows(path.with_suffix(""))
        path.write_bytes(gzip.compress(path.with_suffix("").read_bytes()))
        path.with_suffix("").unlink()
    elif path.suffix == ".csv":
        write_separated(path, ",", {})
    elif path.suffix == ".tsv":
        write_separated(path, "\t", {})
    elif path.suffix == ".jsonl":
        path.write_text("".join(f"{json.dumps(record)}\n" for record in records))
    elif path.suffix == ".json":
        path.write_text(json.dumps(records))
    elif path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(records), path)
    else:
        Dataset.from_list(records).save_to_disk(path)
    return path


FORMATS = ["p.csv", "p.tsv", "p.jsonl", "p.json", "p.parquet", "p.csv.gz", "p.jsonl.gz", "saved"]


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_gives_the_same_pairs(tmp_path, name):
    path = write_rows(tmp_path / name)
    pairs = Pairs([path], PairSelection(), columns=COLUMNS)
    found = [row for table in pairs.batches() for row in table.to_pylist()]
    assert found == [{"reference": row[0], "translation": row[1]} for row in ROWS if row[2] == "1"]
    assert pairs.left_out_by == {"pairs labelled as no paraphrases": 3}
    assert len(list(Pairs([path], PairSelection(first_pairs=2), columns=COLUMNS).batches())[0]) == 2


@pytest.mark.parametrize("saved", [False, True])
@pytest.mark.parametrize(
    ("names", "right"),
    [
        (["not_equivalent", "equivalent"], True),
        (["0", "1"], True),
        # As in RTE and QNLI of GLUE, where 0 is the positive label.
        (["entailment", "not_entailment"], False),
        (["entailment", "neutral", "contradiction"], False),
    ],
)
def test_names_of_labels_say_which_are_paraphrases(tmp_path, names, right, saved):
    features = Features(
        {"reference": Value("string"), "translation": Value("string"), "label": ClassLabel(names=names)}
    )
    rows = {"reference": ["a b", "c d"], "translation": ["b a", "d c"], "label": [1, 0]}
    dataset, path = Dataset.from_dict(rows, features=features), tmp_path / ("saved" if saved else "p.parquet")
    dataset.save_to_disk(path) if saved else dataset.to_parquet(path)
    if right:
        assert [table["reference"].to_pylist() for table in Pairs([path], PairSelection()).batches()] == [["a b"]]
        return
    for read in (lambda: list(Pairs([path], PairSelection()).batches()), lambda: import_pairs(path, tmp_path / "out")):
        with refused("columns", path=path):
            read()


def test_lists_of_labels_in_a_file_of_datasets_are_refused(tmp_path):
    table = pa.table({"reference": ["a b"], "translation": ["b a"], "label": [[1]]})
    features = {"info": {"features": {"label": [{"dtype": "int64", "_type": "Value"}]}}}
    path = tmp_path / "p.parquet"
    pq.write_table(table.replace_schema_metadata({"huggingface": json.dumps(features)}), path)
    with refused("columns", path=path):
        list(Pairs([path], PairSelection()).batches())


@pytest.mark.parametrize("name", ["p.csv", "p.jsonl", "p.parquet"])
def test_columns_of_other_names_are_refused_without_columns(tmp_path, name):
    path = write_rows(tmp_path / name)
    for columns in ({}, {"reference": "sentence_A"}, {**COLUMNS, "label": "none"}):
        with refused("columns", path=path):
            Pairs([path], PairSelection(), columns=columns)
    for columns in ({"other": "gold"}, {"reference": "sentence_A", "translation": "sentence_A"}):
        with refused("columns"):
            Pairs([path], PairSelection(), columns=columns)


@pytest.mark.parametrize("name", ["p.csv", "p.jsonl"])
def test_other_labels_are_refused(tmp_path, name):
    path = tmp_path / name
    text = "reference,translation,label\na b,c d,4.2\n"
    path.write_text(text if name == "p.csv" else '{"reference": "a b", "translation": "c d", "label": 4.2}\n')
    with refused("columns", path=path):
        list(Pairs([path], PairSelection()).batches())


def test_files_without_names(tmp_path):
    (tmp_path / "two.tsv").write_text("A b c.\tD e f.\nG h i.\tJ k l.\n")
    found = [row for table in Pairs([tmp_path / "two.tsv"], PairSelection()).batches() for row in table.to_pylist()]
    assert [row["reference"] for row in found] == ["A b c.", "G h i."]
    (tmp_path / "three.tsv").write_text("A b c.\tD e f.\t0\nG h i.\tJ k l.\t1\n")
    with refused("columns"):
        Pairs([tmp_path / "three.tsv"], PairSelection())
    columns = {"reference": "1", "translation": "2", "label": "3"}
    pairs = Pairs([tmp_path / "three.tsv"], PairSelection(), columns=columns)
    assert [row for table in pairs.batches() for row in table["reference"].to_pylist()] == ["G h i."]


@pytest.mark.parametrize(
    ("label", "labels", "dropped"),
    [
        (None, {1}, {"labelled as no paraphrases": 3}),
        ("0", {0}, {"labelled as paraphrases": 7}),
        ("any", {0, 1}, {}),
    ],
)
def test_labels_are_imported(tmp_path, label, labels, dropped):
    path, out = write_rows(tmp_path / "p.csv"), tmp_path / "out"
    words = ["import", str(path), *OPTION, "--license", "cc0-1.0", "--out", str(out)]
    assert main([*words, *(["--label", label] if label else [])]) == 0
    table = pq.read_table(out / "data")
    assert table["reference"].to_pylist() == [row[0] for row in ROWS if int(row[2]) in labels]
    assert set(table["label"].to_pylist()) == labels
    assert json.loads((out / "build.json").read_text())["dropped"] == dropped
    found = [row for table in Pairs([out], PairSelection()).batches() for row in table["reference"].to_pylist()]
    assert found == (PARAPHRASES if 1 in labels else [])


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("reference\ttranslation\na b c\td e f\n", "reference\ttranslation\tlabel\na b c\tg h i\t0\n"),
        ("A b c.\tD e f.\n", "id\treference\ttranslation\n1\ta b c\td e f\n"),
        ("A b c.\tD e f.\n", "A b c.\tD e f.\t0\nG h i.\tJ k l.\t1\n"),
    ],
    ids=["label", "position", "third"],
)
def test_files_of_other_columns_are_refused(tmp_path, first, second):
    (tmp_path / "1.tsv").write_text(first)
    (tmp_path / "2.tsv").write_text(second)
    files = [tmp_path / "1.tsv", tmp_path / "2.tsv"]
    with refused("columns", path=files[1]):
        import_pairs(files, tmp_path / "out", release=ReleaseConfig(license="cc0-1.0"))


def test_long_lines_with_tabs_are_rows_by_any_name(tmp_path):
    rows = [(f"number {row} {'word ' * 2000}", f"text {row}") for row in range(8)]
    (tmp_path / "p.txt").write_text("".join("\t".join(row) + "\n" for row in rows))
    pairs = Pairs([tmp_path / "p.txt"], PairSelection())
    assert sum(table.num_rows for table in pairs.batches()) == 0
    assert pairs.left_out_by == {"pairs dropped as over-long": 8}


def test_rows_before_the_first_pairs_are_counted(tmp_path):
    (tmp_path / "p.tsv").write_text("reference\ttranslation\na b\t\n\nc d\te f\ng h\ti j\n")
    pairs = Pairs([tmp_path / "p.tsv"], PairSelection(first_pairs=1))
    assert [table["reference"].to_pylist() for table in pairs.batches()] == [["c d"]]
    assert pairs.left_out_by == {"pairs dropped as empty": 2}


def test_whole_numbers_of_any_size_are_scores(tmp_path):
    rows = [{"reference": "a b", "translation": "c d", "para_score": score} for score in (2**60 + 1, True, 0)]
    (tmp_path / "p.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    pairs = Pairs([tmp_path / "p.jsonl"], PairSelection(max_score=0.5))
    assert sum(table.num_rows for table in pairs.batches()) == 1


def test_scores_of_two_bytes(tmp_path):
    scores = pa.array([0.25, 0.75], pa.float16())
    table = pa.table({"reference": ["a b", "e f"], "translation": ["c d", "g h"], "para_score": scores})
    pq.write_table(table, tmp_path / "p.parquet")
    pairs = Pairs([tmp_path / "p.parquet"], PairSelection(min_score=0.5))
    assert [row for found in pairs.batches() for row in found["reference"].to_pylist()] == ["e f"]


def test_a_third_column_of_text_is_no_score(tmp_path):
    # As the pairs of Tatoeba that Anki's lists have.
    path = tmp_path / "p.tsv"
    path.write_text("Go now.\tGo away.\tCC-BY 2.0 (France) by a\nHi there.\tHello there.\tCC-BY 2.0 (France) by b\n")
    release = ReleaseConfig(license="cc-by-4.0")
    with refused("columns", path=path):
        import_pairs(path, tmp_path / "out", release=release)
    columns = {"reference": "1", "translation": "2"}
    assert import_pairs(path, tmp_path / "out", columns=columns, release=release).record.statistics.rows == 2


@pytest.mark.slow
def test_commands_read_a_csv(tmp_path, capsys):
    path = write_rows(tmp_path / "p.csv")
    assert main(["train", "--data", str(path), *OPTION, "--out", str(tmp_path / "encoder"), *SMALL]) == 0
    assert json.loads((tmp_path / "encoder" / "training.json").read_text())["pairs"] == 7
    card = (tmp_path / "encoder" / "README.md").read_text()
    assert "--columns reference=sentence_A,translation=sentence_B,label=gold" in card and "p.csv" in card
    words = ["negatives", str(path), *OPTION, "--out", str(tmp_path / "negatives"), "--number", "1"]
    assert main([*words, "--relative-margin", "0"]) == 0
    assert (
        json.loads((tmp_path / "negatives" / "negatives.json").read_text())["left_out"]["labelled as no paraphrases"]
        == 3
    )


def write_units(path, *languages):
    """Write one translation unit of TMX 1.4."""
    variants = "".join(f'<tuv xml:lang="{name}"><seg>a dog in {name}</seg></tuv>' for name in languages)
    path.write_text(f'<tmx version="1.4"><header srclang="en"/><body><tu>{variants}</tu></body></tmx>')
    return path


def test_two_languages_are_no_pairs(tmp_path):
    path = write_units(tmp_path / "a.tmx", "en-US", "cs")
    for first, second in (("en-US", "cs"), ("cs", "en"), ("en", "en-US")):
        columns = {"reference": first, "translation": second}
        with refused("columns", path=path):
            Pairs([path], PairSelection(), columns=columns)
        with refused("columns", path=path):
            import_pairs([path], tmp_path / "out", columns=columns, release=ReleaseConfig(license="cc0-1.0"))


@pytest.mark.parametrize(("first", "second"), [("en-US", "en-GB"), ("en/A", "en/B")])
def test_two_columns_of_one_language_are_pairs(tmp_path, first, second):
    path = write_units(tmp_path / "a.tmx", first, second, "cs")
    pairs = Pairs([path], PairSelection(), columns={"reference": first, "translation": second})
    rows = [row for table in pairs.batches() for row in table.to_pylist()]
    assert rows == [{"reference": f"a dog in {first}", "translation": f"a dog in {second}"}]


@pytest.mark.parametrize(
    ("text", "column"), [("A b c.,D e f.,0\nG h i.,J k l.,1\n", "3"), ("x,A b c.,D e f.,1\ny,G h i.,J k l.,0\n", "4")]
)
def test_labels_without_a_name_are_warned_of(tmp_path, caplog, text, column):
    path = tmp_path / "p.csv"
    path.write_text(text)
    columns = {"reference": str(int(column) - 2), "translation": str(int(column) - 1)}
    assert Pairs([path], PairSelection(), columns=columns)
    warned = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert len(warned) == 1
    assert f"label={column}" in warned[0]
    caplog.clear()
    assert Pairs([path], PairSelection(), columns={**columns, "label": column})
    assert not [record for record in caplog.records if record.levelname == "WARNING"]


@pytest.mark.slow
def test_messages_of_a_command_name_its_options(tmp_path, caplog):
    path = tmp_path / "p.csv"
    path.write_text("reference,translation,quality\n" + "".join(f"{row[0]},b {row[0]},1\n" for row in ROWS))
    assert main(["train", "--data", str(path), "--out", str(tmp_path / "out"), *SMALL]) == 0
    assert "give --columns label=quality" in caplog.text
