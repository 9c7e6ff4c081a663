"""`paranmt select` by what sentences say: language, evaluation sets, near-duplicates."""

import logging

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paranmt_hf.corpus.bitext.readers import ParquetFiles
from paranmt_hf.corpus.import_pairs import import_pairs
from paranmt_hf.corpus.jobs.engine import EngineConfig
from paranmt_hf.corpus.release import release_files
from paranmt_hf.corpus.release_run import ReleaseConfig
from paranmt_hf.corpus.selection.release_filter import ReleaseFilter
from paranmt_hf.corpus.selection.select import select
from paranmt_hf.errors import InputError

PAIRS = [
    ("The old man walks slowly down the long road to the sea.", "An old man goes down a road that leads to the sea."),
    ("Two dogs play in the deep snow near the house.", "Dva psi si hrají v hlubokém sněhu u domu."),
    ("The old man walks slowly down the long road to the lake.", "An old man goes down a road that leads to the sea."),
    ("A woman reads the newspaper in the garden every day.", "A woman is reading a newspaper."),
    ("Yes.", "Ja."),
    ("the old man walks slowly down the long road to the sea", "An old man went down the road towards the sea."),
    ("Nothing of this is like the others at all.", "None of these things is like any of the others."),
]


@pytest.fixture(scope="module")
def sentences(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    table = {"reference": [first for first, _ in PAIRS], "translation": [second for _, second in PAIRS]}
    pq.write_table(pa.table({**table, "para_score": pa.array([0.5] * len(PAIRS), pa.float32())}), folder / "p.parquet")
    columns = {name: name for name in ("reference", "translation", "para_score")}
    pairs = ParquetFiles([folder / "p.parquet"], columns, numbers={"para_score"}, optional=set())
    release = ReleaseConfig(license="cc-by-4.0", title="All", description="Sentences.")
    import_pairs(pairs, folder / "whole", scorer=None, release=release, engine=EngineConfig("local", 1, 1))
    return folder / "whole"


def ids(folder) -> list[int]:
    return [number for file in release_files(folder) for number in pq.read_table(file)["id"].to_pylist()]


def test_each_row_has_one_reason(sentences, tmp_path, caplog):
    evaluation = tmp_path / "evaluation"
    evaluation.mkdir()
    (evaluation / "test.tsv").write_text("5.0\tA WOMAN is reading a newspaper\tsomething\n", encoding="utf8")
    (evaluation / "model.bin").write_bytes(b"\0")
    config = ReleaseFilter(language="en", decontaminate=(str(evaluation),), drop_near_duplicates="reference")
    with caplog.at_level(logging.WARNING):
        selected = select(sentences, tmp_path / "out", config, keep_dropped=tmp_path / "dropped.parquet")
    assert "model.bin (it is not text)" in caplog.text
    assert ids(tmp_path / "out") == [0, 4, 6]
    dropped = pq.read_table(tmp_path / "dropped.parquet")
    assert dropped["id"].to_pylist() == [1, 2, 3, 5]
    assert dropped["reason"].to_pylist() == [
        "with a side in another language than en",
        "with the reference nearly that of an earlier row",
        "that share a sentence or 8 words in a row with an evaluation set",
        "with the reference nearly that of an earlier row",
    ]
    numbers = dropped["number"].to_pylist()
    assert numbers[0] < 0.02 and numbers[1] == numbers[3] == 0
    assert [one.dropped for one in selected.selection.filters] == [1, 1, 2]
    again = select(sentences, tmp_path / "out", config, keep_dropped=tmp_path / "dropped.parquet")
    assert not again.fresh
    (evaluation / "test.tsv").write_text("5.0\tanother sentence of an evaluation set\tx\n", encoding="utf8")
    with pytest.raises(InputError):
        select(sentences, tmp_path / "out", config)


def test_an_encoder_decides(sentences, tmp_path):
    config = ReleaseFilter(drop_near_duplicates="translation", encoder="embedded")
    select(sentences, tmp_path / "out", config)
    assert 2 not in ids(tmp_path / "out") and 0 in ids(tmp_path / "out")
