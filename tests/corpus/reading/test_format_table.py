"""The table of docs/formats.md, cell by cell: what each command does with a tiny valid file of each format."""

from itertools import chain
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from paranmt_hf import InputError, PairSelection, TextInput, dedup, import_pairs
from paranmt_hf.calibration.rated_pairs import read_rated_pairs
from paranmt_hf.corpus.reading.hub_dataset import is_on_hub
from paranmt_hf.corpus.reading.pairs import Pairs
from paranmt_hf.corpus.reading.readers import Report
from paranmt_hf.corpus.reading.sentences import SentenceSources, open_sentences
from paranmt_hf.corpus.statistics.sampling import open_corpus
from paranmt_hf.evaluation.sts_data import read_sts
from paranmt_hf.paraphrase.augment import LabelledColumns, LabelledSentences
from paranmt_hf.text.word_vectors import read_vectors
from tests.corpus.reading.table_formats import FORMATS, LANGUAGES, LINES, NAMED, NUMBERED, SIDE
from tests.toys import LOCAL, RELEASE, write_vectors

PAGE = Path(__file__).resolve().parents[3] / "docs" / "formats.md"
FIRST = ["a dog runs in the park", "a cat sleeps on a bed"]
SECOND = ["the dog runs in a park", "the cat sleeps on the bed"]
TABLE = {"reference": FIRST, "translation": SECOND}
# What some commands want beyond that.
TABLES = {
    "calibrate": {**TABLE, "label": [1, 0]},
    "paraphrase": {**TABLE, "label": [1, 0]},
    "evaluate": {"score": [5.0, 1.0], "sentence1": FIRST, "sentence2": SECOND},
}
BITEXT = {"cs": SECOND, "en": FIRST}


def table_of_page():
    """The cells of the page: whether each format (row) is read by each command (column)."""
    table = next(block for block in PAGE.read_text().split("\n\n") if block.startswith("|"))
    header, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.split("\n")]
    cells = {}
    for name, *row in rows:
        for command, cell in zip(header[1:], row, strict=True):
            assert cell in ("reads", "refuses"), (name, command, cell)
            cells[name, command.split(",")[0].strip("` ").split()[0]] = cell == "reads"
    return cells


def texts_of(reader):
    """The rows of a reader without their numbers."""
    rows = []
    for batch in reader.batches(Report()):
        rows += zip(*[column.to_pylist() for column in batch.columns[1:]], strict=True)
    return rows


def column_of(kind):
    return {LINES: None, SIDE: None, NAMED: "reference", NUMBERED: "1", LANGUAGES: "en"}[kind]


def build(path, kind, write):
    if kind in (LINES, SIDE):
        other = write(path.with_name(f"other-{path.name}"), {"cs": SECOND})
        found = TextInput(source=other, reference=path).open()
    else:
        columns = {NAMED: ("translation", "reference"), NUMBERED: ("2", "1")}.get(kind)
        named = None if columns is None else dict(zip(("source", "reference"), columns, strict=True))
        found = TextInput(data=(str(path),), columns=named).open()
    return [(reference, source) for source, reference in texts_of(found)]


def import_(path, kind, write):
    vectors = write_vectors(path.with_name("vectors.txt"), ["dog"])
    columns = {"reference": "1", "translation": "2"} if kind == NUMBERED else None
    out = path.with_name("imported")
    import_pairs(path, out, columns=columns, scorer=vectors, release=RELEASE, engine=LOCAL)
    rows = pq.read_table(out / "data")
    return list(zip(rows["reference"].to_pylist(), rows["translation"].to_pylist(), strict=True))


def distill(path, kind, write):
    column = column_of(kind)
    sources = SentenceSources([path], None if column is None else [column])
    return list(chain.from_iterable(batch.to_pylist() for batch in sources.batches(Report())))


def search(path, kind, write):
    return [sentence for (sentence,) in texts_of(open_sentences(path, column_of(kind)))]


def stats(path, kind, write):
    column = column_of(kind)
    column = "1" if kind == SIDE else column
    corpus = open_corpus(path, columns=None if column is None else {"reference": column})
    return list(chain.from_iterable(batch["sentence"].to_pylist() for batch in corpus.batches(Report())))


def dedup_(path, kind, write):
    out = path.with_name("out" + "".join(path.suffixes))
    dedup(path, out, column=column_of(kind))
    return search(out, kind, write)


def train(path, kind, write):
    tables = list(Pairs([path], PairSelection()).batches())
    return [tuple(row.values()) for table in tables for row in table.select(["reference", "translation"]).to_pylist()]


def calibrate(path, kind, write):
    rated = read_rated_pairs(path, 4.0)
    return list(zip(rated.left, rated.right, np.asarray(rated.positive).tolist(), strict=True))


def evaluate(path, kind, write):
    (pairs,) = read_sts(path)
    return list(zip(pairs.left, pairs.right, pairs.gold.tolist(), strict=True))


def vectors(path, kind, write):
    found = read_vectors(path)
    return dict(zip(found.words, found.matrix.tolist(), strict=True))


def augment(path, kind, write):
    columns = LabelledColumns("1", "3") if kind == NUMBERED else LabelledColumns("reference", "label")
    (rows,) = LabelledSentences.open(path, columns).tables()
    return [(row["source"], int(row["label"])) for row in rows.to_pylist()]


SENTENCES, PAIRS = FIRST, list(zip(FIRST, SECOND, strict=True))
# What a command reads, by the first of those that its column on the page names, and what it must give.
COMMANDS = {
    "build": (build, PAIRS),
    "import": (import_, PAIRS),
    "distill": (distill, SENTENCES),
    "search": (search, SENTENCES),
    "stats": (stats, SENTENCES),
    "dedup": (dedup_, SENTENCES),
    "train": (train, PAIRS),
    "calibrate": (calibrate, [(*pair, label) for pair, label in zip(PAIRS, [True, False], strict=True)]),
    "evaluate": (evaluate, [(*pair, score) for pair, score in zip(PAIRS, [5.0, 1.0], strict=True)]),
    "--vectors": (vectors, {"dog": [0.5, 1.0], "cat": [0.5, 1.0]}),
    "paraphrase": (augment, list(zip(FIRST, [1, 0], strict=True))),
}
SLOW = {"import", "dedup"}
CELLS = [
    pytest.param(name, file, command, marks=[pytest.mark.slow] * (command in SLOW))
    for name, (_, files) in FORMATS.items()
    for file in files
    for command in COMMANDS
]


def test_the_page_has_every_format_and_command():
    assert set(table_of_page()) == {(name, command) for name in FORMATS for command in COMMANDS}


@pytest.mark.parametrize(("name", "file", "command"), CELLS)
def test_cell(tmp_path, name, file, command):
    kind, files = FORMATS[name]
    read, expected = COMMANDS[command]
    table = {LANGUAGES: BITEXT, LINES: {"en": FIRST}, SIDE: {"en": FIRST}}.get(kind) or TABLES.get(command, TABLE)
    if command == "--vectors" and kind == LINES:
        table = {"line": ["dog 0.5 1.0", "cat 0.5 1.0"]}
    if command in ("calibrate", "evaluate") and kind == NUMBERED:
        # The score first, as in files of STS.
        table = TABLES["evaluate"]
    path = files[file](tmp_path / file, table)
    if table_of_page()[name, command]:
        assert read(path, kind, files[file]) == expected
    else:
        with pytest.raises(InputError) as error:
            read(path, kind, files[file])
        assert error.value.path == path


@pytest.mark.parametrize(
    "file", [file for _, files in FORMATS.values() for file in files if file not in ("a", "a.en")]
)
def test_a_missing_file_is_not_looked_for_on_the_hub(file):
    assert not is_on_hub(f"nowhere/{file}")
