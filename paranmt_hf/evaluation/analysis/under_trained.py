"""Which part of the tokens of evaluation sets training hardly saw; PARAGRAM-PHRASE (arXiv:1511.08198), section 5.1."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from paranmt_hf.errors import InputError
from paranmt_hf.evaluation.correlation import spearman
from paranmt_hf.evaluation.lines import parse_number, read_lines
from paranmt_hf.evaluation.pair_set import StsSet
from paranmt_hf.evaluation.results import StsResult, check_same_sets
from paranmt_hf.evaluation.sts_data import DEVELOPMENT
from paranmt_hf.evaluation.word_counts import WordCounts
from paranmt_hf.text.tokens import WordTokenizer
from paranmt_hf.util.records import to_json
from paranmt_hf.util.tables import percent, write_table

# Words that were seen fewer times are under-trained (section 5.1).
AT_LEAST = 100


@dataclass(frozen=True)
class SetCoverage:
    """How much of a set training saw.

    Attributes:
        title: Year and name of the set.
        tokens: Tokens of all its sentences.
        under_trained: Share of them whose word was seen fewer than so many times, in [0, 1].
        unseen: Share of them whose word was never seen, in [0, 1].
        pearson: Pearson's r of each model, in [-1, 1].
        reference: The figure that Pearson's r is compared with, in [-1, 1], if there is one.
    """

    title: str
    tokens: int
    under_trained: float
    unseen: float
    pearson: list[float]
    reference: float | None


@dataclass(frozen=True)
class CoverageTable:
    """Under-trained tokens of sets, beside the figures of models.

    Attributes:
        models: Names of the models.
        source: Where the counts come from.
        at_least: Words that were seen fewer times are under-trained.
        words: Distinct words that were seen.
        trained_words: Those that were seen so many times.
        sets: The sets.
        spearman: For each model Spearman's rho over the sets, of the under-trained share and Pearson's r less the
            reference where there are references; None where it has no correlation.
    """

    models: list[str]
    source: str
    at_least: int
    words: int
    trained_words: int
    sets: list[SetCoverage]
    spearman: list[float | None]

    def to_json(self) -> dict[str, Any]:
        """Give the table as JSON values."""
        values: dict[str, Any] = to_json(self)
        return values

    def write(self, style: Literal["markdown", "text"] = "text") -> str:
        """Write the table, shares and figures times 100."""
        compared = any(each.reference is not None for each in self.sets)
        header = ["Set", "Tokens", f"Seen < {self.at_least}", "Unseen", *self.models]
        rows = []
        for each in self.sets:
            row = [each.title, f"{each.tokens:,}", percent(each.under_trained), percent(each.unseen)]
            row += map(percent, each.pearson)
            rows.append([*row, percent(each.reference)] if compared else row)
        last = ["Spearman", "", "", "", *map(percent, self.spearman)]
        rows.append([*last, ""] if compared else last)
        table = write_table([*header, "Reference"] if compared else header, rows, style)
        what = "Pearson's r less the reference" if compared else "Pearson's r"
        return (
            f"{table}\n\nShares of tokens and Pearson, x 100; last row: Spearman of the share seen < {self.at_least} "
            f"times and {what} over the sets. Counts: {self.source}, {self.words:,} words, of which "
            f"{self.trained_words:,} were seen {self.at_least:,} times or more."
        )


def read_references(path: Path) -> dict[str, float]:
    """Read figures to compare with, such as the 75th percentile of a task's systems: set, tab, figure times 100.

    Raises:
        InputError: A line is malformed; with file and line.
    """
    references = {}
    for number, line in enumerate(read_lines(path), 1):
        if not line.strip():
            continue
        title, tab, figure = line.partition("\t")
        if not tab or not title.strip():
            raise InputError(f"{path}, line {number}: expected a set such as 'STS12 MSRpar', a tab and a figure")
        references[title.strip()] = parse_number(figure.strip(), f"{path}, line {number}", "Pearson x 100") / 100
    return references


def independent(sets: Sequence[StsSet]) -> list[StsSet]:
    """Leave out the STS benchmark and the development set where there are yearly sets, which overlap them."""
    if not any(each.year for each in sets):
        return list(sets)
    return [each for each in sets if each.year or not (each.name.startswith("STSB-") or each.name == DEVELOPMENT)]


def measure_coverage(
    results: Sequence[StsResult],
    sets: Sequence[StsSet],
    counts: WordCounts,
    *,
    at_least: int = AT_LEAST,
    references: Mapping[str, float] | None = None,
) -> CoverageTable:
    """Measure how many tokens of each set are of words that training hardly saw.

    Args:
        results: The results of models on exactly these sets; there may be none.
        sets: The sets.
        counts: How often training saw each word.
        at_least: Words that were seen fewer times are under-trained.
        references: Figures by the title of a set, in [-1, 1], from which Pearson's r deviates; sets without one are
            left out of the correlation.

    Raises:
        InputError: None of the references is of one of the sets.
    """
    if results:
        check_same_sets(results)
    sets = independent(sets)
    titles = [f"{each.year} {each.name}" if each.year else each.name for each in sets]
    if references and not set(references) & set(titles):
        raise InputError(f"no reference is of one of the sets {', '.join(titles)}; it has {', '.join(references)}")
    figures = [{each.title: each.pearson for each in result.sets} for result in results]
    found = []
    for title, sts_set in zip(titles, sets, strict=True):
        table = WordTokenizer().tables([*sts_set.left, *sts_set.right])[0]
        # Occurrences in training of each token of the set.
        occurrences = counts.of(table.vocabulary)[table.ids]
        if not len(occurrences):
            raise InputError(f"{title} has no word at all, so none was seen or not")
        found.append(
            SetCoverage(
                title,
                len(occurrences),
                float(np.mean(occurrences < at_least)),
                float(np.mean(occurrences == 0)),
                [each[title] for each in figures],
                (references or {}).get(title),
            )
        )
    values = np.array(list(counts.counts.values()))
    rhos = [_spearman(found, number, bool(references)) for number in range(len(results))]
    trained = int((values >= at_least).sum())
    models = [result.model for result in results]
    return CoverageTable(models, counts.source, at_least, int((values > 0).sum()), trained, found, rhos)


def _spearman(sets: Sequence[SetCoverage], model: int, compared: bool) -> float | None:
    used = [each for each in sets if not compared or each.reference is not None]
    shares = np.array([each.under_trained for each in used])
    figures = np.array([each.pearson[model] - (each.reference or 0.0) for each in used])
    if len(used) < 2 or np.ptp(shares) == 0 or np.ptp(figures) == 0:
        return None
    return spearman(shares, figures)
