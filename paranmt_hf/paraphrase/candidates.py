"""Paraphrases of sentences, candidates for them, and the selection of those that are good enough."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import compress

import numpy as np
import pyarrow as pa

from paranmt_hf.corpus.parsing.parsers import Parser, linearised_trees
from paranmt_hf.corpus.parsing.trees import template_of
from paranmt_hf.corpus.scoring.scores import cosines
from paranmt_hf.meaning.judgement import reasons_between
from paranmt_hf.paraphrase.config import ParaphraseConfig
from paranmt_hf.text.definitions import words
from paranmt_hf.text.overlap import trigram_overlap
from paranmt_hf.text.protocols import Encoder
from paranmt_hf.text.tokens import WordTokenizer
from paranmt_hf.text.word_rules import letters


@dataclass(frozen=True)
class Paraphrase:
    """A paraphrase of a sentence.

    Attributes:
        text: The paraphrase.
        score: Paraphrase score, the cosine with the sentence, in [-1, 1]; None without a scorer.
        template: The template that was requested; None without syntactic control.
    """

    text: str
    score: float | None
    template: str | None = None


@dataclass(frozen=True)
class Paraphrased:
    """The paraphrases of a sentence.

    Attributes:
        paraphrases: Different paraphrases, the most probable first, or the one with the highest score first.
        note: Why there is no paraphrase; None if there is one.
    """

    paraphrases: list[Paraphrase]
    note: str | None


@dataclass(frozen=True)
class Request:
    """A sentence to paraphrase, and for a controlled network the template that the paraphrase is to have."""

    sentence: str
    template: str | None = None


class Candidates:
    """The candidates for the paraphrases of some requests.

    Empty candidates, and repeated candidates of a request, are left out from the start.

    Attributes:
        texts: The candidates [candidate]; those of a request are next to each other, the most probable first.
        rows: Index of the request of each candidate [candidate].
        notes: Why a request has no candidate left [request]; None if it has one.

    Args:
        requests: The requests.
        texts: Candidates of all requests, in the order of the requests.
        counts: Number of candidates of each request [request].
    """

    def __init__(self, requests: Sequence[Request], texts: list[str], counts: list[int]) -> None:
        self._requests = requests
        self.texts, self.rows = texts, np.repeat(np.arange(len(counts)), counts)
        self.notes: list[str | None] = [None] * len(counts)
        seen: set[tuple[int, str]] = set()
        fresh = []
        for place in zip(self.rows.tolist(), texts, strict=True):
            fresh.append(bool(place[1]) and place not in seen)
            seen.add(place)
        self.keep(np.array(fresh, bool), "nothing generated")

    @property
    def ranks(self) -> np.ndarray:
        """Rank of each candidate among those of its request, from 0 [candidate]."""
        return np.arange(len(self.rows)) - np.searchsorted(self.rows, self.rows)

    @property
    def sentences(self) -> list[str]:
        """The sentence that each candidate paraphrases [candidate]."""
        return [self._requests[row].sentence for row in self.rows.tolist()]

    @property
    def templates(self) -> list[str | None]:
        """The template that was requested for each candidate [candidate]."""
        return [self._requests[row].template for row in self.rows.tolist()]

    def keep(self, good: np.ndarray, note: str) -> None:
        """Keep only good candidates.

        Args:
            good: Mask of the candidates to keep [candidate], bool.
            note: Note for requests that lose their last candidate by this.
        """
        self.rows, self.texts = self.rows[good], list(compress(self.texts, good))
        for row in np.flatnonzero(np.bincount(self.rows, minlength=len(self.notes)) == 0):
            self.notes[row] = self.notes[row] or note


def select_candidates(
    candidates: Candidates, config: ParaphraseConfig, *, scorer: Encoder | None = None, parser: Parser | None = None
) -> list[Paraphrased]:
    """Select the first `n` candidates of each request that are within all limits.

    Args:
        candidates: The candidates, which are filtered in place.
        config: The limits, `n`, and the order of paraphrases.
        scorer: Encoder of the paraphrase score; None gives paraphrases without scores.
        parser: Parser that finds out which candidates have the requested template; needed for `has_template`.

    Returns:
        The paraphrases of each request [request].
    """
    if not config.keep_copies:
        candidates.keep(
            letters_of(candidates.sentences) != letters_of(candidates.texts), "nothing but the sentence itself"
        )
    if config.max_overlap is not None:
        candidates.keep(
            overlaps(candidates.sentences, candidates.texts) <= config.max_overlap, "no paraphrase below the overlap"
        )
    if config.same_meaning:
        reasons = reasons_between(candidates.sentences, candidates.texts)
        candidates.keep(np.array([not some for some in reasons], bool), "no paraphrase of the same meaning")
    if config.has_template:
        assert parser is not None
        candidates.keep(
            have_templates(parser, candidates.texts, candidates.templates), "no paraphrase with the template"
        )
    if not config.chooses:
        candidates.keep(candidates.ranks < config.n, "")
    scores = np.full(len(candidates.texts), np.nan, np.float32)
    if scorer is not None and candidates.texts:
        distinct, rows = np.unique(candidates.sentences, return_inverse=True)
        scores = cosines(
            np.asarray(scorer.encode(distinct.tolist()))[rows], np.asarray(scorer.encode(candidates.texts))
        )
    if config.min_score is not None:
        good = scores >= config.min_score
        candidates.keep(good, "no paraphrase above the score")
        scores = scores[good]
    found: list[list[Paraphrase]] = [[] for _ in candidates.notes]
    columns = (candidates.rows.tolist(), candidates.texts, candidates.templates, scores.tolist())
    for row, text, template, score in zip(*columns, strict=True):
        found[row].append(Paraphrase(text, None if scorer is None else score, template))
    results = []
    for paraphrases, note in zip(found, candidates.notes, strict=True):
        if config.order == "score":
            paraphrases.sort(key=by_score)
        results.append(
            Paraphrased(apart(paraphrases, config.max_mutual_overlap, config.n), None if paraphrases else note)
        )
    return results


def by_score(paraphrase: Paraphrase) -> float:
    """Return the sort key of a paraphrase for a sort by score, the highest first."""
    return 0.0 if paraphrase.score is None else -paraphrase.score


def letters_of(texts: list[str]) -> np.ndarray:
    """Return the letters and digits of each text, in lower case [text]."""
    return np.array(letters(pa.array(texts, pa.string())).to_pylist(), object)


def overlaps(first: Sequence[str], second: Sequence[str]) -> np.ndarray:
    """Compute the trigram overlap of pairs of sentences [pair], float32 in [0, 1], as in the column `trigram_overlap`.

    If a sentence has fewer than three words, the overlap is 1 if both sentences have the same words, else 0.
    """
    if not len(first):
        return np.zeros(0, np.float32)
    found = trigram_overlap(*WordTokenizer().tables(list(first), list(second)))
    values = found.fill_null(0).to_numpy(zero_copy_only=False).copy()
    for pair in np.flatnonzero(found.is_null().to_numpy(zero_copy_only=False)).tolist():
        values[pair] = words(first[pair]) == words(second[pair])
    return values


def have_templates(parser: Parser, sentences: list[str], templates: Sequence[str | None]) -> np.ndarray:
    """Mark the sentences whose tree has the template with the same index [sentence], bool."""
    distinct = list(dict.fromkeys(sentences))
    found = {}
    for sentence, tree in zip(distinct, linearised_trees(parser, distinct), strict=True):
        found[sentence] = None if tree is None else template_of(tree)
    return np.array([found[sentence] == wanted for sentence, wanted in zip(sentences, templates, strict=True)], bool)


def apart(paraphrases: list[Paraphrase], limit: float | None, n: int | None = None) -> list[Paraphrase]:
    """Return the first `n` paraphrases that do not overlap too much with those before them.

    Args:
        paraphrases: Paraphrases of a sentence, the best first.
        limit: Largest trigram overlap with a paraphrase that was kept before; None for no limit.
        n: Number of paraphrases to keep; None for all.
    """
    if limit is None:
        return paraphrases[:n]
    kept: list[Paraphrase] = []
    for each in paraphrases:
        if len(kept) == n:
            break
        if not (overlaps([other.text for other in kept], [each.text] * len(kept)) > limit).any():
            kept.append(each)
    return kept
