"""Generate paraphrases of sentences; with a syntactically controlled network, of the requested syntax."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa

from paranmt_hf.corpus.parsing.parsers import Parser, linearised_trees, open_parser
from paranmt_hf.corpus.parsing.tree_file import TreeFile
from paranmt_hf.corpus.scoring.scores import cosines
from paranmt_hf.corpus.translation.transformers import MemoryGuard, token_batches
from paranmt_hf.corpus.translation.translator import default_batch_tokens, resolve_device
from paranmt_hf.encoders.named_encoder import NamedEncoder
from paranmt_hf.errors import InputError
from paranmt_hf.hub.push import PushedFromFolder
from paranmt_hf.hub.repository import SMALL, Model, locate
from paranmt_hf.paraphrase.config import ParaphraseConfig
from paranmt_hf.paraphrase.loading import EncoderDecoder, read_models, torch_dtype
from paranmt_hf.paraphrase.templates import (
    DEFAULT_PARSER,
    check_control,
    having_template,
    is_controlled,
    warn_of_other_trees,
)
from paranmt_hf.text.definitions import words
from paranmt_hf.text.overlap import trigram_overlap
from paranmt_hf.text.protocols import Encoder
from paranmt_hf.text.text_lists import list_of_texts, with_whole_characters
from paranmt_hf.text.tokens import WordTokenizer
from paranmt_hf.text.word_rules import letters

EMPTY, NOT_TEXT, NO_TREE = "empty line", "not UTF-8", "no tree"
NONE_LEFT, NONE_FOUND = "no paraphrase above the score", "nothing generated"
WITHOUT_TEMPLATE = "no paraphrase with the template"
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
        self.templates: list[str] = [] if syntax is None else self._chosen(templates)
        self._scorer = NamedEncoder.of(scorer).load() if isinstance(scorer, str | Path) else scorer
        self._guard = MemoryGuard("lower beams, n or max_length, or take a smaller dtype or model")

    @classmethod
    def from_pretrained(
        cls,
        model: str | Path,
        *,
        revision: str | None = None,
        parser: str | Path | Parser = DEFAULT_PARSER,
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

    def _chosen(self, templates: Sequence[str] | int) -> list[str]:
        if self._syntax is None or self._models.templates is None:
            raise InputError(f"{self.files.folder} is not syntactically controlled, so it has no templates")
        if isinstance(templates, str):
            raise InputError("expected a list of templates, got a single one; put it into a list")
        return self._models.templates.chosen(templates)

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
        chosen = None if templates is None else self._chosen(templates)
        return [result.paraphrases for result in self.paraphrase(texts, config, templates=chosen)]

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
        config = config or self.config
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
            raise InputError(f"{config.scored_for} needs a scorer, and this paraphraser has none")
        whole = [None if sentence is None else with_whole_characters([sentence])[0] for sentence in sentences]
        texts = [None if text is None else " ".join(text.split()) for text in whole]
        distinct = [text for text in dict.fromkeys(texts) if text]
        notes: dict[str | None, str] = {None: NOT_TEXT, "": EMPTY}
        sources = _within(distinct, self._own.cut(distinct) if distinct else [], config.max_length, "pieces", notes)
        if self._syntax is None:
            candidates = self._search(self._own, list(sources.values()), config)
            found = self._judged(list(sources), candidates, config)
        else:
            asked = self.templates if templates is None else templates
            trees = self._trees(self._syntax, list(sources), notes)
            wanted = self._generated_trees(list(trees.values()), asked, config)
            candidates = self._after_trees([sources[text] for text in trees for _ in asked], wanted, config)
            found = self._best(list(trees), asked, candidates, config)
        return [found[text] if text in found else Paraphrased([], notes[text]) for text in texts]

    def _trees(self, syntax: Parser, sentences: list[str], notes: dict[str | None, str]) -> dict[str, list[int]]:
        """Ids of the trees of sentences; those without a tree, or with a long one, get a note."""
        assert self._models.parses is not None
        found = linearised_trees(syntax, sentences)
        trees = {text: tree for text, tree in zip(sentences, found, strict=True) if tree is not None}
        notes |= dict.fromkeys(set(sentences) - set(trees), NO_TREE)
        ids = self._models.parses.cut(list(trees.values())) if trees else []
        return _within(list(trees), ids, self._models.longest_tree, "tokens", notes, "tree ")

    def _generated_trees(
        self, trees: list[list[int]], templates: Sequence[str], config: ParaphraseConfig
    ) -> list[list[list[int]]]:
        """Ids of the most probable trees for each tree of a sentence and each template, the end included."""
        parses = self._models.parses
        assert parses is not None
        # What has another template is left out later, so there may be more trees than one.
        count = config.trees if config.has_template else 1
        longest, batch = self._models.longest_tree, config.batch_tokens
        settings = ParaphraseConfig(beams=max(config.beams, count), max_length=longest, batch_tokens=batch)
        controls = parses.cut_controls(list(templates)) * len(trees)
        found = self._search(parses, [ids for ids in trees for _ in templates], settings, controls)
        return [[[*tree, parses.ends[0]] for tree in candidates[:count]] for candidates in found]

    def _after_trees(
        self, sources: list[list[int]], trees: list[list[list[int]]], config: ParaphraseConfig
    ) -> list[list[list[int]]]:
        """Candidates of each source after each of its trees: the most probable ones of all trees first."""
        flat = [(source, tree) for source, own in zip(sources, trees, strict=True) for tree in own]
        found = iter(self._search(self._own, [source for source, _ in flat], config, [tree for _, tree in flat]))
        return [[ids for beams in zip(*(next(found) for _ in own), strict=True) for ids in beams] for own in trees]

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
        for batch in token_batches(lengths, config.batch_tokens or default_batch_tokens(self.device)):
            for part, targets in self._guard.run(batch, lengths, searched):
                for row, found in zip(part, targets, strict=True):
                    results[row] = found
        return results

    def _judged(
        self,
        texts: list[str],
        candidates: list[list[list[int]]],
        config: ParaphraseConfig,
        template: str | None = None,
    ) -> dict[str | None, Paraphrased]:
        """Keep the first `n` distinct candidates of each sentence within all limits."""
        joined = self._own.join([ids for own in candidates for ids in own])
        ends = np.cumsum([0, *map(len, candidates)])
        choices = [list(filter(None, dict.fromkeys(joined[a:b]))) for a, b in zip(ends, ends[1:], strict=False)]
        notes = _noted([None] * len(texts), choices, NONE_FOUND)
        if not config.keep_copies:
            choices = _without_copies(texts, choices)
            notes = _noted(notes, choices, COPIES)
        if config.max_overlap is not None:
            choices = unlike(texts, choices, config.max_overlap)
            notes = _noted(notes, choices, ALL_ALIKE)
        if config.has_template:
            assert self._syntax is not None
            choices = having_template(self._syntax, choices, template)
            notes = _noted(notes, choices, WITHOUT_TEMPLATE)
        if not config.chooses:
            choices = [own[: config.n] for own in choices]
        scores = iter(self._scores(texts, choices))
        good = [[Paraphrase(choice, next(scores)) for choice in own] for own in choices]
        if (least := config.min_score) is not None:
            good = [[each for each in own if each.score is not None and each.score >= least] for own in good]
            notes = _noted(notes, good, NONE_LEFT)
        if config.order == "score":
            good = [sorted(own, key=_by_score) for own in good]
        good = _apart(good, config.max_mutual_overlap)
        return {text: Paraphrased(own[: config.n], note) for text, own, note in zip(texts, good, notes, strict=True)}

    def _best(
        self, texts: list[str], templates: Sequence[str], candidates: list[list[list[int]]], config: ParaphraseConfig
    ) -> dict[str | None, Paraphrased]:
        """Keep the first `n` candidates of each template, and sort those of a sentence by score."""
        good: dict[str | None, list[Paraphrase]] = {text: [] for text in texts}
        notes: dict[str | None, str | None] = {}
        for position, template in enumerate(templates):
            for text, result in self._judged(texts, candidates[position :: len(templates)], config, template).items():
                good[text] += [replace(each, template=template) for each in result.paraphrases]
                notes.setdefault(text, result.note)
        ordered = _apart([sorted(own, key=_by_score) for own in good.values()], config.max_mutual_overlap)
        return {
            text: Paraphrased(own, None if own else notes.get(text)) for text, own in zip(good, ordered, strict=True)
        }

    def _scores(self, texts: list[str], choices: list[list[str]]) -> list[float | None]:
        """Paraphrase score of every candidate of every sentence, in one list."""
        flat = [choice for own in choices for choice in own]
        if self._scorer is None or not flat:
            return [None] * len(flat)
        first, second = (np.asarray(self._scorer.encode(side)) for side in (texts, flat))
        rows = np.repeat(np.arange(len(texts)), [len(own) for own in choices])
        return [float(score) for score in cosines(first[rows], second)]


def _within(
    texts: list[str], ids: list[list[int]], limit: int, unit: str, notes: dict[str | None, str], what: str = ""
) -> dict[str, list[int]]:
    """Ids of the texts with at most `limit` ids; the others get a note."""
    notes |= {text: f"{what}over {limit} {unit}" for text, own in zip(texts, ids, strict=True) if len(own) > limit}
    return {text: own for text, own in zip(texts, ids, strict=True) if len(own) <= limit}


def _noted(notes: list[str | None], choices: Sequence[Sequence[object]], note: str) -> list[str | None]:
    """Give a note to each sentence that just lost its last candidate, which has none yet."""
    return [note if former is None and not own else former for former, own in zip(notes, choices, strict=True)]


def _by_score(paraphrase: Paraphrase) -> float:
    """Sort key of paraphrases, highest score first; the sort is stable."""
    return 0.0 if paraphrase.score is None else -paraphrase.score


def _without_copies(texts: list[str], choices: list[list[str]]) -> list[list[str]]:
    """Remove candidates with the letters and digits of their sentence."""
    flat = [choice for own in choices for choice in own]
    wanted, found = (letters(pa.array(side, pa.string())).to_pylist() for side in (texts, flat))
    left = iter(found)
    return [[choice for choice in own if next(left) != text] for own, text in zip(choices, wanted, strict=True)]


def overlaps(first: Sequence[str], second: Sequence[str]) -> np.ndarray:
    """Trigram overlap of pairs of sentences [pair], float32 in [0, 1], as in the column `trigram_overlap`.

    If a side has fewer than three words, the overlap is 1 if both have the same words, else 0.
    """
    if not len(first):
        return np.zeros(0, np.float32)
    found = trigram_overlap(*WordTokenizer().tables(list(first), list(second)))
    values = found.fill_null(0).to_numpy(zero_copy_only=False).copy()
    for pair in np.flatnonzero(found.is_null().to_numpy(zero_copy_only=False)).tolist():
        values[pair] = words(first[pair]) == words(second[pair])
    return values


def unlike(texts: Sequence[str], choices: Sequence[Sequence[str]], limit: float) -> list[list[str]]:
    """Keep the candidates of each text with at most this overlap with it."""
    repeated = [text for text, own in zip(texts, choices, strict=True) for _ in own]
    values = iter(overlaps(repeated, [choice for own in choices for choice in own]))
    return [[choice for choice in own if next(values) <= limit] for own in choices]


def _apart(choices: list[list[Paraphrase]], limit: float | None) -> list[list[Paraphrase]]:
    """Select greedily, in order of preference, what has at most this overlap with each one selected before."""
    if limit is None:
        return choices
    kept: list[list[Paraphrase]] = [[] for _ in choices]
    for position in range(max(map(len, choices), default=0)):
        rows = [row for row, own in enumerate(choices) if position < len(own)]
        pairs = [(choices[row][position].text, other.text) for row in rows for other in kept[row]]
        values = overlaps([a for a, _ in pairs], [b for _, b in pairs])
        ends = np.cumsum([0, *(len(kept[row]) for row in rows)])
        for row, start, end in zip(rows, ends, ends[1:], strict=False):
            if (values[start:end] <= limit).all():
                kept[row].append(choices[row][position])
    return kept
