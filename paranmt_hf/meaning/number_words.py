"""Words and signs of numbers, and the flags of chunks that belong to a number."""

from __future__ import annotations

import re

from paranmt_hf.meaning.addresses import ADDRESS, has_address
from paranmt_hf.meaning.chunks import AND, CENT, HALF, HALF_DAY, NUMBER, PART, PER, SCALE, A
from paranmt_hf.meaning.measures import CURRENCIES, FRACTIONS, LOWER_CASE, MEASURES, OPPOSED

UNITS = {
    word: value
    for value, word in enumerate(
        "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
        "seventeen eighteen nineteen".split()
    )
}
ORDINALS = {
    word: value
    for value, word in enumerate(
        "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth "
        "fifteenth sixteenth seventeenth eighteenth nineteenth".split(),
        1,
    )
}
TENS = {
    form: 10 * value
    for value, stem in enumerate("twent thirt fort fift sixt sevent eight ninet".split(), 2)
    for form in (f"{stem}y", f"{stem}ieth")
}
DECADES = {f"{word[:-1]}ies": value for word, value in TENS.items() if word.endswith("y")}
HUNDREDS = {"hundred": 100, "hundredth": 100}
SCALES = {"thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
SCALES |= {f"{word}th": value for word, value in SCALES.items()} | {"mln": 10**6, "bln": 10**9, "bn": 10**9}
SUFFIXES = {"k": 10**3, "m": 10**6, "mn": 10**6, "mln": 10**6, "b": 10**9, "bn": 10**9, "tn": 10**12}
MONTHS = {
    form: number
    for number, month in enumerate(
        "january february march april may june july august september october november december".split(), 1
    )
    for form in {month, month[:3], *(["sept"] if number == 9 else [])}
}
# Names of months that are other words too; they are months only next to a number.
AMBIGUOUS = {"march", "mar", "may", "jun", "jul", "dec", "august"}
DAYS = "monday tuesday wednesday thursday friday saturday sunday".split()
WEEKDAYS = {form: f"day {day}" for day in DAYS for form in (day, f"{day}s")}
PERCENT = {"percent", "pct", "percentage", "percents"}
# Words that confirm numbers, but are no claims themselves, with the keys that they confirm.
CONFIRMING = {
    word: keys
    for keys, words in {
        ("1",): "once single sole",
        ("2",): "both couple pair twin twins duo bilateral seconds",
        ("2", "100", "200", "%"): "double doubled doubling doubles twice twofold",
        ("0.5", "50", "%", "half", "2", "6", "30", "t0:30"): "half",
        ("2", "half"): "halves",
        ("2", "50", "%"): "halve halved halving",
        ("3", "200", "300", "%"): "triple tripled triples tripling threefold thrice treble trebled",
        ("3",): "trio thirds",
        ("4", "25", "0.25", "%", "3", "15"): "quarter",
        ("4", "75", "0.75"): "quarters",
        ("4", "300", "400", "%"): "quadruple quadrupled fourfold",
        ("14", "2"): "fortnight",
        ("7", "second 604800"): "week",
        ("7",): "weeks",
        ("second 60",): "minute",
        ("second 3600",): "hour",
        ("second 86400",): "day",
        ("month 12",): "year",
        ("%",): "third",
        ("10", "month 120"): "decade",
        ("10",): "decades tens",
        ("100", "month 1200"): "century",
        ("100",): "centuries hundreds",
        ("12",): "dozens",
        ("1000",): "thousands millennium",
        ("1000000",): "millions",
        ("1000000000",): "billions",
        ("t0:00", "12"): "noon midday",
        ("t0:00", "12", "0", "24"): "midnight",
        ("0",): "none nil",
    }.items()
    for word in words.split()
}
ROMAN = dict(
    zip("II III IV V VI VII VIII IX X XI XII XIII XIV XV XVI XVII XVIII XIX XX XXI".split(), range(2, 22), strict=True)
)
WORDS = {*UNITS, *ORDINALS, *TENS, *DECADES, *HUNDREDS, *SCALES, *MONTHS, *WEEKDAYS, *PERCENT, "dozen"}
# `m` is left out, because it is a metre only right after a number; it is also a part of `I'm` and `p.m.`.
WORDS |= {*CONFIRMING, *MEASURES, *OPPOSED, "degree", "degrees"} - {"m"}
# Short names of months are months only in this spelling, because they are also other words.
SPELT = {month.capitalize() for month in MONTHS if len(month) < 5} | {"March", "August"}

# Words that belong to a number together with the chunks around them.
JOINING = {"and": AND, "per": PER, "cent": CENT, "am": HALF_DAY, "pm": HALF_DAY, "oclock": HALF_DAY, "a": A}
JOINING["m"] = NUMBER
DIGIT = re.compile(r"[0-9]")
MARK = re.compile(rf"[0-9%\u00b0{CURRENCIES}{''.join(FRACTIONS)}]")
WORD = re.compile(r"[^\W\d_]+")
PARTS_OF_ONE = frozenset("third quarter fifth sixth seventh eighth ninth tenth".split())


def number_bits(chunk: str, words: list[str]) -> int:
    """Return the flags for numbers of a chunk, the text between two blanks.

    - `NUMBER`: a number, or a part of one
    - `SCALE`: `hundred`, `thousand` and the like, which `and` may follow
    - `AND`, `PER`, `CENT`: one of these words
    - `HALF_DAY`: `a.m.`, `p.m.` or `o'clock`
    - `HALF`, `A`: the words in `half a million`
    - `PART`: a word such as in `a third`

    Args:
        chunk: The text.
        words: Its words, which are runs of letters.
    """
    if has_address(chunk):
        chunk = ADDRESS.sub(" ", chunk)
        words = WORD.findall(chunk)
    for word in words:
        lower = word.lower()
        if (lower in WORDS or word in ROMAN) and means_number(word, lower):
            end = words[-1].lower()
            part = PART if lower in PARTS_OF_ONE else 0
            return NUMBER | part | (SCALE if end in HUNDREDS or end in SCALES else HALF if end == "half" else 0)
    if chunk.isalpha():
        return JOINING.get(chunk.lower(), 0)
    if MARK.search(chunk):
        return NUMBER
    return JOINING.get("".join(words).lower(), 0) if words else 0


def means_number(word: str, lower: str) -> bool:
    """Whether a word belongs to a number in this spelling; `lower` is the word in lower case."""
    if lower in MONTHS and (len(lower) < 5 or lower in AMBIGUOUS):
        return word in SPELT
    if lower in LOWER_CASE:
        return word == lower
    return lower in WORDS or word in ROMAN
