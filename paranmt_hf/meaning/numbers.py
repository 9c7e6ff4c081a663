"""Numbers in sentences: digits and words, dates, times, percentages.

Chunks, which are texts between blanks, form runs if they belong to a number, such as `two hundred and five per cent`
or `5 May 2008`. Each run is read by itself. Equal are:

- `1,000`, `1 000`, `1000`, `one thousand`; `2.5 million`, `2,500,000`; `half a million`, `500,000`; `25`, `25th`,
  `twenty-five`, `twenty-fifth`;
- `5 %`, `5 percent`, `5 per cent`;
- `May 5`, `5/5`, because any part of a date such as 12.05.2008 may be the month; `Jan.`, `January`;
- `10:30`, `10.30`, `10:30 pm`, `22:30`; `10 a.m.`, `10:00`, `10 o'clock`. Times are those of a clock of twelve hours,
and
  halves of the day count only against each other;
- `1990s`, `90s`, `nineties`;
- `12a`, `12A`, and `12` without a letter, but not `12b`; `KL123`, `KL 123`, but not `KL124`;
- `one and a half years`, `a year and a half`, `18 months`; `1.5 kg`, `1,500 grams`; `a third`, `33 percent`.

`one`, `first`, `second`, `both`, `twice`, `half`, `hundreds` and the like confirm a number but are no claims, because
languages use them too freely. Units, fractions, multiples (`measures.py`) and Roman numerals count only against others
of their kind.
"""

from __future__ import annotations

import re
from fractions import Fraction

from paranmt_hf.meaning.addresses import ADDRESS
from paranmt_hf.meaning.items import Claim, Statement, condition
from paranmt_hf.meaning.measures import FRACTIONS, LOWER_CASE, MEASURES, OPPOSED
from paranmt_hf.meaning.number_words import (
    AMBIGUOUS,
    CONFIRMING,
    DECADES,
    DIGIT,
    HUNDREDS,
    MONTHS,
    ORDINALS,
    ROMAN,
    SCALES,
    SUFFIXES,
    TENS,
    UNITS,
    WEEKDAYS,
    means_number,
)

PARTS = re.compile(
    r"""(?P<date>(?<![\d.,/-])(?:\d{1,2}([./-])\d{1,2}\2\d{2,4}|\d{4}([/-])\d{1,2}\3\d{1,2})(?![\d/-]))
    |(?P<time>(?<![\d:.,])\d{1,2}:\d{2}(?![\d:]))
    |(?P<decade>'?(?:\d{2}|\d{4})(?:'|-)?e?s(?![^\W_]))
    |(?P<inside>(?<=[^\W\d_])\d+(?:[.,]\d+)*)
    |(?P<grouped>(?<![\d.,])\d{1,3}(?:,\d{3})+(?:\.\d+)?(?![\d]|,\d)
      |(?<![\d.,])\d{1,3}(?:(?:\.\d{3}){2,}(?:,\d+)?|\.\d{3},\d+)(?![\d]|\.\d)
      |(?<![\d.,])[1-9]\d{0,2}(?:\ \d{3})+(?:\.\d+)?(?!\d|[.,]\d))
    |(?P<decimal>\d+[.,]\d+)|(?P<whole>\d+)
    |(?P<percent>%)|(?P<half>(?<![^\W\d_])[apAP]\.?[mM](?![^\W\d_])\.?|o'?clock)
    |(?P<fraction>[\u00bc-\u00be\u2152-\u2155])|(?P<unit>[$\u20ac\u00a3\u00a5]|\u00b0[cCfF](?![^\W\d_]))
    |(?P<word>[^\W\d_]+)""",
    re.VERBOSE | re.ASCII,
)
ATTACHED = re.compile(r"(k|m|mn|mln|b|bn|tn)(?![^\W_])", re.IGNORECASE)
LETTER = re.compile(r"[a-zA-Z](?![^\W_])")
SPEED = re.compile(r"[./][a-z]")  # After an m of a speed: m/s, m/h, m.p.h.
LETTERS = re.compile(r"[a-zA-Z]+$")  # Before the digits of a code, such as KL123
# Longer sequences of digits are compared as text, because Python refuses to convert very long ones.
DIGITS = 30
LARGEST = 10**DIGITS
# Words for a fraction, which are replaced by its character: behind a number, alone, and behind a unit.
SPELT_FRACTIONS = (
    (re.compile(r"[ -]and[ -]a[ -]half\b", re.IGNORECASE), "\u00bd"),
    (re.compile(r"[ -]and[ -]a[ -]quarter\b", re.IGNORECASE), "\u00bc"),
    (re.compile(r"\b(?:a|one)[ -]third\b", re.IGNORECASE), "\u2153"),
    (re.compile(r"\btwo[ -]thirds\b", re.IGNORECASE), "\u2154"),
    (re.compile(r"\b(?:a|one)[ -]quarter\b", re.IGNORECASE), "\u00bc"),
    (re.compile(r"\bthree[ -]quarters\b", re.IGNORECASE), "\u00be"),
    (re.compile(r"\b(?:a|one)[ -]fifth\b", re.IGNORECASE), "\u2155"),
    (re.compile(r"\b(?:a|one)[ -]tenth\b", re.IGNORECASE), "\u2152"),
    (re.compile(r"\b(?:(?:one|1) )?(hour|day|week|month|year|mile)\u00bd", re.IGNORECASE), "1\u00bd \\1"),
    (re.compile(r"\b(\w+s)\u00bd", re.IGNORECASE), "\u00bd \\1"),
)


def numbers_in(run: str) -> Statement:
    """Read a run of chunks that belong to numbers.

    >>> numbers_in("two hundred and five per cent").claims
    (('205',), ('%',))
    """
    run = ADDRESS.sub(" ", run) if "." in run or "@" in run else run
    if " " in run or "-" in run:
        for pattern, character in SPELT_FRACTIONS:
            run = pattern.sub(character, run)
    reader = _Reader(run)
    for match in PARTS.finditer(run):
        getattr(reader, f"on_{match.lastgroup}")(match)
    reader.flush()
    return Statement(tuple(dict.fromkeys(reader.claims)), tuple(dict.fromkeys(reader.evidence)))


class _Reader:
    """Reads the parts of a run in order, and collects its claims and evidence.

    The current number is kept in `_digits` if it is written in digits: value times 10 ** places, places, and other
    keys. If it is written in words, `_small` is the part below the next thousand, or -1, and `_large` the rest.
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
        """Add a claim that any of some keys confirms; the text itself confirms them all."""
        self.claims.append(tuple(dict.fromkeys(keys)))
        self.evidence += keys

    def claim_against(self, *keys: str, dimension: str) -> None:
        """Add a claim that counts only if the other text makes a claim of the same dimension."""
        self.claims.append((*keys, condition(dimension)))
        self.evidence += [*keys, dimension]

    def flush(self, *quantity: str) -> None:
        """Finish the current number; `quantity` is the key of the number with its unit, if it has one."""
        if self._digits is not None:
            value, places, others = self._digits
            key = spelt(value, places)
            self.claim(key, *others, *quantity, *(["half"] if key.endswith(".5") else []))
            self._digits = None
        if self._small >= 0 or self._large:
            whole = str(self._large + max(self._small, 0))
            if self._weak:
                self.evidence += [whole, *quantity]
            else:
                self.claim(whole, *quantity)
            self._large, self._small, self._weak = 0, -1, True

    def _value(self) -> Fraction | None:
        """Return the current number; None if there is none."""
        if self._digits is not None:
            value, places, _ = self._digits
            return Fraction(value, 10**places)
        return Fraction(self._large + max(self._small, 0)) if self._small >= 0 or self._large else None

    def _measure(self, word: str) -> bool:
        """Read a word as the unit of the current number; False if there is no number, or it is no unit."""
        value, measure = self._value(), MEASURES.get(word)
        if value is None or measure is None:
            return False
        quantity = measure.quantity(value)
        self.flush(quantity)
        self.claims.append(measure.claim(quantity))
        self.evidence += [*measure.units, *measure.dimensions]
        return True

    def on_unit(self, match: re.Match[str]) -> None:
        """Read a sign of money, which may be before or after its number, or of temperature."""
        unit = MEASURES[match.group().lower()]
        self.claims.append(unit.claim())
        self.evidence += [*unit.units, *unit.dimensions]

    def on_fraction(self, match: re.Match[str]) -> None:
        """Read the character of a fraction, alone or behind a whole number."""
        part, others = FRACTIONS[match.group()]
        whole = self._value()
        if whole is not None and whole.denominator == 1 and whole < LARGEST:
            self._large, self._small, self._weak = 0, -1, True
            self._digits = (int((whole + part) * 100), 2, [])
        else:
            self.flush()
            self.claim_against(f"part {part}", dimension="part")
            self.evidence += others.split()

    def _start(self, value: int, places: int, *others: str) -> None:
        """Finish the current number, and begin one in digits."""
        self.flush()
        self._digits = (value, places, list(others))

    def on_date(self, match: re.Match[str]) -> None:
        """Read a date in digits; each part may be the month."""
        self.flush()
        for part in re.split(r"[./-]", match.group()):
            number = int(part)
            others = [f"month {number}"] if 1 <= number <= 12 else []
            if len(part) == 2:
                others += [f"20{part}", f"19{part}"]
            self.claim(str(number), *others)

    def on_time(self, match: re.Match[str]) -> None:
        """Read a time such as 10:30."""
        self.flush()
        hour, minute = map(int, match.group().split(":"))
        if minute > 59 or hour > 24:
            self.claim(str(hour))
            self.claim(str(minute))
        else:
            self.claim(_clock(hour, minute), *([str(hour), str(hour % 12)] if not minute else []))
            if hour > 12:
                self.claim_against("pm", dimension="half day")

    def on_decade(self, match: re.Match[str]) -> None:
        """Read a decade such as 1990s."""
        self.flush()
        digits = re.sub(r"\D", "", match.group())
        self.claim(f"{int(digits) % 100}s", str(int(digits)))

    def on_grouped(self, match: re.Match[str]) -> None:
        """Read a number with groups of three digits, such as 1,000."""
        text = match.group()
        first = next((character for character in text if character in ",. "), "")
        # In 1.000,5 the full stop and the comma have changed places.
        groups, point = (".", ",") if first == "." else (",", ".")
        whole, _, fraction = text.replace(groups, "").partition(point)
        self._number(whole.replace(" ", ""), fraction, match)

    def on_decimal(self, match: re.Match[str]) -> None:
        """Read a number with a decimal point or comma, which may also be a time or a thousand."""
        whole, fraction = re.split("[.,]", match.group())
        others = []
        if len(fraction) == 3 and 1 <= len(whole) <= 3 and whole != "0":
            others.append(f"{int(whole)}{fraction}")  # 1.000 is a thousand in many languages
        if len(fraction) == 2 and len(whole) <= 2 and int(whole) <= 24 and int(fraction) <= 59:
            others.append(_clock(int(whole), int(fraction)))
        self._number(whole, fraction, match, *others)

    def on_inside(self, match: re.Match[str]) -> None:
        """Read digits after a letter, as in CO2 and KL123: part of a name or a unit, which KL124 contradicts."""
        self.flush()
        self.evidence += re.findall("[0-9]+", match.group())
        before = self._run[max(0, match.start() - 10) : match.start()]
        if letters := LETTERS.search(before):
            name = letters.group().lower()
            self.claim_against(f"code {name}{match.group().replace(',', '.')}", dimension=f"code {name}")

    def on_whole(self, match: re.Match[str]) -> None:
        """Read a whole number."""
        self._number(match.group(), "", match)

    def _number(self, whole: str, fraction: str, match: re.Match[str], *others: str) -> None:
        """Begin a number in digits, and read a suffix such as `k` or a letter that is attached to it."""
        if len(whole) + len(fraction) > DIGITS:
            self.flush()
            self.claim(match.group())
            return
        attached = ATTACHED.match(self._run, match.end())
        value, places = int(whole + fraction), len(fraction)
        if attached:
            others = (*others, spelt(value * SUFFIXES[attached.group().lower()], places))
        self._start(value, places, *others)
        letter = LETTER.match(self._run, match.end())
        if letter:
            key = spelt(value, places)
            self.claim_against(f"{key}{letter.group().lower()}", dimension=f"{key} and a letter")

    def on_percent(self, match: re.Match[str]) -> None:
        """Read a percent sign."""
        self.flush()
        self.claim("%")

    def on_half(self, match: re.Match[str]) -> None:
        """Read a half of the day or `o'clock` after an hour."""
        if self._digits is not None and not self._digits[1] and self._digits[0] <= 24:
            hour, _, others = self._digits
            more = [_clock(hour, 0), str(hour % 12), str(hour % 12 + 12)]
            self._digits = (hour, 0, [*others, *more])
        elif self._small > 0 and not self._large and self._small <= 12:
            hour, self._small = self._small, -1
            self.claim(str(hour), _clock(hour, 0), str(hour % 12), str(hour % 12 + 12))
        self.flush()
        half = match.group()[0].lower()
        if half != "o":
            self.claim_against(f"{half}m", dimension="half day")

    def on_word(self, match: re.Match[str]) -> None:
        """Read a word: a unit, a part of a number, or another word such as a month."""
        word, lower = match.group(), match.group().lower()
        if (lower == "a" and self._last == "half") or lower in ("degree", "degrees"):
            return
        known = word if lower in LOWER_CASE else lower
        is_speed = word == "m" and SPEED.match(self._run, match.end())
        if (is_speed or not self._measure(known)) and not self._add(lower):
            self.flush()
            self._other(word, lower)
        self._last = lower

    def _add(self, word: str) -> bool:
        """Add a word to the current number, or begin a number with it; False if it is no word of numbers."""
        scale = SCALES.get(word)
        if self._small >= LARGEST:
            self.flush()
        if self._digits is not None and (scale or word in HUNDREDS):
            value, places, _ = self._digits
            if value >= LARGEST:
                return False
            # In "5 to 10 million" the number 10 may count without the million.
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
        """Add a number word below a hundred to the current number, or begin a new number with it."""
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
        """Read a word that is no part of the current number, such as a month, a day or `percent`."""
        if lower in MONTHS and means_number(word, lower):
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
        elif lower in CONFIRMING or lower in OPPOSED or lower in MEASURES:
            self.evidence += CONFIRMING.get(lower, ())
            if lower in MEASURES:
                self.evidence += MEASURES[lower].units
            if lower in OPPOSED:
                dimension, key = OPPOSED[lower]
                self.claim_against(key, dimension=dimension)
            if lower == "half" and self._last not in ("first", "second"):
                self.claim_against("part 1/2", dimension="part")
        elif word in ROMAN:
            self.claim_against(str(ROMAN[word]), dimension="roman")


def _clock(hour: int, minute: int) -> str:
    """Return the key of a time of day.

    It is the same for both halves of the day, because texts write these in many ways.
    """
    return f"t{hour % 12}:{minute:02d}"


def spelt(value: int, places: int) -> str:
    """Write a number without trailing zeros: `spelt(2500, 2)` is "25", `spelt(205, 2)` is "2.05"."""
    digits = str(value).rjust(places + 1, "0")
    whole, fraction = digits[: len(digits) - places], digits[len(digits) - places :].rstrip("0")
    return f"{whole}.{fraction}" if fraction else whole
