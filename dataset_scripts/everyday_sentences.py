# /// script
# requires-python = ">=3.11"
# dependencies = []
# ///
"""Write everyday sentences, put together at random from lists of words: scenes, headlines, questions, remarks.

Text under free licences has few such sentences. To learn a teacher's similarities, sentences need not make sense, but
there must be similar ones: "a boy kicks a ball", "two girls are kicking a ball". The seed decides the sentences, and
none is written twice. The lists, `everyday_sentences.txt`, were written for this project (MIT).

    python dataset_scripts/everyday_sentences.py --count 40000 --out everyday.txt
"""

from __future__ import annotations

import argparse
import random
import re
from collections.abc import Callable, Iterator
from pathlib import Path

# A list: its name, a colon, its choices with bars between them; lines that begin with a blank go on. A sentence is a
# choice whose {names} are drawn from the lists until none is left.
LISTS = Path(__file__).with_suffix(".txt")
NAME = re.compile(r"\{(\w+)\}")
KINDS = ("scene", "scene", "headline", "headline", "question", "remark")


def read_lists(text: str) -> dict[str, list[str]]:
    """Read lists of the form `name: one | other`; return the choices of each by its name."""
    lines = (line.split(":", 1) for line in re.sub(r"\n +", " ", text).splitlines())
    return {name: [choice.strip() for choice in choices.split("|")] for name, choices in lines}


def expand(kind: str, lists: dict[str, list[str]], choose: Callable[[list[str]], str]) -> str:
    """Draw a choice from the list of a name, and replace every {name} within it likewise."""
    return NAME.sub(lambda match: expand(match[1], lists, choose), choose(lists[kind]))


def finish(kind: str, sentence: str, generator: random.Random) -> str:
    """Add articles, a capital and an end to a sentence, as its kind has them."""
    sentence = re.sub(r"\ba (?=[aeio]|um)", "an ", sentence)
    sentence = re.sub(r"\ba (loaf|piece|bowl) of (\w+)s\b", r"a \1 of \2", sentence)
    sentence = sentence[0].upper() + sentence[1:]
    if kind == "headline" or generator.random() < 0.2:
        return sentence
    asks = sentence.split(" ", 1)[0] in {"How", "What", "Is", "Can", "Why", "Who", "Where", "When", "Should", "Do"}
    return sentence + ("?" if kind == "question" and asks else ".")


def sentences(count: int, seed: int) -> Iterator[str]:
    """Draw `count` different sentences."""
    lists, generator, seen = read_lists(LISTS.read_text(encoding="utf8")), random.Random(seed), set[str]()
    while len(seen) < count:
        kind = generator.choice(KINDS)
        sentence = finish(kind, expand(kind, lists, generator.choice), generator)
        if sentence not in seen:
            seen.add(sentence)
            yield sentence


def main() -> None:
    """Parse the command line and write the file."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--count", type=int, default=40_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    with arguments.out.open("w", encoding="utf8", newline="\n") as out:
        for sentence in sentences(arguments.count, arguments.seed):
            out.write(sentence + "\n")


if __name__ == "__main__":
    main()
