"""Convert the texts that a caller gives to a list: from a list, a column of a table, an array or a generator."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from paranmt_hf.errors import InputError
from paranmt_hf.util.wording import brief


def list_of_texts(given: Any, option: str) -> list[str]:  # noqa: ANN401 - columns of many libraries
    """Convert texts to a list of valid texts, in the given order; halves of surrogate pairs become U+FFFD.

    Args:
        given: A list, tuple, generator or other iterable, a Series of pandas or polars, an array of numpy or pyarrow,
            or a column of a dataset.
        option: Name of the parameter, for errors.

    Raises:
        InputError: It is not a list of texts, or one of its values is not a text.
    """
    texts = given if type(given) is list else _as_list(given, option)
    if set(map(type, texts)) <= {str}:
        return with_whole_characters(texts)
    for place, text in enumerate(texts):
        if not isinstance(text, str):
            raise InputError(
                f"{option} must be texts, and the one at index {place:,} is {brief(text)} ({type(text).__name__}); "
                "leave it out, or give it a text",
                option=option,
            )
    return with_whole_characters(texts)


def _as_list(given: Any, option: str) -> list[Any]:  # noqa: ANN401
    """Convert any collection of values to a list; one that is no list of texts is refused with advice."""
    kind = type(given)
    advice = None
    if isinstance(given, bytes | bytearray | memoryview):
        advice = "decode it: NAME.decode()"
    elif hasattr(kind, "columns") or hasattr(kind, "column_names"):
        advice = "give one column of it"
    elif isinstance(given, str) or getattr(given, "ndim", 1) == 0 or not isinstance(given, Iterable):
        advice = "put a single text into a list"
    elif isinstance(given, set | frozenset):
        advice = "a set has no order; give a list"
    elif isinstance(given, Mapping):
        advice = "give its values, list(NAME.values())"
    if advice is not None:
        raise InputError(f"{option} must be a list of texts, was of type {kind.__name__}; {advice}", option=option)
    # These methods also convert the scalars of pyarrow and numpy to values of Python.
    convert = getattr(given, "to_pylist", None) or getattr(given, "tolist", None)
    return list(given) if convert is None else convert()


def with_whole_characters(texts: list[str]) -> list[str]:
    """Replace halves of surrogate pairs by U+FFFD; two halves that belong together become their character.

    For example, a text that JavaScript cut in the middle of an emoji ends with such a half.
    """
    try:
        "".join(texts).encode()
    except UnicodeEncodeError:
        return [text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace") for text in texts]
    return texts
