"""How far noisy sentences are brought into a standard form (ParaNMT-50M, section 6, table 11).

The paper shows examples; here the standard form is known, and the distance to it is measured before and after.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from paranmt_hf.errors import InputError
from paranmt_hf.evaluation.generation.edits import edit_distance
from paranmt_hf.evaluation.generation.figures import corpus_bleu


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
class Example:
    """A sentence and what became of it.

    Attributes:
        noisy: The input.
        output: What was generated of it.
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
class Canonical:
    """Figures of sentences that were noisy.

    Attributes:
        before: The noisy sentences.
        after: What was generated of them; for a sentence without output, the sentence itself.
        of_clean: What was generated of the clean sentences, whose own distance is 0.
        improved: Share of the sentences whose output needs fewer character edits than they did.
        worse: Share of those whose output needs more.
        examples: The first sentences.
    """

    before: Closeness
    after: Closeness
    of_clean: Closeness
    improved: float
    worse: float
    examples: list[Example]


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


def canonical(
    noisy: Sequence[str],
    clean: Sequence[str],
    outputs: Sequence[str | None],
    of_clean: Sequence[str | None],
    *,
    examples: int = 20,
) -> Canonical:
    """Measure what was made of noisy sentences.

    Args:
        noisy: The sentences.
        clean: What each should be.
        outputs: What was generated of each noisy sentence; None where nothing was.
        of_clean: What was generated of each clean sentence.
        examples: How many are kept.

    Raises:
        InputError: There are none.
    """
    if not clean:
        raise InputError("there are no noisy sentences to measure")
    made = [own if output is None else output for own, output in zip(noisy, outputs, strict=True)]
    kept = [own if output is None else output for own, output in zip(clean, of_clean, strict=True)]
    rows = [
        Example(own, output, wanted, edit_distance(own, wanted), edit_distance(output, wanted))
        for own, output, wanted in zip(noisy, made, clean, strict=True)
    ]
    return Canonical(
        before=closeness(noisy, clean),
        after=closeness(made, clean),
        of_clean=closeness(kept, clean),
        improved=sum(row.after < row.before for row in rows) / len(rows),
        worse=sum(row.after > row.before for row in rows) / len(rows),
        examples=rows[:examples],
    )
