"""Edit distance between sequences."""

from __future__ import annotations

from collections.abc import Hashable, Sequence


def edit_distance(first: Sequence[Hashable], second: Sequence[Hashable]) -> int:
    """Count the fewest insertions, deletions and replacements that make one sequence of the other (Levenshtein 1966).

    A column of the table of distances is kept as the differences of neighbours, each +1, 0 or -1, in the bits of two
    numbers, and so each item of `second` costs a few operations on whole columns (Hyyrö 2003).

    >>> edit_distance("kitten", "sitting"), edit_distance("a b c".split(), "a c".split())
    (3, 1)
    """
    if not first:
        return len(second)
    places: dict[Hashable, int] = {}
    for place, item in enumerate(first):
        places[item] = places.get(item, 0) | 1 << place
    column, last = (1 << len(first)) - 1, 1 << len(first) - 1
    up, down, distance = column, 0, len(first)
    for item in second:
        equal = places.get(item, 0)
        diagonal = ((equal & up) + up ^ up) | equal | down
        rises, falls = down | ~(diagonal | up) & column, diagonal & up
        distance += bool(rises & last) - bool(falls & last)
        rises, falls = rises << 1 | 1, falls << 1
        up, down = (falls | ~(diagonal | rises)) & column, rises & diagonal & column
    return distance
