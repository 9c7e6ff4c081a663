"""Units of measure, fractions and multiples, and the words for them.

A unit after a number, a fraction, a multiple and a half of the day are claims that count only against another one of
the same dimension: "80 kilograms" and "80 pounds" differ, "80 kilograms" and "80" do not.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from paranmt_hf.meaning.items import condition


@dataclass(frozen=True)
class Measure:
    """A unit of measure that a word stands for."""

    units: tuple[str, ...]  # Keys of the units that the word may mean; a pound is a mass or money
    dimensions: tuple[str, ...]  # What these units measure, such as "mass"
    base: str  # The unit into which quantities are converted to compare them
    factor: Fraction  # Number of base units in one unit

    def quantity(self, value: Fraction) -> str:
        """Return the key of `value` of these units; it is the same for 1.5 years and 18 months."""
        return f"{self.base} {value * self.factor}"

    def claim(self, *others: str) -> tuple[str, ...]:
        """Return the claim that a text has this unit; the keys `others` confirm it too."""
        return (*self.units, *others, *map(condition, self.dimensions))


# Dimension, unit, base unit, number of base units in the unit, and the words for the unit.
_TABLE = (
    ("mass", "kilogram", "milligram", 10**6, "kg kgs kilo kilos kilogram kilograms kilogramme kilogrammes"),
    ("mass", "gram", "milligram", 10**3, "g gram grams gramme grammes"),
    ("mass", "milligram", "milligram", 1, "mg milligram milligrams"),
    ("mass", "ton", "milligram", 10**9, "t ton tons tonne tonnes"),
    ("mass", "ounce", "ounce", 1, "oz ounce ounces"),
    ("mass", "pound", "ounce", 16, "lb lbs"),
    ("length", "kilometre", "millimetre", 10**6, "km kms kmh kph kilometer kilometers kilometre kilometres"),
    ("length", "metre", "millimetre", 10**3, "m meter meters metre metres"),
    ("length", "centimetre", "millimetre", 10, "cm centimeter centimeters centimetre centimetres"),
    ("length", "millimetre", "millimetre", 1, "mm millimeter millimeters millimetre millimetres"),
    ("length", "mile", "inch", 63360, "mi mile miles mph"),
    ("length", "yard", "inch", 36, "yd yard yards"),
    ("length", "foot", "inch", 12, "ft foot feet"),
    ("length", "inch", "inch", 1, "inch inches"),
    ("area", "hectare", "hectare", 1, "ha hectare hectares"),
    ("area", "acre", "acre", 1, "acre acres"),
    ("volume", "litre", "millilitre", 1000, "l liter liters litre litres"),
    ("volume", "millilitre", "millilitre", 1, "ml milliliter milliliters millilitre millilitres"),
    ("volume", "gallon", "pint", 8, "gallon gallons"),
    ("volume", "pint", "pint", 1, "pint pints"),
    ("volume", "tablespoon", "teaspoon", 3, "tbsp tablespoon tablespoons"),
    ("volume", "teaspoon", "teaspoon", 1, "tsp teaspoon teaspoons"),
    ("volume", "barrel", "barrel", 1, "barrel barrels"),
    ("time", "second", "second", 1, "sec secs seconds"),
    ("time", "minute", "second", 60, "min mins minute minutes"),
    ("time", "hour", "second", 3600, "h hr hrs hour hours"),
    ("time", "day", "second", 86400, "day days"),
    ("time", "week", "second", 604800, "week weeks"),
    ("time", "month", "month", 1, "month months"),
    ("time", "year", "month", 12, "yr yrs year years"),
    ("time", "decade", "month", 120, "decade decades"),
    ("time", "century", "month", 1200, "century centuries"),
    ("money", "dollar", "dollar", 1, "$ usd dollar dollars"),
    ("money", "euro", "euro", 1, "\u20ac eur euro euros"),
    ("money", "sterling", "sterling", 1, "\u00a3 gbp sterling"),
    ("money", "yen", "yen", 1, "\u00a5 jpy yen"),
    ("money", "yuan", "yuan", 1, "cny yuan renminbi"),
    ("money", "rouble", "rouble", 1, "rub rouble roubles ruble rubles"),
    ("money", "rupee", "rupee", 1, "inr rupee rupees"),
    ("money", "franc", "franc", 1, "chf franc francs"),
    ("money", "crown", "crown", 1, "czk crown crowns koruna korunas"),
    ("temperature", "celsius", "celsius", 1, "\u00b0c celsius centigrade"),
    ("temperature", "fahrenheit", "fahrenheit", 1, "\u00b0f fahrenheit"),
    ("data", "kilobyte", "kilobyte", 1, "kb kilobyte kilobytes"),
    ("data", "megabyte", "kilobyte", 10**3, "mb megabyte megabytes"),
    ("data", "gigabyte", "kilobyte", 10**6, "gb gigabyte gigabytes"),
    ("data", "terabyte", "kilobyte", 10**9, "tb terabyte terabytes"),
    ("power", "watt", "watt", 1, "watt watts"),
    ("power", "kilowatt", "watt", 10**3, "kw kilowatt kilowatts"),
    ("power", "megawatt", "watt", 10**6, "mw megawatt megawatts"),
    ("power", "gigawatt", "watt", 10**9, "gw gigawatt gigawatts"),
)
MEASURES = {
    word: Measure((f"unit {unit}",), (dimension,), base, Fraction(factor))
    for dimension, unit, base, factor, words in _TABLE
    for word in words.split()
}
MEASURES |= dict.fromkeys(
    ("pound", "pounds"), Measure(("unit pound", "unit sterling"), ("mass", "money"), "ounce", Fraction(16))
)
# Abbreviations of units that mean something else in capitals, or are letters in names.
LOWER_CASE = frozenset("g t l h m mi ft sec min ha oz mm".split())
CURRENCIES = "$\u20ac\u00a3\u00a5"

# For each character of a fraction its value, and other keys that confirm it: a third may be 33 percent.
FRACTIONS = {
    "\u00bd": (Fraction(1, 2), "0.5 50 % half 2 6 30 t0:30"),
    "\u00bc": (Fraction(1, 4), "4 25 0.25 % 3 15"),
    "\u00be": (Fraction(3, 4), "3 4 75 0.75 % 9 45"),
    "\u2153": (Fraction(1, 3), "3 33 34 33.3 33.33 0.33 % 4 20"),
    "\u2154": (Fraction(2, 3), "2 3 66 67 66.6 66.7 66.67 0.67 0.66 % 8 40"),
    "\u2155": (Fraction(1, 5), "5 20 0.2 % 12"),
    "\u2152": (Fraction(1, 10), "10 0.1 % 6"),
}
# Words whose claim counts only against other words of the same dimension: for each its dimension and its key.
OPPOSED = {
    word: (dimension, key)
    for dimension, key, words in (
        ("times", "times 2", "double doubled doubles doubling twice twofold"),
        ("times", "times 3", "triple tripled triples tripling thrice threefold treble trebled"),
        ("times", "times 4", "quadruple quadrupled fourfold"),
        ("times", "times 1/2", "halve halved halves halving"),
        ("half day", "am", "morning mornings midnight"),
        ("half day", "pm", "afternoon afternoons evening evenings noon midday"),
    )
    for word in words.split()
}
