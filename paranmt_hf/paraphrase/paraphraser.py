"""Paraphrases of sentences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from paranmt_hf.encoders.scorer import ScorerConfig
from paranmt_hf.errors import InputError
from paranmt_hf.hub.repository import Model, locate
from paranmt_hf.paraphrase.config import ParaphraseConfig
from paranmt_hf.paraphrase.loading import EncoderDecoder, read_model
from paranmt_hf.paraphrase.search import search
from paranmt_hf.protocols import Encoder
from paranmt_hf.util.batches import MemoryGuard, token_batches

EMPTY, NOT_TEXT = "empty line", "not UTF-8"
NONE_LEFT, NONE_FOUND = "no paraphrase above the score", "nothing generated"


@dataclass(frozen=True)
class Paraphrase:
    """A paraphrase of a sentence.

    Attributes:
        text: The paraphrase.
        score: Its paraphrase score, the cosine of both vectors, in [-1, 1]; None where there is no scorer.
    """

    text: str
    score: float | None


@dataclass(frozen=True)
class Paraphrased:
    """What became of a sentence.

    Attributes:
        paraphrases: Different ones, the most probable first.
        note: Why there are none; None where there are some.
    """

    paraphrases: list[Paraphrase]
    note: str | None


class Paraphraser:
    """Generates paraphrases with an encoder-decoder.

    Args:
        model: Folder or Hub id, of a model that `paranmt train-paraphraser` made or another encoder-decoder.
        config: How it searches, unless a call says otherwise.
        scorer: Gives the paraphrase score; by default the small encoder of this package. None: there is no score.
        revision: Branch, tag or commit on the Hub.

    Raises:
        InputError: There is no such model, it is of another kind or damaged, or the device is not there.
    """

    def __init__(
        self,
        model: str | Path | Model,
        config: ParaphraseConfig | None = None,
        *,
        scorer: Encoder | ScorerConfig | None = ScorerConfig(),  # noqa: B008 - settings do not change
        revision: str | None = None,
    ) -> None:
        self.config = config or ParaphraseConfig()
        self.files = locate(model, revision)
        self.device = resolve_device(self.config.device)
        own = read_model(self.files, resolve_dtype(self.config, self.device))
        own.model.to(self.device)
        self._own: EncoderDecoder = own
        self._scorer = scorer.load() if isinstance(scorer, ScorerConfig) else scorer
        self._guard = MemoryGuard("lower beams, n or max_length, or take a smaller dtype or model")

    def __call__(self, sentences: Sequence[str], n: int | None = None, **settings: Any) -> list[list[Paraphrase]]:  # noqa: ANN401
        """Generate paraphrases.

        Args:
            sentences: Sentences; white space is normalised.
            n: Paraphrases of each.
            settings: Fields of `ParaphraseConfig`, for this call.

        Returns:
            Paraphrases of each sentence, at most `n` different ones; none for a blank or too long sentence, and fewer
            where fewer are found or reach `min_score`.

        Raises:
            InputError: A single sentence was given in place of a list, or a setting is out of range.
        """
        if isinstance(sentences, str):
            raise InputError("expected a list of sentences, got a single one; put it into a list")
        if fixed := {"device", "dtype"} & set(settings):
            raise InputError(f"{', '.join(sorted(fixed))} is settled when the model is loaded; give it to Paraphraser")
        unknown = set(settings) - set(ParaphraseConfig.__dataclass_fields__)
        if unknown:
            raise InputError(f"there is no setting {', '.join(sorted(unknown))} of a paraphraser")
        changed = dict(settings) if n is None else {**settings, "n": n}
        config = replace(self.config, **changed)
        return [result.paraphrases for result in self.paraphrase(list(sentences), config)]

    def paraphrase(
        self, sentences: Sequence[str | None], config: ParaphraseConfig | None = None, *, draw: int = 0
    ) -> list[Paraphrased]:
        """Generate paraphrases, and say of each sentence what became of it.

        Args:
            sentences: Sentences; None stands for text that cannot be read.
            config: How to search.
            draw: Another number, another draw of `sample`.

        Returns:
            Results in the order of `sentences`.
        """
        config = config or self.config
        if config.min_score is not None and self._scorer is None:
            raise InputError("min_score needs a scorer, and this paraphraser was made without one")
        texts = [None if sentence is None else " ".join(sentence.split()) for sentence in sentences]
        distinct = [text for text in dict.fromkeys(texts) if text]
        pieces = self._own.cut(distinct) if distinct else []
        notes: dict[str | None, str] = {None: NOT_TEXT, "": EMPTY}
        limit = f"over {config.max_length} pieces"
        notes |= {text: limit for text, ids in zip(distinct, pieces, strict=True) if len(ids) > config.max_length}
        kept = [(text, ids) for text, ids in zip(distinct, pieces, strict=True) if len(ids) <= config.max_length]
        candidates = self._search([ids for _, ids in kept], config, draw)
        found = self._judged([text for text, _ in kept], candidates, config)
        return [found[text] if text in found else Paraphrased([], notes[text]) for text in texts]

    def _search(self, sources: list[list[int]], config: ParaphraseConfig, draw: int) -> list[list[list[int]]]:
        """Candidates of each sentence, batch by batch."""
        lengths = np.array([len(ids) for ids in sources], np.int64)
        results: list[list[list[int]]] = [[] for _ in sources]
        budget = config.batch_tokens or (800 if self.device == "cpu" else 8192)
        with torch.random.fork_rng(enabled=config.sample):
            if config.sample:
                torch.manual_seed(int(np.random.SeedSequence([config.seed, draw]).generate_state(1)[0]))
            for batch in token_batches(lengths, budget):
                for part, targets in self._guard.run(
                    batch, lengths, lambda rows: search(self._own, [sources[row] for row in rows], config)
                ):
                    for row, own in zip(part, targets, strict=True):
                        results[row] = own
        return results

    def _judged(
        self, texts: list[str], candidates: list[list[list[int]]], config: ParaphraseConfig
    ) -> dict[str | None, Paraphrased]:
        """Keep the first `n` different candidates of each sentence that reach the score."""
        joined = self._own.join([ids for own in candidates for ids in own])
        ends = np.cumsum([0, *map(len, candidates)])
        choices = [list(filter(None, dict.fromkeys(joined[a:b]))) for a, b in zip(ends, ends[1:], strict=False)]
        if config.min_score is None:
            choices = [own[: config.n] for own in choices]
        scores = iter(self._scores(texts, choices))
        results: dict[str | None, Paraphrased] = {}
        for text, own in zip(texts, choices, strict=True):
            scored = [Paraphrase(choice, next(scores)) for choice in own]
            least = config.min_score
            good = [each for each in scored if least is None or (each.score is not None and each.score >= least)]
            note = None if good else (NONE_LEFT if scored else NONE_FOUND)
            results[text] = Paraphrased(good[: config.n], note)
        return results

    def _scores(self, texts: list[str], choices: list[list[str]]) -> list[float | None]:
        """Paraphrase score of every choice of every sentence, one after the other."""
        flat = [choice for own in choices for choice in own]
        if self._scorer is None or not flat:
            return [None] * len(flat)
        first, second = (_unit(self._scorer.encode(side)) for side in (texts, flat))
        rows = np.repeat(np.arange(len(texts)), [len(own) for own in choices])
        return [float(score) for score in np.clip((first[rows] * second).sum(axis=1), -1, 1)]


def _unit(vectors: np.ndarray) -> np.ndarray:
    """Bring vectors [sentence, dimension] to length 1; one of zeros stays."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.where(lengths > 0, lengths, 1)


def resolve_device(device: str | None) -> str:
    """Name the device to use.

    Raises:
        InputError: A GPU is asked for and there is none.
    """
    index = int((device or "").partition(":")[2] or 0)
    if (device or "").startswith("cuda") and index >= torch.cuda.device_count():
        raise InputError(f"device {device!r} is not there: torch sees {torch.cuda.device_count()} GPUs; use cpu")
    return device or ("cuda" if torch.cuda.is_available() else "cpu")


def resolve_dtype(config: ParaphraseConfig, device: str) -> torch.dtype:
    """The numbers to use."""
    name = config.dtype if config.dtype != "auto" else ("float32" if device == "cpu" else "float16")
    found: torch.dtype = getattr(torch, name)
    return found


def load_paraphraser(model: str | Path, *, revision: str | None = None, **settings: Any) -> Paraphraser:  # noqa: ANN401
    """Load a paraphraser.

    Args:
        model: Folder or Hub id.
        revision: Branch, tag or commit on the Hub.
        settings: Fields of `ParaphraseConfig`.

    Raises:
        InputError: There is no such model, or it is of another kind or damaged.
    """
    return Paraphraser(model, ParaphraseConfig(**settings), revision=revision)
