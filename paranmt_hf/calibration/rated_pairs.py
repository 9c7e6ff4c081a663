"""Read rated pairs: pairs of sentences with labels, with scores, or with the answers of annotators."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from paranmt_hf.corpus.reading.arrow_tables import is_saved_dataset
from paranmt_hf.corpus.reading.formats import open_table
from paranmt_hf.corpus.reading.labels import LABEL, UNLABELLED
from paranmt_hf.corpus.reading.pair_columns import WantedColumns, check_given, unknown_columns, usual_labels
from paranmt_hf.corpus.reading.pair_files import open_pairs
from paranmt_hf.corpus.reading.readers import Report
from paranmt_hf.corpus.release.record import RELEASE_RECORD
from paranmt_hf.corpus.release.schema import SIDES
from paranmt_hf.encoders.calibration import CalibrationData
from paranmt_hf.errors import InputError
from paranmt_hf.evaluation.pair_file import SCORES, by_spelling
from paranmt_hf.evaluation.pair_set import StsSet
from paranmt_hf.evaluation.sts_data import read_scored_pairs
from paranmt_hf.hub.repository import ASSETS
from paranmt_hf.text.languages import ENGLISH
from paranmt_hf.util.files import source_name

# The rated pairs that the package carries, by language (ISO 639-1).
PAIRS = {code: ASSETS / "calibration" / f"pairs.{code}.tsv" for code in ("de", "fr", "es")}
PAIRS[ENGLISH] = ASSETS / "calibration" / "pairs.tsv"
STRENGTH = "strength"  # Column that only `paranmt annotate export` writes: how strongly two sentences paraphrase


@dataclass(frozen=True)
class RatedPairs:
    """Pairs of sentences of one source, and whether each is a paraphrase.

    Attributes:
        name: Name of the file or folder.
        left: The first sentences [pair].
        right: The second sentences [pair].
        positive: Whether each pair is a paraphrase [pair], bool.
        left_out: Number of rows that were left out, by reason.
    """

    name: str
    left: list[str]
    right: list[str]
    positive: np.ndarray
    left_out: dict[str, int] = field(default_factory=dict)

    @property
    def stated(self) -> CalibrationData:
        """What the record of a calibration says about these pairs."""
        checksum = StsSet("", self.left, self.right, self.positive.astype(float)).checksum
        return CalibrationData(self.name, checksum, len(self.left), int(self.positive.sum()), self.left_out)


def read_rated_pairs(source: str | Path, positive: float, columns: Mapping[str, str] | None = None) -> RatedPairs:
    """Read the rated pairs of one source, as `calibrate` takes them.

    Args:
        source: File or folder.
        positive: The smallest score of a paraphrase, where the source has scores and no labels.
        columns: Names of the source's columns, by the names that are expected.
    """
    path = Path(source).expanduser()
    name = "the pairs of paranmt-hf" if source in PAIRS.values() else source_name(source)
    names = () if path.is_dir() or not path.exists() else open_table(path, (columns or {}).values()).names
    if STRENGTH in names:
        return _annotated(name, path, positive)
    released = (path / RELEASE_RECORD).is_file() or is_saved_dataset(path)
    if released or columns or LABEL in names:
        return _labelled(name, path, check_given(columns))
    if usual_labels(names) and not by_spelling(names).keys() & {*SCORES} - {LABEL}:
        raise unknown_columns(path, names, ["score", LABEL])
    pairs = read_scored_pairs(source)
    return RatedPairs(name, pairs.left, pairs.right, pairs.gold >= positive)


def _labelled(name: str, path: Path, columns: Mapping[str, str]) -> RatedPairs:
    """Read pairs with labels; rows without a label, or without text on a side, are counted and left out."""
    report = Report()
    opened = open_pairs(str(path), WantedColumns(columns))
    table = pa.concat_tables(opened.tables(report))
    if LABEL not in table.column_names:
        raise InputError(
            f"{path} has no column {LABEL}; name the one that says which pairs are paraphrases: `columns` label=NAME",
            path=path,
            option="columns",
        )
    labelled = table.select([*SIDES, LABEL]).filter(table[LABEL].is_valid())
    whole = labelled.drop_null()
    left_out = dict(report.dropped)
    left_out |= {UNLABELLED: len(table) - len(labelled), "without text on a side": len(labelled) - len(whole)}
    left, right = (whole[side].to_pylist() for side in SIDES)
    counted = {reason: count for reason, count in left_out.items() if count}
    return RatedPairs(name, left, right, np.asarray(whole[LABEL]) == 1, counted)


def _annotated(name: str, path: Path, positive: float) -> RatedPairs:
    """Read pairs that `paranmt annotate export` wrote, by the mean strength over annotators.

    A mean of `positive` or more makes a pair a paraphrase.
    """
    try:
        table = csv.read_csv(path, parse_options=csv.ParseOptions(newlines_in_values=True))
        table = table.filter(table[STRENGTH].is_valid())
        mean = table.group_by(["sample", "item", *SIDES]).aggregate([(STRENGTH, "mean")])
    except (OSError, KeyError, pa.ArrowException) as error:
        raise InputError(
            f"cannot read {path}: {error}; expected what `paranmt annotate export` writes", path=path
        ) from None
    ordered = mean.sort_by([("sample", "ascending"), ("item", "ascending")])
    # Remove the mark that the export puts before a text which a spreadsheet would read as a formula.
    texts = [pc.replace_substring_regex(ordered[side].cast(pa.string()), "^'", "") for side in SIDES]
    left, right = (text.to_pylist() for text in texts)
    return RatedPairs(name, left, right, np.asarray(ordered[f"{STRENGTH}_mean"]) >= positive)
