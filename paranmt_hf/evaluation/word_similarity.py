"""Scores of word pairs against people's judgements of similarity; ParaNMT-50M (arXiv:1711.05732), Table 13."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from paranmt_hf.errors import InputError
from paranmt_hf.evaluation.correlation import spearman
from paranmt_hf.evaluation.lines import parse_number, read_lines
from paranmt_hf.util.files import check_regular

# First words of the header of SimLex-999 as it is published, and the columns that are read.
HEADER, SIMILARITY = ("word1", "word2"), "SimLex999"
BAR = " ||| "
SCORES = ("PPDB2.0Score=", "PPDB1.0Score=")

Pair = tuple[str, str]


@dataclass(frozen=True)
class WordPair:
    """Two words, and how similar people find them."""

    first: str
    second: str
    similarity: float


@dataclass(frozen=True)
class WordSimilarity:
    """How well scores of word pairs agree with people.

    Attributes:
        name: What gave the scores.
        pairs: Number of word pairs.
        seen: Word pairs that have a score, in one order at least; that of the others is 0.
        spearman: Spearman's rho with the judgements, in [-1, 1].
    """

    name: str
    pairs: int
    seen: int
    spearman: float


def read_word_pairs(path: str | Path) -> list[WordPair]:
    """Read SimLex-999, as it is published (with a header) or as three columns: word, word, similarity.

    Args:
        path: The file; columns are separated by tabs. Words are taken in lower case.

    Raises:
        InputError: A line is malformed; with file and line.
    """
    path, pairs, column = Path(path).expanduser(), [], 2
    lines = read_lines(path)
    for number, line in enumerate(lines, 1):
        where, fields = f"{path}, line {number}", line.split("\t")
        if number == 1 and tuple(fields[:2]) == HEADER:
            if SIMILARITY not in fields:
                raise InputError(f"{where}: the header names no column {SIMILARITY}; get the file anew")
            column = fields.index(SIMILARITY)
            continue
        if len(fields) <= column or not (fields[0].strip() and fields[1].strip()):
            raise InputError(
                f"{where}: expected word, word and similarity, separated by tabs, found {len(fields)} columns"
            )
        similarity = parse_number(fields[column], where, "a similarity")
        pairs.append(WordPair(fields[0].strip().lower(), fields[1].strip().lower(), similarity))
    return pairs


def in_both_orders(pairs: Sequence[WordPair]) -> set[Pair]:
    """Give each pair as (first, second) and as (second, first)."""
    return {order for pair in pairs for order in ((pair.first, pair.second), (pair.second, pair.first))}


def evaluate_word_scores(pairs: Sequence[WordPair], scores: Mapping[Pair, float], name: str) -> WordSimilarity:
    """Correlate scores with judgements.

    A pair that has scores in both orders gets their mean, one that has a score in one order gets that, and one that
    has none gets 0.

    Args:
        pairs: The judged pairs.
        scores: Scores of words and their paraphrases; not all of the pairs need one.
        name: What gave the scores.

    Raises:
        InputError: None of the pairs has a score.
    """
    found = []
    for pair in pairs:
        orders = dict.fromkeys([(pair.first, pair.second), (pair.second, pair.first)])
        found.append([scores[order] for order in orders if order in scores])
    seen = sum(map(bool, found))
    if not seen:
        raise InputError(f"{name} has none of the {len(pairs):,} word pairs, so there is nothing to correlate")
    values = [sum(each) / len(each) if each else 0.0 for each in found]
    return WordSimilarity(name, len(pairs), seen, spearman(values, [pair.similarity for pair in pairs]))


def read_ppdb(path: str | Path, wanted: Collection[Pair]) -> tuple[dict[Pair, float], str]:
    """Read the scores of word pairs from a file of the Paraphrase Database (Pavlick et al. 2015).

    Three forms are known: lines of PPDB 2.0 and 1.0 (`LHS ||| phrase ||| paraphrase ||| features ||| ...`), and a list
    with a word and then its paraphrases on each line. The score of a pair is the feature `PPDB2.0Score`, else
    `PPDB1.0Score`; of several lines of a pair (with other parts of speech) the first one counts. In a list, and in a
    file without these features, each pair that is there has the score 1.

    Args:
        path: The file, plain or `.gz`.
        wanted: Words and paraphrases in lower case; other lines are passed over.

    Returns:
        The scores of the wanted pairs that are there, and a name that says what they are.

    Raises:
        InputError: A line is malformed or of another form than the first one; with file and line.
    """
    path, scores, form = Path(path).expanduser(), dict[Pair, float](), ""
    for number, line in enumerate(_lines(path), 1):
        where = f"{path}, line {number}"
        found = _form(line)
        form = form or found
        if found != form:
            raise InputError(f"{where}: expected {form} as on the first line, found {found}; get the file anew")
        for pair, score in _entries(line, form, where):
            if pair in wanted:
                scores.setdefault(pair, score)
    if not form:
        raise InputError(f"{path} is empty; expected paraphrases of PPDB")
    name = "PPDB" if form.startswith("PPDB") else "PPDB, listed or not"
    return scores, f"{name} ({path.name})"


def _form(line: str) -> str:
    """Name the form of a line."""
    if "|||" not in line:
        return "a word and its paraphrases"
    found = next((score for score in SCORES if score in line), None)
    return f"{found.rstrip('=')} among features" if found else "features without a PPDB score"


def _entries(line: str, form: str, where: str) -> Iterator[tuple[Pair, float]]:
    """Take a line apart into pairs and scores."""
    if "|||" not in line:
        # Only blanks separate: other white space stands for words of the list.
        listed = [part for part in line.lower().split(" ") if part]
        if len(listed) < 2:
            raise InputError(f"{where}: expected a word and its paraphrases, found {line[:40]!r}; get the file anew")
        yield from (((listed[0], paraphrase), 1.0) for paraphrase in listed[1:])
        return
    fields = line.split(BAR)
    if len(fields) < 4:
        raise InputError(
            f"{where}: expected at least 4 fields between `{BAR.strip()}`, found {len(fields)}; get the file anew"
        )
    score = 1.0
    for feature in SCORES:
        if form.startswith(feature.rstrip("=")):
            text = next((part for part in fields[3].split() if part.startswith(feature)), feature)
            score = parse_number(text.removeprefix(feature), where, f"a {feature.rstrip('=')}")
    yield (fields[1].strip().lower(), fields[2].strip().lower()), score


def _lines(path: Path) -> Iterator[str]:
    """Read lines of a file that may be larger than the memory."""
    check_regular(path)
    number = 1
    try:
        with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as file:
            for line in file:
                yield line.decode("utf8").rstrip("\r\n")
                number += 1
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from None
    except UnicodeDecodeError:
        raise InputError(f"{path}, line {number}: expected UTF-8; convert the file to UTF-8") from None
