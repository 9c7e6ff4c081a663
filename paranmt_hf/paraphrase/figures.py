"""Scores of paraphrases: close to references, far from the input, same meaning; and normalisation of noisy input."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from paranmt_hf.errors import InputError
from paranmt_hf.evaluation.baselines import Meteor
from paranmt_hf.evaluation.results import Row
from paranmt_hf.evaluation.similarities import PairSimilarity, pair_similarities
from paranmt_hf.paraphrase.items import Output, ParaphraseItems
from paranmt_hf.text.definitions import words
from paranmt_hf.text.protocols import Encoder
from paranmt_hf.util.optional import require

BLEU_VARIANT = "sacrebleu, corpus, 13a tokens, mixed case, exponential smoothing"
NOISY = "noisy input"
# Examples of canonicalisation that are kept.
EXAMPLES = 20
# Counts the errors of meaning of each pair, by kind [pair].
CountErrors = Callable[[list[str], list[str]], Mapping[str, np.ndarray]]
# Tells whether each sentence has the template of the same index.
MatchTemplates = Callable[[list[str], list[str]], Sequence[bool]]


class ParaphraseMeasures:
    """Scores the first output of each sentence; only `among_bleu` and `outputs` use all outputs.

    - `bleu`, corpus BLEU against the references, 0 to 100, where a sentence without output counts as an empty one; and
      `meteor`, mean METEOR against the nearest reference, in [0, 1], where it counts as 0. Both need references.
    - `self_bleu`: corpus BLEU of the outputs against their inputs, 0 to 100: 100 is a copy.
    - `among_bleu`: corpus BLEU of each output against the others of its sentence, 0 to 100 (self-BLEU of
      Zhu et al. 2018): the lower, the more diverse. It needs a sentence with two.
    - `score`: mean paraphrase score of output and input, in [-1, 1].
    - One for each kind of error: share of the outputs that differ from their input in a number, negation or name.
    - `copies`: share of the outputs with the words of their input, case and white space aside.
    - `length_ratio`: words of all outputs by words of their inputs.
    - `template_match`: share of the outputs with a template that have it, if there is `match_templates`.
    - `without`: number of sentences without output, which the other figures leave out.
    - `outputs`: mean number of outputs of a sentence.
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
        self, items: ParaphraseItems, outputs: Sequence[Output], *, against_references: bool = True
    ) -> dict[str, float]:
        """Score the outputs of each sentence [item]; scores that cannot be computed are left out."""
        rows = [row for row, output in enumerate(outputs) if output.texts]
        if not rows:
            raise InputError(f"{items.name}: none of {len(outputs):,} sentences has a paraphrase; nothing to measure")
        sources, best = [items.sources[row] for row in rows], [outputs[row].texts[0] for row in rows]
        figures: dict[str, float | None] = {}
        if against_references and items.has_references:
            every = [output.texts[0] if output.texts else "" for output in outputs]
            figures["bleu"] = self._bleu(every, items.references)
            nearest = [self._nearest(*pair) for pair in zip(every, items.references, strict=True)]
            figures["meteor"] = float(np.mean(nearest))
        cut = [(self._words(source), self._words(text)) for source, text in zip(sources, best, strict=True)]
        figures |= {
            "self_bleu": self._bleu(best, [[source] for source in sources]),
            "among_bleu": self._among([output.texts for output in outputs]),
            "score": float(np.mean(pair_similarities(self._scorer, sources, best, items.name).values)),
            "copies": float(np.mean([source == text for source, text in cut])),
            "length_ratio": sum(len(text) for _, text in cut) / max(1, sum(len(source) for source, _ in cut)),
            "template_match": self._templates([outputs[row] for row in rows]),
            "without": len(outputs) - len(rows),
            "outputs": float(np.mean([len(output.texts) for output in outputs])),
        }
        for name, counts in self._count_errors(sources, best).items():
            figures[name.replace("_mismatch", "")] = float(np.mean(counts > 0))
        return {name: figure for name, figure in figures.items() if figure is not None}

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
    """Return a function that computes corpus BLEU, 0 to 100, of sentences with several references each."""
    sacrebleu: Any = require("sacrebleu", "evaluate")
    # Otherwise it warns about tokenised sentences.
    measure = sacrebleu.BLEU(force=True)

    def compute(sentences: list[str], references: Sequence[Sequence[str]]) -> float:
        most = max(map(len, references))
        # Streams, where the first references of all sentences are one; a sentence with fewer has none in the others.
        streams = [[own[place] if place < len(own) else None for own in references] for place in range(most)]
        return float(measure.corpus_score(sentences, streams).score)

    return compute


def closeness(sentences: Sequence[str], clean: Sequence[str]) -> dict[str, float]:
    """Measure how close sentences are to the clean ones of the same index.

    `character_edits` and `word_edits` are for each 100 characters, or words cut at blanks, of the clean sentences;
    `bleu` is corpus BLEU, 0 to 100, and `equal` the share that equals the clean sentence.
    """
    pairs = list(zip(sentences, clean, strict=True))
    characters = sum(edit_distance(one, other) for one, other in pairs)
    words = sum(edit_distance(one.split(), other.split()) for one, other in pairs)
    return {
        "character_edits": 100 * characters / sum(map(len, clean)),
        "word_edits": 100 * words / sum(len(each.split()) for each in clean),
        "bleu": corpus_bleu()(list(sentences), [[each] for each in clean]),
        "equal": sum(one == other for one, other in pairs) / len(clean),
    }


def canonical_figures(
    noisy: Sequence[str], clean: Sequence[str], outputs: Sequence[str | None], of_clean: Sequence[str | None]
) -> tuple[list[Row], list[dict[str, Any]]]:
    """Measure how close outputs of noisy sentences are to the clean ones (ParaNMT-50M, section 6, table 11).

    The paper shows examples; here the clean sentence is known, and the distance to it is measured before and after.

    Args:
        noisy: The sentences.
        clean: The expected sentences.
        outputs: What was generated from each noisy sentence; None, counted as the sentence itself, if nothing was.
        of_clean: What was generated from each clean sentence, whose own distance is 0.

    Returns:
        Figures of the outputs, of those of clean sentences, and of the noisy sentences; and the first sentences as
        examples. `improved` and `worse` are the shares whose output needs fewer or more character edits than they did.
    """
    if not clean:
        raise InputError("there are no noisy sentences to measure")
    made = [own if output is None else output for own, output in zip(noisy, outputs, strict=True)]
    kept = [own if output is None else output for own, output in zip(clean, of_clean, strict=True)]
    before, after = ([edit_distance(*pair) for pair in zip(side, clean, strict=True)] for side in (noisy, made))
    changes = {
        "improved": sum(one < other for one, other in zip(after, before, strict=True)) / len(clean),
        "worse": sum(one > other for one, other in zip(after, before, strict=True)) / len(clean),
    }
    columns = {"noisy": noisy, "output": made, "clean": clean, "before": before, "after": after}
    rows = {
        "output": closeness(made, clean) | changes,
        "output of clean input": closeness(kept, clean),
        NOISY: closeness(noisy, clean),
    }
    return (
        [Row(name=name, items=len(clean), values=values) for name, values in rows.items()],
        [{name: column[row] for name, column in columns.items()} for row in range(min(EXAMPLES, len(clean)))],
    )


def edit_distance(first: Sequence[Hashable], second: Sequence[Hashable]) -> int:
    """Minimum number of insertions, deletions and replacements between two sequences (Levenshtein 1966).

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
