"""Paraphrases of sentences that have the syntax asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from paranmt_hf.encoders.scorer import ScorerConfig
from paranmt_hf.errors import InputError
from paranmt_hf.hub.repository import Model
from paranmt_hf.paraphrase.config import ParaphraseConfig
from paranmt_hf.paraphrase.loading import EncoderDecoder
from paranmt_hf.paraphrase.overlaps import apart
from paranmt_hf.paraphrase.paraphraser import Paraphrase, Paraphrased, Paraphraser, by_score
from paranmt_hf.paraphrase.syntax.loading import read_network
from paranmt_hf.text.protocols import Encoder, Syntax

NO_TREE = "no tree"
# What a call that names none gets.
DEFAULT_TEMPLATES = 1


class ControlledParaphraser(Paraphraser):
    """Generates paraphrases with a syntactically controlled network.

    Of each sentence and template the parse generator gives the most probable tree, and after it the paraphrase
    generator the `n` most probable paraphrases. The paraphrase score brings those of all templates in order, so that
    the first one is the best of them.

    Args:
        model: Folder or Hub id of what `paranmt train-controlled` made.
        config: How it searches, unless a call says otherwise; `n` is the number of paraphrases for each template.
        syntax: Gives the trees of sentences; by the parser whose trees the network was trained on.
        templates: Which templates, unless a call says otherwise; or how many of the most frequent ones.
        scorer: Gives the paraphrase score; by default the small encoder of this package. None: there is no score.
        revision: Branch, tag or commit on the Hub.

    Raises:
        InputError: There is no such model, it is of another kind or damaged, a template was never seen.
    """

    def __init__(
        self,
        model: str | Path | Model,
        config: ParaphraseConfig | None = None,
        *,
        syntax: Syntax,
        templates: Sequence[str] | int = DEFAULT_TEMPLATES,
        scorer: Encoder | ScorerConfig | None = ScorerConfig(),  # noqa: B008 - settings do not change
        revision: str | None = None,
    ) -> None:
        super().__init__(model, config, scorer=scorer, revision=revision)
        self._syntax = syntax
        self.templates = self._chosen(templates)

    def _read(self, dtype: torch.dtype) -> EncoderDecoder:
        network = read_network(self.files, dtype)
        for own in (network.parses, network.paraphrases):
            own.model.to(self.device)
        self._parses, self.known_templates = network.parses, network.templates
        return network.paraphrases

    def _chosen(self, templates: Sequence[str] | int) -> list[str]:
        if isinstance(templates, str):
            raise InputError("expected a list of templates, got a single one; put it into a list")
        return self.known_templates.chosen(templates, self._syntax.template)

    def __call__(
        self,
        sentences: Sequence[str],
        n: int | None = None,
        *,
        templates: Sequence[str] | int | None = None,
        **settings: Any,  # noqa: ANN401
    ) -> list[list[Paraphrase]]:
        """Generate paraphrases.

        Args:
            sentences: Sentences; white space is normalised.
            n: Paraphrases for each template.
            templates: Templates such as `(S(NP)(VP))`, or how many of the most frequent ones.
            settings: Fields of `ParaphraseConfig`, for this call.

        Returns:
            Paraphrases of each sentence, the highest paraphrase score first; none for a sentence that is blank, too
            long or without a tree.

        Raises:
            InputError: A template cannot be read or was never seen, or a setting is out of range.
        """
        config = self._called(sentences, n, settings)
        chosen = None if templates is None else self._chosen(templates)
        return [result.paraphrases for result in self.paraphrase(list(sentences), config, templates=chosen)]

    def paraphrase(
        self,
        sentences: Sequence[str | None],
        config: ParaphraseConfig | None = None,
        *,
        draw: int = 0,
        templates: Sequence[str] | None = None,
    ) -> list[Paraphrased]:
        """Generate paraphrases, and say of each sentence what became of it.

        Args:
            sentences: Sentences; None stands for text that cannot be read.
            config: How to search.
            draw: Another number, another draw of `sample`.
            templates: Templates as the network knows them.

        Returns:
            Results in the order of `sentences`, of each the highest paraphrase score first.
        """
        config, templates = config or self.config, self.templates if templates is None else templates
        texts, kept, notes = self._prepared(sentences, config)
        sources = dict(kept)
        trees, without = self._trees(list(sources))
        notes |= without
        items = [(text, template) for text in trees for template in templates]
        wanted = self._generated_trees([trees[text] for text, _ in items], [template for _, template in items], config)
        candidates = self._search(self._own, [sources[text] for text, _ in items], config, draw, wanted)
        found = self._best(list(trees), templates, candidates, config)
        return [found[text] if text in found else Paraphrased([], notes[text]) for text in texts]

    def _trees(self, sentences: list[str]) -> tuple[dict[str, list[int]], dict[str | None, str]]:
        """Ids of the trees of sentences; and notes on those that have none, or a long one."""
        found = self._syntax.trees(sentences) if sentences else []
        texts = [text for text, tree in zip(sentences, found, strict=True) if tree is not None]
        notes: dict[str | None, str] = dict.fromkeys(set(sentences) - set(texts), NO_TREE)
        ids = self._parses.cut([tree for tree in found if tree is not None]) if texts else []
        limit = self._longest_tree
        notes |= {text: f"tree over {limit} tokens" for text, own in zip(texts, ids, strict=True) if len(own) > limit}
        return {text: own for text, own in zip(texts, ids, strict=True) if len(own) <= limit}, notes

    @property
    def _longest_tree(self) -> int:
        """Most tokens of a tree, end included."""
        return int(self._parses.model.generation_config.max_length)

    def _generated_trees(
        self, trees: list[list[int]], templates: list[str], config: ParaphraseConfig
    ) -> list[list[int]]:
        """Ids of the most probable tree for each tree of a sentence and template, end included."""
        settings = ParaphraseConfig(
            beams=config.beams, max_length=self._longest_tree, batch_tokens=config.batch_tokens, device=config.device
        )
        controls = self._parses.cut_controls(templates) if templates else []
        found = self._search(self._parses, trees, settings, 0, controls)
        return [[*candidates[0], self._parses.ends[0]] for candidates in found]

    def _best(
        self,
        texts: list[str],
        templates: Sequence[str],
        candidates: list[list[list[int]]],
        config: ParaphraseConfig,
    ) -> dict[str | None, Paraphrased]:
        """Keep the `n` most probable of each template, and put those of a sentence in order, the best score first."""
        good: dict[str | None, list[Paraphrase]] = {text: [] for text in texts}
        notes: dict[str | None, str | None] = {}
        for position, template in enumerate(templates):
            judged = self._judged(texts, candidates[position :: len(templates)], config)
            for text, result in judged.items():
                good[text] += [replace(each, template=template) for each in result.paraphrases]
                notes.setdefault(text, result.note)
        ordered = {text: sorted(own, key=by_score) for text, own in good.items()}
        if config.max_mutual_overlap is not None:
            kept = apart([[each.text for each in own] for own in ordered.values()], config.max_mutual_overlap)
            ordered = {
                text: [own[position] for position in positions]
                for (text, own), positions in zip(ordered.items(), kept, strict=True)
            }
        return {text: Paraphrased(own, None if own else notes.get(text)) for text, own in ordered.items()}
