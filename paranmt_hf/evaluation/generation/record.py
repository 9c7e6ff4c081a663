"""What an evaluation of paraphrasers writes down, and its tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from paranmt_hf.evaluation.generation.canonical import Canonical, Closeness
from paranmt_hf.evaluation.generation.figures import Figures
from paranmt_hf.util.records import to_json
from paranmt_hf.util.tables import percent, write_table

# Kinds of errors, as tables call them.
ERROR_NAMES = {"number_mismatch": "numbers", "negation_mismatch": "negation", "name_mismatch": "names"}


@dataclass(frozen=True)
class Row:
    """Figures of one setting.

    Attributes:
        name: Name of the setting; `copied input` and `first reference` are no settings.
        settings: What differs from the defaults of a search; None where nothing was searched.
        seconds: Time of the search; None where there was none.
        figures: The figures.
    """

    name: str
    settings: dict[str, Any] | None
    seconds: float | None
    figures: Figures


@dataclass(frozen=True)
class ParaphrasesRecord:
    """The result of a paraphraser, or of a file of paraphrases, as `--json` has it.

    Attributes:
        model: Its name.
        weights: Checksum of its weights, or of the file.
        data: Name of the data.
        data_checksum: Checksum of the sentences and their references.
        items: Number of sentences.
        references: Number of references.
        seed: What was drawn with it: the sentences, and samples.
        settings: How the sentences were chosen.
        variants: Which BLEU and METEOR, and the encoder behind the paraphrase score.
        rows: The figures, by setting.
        examples: Of the first sentences: source, references and, by setting, the outputs.
        versions: Versions of this package and of the libraries.
        command: The command, without folders.
        kind: What the record is about.
    """

    model: str
    weights: str | None
    data: str
    data_checksum: str
    items: int
    references: int
    seed: int
    settings: dict[str, Any]
    variants: dict[str, Any]
    rows: list[Row]
    examples: list[dict[str, Any]]
    versions: dict[str, str]
    command: str
    kind: Literal["paraphrases"] = "paraphrases"

    def to_json(self) -> Any:  # noqa: ANN401 - JSON values
        """The record as JSON values."""
        return to_json(self)


@dataclass(frozen=True)
class CanonicalRecord:
    """The result of a paraphraser on noisy sentences, as `--json` has it.

    Attributes:
        model: Its name.
        weights: Checksum of its weights.
        data: Name of the data.
        data_checksum: Checksum of the noisy and the clean sentences.
        sentences: Their number.
        noise: Rate of the noise and how often each kind was made; None where the noisy sentences were given.
        seed: What was drawn with it.
        settings: How the sentences were chosen, and how the model searched.
        figures: The figures.
        versions: Versions of this package and of the libraries.
        command: The command, without folders.
        kind: What the record is about.
    """

    model: str
    weights: str | None
    data: str
    data_checksum: str
    sentences: int
    noise: dict[str, Any] | None
    seed: int
    settings: dict[str, Any]
    figures: Canonical
    versions: dict[str, str]
    command: str
    kind: Literal["canonical"] = "canonical"

    def to_json(self) -> Any:  # noqa: ANN401 - JSON values
        """The record as JSON values."""
        return to_json(self)


def compare_paraphrases(records: Sequence[ParaphrasesRecord], style: Literal["markdown", "text"] = "text") -> str:
    """Write a table: a row for each model and setting; what is no setting stands once for each set of sentences."""
    rows, said, several = [], set(), len({record.model for record in records}) > 1
    for record in records:
        for row in record.rows:
            once = (row.name, record.data_checksum)
            if row.settings is None and row.seconds is None and row.name in (COPIED, REFERENCE):
                if once in said:
                    continue
                said.add(once)
                rows.append([row.name, *_cells(record, row)])
            else:
                # A file of paraphrases is its own setting.
                named = several and row.name != record.model
                rows.append([f"{record.model}: {row.name}" if named else row.name, *_cells(record, row)])
    header = ["setting", "BLEU", "METEOR", "self-BLEU", "among", "score", *ERROR_NAMES.values(), "copies", "length"]
    header += ["template", "n", "without", "sentences/s"]
    # Columns without a figure say nothing.
    kept = [place for place in range(len(header)) if any(row[place] for row in rows)]
    return write_table([header[place] for place in kept], [[row[place] for place in kept] for row in rows], style)


COPIED, REFERENCE = "copied input", "first reference"


def _cells(record: ParaphrasesRecord, row: Row) -> list[str]:
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
        f"{record.items / row.seconds:.1f}" if row.seconds else "",
    ]


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.1f}"


def compare_canonical(records: Sequence[CanonicalRecord], style: Literal["markdown", "text"] = "text") -> str:
    """Write a table: the noisy sentences, and what each model made of them and of the clean ones."""
    rows, said = [], set()
    for record in records:
        own = record.figures
        if record.data_checksum not in said:
            said.add(record.data_checksum)
            rows.append(["noisy input", *_closeness(own.before), "", ""])
        rows.append([record.model, *_closeness(own.after), percent(own.improved), percent(own.worse)])
        rows.append([f"{record.model}, of clean input", *_closeness(own.of_clean), "", ""])
    header = ["", "character edits %", "word edits %", "BLEU", "equal %", "improved %", "worse %"]
    return write_table(header, rows, style)


def _closeness(own: Closeness) -> list[str]:
    return [f"{own.characters:.1f}", f"{own.words:.1f}", f"{own.bleu:.1f}", percent(own.equal)]
