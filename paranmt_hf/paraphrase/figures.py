"""Figures of paraphrases: close to references, far from the input, the same meaning; and of noisy input, how clean."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from paranmt_hf.errors import InputError
from paranmt_hf.evaluation.baselines import Meteor
from paranmt_hf.evaluation.similarities import PairSimilarity, pair_similarities
from paranmt_hf.paraphrase.items import Items, Output
from paranmt_hf.text.definitions import words
from paranmt_hf.text.protocols import Encoder
from paranmt_hf.util.optional import require

BLEU_VARIANT = "sacrebleu, corpus, 13a tokens, mixed case, exponential smoothing"
# Counts the errors of meaning of each pair, by kind [pair].
CountErrors = Callable[[list[str], list[str]], Mapping[str, np.ndarray]]
# Tells whether each sentence has the template of the same index.
MatchTemplates = Callable[[list[str], list[str]], Sequence[bool]]


@dataclass(frozen=True)
class ParaphraseFigures:
    """Figures of the first output of each sentence; only `among_bleu` and `outputs` are of all outputs.

    Attributes:
        bleu: Corpus BLEU against the references, 0 to 100; a sentence without output counts as an empty one. None
            without references.
        meteor: Mean METEOR against the nearest reference, in [0, 1]; 0 for a sentence without output. None without
            references.
        self_bleu: Corpus BLEU of the outputs against their inputs, 0 to 100: 100 is a copy.
        among_bleu: Corpus BLEU of each output against the others of its sentence, 0 to 100 (Zhu et al. 2018,
            self-BLEU): the lower, the more diverse. None if no sentence has two.
        score: Mean paraphrase score of output and input, in [-1, 1].
        errors: By kind, share of the outputs that differ from their input in a number, negation or name.
        copies: Share of the outputs with the words of their input, case and white space aside.
        length_ratio: Words of all outputs by words of their inputs.
        template_match: Share of the outputs with a template that have it; None without templates.
        without: Sentences without output, which the other figures leave out.
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


class ParaphraseMeasures:
    """Computes figures of outputs.

    Args:
        scorer: The encoder behind the paraphrase score, or another measure of pairs.
        count_errors: Counts errors of meaning.
        match_templates: Tells which outputs have their template; without it the share is not measured.
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
        """Variants of BLEU and METEOR."""
        return {"bleu": BLEU_VARIANT, "meteor": f"nltk, stages {', '.join(self._meteor.stages)}"}

    def __call__(
        self, items: Items, outputs: Sequence[Output], *, against_references: bool = True
    ) -> ParaphraseFigures:
        """Compute the figures.

        Args:
            items: The sentences.
            outputs: Outputs of each sentence [item].
            against_references: Whether BLEU and METEOR are measured, if there are references.
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
        return ParaphraseFigures(
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


def corpus_bleu() -> Callable[[list[str], Sequence[Sequence[str]]], float]:
    """Make a function that computes corpus BLEU, 0 to 100, of sentences against the references of each."""
    sacrebleu: Any = require("sacrebleu", "evaluate")
    # It would warn about tokenised sentences.
    measure = sacrebleu.BLEU(force=True)

    def compute(sentences: list[str], references: Sequence[Sequence[str]]) -> float:
        most = max(map(len, references))
        # Streams, where the first references of all sentences are one; a sentence with fewer has none in the others.
        streams = [[own[place] if place < len(own) else None for own in references] for place in range(most)]
        return float(measure.corpus_score(sentences, streams).score)

    return compute


@dataclass(frozen=True)
class Closeness:
    """How close sentences are to the clean ones.

    Attributes:
        characters: Edits for each 100 characters of the clean sentences.
        words: Edits for each 100 words, cut at blanks, of the clean sentences.
        bleu: Corpus BLEU against the clean sentences, 0 to 100.
        equal: Share that equals the clean sentence.
    """

    characters: float
    words: float
    bleu: float
    equal: float


@dataclass(frozen=True)
class CanonicalExample:
    """A sentence and its output.

    Attributes:
        noisy: The input.
        output: What was generated from it.
        clean: What it should be.
        before: Character edits from the input to the clean sentence.
        after: Character edits from the output to the clean sentence.
    """

    noisy: str
    output: str
    clean: str
    before: int
    after: int


@dataclass(frozen=True)
class CanonicalFigures:
    """Figures of sentences that were noisy.

    Attributes:
        before: The noisy sentences.
        after: What was generated from them; for a sentence without output, the sentence itself.
        of_clean: What was generated from the clean sentences, whose own distance is 0.
        improved: Share of the sentences whose output needs fewer character edits than they did.
        worse: Share of those whose output needs more.
        examples: The first sentences.
    """

    before: Closeness
    after: Closeness
    of_clean: Closeness
    improved: float
    worse: float
    examples: list[CanonicalExample]


def closeness(sentences: Sequence[str], clean: Sequence[str]) -> Closeness:
    """Measure how close sentences are to the clean ones of the same index."""
    characters = sum(edit_distance(one, other) for one, other in zip(sentences, clean, strict=True))
    words = sum(edit_distance(one.split(), other.split()) for one, other in zip(sentences, clean, strict=True))
    return Closeness(
        characters=100 * characters / sum(map(len, clean)),
        words=100 * words / sum(len(each.split()) for each in clean),
        bleu=corpus_bleu()(list(sentences), [[each] for each in clean]),
        equal=sum(one == other for one, other in zip(sentences, clean, strict=True)) / len(clean),
    )


def canonical_figures(
    noisy: Sequence[str],
    clean: Sequence[str],
    outputs: Sequence[str | None],
    of_clean: Sequence[str | None],
    *,
    examples: int = 20,
) -> CanonicalFigures:
    """Measure how close outputs of noisy sentences are to the clean ones (ParaNMT-50M, section 6, table 11).

    The paper shows examples; here the clean sentence is known, and the distance to it is measured before and after.

    Args:
        noisy: The sentences.
        clean: What each should be.
        outputs: What was generated from each noisy sentence; None if nothing was.
        of_clean: What was generated from each clean sentence.
        examples: Number of examples.
    """
    if not clean:
        raise InputError("there are no noisy sentences to measure")
    made = [own if output is None else output for own, output in zip(noisy, outputs, strict=True)]
    kept = [own if output is None else output for own, output in zip(clean, of_clean, strict=True)]
    rows = [
        CanonicalExample(own, output, wanted, edit_distance(own, wanted), edit_distance(output, wanted))
        for own, output, wanted in zip(noisy, made, clean, strict=True)
    ]
    return CanonicalFigures(
        before=closeness(noisy, clean),
        after=closeness(made, clean),
        of_clean=closeness(kept, clean),
        improved=sum(row.after < row.before for row in rows) / len(rows),
        worse=sum(row.after > row.before for row in rows) / len(rows),
        examples=rows[:examples],
    )


def edit_distance(first: Sequence[Hashable], second: Sequence[Hashable]) -> int:
    """Count the fewest insertions, deletions and replacements that make one sequence of the other (Levenshtein 1966).

    A column of the table of distances is kept as the differences of neighbours, each +1, 0 or -1, in the bits of two
    numbers, and so each item of `second` costs a few operations on whole columns (Hyyrö 2003).

    >>> edit_distance("kitten", "sitting"), edit_distance("a b c".split(), "a c".split())
    (3, 1)
    """
    if not first:
        return len(second)
    places: dict[Hashable, int] = {}
    for place, item in enumerate(first):
        places[item] = places.get(item, 0) | 1 << place
    column, last = (1 << len(first)) - 1, 1 << len(first) - 1
    up, down, distance = column, 0, len(first)
    for item in second:
        equal = places.get(item, 0)
        diagonal = ((equal & up) + up ^ up) | equal | down
        rises, falls = down | ~(diagonal | up) & column, diagonal & up
        distance += bool(rises & last) - bool(falls & last)
        rises, falls = rises << 1 | 1, falls << 1
        up, down = (falls | ~(diagonal | rises)) & column, rises & diagonal & column
    return distance
