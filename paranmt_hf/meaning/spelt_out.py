"""Numbers, times and dates that are spelt out, in the form in which `numbers.py` reads them.

Only forms of several words are here, such as `half past six`; `numbers.py` reads `six` itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paranmt_hf.meaning.number_words import MONTHS, TENS, UNITS
from paranmt_hf.text.normal_form import change_rows

HOURS = "|".join(list(UNITS)[1:13])
DAYS = {day[:3]: day for day in "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()}
MONTH_NAMES = {
    number: name.capitalize() for name, number in MONTHS.items() if len(name) > 4 or name in ("may", "june", "july")
}
HOLIDAYS = {
    "christmas eve": "24 December",
    "christmas day": "25 December",
    "boxing day": "26 December",
    "new year's eve": "31 December",
    "new year's day": "1 January",
    "valentine's day": "14 February",
    "halloween": "31 October",
}
SCALES = {"hundred": 100, "thousand": 1000, "million": 10**6, "billion": 10**9}
NUMBER = rf"(?:\d+|{'|'.join([*list(UNITS)[1:], *TENS])}|twenty-five)"
# Texts without any of these need no change.
SIGNS = (
    rf"(?i)\b(?:half (?:an?|past|dozen)|half-|a dozen|a score of|a couple of|quarters? (?:past|to|of)|day|eve"
    rf"|halloween|{NUMBER} (?:minutes? )?(?:past|to|in|out of) (?:every )?(?:{NUMBER}|{HOURS})|[0-9]{{4}} hours"
    r"|mon|tues?|weds?|thur?s?|fri|sat|sun|jan|feb|apr|jun|jul|aug|sept?|oct|nov|dec)\b"
    r"|\b0[0-9]:|[0-9]{4}-[0-9]{2}\b|[0-9]/[0-9]"
)
# Letters that match others in a search without case: dotted and dotless i, long s, and the sign of the kelvin
NOT_EQUAL = re.compile("[\u0130\u0131\u017f\u212a]")
HAS_SIGN = re.compile(SIGNS)
FEW = 64  # Up to this number of texts, Arrow takes longer to read the pattern than Python to search the texts


def value_of(text: str) -> int:
    """Return the value of a whole number in digits or as a single word, or of `twenty-five`."""
    word = text.lower()
    return int(word) if word.isdigit() else 25 if word == "twenty-five" else UNITS.get(word, TENS.get(word, 0))


def _clock(match: re.Match[str]) -> str:
    """Return a time such as `ten past nine` as `9:10`."""
    minutes = {"half": 30, "quarter": 15}.get(match["minutes"].lower()) or value_of(match["minutes"])
    hour = value_of(match["hour"])
    if match["side"].lower() != "past":
        hour, minutes = hour - 1 or 12, 60 - minutes
    # An hour above 24 is none: `from 10 to 30`.
    return f"{hour}:{minutes:02}" if hour <= 24 and 0 < minutes < 60 else match[0]


def _share(match: re.Match[str]) -> str:
    """Return `one in five` as `20%`, if the share is a whole number of per cent."""
    part, whole = value_of(match["part"]), value_of(match["whole"])
    share = Fraction(100 * part, whole) if whole else Fraction(101)
    return f"{share}%" if share.denominator == 1 and share <= 100 else match[0]


Change = str | Callable[[re.Match[str]], str]
CHANGES: list[tuple[re.Pattern[str], Change]] = [
    (re.compile(pattern, re.IGNORECASE), change)
    for pattern, change in (
        (r"\bhalf[ -](?:a[ -])?dozen\b", "6"),
        (r"\ba dozen\b", "12"),
        (r"\ba score of\b", "20"),
        (r"\ba couple of (?=hundred|thousand|million|billion)", "two "),
        (
            r"\b(three|a) quarters? of a (million|billion)\b",
            lambda m: f"{(3 if m[1].lower() == 'three' else 1) * SCALES[m[2].lower()] // 4:,}",
        ),
        (r"\bhalf an? (?!million|billion|hundred|thousand|dozen)(?=[a-z])", "0.5 "),
        (r"(?<![\d/])1/2(?![\d/])", "0.5"),
        (
            rf"\b(?:an? )?(?P<minutes>half|quarter|{NUMBER})(?: minutes?)? (?P<side>past|to) (?P<hour>{HOURS}|\d\d?)\b"
            r"(?! ?(?:%|percent|[.,:]\d))",
            lambda m: _clock(m) if m["minutes"].lower() in ("half", "quarter") or _of_minutes(m) else m[0],
        ),
        (rf"\b(?P<part>{NUMBER}) (?:in|out of)(?: every)? (?P<whole>{NUMBER})\b(?![ -]hundred|:)", _share),
        (r"\b(mon|tue|wed|thu|fri)(?:s|rs|r|nes)?\b\.?(?= |$|[,;!?-])", lambda m: DAYS[m[1].capitalize()]),
        (
            r"\b(on|by|every|this|next|last|until|to|or|-) (sat|sun)\b\.?",
            lambda m: f"{m[1]} {DAYS[m[2].capitalize()]}",
        ),
        (
            r"\b(jan|feb|apr|jun|jul|aug|sept?|oct|nov|dec)\b\.?(?= |$|[,;!?-])",
            lambda m: MONTH_NAMES[MONTHS[m[1].lower()]],
        ),
        (r"\b(\d\d)(\d\d) hours\b", r"\1:\2"),
        (r"\b(0\d:\d\d)\b(?! ?[ap]\.?m)", r"\1 am"),
        (r"\b(1\d|20)(\d\d)-(\d\d)\b(?!-|/)", r"\1\2 to \1\3"),
        (rf"\b({'|'.join(HOLIDAYS)})\b", lambda m: HOLIDAYS[m[1].lower()]),
    )
]


def _of_minutes(match: re.Match[str]) -> bool:
    """Whether `ten to nine` may be a time: the first number is one of minutes that people name, with words."""
    minutes = match["minutes"].lower()
    return not minutes.isdigit() and value_of(minutes) in (5, 10, 20, 25) or "minute" in match[0].lower()


def in_digits(text: str) -> str:
    """Return a text with numbers, times and dates of several words in digits.

    >>> in_digits("from half past six to a quarter to nine"), in_digits("half a dozen eggs")
    ('from 6:30 to 8:45', '6 eggs')
    """
    if NOT_EQUAL.search(text):
        return text
    for pattern, change in CHANGES:
        text = pattern.sub(change, text)
    return text


def spelt_in_digits(texts: pa.Array) -> pa.Array:
    """Return texts [text], in their normal form, with numbers, times and dates of several words in digits."""
    if len(texts) <= FEW:
        rows = np.array(
            [row for row, text in enumerate(texts.to_pylist()) if text and HAS_SIGN.search(text)], np.int64
        )
    else:
        rows = np.flatnonzero(pc.match_substring_regex(texts, SIGNS).to_numpy(zero_copy_only=False))
    return change_rows(texts, rows, lambda some: pa.array(map(in_digits, some.to_pylist()), some.type))
