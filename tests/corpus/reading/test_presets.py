"""Layouts of other people's data sets, in small files written by hand."""

import bz2
import csv
import gzip
import random
from itertools import combinations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paranmt_hf.corpus.reading.preset_files import MOST_SENTENCES, Sentences, open_preset, pairs_of_sets, read_labels
from paranmt_hf.corpus.reading.presets import preset_names, read_preset
from paranmt_hf.corpus.reading.readers import Report
from paranmt_hf.hub.licenses import License
from tests.refused import refused

PAWS = "id\tsentence1\tsentence2\tlabel\n"
PAWS_ROWS = '1\tA "b" c .\t"b A" c .\t0\n2\tx y .\ty " x .\t1\n3\tq .\tr .\t-1\n'
QQP = "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n"
QQP_ROWS = '0\t1\t2\t"What is ""it""?\nReally?"\tIs "it" so?\t1\n1\t3\t4\tWhy?\t\t0\n2\t5\t6\tHow?\tWhen?\t0\n'


def read(name, *files, **options):
    report = Report()
    table = pa.Table.from_batches(list(open_preset(read_preset(name), files, **options).batches(report)))
    return table, report


def write(path, text):
    path.write_text(text, newline="")
    return path


def test_every_preset_is_whole():
    assert preset_names() == ["opusparcus", "paws", "ppdb", "qqp", "qqp-glue", "tapaco"]
    for preset in map(read_preset, preset_names()):
        if preset.license:
            License.parse(preset.license)
        for layout in preset.layouts:
            assert set(layout.columns.values()) <= set(layout.fields)
            assert layout.in_sets == ({"set", "sentence"} == set(layout.columns))
            assert not layout.labelled or (set(preset.labels.values()) == {0, 1} and preset.label_meaning)


def test_paws_has_quotes_that_are_text(tmp_path):
    path = write(tmp_path / "train.tsv", PAWS + PAWS_ROWS)
    table, report = read("paws", path)
    assert table.to_pylist() == [{"id": 1, "reference": "x y .", "translation": 'y " x .', "label": 1}]
    assert report.dropped == {"labelled as no paraphrases": 1, "without a label": 1} and report.read == 3
    table, _ = read("paws", path, label="0")
    assert table.to_pylist() == [{"id": 0, "reference": 'A "b" c .', "translation": '"b A" c .', "label": 0}]
    table, report = read("paws", path, label="any")
    assert table["label"].to_pylist() == [0, 1, None] and not report.dropped
    noisy = write(tmp_path / "noisy.tsv", PAWS.replace("label", "noisy_label") + PAWS_ROWS)
    assert read("paws", noisy)[0]["label"].to_pylist() == [1]
    with refused():
        read("paws", path, noisy)


def test_qqp_has_quoted_questions_over_several_lines(tmp_path):
    path = tmp_path / "quora_duplicate_questions.tsv.gz"
    path.write_bytes(gzip.compress(("\ufeff" + QQP + QQP_ROWS).encode()))
    table, report = read("qqp", path, label="any")
    assert table["reference"].to_pylist() == ['What is "it"? Really?', "How?"]
    assert table["translation"].to_pylist() == ['Is "it" so?', "When?"]
    assert table["label"].to_pylist() == [1, 0] and table["id"].to_pylist() == [0, 2]
    assert report.dropped == {"empty": 1}
    # Kaggle's has commas and quotes everywhere.
    rows = [QQP, '0\t1\t2\tOne, two?\t"Three"?\t1\n']
    quoted = ['"' + '","'.join(row.strip().replace('"', '""').split("\t")) + '"\r\n' for row in rows]
    table, _ = read("qqp", write(tmp_path / "train.csv", "".join(quoted)))
    assert table.to_pylist() == [{"id": 0, "reference": "One, two?", "translation": '"Three"?', "label": 1}]
    # In GLUE's quotes are text.
    glue = write(tmp_path / "glue.tsv", QQP + '0\t1\t2\t"What?\tWhat"?\t1\n1\t3\t4\t"Is" it?\tSo?\t0\n')
    assert read("qqp-glue", glue, label="any")[0]["reference"].to_pylist() == ['"What?', '"Is" it?']
    test = write(tmp_path / "test.tsv", "id\tquestion1\tquestion2\n0\tWhat?\tWhat so?\n")
    assert read("qqp-glue", test, label="any")[0].column_names == ["id", "reference", "translation"]


@pytest.mark.parametrize(("name", "first"), [("qqp", '"test_id","question1","question2"'), ("qqp-glue", "id\tq\tq")])
@pytest.mark.parametrize("label", [None, "1", "0"])
def test_pairs_whose_labels_are_hidden_are_not_taken_for_paraphrases(tmp_path, name, first, label):
    first = first.replace("\tq\tq", "\tquestion1\tquestion2")
    row = '7,"Why?","How?"' if name == "qqp" else "7\tWhy?\tHow?"
    test = write(tmp_path / "test", f"{first}\n{row}\n")
    with refused("label", path=test):
        read(name, test, label=label)
    assert read(name, test, label="any")[0].to_pylist() == [{"id": 0, "reference": "Why?", "translation": "How?"}]


def test_broken_rows_are_named(tmp_path):
    path = write(tmp_path / "q.tsv", QQP + QQP_ROWS + "3\t7\t8\tonly four\n")
    with refused(path=path):
        read("qqp", path)
    path = write(tmp_path / "p.tsv", PAWS + PAWS_ROWS + "4\tone\n")
    with refused(path=path):
        read("paws", path)


def test_opusparcus(tmp_path):
    marks = [("4.0", 1), ("3.5", 1), ("3.0", 1), ("2.5", None), ("2.0", 0), ("1.5", 0), ("1.0", 0)]
    rows = [f"en-D{n}\tGo {n} .\tLeave {n} .\t{mark}\n" for n, (mark, _) in enumerate(marks)]
    path = write(tmp_path / "en-dev.txt", "".join(rows))
    assert read("opusparcus", path, label="any")[0]["label"].to_pylist() == [label for _, label in marks]
    assert read("opusparcus", path)[0]["id"].to_pylist() == [0, 1, 2]
    train = tmp_path / "de-train.txt.bz2"
    train.write_bytes(bz2.compress(b"de-N1\tGeh !\tLos !\t30.1\t12.5\t5\t4\n"))
    assert read("opusparcus", train)[0].to_pylist() == [{"id": 0, "reference": "Geh !", "translation": "Los !"}]
    with refused("label", path=train):
        read("opusparcus", train, label="1")
    hub = {"lang": ["en"], "input": ["Go ."], "target": ["Leave ."], "annot_score": [3.5], "gem_id": ["x"]}
    pq.write_table(pa.table(hub), tmp_path / "test.parquet")
    assert read("opusparcus", tmp_path / "test.parquet")[0]["label"].to_pylist() == [1]
    pq.write_table(pa.table({**hub, "annot_score": [0.0]}), tmp_path / "train.parquet")
    with refused():
        read("opusparcus", tmp_path / "train.parquet")


def test_tapaco_makes_a_pair_of_every_two_sentences_of_a_set(tmp_path):
    rows = ["1\t10\tHi.\t907;4\tinformal\n", '1\t11\t"Hello", he said.\n', "1\t12\tHey.\t\n", "2\t20\tAlone.\t\t\n"]
    path = write(tmp_path / "en.txt", "".join([*rows, "3\t30\tYes.\t\t\n", "3\t31\tYep.\t\t\n"]))
    table, report = read("tapaco", path)
    pairs = list(zip(table["reference"].to_pylist(), table["translation"].to_pylist(), strict=True))
    said = '"Hello", he said.'
    assert pairs == [("Hi.", said), ("Hi.", "Hey."), (said, "Hey."), ("Yes.", "Yep.")]
    assert table["id"].to_pylist() == [0, 1, 2, 3] and report.kept == 4


@pytest.mark.parametrize("seed", range(5))
def test_sets_in_blocks_of_any_size(seed):
    chance = random.Random(seed)
    sizes = [chance.randint(1, 6) for _ in range(20)]
    names = [str(n).encode() for n, size in enumerate(sizes) for _ in range(size)]
    texts = [f"{name.decode()}-{n}".encode() for n, name in enumerate(names)]
    cuts = sorted(chance.choices(range(len(names) + 1), k=6))
    edges = list(zip([0, *cuts], [*cuts, len(names)], strict=True))
    blocks = [Sentences(*(pa.array(part[a:b], pa.binary()) for part in (names, texts))) for a, b in edges]
    found = []
    for left, right in pairs_of_sets(blocks, "x"):
        found += zip(left.to_pylist(), right.to_pylist(), strict=True)
    oracle = []
    for name in dict.fromkeys(names):
        oracle += combinations([text for text, other in zip(texts, names, strict=True) if other == name], 2)
    assert found == oracle


def test_a_set_of_everything_is_refused():
    many = MOST_SENTENCES + 1
    block = Sentences(pa.array([b"1"] * many), pa.array([b"x"] * many))
    with refused():
        list(pairs_of_sets([block], "en.txt"))


def test_ppdb_takes_its_score_where_a_file_has_it(tmp_path):
    line = "[JJ] ||| smart ||| clever ||| {} ||| 0-0 ||| Equivalence\n"
    path = write(tmp_path / "ppdb-2.0-s-lexical", line.format("PPDB2.0Score=1.5 AGigaSim=0.1"))
    assert read("ppdb", path)[0].to_pylist() == [
        {"id": 0, "reference": "smart", "translation": "clever", "ppdb_score": 1.5, "label": 1}
    ]
    path = write(tmp_path / "ppdb-1.0-s-lexical", line.rpartition(" |||")[0].format("p(e|f)=1.5") + "\n")
    assert read("ppdb", path)[0].column_names == ["id", "reference", "translation"]
    with refused("label"):
        read("ppdb", path, label="1")
    sentences = write(tmp_path / "sentences.txt", "A dog runs .\n")
    with refused():
        read("ppdb", path, sentences)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("paws", "a\tb\n1\t2\n"),
        ("tapaco", "x\ty\tz\n"),
        ("opusparcus", "1\ta\tb\t4.0\n"),
    ],
)
def test_a_preset_that_does_not_fit(tmp_path, name, text):
    path = write(tmp_path / "file.tsv", text)
    with refused("preset", path=path):
        read(name, path)


@pytest.mark.parametrize("name", ["paws", "qqp"])
def test_parquet_that_does_not_fit(tmp_path, name):
    pq.write_table(pa.table({"a": [1]}), tmp_path / "x.parquet")
    with refused("preset", path=tmp_path / "x.parquet"):
        read(name, tmp_path / "x.parquet")


def test_labels():
    labels = {4: 1, 3.5: 1, 1: 0}
    text = pa.array([b"4", b"3.50", b" 1.0\r", b"NS", b"", None, b"2", b"1e99"])
    assert read_labels(text, labels).to_pylist() == [1, 1, 0, None, None, None, None, None]
    assert read_labels(pa.array([4, 1, None, 7]), labels).to_pylist() == [1, 0, None, None]
    assert read_labels(pa.array([3.5, float("nan")]), labels).to_pylist() == [1, None]


@pytest.mark.parametrize("quoting", [csv.QUOTE_MINIMAL, csv.QUOTE_NONE])
def test_bytes_that_python_3_writes_for_paws_qqp(tmp_path, quoting):
    """The script of PAWS-QQP encodes its sentences for Python 2; on Python 3 `csv` writes the literals of bytes."""
    rows = [("How do I cook rice ?", "What 's the way ?"), ('He said " hi "', 'it\'s a " café "')]
    with (tmp_path / "train.tsv").open("w", newline="") as file:
        options = {"quotechar": None, "escapechar": "\x01"} if quoting == csv.QUOTE_NONE else {}
        writer = csv.writer(file, delimiter="\t", quoting=quoting, **options)
        writer.writerow(["id", "sentence1", "sentence2", "label"])
        writer.writerows([(n, *[side.encode() for side in row], 1) for n, row in enumerate(rows)])
    table, _ = read("paws", tmp_path / "train.tsv")
    assert list(zip(table["reference"].to_pylist(), table["translation"].to_pylist(), strict=True)) == rows


def test_what_paws_x_did_not_translate_is_dropped(tmp_path):
    path = write(
        tmp_path / "dev_2k.tsv", PAWS + "1\tNS\tNS\t1\n2\tEin Hund .\tNS\t1\n3\tNS Bahn .\tDie NS Bahn .\t1\n"
    )
    table, report = read("paws", path)
    assert table["reference"].to_pylist() == ["NS Bahn ."]
    assert report.dropped == {"not translated": 2}


def test_broken_rows_of_glue_are_dropped(tmp_path):
    """Questions with line ends in the first edition of GLUE's QQP."""
    rows = (
        "0\t1\t2\tWhat?\tWhat so?\t1\n1\t3\t4\tA question\nover two lines?\tAnother?\t1\n2\t5\t6\tWhy?\tHow come?\t1\n"
    )
    table, report = read("qqp-glue", write(tmp_path / "train.tsv", QQP + rows))
    assert table["reference"].to_pylist() == ["What?", "Why?"]
    assert report.dropped == {"without a label": 2}
