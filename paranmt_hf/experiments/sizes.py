"""`paranmt sizes`: how much encoders learn from how many pairs. PARAGRAM-PHRASE (arXiv:1511.08198), figure 1.

The pairs of each size are drawn by chance, or the first ones of the corpus, as PPDB has its best ones first; a smaller
size is a part of a larger one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import pyarrow as pa

from paranmt_hf.corpus.release import read_record, release_files
from paranmt_hf.corpus.sampling import Sample, numbered_pairs
from paranmt_hf.corpus.selection.filters import LengthLimit
from paranmt_hf.corpus.selection.run_filters import ReleaseRows
from paranmt_hf.errors import InputError
from paranmt_hf.evaluation.data_configs import SizesConfig
from paranmt_hf.experiments.experiment import Outcome, Part, Trials, run_experiment, write_sample
from paranmt_hf.util.optional import available
from paranmt_hf.util.progress import Progress
from paranmt_hf.util.tables import markdown_table, percent, text_table

PICTURE, TABLE = "sizes.png", "sizes.md"
_COLUMNS = ["reference", "translation", "reference_length", "translation_length"]


def compare_sizes(
    release: str | Path, out: str | Path, trials: Trials, config: SizesConfig | None = None
) -> tuple[Outcome, bool]:
    """Train models on more and more pairs of a release, and measure them.

    Args:
        release: The release.
        out: Folder for the outcome: `experiment.json`, a table and a picture.
        trials: Which models, how they are trained, and what they are measured on.
        config: How many pairs, and which.

    Returns:
        The outcome, and whether this call got it; it may have been there.
    """
    config, folder = config or SizesConfig(), Path(release)
    rows = ReleaseRows(release_files(folder))
    trials.check()
    identity = {
        **asdict(config),
        "files": dict(read_record(folder, ["default"]).configs["default"].files),
        **trials.identity,
    }

    def compare(work: Path) -> list[Part]:
        return list(_parts(rows, config, trials, work))

    return run_experiment(out, "sizes", identity, compare, _write)


def _parts(rows: ReleaseRows, config: SizesConfig, trials: Trials, work: Path) -> Iterator[Part]:
    left, tables = _draw(rows, config)
    if left < 2:
        raise InputError(
            f"the corpus has {left} pairs left of {rows.rows:,}, which is too few to train on; allow a larger "
            "--max-length"
        )
    for order, table in tables.items():
        for size in sorted({min(size, left) for size in config.sizes}):
            name = f"{order}-{size}"
            done = trials.run(work, name, write_sample(table.slice(0, size), work, name))
            yield Part(order, str(size), rows.rows, left, None, None, done)


def _draw(rows: ReleaseRows, config: SizesConfig) -> tuple[int, dict[str, pa.Table]]:
    """Give the number of pairs that the length limit leaves, and the pairs of the largest size in each order."""
    largest = max(config.sizes)
    limit = LengthLimit(None, config.max_length) if config.max_length is not None else None
    sample, first, taken, left = Sample(largest, config.draw_seed), list[pa.Table](), 0, 0
    with Progress("read", rows.rows, unit="pairs") as progress:
        for place, table in rows.tables(_COLUMNS):
            progress.advance_to(place + table.num_rows)
            if limit is not None and table.num_rows:
                table = table.filter(pa.array(limit.judge(table).kept))
            sentences = numbered_pairs(table)
            left += table.num_rows
            if "random" in config.orders:
                sample.add(sentences)
            if "given" in config.orders and taken < largest:
                first.append(sentences.slice(0, largest - taken))
                taken += first[-1].num_rows
    if not left:
        return 0, {}
    orders = {"given": lambda: pa.concat_tables(first), "random": sample.table}
    return left, {order: orders[order]() for order in config.orders}


def _rows(outcome: Outcome) -> tuple[list[str], list[list[str]]]:
    models = [trial.model for trial in outcome.parts[0].trials]
    measured = outcome.parts[0].sts is not None
    head = ["pairs", "order", *models, "mean"]
    rows = []
    for part in outcome.parts:
        figures = [*(percent(trial.pearson) for trial in part.trials), percent(part.mean)]
        if measured:
            figures += [*(percent(trial.sts) for trial in part.trials), percent(part.sts)]
        rows.append([f"{part.pairs:,}", part.group, *figures])
    return [*head, *(f"STS {name}" for name in [*models, "mean"] if measured)], rows


def table_of(outcome: Outcome) -> str:
    """Write the table for a terminal: Pearson's r times 100 by number of pairs, order and model."""
    return text_table(*_rows(outcome))


def _write(outcome: Outcome, folder: Path) -> None:
    said = "Pearson's r times 100 on the development set, by the number of pairs that the models learned from."
    if outcome.parts[0].sts is not None:
        said += " STS: mean over the STS sets."
    (folder / TABLE).write_text(f"{said}\n\n{markdown_table(*_rows(outcome))}\n", encoding="utf8")
    plot_sizes(outcome, folder / PICTURE)


def plot_sizes(outcome: Outcome, path: Path) -> bool:
    """Draw a line for each model and order over the sizes, if matplotlib (extra `plots`) is there; returns whether.

    The lines are means over the STS sets where these were measured, else Pearson's r on the development set.
    """
    if not available("matplotlib"):
        return False
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.add_subplot()
    measured = outcome.parts[0].sts is not None
    orders = list(dict.fromkeys(part.group for part in outcome.parts))
    for number, trial in enumerate(outcome.parts[0].trials):
        for order in orders:
            trials = [part.trials[number] for part in outcome.parts if part.group == order]
            values = [100 * float(each.sts if each.sts is not None else each.pearson) for each in trials]
            label = trial.model if len(orders) == 1 else f"{trial.model}, {order}"
            style = "--" if order == "given" else "-"
            axes.plot([each.pairs for each in trials], values, style, marker="o", color=f"C{number}", label=label)
    axes.set(xscale="log", xlabel="training pairs")
    sizes = sorted({part.pairs for part in outcome.parts})
    axes.set_xticks(sizes, [f"{size:,}" for size in sizes])
    axes.minorticks_off()
    axes.set_ylabel("Pearson x 100, mean over STS sets" if measured else "Pearson x 100 on the development set")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    figure.savefig(path, dpi=120, metadata={"Software": None})
    return True
