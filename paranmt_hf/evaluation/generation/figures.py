"""Figures of paraphrases: how close to references, how far from the input, and what became of the meaning."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from paranmt_hf.errors import InputError
from paranmt_hf.evaluation.baselines import Meteor
from paranmt_hf.evaluation.generation.items import Items
from paranmt_hf.evaluation.similarities import PairSimilarity, pair_similarities
from paranmt_hf.text.definitions import words
from paranmt_hf.text.protocols import Encoder
from paranmt_hf.util.optional import require

# Counts the errors of meaning of each pair, by kind [pair].
CountErrors = Callable[[list[str], list[str]], Mapping[str, np.ndarray]]
# Says of each sentence whether it has the template beside it.
MatchTemplates = Callable[[list[str], list[str]], Sequence[bool]]


@dataclass(frozen=True)
class Output:
    """What was made of one sentence.

    Attributes:
        texts: Paraphrases, the best first; perhaps none.
        templates: The template that each was asked for; empty where none was.
    """

    texts: list[str]
    templates: list[str]


@dataclass(frozen=True)
class Figures:
    """Figures of the first output of each sentence; of all of them only `among_bleu` and `outputs`.

    Attributes:
        bleu: Corpus BLEU against the references, 0 to 100; a sentence without output counts as an empty one. None
            without references.
        meteor: Mean METEOR against the nearest reference, in [0, 1]; 0 for a sentence without output. None without
            references.
        self_bleu: Corpus BLEU of the outputs against their inputs, 0 to 100: 100 is a copy.
        among_bleu: Corpus BLEU of each output against the others of its sentence, 0 to 100 (Zhu et al. 2018,
            self-BLEU): the lower, the more diverse. None where no sentence has two.
        score: Mean paraphrase score of output and input, in [-1, 1].
        errors: By kind, share of the outputs that differ from their input in a number, negation or name.
        copies: Share of the outputs with the same words as their input; case and white space do not count.
        length_ratio: Words of all outputs by words of their inputs.
        template_match: Share of the outputs, of those asked for with a template, that have it. None without such.
        without: Sentences without output, of which the other figures know nothing.
        outputs: Mean number of outputs of a sentence.
    """

    bleu: float | None
    meteor: float | None
    self_bleu: float
    among_bleu: float | None
    score: float
    errors: dict[str, float]
    copies: float
    length_ratio: float
    template_match: float | None
    without: int
    outputs: float


class Measures:
    """Computes figures, for as many outputs of the same sentences as there are.

    Args:
        scorer: The encoder behind the paraphrase score, or another measure of pairs.
        count_errors: Counts errors of meaning.
        match_templates: Says which outputs have their template; without it the rate is not measured.

    Raises:
        InputError: sacrebleu or nltk is not installed.
    """

    def __init__(
        self,
        scorer: Encoder | PairSimilarity,
        count_errors: CountErrors,
        match_templates: MatchTemplates | None = None,
    ) -> None:
        self._scorer, self._count_errors, self._match = scorer, count_errors, match_templates
        self._bleu = corpus_bleu()
        self._meteor = Meteor()
        self._words = lru_cache(maxsize=100_000)(words)

    @property
    def variants(self) -> dict[str, str]:
        """Which variants of BLEU and METEOR these are."""
        return {"bleu": BLEU_VARIANT, "meteor": f"nltk, stages {', '.join(self._meteor.stages)}"}

    def __call__(self, items: Items, outputs: Sequence[Output], *, against_references: bool = True) -> Figures:
        """Compute the figures.

        Args:
            items: The sentences.
            outputs: What was made of each [item].
            against_references: Whether BLEU and METEOR are measured, where there are references.

        Raises:
            InputError: No sentence has an output.
        """
        rows = [row for row, output in enumerate(outputs) if output.texts]
        if not rows:
            raise InputError(f"{items.name}: none of {len(outputs):,} sentences has a paraphrase; nothing to measure")
        sources, best = [items.sources[row] for row in rows], [outputs[row].texts[0] for row in rows]
        bleu = meteor = None
        if against_references and items.has_references:
            every = [output.texts[0] if output.texts else "" for output in outputs]
            bleu = self._bleu(every, items.references)
            meteor = float(np.mean([self._nearest(*pair) for pair in zip(every, items.references, strict=True)]))
        cut = [(self._words(source), self._words(text)) for source, text in zip(sources, best, strict=True)]
        errors = self._count_errors(sources, best)
        return Figures(
            bleu=bleu,
            meteor=meteor,
            self_bleu=self._bleu(best, [[source] for source in sources]),
            among_bleu=self._among([output.texts for output in outputs]),
            score=float(np.mean(pair_similarities(self._scorer, sources, best, items.name).values)),
            errors={name: float(np.mean(counts > 0)) for name, counts in errors.items()},
            copies=float(np.mean([source == text for source, text in cut])),
            length_ratio=sum(len(text) for _, text in cut) / max(1, sum(len(source) for source, _ in cut)),
            template_match=self._templates([outputs[row] for row in rows]),
            without=len(outputs) - len(rows),
            outputs=float(np.mean([len(output.texts) for output in outputs])),
        )

    def _nearest(self, text: str, references: Sequence[str]) -> float:
        own = self._words(text)
        return max(self._meteor.one_direction(own, self._words(each)) for each in references) if own else 0.0

    def _among(self, outputs: Sequence[Sequence[str]]) -> float | None:
        several = [texts for texts in outputs if len(texts) > 1]
        if not several:
            return None
        others = [[*texts[:place], *texts[place + 1 :]] for texts in several for place in range(len(texts))]
        return self._bleu([text for texts in several for text in texts], others)

    def _templates(self, outputs: Sequence[Output]) -> float | None:
        asked = [output for output in outputs if output.templates and output.templates[0]]
        if self._match is None or not asked:
            return None
        return float(np.mean(self._match([each.texts[0] for each in asked], [each.templates[0] for each in asked])))


BLEU_VARIANT = "sacrebleu, corpus, 13a tokens, mixed case, exponential smoothing"


def corpus_bleu() -> Callable[[list[str], Sequence[Sequence[str]]], float]:
    """Make a function that computes corpus BLEU, 0 to 100, of sentences against the references of each.

    Raises:
        InputError: sacrebleu is not installed.
    """
    sacrebleu: Any = require("sacrebleu", "evaluate")
    # It warns of sentences cut into tokens; whether they are, is up to the user.
    measure = sacrebleu.BLEU(force=True)

    def compute(sentences: list[str], references: Sequence[Sequence[str]]) -> float:
        most = max(map(len, references))
        # Streams, where the first references of all sentences are one; a sentence with fewer has none in the others.
        streams = [[own[place] if place < len(own) else None for own in references] for place in range(most)]
        return float(measure.corpus_score(sentences, streams).score)

    return compute
