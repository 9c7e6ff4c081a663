"""How diverse the sentences of a corpus are: ParaNMT-50M (Wieting & Gimpel 2018), section 3.2, table 1.

Pure figures of samples. Everything in them is plain, so that they can be written down.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from paranmt_hf.corpus.parsing.trees import Reading
from paranmt_hf.text.tokens import Bags, TokenTable
from paranmt_hf.text.word_rules import ENGLISH, word_tokenizer_for

# Sentences that are cut into tokens together.
SLICE = 20_000
# Templates of trees that are named.
TEMPLATES = 10
# Lowest and highest value, and number of bins, of the histogram of each measure; what lies outside counts in the
# outermost bin.
BINS = {"length": (0.0, 80.0, 40), "idf": (0.0, 16.0, 64), "para_score": (-1.0, 1.0, 40)}
# How text is cut, in words, of English and of another language.
TOKENS = "lower-cased words, clitics and punctuation marks apart, as in paranmt_hf/text/definitions.py"
OTHER_TOKENS = "lower-cased words of {}, punctuation marks apart, as in paranmt_hf/text/word_rules.py"
IDF = "ln(N / df): N sentences, df of them hold the token, at least 1; mean over the tokens of a sentence"


@dataclass(frozen=True)
class Spread:
    """How the values of a measure are spread over sentences.

    Attributes:
        mean: Arithmetic mean.
        deviation: Standard deviation, that of the sentences measured (the sum of squares divided by their number).
        sentences: How many sentences have a value.
        histogram: Sentences in each of the bins that `BINS` names.
    """

    mean: float
    deviation: float
    sentences: int
    histogram: list[int]


@dataclass(frozen=True)
class ParseFigures:
    """How diverse the trees of a sample are.

    Attributes:
        parser: What gave the trees.
        reading: Which levels of a tree count, see `trees.READINGS`.
        sentences: How many sentences were given to the parser.
        parsed: How many of them have a tree.
        entropy: Entropy of the trees' top levels in nats; None where no sentence has a tree.
        distinct: Number of different ones.
        frequent: The most frequent ones, and how many sentences have each.
    """

    parser: str
    reading: Reading
    sentences: int
    parsed: int
    entropy: float | None
    distinct: int
    frequent: dict[str, int]


@dataclass(frozen=True)
class CorpusFigures:
    """The figures of a corpus, or of one of its origins: a row of table 1.

    Attributes:
        name: What it is called in the table.
        size: Number of its sentences (of pairs: one side of each).
        measured: How many of them were drawn and measured.
        distinct: How many different ones those are.
        tokens: Number of word tokens in them.
        types: Number of different tokens.
        length: Word tokens of a sentence.
        idf: Mean inverse document frequency of a sentence's tokens; None where no sentence has a token.
        para_score: Paraphrase score of the pairs; None where there is none.
        vocabulary_entropy: Entropy of the tokens in nats; None where there are none.
        parses: What the trees give; None without a parser.
        dropped: Rows that could not be used, by reason.
    """

    name: str
    size: int
    measured: int
    distinct: int
    tokens: int
    types: int
    length: Spread
    idf: Spread | None
    para_score: Spread | None
    vocabulary_entropy: float | None
    parses: ParseFigures | None = None
    dropped: dict[str, int] = field(default_factory=dict)


def entropy(counts: np.ndarray | Sequence[int]) -> float | None:
    """Entropy of a distribution, estimated by the shares of its outcomes: - sum of p ln p.

    It grows with the number of outcomes seen, so that only samples of about one size are to be compared.

    Args:
        counts: How often each outcome was seen [outcome], none of them negative.

    Returns:
        Entropy in nats, from 0 to ln(number of outcomes); None where nothing was seen.
    """
    counts = np.asarray(counts, np.float64)
    counts = counts[counts > 0]
    if not len(counts):
        return None
    total = float(counts.sum())
    return max(0.0, math.log(total) - float(counts @ np.log(counts)) / total)


def spread(values: np.ndarray, measure: str) -> Spread | None:
    """Summarise the values of a measure.

    Args:
        values: Values [sentence]; NaN where a sentence has none.
        measure: A key of `BINS`.

    Returns:
        None where no sentence has a value.
    """
    values = values[~np.isnan(values)].astype(np.float64)
    if not len(values):
        return None
    low, high, bins = BINS[measure]
    histogram = np.histogram(values.clip(low, high), bins, (low, high))[0]
    return Spread(float(values.mean()), float(values.std()), len(values), histogram.tolist())


class TokenIds:
    """Ids of tokens that hold for many tables, where those of a tokenizer hold until it forgets.

    Args:
        index_of: The ids by token.
        grow: Whether tokens that have none get the next one; else they have -1.
    """

    def __init__(self, index_of: dict[str, int], *, grow: bool) -> None:
        self.index_of = index_of
        self._grow = grow
        self._tokens: Sequence[str] = ()
        self._ids = np.empty(0, np.int32)

    def of(self, table: TokenTable) -> np.ndarray:
        """Ids of a table's tokens [token], int32."""
        if table.vocabulary is not self._tokens:
            self._tokens, self._ids = table.vocabulary, np.empty(0, np.int32)
        index_of, new = self.index_of, table.vocabulary[len(self._ids) :]
        if self._grow:
            ids = [index_of.setdefault(token, len(index_of)) for token in new]
        else:
            ids = [index_of.get(token, -1) for token in new]
        self._ids = np.concatenate([self._ids, np.array(ids, np.int32)])
        return self._ids[table.ids]


class Cutter:
    """Cuts columns of sentences into bags of token ids.

    Args:
        index_of: Id of each token.
        grow: As of `TokenIds`.
        language: ISO 639-1 code, which decides what a word is.
    """

    def __init__(self, index_of: dict[str, int], *, grow: bool, language: str = ENGLISH) -> None:
        self._tokenizer, self._ids = word_tokenizer_for(language), TokenIds(index_of, grow=grow)

    def cut(self, sentences: pa.Array | pa.ChunkedArray) -> Bags:
        """Cut sentences [sentence]."""
        rows, lengths = [], []
        for start in range(0, len(sentences), SLICE):
            (table,) = self._tokenizer.tables(sentences.slice(start, SLICE))
            rows.append(self._ids.of(table))
            lengths.append(table.lengths)
        offsets = np.zeros(len(sentences) + 1, np.int64)
        if rows:
            np.cumsum(np.concatenate(lengths), out=offsets[1:])
        return Bags(np.concatenate([np.empty(0, np.int32), *rows]), offsets)


class DocumentFrequencies:
    """In how many sentences each token stands.

    Args:
        size: Number of tokens that are counted; ids outside are not.
    """

    def __init__(self, size: int) -> None:
        self.sentences = 0
        self.counts = np.zeros(size, np.int64)

    def add(self, bags: Bags) -> None:
        """Count the sentences of a table."""
        size = len(self.counts)
        self.sentences += len(bags)
        for start in range(0, len(bags), SLICE):
            offsets = bags.offsets[start : start + SLICE + 1]
            rows = bags.rows[offsets[0] : offsets[-1]].astype(np.int64)
            keys = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets)) * size + rows
            keys = np.sort(keys[(rows >= 0) & (rows < size)])
            if len(keys):
                # A token counts once in a sentence, however often it stands there.
                once = keys[np.diff(keys, prepend=-1) > 0]
                self.counts += np.bincount(once % size, minlength=size)

    @property
    def idf(self) -> np.ndarray:
        """Inverse document frequency of each token [token], in nats: ln(N / df).

        N is the number of sentences and df that of those which hold the token. A token that stands in none counts as
        if it stood in one, and has the largest value there is, ln N.
        """
        return np.log(max(1, self.sentences) / np.maximum(1, self.counts))


def mean_idf(bags: Bags, idf: np.ndarray) -> np.ndarray:
    """Mean inverse document frequency of each sentence's tokens [sentence]; NaN for one without tokens.

    A token counts as often as it stands in the sentence.

    Args:
        bags: Tokens of the sentences.
        idf: Inverse document frequency of each token [token].
    """
    sums = np.diff(np.concatenate([[0.0], np.cumsum(idf[bags.rows])])[bags.offsets])
    lengths = np.diff(bags.offsets)
    return np.divide(sums, lengths, out=np.full(len(bags), np.nan), where=lengths > 0)


def parse_figures(tops: Sequence[str | None], parser: str, reading: Reading) -> ParseFigures:
    """Count the top levels of trees.

    Args:
        tops: Those of each sentence's tree, as `top_levels` gives them; None for one that has none.
        parser: What gave them.
        reading: Which levels count.
    """
    templates = Counter(top for top in tops if top is not None)
    return ParseFigures(
        parser=parser,
        reading=reading,
        sentences=len(tops),
        parsed=templates.total(),
        entropy=entropy(list(templates.values())),
        distinct=len(templates),
        frequent=dict(sorted(templates.items(), key=lambda item: (-item[1], item[0]))[:TEMPLATES]),
    )


def corpus_figures(
    name: str,
    bags: Bags,
    idf: np.ndarray,
    *,
    size: int,
    distinct: int,
    scores: np.ndarray | None = None,
    parses: ParseFigures | None = None,
    dropped: dict[str, int] | None = None,
) -> CorpusFigures:
    """Put the figures of a sample together.

    Args:
        name: What it is called.
        bags: Tokens of the sentences drawn, at least one sentence.
        idf: Inverse document frequency of each token [token].
        size: Number of sentences of the corpus.
        distinct: Number of different ones among those drawn.
        scores: Paraphrase score [sentence] of their pairs, NaN for none.
        parses: What the trees gave.
        dropped: Rows that could not be used, by reason.
    """
    counts = np.bincount(bags.rows) if len(bags.rows) else np.zeros(0, np.int64)
    length = spread(np.diff(bags.offsets).astype(np.float64), "length")
    assert length is not None
    return CorpusFigures(
        name=name,
        size=size,
        measured=len(bags),
        distinct=distinct,
        tokens=len(bags.rows),
        types=int(np.count_nonzero(counts)),
        length=length,
        idf=spread(mean_idf(bags, idf), "idf"),
        para_score=None if scores is None else spread(scores, "para_score"),
        vocabulary_entropy=entropy(counts),
        parses=parses,
        dropped=dropped or {},
    )
