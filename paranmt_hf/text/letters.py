"""What is left of sentences when they are compared, so that case, punctuation and blanks hide nothing."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

# Marks are vowels in many scripts. Those that choose between a sign's plain and its coloured form are none.
NOT_LETTERS = r"(?:[^\p{L}\p{M}\p{N}]|[\x{FE00}-\x{FE0F}])+"


def letters(column: pa.Array | pa.ChunkedArray, between: str = "") -> pa.Array | pa.ChunkedArray:
    """Leave of each sentence its letters with their marks and its digits, in lower case.

    Args:
        column: Strings [sentence].
        between: What stands where something else stood.

    Returns:
        Strings [sentence].
    """
    return pc.replace_substring_regex(pc.utf8_lower(column), pattern=NOT_LETTERS, replacement=between)
