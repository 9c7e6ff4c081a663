# /// script
# requires-python = ">=3.11"
# dependencies = []
# ///
"""English text that anybody may use, one sentence a line, for a teacher to tell which sentences are alike.

Each source is an option, and becomes a file of its own:

    --wordnet      folder with WordNet's data.noun, data.verb, data.adj, data.adv (WordNet licence: any use, with its
                   notice kept); `definitions.txt` has the words of a set of synonyms before what they mean, so that
                   words that are rare in running text have a sentence; `examples.txt` has the examples
    --common-voice folder with files of sentences of the Common Voice project (CC0)
    --addresses    folder with addresses of presidents of the United States (public domain)
    --factbook     folder with the JSON files of The World Factbook (public domain)

    python dataset_scripts/free_text.py --wordnet /usr/share/wordnet --common-voice en --out free
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

PARTS_OF_SPEECH = ("noun", "verb", "adj", "adv")
# A sentence ends at a mark after a small letter, a digit or a bracket: not after "U.S." or "J. F.".
END = re.compile(r"(?<=[a-z0-9)”\"'][.!?])\s+(?=[A-Z\"“])")
# Three words of small letters: a sentence, and not a row of figures.
RUNNING = re.compile(r"[a-z]{3,} [a-z]{2,} [a-z]{2,}")
# Synonyms named before a definition.
SYNONYMS = 4
# A definition is left out if it is an evaluation sentence of so many words, or shares so many in a row with one.
SHORTEST, RUN = 4, 8


def synsets(folder: Path) -> Iterator[tuple[list[str], str]]:
    """Read WordNet: the words of each set of synonyms, and its gloss (definitions and quoted examples)."""
    for part in PARTS_OF_SPEECH:
        with (folder / f"data.{part}").open(encoding="latin-1") as lines:
            for line in lines:
                # The licence stands in front, on lines that begin with two blanks.
                if line.startswith("  ") or "|" not in line:
                    continue
                head, gloss = line.split("|", 1)
                fields = head.split()
                # Field 3 counts the words in hexadecimal; each is followed by a number.
                words = fields[4 : 4 + 2 * int(fields[3], 16) : 2]
                yield [re.sub(r"\([a-z]+\)$", "", word).replace("_", " ") for word in words], gloss.strip()


def words_of(text: str) -> tuple[str, ...]:
    """Cut text into words of letters and digits, in lower case."""
    return tuple(re.findall(r"[^\W_]+(?:[.'’][^\W_]+)*", text.lower()))


def runs_of(words: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Give what must not be shared: all words of a sentence, and each run of `RUN` of them."""
    if len(words) >= SHORTEST:
        yield words
    for start in range(len(words) - RUN + 1):
        yield words[start : start + RUN]


def tested_runs(folder: Path) -> set[tuple[str, ...]]:
    """Read the runs of words of the text files in a folder with evaluation sets, whose fields are cut at tabs."""
    paths = (path for path in sorted(folder.rglob("*")) if path.suffix in (".txt", ".csv", ".tsv"))
    fields = (field for path in paths for field in re.split(r"[\t\n]", path.read_text(encoding="utf8")))
    return {run for field in fields for run in runs_of(words_of(field))}


def definitions(folder: Path, known: set[str] | None, tested: set[tuple[str, ...]]) -> Iterator[str]:
    """Write "car, auto: a motor vehicle", for synonyms one of which is a known word, if some are named.

    What is tested is compared with the meaning alone: with words before it, it would be another sentence.
    """
    found = []
    for words, gloss in synsets(folder):
        parts = (part.strip(" ;:,-") for part in re.sub(r'"[^"]*"', "", gloss).split(";"))
        meaning = "; ".join(part for part in parts if part)
        if meaning and (known is None or any(word.lower() in known for word in words)):
            found.append((", ".join(words[:SYNONYMS]), meaning))
    kept = [pair for pair in found if tested.isdisjoint(runs_of(words_of(pair[1])))]
    print(f"{len(found) - len(kept):,} definitions are left out, for the excluded sets have them")
    yield from (f"{words}: {meaning}" for words, meaning in kept)


def examples(folder: Path) -> Iterator[str]:
    """Give the quoted examples of at least three words."""
    for _, gloss in synsets(folder):
        yield from (example for example in re.findall(r'"([^"]+)"', gloss) if len(example.split()) >= 3)


def lines_of(folder: Path) -> Iterator[str]:
    """Give the lines of the text files of a folder."""
    for path in sorted(folder.glob("*.txt")):
        yield from path.read_text(encoding="utf8").splitlines()


def split(text: str) -> list[str]:
    """Cut running text into sentences."""
    return END.split(re.sub(r"\s+", " ", text))


def addresses(folder: Path) -> Iterator[str]:
    """Give the sentences of text files whose paragraphs stand between empty lines."""
    for path in sorted(folder.glob("*.txt")):
        for paragraph in re.split(r"\n\s*\n", path.read_text(encoding="latin-1")):
            yield from split(paragraph)


def texts(value: object) -> Iterator[str]:
    """Give all texts in a JSON value, without marks of HTML."""
    if isinstance(value, dict):
        for inner in value.values():
            yield from texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from texts(inner)
    elif isinstance(value, str):
        yield re.sub(r"<[^>]+>", " ", value)


def factbook(folder: Path) -> Iterator[str]:
    """Give the sentences of the JSON files of a folder and its folders."""
    for path in sorted(folder.glob("*/*.json")):
        for text in texts(json.loads(path.read_text(encoding="utf8"))):
            yield from (sentence for sentence in split(text) if RUNNING.search(sentence))


def write(path: Path, sentences: Iterable[str], longest: int, *, cut: bool = False) -> None:
    """Write distinct sentences of 2 to `longest` words; longer ones are cut, or left out."""
    kept = dict.fromkeys(
        " ".join(words[:longest])
        for words in map(str.split, sentences)
        if len(words) >= 2 and (cut or len(words) <= longest)
    )
    path.write_text("".join(f"{sentence}\n" for sentence in kept), encoding="utf8", newline="\n")
    print(f"{path}: {len(kept):,} sentences")


def main() -> None:
    """Parse the command line and write a file for each source."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for source in ("wordnet", "common-voice", "addresses", "factbook"):
        parser.add_argument(f"--{source}", type=Path)
    parser.add_argument("--words", type=Path, help="file whose lines begin with words: definitions of these alone")
    parser.add_argument("--exclude", type=Path, help="folder with STS sets, some of whose sentences are definitions")
    parser.add_argument("--longest", type=int, default=26, help="words of a sentence, at most (default: %(default)s)")
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    out, longest = arguments.out, arguments.longest
    out.mkdir(parents=True, exist_ok=True)
    if arguments.wordnet:
        tested = tested_runs(arguments.exclude) if arguments.exclude else set()
        known = (
            {line.split()[0] for line in arguments.words.open(encoding="utf8") if line.strip()}
            if arguments.words
            else None
        )
        write(out / "definitions.txt", definitions(arguments.wordnet, known, tested), longest, cut=True)
        write(out / "examples.txt", examples(arguments.wordnet), longest)
    if arguments.common_voice:
        write(out / "common-voice.txt", lines_of(arguments.common_voice), longest)
    if arguments.addresses:
        write(out / "addresses.txt", addresses(arguments.addresses), longest)
    if arguments.factbook:
        write(out / "factbook.txt", factbook(arguments.factbook), longest)


if __name__ == "__main__":
    main()
