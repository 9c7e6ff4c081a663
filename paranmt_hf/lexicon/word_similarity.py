"""Tables of a lexicon: paraphrases of words, and scores against people's judgements of similarity.

ParaNMT-50M (arXiv:1711.05732), tables 12 and 13.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from paranmt_hf.corpus.reading.formats import open_table
from paranmt_hf.corpus.reading.phrases import read_word_scores
from paranmt_hf.corpus.reading.tables import text_rows
from paranmt_hf.errors import InputError
from paranmt_hf.evaluation.correlation import spearman
from paranmt_hf.evaluation.pair_set import parse_number, parse_sentence
from paranmt_hf.lexicon.lexicon import TABLE_COUNT, Lexicon, Pair, WordParaphrase
from paranmt_hf.util.markers import Count
from paranmt_hf.util.tables import text_table
from paranmt_hf.util.wording import counted

COLUMNS = ("word1", "word2", "SimLex999")  # The columns of SimLex-999 that are read


@dataclass(frozen=True)
class WordPair:
    """Two words, and their similarity as judged by people."""

    first: str
    second: str
    similarity: float


@dataclass(frozen=True)
class WordSimilarity:
    """Agreement of word pair scores with people's judgements."""

    name: str  # Name of the scores
    pairs: int  # Number of word pairs
    seen: int  # Word pairs that have a score, in one order at least; that of the others is 0
    spearman: float  # Spearman's rho with the judgements, in [-1, 1]


def read_word_pairs(path: str | Path) -> list[WordPair]:
    """Read SimLex-999 as published, or another table whose first three columns are word, word, similarity.

    The format is any of docs/formats.md; words become lower case.
    """
    path = Path(path).expanduser()
    table = open_table(path, COLUMNS)
    columns = COLUMNS if COLUMNS[-1] in table.names else ("1", "2", "3")
    if table.width < len(columns):
        raise InputError(
            f"{path}: expected word, word and similarity, found {counted(table.width, 'column')}", path=path
        )
    pairs = []
    for place, (first, second, score) in text_rows(table, columns, numbers=columns[-1:]):
        words = [parse_sentence(word, place, "the columns of words").lower() for word in (first, second)]
        pairs.append(WordPair(words[0], words[1], parse_number(score, place, "a similarity", path)))
    if not pairs:
        raise InputError(f"{path} holds no words: expected word, word and similarity in each row", path=path)
    return pairs


def in_both_orders(pairs: Sequence[WordPair]) -> set[Pair]:
    """Each pair as (first, second) and as (second, first)."""
    orders = {(pair.first, pair.second) for pair in pairs}
    return orders | {(second, first) for first, second in orders}


def evaluate_word_scores(pairs: Sequence[WordPair], scores: Mapping[Pair, float], name: str) -> WordSimilarity:
    """Correlate scores of words and their paraphrases with people's judgements.

    A pair that has scores in both orders gets their mean, one that has a score in one order gets that, and one that
    has none gets 0. `name` says what gave the scores.
    """
    values = []
    seen = 0
    for pair in pairs:
        found = [scores[order] for order in in_both_orders([pair]) if order in scores]
        seen += bool(found)
        values.append(sum(found) / max(len(found), 1))
    if not seen:
        raise InputError(f"{name} has none of the {len(pairs):,} word pairs, so there is nothing to correlate")
    return WordSimilarity(name, len(pairs), seen, spearman(values, [pair.similarity for pair in pairs]))


@dataclass(frozen=True)
class NearestWords:
    """Paraphrases of words."""

    by_adjusted_pmi: dict[str, list[WordParaphrase]]  # Paraphrases of each word, the best first
    by_pmi: dict[str, list[WordParaphrase]]  # The same by PMI
    min_count: int  # How often each was counted at least

    def to_json(self) -> dict[str, Any]:
        found = {}
        for word, by_pmi in self.by_pmi.items():
            adjusted = [asdict(one) for one in self.by_adjusted_pmi[word]]
            found[word] = {"adjusted_pmi": adjusted, "pmi": [asdict(one) for one in by_pmi]}
        return found

    def summary(self) -> str:
        """Tables of the paraphrases of each word, by both scores next to each other."""
        tables = []
        for word, by_pmi in self.by_pmi.items():
            rows = []
            for left, right in zip(self.by_adjusted_pmi[word], by_pmi, strict=True):
                adjusted = [left.word, f"{left.adjusted_pmi:.2f}", f"{left.count:,}"]
                rows.append([*adjusted, right.word, f"{right.pmi:.2f}", f"{right.count:,}"])
            head = [f"{word}, by adjusted PMI", "", "count", "by PMI", "", "count"]
            none = f"{word}: no paraphrase was counted at least {self.min_count:,} times (`min_count`)"
            tables.append(text_table(head, rows, left=(0, 3)) if rows else none)
        return "\n\n".join(tables)


def nearest_words(
    lexicon: str | Path, words: str | Sequence[str], *, top: Count = 10, min_count: Count = TABLE_COUNT
) -> NearestWords:
    """Find the paraphrases of words in a lexicon, by adjusted PMI and by PMI (ParaNMT-50M, table 12).

    Args:
        lexicon: Folder of the lexicon.
        words: The words.
        top: Number of paraphrases of each word.
        min_count: Leave out paraphrases that were counted less often.
    """
    opened = Lexicon.from_pretrained(lexicon)
    words = [words] if isinstance(words, str) else words
    adjusted = {word: opened.nearest(word, top=top, min_count=min_count) for word in words}
    plain = {word: opened.nearest(word, top=top, by="pmi", min_count=min_count) for word in words}
    return NearestWords(adjusted, plain, min_count)


@dataclass(frozen=True)
class LexiconEvaluation:
    """Correlations of a lexicon's scores with word similarities."""

    results: list[WordSimilarity]  # Of PPDB, if it was given, of PMI, and of adjusted PMI

    def to_json(self) -> list[dict[str, Any]]:
        return [asdict(result) for result in self.results]

    def summary(self) -> str:
        head = ("", "word pairs", "seen", "Spearman x 100")
        rows = [(one.name, f"{one.pairs:,}", f"{one.seen:,}", f"{100 * one.spearman:.1f}") for one in self.results]
        return text_table(head, rows)


def evaluate_lexicon(
    lexicon: Lexicon | str | Path, *, simlex: str | Path, ppdb: str | Path | None = None
) -> LexiconEvaluation:
    """Evaluate a lexicon on SimLex-999 (ParaNMT-50M, arXiv:1711.05732, table 13).

    Args:
        lexicon: Folder of the lexicon.
        simlex: SimLex-999, or another table of word, word and similarity.
        ppdb: Lexical paraphrases of PPDB as a baseline, plain or .gz.
    """
    opened = lexicon if isinstance(lexicon, Lexicon) else Lexicon.from_pretrained(lexicon)
    pairs = read_word_pairs(simlex)
    wanted = in_both_orders(pairs)
    results = []
    if ppdb is not None:
        results.append(evaluate_word_scores(pairs, *read_word_scores(ppdb, wanted)))
    rows = opened.lookup(wanted)
    results.append(evaluate_word_scores(pairs, {pair: row.pmi for pair, row in rows.items()}, "PMI"))
    adjusted = {pair: row.adjusted_pmi for pair, row in rows.items()}
    return LexiconEvaluation([*results, evaluate_word_scores(pairs, adjusted, "adjusted PMI")])
