"""augment(): labels kept, quotas, forms, what is left out, killed and continued, refused."""

import gzip
import json
from collections import Counter

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paranmt_hf import EngineConfig, ParaphraseConfig, Paraphraser
from paranmt_hf.paraphrase.augment import AugmentConfig, LabelledColumns, LabelledSentences, augment
from paranmt_hf.paraphrase.candidates import Paraphrase, Paraphrased
from paranmt_hf.paraphrase.paraphrase_file import TableWriter
from tests.paraphrase.paraphraser_toys import SENTENCES, stopped_job
from tests.refused import refused

# Twelve sentences, of which every third is of another label.
ROWS = [{"text": text, "label": "abb"[at % 3]} for at, text in enumerate(SENTENCES[:12])]


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return path


def decoding(n=2, min_score=-1.0, **settings):
    return ParaphraseConfig(n=n, sample=True, max_length=12, device="cpu", min_score=min_score, **settings)


def run(file, out, model, settings=None, columns=None, **config):
    return augment(
        file,
        out,
        model=model,
        columns=columns,
        config=AugmentConfig(**config),
        decoding=settings or decoding(),
        engine=EngineConfig("local", 1, 1, shard_rows=2),
    )


def rows_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.slow
def test_rows_stay_and_paraphrases_follow_them(file, model, tmp_path):
    done = run(file, tmp_path / "out.jsonl", model)
    rows = rows_of(done.folder)
    assert [(row["text"], row["label"]) for row in rows if row["original"]] == [(r["text"], r["label"]) for r in ROWS]
    assert [row["index"] for row in rows] == sorted(row["index"] for row in rows)
    assert all(row["label"] == ROWS[row["index"]]["label"] for row in rows)
    assert all((row["score"] is None) == row["original"] for row in rows)
    counts = Counter((row["label"], row["original"]) for row in rows)
    for label in "ab":
        assert done.record.labels[label] == {
            "originals": counts[label, True],
            "paraphrases": counts[label, False],
            "short": 0,
        }
    # What the paraphraser gives for each sentence, in its order, and nothing twice.
    direct = Paraphraser(model, decoding()).paraphrase([row["text"] for row in ROWS])
    expected = [[each.text for each in found.paraphrases] for found in direct]
    assert [
        [row["text"] for row in rows if row["index"] == at and not row["original"]] for at in range(12)
    ] == expected
    assert not run(file, tmp_path / "out.jsonl", model).fresh
    assert not (tmp_path / "out.jsonl.work").exists()


@pytest.mark.slow
def test_paraphrases_of_a_low_score_are_left_out_by_default(file, model, tmp_path):
    scores = {}
    for least in (None, 0.5, -1.0):
        done = run(file, tmp_path / f"{least}.jsonl", model, decoding(8, least))
        scores[least] = [row["score"] for row in rows_of(done.folder) if not row["original"]]
    assert scores[None] == scores[0.5] and len(scores[0.5]) < len(scores[-1.0])
    assert all(score >= 0.5 for score in scores[None])


def test_a_row_without_text_stays(model, tmp_path):
    file = tmp_path / "rows.jsonl"
    file.write_text(
        "".join(json.dumps({**row, "text": None if at == 1 else row["text"]}) + "\n" for at, row in enumerate(ROWS))
    )
    done = run(file, tmp_path / "out.jsonl", model)
    rows = rows_of(done.folder)
    assert [row["text"] for row in rows if row["index"] == 1] == [None]
    assert [row["label"] for row in rows if row["original"]] == [row["label"] for row in ROWS]
    assert done.record.notes == {"empty line": 1}


@pytest.fixture
def give(monkeypatch):
    """Let paraphrasers give the same for every sentence."""

    def patched(*texts):
        def paraphrase(own, sentences, config=None):
            return [Paraphrased([Paraphrase(text.format(each), 0.5) for text in texts], None) for each in sentences]

        monkeypatch.setattr(Paraphraser, "paraphrase", paraphrase)

    return patched


def test_what_is_there_already_is_left_out(file, model, tmp_path, give):
    give("The MAN sees a man!", "the same for all", "new: {}", "...")
    done = run(file, tmp_path / "out.jsonl", model)
    added = [row["text"] for row in rows_of(done.folder) if not row["original"]]
    assert added.count("the same for all") == 1 and len(added) == 13
    assert done.record.left_out == 12 * 4 - 13


@pytest.mark.slow
def test_quotas_take_the_best_of_each_sentence_first(file, model, tmp_path, give):
    give("first {}", "second {}", "third {}")
    done = run(file, tmp_path / "out.jsonl", model, balance=True)
    assert done.record.labels == {
        "a": {"originals": 4, "paraphrases": 4, "short": 0},
        "b": {"originals": 8, "paraphrases": 0, "short": 0},
    }
    added = [row["text"] for row in rows_of(done.folder) if not row["original"]]
    assert added == [f"first {row['text']}" for row in ROWS if row["label"] == "a"]
    more = run(file, tmp_path / "more.jsonl", model, per_label=10)
    assert [more.record.labels[label]["paraphrases"] for label in "ab"] == [6, 2]
    ranks = Counter(
        row["text"].split()[0] for row in rows_of(more.folder) if not row["original"] and row["label"] == "a"
    )
    assert ranks == {"first": 4, "second": 2}
    # Which sentences get a second one is drawn.
    drawn = [
        frozenset(
            r["index"]
            for r in rows_of(run(file, tmp_path / f"{seed}.jsonl", model, decoding(seed=seed), per_label=10).folder)
            if r["text"].startswith("second")
        )
        for seed in range(4)
    ]
    assert len(set(drawn)) > 1
    short = run(file, tmp_path / "short.jsonl", model, per_label=20)
    assert short.record.labels["a"] == {"originals": 4, "paraphrases": 12, "short": 4}
    assert "4 short: raise n and beams" in short.summary()


@pytest.mark.slow
def test_forms_hold_the_same(file, model, tmp_path):
    expected = rows_of(run(file, tmp_path / "out.jsonl", model).folder)
    table = pa.Table.from_pylist([{"words": row["text"], "class": "ab".index(row["label"])} for row in ROWS])
    pq.write_table(table, tmp_path / "in.parquet")
    done = run(tmp_path / "in.parquet", tmp_path / "out.parquet", model, columns=LabelledColumns("words", "class"))
    found = pq.read_table(done.folder)
    assert found.schema.names == ["words", "class", "original", "index", "score"]
    assert found["words"].to_pylist() == [row["text"] for row in expected]
    assert found["class"].to_pylist() == ["ab".index(row["label"]) for row in expected]
    for suffix, mark in ((".tsv", "\t"), (".csv", ",")):
        path = tmp_path / f"in{suffix}"
        path.write_text(
            "".join(
                f"{row['label']}{mark}{row['text']}{mark}x\n" for row in [{"label": "label", "text": "text"}, *ROWS]
            )
        )
        lines = run(path, tmp_path / f"out{suffix}", model).folder.read_text().splitlines()
        assert lines[0] == mark.join(["text", "label", "original", "index", "score"])
        assert [line.split(mark)[-2] for line in lines[1:]] == [str(row["index"]) for row in expected]


@pytest.mark.slow
def test_work_that_was_stopped_continues(file, model, tmp_path):
    whole = run(file, tmp_path / "whole.tsv", model, balance=True)
    with stopped_job():
        run(file, tmp_path / "out.tsv", model, balance=True)
    assert not (tmp_path / "out.tsv").exists()
    again = run(file, tmp_path / "out.tsv", model, balance=True)
    assert again.folder.read_bytes() == whole.folder.read_bytes()


def test_settings_and_names_are_checked(file, model, tmp_path):
    with refused("balance"):
        AugmentConfig(balance=True, per_label=3)
    (tmp_path / "empty.jsonl").touch()
    for name in ("none.tsv", "empty.jsonl"):
        with refused(path=tmp_path / name):
            run(tmp_path / name, tmp_path / "out.tsv", model)
    assert not list(tmp_path.glob("out*"))
    (tmp_path / "index.tsv").write_text("text\tindex\na dog\t1\n")
    with refused("columns", path=tmp_path / "index.tsv"):
        run(tmp_path / "index.tsv", tmp_path / "out.tsv", model, columns=LabelledColumns(label="index"))
    (tmp_path / "out.tsv").write_text("mine")
    with refused("out", path=tmp_path / "out.tsv"):
        run(file, tmp_path / "out.tsv", model)


def read(path, columns=None):
    return pa.concat_tables(LabelledSentences.open(path, columns).tables()).to_pylist()


@pytest.mark.parametrize(
    ("name", "content", "option"),
    [
        ("a.txt", b"x\n", "columns"),
        ("a.tsv", b"text\tclass\nx\ty\n", "columns"),
        ("a.tsv", b"text\tlabel\nx\ty\nx\n", None),
        ("a.tsv", b"text\tlabel\nx\ty\nx\t\n", "columns"),
        ("a.tsv", b"text\tlabel\n", None),
        ("a.tsv", b"text\tlabel\n\xff\ta\n", "columns"),
        ("a.tsv", b"text\tlabel\na\t\xff\n", "columns"),
        ("a.csv", b"text,text,label\na,b,c\n", "columns"),
        ("a.jsonl", b'{"text": "x", "label": 1}\n{"text": "x"}\n', "columns"),
        ("a.jsonl", b"nothing\n", None),
        ("a.jsonl", b"[" * 100_000 + b"\n", None),
        ("a.jsonl", b'{"text": "x", "label": 1.5}\n', "columns"),
        ("a.jsonl", b'{"text": "x", "label": 1}\n{"text": "x", "label": "b"}\n', None),
        ("a.jsonl", b'{"text": 1, "label": 1}\n', None),
        ("a.jsonl", b'{"text":"a","label":99999999999999999999999}\n', "columns"),
        # Numbers in the rows that show the columns, text in a later block.
        ("a.jsonl", b'{"text": "x", "label": 1}\n' * 50_000 + b'{"text": "x", "label": "b"}\n', "columns"),
    ],
)
def test_rows_that_cannot_be_used(tmp_path, name, content, option):
    path = tmp_path / name
    path.write_bytes(content)
    with refused(option, path=path):
        read(path)


@pytest.mark.parametrize("name", ["a.txt", "a.txt.gz"])
def test_text_without_labels(tmp_path, name):
    path = tmp_path / name
    path.write_bytes(gzip.compress(b"a dog\na cat\n") if name.endswith(".gz") else b"a dog\na cat\n")
    with refused("columns", path=path):
        read(path)


def test_labels_and_texts_in_views(tmp_path):
    """As polars has text; Arrow 26 cannot filter views."""
    texts, labels = pa.array(["a dog", "a cat"], pa.string_view()), pa.array(["x", "y"], pa.string_view())
    pq.write_table(pa.table({"text": texts, "label": labels}), tmp_path / "a.parquet")
    found = read(tmp_path / "a.parquet")
    assert [(row["source"], row["label"]) for row in found] == [("a dog", "x"), ("a cat", "y")]


def test_rows_without_both_are_counted_and_left_out(tmp_path, caplog):
    path = tmp_path / "a.tsv"
    path.write_text("text\tlabel\na dog\tx\n\na cat\ty\n\n")
    assert read(path) == [
        {"index": 0, "source": "a dog", "label": "x"},
        {"index": 2, "source": "a cat", "label": "y"},
    ]
    assert "2 rows without text and label" in caplog.messages[-1]


@pytest.mark.parametrize("suffix", [".tsv", ".csv", ".json", ".jsonl.gz"])
def test_labels_of_every_format(tmp_path, suffix):
    path = tmp_path / f"a{suffix}"
    rows = [["a dog", 1], ["a cat", 0]]
    if "json" in suffix:
        objects = [{"text": text, "label": label} for text, label in rows]
        content = json.dumps(objects) if suffix == ".json" else "".join(json.dumps(row) + "\n" for row in objects)
        path.write_bytes(gzip.compress(content.encode()) if suffix.endswith(".gz") else content.encode())
        expected = [1, 0]
    else:
        # Without names, whose columns have numbers; the fields of TSV and CSV are text.
        mark = "," if suffix == ".csv" else "\t"
        path.write_text("".join(f"{text}{mark}{label}\n" for text, label in rows))
        expected = ["1", "0"]
    columns = LabelledColumns() if "json" in suffix else LabelledColumns("1", "2")
    assert LabelledSentences.open(path, columns).names == ("text", "label")
    found = read(path, columns)
    assert [row["source"] for row in found] == ["a dog", "a cat"]
    assert [row["label"] for row in found] == expected


@pytest.mark.parametrize("suffix", [".json", ".jsonl", ".parquet"])
def test_whole_numbers_of_64_bits(tmp_path, suffix):
    path, labels = tmp_path / f"a{suffix}", [2**53 + 1, -(2**63) + 1, 7]
    rows = [{"text": "a dog", "label": label} for label in labels]
    if suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    else:
        path.write_text(json.dumps(rows) if suffix == ".json" else "\n".join(map(json.dumps, rows)))
    assert [row["label"] for row in read(path)] == labels


def test_halves_of_surrogate_pairs(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"text": "a dog \\ud83d", "label": "x"}\n')
    assert read(path) == [{"index": 0, "source": "a dog \ufffd", "label": "x"}]


def test_large_numbers_and_damaged_pages(tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"text": ["a"], "label": pa.array([2**64 - 1], pa.uint64())}), path)
    with refused("columns", path=path):
        read(path)
    path = tmp_path / "b.parquet"
    pq.write_table(pa.table({"text": ["a b"] * 50, "label": ["x"] * 50}), path, compression="none")
    damaged = bytearray(path.read_bytes())
    damaged[4:24] = b"\xff" * 20
    path.write_bytes(damaged)
    with refused(path=path):
        read(path)


@pytest.mark.parametrize("suffix", [".tsv", ".csv", ".jsonl", ".parquet"])
def test_what_is_written_can_be_read_again(tmp_path, suffix):
    rows = pa.table({"text": ['say "a, b"', "c"], "label": ["a\nb\tc", "x"]})
    with TableWriter(tmp_path / f"out{suffix}", rows.schema) as writer:
        writer.write(rows)
    found = read(tmp_path / f"out{suffix}")
    assert [row["source"] for row in found] == ['say "a, b"', "c"]
    # TSV has no way to write a new line or a tab.
    assert [row["label"] for row in found] == ["a b c" if suffix == ".tsv" else "a\nb\tc", "x"]


def test_parquet_whose_text_is_not_utf8(tmp_path):
    text = pa.array([b"a dog", b"\xff"]).view(pa.string())
    pq.write_table(pa.table({"text": text, "label": [0, 1]}), tmp_path / "a.parquet")
    with refused("columns", path=tmp_path / "a.parquet"):
        read(tmp_path / "a.parquet")
