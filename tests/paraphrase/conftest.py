"""Pairs to train paraphrasers on, and a paraphraser that has learned nothing."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.paraphrase.paraphraser_toys import sentences, write_paraphraser


@pytest.fixture(scope="session")
def pairs(tmp_path_factory):
    reference, translation = sentences(300)
    path = tmp_path_factory.mktemp("pairs") / "pairs.parquet"
    scores = pa.array(np.linspace(0, 1, 300), pa.float32())
    pq.write_table(pa.table({"reference": reference, "translation": translation, "para_score": scores}), path)
    return path


@pytest.fixture(scope="session")
def model(tmp_path_factory):
    return write_paraphraser(tmp_path_factory.mktemp("model") / "model")
