"""Generate paraphrases of sentences."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np
import pyarrow as pa
import torch

from paranmt_hf.corpus.translation.device import default_batch_tokens, resolve_device
from paranmt_hf.encoders.named_encoder import NamedEncoder
from paranmt_hf.errors import InputError
from paranmt_hf.hub.repository import EMBEDDED, Model, locate
from paranmt_hf.paraphrase.config import ParaphraseConfig
from paranmt_hf.paraphrase.loading import EncoderDecoder, read_model
from paranmt_hf.paraphrase.templates import check_control
from paranmt_hf.text.definitions import words
from paranmt_hf.text.letters import letters
from paranmt_hf.text.overlap import trigram_overlap
from paranmt_hf.text.protocols import Encoder
from paranmt_hf.text.tokens import WordTokenizer
from paranmt_hf.util.batches import MemoryGuard, token_batches

EMPTY, NOT_TEXT = "empty line", "not UTF-8"
NONE_LEFT, NONE_FOUND = "no paraphrase above the score", "nothing generated"
ALL_ALIKE, COPIES = "no paraphrase below the overlap", "nothing but the sentence itself"


@dataclass(frozen=True)
class Paraphrase:
    """A paraphrase of a sentence.

    Attributes:
        text: The paraphrase.
        score: Its paraphrase score, the cosine of both vectors, in [-1, 1]; None without a scorer.
        template: The template that was asked for; None without syntactic control.
    """

    text: str
    score: float | None
    template: str | None = None


@dataclass(frozen=True)
class Paraphrased:
    """The paraphrases of a sentence.

    Attributes:
        paraphrases: Different ones, the most probable first, or those of the highest score.
        note: Why there are none; None if there are some.
    """

    paraphrases: list[Paraphrase]
    note: str | None


class Paraphraser:
    """Generates paraphrases with an encoder-decoder.

    Args:
        model: Folder or Hub id, of a model of `paranmt paraphrase train` or another encoder-decoder.
        config: How it searches, unless a call overrides it.
        scorer: Gives the paraphrase score: an encoder, or folder, Hub id or file of word vectors; by default the small
            encoder of this package. None: no score.
        revision: Branch, tag or commit on the Hub.
    """

    def __init__(
        self,
        model: str | Path | Model,
        config: ParaphraseConfig | None = None,
        *,
        scorer: Encoder | str | Path | None = EMBEDDED,
        revision: str | None = None,
    ) -> None:
        self.config = config or ParaphraseConfig()
        self.files = locate(model, revision)
        self.device = resolve_device(self.config.device)
        self._own = self._read(resolve_dtype(self.config, self.device))
        self._scorer = NamedEncoder.of(scorer).load() if isinstance(scorer, str | Path) else scorer
        self._guard = MemoryGuard("lower beams, n or max_length, or take a smaller dtype or model")

    def _read(self, dtype: torch.dtype) -> EncoderDecoder:
        """Read what generates paraphrases, and put it on the device."""
        check_control(self.files, templates=False)
        own = read_model(self.files, dtype)
        own.model.to(self.device)
        return own

    def __call__(self, sentences: Sequence[str], n: int | None = None, **settings: Any) -> list[list[Paraphrase]]:  # noqa: ANN401
        """Generate paraphrases.

        Args:
            sentences: Sentences; white space is normalised.
            n: Paraphrases of each.
            settings: Fields of `ParaphraseConfig`, for this call.

        Returns:
            Paraphrases of each sentence, at most `n` different ones; none for a blank or too long sentence or one
            that is not text, and fewer if fewer are found or reach `min_score`.
        """
        config = self._called(sentences, n, settings)
        return [result.paraphrases for result in self.paraphrase(list(sentences), config)]

    def _called(self, sentences: Sequence[str], n: int | None, settings: dict[str, Any]) -> ParaphraseConfig:
        """Check the arguments of a call, and override the settings of the paraphraser with them."""
        if isinstance(sentences, str):
            raise InputError("expected a list of sentences, got a single one; put it into a list")
        for place, sentence in enumerate(sentences):
            if not isinstance(sentence, str):
                raise InputError(f"expected a list of sentences, got {type(sentence).__name__} at place {place} of it")
        if fixed := {"device", "dtype"} & set(settings):
            raise InputError(f"{', '.join(sorted(fixed))} is fixed when the model is loaded; give it to Paraphraser")
        check_names(settings)
        changed = dict(settings) if n is None else {**settings, "n": n}
        return replace(self.config, **changed)

    def paraphrase(self, sentences: Sequence[str | None], config: ParaphraseConfig | None = None) -> list[Paraphrased]:
        """Generate paraphrases, with a note for each sentence that has none.

        Args:
            sentences: Sentences; None for text that cannot be read.
            config: How to search.

        Returns:
            Results in the order of `sentences`. They do not depend on the other sentences.
        """
        config = self._bounded(config or self.config)
        texts, kept, notes = self._prepared(sentences, config)
        candidates = self._search(self._own, [ids for _, ids in kept], config)
        found = self._judged([text for text, _ in kept], candidates, config)
        return [found[text] if text in found else Paraphrased([], notes[text]) for text in texts]

    def _bounded(self, config: ParaphraseConfig) -> ParaphraseConfig:
        """The same, with sentences no longer than the model has positions."""
        positions = self._own.positions
        return config if positions is None else replace(config, max_length=min(config.max_length, positions))

    def _prepared(
        self, sentences: Sequence[str | None], config: ParaphraseConfig
    ) -> tuple[list[str | None], list[tuple[str, list[int]]], dict[str | None, str]]:
        """Normalise sentences.

        Returns:
            Their texts; the distinct ones that can be paraphrased, with their ids; and notes on the others.
        """
        if config.scored_for and self._scorer is None:
            raise InputError(f"{config.scored_for} needs a scorer, and this paraphraser has none")
        texts = [" ".join(sentence.split()) if _is_text(sentence) else None for sentence in sentences]
        distinct = [text for text in dict.fromkeys(texts) if text]
        pieces = self._own.cut(distinct) if distinct else []
        notes: dict[str | None, str] = {None: NOT_TEXT, "": EMPTY}
        limit = f"over {config.max_length} pieces"
        notes |= {text: limit for text, ids in zip(distinct, pieces, strict=True) if len(ids) > config.max_length}
        kept = [(text, ids) for text, ids in zip(distinct, pieces, strict=True) if len(ids) <= config.max_length]
        return texts, kept, notes

    def _search(
        self,
        own: EncoderDecoder,
        sources: list[list[int]],
        config: ParaphraseConfig,
        controls: list[list[int]] | None = None,
    ) -> list[list[list[int]]]:
        """Candidates of each source, batch by batch."""

        def searched(rows: np.ndarray) -> list[list[list[int]]]:
            wanted = [controls[row] for row in rows] if controls is not None else None
            return own.search([sources[row] for row in rows], config, wanted)

        lengths = np.array(
            [len(max(ids, key=len)) for ids in zip(sources, controls or sources, strict=True)], np.int64
        )
        results: list[list[list[int]]] = [[] for _ in sources]
        budget = config.batch_tokens or default_batch_tokens(self.device)
        for batch in token_batches(lengths, budget):
            for part, targets in self._guard.run(batch, lengths, searched):
                for row, found in zip(part, targets, strict=True):
                    results[row] = found
        return results

    def _judged(
        self, texts: list[str], candidates: list[list[list[int]]], config: ParaphraseConfig
    ) -> dict[str | None, Paraphrased]:
        """Keep the first `n` different candidates of each sentence within all limits."""
        joined = self._own.join([ids for own in candidates for ids in own])
        ends = np.cumsum([0, *map(len, candidates)])
        choices = [list(filter(None, dict.fromkeys(joined[a:b]))) for a, b in zip(ends, ends[1:], strict=False)]
        notes = [ALL_ALIKE if own else NONE_FOUND for own in choices]
        if not config.keep_copies:
            choices = _without_copies(texts, choices)
            notes = [
                COPIES if note == ALL_ALIKE and not own else note for note, own in zip(notes, choices, strict=True)
            ]
        if config.max_overlap is not None:
            choices = unlike(texts, choices, config.max_overlap)
        if not config.chooses:
            choices = [own[: config.n] for own in choices]
        scores = iter(self._scores(texts, choices))
        results: dict[str | None, Paraphrased] = {}
        scored = [[Paraphrase(choice, next(scores)) for choice in own] for own in choices]
        if (least := config.min_score) is not None:
            good = [[each for each in own if each.score is not None and each.score >= least] for own in scored]
        else:
            good = scored
        if config.order == "score":
            good = [sorted(own, key=by_score) for own in good]
        if config.max_mutual_overlap is not None:
            kept = apart([[each.text for each in own] for own in good], config.max_mutual_overlap)
            good = [[own[position] for position in positions] for own, positions in zip(good, kept, strict=True)]
        for text, own, below, note in zip(texts, good, scored, notes, strict=True):
            results[text] = Paraphrased(own[: config.n], None if own else NONE_LEFT if below else note)
        return results

    def _scores(self, texts: list[str], choices: list[list[str]]) -> list[float | None]:
        """Paraphrase score of every choice of every sentence, in one list."""
        flat = [choice for own in choices for choice in own]
        if self._scorer is None or not flat:
            return [None] * len(flat)
        first, second = (_unit(self._scorer.encode(side)) for side in (texts, flat))
        rows = np.repeat(np.arange(len(texts)), [len(own) for own in choices])
        return [float(score) for score in np.clip((first[rows] * second).sum(axis=1), -1, 1)]


def check_names(settings: Iterable[str]) -> None:
    """Refuse names that are not fields of `ParaphraseConfig`."""
    known = list(ParaphraseConfig.__dataclass_fields__)
    if unknown := sorted(set(settings) - set(known)):
        raise InputError(f"a paraphraser has no setting {', '.join(unknown)}; it has {', '.join(known)}")


def by_score(paraphrase: Paraphrase) -> float:
    """Key that sorts paraphrases, the highest score first; equal ones stay in their order."""
    return 0.0 if paraphrase.score is None else -paraphrase.score


def _without_copies(texts: list[str], choices: list[list[str]]) -> list[list[str]]:
    """Leave out choices with the letters and digits of their sentence."""
    flat = [choice for own in choices for choice in own]
    wanted, found = (letters(pa.array(side, pa.string())).to_pylist() for side in (texts, flat))
    left = iter(found)
    return [[choice for choice in own if next(left) != text] for own, text in zip(choices, wanted, strict=True)]


def _is_text(sentence: str | None) -> TypeGuard[str]:
    """Whether there is a sentence, and all of it is text: half of a surrogate pair cannot be written in UTF-8."""
    return sentence is not None and not any("\ud800" <= character <= "\udfff" for character in sentence)


def _unit(vectors: np.ndarray) -> np.ndarray:
    """Normalise vectors [sentence, dimension] to length 1, except those of zeros."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.where(lengths > 0, lengths, 1)


def resolve_dtype(config: ParaphraseConfig, device: str) -> torch.dtype:
    """Number format to use."""
    name = config.dtype if config.dtype != "auto" else ("float32" if device == "cpu" else "float16")
    found: torch.dtype = getattr(torch, name)
    return found


def overlaps(first: Sequence[str], second: Sequence[str]) -> np.ndarray:
    """Trigram overlap of pairs of sentences, also of short ones.

    Args:
        first: Sentences [pair].
        second: Sentences [pair].

    Returns:
        Overlap [pair], float32 in [0, 1], as in the column `trigram_overlap`. If a side has fewer than three words it
        is 1 if both have the same words, else 0.
    """
    if not len(first):
        return np.zeros(0, np.float32)
    found = trigram_overlap(*WordTokenizer().tables(list(first), list(second)))
    values = found.fill_null(0).to_numpy(zero_copy_only=False).copy()
    for pair in np.flatnonzero(found.is_null().to_numpy(zero_copy_only=False)).tolist():
        values[pair] = words(first[pair]) == words(second[pair])
    return values


def unlike(texts: Sequence[str], choices: Sequence[Sequence[str]], limit: float) -> list[list[str]]:
    """Keep the choices of each text that have at most this overlap with it."""
    repeated = [text for text, own in zip(texts, choices, strict=True) for _ in own]
    values = iter(overlaps(repeated, [choice for own in choices for choice in own]))
    return [[choice for choice in own if next(values) <= limit] for own in choices]


def apart(choices: Sequence[Sequence[str]], limit: float) -> list[list[int]]:
    """Keep of each list the choices that have at most this overlap with each one kept before.

    Args:
        choices: Lists of sentences, those that are preferred first.
        limit: Largest overlap.

    Returns:
        Positions of those kept in each list.
    """
    kept: list[list[int]] = [[] for _ in choices]
    for position in range(max(map(len, choices), default=0)):
        rows = [row for row, own in enumerate(choices) if position < len(own)]
        pairs = [(choices[row][position], choices[row][other]) for row in rows for other in kept[row]]
        values = overlaps([a for a, _ in pairs], [b for _, b in pairs])
        ends = np.cumsum([0, *(len(kept[row]) for row in rows)])
        for row, start, end in zip(rows, ends, ends[1:], strict=False):
            if (values[start:end] <= limit).all():
                kept[row].append(position)
    return kept
