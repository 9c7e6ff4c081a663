"""Show the paraphrases of words in a lexicon, and correlate its scores with people's judgements of similarity.

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

COLUMNS = ("word1", "word2", "SimLex999")  # Columns of SimLex-999: two words and their similarity


@dataclass(frozen=True)
class WordPair:
    """Two words in lower case, and their similarity as people judged it, on the scale of the data set."""

    first: str
    second: str
    similarity: float


@dataclass(frozen=True)
class WordSimilarity:
    """How well scores of word pairs agree with people's judgements."""

    name: str  # What gave the scores, such as "PMI"
    pairs: int  # Number of word pairs
    seen: int  # Number of word pairs with a score in at least one order; the other pairs count with the score 0
    spearman: float  # Spearman's rho of scores and judgements, in [-1, 1]


def read_word_pairs(path: str | Path) -> list[WordPair]:
    """Read word pairs and their similarities from a table in any format of docs/formats.md.

    The table is SimLex-999 as published, or has a word, a word and a similarity as its first three columns. Words
    become lower case. Raises `InputError` for a table with fewer columns or without rows.
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
    """Return the words of each pair as (first, second) and as (second, first)."""
    orders = {(pair.first, pair.second) for pair in pairs}
    return orders | {(second, first) for first, second in orders}


def evaluate_word_scores(pairs: Sequence[WordPair], scores: Mapping[Pair, float], name: str) -> WordSimilarity:
    """Correlate scores of word pairs with people's judgements.

    A word pair with scores in both orders counts with their mean, a pair with a score in one order with this score,
    and a pair without a score with 0.

    Args:
        pairs: Word pairs with people's judgements.
        scores: Scores by (word, paraphrase).
        name: What gave the scores, for the result and for messages.

    Raises:
        InputError: No pair has a score.
    """
    values = []
    seen = 0
    for pair in pairs:
        pair_scores = [scores[order] for order in in_both_orders([pair]) if order in scores]
        seen += bool(pair_scores)
        values.append(sum(pair_scores) / max(len(pair_scores), 1))
    if not seen:
        raise InputError(f"{name} has none of the {len(pairs):,} word pairs, so there is nothing to correlate")
    return WordSimilarity(name, len(pairs), seen, spearman(values, [pair.similarity for pair in pairs]))


@dataclass(frozen=True)
class NearestWords:
    """The best paraphrases of some words, ranked by each of the two scores of a lexicon."""

    by_adjusted_pmi: dict[str, list[WordParaphrase]]  # Paraphrases of each word, the highest adjusted PMI first
    by_pmi: dict[str, list[WordParaphrase]]  # Paraphrases of each word, the highest PMI first
    min_count: int  # Minimum count of these paraphrases

    def to_json(self) -> dict[str, Any]:
        """Return, for each word, its paraphrases under `adjusted_pmi` and `pmi`, as JSON values."""
        rankings = {}
        for word, by_pmi in self.by_pmi.items():
            adjusted = [asdict(one) for one in self.by_adjusted_pmi[word]]
            rankings[word] = {"adjusted_pmi": adjusted, "pmi": [asdict(one) for one in by_pmi]}
        return rankings

    def summary(self) -> str:
        """Return a table for each word, with the rankings by both scores next to each other."""
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
        words: The words whose paraphrases are shown.
        top: Maximum number of paraphrases of each word.
        min_count: Leave out paraphrases that were counted less often.
    """
    opened = Lexicon.from_pretrained(lexicon)
    words = [words] if isinstance(words, str) else words
    adjusted = {word: opened.nearest(word, top=top, min_count=min_count) for word in words}
    plain = {word: opened.nearest(word, top=top, by="pmi", min_count=min_count) for word in words}
    return NearestWords(adjusted, plain, min_count)


@dataclass(frozen=True)
class LexiconEvaluation:
    """Correlations of a lexicon's scores with people's judgements of word similarity."""

    results: list[WordSimilarity]  # Results of PPDB (only if it was given), of PMI and of adjusted PMI

    def to_json(self) -> list[dict[str, Any]]:
        """Return the results as JSON values."""
        return [asdict(result) for result in self.results]

    def summary(self) -> str:
        """Return a table with a row for each result."""
        head = ("", "word pairs", "seen", "Spearman x 100")
        rows = [(one.name, f"{one.pairs:,}", f"{one.seen:,}", f"{100 * one.spearman:.1f}") for one in self.results]
        return text_table(head, rows)


def evaluate_lexicon(
    lexicon: Lexicon | str | Path, *, simlex: str | Path, ppdb: str | Path | None = None
) -> LexiconEvaluation:
    """Evaluate a lexicon on SimLex-999 (ParaNMT-50M, arXiv:1711.05732, table 13).

    Args:
        lexicon: Folder of the lexicon.
        simlex: File of SimLex-999, or another table whose first columns are word, word and similarity.
        ppdb: File of lexical paraphrases of PPDB as a baseline, plain or .gz.
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
