"""Numbers in sentences: digits and words, dates, times, percentages.

Chunks of text between blanks that have to do with numbers form runs, such as `two hundred and five per cent` or
`5 May 2008`; a run is read on its own. Equal are:

- `1,000`, `1 000`, `1000`, `one thousand`; `2.5 million`, `2,500,000`; `half a million`, `500,000`; `25`, `25th`,
  `twenty-five`, `twenty-fifth`;
- `5 %`, `5 percent`, `5 per cent`;
- `May 5`, `5/5`, where a part of a date such as 12.05.2008 may be the month; `Jan.`, `January`;
- `10:30`, `10.30`, `10:30 pm`, `22:30`; `10 a.m.`, `10:00`, `10 o'clock`: times count by the clock of twelve hours;
- `1990s`, `90s`, `nineties`.

`one`, `first`, `second`, `both`, `twice`, `half`, `hundreds`, Roman numerals and the like confirm a number and do not
claim one: languages use them too freely.
"""

from __future__ import annotations

import re

from paranmt_hf.corpus.meaning.items import Claim, Statement

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
# Months whose names are other words too: only a number next to them makes them one.
AMBIGUOUS = {"march", "mar", "may", "jun", "jul", "dec", "august"}
DAYS = "monday tuesday wednesday thursday friday saturday sunday".split()
WEEKDAYS = {form: f"day {day}" for day in DAYS for form in (day, f"{day}s")}
PERCENT = {"percent", "pct", "percentage", "percents"}
# Words that confirm numbers and claim none.
CONFIRMING = {
    word: keys
    for keys, words in {
        ("1",): "once single sole",
        ("2",): "double doubled doubling doubles twice twofold both couple pair twin twins duo bilateral seconds",
        ("0.5", "50", "%", "half", "2", "6", "30", "t0:30"): "half",
        ("2", "half"): "halves",
        ("2", "50"): "halved",
        ("3",): "triple tripled trio threefold thirds thrice",
        ("4", "25", "0.25", "%", "3", "15"): "quarter",
        ("4", "75", "0.75"): "quarters",
        ("4",): "quadruple fourfold",
        ("14", "2"): "fortnight",
        ("7",): "week weeks",
        ("%",): "third",
        ("10",): "decade decades tens",
        ("100",): "century centuries hundreds",
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
WORDS |= set(CONFIRMING)
# Abbreviations of months are also names and parts of words: only in this spelling.
SPELT = {month.capitalize() for month in MONTHS if len(month) < 5} | {"March", "August"}

# Bits of a chunk.
NUMBER, SCALE, AND, PER, CENT, HALF_DAY = (1 << bit for bit in range(6))
HALF, A = 1 << 19, 1 << 20
JOINING = {"and": AND, "per": PER, "cent": CENT, "am": HALF_DAY, "pm": HALF_DAY, "oclock": HALF_DAY, "a": A}
DIGIT = re.compile(r"[0-9]")


def number_bits(chunk: str, words: list[str]) -> int:
    """Flags for numbers of a chunk between blanks and its words (runs of letters).

    `NUMBER`: a number or part of one; `SCALE`: hundred, thousand, which `and` may follow; `AND`; `PER` and `CENT`: of
    `per cent`; `HALF_DAY`: a.m., p.m., o'clock; `HALF` and `A`: of `half a million`.
    """
    for word in words:
        lower = word.lower()
        if (lower in WORDS or word in ROMAN) and _is_number(word, lower):
            last = words[-1].lower()
            return NUMBER | (SCALE if last in HUNDREDS or last in SCALES else HALF if last == "half" else 0)
    if chunk.isalpha():
        return JOINING.get(chunk.lower(), 0)
    if DIGIT.search(chunk) or "%" in chunk:
        return NUMBER
    return JOINING.get("".join(words).lower(), 0) if words else 0


def _is_number(word: str, lower: str) -> bool:
    if lower in MONTHS and (len(lower) < 5 or lower in AMBIGUOUS):
        return word in SPELT
    return lower in WORDS or word in ROMAN


PARTS = re.compile(
    r"""(?P<date>(?<![\d.,/-])(?:\d{1,2}([./-])\d{1,2}\2\d{2,4}|\d{4}([/-])\d{1,2}\3\d{1,2})(?![\d/-]))
    |(?P<time>(?<![\d:.,])\d{1,2}:\d{2}(?![\d:]))
    |(?P<decade>'?(?:\d{2}|\d{4})(?:'|-)?e?s(?![^\W_]))
    |(?P<inside>(?<=[^\W\d_])\d+(?:[.,]\d+)*)
    |(?P<grouped>(?<![\d.,])\d{1,3}(?:,\d{3})+(?:\.\d+)?(?![\d]|,\d)
      |(?<![\d.,])\d{1,3}(?:(?:\.\d{3}){2,}(?:,\d+)?|\.\d{3},\d+)(?![\d]|\.\d)
      |(?<![\d.,])[1-9]\d{0,2}(?:\ \d{3})+(?:\.\d+)?(?!\d|[.,]\d))
    |(?P<decimal>\d+[.,]\d+)|(?P<whole>\d+)
    |(?P<percent>%)|(?P<half>(?<![^\W_])[apAP]\.?[mM](?![^\W\d_])\.?|o['\u2019]?clock)|(?P<word>[^\W\d_]+)""",
    re.VERBOSE | re.ASCII,
)
ATTACHED = re.compile(r"(k|m|mn|mln|b|bn|tn)(?![^\W_])", re.IGNORECASE)
# Longer sequences of digits are compared as text; Python refuses to convert very long ones.
DIGITS = 30
LARGEST = 10**DIGITS


def numbers_in(run: str) -> Statement:
    """Read a run of chunks that belong to numbers.

    >>> numbers_in("two hundred and five per cent").claims
    (('205',), ('%',))
    """
    reader = _Reader(run)
    for match in PARTS.finditer(run.replace("\u2019", "'")):
        getattr(reader, f"on_{match.lastgroup}")(match)
    reader.flush()
    return Statement(tuple(dict.fromkeys(reader.claims)), tuple(dict.fromkeys(reader.evidence)))


class _Reader:
    """Reads the parts of a run in order.

    The current number is in `_digits`, as (value times 10 ** places, places, other keys), or, if it is of words, in
    `_small`, the part below the next thousand, and `_large`.
    """

    def __init__(self, run: str) -> None:
        self.claims: list[Claim] = []
        self.evidence: list[str] = []
        self._run = run
        self._dated = bool(DIGIT.search(run))
        self._digits: tuple[int, int, list[str]] | None = None
        self._large, self._small = 0, -1
        self._weak = True
        self._last = ""

    def claim(self, *keys: str) -> None:
        self.claims.append(tuple(dict.fromkeys(keys)))
        self.evidence += keys

    def flush(self) -> None:
        """Finish the current number."""
        if self._digits is not None:
            value, places, others = self._digits
            key = spelt(value, places)
            self.claim(key, *others, *(["half"] if key.endswith(".5") else []))
            self._digits = None
        if self._small >= 0 or self._large:
            whole = str(self._large + max(self._small, 0))
            if self._weak:
                self.evidence.append(whole)
            else:
                self.claim(whole)
            self._large, self._small, self._weak = 0, -1, True

    def _start(self, value: int, places: int, *others: str) -> None:
        self.flush()
        self._digits = (value, places, list(others))

    def on_date(self, match: re.Match[str]) -> None:
        self.flush()
        for part in re.split(r"[./-]", match.group()):
            number = int(part)
            others = [f"month {number}"] if 1 <= number <= 12 else []
            if len(part) == 2:
                others += [f"20{part}", f"19{part}"]
            self.claim(str(number), *others)

    def on_time(self, match: re.Match[str]) -> None:
        self.flush()
        hour, minute = map(int, match.group().split(":"))
        if minute > 59 or hour > 24:
            self.claim(str(hour))
            self.claim(str(minute))
        else:
            self.claim(_clock(hour, minute), *([str(hour), str(hour % 12)] if not minute else []))

    def on_decade(self, match: re.Match[str]) -> None:
        self.flush()
        digits = re.sub(r"\D", "", match.group())
        self.claim(f"{int(digits) % 100}s", str(int(digits)))

    def on_grouped(self, match: re.Match[str]) -> None:
        text = match.group()
        comma = "," in text and text.index(",") < (text.find(".") if "." in text else len(text))
        whole, _, fraction = text.replace(",", "").partition(".") if comma or " " in text else _european(text)
        self._number(whole.replace(" ", ""), fraction, match)

    def on_decimal(self, match: re.Match[str]) -> None:
        whole, fraction = re.split("[.,]", match.group())
        others = []
        if len(fraction) == 3 and 1 <= len(whole) <= 3 and whole != "0":
            others.append(f"{int(whole)}{fraction}")  # 1.000 is a thousand in many languages
        if len(fraction) == 2 and len(whole) <= 2 and int(whole) <= 24 and int(fraction) <= 59:
            others.append(_clock(int(whole), int(fraction)))
        self._number(whole, fraction, match, *others)

    def on_inside(self, match: re.Match[str]) -> None:
        """Treat digits after a letter, as in CO2 and km2, as part of a name or a unit."""
        self.flush()
        self.evidence += re.findall("[0-9]+", match.group())

    def on_whole(self, match: re.Match[str]) -> None:
        self._number(match.group(), "", match)

    def _number(self, whole: str, fraction: str, match: re.Match[str], *others: str) -> None:
        if len(whole) + len(fraction) > DIGITS:
            self.flush()
            self.claim(match.group())
            return
        attached = ATTACHED.match(self._run, match.end())
        value, places = int(whole + fraction), len(fraction)
        if attached:
            others = (*others, spelt(value * SUFFIXES[attached.group().lower()], places))
        self._start(value, places, *others)

    def on_percent(self, match: re.Match[str]) -> None:
        self.flush()
        self.claim("%")

    def on_half(self, match: re.Match[str]) -> None:
        if self._digits is not None and not self._digits[1] and self._digits[0] <= 24:
            hour, _, others = self._digits
            more = [_clock(hour, 0), str(hour % 12), str(hour % 12 + 12)]
            self._digits = (hour, 0, [*others, *more])
        elif self._small > 0 and not self._large and self._small <= 12:
            hour, self._small = self._small, -1
            self.claim(str(hour), _clock(hour, 0), str(hour % 12), str(hour % 12 + 12))
        self.flush()

    def on_word(self, match: re.Match[str]) -> None:
        word, lower = match.group(), match.group().lower()
        if lower == "a" and self._last == "half":
            return
        if not self._add(lower):
            self.flush()
            self._other(word, lower)
        self._last = lower

    def _add(self, word: str) -> bool:
        """Add a word to the current number, or begin a number; False if it is not a number word."""
        scale = SCALES.get(word)
        if self._small >= LARGEST:
            self.flush()
        if self._digits is not None and (scale or word in HUNDREDS):
            value, places, _ = self._digits
            if value >= LARGEST:
                return False
            # "5 to 10 million": the bare number counts too.
            self.evidence.append(spelt(value, places))
            self._digits = (value * (scale or 100), places, [])
            return True
        if scale:
            if self._last == "half":
                scale //= 2
            self._large, self._small = self._large + max(self._small, 1) * scale, -1
            self._weak = False
        elif word in HUNDREDS:
            self._small, self._weak = max(self._small, 1) * 100, False
        elif word == "dozen":
            self._small, self._weak = max(self._small, 1) * 12, False
        elif word == "and":
            return self._small >= 100 or self._large > 0
        elif word in UNITS or word in ORDINALS or word in TENS:
            self._add_small(word)
        else:
            return False
        return True

    def _add_small(self, word: str) -> None:
        value = UNITS.get(word, ORDINALS.get(word, TENS.get(word, 0)))
        after_tens = self._small % 100 >= 20 and self._small % 10 == 0 and 0 < value < 10
        after_hundreds = self._small >= 100 and self._small % 100 == 0 and value > 0
        if self._small >= 0 and not after_tens and not after_hundreds:
            self.flush()
        if self._digits is not None:
            self.flush()
        begins = self._small < 0 and not self._large
        self._small = max(self._small, 0) + value
        if not (begins and word in ("one", "first", "second", "zero")):
            self._weak = False

    def _other(self, word: str, lower: str) -> None:
        if lower in MONTHS and _is_number(word, lower):
            key = f"month {MONTHS[lower]}"
            if lower not in AMBIGUOUS or self._dated:
                self.claim(key)
            else:
                self.evidence.append(key)
        elif lower in WEEKDAYS:
            self.claim(WEEKDAYS[lower])
        elif lower in DECADES:
            self.claim(f"{DECADES[lower]}s", str(DECADES[lower]))
        elif lower in ("percent", "percents", "pct") or (lower == "cent" and self._last == "per"):
            self.claim("%")
        elif lower == "percentage":
            self.evidence.append("%")
        elif lower in CONFIRMING:
            self.evidence += CONFIRMING[lower]
        elif word in ROMAN:
            self.evidence.append(str(ROMAN[word]))


def _european(text: str) -> tuple[str, str, str]:
    whole, _, fraction = text.replace(".", "").partition(",")
    return whole, ",", fraction


def _clock(hour: int, minute: int) -> str:
    """Key of a time of day, the same for both halves of the day, because texts write these in many ways."""
    return f"t{hour % 12}:{minute:02d}"


def spelt(value: int, places: int) -> str:
    """Write a number: `spelt(2500, 2)` is `25`, `spelt(205, 2)` is `2.05`."""
    digits = str(value).rjust(places + 1, "0")
    whole, fraction = digits[: len(digits) - places], digits[len(digits) - places :].rstrip("0")
    return f"{whole}.{fraction}" if fraction else whole
