# /// script
# requires-python = ">=3.11"
# dependencies = [
#     "numpy>=2.0.0",
#     "paranmt-hf",
#     "pyarrow>=22",
# ]
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

import numpy as np
import pyarrow as pa

from paranmt_hf.corpus.selection.decontamination import EvaluationText

PARTS_OF_SPEECH = ("noun", "verb", "adj", "adv")
# A sentence ends at a mark after a small letter, a digit or a bracket: not after "U.S." or "J. F.".
END = re.compile(r"(?<=[a-z0-9)”\"'][.!?])\s+(?=[A-Z\"“])")
# Three words of small letters: a sentence, and not a row of figures.
RUNNING = re.compile(r"[a-z]{3,} [a-z]{2,} [a-z]{2,}")
# Synonyms named before a definition.
SYNONYMS = 4


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


def definitions(folder: Path, known: set[str] | None, tested: EvaluationText | None) -> Iterator[str]:
    """Write "car, auto: a motor vehicle", for synonyms one of which is a known word, if some are named.

    What is tested is compared with the meaning alone: with words before it, it would be another sentence.
    """
    found = []
    for words, gloss in synsets(folder):
        parts = (part.strip(" ;:,-") for part in re.sub(r'"[^"]*"', "", gloss).split(";"))
        meaning = "; ".join(part for part in parts if part)
        if meaning and (known is None or any(word.lower() in known for word in words)):
            found.append((", ".join(words[:SYNONYMS]), meaning))
    meanings = pa.array([meaning for _, meaning in found], pa.string())
    left_out = tested.found_in(meanings) if tested is not None else np.zeros(len(found), bool)
    print(f"{left_out.sum():,} definitions are left out, for the excluded sets have them")
    for (words, meaning), shared in zip(found, left_out.tolist(), strict=True):
        if not shared:
            yield f"{words}: {meaning}"


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
        tested = EvaluationText.read(arguments.exclude) if arguments.exclude else None
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
