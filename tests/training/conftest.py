"""What tests of training share."""

import pytest

from tests.training.toys import synonyms, write_data


@pytest.fixture
def data(tmp_path):
    return write_data(tmp_path / "pairs.parquet", synonyms(200))
