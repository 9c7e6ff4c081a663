"""`paranmt folds`: which tenth of a corpus, by which score, makes the best encoders. ParaNMT-50M, table 5.

All rows are ranked by a score and cut into folds of equal size, of which fold 1 has the lowest scores; then the length
limit drops rows, and a sample of each fold trains the models. What is compared is the mean of the models.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from paranmt_hf.corpus.release import read_record, release_files
from paranmt_hf.corpus.sampling import Sample, numbered_pairs
from paranmt_hf.corpus.schema import COLUMNS
from paranmt_hf.corpus.selection.filters import LengthLimit, numbers
from paranmt_hf.corpus.selection.ranks import Tenths
from paranmt_hf.corpus.selection.run_filters import ReleaseRows
from paranmt_hf.errors import InputError
from paranmt_hf.evaluation.data_configs import FoldsConfig
from paranmt_hf.experiments.experiment import (
    Outcome,
    Part,
    Trials,
    run_experiment,
    write_sample,
)
from paranmt_hf.util.optional import available
from paranmt_hf.util.progress import Progress
from paranmt_hf.util.tables import markdown_table, percent, text_table

PICTURE, TABLE = "folds.png", "folds.md"


@dataclass
class _Fold:
    """A fold while the rows go past."""

    sample: Sample
    rows: int = 0
    low: float = np.inf
    high: float = -np.inf


def compare_folds(
    release: str | Path, out: str | Path, trials: Trials, config: FoldsConfig | None = None
) -> tuple[Outcome, bool]:
    """Train models on a sample of each fold of a release by each score, and measure them.

    Args:
        release: The release.
        out: Folder for the outcome: `experiment.json`, a table and a picture.
        trials: Which models, and how they are trained; the paper's table 5 takes one epoch.
        config: How the folds are made.

    Returns:
        The outcome, and whether this call got it; it may have been there.
    """
    config, folder = config or FoldsConfig(), Path(release)
    rows = ReleaseRows(release_files(folder))
    _check_scores(rows, config, folder)
    trials.check()
    identity = {
        **asdict(config),
        "files": dict(read_record(folder, ["default"]).configs["default"].files),
        **trials.identity,
    }

    def compare(work: Path) -> list[Part]:
        return [part for score in config.scores for part in _parts(rows, score, config, trials, work)]

    return run_experiment(out, "folds", identity, compare, _write)


def _check_scores(rows: ReleaseRows, config: FoldsConfig, folder: Path) -> None:
    commands = {column.name: column.command for column in COLUMNS}
    for score in config.scores:
        if score not in rows.schema.names:
            made = f"`{commands[score]}` makes it" if score in commands else f"it has {', '.join(rows.schema.names)}"
            raise InputError(
                f"{folder} has no column {score}, by which it would be ranked; {made}, or leave it out of --scores"
            )
        kind = rows.schema.field(score).type
        if not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
            raise InputError(f"the column {score} of {folder} holds no numbers, so its rows have no ranks")


def _parts(rows: ReleaseRows, score: str, config: FoldsConfig, trials: Trials, work: Path) -> Iterator[Part]:
    folds = _draw(rows, score, config)
    for number, fold in enumerate(folds, 1):
        if fold.sample.seen < 2:
            raise InputError(
                f"fold {number} of {len(folds)} by {score} has {fold.sample.seen} pairs left of {fold.rows:,}, "
                "which is too few to train on; take fewer folds or a larger --max-length"
            )
    for number, fold in enumerate(folds, 1):
        name = f"{score}-{number}"
        done = trials.run(work, name, write_sample(fold.sample.table(), work, name))
        yield Part(score, str(number), fold.rows, fold.sample.seen, fold.low, fold.high, done)


def _draw(rows: ReleaseRows, score: str, config: FoldsConfig) -> list[_Fold]:
    """Cut all rows into folds, and draw a sample of each."""
    ranks = Tenths(score, [1], config.folds)

    def ranked(columns: list[str]) -> Iterator[pa.Table]:
        # A row without a value has no rank.
        for _, table in rows.tables([score, *columns]):
            yield table.filter(pa.array(numbers(table[score])[1]))

    ranks.prepare(lambda: ranked([]), Path())
    limit = LengthLimit(None, config.max_length) if config.max_length is not None else None
    folds = [_Fold(Sample(config.sample, config.draw_seed)) for _ in range(config.folds)]
    seen = 0
    with Progress(f"folds by {score}", rows.rows, unit="pairs") as progress:
        for table in ranked(["reference", "translation", "reference_length", "translation_length"]):
            values, parts = numbers(table[score])[0], ranks.part_of(table)
            short = limit.judge(table).kept if limit is not None else np.ones(table.num_rows, bool)
            sentences = numbered_pairs(table)
            # Parts count from 1.
            for number, fold in enumerate(folds, 1):
                inside = parts == number
                if not inside.any():
                    continue
                fold.rows += int(inside.sum())
                fold.low, fold.high = (
                    min(fold.low, float(values[inside].min())),
                    max(fold.high, float(values[inside].max())),
                )
                fold.sample.add(sentences.filter(pa.array(inside & short)))
            seen += table.num_rows
            progress.advance_to(seen)
    if not seen:
        raise InputError(f"no row has a {score}, so none has a rank; leave it out of --scores")
    return folds


def _rows(outcome: Outcome) -> tuple[list[str], list[list[str]]]:
    """The table: a row for each fold, and for each score the mean of the models."""
    scores = list(dict.fromkeys(part.group for part in outcome.parts))
    means = {(part.group, part.name): percent(part.mean) for part in outcome.parts}
    names = list(dict.fromkeys(part.name for part in outcome.parts))
    return ["fold", *scores], [[name, *(means.get((score, name), "") for score in scores)] for name in names]


def table_of(outcome: Outcome) -> str:
    """Write table 5 for a terminal: mean Pearson's r times 100 by fold and score; fold 1 has the lowest scores."""
    return text_table(*_rows(outcome))


def _details(outcome: Outcome) -> tuple[list[str], list[list[str]]]:
    models = [trial.model for trial in outcome.parts[0].trials]
    head = ["score", "fold", "from", "to", "rows", "left", "pairs", *models, "mean"]
    rows = [
        [
            *(part.group, part.name, f"{part.low:.4f}", f"{part.high:.4f}", f"{part.rows:,}", f"{part.left:,}"),
            f"{part.pairs:,}",
            *(percent(trial.pearson) for trial in part.trials),
            percent(part.mean),
        ]
        for part in outcome.parts
    ]
    return head, rows


def _write(outcome: Outcome, folder: Path) -> None:
    parts = [
        "Pearson's r times 100 on the development set, mean of the models; fold 1 has the lowest scores.",
        markdown_table(*_rows(outcome)),
        "Each model, and what each fold is:",
        markdown_table(*_details(outcome)),
    ]
    (folder / TABLE).write_text("\n\n".join(parts) + "\n", encoding="utf8")
    plot_folds(outcome, folder / PICTURE)


def plot_folds(outcome: Outcome, path: Path) -> bool:
    """Draw a line for each score over the folds, if matplotlib (extra `plots`) is there; returns whether it was."""
    if not available("matplotlib"):
        return False
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.add_subplot()
    for score in dict.fromkeys(part.group for part in outcome.parts):
        means = [100 * part.mean for part in outcome.parts if part.group == score]
        axes.plot(range(1, len(means) + 1), means, marker="o", label=score)
    axes.set(xlabel="fold, from the lowest scores to the highest", ylabel="Pearson x 100, mean of the models")
    axes.set_xticks(range(1, 1 + len({part.name for part in outcome.parts})))
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    figure.savefig(path, dpi=120, metadata={"Software": None})
    return True
