# /// script
# requires-python = ">=3.11"
# dependencies = []
# ///
"""Write everyday sentences, put together at random from lists of words: scenes, headlines, questions, remarks.

Text under free licences has few such sentences. To learn a teacher's similarities, sentences need not make sense, but
there must be similar ones: "a boy kicks a ball", "two girls are kicking a ball". The seed decides the sentences, and
none is written twice. The lists, `everyday_sentences.txt` and `everyday_sentences.LANGUAGE.txt`, were written for this
project (MIT).

    python dataset_scripts/everyday_sentences.py --count 40000 --out everyday.txt
    python dataset_scripts/everyday_sentences.py --language de --count 40000 --out everyday-de.txt
"""

from __future__ import annotations

import argparse
import random
import re
from collections.abc import Callable, Iterator
from pathlib import Path

# A list: its name, a colon, its choices with bars between them; lines that begin with a blank go on. A sentence is a
# choice whose {names} are drawn from the lists until none is left.
LISTS = Path(__file__)
NAME = re.compile(r"\{(\w+)\}")
KINDS = ("scene", "scene", "headline", "headline", "question", "remark")


def read_lists(text: str) -> dict[str, list[str]]:
    """Read lists of the form `name: one | other`; return the choices of each by its name."""
    lines = (line.split(":", 1) for line in re.sub(r"\n +", " ", text).splitlines())
    return {name: [choice.strip() for choice in choices.split("|")] for name, choices in lines}


def expand(kind: str, lists: dict[str, list[str]], choose: Callable[[list[str]], str]) -> str:
    """Draw a choice from the list of a name, and replace every {name} within it likewise."""
    return NAME.sub(lambda match: expand(match[1], lists, choose), choose(lists[kind]))


def finish(kind: str, sentence: str, generator: random.Random, language: str) -> str:
    """Add articles, a capital and an end to a sentence, as its kind and language have them."""
    if language != "en":
        # The first letter may follow a mark such as an inverted question mark, but not a number.
        sentence = re.sub(r"^(\W*)(\w)", lambda match: match[1] + match[2].upper(), sentence)
        return sentence if kind == "headline" or sentence[-1] in "?!" or generator.random() < 0.2 else f"{sentence}."
    sentence = re.sub(r"\ba (?=[aeio]|um)", "an ", sentence)
    sentence = re.sub(r"\ba (loaf|piece|bowl) of (\w+)s\b", r"a \1 of \2", sentence)
    sentence = sentence[0].upper() + sentence[1:]
    if kind == "headline" or generator.random() < 0.2:
        return sentence
    asks = sentence.split(" ", 1)[0] in {"How", "What", "Is", "Can", "Why", "Who", "Where", "When", "Should", "Do"}
    return sentence + ("?" if kind == "question" and asks else ".")


def sentences(count: int, seed: int, language: str) -> Iterator[str]:
    """Draw `count` different sentences."""
    path = LISTS.with_suffix(".txt" if language == "en" else f".{language}.txt")
    lists, generator, seen = read_lists(path.read_text(encoding="utf8")), random.Random(seed), set[str]()
    while len(seen) < count:
        kind = generator.choice(KINDS)
        sentence = finish(kind, expand(kind, lists, generator.choice), generator, language)
        if sentence not in seen:
            seen.add(sentence)
            yield sentence


def main() -> None:
    """Parse the command line and write the file."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--count", type=int, default=40_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--language", default="en", help="language of the lists (default: %(default)s)")
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    with arguments.out.open("w", encoding="utf8", newline="\n") as out:
        for sentence in sentences(arguments.count, arguments.seed, arguments.language):
            out.write(sentence + "\n")


if __name__ == "__main__":
    main()
