"""Training with wrong translations as negatives."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paranmt_hf import train
from paranmt_hf.encoders.loading import load
from paranmt_hf.errors import InputError
from tests.toys import bytes_of
from tests.training.toys import small, synonyms

WRONG = [f"{text.rsplit(' ', 1)[0]} right{index}" for index, text in enumerate(synonyms(60)[1][::2])]


def write(path, wrong):
    """Pairs, and for every other reference a translation whose last word is another."""
    references, translations = synonyms(60)
    others = WRONG if wrong else []
    columns = {
        "reference": [*references, *references[: 2 * len(others) : 2]],
        "translation": [*translations, *others],
        "number_mismatch": pa.array([0] * 60 + [1] * len(others), pa.int32()),
        "negation_mismatch": pa.array([0] * (60 + len(others)), pa.int32()),
    }
    pq.write_table(pa.table(columns), path)
    return path


def test_they_are_pushed_away_and_a_run_can_be_repeated(tmp_path, caplog):
    data, references = write(tmp_path / "p.parquet", True), synonyms(60)[0][::2]
    caplog.set_level("INFO")
    closeness = {}
    for share in (0.0, 1.0):
        out = tmp_path / f"m{share}"
        trained = train(data, out, **small(error_negatives=share, epochs=4))
        assert trained.record.pairs == (60 if share else 90)
        assert not out.with_name(f"{out.name}.work").exists()
        left, right = (
            load(out, device="cpu").encode(texts, normalize_embeddings=True) for texts in (references, WRONG)
        )
        closeness[share] = (left * right).sum(axis=1).mean()
    assert closeness[1.0] < closeness[0.0] - 0.05
    assert "30 pairs differ in a number or a negation; 30 others have their references" in caplog.text
    again = train(data, tmp_path / "again", **small(error_negatives=1.0, epochs=4))
    same = {name: content for name, content in bytes_of(again.folder).items() if name.endswith("safetensors")}
    assert same.items() <= bytes_of(tmp_path / "m1.0").items()


def test_where_there_are_none(tmp_path):
    with pytest.raises(InputError, match="no pair differs in a number or a negation"):
        train(write(tmp_path / "p.parquet", False), tmp_path / "m", **small(error_negatives=1.0))
    table = pq.read_table(write(tmp_path / "q.parquet", True)).to_pydict()
    table["reference"][60:] = [f"left1 left{index}" for index in range(30)]
    pq.write_table(pa.table(table), tmp_path / "q.parquet")
    with pytest.raises(InputError, match="30 pairs differ in a number or a negation, but none of the other 60 has"):
        train(tmp_path / "q.parquet", tmp_path / "m2", **small(error_negatives=1.0))


def test_only_where_they_can_be_used(tmp_path):
    data = write(tmp_path / "p.parquet", True)
    with pytest.raises(InputError, match="`error_negatives` is for averaging models"):
        train(data, tmp_path / "m", **small("lstm", error_negatives=0.5))
