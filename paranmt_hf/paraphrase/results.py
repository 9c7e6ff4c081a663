"""Results of evaluating paraphrasers, as `--json` has them, and their tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from paranmt_hf.paraphrase.figures import CanonicalFigures, Closeness, ParaphraseFigures
from paranmt_hf.util.tables import percent, write_table

COPIED, REFERENCE = "copied input", "first reference"
# Kinds of errors, as tables call them.
ERROR_NAMES = {"number_mismatch": "numbers", "negation_mismatch": "negation", "name_mismatch": "names"}
# Examples of canonicalisation that a summary shows.
SHOWN_EXAMPLES = 5


@dataclass(frozen=True)
class DecodingRow:
    """Figures of one decoding.

    Attributes:
        name: Name of the decoding; `copied input` and `first reference` are none.
        settings: What differs from the defaults of a search; None if nothing was searched.
        seconds: Time of the search; None if there was none.
        figures: The figures.
    """

    name: str
    settings: dict[str, Any] | None
    seconds: float | None
    figures: ParaphraseFigures


@dataclass(frozen=True, kw_only=True)
class _ModelResults:
    """What both kinds of results have.

    Attributes:
        model: Name of the model or of the file of paraphrases.
        weights: Checksum of its weights, or of the file.
        data: Name of the data.
        data_checksum: Checksum of all sentences and references.
        seed: Decided the sentences, their noise and samples.
        settings: How the sentences were chosen, and how the model searched.
        versions: Versions of this package and of the libraries.
        command: The command, without folders.
    """

    model: str
    weights: str | None
    data: str
    data_checksum: str
    seed: int
    settings: dict[str, Any]
    versions: dict[str, str]
    command: str


@dataclass(frozen=True, kw_only=True)
class ParaphraseResults(_ModelResults):
    """The results of a paraphraser, or of a file of paraphrases.

    Attributes:
        items: Number of sentences.
        references: Number of references.
        variants: Which BLEU and METEOR, and the encoder of the paraphrase score.
        rows: The figures of each decoding.
        examples: For the first sentences: source, references and, by decoding, the outputs.
        kind: What the results are about.
    """

    items: int
    references: int
    variants: dict[str, Any]
    rows: list[DecodingRow]
    examples: list[dict[str, Any]]
    kind: Literal["paraphrases"] = "paraphrases"


@dataclass(frozen=True, kw_only=True)
class CanonicalResults(_ModelResults):
    """The results of a paraphraser on noisy sentences.

    Attributes:
        sentences: Number of sentences.
        noise: Rate of the noise and how often each kind was added; None if the noisy sentences were given.
        figures: The figures.
        kind: What the results are about.
    """

    sentences: int
    noise: dict[str, Any] | None
    figures: CanonicalFigures
    kind: Literal["canonical"] = "canonical"


@dataclass(frozen=True)
class ParaphraseEvaluation:
    """The results of paraphrasers on the same data.

    Attributes:
        results: Those of each paraphraser or file.
    """

    results: list[ParaphraseResults]

    def to_json(self) -> list[dict[str, Any]]:
        """The results as JSON values."""
        return [asdict(each) for each in self.results]

    def summary(self) -> str:
        """A table, and what its columns mean."""
        first = self.results[0]
        return (
            f"{paraphrase_table_of(self.results)}\n{first.items:,} sentences, {first.references:,} references of "
            f"{first.data}; numbers, negation, names: % of the paraphrases that differ in one from their input"
        )


@dataclass(frozen=True)
class CanonicalEvaluation:
    """The results of paraphrasers on the same noisy sentences.

    Attributes:
        results: Those of each paraphraser.
    """

    results: list[CanonicalResults]

    def to_json(self) -> list[dict[str, Any]]:
        """The results as JSON values."""
        return [asdict(each) for each in self.results]

    def summary(self) -> str:
        """A table, what its columns mean, and examples."""
        first = self.results[0]
        lines = [
            canonical_table(self.results),
            f"{first.sentences:,} sentences of {first.data}; edits for each 100 characters or words of the clean "
            "sentence",
        ]
        if first.noise and first.noise["unchanged"]:
            lines.append(f"{first.noise['unchanged']:,} more, which noise did not change, are left out")
        for example in first.figures.examples[:SHOWN_EXAMPLES]:
            lines.append(f"\n  noisy   {example.noisy}\n  output  {example.output}\n  clean   {example.clean}")
        return "\n".join(lines)


def paraphrase_table_of(results: Sequence[ParaphraseResults], style: Literal["markdown", "text"] = "text") -> str:
    """Write a table: a row for each model and decoding; baselines are shown once for each set of sentences."""
    rows, shown, several = [], set(), len({own.model for own in results}) > 1
    for own in results:
        for row in own.rows:
            once = (row.name, own.data_checksum)
            if row.settings is None and row.seconds is None and row.name in (COPIED, REFERENCE):
                if once in shown:
                    continue
                shown.add(once)
                rows.append([row.name, *_cells(own, row)])
            else:
                # The only row of a file of paraphrases has the name of the file.
                named = several and row.name != own.model
                rows.append([f"{own.model}: {row.name}" if named else row.name, *_cells(own, row)])
    header = ["setting", "BLEU", "METEOR", "self-BLEU", "among", "score", *ERROR_NAMES.values(), "copies", "length"]
    header += ["template", "n", "without", "sentences/s"]
    # Columns without any figure are left out.
    kept = [place for place in range(len(header)) if any(row[place] for row in rows)]
    return write_table([header[place] for place in kept], [[row[place] for place in kept] for row in rows], style)


def _cells(results: ParaphraseResults, row: DecodingRow) -> list[str]:
    own = row.figures
    return [
        _number(own.bleu),
        percent(own.meteor),
        _number(own.self_bleu),
        _number(own.among_bleu),
        percent(own.score),
        *(percent(own.errors.get(name)) for name in ERROR_NAMES),
        percent(own.copies),
        f"{own.length_ratio:.2f}",
        percent(own.template_match),
        f"{own.outputs:.1f}" if own.among_bleu is not None else "",
        f"{own.without:,}" if own.without else "",
        f"{results.items / row.seconds:.1f}" if row.seconds else "",
    ]


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.1f}"


def canonical_table(results: Sequence[CanonicalResults], style: Literal["markdown", "text"] = "text") -> str:
    """Write a table: the noisy sentences, and the outputs of each model for them and for the clean ones."""
    rows, shown = [], set()
    for each in results:
        own = each.figures
        if each.data_checksum not in shown:
            shown.add(each.data_checksum)
            rows.append(["noisy input", *_closeness(own.before), "", ""])
        rows.append([each.model, *_closeness(own.after), percent(own.improved), percent(own.worse)])
        rows.append([f"{each.model}, of clean input", *_closeness(own.of_clean), "", ""])
    header = ["", "character edits %", "word edits %", "BLEU", "equal %", "improved %", "worse %"]
    return write_table(header, rows, style)


def _closeness(own: Closeness) -> list[str]:
    return [f"{own.characters:.1f}", f"{own.words:.1f}", f"{own.bleu:.1f}", percent(own.equal)]
