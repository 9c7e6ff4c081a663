"""Generate paraphrases that have the syntax asked for; load a paraphraser of either kind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from paranmt_hf.corpus.parsing.parsers import Parser, SentenceTrees, open_parser
from paranmt_hf.corpus.parsing.tree_file import IndexedFile, TreeFile
from paranmt_hf.errors import InputError
from paranmt_hf.hub.repository import EMBEDDED, Model, locate
from paranmt_hf.paraphrase.config import ParaphraseConfig
from paranmt_hf.paraphrase.loading import EncoderDecoder, read_network
from paranmt_hf.paraphrase.paraphraser import Paraphrase, Paraphrased, Paraphraser, apart, by_score, check_names
from paranmt_hf.paraphrase.templates import DEFAULT_PARSER, is_controlled, warn_of_other_trees
from paranmt_hf.text.protocols import Encoder, Syntax

NO_TREE = "no tree"


def load_paraphraser(
    model: str | Path,
    *,
    revision: str | None = None,
    parser: str | Path | Parser = DEFAULT_PARSER,
    **settings: Any,  # noqa: ANN401
) -> Paraphraser:
    """Load a paraphraser.

    Args:
        model: Folder or Hub id.
        revision: Branch, tag or commit on the Hub.
        parser: Of a syntactically controlled network: what gives the trees of sentences, `link-grammar`, `stanza`, a
            file of trees or a parser object; best the one whose trees it was trained on.
        settings: Fields of `ParaphraseConfig`.

    Returns:
        A `Paraphraser`; of a syntactically controlled network a `ControlledParaphraser`, which takes `templates` too.
    """
    check_names(settings)
    files, config = locate(model, revision), ParaphraseConfig(**settings)
    if not is_controlled(files):
        return Paraphraser(files, config)
    opened = open_parser(parser)
    warn_of_other_trees(files, opened.name)
    # Each call has other sentences, for which the file would be read again.
    trees = SentenceTrees(IndexedFile(opened) if isinstance(opened, TreeFile) else opened)
    return ControlledParaphraser(files, config, syntax=trees)


class ControlledParaphraser(Paraphraser):
    """Generates paraphrases with a syntactically controlled network.

    For each sentence and template the parse generator gives the most probable tree, and from it the paraphrase
    generator the `n` most probable paraphrases. Those of all templates are sorted by their paraphrase score.

    Args:
        model: Folder or Hub id of a network of `paranmt paraphrase train --model controlled`.
        config: How it searches, unless a call overrides it; `n` is the number of paraphrases for each template.
        syntax: Gives the trees of sentences, best by the parser whose trees the network was trained on.
        templates: Which templates, unless a call overrides it; or how many of the most frequent ones.
        scorer: Gives the paraphrase score: an encoder, or folder, Hub id or file of word vectors; by default the small
            encoder of this package. None: no score.
        revision: Branch, tag or commit on the Hub.
    """

    def __init__(
        self,
        model: str | Path | Model,
        config: ParaphraseConfig | None = None,
        *,
        syntax: Syntax,
        templates: Sequence[str] | int = 1,
        scorer: Encoder | str | Path | None = EMBEDDED,
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
        """
        config = self._called(sentences, n, settings)
        chosen = None if templates is None else self._chosen(templates)
        return [result.paraphrases for result in self.paraphrase(list(sentences), config, templates=chosen)]

    def paraphrase(
        self,
        sentences: Sequence[str | None],
        config: ParaphraseConfig | None = None,
        *,
        templates: Sequence[str] | None = None,
    ) -> list[Paraphrased]:
        """Generate paraphrases, with a note for each sentence that has none.

        Args:
            sentences: Sentences; None for text that cannot be read.
            config: How to search.
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
        candidates = self._search(self._own, [sources[text] for text, _ in items], config, wanted)
        found = self._best(list(trees), templates, candidates, config)
        return [found[text] if text in found else Paraphrased([], notes[text]) for text in texts]

    def _trees(self, sentences: list[str]) -> tuple[dict[str, list[int]], dict[str | None, str]]:
        """Ids of the trees of sentences; and notes for those that have none, or a long one."""
        found = self._syntax.trees(sentences) if sentences else []
        texts = [text for text, tree in zip(sentences, found, strict=True) if tree is not None]
        notes: dict[str | None, str] = dict.fromkeys(set(sentences) - set(texts), NO_TREE)
        ids = self._parses.cut([tree for tree in found if tree is not None]) if texts else []
        limit = self._longest_tree
        notes |= {text: f"tree over {limit} tokens" for text, own in zip(texts, ids, strict=True) if len(own) > limit}
        return {text: own for text, own in zip(texts, ids, strict=True) if len(own) <= limit}, notes

    @property
    def _longest_tree(self) -> int:
        """Maximum number of tokens of a tree, the end included."""
        return int(self._parses.model.generation_config.max_length)

    def _generated_trees(
        self, trees: list[list[int]], templates: list[str], config: ParaphraseConfig
    ) -> list[list[int]]:
        """Ids of the most probable tree for each tree of a sentence and template, the end included."""
        settings = ParaphraseConfig(
            beams=config.beams, max_length=self._longest_tree, batch_tokens=config.batch_tokens, device=config.device
        )
        controls = self._parses.cut_controls(templates) if templates else []
        found = self._search(self._parses, trees, settings, controls)
        return [[*candidates[0], self._parses.ends[0]] for candidates in found]

    def _best(
        self,
        texts: list[str],
        templates: Sequence[str],
        candidates: list[list[list[int]]],
        config: ParaphraseConfig,
    ) -> dict[str | None, Paraphrased]:
        """Keep the `n` most probable of each template, and sort those of a sentence, the highest score first."""
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
