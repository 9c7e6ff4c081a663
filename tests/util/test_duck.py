import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paranmt_hf.util.duck import database, parquet


def test_a_query_over_files_with_any_name(tmp_path):
    folder = tmp_path / "it's"
    folder.mkdir()
    files = [folder / "a.parquet", folder / "b.parquet"]
    for first, path in enumerate(files):
        pq.write_table(pa.table({"id": [first, 10 + first]}), path)
    with database(memory=100_000_000) as connection:
        assert connection.execute(f"SELECT sum(id), count(*) FROM {parquet(files)}").fetchone() == (22, 4)


@pytest.mark.parametrize("name", ["a*b", "a[1]", "x?", "origin=mail"])
def test_a_path_names_that_file_alone_and_no_column(tmp_path, name):
    for folder in ("a1", "aXb", "xy", name):
        (tmp_path / folder).mkdir()
        pq.write_table(pa.table({"origin": [folder]}), tmp_path / folder / "a.parquet")
    with database(memory=100_000_000) as connection:
        query = f"SELECT * FROM {parquet([tmp_path / name / 'a.parquet'])}"
        assert connection.execute(query).fetchall() == [(name,)]


def test_what_does_not_fit_goes_to_disk(tmp_path):
    with database(memory=60_000_000, spill=tmp_path) as connection:
        query = "SELECT count(*) FROM (SELECT DISTINCT hash(i), i FROM range(4000000) t(i))"
        assert connection.execute(query).fetchone() == (4_000_000,)
    assert not list(tmp_path.iterdir())
