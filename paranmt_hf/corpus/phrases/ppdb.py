"""Lines of the Paraphrase Database: PPDB 1.0 (Ganitkevitch et al. 2013) and 2.0 (Pavlick et al. 2015).

`LHS ||| phrase ||| paraphrase ||| features ||| alignment`, and in 2.0 ` ||| entailment` after that. Features are
`name=value` with blanks between them.
"""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paranmt_hf.corpus.phrases.lines import Lines

BAR, SEPARATOR = "|||", " ||| "
FORM = "`LHS ||| phrase ||| paraphrase ||| features ||| alignment`"
PHRASE, PARAPHRASE, FEATURES = 1, 2, 3
LEAST, MOST = 4, 6
# A gap of a syntactic rule, which stands for any phrase of a kind: `[NN,1]`.
NON_TERMINAL = r"(?:^|\s)\[[^\[\]\s]+,\d+\](?:\s|$)"


def parse_rules(lines: Lines, score: str | None = None) -> list[pa.Array]:
    """Take lines apart.

    Args:
        lines: The lines.
        score: Name of a feature.

    Returns:
        Phrase and paraphrase [line], string, and the feature [line], float64, null where it is `NA`, if one is named.

    Raises:
        InputError: A line has too few or too many fields, no text, or the feature is missing or no number.
    """
    fields = pc.split_pattern(lines.text, SEPARATOR)
    counts = np.asarray(pc.list_value_length(fields))
    lines.refuse(counts < LEAST, f"at least {LEAST} fields with ` {BAR} ` between them, as in {FORM}")
    lines.refuse(counts > MOST, f"at most {MOST} fields with ` {BAR} ` between them, as in {FORM}")
    starts = np.cumsum(counts) - counts
    flat = fields.flatten()
    sides = [flat.take(pa.array(starts + field)) for field in (PHRASE, PARAPHRASE)]
    for side in sides:
        lines.refuse(pc.equal(pc.utf8_length(side), 0), f"a phrase and a paraphrase, as in {FORM}")
    if score is None:
        return sides
    return [*sides, _feature(lines, flat.take(pa.array(starts + FEATURES)), score)]


def _feature(lines: Lines, features: pa.Array, name: str) -> pa.Array:
    """Find the value of one feature [line], float64; null where it is `NA`."""
    found = pc.extract_regex(features, pattern=rf"(?:^|\s){re.escape(name)}=(?P<value>\S*)")
    lines.refuse(found.is_null(), f"a feature {name}=... in the fourth field", features)
    values = pc.struct_field(found, "value")
    values = pc.if_else(pc.equal(values, "NA"), pa.scalar(None, pa.string()), values)
    try:
        return values.cast(pa.float64())
    except pa.ArrowInvalid:
        wrong = [value is not None and not _is_number(value) for value in values.to_pylist()]
        lines.refuse(np.array(wrong), f"a {name}, which is a number or NA", values)
        raise


def _is_number(text: str) -> bool:
    try:
        pa.scalar(text).cast(pa.float64())
    except pa.ArrowInvalid:
        return False
    return True


def has_gaps(phrases: pa.Array) -> np.ndarray:
    """Tell which phrases [phrase] are patterns of a syntactic rule, with gaps such as `[NN,1]`."""
    return np.asarray(pc.fill_null(pc.match_substring_regex(phrases, NON_TERMINAL), False))


def feature_names(line: str) -> list[str]:
    """Names of the features of a line, in its order."""
    fields = line.split(SEPARATOR)
    return (
        [part.rpartition("=")[0] for part in fields[FEATURES].split() if "=" in part] if len(fields) >= LEAST else []
    )
