"""Parquet files of pairs with given scores, and samples of them."""

import pyarrow as pa
import pyarrow.parquet as pq

from paranmt_hf.apps.annotate.sample import AnnotationConfig, draw_sample
from paranmt_hf.corpus.release.schema import arrow_schema


def write_pairs(path, scores, overlaps=None, first_id=0, group=4):
    """Write pairs whose sentences are `reference K` and `translation K`, K the id."""
    ids = list(range(first_id, first_id + len(scores)))
    columns = {
        "id": ids,
        "reference": [f"reference {row}" for row in ids],
        "translation": [f"translation {row}" for row in ids],
        "para_score": scores,
        "trigram_overlap": overlaps or [0.5] * len(scores),
        "reference_length": [2] * len(scores),
        "translation_length": [2] * len(scores),
    }
    schema = arrow_schema()
    # A file may hold nulls and NaN where a release holds none.
    schema = pa.schema([field.with_nullable(True) for field in schema])
    pq.write_table(pa.table(columns, schema), path, row_group_size=group)
    return path


def draw(files, **settings):
    return draw_sample(files, AnnotationConfig(**settings), corpus="toy", settings={"of": "toys"})


def toy_sample(folder, per_range=2, **settings):
    """A sample of ten pairs in two ranges: ids 0 to 4 in the lower one."""
    path = write_pairs(folder / "toys.parquet", [0.1] * 5 + [0.9] * 5)
    return draw([path], **{"per_range": per_range, "ranges": (0.0, 0.5, 1.0), **settings})
