"""Results of paraphrasers: rows of figures, and one table of several models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from paranmt_hf.evaluation.results import Results, Row
from paranmt_hf.paraphrase.figures import CanonicalFigures, Closeness, ParaphraseFigures

COPIED, REFERENCE, NOISY = "copied input", "first reference", "noisy input"
# Examples of canonicalisation that a summary shows.
SHOWN_EXAMPLES = 5
PARAPHRASES_NOTE = (
    "BLEU and METEOR against the references, self-BLEU against the input, BLEU among the outputs of a sentence; "
    "numbers, negation, names: % of the paraphrases that differ in one from their input."
)
CANONICAL_NOTE = "Edits for each 100 characters or words of the clean sentence."


def paraphrase_row(name: str, items: int, figures: ParaphraseFigures, **details: Any) -> Row:  # noqa: ANN401
    """Give the figures of one decoding, of a file, or of what no model generated.

    Args:
        name: Name of the decoding.
        items: Number of sentences.
        figures: Figures of its outputs.
        details: `settings` and `seconds` of a search.
    """
    values = asdict(figures)
    values |= {name.replace("_mismatch", ""): share for name, share in values.pop("errors").items()}
    if details:
        values["sentences_per_second"] = items / details["seconds"]
    return Row(name=name, items=items, values=_known(values), details=details)


def canonical_rows(items: int, figures: CanonicalFigures) -> list[Row]:
    """Give the figures of noisy sentences, and of what a model made of them and of the clean ones."""
    after = _closeness(figures.after) | {"improved": figures.improved, "worse": figures.worse}
    return [
        Row(name="output", items=items, values=after),
        Row(name="output of clean input", items=items, values=_closeness(figures.of_clean)),
        Row(name=NOISY, items=items, values=_closeness(figures.before)),
    ]


def _known(values: Mapping[str, float | None]) -> dict[str, float]:
    return {name: value for name, value in values.items() if value is not None}


def _closeness(own: Closeness) -> dict[str, float]:
    return {"character_edits": own.characters, "word_edits": own.words, "bleu": own.bleu, "equal": own.equal}


def together(results: Sequence[Results]) -> str:
    """Write one table of several models; what no model generated is shown once for each set of sentences."""
    if len(results) == 1:
        return results[0].text()
    rows = {}
    for own in results:
        for row in own.rows:
            shared = row.name in (COPIED, REFERENCE, NOISY)
            named = row if shared or row.name == own.model else replace(row, name=f"{own.model}: {row.name}")
            rows[named.name, tuple(own.data.values()) if shared else own.model] = named
    (title,) = results[0].tables
    return replace(results[0], tables={title: list(rows.values())}).text()


def canonical_examples(results: Sequence[Results]) -> str:
    """Write some of the noisy sentences, with the first model's outputs."""
    return "\n\n".join(
        f"  noisy   {each['noisy']}\n  output  {each['output']}\n  clean   {each['clean']}"
        for each in results[0].examples[:SHOWN_EXAMPLES]
    )
