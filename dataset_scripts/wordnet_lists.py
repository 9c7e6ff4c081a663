# /// script
# requires-python = ">=3.11"
# dependencies = ["paranmt-hf"]
# ///
"""Make the lists of WordNet by which sentences are compared (paranmt_hf/assets/meaning/README.md).

    python dataset_scripts/wordnet_lists.py --wordnet /usr/share/wordnet --vocabulary VOCABULARY.json --out lists

The folder is that of WordNet 3.0 (Debian: wordnet-base). The vocabulary is that of an encoder, a list of words, the
most frequent first: paranmt_hf/assets/base/vocabulary.json. Words that it lacks are left out.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from paranmt_hf.meaning.stems import stem

FILES = {"n": "noun", "v": "verb", "a": "adj", "r": "adv"}
PREFIXES = ("un", "in", "im", "il", "ir", "dis", "non", "mis", "de", "anti", "counter", "a")
FREQUENT = 25_000  # Adjectives that are similar to one with an antonym count up to this rank
# Words with many other senses, which are no opposites of what is similar to their antonyms
VAGUE = frozenset(
    "ordinal cardinal other same above first last more less own present all some any two three new".split()
)
VAGUE |= frozenset("possible national general public actual real".split())
# Forms of which another meaning is more frequent
OTHER_WORDS = frozenset(
    "left ground abode rove pent bore lay lees axes wound us has was does is are were am better best worse worst "
    "more most less least further farther felled spat shod born lit wet media data does been had did done gone "
    "went got gotten dove".split()
)
OWN_FORMS = {
    "sold": "sell",
    "bought": "buy",
    "died": "die",
    "lied": "lie",
    "tied": "tie",
    "lay": "lie",
    "owed": "owe",
    "used": "use",
}
# Endings, and words, that no name has although WordNet lacks the word
ENDINGS = re.compile(r".*(?:ness|able|ible|ation|ment|less|ish|ize|ise|ity|ings|ers|wise|like|proof|ward|wards)")
OWN_WORDS = frozenset(
    "the shall whenever markings and for you that with this from they them your what which when where who how "
    "would could should may must might can into onto upon since until because although while before than then "
    "whom whose anyone everyone someone nobody everybody somebody anybody itself himself herself themselves "
    "myself yourself ourselves wifi app apps email emails login username website websites online blog smartphone "
    "laptop url usb pdf cpu gpu api sms hotspot selfie emoji podcast router firewall malware spyware chatbot "
    "ebook voicemail dropdown timestamp screenshot hashtag livestream crypto bitcoin checkout workflow dataset "
    "runtime backend frontend plugin middleware refund esim iban vat hr pto ok etc".split()
)


@dataclass(frozen=True)
class Synset:
    """A set of synonyms."""

    words: list[str]  # In lower case; the words of a phrase are joined by `_`
    pointers: list[tuple[str, str, str, int, int]]  # Kind, offset and part of speech of the target, both word numbers


def synsets(folder: Path) -> dict[tuple[str, str], Synset]:
    """Read the sets of synonyms, by part of speech and offset."""
    found = {}
    for part, name in FILES.items():
        for line in (folder / f"data.{name}").read_text(encoding="latin1").splitlines():
            if line.startswith("  "):
                continue
            fields = line.split(" | ")[0].split()
            count = int(fields[3], 16)
            words = [re.sub(r"\(.*\)", "", word).lower() for word in fields[4 : 4 + 2 * count : 2]]
            first = 5 + 2 * count
            pointers = []
            for place in range(first, first + 4 * int(fields[first - 1]), 4):
                kind, offset, target, ends = fields[place : place + 4]
                pointers.append((kind, offset, "a" if target == "s" else target, int(ends[:2], 16), int(ends[2:], 16)))
            found[part, fields[0]] = Synset(words, pointers)
    return found


def direct_antonyms(sets: dict[tuple[str, str], Synset]) -> Iterator[tuple[str, str]]:
    """Yield the pairs of antonyms, without those that differ by a negative prefix or ending."""
    for synset in sets.values():
        for kind, offset, part, source, target in synset.pointers:
            if kind == "!":
                one, other = sorted((synset.words[source - 1], sets[part, offset].words[target - 1]))
                prefixed = any(
                    long == prefix + short for prefix in PREFIXES for long, short in ((one, other), (other, one))
                )
                if not prefixed and one.replace("less", "ful") != other and other.replace("less", "ful") != one:
                    yield one, other


def similar_antonyms(folder: Path, sets: dict[tuple[str, str], Synset]) -> Iterator[tuple[str, str]]:
    """Yield adjectives with the antonym of the adjective to which they are similar in their first sense."""
    senses = {}
    for line in (folder / "index.adj").read_text(encoding="latin1").splitlines():
        if not line.startswith("  "):
            fields = line.split()
            senses |= {(fields[0], offset): rank for rank, offset in enumerate(fields[6 + int(fields[3]) :])}
    for (part, _), synset in sets.items():
        antonyms = [pointer for pointer in synset.pointers if pointer[0] == "!"] if part == "a" else []
        for kind, offset, *_ in synset.pointers if antonyms else []:
            for word in sets["a", offset].words if kind == "&" else []:
                for _, target, of, _, number in antonyms if senses.get((word, offset)) == 0 else []:
                    head = sets[of, target].words[number - 1]
                    if senses.get((head, antonyms[0][1]), 9) <= 1:
                        yield tuple(sorted((word, head)))


def irregular_forms(folder: Path, known: dict[str, int]) -> Iterator[tuple[str, str]]:
    """Yield the forms of verbs and nouns whose stems are not those of their words."""
    for name in ("verb", "noun"):
        for line in (folder / f"{name}.exc").read_text(encoding="latin1").splitlines():
            form, word, *_ = line.split()
            if form.isalpha() and word.isalpha() and form in known and word in known and form not in OTHER_WORDS:
                yield form, word


def common_stems(folder: Path, sets: dict[tuple[str, str], Synset], known: dict[str, int]) -> set[str]:
    """Return the stems of the known words that WordNet has other than as names."""
    names, common = set(), set()
    for synset in sets.values():
        is_name = any(pointer[0] == "@i" for pointer in synset.pointers)
        (names if is_name else common).update(word for word in synset.words if "_" not in word)
    for name in FILES.values():
        common |= {line.split()[0] for line in (folder / f"{name}.exc").read_text(encoding="latin1").splitlines()}
    stems = {stem(word) for word in common}
    words = [word for word in known if word.isascii() and word.isalpha() and len(word) > 2]
    listed = {stem(word) for word in words if word in common or (word not in names and stem(word) in stems)}
    return listed | {
        stem(word) for word in words if word not in names and (ENDINGS.fullmatch(word) or word in OWN_WORDS)
    }


def main() -> None:
    """Write the lists."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--wordnet", type=Path, required=True, help="folder of WordNet 3.0")
    parser.add_argument("--vocabulary", type=Path, required=True, help="words of an encoder, the most frequent first")
    parser.add_argument("--out", type=Path, required=True, help="folder of the lists")
    options = parser.parse_args()
    words = json.loads(options.vocabulary.read_text(encoding="utf8"))
    known = {word: rank for rank, word in enumerate(words)}
    sets = synsets(options.wordnet)
    pairs = {pair for pair in direct_antonyms(sets) if all(word.isalpha() and word in known for word in pair)}
    for pair in similar_antonyms(options.wordnet, sets):
        frequent = all(word.isalpha() and len(word) > 2 and known.get(word, FREQUENT) < FREQUENT for word in pair)
        if frequent and len(set(pair)) == 2 and not VAGUE.intersection(pair):
            pairs.add(pair)
    forms = {form: word for form, word in irregular_forms(options.wordnet, known) if _plain(form) != _plain(word)}
    lists = {
        "antonyms.txt": sorted(" ".join(pair) for pair in pairs),
        "irregular.txt": sorted(f"{form} {word}" for form, word in (forms | OWN_FORMS).items()),
        "common.txt": sorted(common_stems(options.wordnet, sets, known)),
    }
    options.out.mkdir(parents=True, exist_ok=True)
    for name, lines in lists.items():
        (options.out / name).write_text("\n".join(lines) + "\n", encoding="ascii")
        print(f"{options.out / name}: {len(lines):,} lines")


def _plain(word: str) -> str:
    """Return the stem of a word by its ending alone."""
    return stem(word, {})


if __name__ == "__main__":
    main()
