"""A small release, made without any model."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from paranmt_hf.corpus.bitext.readers import ParquetFiles
from paranmt_hf.corpus.import_pairs import import_pairs
from paranmt_hf.corpus.jobs.engine import EngineConfig
from paranmt_hf.corpus.release_run import ReleaseConfig
from paranmt_hf.hub.repository import ASSETS


def make_release(folder, rows=400, license="cc-by-4.0", seed=0):
    """Write a release of pairs, mostly of random words, so that its files do not compress to nothing."""
    generator = np.random.default_rng([rows, seed])
    # Words of the sample are among them, so that an encoder of these pairs knows some of its sentences.
    known = (ASSETS / "sample" / "similarity.tsv").read_text(encoding="utf8").lower().replace(".", "").split()
    words = ["".join(chr(97 + letter) for letter in word) for word in generator.integers(0, 26, (5000, 6))]
    words[::10] = (known * 2)[:500]
    sides = [[" ".join(words[n] for n in generator.integers(0, 5000, 9)) for _ in range(rows)] for _ in range(2)]
    scores = pa.array(generator.random(rows), pa.float32())
    table = pa.table({"reference": sides[0], "translation": sides[1], "para_score": scores})
    folder.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, folder.with_suffix(".parquet"))
    columns = {name: name for name in table.column_names}
    pairs = ParquetFiles([folder.with_suffix(".parquet")], columns, numbers={"para_score"})
    import_pairs(
        pairs, folder, scorer=None, release=ReleaseConfig(license=license), engine=EngineConfig("local", 1, 1)
    )
    return folder
