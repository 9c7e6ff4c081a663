"""`dedup` of documents: repeated sentences go, and the rest of every row is written as it was."""

import csv
import gzip
import json

import datasets
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paranmt_hf import DedupConfig, dedup
from paranmt_hf.corpus.reading.splitting import SentenceSplitter
from tests.refused import refused

pytest.importorskip("sentencex")
EXACT = DedupConfig(by=("exact",))
# Each sentence counts where it occurs first, so document 3 loses all of its own.
DOCUMENTS = [
    'A dog runs. He said "no".  The end.',
    "a dog RUNS! Café, new; text.",
    "The end. A dog runs.",
    'No dog runs. "Go on!" he said.',
    "",
]
LEFT = [DOCUMENTS[0], "Café, new; text.", DOCUMENTS[3], ""]


def run(folder, name, **options):
    return dedup(folder / name, folder / f"out{name[name.index('.') :]}", split=True, config=EXACT, **options)


def test_text(tmp_path):
    lines = [*DOCUMENTS, "The end. ... Last one."]
    raw = "".join(f"{line}\r\n" for line in lines).encode() + b"A dog runs. caf\xe9.\n"
    (tmp_path / "in.txt").write_bytes(raw)
    made = run(tmp_path, "in.txt", keep_dropped=tmp_path / "gone.parquet")
    left = "".join(f"{line}\r\n" for line in [*LEFT, "... Last one."]).encode() + b"A dog runs. caf\xe9.\n"
    assert made.folder.read_bytes() == left
    record = made.record
    assert (record.rows, record.sentences, record.dropped, record.emptied) == (7, 14, {"exact": 4}, 1)
    assert record.undecodable == 1
    assert record.settings["input"]["split"] == SentenceSplitter("en").identity
    gone = pq.read_table(tmp_path / "gone.parquet").to_pylist()
    assert [[row[name] for name in ("line", "sentence", "like_line", "like_sentence", "text")] for row in gone] == [
        [2, 1, 1, 1, "a dog RUNS!"],
        [3, 1, 1, 3, "The end."],
        [3, 2, 1, 1, "A dog runs."],
        [6, 1, 1, 3, "The end."],
    ]
    assert not run(tmp_path, "in.txt").fresh
    assert "6 of 7 documents" in made.summary() and "10 of 14 sentences" in made.summary()


def test_nothing_repeats(tmp_path):
    (tmp_path / "in.txt").write_bytes(b" One.  Two.\n\nThree. \nfour")
    made = run(tmp_path, "in.txt")
    assert made.folder.read_bytes() == b" One.  Two.\n\nThree. \nfour\n"
    assert (made.record.sentences, made.record.dropped) == (5, {"exact": 0})


def test_words_that_are_left_are_those_of_the_sentences_that_stay(tmp_path):
    """On many documents of sentences drawn at random."""
    random, known = np.random.default_rng(0), set()
    sentences = [f"Word{number} is here." for number in range(30)]
    documents = [list(random.choice(sentences, random.integers(1, 6))) for _ in range(60)]
    (tmp_path / "in.txt").write_text("".join(f"{' '.join(one)}\n" for one in documents))
    wanted = []
    for one in documents:
        fresh = [
            sentence for place, sentence in enumerate(one) if sentence not in known and sentence not in one[:place]
        ]
        known.update(one)
        wanted += [" ".join(fresh)] if fresh else []
    assert run(tmp_path, "in.txt").folder.read_text().splitlines() == wanted
    assert len(wanted) < 30


ROWS = [{"n": number, "also": text, "text": text} for number, text in enumerate(DOCUMENTS)]
KEPT = [{**ROWS[row], "text": text} for row, text in zip((0, 1, 3, 4), LEFT, strict=True)]


@pytest.mark.parametrize(("suffix", "dump"), [(".jsonl", {}), (".jsonl", {"ensure_ascii": False})])
def test_json_lines(tmp_path, suffix, dump):
    """Another column has the same text, and stays; so does the way in which letters are written."""
    lines = [f'{{"x": 1.50, {json.dumps(row, **dump)[1:]}\n' for row in ROWS]
    wanted = [f'{{"x": 1.50, {json.dumps(row, **dump)[1:]}\n' for row in KEPT]
    (tmp_path / f"in{suffix}").write_text("".join(lines), encoding="utf8")
    assert run(tmp_path, f"in{suffix}", column="text").folder.read_text(encoding="utf8") == "".join(wanted)


def test_a_path_into_json_and_half_a_surrogate_pair(tmp_path):
    rows = [
        b'{"a": {"en": "One runs. Two run."}}\n',
        b'{"a": {"en": "One runs. \\ud83d Three run."}, "b": "\\ud83d"}\n',
    ]
    (tmp_path / "in.jsonl").write_bytes(b"".join(rows))
    made = run(tmp_path, "in.jsonl", column="a.en")
    assert made.folder.read_bytes() == rows[0] + b'{"a": {"en": "\\ufffd Three run."}, "b": "\\ud83d"}\n'


@pytest.mark.parametrize("indent", [None, 2])
def test_a_json_array(tmp_path, indent):
    (tmp_path / "in.json").write_text(json.dumps(ROWS, indent=indent))
    assert run(tmp_path, "in.json", column="text").folder.read_text().strip() == json.dumps(KEPT, indent=indent)


@pytest.mark.parametrize("quoting", [csv.QUOTE_MINIMAL, csv.QUOTE_ALL])
@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize("text_last", [True, False])
def test_csv(tmp_path, quoting, separator, text_last):
    names = ["n", "also", "text"] if text_last else ["text", "n", "also"]

    def content(rows):
        path = tmp_path / "written"
        with path.open("w", newline="", encoding="utf8") as file:
            writer = csv.DictWriter(file, names, delimiter=separator, quoting=quoting)
            writer.writeheader()
            writer.writerows(rows)
        return path.read_bytes()

    suffix = ".tsv.gz" if separator == "\t" else ".csv.gz"
    (tmp_path / f"in{suffix}").write_bytes(gzip.compress(content(ROWS)))
    made = run(tmp_path, f"in{suffix}", column="text")
    rows = list(csv.DictReader(gzip.decompress(made.folder.read_bytes()).decode().splitlines(), delimiter=separator))
    assert [{**row, "n": int(row["n"])} for row in rows] == KEPT
    # Rows without a repeated sentence have the same bytes.
    assert content(ROWS).split(b"\r\n")[1] == gzip.decompress(made.folder.read_bytes()).split(b"\r\n")[1]


def test_csv_with_backslashes(tmp_path):
    rows = [b"n,text\n", b'1,"He said \\"no\\". C:\\\\ is here. The end."\n', b'2,"The end. \\"Yes\\" C:\\\\ too."\n']
    (tmp_path / "in.csv").write_bytes(b"".join(rows))
    made = run(tmp_path, "in.csv", column="text")
    assert made.folder.read_bytes() == rows[0] + rows[1] + b'2,"\\"Yes\\" C:\\\\ too."\n'


def test_csv_without_quotes_around_a_text_that_begins_with_one(tmp_path):
    (tmp_path / "in.csv").write_bytes(b'n,text\n1,The end.\n2,The end. "Go on" now.\n')
    assert run(tmp_path, "in.csv", column="text").folder.read_bytes() == b'n,text\n1,The end.\n2,"""Go on"" now."\n'


def test_tsv(tmp_path):
    lines = [b"n\ttext\r\n", b"1\tThe end. One runs.\r\n", b"2\tTwo run. The end.\r\n", b"3\tThe end.\r\n"]
    (tmp_path / "in.tsv").write_bytes(b"".join(lines))
    made = run(tmp_path, "in.tsv", column="2")
    assert made.folder.read_bytes() == b"".join(lines[:2]) + b"2\tTwo run.\r\n"


def arrow(kind=None):
    text = (
        pa.array(DOCUMENTS, kind)
        if kind is None or not pa.types.is_dictionary(kind)
        else pa.array(DOCUMENTS).cast(kind)
    )
    inside = pa.StructArray.from_arrays([pa.array(DOCUMENTS), pa.array(range(5))], ["en", "k"])
    return pa.table({"n": range(5), "text": text, "inside": inside})


@pytest.mark.parametrize("column", ["text", "2", "inside.en"])
def test_parquet(tmp_path, column):
    table = arrow()
    pq.write_table(table, tmp_path / "in.parquet")
    found = pq.read_table(run(tmp_path, "in.parquet", column=column).folder)
    assert found.schema.equals(table.schema) and found["n"].to_pylist() == [0, 1, 3, 4]
    texts = found["text"].to_pylist(), [row["en"] for row in found["inside"].to_pylist()]
    wanted = (LEFT, [DOCUMENTS[row] for row in (0, 1, 3, 4)])
    assert texts == (wanted if column != "inside.en" else wanted[::-1])
    assert [row["k"] for row in found["inside"].to_pylist()] == [0, 1, 3, 4]


@pytest.mark.parametrize("kind", [pa.large_string(), pa.dictionary(pa.int32(), pa.string()), pa.binary()])
def test_kinds_of_text_in_parquet(tmp_path, kind):
    pq.write_table(arrow(kind), tmp_path / "in.parquet")
    found = pq.read_table(run(tmp_path, "in.parquet", column="text").folder)
    assert found["text"].cast(pa.string()).to_pylist() == LEFT and found.schema.field("text").type == kind


def test_a_dataset(tmp_path):
    data = datasets.Dataset.from_dict({"text": DOCUMENTS, "n": list(range(5))})
    data.save_to_disk(tmp_path / "in")
    before = sorted(path.name for path in (tmp_path / "in").iterdir())
    dedup(tmp_path / "in", tmp_path / "out", column="text", split=True, config=EXACT)
    found = datasets.load_from_disk(tmp_path / "out")
    assert found["text"][:] == LEFT and found["n"][:] == [0, 1, 3, 4] and found.features == data.features
    assert sorted(path.name for path in (tmp_path / "in").iterdir()) == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in", "out"]


def test_languages(tmp_path):
    (tmp_path / "in.txt").write_text("Od 3. října pršelo. Konec.\nOd 3. ledna pršelo. Konec.\n", encoding="utf8")
    config = DedupConfig(by=("exact",), language="cs")
    made = dedup(tmp_path / "in.txt", tmp_path / "out.txt", split=True, config=config)
    assert made.folder.read_text(encoding="utf8") == "Od 3. října pršelo. Konec.\nOd 3. ledna pršelo.\n"
    with refused("split"):
        dedup(tmp_path / "in.txt", tmp_path / "thai.txt", split=True, config=DedupConfig(language="th"))
