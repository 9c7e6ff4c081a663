"""Generate paraphrases of sentences; with a syntactically controlled network, paraphrases of a requested syntax."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any, Self

import numpy as np

from paranmt_hf.corpus.parsing.parsers import Parser, linearised_trees, open_parser
from paranmt_hf.corpus.parsing.tree_file import TreeFile
from paranmt_hf.corpus.translation.batches import MemoryGuard, token_batches
from paranmt_hf.corpus.translation.translator import default_batch_tokens, resolve_device
from paranmt_hf.encoders.named_encoder import NamedEncoder
from paranmt_hf.errors import InputError
from paranmt_hf.hub.push import PushedFromFolder
from paranmt_hf.hub.repository import SMALL, Model, locate
from paranmt_hf.paraphrase.candidates import (
    Candidates,
    Paraphrase,
    Paraphrased,
    Request,
    apart,
    by_score,
    select_candidates,
)
from paranmt_hf.paraphrase.config import ParaphraseConfig
from paranmt_hf.paraphrase.models import EncoderDecoder, read_models, torch_dtype
from paranmt_hf.paraphrase.templates import (
    check_control,
    choose_templates,
    is_controlled,
    warn_of_other_trees,
)
from paranmt_hf.text.protocols import Encoder
from paranmt_hf.text.text_lists import list_of_texts, with_whole_characters


class Paraphraser(PushedFromFolder):
    """A generator of paraphrases: an encoder-decoder, or a syntactically controlled network.

    A controlled network works in two steps. For each sentence and template, the parse generator generates the most
    probable trees. Then the paraphrase generator generates paraphrases after these trees. Of those that have the
    template, the first `n` are kept. The paraphrases of all templates of a sentence are sorted by paraphrase score.

    Args:
        model: Folder or Hub id of a model of `paranmt paraphrase train`, or of another encoder-decoder.
        config: Settings of the search, unless a call overrides them.
        scorer: Encoder of the paraphrase score, by folder, Hub id, file of word vectors or as an object; by default
            the small encoder of this package. With None, paraphrases have no score.
        revision: Branch, tag or commit on the Hub.
        syntax: Parser that gives the trees of sentences, for a controlled network only. The parser whose trees the
            network was trained on works best.
        templates: Templates of paraphrases, or the number of most frequent ones, unless a call overrides them; for a
            controlled network only.
    """

    def __init__(
        self,
        model: str | Path | Model,
        config: ParaphraseConfig | None = None,
        *,
        scorer: Encoder | str | Path | None = SMALL,
        revision: str | None = None,
        syntax: Parser | None = None,
        templates: Sequence[str] | int = 1,
    ) -> None:
        self.config = config or ParaphraseConfig()
        self.files: Model = locate(model, revision)
        check_control(self.files, templates=syntax is not None)
        self.device = resolve_device(self.config.device)
        self._models, self._syntax = read_models(self.files, torch_dtype(self.config, self.device)), syntax
        for network in self._models.all:
            network.model.to(self.device)
        self._generator = self._models.paraphrases
        self.templates: list[str] = [] if syntax is None else self._choose(templates)
        self._scorer = NamedEncoder.of(scorer).load() if isinstance(scorer, str | Path) else scorer
        self._guard = MemoryGuard("lower beams, n or max_length, or take a smaller dtype or model")

    @classmethod
    def from_pretrained(
        cls,
        model: str | Path,
        *,
        revision: str | None = None,
        parser: str | Path | Parser = "link-grammar",
        scorer: Encoder | str | Path | None = SMALL,
        **settings: Any,  # noqa: ANN401
    ) -> Self:
        """Load a paraphraser.

        Args:
            model: Folder or Hub id of an encoder-decoder.
            revision: Branch, tag or commit on the Hub.
            parser: Source of the trees of sentences, for a syntactically controlled network only: `link-grammar`,
                `stanza`, a file of trees or a parser object. The parser whose trees the network was trained on works
                best.
            scorer: Encoder of the paraphrase score; with None, paraphrases have no score.
            settings: Fields of `ParaphraseConfig`.
        """
        files, config = locate(model, revision), ParaphraseConfig(**settings)
        if not is_controlled(files):
            return cls(files, config, scorer=scorer)
        opened = open_parser(parser)
        warn_of_other_trees(files, opened.name)
        return cls(files, config, scorer=scorer, syntax=opened)

    def save_pretrained(self, folder: str | Path) -> None:
        """Write the models with their tokenizers and templates into a folder that `from_pretrained` reads."""
        self._models.save(Path(folder).expanduser())

    def __call__(
        self,
        sentences: Iterable[str],
        n: int | None = None,
        *,
        templates: Sequence[str] | int | None = None,
        **settings: Any,  # noqa: ANN401
    ) -> list[list[Paraphrase]]:
        """Generate paraphrases of sentences.

        Args:
            sentences: Sentences; white space is normalised.
            n: Maximum number of paraphrases of each sentence, and with templates of each sentence and template.
            templates: Templates such as `(S(NP)(VP))`, or the number of most frequent ones, for a controlled network
                only; those of the paraphraser if left out.
            settings: Fields of `ParaphraseConfig`, for this call.

        Returns:
            Paraphrases of each sentence, all different. There may be fewer than `n` if limits such as `min_score`
            leave fewer, and there are none for a sentence that is blank, too long or without a tree.
        """
        texts = list_of_texts(sentences, "sentences")
        if fixed := {"device", "dtype"} & set(settings):
            raise InputError(f"{', '.join(sorted(fixed))} is fixed when the model is loaded; give it to Paraphraser")
        config = replace(self.config, **(settings if n is None else {**settings, "n": n}))
        chosen = None if templates is None else self._choose(templates)
        return [result.paraphrases for result in self.paraphrase(texts, config, templates=chosen)]

    def _choose(self, templates: Sequence[str] | int) -> list[str]:
        """Return the templates that a user asks for; raises `InputError` if this network does not know them."""
        check_control(self.files, templates=True)
        assert self._models.templates is not None
        return choose_templates(self._models.templates, templates)

    def paraphrase(
        self,
        sentences: Sequence[str | None],
        config: ParaphraseConfig | None = None,
        *,
        templates: Sequence[str] | None = None,
    ) -> list[Paraphrased]:
        """Generate paraphrases of sentences, with a note for each sentence without a paraphrase.

        The result of a sentence does not depend on the other sentences.

        Args:
            sentences: Sentences; None for one that cannot be read because it is not UTF-8.
            config: Settings of the search; those of the paraphraser if None.
            templates: Templates that the network knows, for a controlled network only; those of the paraphraser if
                None.
        """
        config = self._resolved(config or self.config)
        texts = [None if each is None else " ".join(with_whole_characters([each])[0].split()) for each in sentences]
        distinct = [text for text in dict.fromkeys(texts) if text]
        results: dict[str | None, Paraphrased] = {
            None: Paraphrased([], "not UTF-8"),
            "": Paraphrased([], "empty line"),
        }
        ids = dict(zip(distinct, self._generator.cut(distinct), strict=True))
        for text in distinct:
            if len(ids[text]) > config.max_length:
                results[text] = Paraphrased([], f"over {config.max_length} pieces")
                del ids[text]
        if self._syntax is None:
            candidates = self._search(self._generator, list(ids.values()), config)
            found = self._select([Request(text) for text in ids], candidates, config)
            results.update(zip(ids, found, strict=True))
        else:
            results.update(self._with_templates(ids, self.templates if templates is None else templates, config))
        return [results[text] for text in texts]

    def _resolved(self, config: ParaphraseConfig) -> ParaphraseConfig:
        """Fill in settings that depend on the model; raises `InputError` for settings that the model cannot follow."""
        if (positions := self._generator.positions) is not None:
            config = replace(config, max_length=min(config.max_length, positions))
        parses = self._syntax is not None and not isinstance(self._syntax, TreeFile)
        if config.has_template is None:
            config = replace(config, has_template=parses)
        if config.has_template and not parses:
            raise InputError(
                "`has_template` needs a controlled network and a parser of new sentences, such as link-grammar, not a "
                "file of trees; leave it out, or name such a parser",
                option="has_template",
            )
        if config.scored_for and self._scorer is None:
            raise InputError(f"{config.scored_for} needs a scorer, and this paraphraser has none", option="scorer")
        return config

    def _with_templates(
        self, ids: dict[str, list[int]], templates: Sequence[str], config: ParaphraseConfig
    ) -> dict[str, Paraphrased]:
        """Paraphrase sentences after each template, for a controlled network.

        Args:
            ids: Ids of the pieces of each sentence, by sentence.
            templates: The templates.
            config: Settings of the search.

        Returns:
            Paraphrases of each sentence, by sentence; those of all templates together, the highest score first.
        """
        results, trees = self._read_trees(list(ids))
        requests = [Request(text, template) for text in trees for template in templates]
        found = iter(self._select(requests, self._search_after_trees(requests, ids, trees, config), config))
        for text in trees:
            of_sentence = [next(found) for _ in templates]
            paraphrases = sorted(chain.from_iterable(result.paraphrases for result in of_sentence), key=by_score)
            paraphrases = apart(paraphrases, config.max_mutual_overlap)
            results[text] = Paraphrased(paraphrases, None if paraphrases else of_sentence[0].note)
        return results

    def _read_trees(self, sentences: list[str]) -> tuple[dict[str, Paraphrased], dict[str, list[int]]]:
        """Parse sentences.

        Returns:
            The results, without paraphrases, of sentences without a tree or with a long one; and the ids of the tokens
            of the trees of all other sentences. Both are by sentence.
        """
        assert self._syntax is not None and self._models.parses is not None
        found = dict(zip(sentences, linearised_trees(self._syntax, sentences), strict=True))
        results = {sentence: Paraphrased([], "no tree") for sentence in sentences if found[sentence] is None}
        parsed = {sentence: tree for sentence, tree in found.items() if tree is not None}
        trees: dict[str, list[int]] = {}
        longest = self._models.longest_tree
        cut = self._models.parses.cut(list(parsed.values()))
        for sentence, ids in zip(parsed, cut, strict=True):
            if len(ids) > longest:
                results[sentence] = Paraphrased([], f"tree over {longest} tokens")
            else:
                trees[sentence] = ids
        return results, trees

    def _search_after_trees(
        self,
        requests: Sequence[Request],
        ids: dict[str, list[int]],
        trees: dict[str, list[int]],
        config: ParaphraseConfig,
    ) -> list[list[list[int]]]:
        """Generate trees for requests, and candidates after the most probable trees of each.

        Args:
            requests: Sentences with templates.
            ids: Ids of the pieces of each sentence, by sentence.
            trees: Ids of the tokens of the tree of each sentence, by sentence.
            config: Settings of the search.

        Returns:
            Ids of the candidates of each request [request][candidate][piece]: first the most probable candidate after
            each tree, then the second one after each tree, and so on.
        """
        parses = self._models.parses
        assert parses is not None
        if not requests:
            return []
        # With `has_template`, candidates of another template are left out later, so several trees are tried.
        count = config.trees if config.has_template else 1
        settings = ParaphraseConfig(
            beams=max(config.beams, count), max_length=self._models.longest_tree, batch_tokens=config.batch_tokens
        )
        templates = parses.cut_controls([str(each.template) for each in requests])
        generated = self._search(parses, [trees[each.sentence] for each in requests], settings, templates)
        sources, controls = [], []
        for each, generated_trees in zip(requests, generated, strict=True):
            sources += [ids[each.sentence]] * count
            controls += [[*tree, parses.ends[0]] for tree in generated_trees[:count]]
        found = iter(self._search(self._generator, sources, config, controls))
        candidates = []
        for _ in requests:
            ranks = zip(*(next(found) for _ in range(count)), strict=True)
            candidates.append(list(chain.from_iterable(ranks)))
        return candidates

    def _search(
        self,
        network: EncoderDecoder,
        sources: list[list[int]],
        config: ParaphraseConfig,
        controls: list[list[int]] | None = None,
    ) -> list[list[list[int]]]:
        """Search for candidates of each source, batch by batch.

        Args:
            network: The model that generates them.
            sources: Ids of each source [source][piece].
            config: Settings of the search.
            controls: Ids of the control of each source [source][token]; None for a model without control.

        Returns:
            Ids of the candidates of each source [source][candidate][piece], the most probable first.
        """

        def searched(rows: np.ndarray) -> list[list[list[int]]]:
            wanted = [controls[row] for row in rows] if controls is not None else None
            return network.search([sources[row] for row in rows], config, wanted)

        lengths = np.array(list(map(len, sources)), np.int64)
        if controls is not None:
            lengths = np.maximum(lengths, np.array(list(map(len, controls)), np.int64))
        results: list[list[list[int]]] = [[] for _ in sources]
        for batch in token_batches(lengths, config.batch_tokens or default_batch_tokens(self.device)):
            for part, targets in self._guard.run(batch, lengths, searched):
                for row, found in zip(part, targets, strict=True):
                    results[row] = found
        return results

    def _select(
        self, requests: Sequence[Request], found: list[list[list[int]]], config: ParaphraseConfig
    ) -> list[Paraphrased]:
        """Select the paraphrases of each request from the ids of its candidates [request][candidate][piece]."""
        texts = self._generator.join(list(chain.from_iterable(found)))
        candidates = Candidates(requests, texts, list(map(len, found)))
        return select_candidates(candidates, config, scorer=self._scorer, parser=self._syntax)
