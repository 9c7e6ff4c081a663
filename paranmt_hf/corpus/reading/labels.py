"""Labels of pairs: 1 for a paraphrase, 0 for any other pair, null where a pair was not labelled."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paranmt_hf.corpus.reading.arrow_tables import TEXTS, is_number_type
from paranmt_hf.corpus.reading.normalisation import decode
from paranmt_hf.corpus.reading.tables import refuse_row
from paranmt_hf.errors import InputError

LABEL = "label"
# Which pairs are read: paraphrases, other pairs, or all.
Wanted = Literal["1", "0", "any"]
UNLABELLED = "without a label"
# The start of a name that says that two sentences are not paraphrases, such as `not_equivalent`.
_NEGATIVE_NAME = re.compile(r"not|non|no\b|no_|un|dis|different|negative|false", re.IGNORECASE)
# pandas writes a column of 0, 1 and missing values as floats, and True and False as words.
_LABEL_OF_TEXT = {"0": 0, "1": 1, "0.0": 0, "1.0": 1, "false": 0, "true": 1}


def paraphrase_labels(column: pa.Array, where: str, first: int, path: Path | None = None) -> pa.Array:
    """Read the labels [pair] of a file as int32: 1 for a paraphrase, 0 for another pair, null if missing or empty.

    Args:
        column: The labels as numbers (NaN is missing), booleans, or text ("0", "1", "0.0", "1.0", "false" or "true",
            in any case).
        where: Place of the rows in the file, for errors; the number of a row follows it.
        first: Number of the first row.
        path: The file, for errors.

    Raises:
        InputError: If there is any other value.
    """
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    kind = column.type
    if pa.types.is_boolean(kind) or pa.types.is_null(kind):
        return column.cast(pa.int32())
    if is_number_type(kind):
        numbers = column.cast(pa.float64(), safe=False)
        missing = pc.or_kleene(numbers.is_null(), pc.is_nan(numbers))
        index = pc.index_in(numbers, pa.array([0.0, 1.0]))
        labels = pa.array([0, 1], pa.int32()).take(index)
    else:
        # Values that are neither numbers nor text, such as Python objects in JSON, are compared as text.
        if column.type not in TEXTS:
            values = [None if value is None else str(value).encode() for value in column.to_pylist()]
            column = pa.array(values, pa.binary())
        text = pc.utf8_lower(pc.utf8_trim_whitespace(decode(column.cast(pa.binary()))))
        missing = pc.or_kleene(column.is_null(), pc.equal(text, ""))
        index = pc.index_in(text, pa.array(list(_LABEL_OF_TEXT)))
        labels = pa.array(list(_LABEL_OF_TEXT.values()), pa.int32()).take(index)
    wrong = pc.and_(labels.is_null(), pc.invert(pc.fill_null(missing, False)))
    refuse_row(
        wrong,
        column,
        where,
        first,
        "the label 1 (a paraphrase) or 0 (none)",
        "write 1 and 0 there, or remove the column if every pair is a paraphrase",
        option="columns",
        path=path,
    )
    return labels


def check_label_names(names: Sequence[str] | None, column: str, source: str | Path) -> None:
    """Reject label names unless label 1 means a paraphrase; in RTE, for example, 1 means "not entailment".

    Args:
        names: Names [label] of the labels 0, 1, ...; None if they have none, which is accepted.
        column: Name of the column of labels, for errors.
        source: The file, or the description of a dataset on the Hub, for errors.
    """
    if names is None:
        return
    # Two names are right if that of 0 is negative, or neither is.
    if len(names) == 2 and (_NEGATIVE_NAME.match(names[0]) or not _NEGATIVE_NAME.match(names[1])):
        return
    listed = ", ".join(f"{label} is {name!r}" for label, name in enumerate(names))
    raise InputError(
        f"{source}: of the labels in its column {column} {listed}; expected 0 for other pairs and 1 for paraphrases. "
        "Write such a column, and name it",
        option="columns",
        path=source if isinstance(source, Path) else None,
    )


def unwanted_labels(labels: pa.Array, wanted: Wanted) -> dict[str, np.ndarray]:
    """Return masks [pair] of the pairs without the `wanted` label, by the reason to drop them."""
    if wanted == "any":
        return {}
    reason = "labelled as paraphrases" if wanted == "0" else "labelled as no paraphrases"
    other = pc.fill_null(pc.equal(labels, 1 - int(wanted)), False)
    return {reason: np.asarray(other), UNLABELLED: np.asarray(labels.is_null())}
