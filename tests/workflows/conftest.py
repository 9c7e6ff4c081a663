"""Releases that tests of several commands share."""

import shutil

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paranmt_hf.corpus import release as release_module
from paranmt_hf.corpus.bitext.readers import ParquetFiles
from paranmt_hf.corpus.jobs.engine import EngineConfig
from paranmt_hf.corpus.release import release_files
from paranmt_hf.workflows.import_pairs import import_pairs
from paranmt_hf.workflows.support.release_run import ReleaseConfig
from tests.hub.releases import make_release


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    return make_release(tmp_path_factory.mktemp("release") / "corpus", 60)


@pytest.fixture
def release(made, tmp_path):
    return shutil.copytree(made, tmp_path / "corpus")


@pytest.fixture(scope="session")
def whole(tmp_path_factory):
    """A release of 400 rows in row groups of 64, with copies, identical sides, short sides and three origins."""
    random, rows = np.random.default_rng(3), 400
    words = [f"w{number}" for number in range(30)]

    def sentence():
        return " ".join(words[number] for number in random.integers(0, 30, random.integers(1, 12)))

    references = [sentence() for _ in range(rows)]
    translations = [sentence() for _ in range(rows)]
    for row in range(0, rows, 9):
        translations[row] = f"{references[row].upper()} ."
    for row in range(20, rows, 11):
        references[row] = references[row - 20]
    for row in range(30, rows, 17):
        references[row], translations[row] = references[row - 30], translations[row - 30]
    table = {
        "reference": references,
        "translation": translations,
        "para_score": pa.array(random.integers(-3, 20, rows) / 20, pa.float32()),
        "origin": pa.array([[None, "web", "news", "law"][number] for number in random.integers(0, 4, rows)]),
    }
    folder = tmp_path_factory.mktemp("whole")
    pq.write_table(pa.table(table), folder / "pairs.parquet")
    pairs = ParquetFiles(
        [folder / "pairs.parquet"],
        {name: name for name in table},
        numbers={"para_score"},
        optional={"origin"},
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(release_module, "ROW_GROUP_ROWS", 64)
        config = ReleaseConfig(license="cc-by-4.0", title="All of it", description="Words.")
        engine = EngineConfig("local", 1, 1)
        import_pairs(pairs, folder / "whole", scorer=None, release=config, engine=engine, made_by="machine")
    assert pq.ParquetFile(release_files(folder / "whole")[0]).num_row_groups > 5
    return folder / "whole"
