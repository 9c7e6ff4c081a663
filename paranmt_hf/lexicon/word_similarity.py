"""Scores of word pairs against people's judgements of similarity; ParaNMT-50M (arXiv:1711.05732), Table 13."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from paranmt_hf.errors import InputError
from paranmt_hf.evaluation.correlation import spearman
from paranmt_hf.evaluation.pair_set import parse_number, read_lines

# First words of the header of SimLex-999 as it is published, and the columns that are read.
HEADER, SIMILARITY = ("word1", "word2"), "SimLex999"

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
