"""Texts without repetitions, against brute force; every format keeps its rows as they were."""

import csv
import functools
import gzip
import itertools
import json
import shutil

import datasets
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paranmt_hf import DedupConfig, InputError, dedup
from paranmt_hf.corpus.reading.plain_text import PlainText
from paranmt_hf.corpus.selection.paraphrased_items import unit_vectors
from paranmt_hf.encoders.named_encoder import NamedEncoder
from paranmt_hf.errors import OtherSettingsError
from paranmt_hf.meaning.differences import DifferentDocuments
from paranmt_hf.text.definitions import words

WORDS = "dog cat man woman runs sleeps plays eats red green small big house street music food".split()


def texts(count=400, seed=0):
    """Sentences of which many are alike: copies in another case, with a word changed, in another order."""
    random, made = np.random.default_rng(seed), []
    for _ in range(count):
        kind = random.integers(5)
        old = made[random.integers(len(made))].split() if made else []
        if kind == 0 and old:
            made.append(" ".join(old).upper() + " !")
        elif kind == 1 and old:
            old[random.integers(len(old))] = WORDS[random.integers(len(WORDS))]
            made.append(" ".join(old))
        elif kind == 2 and old:
            made.append(" ".join(random.permutation(old)))
        else:
            made.append(" ".join(random.choice(WORDS, random.integers(5, 14))))
    return [*made, "", "", "...", "..."]


def letters(text):
    kept = "".join(letter if letter.isalnum() else " " for letter in text.lower())
    return " ".join(kept.split())


def shingles(text):
    own = words(text)
    return set(zip(own, own[1:], strict=False)) or set(own)


def first_like(rows, alike):
    """Dropped rows, and the first kept one that each is like, one after the other."""
    kept, dropped = [], {}
    for row in rows:
        like = next((other for other in kept if alike(other, row)), None)
        if like is None:
            kept.append(row)
        else:
            dropped[row] = like
    return kept, dropped


def oracle(lines, by, jaccard=0.7, cosine=0.95, differing=("meaning",)):
    sets, found = [shingles(line) for line in lines], {}
    vectors = unit_vectors(np.asarray(NamedEncoder().load().encode(lines), np.float32)).astype(np.float16)
    vectors = unit_vectors(vectors.astype(np.float32))
    cosines = vectors @ vectors.T
    alike = {
        "exact": lambda one, two: letters(lines[one]) == letters(lines[two]),
        "near": lambda one, two: len(sets[one] & sets[two]) >= jaccard * len(sets[one] | sets[two]) > 0,
        "meaning": lambda one, two: cosines[one, two] >= cosine,
    }
    texts = pa.array(lines)
    differ = DifferentDocuments(lambda places: texts.take(pa.array(places))).between

    def repeats(method, one, two):
        if not alike[method](one, two):
            return False
        return method not in differing or not differ(np.array([one]), np.array([two]))[0]

    rows = list(range(len(lines)))
    for method in dict.fromkeys(("exact", *by)):
        # A text without letters is like none.
        own = [row for row in rows if letters(lines[row])]
        dropped = first_like(own, functools.partial(repeats, method))[1]
        rows = [row for row in rows if row not in dropped]
        found |= {row: (method, like) for row, like in dropped.items()}
    return rows, found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("by", "settings"),
    [
        (("exact",), {}),
        (("near",), {"similarity": 0.8}),
        (("meaning",), {"cosine": 0.9}),
        # Of several lists all are looked into.
        (("meaning",), {"cosine": 0.9, "lists": 7, "probes": 7}),
        (("exact", "near", "meaning"), {"similarity": 0.8}),
        (("near", "meaning"), {"similarity": 0.8, "cosine": 0.8, "same_meaning": True}),
        (("near", "meaning"), {"similarity": 0.8, "cosine": 0.8, "same_meaning": False}),
    ],
)
def test_brute_force(tmp_path, by, settings):
    lines = texts()
    (tmp_path / "in.txt").write_text("".join(f"{line}\n" for line in lines))
    config = DedupConfig(by=by[::-1], **settings)
    made = dedup(tmp_path / "in.txt", tmp_path / "out.txt", config=config, keep_dropped=tmp_path / "gone.parquet")
    limits = {"jaccard": settings.get("similarity", 0.7), "cosine": settings.get("cosine", 0.95)}
    keeps = settings.get("same_meaning")
    differing = ("meaning",) if keeps is None else by if keeps else ()
    kept, dropped = oracle(lines, by, **limits, differing=differing)
    assert (tmp_path / "out.txt").read_text() == "".join(f"{lines[row]}\n" for row in kept)
    report = pq.read_table(tmp_path / "gone.parquet").to_pylist()
    assert {row["line"] - 1: (row["reason"], row["like_line"] - 1) for row in report} == dropped
    assert [row["line"] for row in report] == sorted(row["line"] for row in report) and len(report) > 40
    assert all(row["text"] == lines[row["line"] - 1] for row in report)
    assert all(row["like_text"] == lines[row["like_line"] - 1] for row in report)
    methods = list(dict.fromkeys(("exact", *by)))
    least = {"exact": 1, "near": limits["jaccard"], "meaning": limits["cosine"]}
    assert all(least[row["reason"]] - 1e-6 <= row["score"] <= 1 for row in report)
    counts = {method: sum(reason == method for reason, _ in dropped.values()) for method in methods}
    assert made.record.dropped == counts and made.record.rows == len(lines) and made.fresh
    assert not (tmp_path / "out.txt.work").exists()


@pytest.mark.parametrize("lists", [1, 5])
def test_a_cosine_of_1_finds_equal_vectors(tmp_path, lists):
    """An average does not see the order of words."""
    sentences = [" ".join(some) for some in itertools.combinations(WORDS, 3)]
    turned = [" ".join(sentence.split()[::-1]) for sentence in sentences]
    (tmp_path / "in.txt").write_text("\n".join([*sentences, *turned, *sentences]))
    config = DedupConfig(by=("meaning",), cosine=1, lists=lists, probes=lists, same_meaning=False)
    made = dedup(tmp_path / "in.txt", tmp_path / "out.txt", config=config, keep_dropped=tmp_path / "gone.parquet")
    assert made.record.dropped == {"exact": 560, "meaning": 560}
    np.testing.assert_allclose(pq.read_table(tmp_path / "gone.parquet")["score"], 1, atol=1e-6)
    assert made.folder.read_text().splitlines() == sentences


@pytest.mark.slow
def test_lists_find_nearly_all(tmp_path):
    lines = texts(1500, seed=3)
    (tmp_path / "in.txt").write_text("".join(f"{line}\n" for line in lines))
    some, every = (
        dedup(tmp_path / "in.txt", tmp_path / f"{lists}.txt", config=DedupConfig(by=("meaning",), lists=lists))
        for lists in (30, 1)
    )
    assert 0.97 * every.record.dropped["meaning"] <= some.record.dropped["meaning"] <= every.record.dropped["meaning"]


ROWS = ["A dog runs.", "two\ncats", 'he said "a dog runs"', "a DOG runs", "x, y\tz", "TWO cats!", "", ""]
KEPT = [0, 1, 2, 4, 6, 7]


def test_tables_keep_their_rows_as_they_were(tmp_path):
    numbers = [0.1 * row for row in range(len(ROWS))]
    table = pa.table({"n": numbers, "text": ROWS, "more": [[row] for row in range(len(ROWS))]})
    pq.write_table(table, tmp_path / "in.parquet", row_group_size=3)
    with (tmp_path / "in.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["n", "text"], *zip(numbers, ROWS, strict=True)])
    lines = [json.dumps({"n": number, "text": text or None}) for number, text in zip(numbers, ROWS, strict=True)]
    (tmp_path / "in.jsonl").write_text("\n".join(lines))
    datasets.Dataset(table).save_to_disk(str(tmp_path / "in"))
    for name in ("in.parquet", "in.csv", "in.jsonl", "in"):
        out = tmp_path / name.replace("in", "out")
        column = "text" if name in ("in.csv", "in.jsonl") else None
        assert dedup(tmp_path / name, out, column=column).record.dropped == {"exact": 2, "near": 0}
        assert not dedup(tmp_path / name, out, column=column).fresh
    assert pq.read_table(tmp_path / "out.parquet").equals(table.take(KEPT))
    with (tmp_path / "out.csv").open(newline="") as file:
        assert list(csv.reader(file))[1:] == [[str(numbers[row]), ROWS[row]] for row in KEPT]
    assert (tmp_path / "out.jsonl").read_text() == "".join(f"{lines[row]}\n" for row in KEPT)
    assert datasets.load_from_disk(str(tmp_path / "out"))["text"][:] == [ROWS[row] for row in KEPT]


def test_bytes_of_lines_stay(tmp_path):
    raw = b"a  dog \r\nA dog\n\xff\xfe\n\xff\xfe\nlast"
    (tmp_path / "in.txt.gz").write_bytes(gzip.compress(raw))
    made = dedup(tmp_path / "in.txt.gz", tmp_path / "out.txt.gz")
    assert gzip.decompress(made.folder.read_bytes()) == b"a  dog \r\n\xff\xfe\n\xff\xfe\nlast\n"
    (tmp_path / "in.tsv").write_text('n\ttext\n1\t"a dog\n2\tA dog\n\n')
    dedup(tmp_path / "in.tsv", tmp_path / "out.tsv", column="text")
    assert (tmp_path / "out.tsv").read_text() == 'n\ttext\n1\t"a dog\n\n'


@pytest.mark.slow
def test_an_interrupted_run_continues(tmp_path, monkeypatch):
    (tmp_path / "in.txt").write_text("".join(f"{line}\n" for line in texts()))
    config = DedupConfig(by=("exact", "near", "meaning"))

    def stop(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(PlainText, "write", stop)
        dedup(tmp_path / "in.txt", tmp_path / "out.txt", config=config)
    assert len([*(tmp_path / "out.txt.work").glob("*.npy")]) == 3
    made = dedup(tmp_path / "in.txt", tmp_path / "out.txt", config=config)
    again = dedup(tmp_path / "in.txt", tmp_path / "again.txt", config=config)
    assert made.folder.read_bytes() == again.folder.read_bytes()
    # The report is made later too.
    assert not dedup(
        made.folder.with_name("in.txt"), made.folder, config=config, keep_dropped=tmp_path / "r.parquet"
    ).fresh
    assert pq.read_metadata(tmp_path / "r.parquet").num_rows == sum(made.record.dropped.values())
    with pytest.raises(OtherSettingsError):
        dedup(tmp_path / "in.txt", tmp_path / "out.txt")


@pytest.mark.parametrize("method", ["exact", "near", "meaning"])
def test_texts_without_letters_stay(tmp_path, method):
    lines = "!!! !!!\n!!! !!!\n...\n...\n\n\n? ! ?\n? ! ?\n"
    (tmp_path / "in.txt").write_text(lines)
    made = dedup(tmp_path / "in.txt", tmp_path / "out.txt", config=DedupConfig(by=(method,)))
    assert made.record.dropped == {"exact": 0, method: 0} and made.folder.read_text() == lines


def test_results_of_map_in_the_folder_of_a_dataset_are_not_its_rows(tmp_path):
    datasets.Dataset.from_dict({"text": ["a b", "A b", "c"]}).save_to_disk(str(tmp_path / "in"))
    dedup(tmp_path / "in", tmp_path / "out")
    shutil.copy(next((tmp_path / "in").glob("*.arrow")), tmp_path / "in" / "cache-0123456789abcdef.arrow")
    assert not dedup(tmp_path / "in", tmp_path / "out").fresh
    (tmp_path / "in" / "state.json").write_text("{}")
    with pytest.raises(InputError):
        dedup(tmp_path / "in", tmp_path / "out")


def test_nothing_to_compare(tmp_path):
    (tmp_path / "in.txt").write_text("\n...\n\n")
    made = dedup(tmp_path / "in.txt", tmp_path / "out.txt", config=DedupConfig(by=("exact", "near", "meaning")))
    assert made.folder.read_text() == "\n...\n\n" and sum(made.record.dropped.values()) == 0


def test_bad_input(tmp_path):
    (tmp_path / "in.txt").write_text("a\n")
    (tmp_path / "empty.txt").write_text("")
    (tmp_path / "in.jsonl").write_text('{"text": "a"}\n{"text": 3}\n')
    (tmp_path / "broken.jsonl").write_text('{"text": "a"\n')
    (tmp_path / "broken.csv").write_text('text\n"a\n')
    (tmp_path / "two.csv").write_text("text,text\na,b\n")
    pq.write_table(pa.table({"a": ["x"], "b": ["y"], "n": [1]}), tmp_path / "in.parquet")
    (tmp_path / "folder").mkdir()
    cases = [
        ("none.txt", "out.txt", None, None),
        ("empty.txt", "out.txt", None, None),
        ("in.txt", "out.txt", "text", "column"),
        ("in.txt", "out.parquet", None, "out"),
        ("in.jsonl", "out.jsonl", None, None),
        ("two.csv", "out.csv", None, "column"),
        ("in.jsonl", "out.jsonl", "body", "column"),
        ("in.jsonl", "out.jsonl", "text", None),
        ("broken.jsonl", "out.jsonl", "text", None),
        ("broken.csv", "out.csv", "text", None),
        ("two.csv", "out.csv", "text", "column"),
        ("in.parquet", "out.parquet", None, None),
        ("in.parquet", "out.parquet", "n", None),
        ("in.parquet", "out.parquet", "c", None),
        ("folder", "out", None, None),
    ]
    before = sorted(path.name for path in tmp_path.iterdir())
    for name, out, column, option in cases:
        with pytest.raises(InputError) as caught:
            dedup(tmp_path / name, tmp_path / out, column=column)
        assert option is None or caught.value.option == option, name
    assert sorted(path.name for path in tmp_path.iterdir()) == before
    (tmp_path / "mine.parquet").write_bytes(b"")
    with pytest.raises(InputError):
        dedup(tmp_path / "in.txt", tmp_path / "out.txt", keep_dropped=tmp_path / "mine.parquet")
    shutil.rmtree(tmp_path / "folder")
