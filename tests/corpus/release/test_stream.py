"""Streams of a release of ten row groups, each in a process of its own, which must end."""

import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datasets import load_dataset

from paranmt_hf import stream
from tests.hub.releases import make_release
from tests.refused import refused

SECONDS = 180
ROWS = 2000
COLUMNS = ["reference", "para_score"]
FILTERS = [("para_score", ">", 0.5)]

PROGRAM = """
import sys
from itertools import islice
import paranmt_hf

rows = paranmt_hf.stream(sys.argv[1], columns=["reference", "para_score"], filters=[("para_score", ">", 0.5)])
if sys.argv[2] == "whole":
    print(sum(1 for _ in rows))
elif sys.argv[2] == "early":
    print(len(list(islice(rows, 2))))
elif sys.argv[2] == "epochs":
    print(*(sum(1 for _ in rows.set_epoch(epoch) or rows) for epoch in range(2)))
else:
    from torch.utils.data import DataLoader

    batches = DataLoader(rows, batch_size=16, num_workers=2)
    count = 2 if sys.argv[2] == "workers, early" else None
    print(sum(len(batch["reference"]) for batch in islice(batches, count)))
"""


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    folder = make_release(tmp_path_factory.mktemp("release") / "corpus", ROWS)
    (file,) = (folder / "data").glob("*.parquet")
    pq.write_table(pq.read_table(file), file, row_group_size=ROWS // 10)
    assert pq.read_metadata(file).num_row_groups == 10
    return folder


@pytest.fixture(scope="module")
def scores(corpus):
    return pq.read_table(corpus / "data")["para_score"].to_numpy()


# Each is a process of its own; that it hung was a matter of chance, so `early` comes three times.
@pytest.mark.slow
@pytest.mark.parametrize("way", ["whole", "early", "early", "early", "epochs", "workers", "workers, early"])
def test_it_ends_by_itself(corpus, scores, way):
    above = int((scores > 0.5).sum())
    expected = {
        "whole": f"{above}",
        "early": "2",
        "epochs": f"{above} {above}",
        "workers": f"{above}",
        "workers, early": "32",
    }
    command = [sys.executable, "-c", PROGRAM, str(corpus), way]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == expected[way]
    assert "Too many dataloader workers" not in done.stdout + done.stderr


@pytest.mark.slow
def test_rows_are_those_of_the_files(corpus, scores):
    table = pq.read_table(corpus / "data")
    assert list(stream(corpus)) == table.to_pylist()
    assert list(stream(corpus, columns=COLUMNS, filters=FILTERS)) == (
        table.filter(pa.array(scores > 0.5)).select(COLUMNS).to_pylist()
    )
    # A column that decides need not be one that is asked for.
    assert list(next(iter(stream(corpus, columns=["reference"], filters=FILTERS)))) == ["reference"]
    either = stream(corpus, columns=["id"], filters=[[("id", "<", 3)], [("id", "in", [7, 9]), ("id", "!=", 9)]])
    assert [row["id"] for row in either] == [0, 1, 2, 7]
    assert len(list(stream(corpus, "sample"))) == 1000


@pytest.mark.parametrize(
    ("condition", "rows"),
    [
        (("origin", "in", ["news"]), [0, 3]),
        (("origin", "not in", ["news"]), [1, 2, 4, 5]),
        (("origin", "==", "talks"), [2, 4]),
        (("origin", "in", [None]), [1, 5]),
        (("trigram_overlap", "<", 0.4), [1, 3]),
        (("trigram_overlap", "!=", 0.3), [1, 4]),
        (("trigram_overlap", "==", None), []),
        (("trigram_overlap", "not in", [0.3, None]), [1, 4]),
        (("trigram_overlap", "in", []), []),
    ],
)
def test_nulls_and_dictionaries_are_as_arrow_has_them(tmp_path, condition, rows):
    origins = pa.array(["news", None, "talks", "news", "talks", None]).dictionary_encode()
    overlaps = pa.array([None, 0.1, None, 0.3, 0.4, None], pa.float64())
    file = tmp_path / "data" / "train-00000-of-00001.parquet"
    file.parent.mkdir()
    pq.write_table(pa.table({"id": range(6), "origin": origins, "trigram_overlap": overlaps}), file, row_group_size=2)
    found = [row["id"] for row in stream(tmp_path, columns=["id"], filters=[condition])]
    assert found == rows
    # Arrow's reader refuses these two: it cannot tell their type.
    if condition[2] not in ([], [None]):
        assert found == pq.read_table(file, filters=[condition])["id"].to_pylist()


def test_row_groups_without_wanted_rows_are_not_read(corpus, monkeypatch):
    read = []
    whole = pq.ParquetFile.read_row_group
    monkeypatch.setattr(
        pq.ParquetFile,
        "read_row_group",
        lambda self, group, **options: read.append((group, options["columns"])) or whole(self, group, **options),
    )
    assert len(list(stream(corpus, columns=["reference"], filters=[("id", ">=", 1900)]))) == 100
    assert read == [(9, ["reference", "id"])]


@pytest.mark.parametrize(
    ("arguments", "option"),
    [
        ({"columns": ["text"]}, None),
        ({"filters": [("para_score", "=>", 1)]}, "filters"),
        ({"filters": ("para_score", ">", 0.7)}, "filters"),
        ({"filters": [("id", "in", [1, 2.5])]}, "filters"),
        ({"config": "best"}, "config"),
    ],
)
def test_what_there_is_not(corpus, arguments, option):
    with refused(option):
        stream(corpus, **arguments)


def test_load_dataset_with_filters(corpus, scores, tmp_path):
    """The card names no sizes of splits, which `datasets` would compare with what is left."""
    options = {"split": "train", "filters": [("para_score", ">", 0.9)], "cache_dir": str(tmp_path)}
    assert load_dataset(str(corpus), **options).num_rows == (scores > 0.9).sum()
    best = load_dataset(str(corpus), "filtered", **options)
    assert best.num_rows == (scores > 0.9).sum() and min(best["para_score"]) > 0.9
    assert load_dataset(str(corpus), split="train", cache_dir=str(tmp_path)).num_rows == ROWS
