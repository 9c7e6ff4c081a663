"""Generate paraphrases of sentences; with a syntactically controlled network, of the requested syntax."""

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
    select,
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
    """Generates paraphrases with an encoder-decoder, or with a syntactically controlled network.

    With a controlled network, the parse generator gives the most probable trees for each sentence and template, and
    after them the paraphrase generator paraphrases, of which the first `n` that have the template are kept. Those of
    all templates are sorted by their paraphrase score.

    Args:
        model: Folder or Hub id, of a model of `paranmt paraphrase train` or another encoder-decoder.
        config: How it searches, unless a call overrides it.
        scorer: Gives the paraphrase score: an encoder, or folder, Hub id or file of word vectors; by default the small
            encoder of this package. None: no score.
        revision: Branch, tag or commit on the Hub.
        syntax: For a controlled network: gives the trees of sentences, best by the parser whose trees it was trained
            on.
        templates: For a controlled network: which templates, unless a call overrides it; or how many of the most
            frequent ones.
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
        for own in self._models.all:
            own.model.to(self.device)
        self._own = self._models.paraphrases
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
            model: Folder or Hub id.
            revision: Branch, tag or commit on the Hub.
            parser: For a syntactically controlled network, the source of the trees of sentences: `link-grammar`,
                `stanza`, a file of trees or a parser object; best the one whose trees it was trained on.
            scorer: Gives the paraphrase score; None: no score.
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
        """Generate paraphrases.

        Args:
            sentences: Sentences; white space is normalised.
            n: Paraphrases of each, with templates for each template.
            templates: For a controlled network: templates such as `(S(NP)(VP))`, or the number of most frequent ones.
            settings: Fields of `ParaphraseConfig`, for this call.

        Returns:
            Paraphrases of each sentence, at most `n` different ones (for each template); none for a sentence that is
            blank, too long, not text or without a tree, and fewer if fewer are found or reach `min_score`.
        """
        texts = list_of_texts(sentences, "sentences")
        if fixed := {"device", "dtype"} & set(settings):
            raise InputError(f"{', '.join(sorted(fixed))} is fixed when the model is loaded; give it to Paraphraser")
        config = replace(self.config, **(settings if n is None else {**settings, "n": n}))
        chosen = None if templates is None else self._choose(templates)
        return [result.paraphrases for result in self.paraphrase(texts, config, templates=chosen)]

    def _choose(self, templates: Sequence[str] | int) -> list[str]:
        """Find templates of this network."""
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
        """Generate paraphrases, with a note for each sentence that has none; a sentence is None if it cannot be read.

        Templates are those that the network knows. Results do not depend on the other sentences.
        """
        config = self._resolved(config or self.config)
        texts = [None if each is None else " ".join(with_whole_characters([each])[0].split()) for each in sentences]
        distinct = [text for text in dict.fromkeys(texts) if text]
        results: dict[str | None, Paraphrased] = {
            None: Paraphrased([], "not UTF-8"),
            "": Paraphrased([], "empty line"),
        }
        ids = dict(zip(distinct, self._own.cut(distinct), strict=True))
        for text in distinct:
            if len(ids[text]) > config.max_length:
                results[text] = Paraphrased([], f"over {config.max_length} pieces")
                del ids[text]
        if self._syntax is None:
            candidates = self._search(self._own, list(ids.values()), config)
            found = self._select([Request(text) for text in ids], candidates, config)
            results.update(zip(ids, found, strict=True))
        else:
            results.update(self._with_templates(ids, self.templates if templates is None else templates, config))
        return [results[text] for text in texts]

    def _resolved(self, config: ParaphraseConfig) -> ParaphraseConfig:
        """Fill in what depends on the model, and reject what it cannot do."""
        if (positions := self._own.positions) is not None:
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
        """Paraphrase sentences, given their ids, after each template; those of the highest score come first."""
        results, trees = self._read_trees(list(ids))
        requests = [Request(text, template) for text in trees for template in templates]
        found = iter(self._select(requests, self._search_after_trees(requests, ids, trees, config), config))
        for text in trees:
            own = [next(found) for _ in templates]
            paraphrases = sorted(chain.from_iterable(result.paraphrases for result in own), key=by_score)
            paraphrases = apart(paraphrases, config.max_mutual_overlap)
            results[text] = Paraphrased(paraphrases, None if paraphrases else own[0].note)
        return results

    def _read_trees(self, sentences: list[str]) -> tuple[dict[str, Paraphrased], dict[str, list[int]]]:
        """Results of the sentences without a tree or with a long one, and the ids of the trees of the others."""
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
        """Candidates of each request after its most probable trees: the most probable ones of all trees first.

        `ids` are those of the sentences, `trees` those of their trees, with the end.
        """
        parses = self._models.parses
        assert parses is not None
        if not requests:
            return []
        # What has another template is left out later, so there may be more trees than one.
        count = config.trees if config.has_template else 1
        settings = ParaphraseConfig(
            beams=max(config.beams, count), max_length=self._models.longest_tree, batch_tokens=config.batch_tokens
        )
        templates = parses.cut_controls([str(each.template) for each in requests])
        generated = self._search(parses, [trees[each.sentence] for each in requests], settings, templates)
        sources, controls = [], []
        for each, own in zip(requests, generated, strict=True):
            sources += [ids[each.sentence]] * count
            controls += [[*tree, parses.ends[0]] for tree in own[:count]]
        found = iter(self._search(self._own, sources, config, controls))
        candidates = []
        for _ in requests:
            ranks = zip(*(next(found) for _ in range(count)), strict=True)
            candidates.append(list(chain.from_iterable(ranks)))
        return candidates

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
        """Select among the ids of the candidates of each request."""
        texts = self._own.join(list(chain.from_iterable(found)))
        candidates = Candidates(requests, texts, list(map(len, found)))
        return select(candidates, config, scorer=self._scorer, parser=self._syntax)
