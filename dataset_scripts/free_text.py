# /// script
# requires-python = ">=3.11"
# dependencies = ["pyyaml>=6.0.1"]
# ///
"""Collect English text under free licences, one sentence a line, on which encoders learn a teacher's similarities.

`free_text.yaml` lists the sources and their licences: repositories, read at a commit (nothing of them is run), and
Debian packages. Each source becomes a file. A repository is a folder OWNER+NAME in that of `--mirror`: a clone, a bare
git directory, or its files alone.

    git clone --bare https://github.com/clinc/oos-eval mirror/clinc+oos-eval
    python dataset_scripts/free_text.py --mirror mirror --only clinc_oos foldoc --exclude sts --out free

Without a mirror, only sources whose folders are given are made: WordNet's data files (`definitions.txt`, synonyms and
their meaning, for words that are rare in running text, and `examples.txt`), sentences of Common Voice, addresses of
presidents of the United States, and The World Factbook in JSON.

    python dataset_scripts/free_text.py --wordnet /usr/share/wordnet --common-voice en --out free
"""

from __future__ import annotations

import argparse
import csv
import html
import io
import json
import random
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import yaml
from free_text_files import Part, files

TABLE = Path(__file__).with_suffix(".yaml")
FOLDERS = ("wordnet", "common-voice", "addresses", "factbook")  # The options that give folders of sources
SYNONYMS = 4  # Number of synonyms that are named before a definition
# A sentence is left out if it is an evaluation sentence of at least SHORTEST words, or shares RUN in a row with one.
SHORTEST, RUN = 4, 8


def table(text: str, part: Part) -> Iterator[str]:
    """Yield the cells of columns, chosen by number or by a match of their names; TSV is cut at tabs only."""
    if part["format"] == "csv":
        rows = csv.reader(io.StringIO(text), delimiter=part.get("delimiter", ","))
    else:
        rows = (line.split("\t") for line in text.splitlines())
    columns = part["columns"]
    if isinstance(columns, str):
        columns = [at for at, name in enumerate(next(rows)) if re.fullmatch(columns, name)]
    for row in rows:
        if not any(field in part.get("unless", ()) for field in row):
            yield from (row[column] for column in columns if column < len(row))


def texts(value: object, keys: str | None) -> Iterator[str]:
    """Yield the texts in a JSON value: all, or those under keys that match `keys`."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from texts(inner, None if keys is None or re.fullmatch(keys, key) else keys)
    elif isinstance(value, list):
        for inner in value:
            yield from texts(inner, keys)
    elif isinstance(value, str) and keys is None:
        yield value


def glossary(value: object, part: Part, head: str = "") -> Iterator[tuple[str, str]]:
    """Yield definitions at any depth of a JSON or YAML value: words under one key, their meanings under another."""
    if isinstance(value, list):
        for inner in value:
            yield from glossary(inner, part, head)
    elif isinstance(value, dict):
        head = value.get(part.get("head"), head)
        if meaning := value.get(part["meaning"]):
            words = [word for word in (head, *(value.get(part["words"]) or [])) if word]
            yield ", ".join(words[:SYNONYMS]), meaning if isinstance(meaning, str) else meaning[0]
        else:
            yield from glossary(list(value.values()), part, head)


def markdown(text: str, part: Part) -> Iterator[str]:
    """Yield the paragraphs and list items of Markdown, without its marks."""
    text = re.sub(r"\A---\n.*?\n---\n", "", text, flags=re.S)
    text = re.sub(r"```.*?```|\{%.*?%\}|\{\{.*?\}\}|<!--.*?-->", "\n\n", text, flags=re.S)
    for paragraph in re.split(r"\n\s*\n|\n\s*(?=[-*+] |\d+\. |#|>|\|)", text):
        if not re.match(r"\s*(?:#|\||!\[|\[\^|:)", paragraph):
            paragraph = re.sub(r"!\[[^\]]*\]\([^)]*\)", "", paragraph)
            paragraph = re.sub(r"\[([^\]]*)\](?:\([^)]*\)|\[[^\]]*\])(?:\{:?[^}]*\})?", r"\1", paragraph)
            paragraph = re.sub(r"<[^>]*>|\[\^\w+\]", "", paragraph)
            yield re.sub(r"^\s*(?:[-*+>] |\d+\. )|\*+|`|(?<!\w)_|_(?!\w)", "", paragraph)


def definitions(text: str, part: Part) -> Iterator[tuple[str, str]]:
    """Yield definitions of WordNet: synonyms such as "car, auto", and their meaning, "a motor vehicle".

    If the known words are given, one of the synonyms must be among them.
    """
    for line in text.splitlines():
        # The file begins with its licence, on lines that begin with two blanks.
        head, bar, gloss = line.partition("|")
        if line.startswith("  ") or not bar:
            continue
        fields = head.split()
        # Field 3 is the number of words in hexadecimal; each word is followed by a number.
        words = fields[4 : 4 + 2 * int(fields[3], 16) : 2]
        words = [re.sub(r"\([a-z]+\)$", "", word).replace("_", " ") for word in words]
        # Examples are in quotes.
        meanings = (meaning.strip(" ;:,-") for meaning in re.sub(r'"[^"]*"', "", gloss).split(";"))
        meaning = "; ".join(meaning for meaning in meanings if meaning)
        if meaning and (part["known"] is None or any(word.lower() in part["known"] for word in words)):
            yield ", ".join(words[:SYNONYMS]), meaning


# Each reader yields pieces of text, or words and their meanings.
READERS: dict[str, Callable[[str, Part], Iterable[str | tuple[str, str]]]] = {
    "text": lambda text, part: [text],
    "lines": lambda text, part: text.splitlines(),
    "find": lambda text, part: re.findall(part["find"], text),
    "csv": table,
    "tsv": table,
    "json": lambda text, part: texts(json.loads(text), part.get("keys")),
    "jsonl": lambda text, part: texts([json.loads(line) for line in text.split("\n") if line], part.get("keys")),
    "markdown": markdown,
    "glossary": lambda text, part: glossary(json.loads(text), part),
    # This loader builds texts, lists and mappings only.
    "yaml-glossary": lambda text, part: glossary(yaml.load(text, yaml.CBaseLoader), part),
    "definitions": definitions,
}

# A sentence ends at a mark before a capital, but not at "Mr.", nor at the letters of "J. F." and "U.S.".
SHORT = "Mr Mrs Ms Dr St Jr Sr v vs etc Prof Gen Col Lt Inc Ltd Co Corp Mt Rev Hon Sen Rep Capt Sgt e\\.g i\\.e"
DATES = "Jan Feb Mar Apr Aug Sept Sep Oct Nov Dec"
LONG = "".join(rf"(?<!\b{word}\.)" for word in f"{SHORT} {DATES}".split())
# The group is the part that is kept, before the end of the sentence.
ENDS = {
    "talk": re.compile(rf"(?<=[.?!]){LONG}(?<!\b[A-Z]\.)([\"')]*)\s+(?=[\"'(]?[A-Z])"),
    "prose": re.compile(rf"(?<=[a-z0-9)\]”’\"'%][.?!]){LONG}(?<!\bNo\.)()[”\"’']?\s+(?=[A-Z“\"‘'(])"),
    "any": re.compile(r"(?<=[a-z0-9)”\"'][.!?])()\s+(?=[A-Z\"“])"),
    "text": re.compile(rf"(?<=[.?!]){LONG}(?<!\b\w\.)([”\"’'»)]*)\s+(?=[\"“„'‘«(¿¡]?[^\W\d_a-zß-öø-ÿ])"),
}
# In talk, quotes, dots and blanks become those of a keyboard, also those of Windows' encoding.
TYPED = str.maketrans("‘’“”\x91\x92\x93\x94\x96\u00a0\u200b\ufeff", "''\"\"''\"\"-   ", "") | {ord("…"): "..."}
TALK_MARKUP = re.compile(r"https?:|www\.|[<>{}|\\^~=]|\[\[|\]\]|__|\*\*|@\w|::|//|\ufffd|\[[A-Z]+\]|[#$]\w+\(|\w+_\w+")
PROSE_MARKUP = re.compile(r"[{}<>|\\=_#@^~`$]|https?:|www\.|::|\[\[|&[a-z]+;")
PROSE_WORD = re.compile(r"[\"'“‘(\[]*[A-Za-zÀ-ɏ]+(?:['’.-][A-Za-zÀ-ɏ]+)*[.,;:!?%)\]\"'”’]*")
MARKS = ".,?!;:'\"()"
TEXT_MARKS = MARKS + "«»„“”‘’¿¡…–-"
# A long line of talk that has none of these words is in another language, or is a list.
ENGLISH = set(
    "the a an of to in is are was were be been i you he she it we they me my your his her its our their this that "
    "these those and or but not no what who where when why how which do does did have has had can could will would "
    "should for on at by with from as if so there here please want need like get go am i'm it's don't that's".split()
)
NUMBERS = re.compile(
    r"\b(january|february|march|april|may|june|july|august|september|october|november|december|"
    r"(mon|tues|wednes|thurs|fri|satur|sun)day|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)\b"
)


def is_talk(sentence: str) -> bool:
    """Return whether a text is a sentence of talk, not markup, shouting, a row of figures or another language."""
    words, letters = sentence.split(), sentence.replace(" ", "")
    alphabetic = sum(map(str.isalpha, letters))
    return (
        len(words) >= 3
        and len(sentence) <= 250
        and not TALK_MARKUP.search(sentence)
        and alphabetic >= 0.75 * len(letters)
        and sum(map(str.isascii, letters)) >= 0.93 * len(letters)
        and sum(re.sub("['-]", "", word.strip(MARKS)).isalpha() for word in words) >= 0.7 * len(words)
        and max(map(len, words)) <= 30
        and not (alphabetic > 12 and sentence.isupper())
        and (not re.search(r"(.)\1\1\1", sentence) or "...." in sentence)
        and (len(words) <= 8 or not ENGLISH.isdisjoint(word.lower().strip(".,?!") for word in words))
    )


def is_prose(sentence: str) -> bool:
    """Return whether a text is a sentence of prose, not markup, code or a row of figures."""
    words = sentence.split()
    return (
        len(words) >= 3
        and not PROSE_MARKUP.search(sentence)
        and len(re.findall("[A-Za-z]", sentence)) >= 0.6 * len(sentence.replace(" ", ""))
        and sum(bool(PROSE_WORD.fullmatch(word)) for word in words) >= 0.6 * len(words)
    )


def is_text(sentence: str) -> bool:
    """Return whether a text is a sentence of any language with blanks, not markup, code or a row of figures."""
    words, letters = sentence.split(), sentence.replace(" ", "")
    return (
        len(words) >= 3
        and not PROSE_MARKUP.search(sentence)
        and sum(map(str.isalpha, letters)) >= 0.7 * len(letters)
        and sum(word.strip(TEXT_MARKS).isalpha() for word in words) >= 0.6 * len(words)
        and max(map(len, words)) <= 45
        and not (len(letters) > 12 and sentence.isupper())
    )


def masked(sentence: str) -> str:
    """Return a form of a sentence that is equal if sentences differ only in numbers, dates, names and capitals."""
    found = []
    for at, word in enumerate(sentence.split()):
        core = word.strip(MARKS)
        named = at > 0 and core[:1].isupper() and core != "I" and not core.startswith("I'")
        if not (named or any(map(str.isdigit, word))):
            found.append(core.lower())
        elif found[-1:] != ["#"]:
            found.append("#")
    return NUMBERS.sub("#", " ".join(found))


def runs_of(text: str) -> Iterator[tuple[str, ...]]:
    """Yield the runs of words that must not be shared, in lower case: all words, and each `RUN` words in a row."""
    words = tuple(re.findall(r"[^\W_]+(?:[.'’][^\W_]+)*", text.lower()))
    if len(words) >= SHORTEST:
        yield words
    for start in range(len(words) - RUN + 1):
        yield words[start : start + RUN]


def tested_runs(folder: Path) -> set[tuple[str, ...]]:
    """Return the runs of words in the text files of a folder with evaluation sets.

    Fields are cut at tabs; lines of CSV without a tab are cut at commas.
    """
    runs: set[tuple[str, ...]] = set()
    for path in sorted(folder.rglob("*")):
        if path.suffix not in (".txt", ".csv", ".tsv"):
            continue
        for line in path.read_text(encoding="utf8").split("\n"):
            by_commas = path.suffix == ".csv" and "\t" not in line
            for field in next(csv.reader([line]), []) if by_commas else line.split("\t"):
                runs.update(runs_of(field))
    return runs


def pieces(name: str, text: str, part: Part) -> Iterator[tuple[str, str]]:
    """Yield the pieces of a file, each with the word that it defines, after the replacements of the table."""
    text = re.sub(part["without"], " ", text) if "without" in part else text
    for found in READERS[part["format"]](text, part):
        word, joined = found if isinstance(found, tuple) else ("", found)
        for piece in re.split(part["cut"], joined) if "cut" in part else [joined]:
            piece = " ".join(piece.split())
            for pattern, by in part.get("replace", ()):
                piece = re.sub(pattern, by, piece)
            piece = piece if part["rule"] == "any" else html.unescape(piece)
            piece = piece.translate(TYPED).strip(" \t*-•") if part["rule"] == "talk" else piece
            if "drop" not in part or not re.search(part["drop"], piece):
                yield word, " ".join(piece.split())


def sentences(name: str, text: str, part: Part) -> Iterator[tuple[str, str]]:
    """Yield the sentences of a file, and definitions as a word and its meaning."""
    for word, piece in pieces(name, text, part):
        whole = bool(word) or part.get("split") is False
        for at, sentence in enumerate([piece] if whole else ENDS[part["rule"]].sub(r"\1\n", piece).split("\n")):
            if at == 0 and "define" in part and re.search(part["define"], sentence):
                upper, lower = (part.get("case") == case for case in ("upper", "lower"))
                yield name.upper() if upper else name, sentence[:1].lower() + sentence[1:] if lower else sentence
            elif re.search(part.get("like", ""), sentence):
                yield word, sentence


def key_of(sentence: str, part: Part) -> str | None:
    """Return a key by which a sentence is compared with others; None if the sentence is not kept."""
    if part["rule"] == "talk":
        if not is_talk(sentence):
            return None
        return masked(sentence) if part.get("mask") else re.sub(r"\W+", " ", sentence.lower()).strip()
    if part["rule"] == "text":
        compared = masked(sentence) if part.get("mask") else sentence.lower()
        return re.sub(r"\W+", " ", compared) if is_text(sentence) else None
    return sentence if part["rule"] == "any" or is_prose(sentence) else None


def definition(word: str, meaning: str, part: Part, longest: int) -> str:
    """Format a definition, "car, auto: a motor vehicle", cut to at most `longest` words."""
    marks = "" if part["rule"] == "any" else " .,;:"
    return " ".join(f"{word}: {meaning.rstrip(marks)}".split()[:longest]).rstrip(marks)


def gather(source: Part, places: list[tuple[Path, str]], tested: set[tuple[str, ...]], longest: int) -> list[str]:
    """Read the distinct sentences of a source, of 2 to `longest` words, that are not tested, or `most` of them."""
    parts = [{**source, **part} for part in source.get("parts", [{}])]
    read = ((part, *file) for place in places for part in parts for file in files(*place, part))
    kept: dict[str, tuple[str, str]] = {}
    for part, name, text in read:
        for word, sentence in sentences(name, text, part):
            written = definition(word, sentence, part, longest) if word else sentence
            key = key_of(written, part) if 2 <= len(written.split()) <= longest else None
            if key is not None:
                kept.setdefault(key, (written, sentence))
    found, most = list(kept.values()), source.get("most", len(kept))
    found = random.Random(1).sample(found, most) if most < len(found) else found
    # A meaning is compared without the words before it, with which it would be another sentence.
    return [written for written, meaning in found if not tested or tested.isdisjoint(runs_of(meaning))]


def places_of(source: Part, mirror: Path, given: dict[str, Path]) -> list[tuple[Path, str]]:
    """Find the folders of a source, each with the commit that is read there."""
    if folder := given.get(source.get("option", ""), source.get("folder")):
        places = [(Path(folder), "")]
    else:
        named = {mirror / name.replace("/", "+"): commit for name, commit in source.get("repositories", {}).items()}
        # Some mirrors have the repository in a folder below.
        places = [(path / "repo" if (path / "repo").is_dir() else path, commit) for path, commit in named.items()]
    missing = [str(folder) for folder, _ in places if not folder.is_dir()]
    if missing or not places:
        raise FileNotFoundError(f"{' and '.join(missing) or 'its option'} is missing")
    return places


def main() -> None:
    """Parse the command line and write a file for each source."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for option in FOLDERS:
        parser.add_argument(f"--{option}", type=Path)
    parser.add_argument("--mirror", type=Path, help="folder with repositories, as OWNER+NAME: sources of the table")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="these sources alone")
    parser.add_argument("--skip-missing", action="store_true", help="go on where a repository or a package is missing")
    parser.add_argument("--table", type=Path, default=TABLE, help="sources (default: those beside the program)")
    parser.add_argument("--words", type=Path, help="file whose lines begin with words: definitions of these alone")
    parser.add_argument("--exclude", type=Path, help="folder with STS sets, whose sentences are left out")
    parser.add_argument("--longest", type=int, default=26, help="words of a sentence, at most (default: %(default)s)")
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    sources = yaml.safe_load(arguments.table.read_text(encoding="utf8"))
    given = {name: folder for name in FOLDERS if (folder := getattr(arguments, name.replace("-", "_")))}
    if unknown := set(arguments.only or ()) - set(sources):
        parser.error(f"no such source: {', '.join(sorted(unknown))}")
    tested = tested_runs(arguments.exclude) if arguments.exclude else set()
    words = arguments.words.read_text(encoding="utf8") if arguments.words else ""
    known = {line.split()[0] for line in words.splitlines() if line.strip()} if arguments.words else None
    arguments.out.mkdir(parents=True, exist_ok=True)
    for name, source in sources.items():
        here = source.get("option") in given or (arguments.mirror and {"repositories", "folder"} & set(source))
        if not (name in arguments.only if arguments.only else here):
            continue
        try:
            places = places_of(source, arguments.mirror or Path(), given)
            kept = gather({**source, "known": known}, places, tested, arguments.longest)
            if not kept:
                raise FileNotFoundError(f"{places[0][0]} has no text of {source.get('package', 'it')}")
        except FileNotFoundError as error:
            if not arguments.skip_missing:
                sys.exit(f"{name}: {error}")
            print(f"{name} is skipped: {error}")
            continue
        path = arguments.out / f"{name}.txt"
        path.write_text("".join(f"{sentence}\n" for sentence in kept), encoding="utf8", newline="\n")
        print(f"{path}: {len(kept):,} sentences", flush=True)


if __name__ == "__main__":
    main()
