"""Search for settings: combinations of a grid are trained on a sample, and measured on scored pairs of phrases.

arXiv:1511.08198, section 4.2: every model is trained for 5 epochs on 100,000 pairs; the settings of the highest
Spearman's rho on similarities of phrases are then trained on all pairs for 10 epochs.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from paranmt_hf.corpus.pairs import PairSelection
from paranmt_hf.encoders.config import EncoderConfig
from paranmt_hf.errors import InputError
from paranmt_hf.training.config import TrainConfig
from paranmt_hf.training.inputs import TrainingRun, resolve
from paranmt_hf.training.record import TrainingRecord
from paranmt_hf.training.train import Trained, train
from paranmt_hf.training.tuning.grid import (
    Grid,
    Order,
    PaperGrid,
    TuneConfig,
    apply,
    parse_grid,
    read_grid,
    read_paper_grid,
)
from paranmt_hf.training.tuning.record import (
    OPTIONS,
    SHOWN_TRIALS,
    TABLE,
    TuneRecord,
    as_options,
    as_tsv,
    table_of,
)
from paranmt_hf.util.files import shown_path, write_bytes
from paranmt_hf.util.records import as_json, made_with
from paranmt_hf.util.run import Result, result_folder, run
from paranmt_hf.util.settings import Count, PythonOnly, values_for

logger = logging.getLogger(__name__)


@dataclass(frozen=True, repr=False)
class Tuned(Result[TuneRecord]):
    """The outcome of a search.

    Attributes:
        encoder: The best encoder settings.
        config: The best training settings, with the final number of epochs.
        final: The encoder that was trained with them, if that was asked for.
    """

    encoder: EncoderConfig = EncoderConfig()
    config: TrainConfig = TrainConfig()
    final: Trained | None = None

    def summary(self) -> str:
        """The best trials."""
        record, folder = self.record, shown_path(self.folder)
        lines = [table_of(record)]
        if len(record.trials) > SHOWN_TRIALS:
            lines.append(f"... and {len(record.trials) - SHOWN_TRIALS} more in {folder}/{TABLE}")
        lines.append(
            "Spearman x 100 on the development set; train, dev: mean of 2cos(g1,g2) - cos(n1,g1) - cos(n2,g2)"
        )
        seconds = sum(trial.seconds for trial in record.trials)
        tried = f"{len(record.trials)} of {record.combinations:,} combinations"
        lines.append(f"{tried}, {record.pairs:,} pairs, {seconds:,.0f} s")
        if record.refused:
            lines.append(f"{record.refused} more do not fit together, such as: {record.refusal}")
        best = f"paranmt train --config {folder}/{OPTIONS} --out FOLDER"
        lines.append(f"the best is trial {record.best.number}: {best}")
        if self.final is not None:
            pairs = self.final.record.history.pairs
            lines.append(f"{shown_path(self.final.folder)}: trained with it on {pairs:,} pairs")
        return "\n".join(lines)


def tune(
    data: str | Path | Sequence[str | Path],
    out: str | Path,
    *,
    development: str | Path,
    grid: Mapping[str, Sequence[Any]] | Sequence[str] = (),
    grid_file: str | Path | None = None,
    preset: str | None = None,
    training: Mapping[str, Any] | None = None,
    epochs: Count = 5,
    tuning: TuneConfig | None = None,
    selection: Annotated[PairSelection | None, PythonOnly] = None,
    exclude: str | Path | None = None,
    final: str | Path | None = None,
) -> Tuned:
    """Search for the settings of an encoder: train each on a sample, keep the best (arXiv:1511.08198, section 4.2).

    After an interruption the same command continues with the trial that was running.

    Args:
        data: Pairs, as of `paranmt train`.
        out: Folder of the outcome: `tune.json`, a table, and `best.yaml` for `paranmt train --config`.
        development: Scored pairs of phrases whose similarities decide, by Spearman's rho: a TSV or Parquet file with
            sentence1, sentence2 and score, or a folder with STSBenchmark (its STS 2017 pairs).
        grid: Settings and their values: lambda-w=0,1e-5 batch-size=25,50.
        grid_file: The same in YAML: a setting and a list of its values on each line.
        preset: Grid of arXiv:1511.08198 for a kind of encoder: word, projection, dan, rnn, irnn, plstm; the other
            grids change the values of single settings.
        training: Other options of `paranmt train`, such as `model=lstm,dimension=100`.
        epochs: Passes over the pairs of a trial (section 4.2).
        tuning: How the search goes.
        selection: Which pairs there are; trials get a sample of them.
        exclude: Folder with STS sets: leave out pairs with their sentences.
        final: Folder of an encoder that is trained with the best settings on all pairs.
    """
    fixed, searched = _grid_of(preset, grid_file, grid)
    given = values_for((EncoderConfig, TrainConfig), {**fixed, **(training or {})}, "training")
    encoder, config = EncoderConfig(**given[0]), TrainConfig(**{"epochs": epochs, **given[1]})
    selection, tuning, out = selection or PairSelection(), tuning or TuneConfig(), result_folder(out, TuneRecord)
    if final is not None and result_folder(final, TrainingRecord, option="final") == out:
        raise InputError(f"{final} is the folder of the outcome; choose another place", option="final")
    if config.patience is not None:
        raise InputError("patience counts evaluations on a development set, and a search makes none; leave it out")
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise InputError("a search runs as one process; start it without accelerate launch or torchrun")
    order = Order(searched, tuning)
    sources = [data] if isinstance(data, str | Path) else list(data)
    whole = resolve(sources, encoder, config, _sample_of(selection, tuning), development=development, exclude=exclude)
    identity = _identity(whole, order)
    # Imports torch.
    from paranmt_hf.training.tuning.trials import Trials, holds_trials

    def make(work: Path, folder: Path) -> TuneRecord:
        trials = Trials(whole, encoder, order, work)
        trials.run()
        record = TuneRecord(
            settings=identity,
            pairs=trials.pairs,
            combinations=len(order.grid),
            refused=trials.refused,
            refusal=trials.refusal,
            trials=trials.done,
            **made_with("torch"),
        )
        best = as_options(*_best(record, encoder, config, tuning), _options(sources, selection, exclude))
        write_bytes(folder / OPTIONS, best.encode())
        write_bytes(folder / TABLE, as_tsv(record).encode())
        return record

    found = run(out, identity, TuneRecord, make, result=Result, command="tune", holds=holds_trials)
    best_encoder, best_config = _best(found.record, encoder, config, tuning)
    trained = None
    if final is not None:
        logger.info(f"training on all pairs for {best_config.epochs} epochs")
        trained = train(sources, final, encoder=best_encoder, config=best_config, selection=selection, exclude=exclude)
    return Tuned(found.folder, found.record, found.fresh, best_encoder, best_config, trained)


def _grid_of(
    preset: str | None, file: str | Path | None, grid: Mapping[str, Sequence[Any]] | Sequence[str]
) -> tuple[dict[str, Any], Grid]:
    """The settings that a preset fixes, and the grid: that of the preset, changed by a file, changed by `grid`."""
    chosen = read_paper_grid(preset) if preset else PaperGrid({}, {})
    values = grid if isinstance(grid, Mapping) else parse_grid(grid)
    parts = [chosen.grid, read_grid(Path(file)) if file else {}, values]
    return dict(chosen.settings), Grid({name.replace("_", "-"): some for part in parts for name, some in part.items()})


def _sample_of(selection: PairSelection, tuning: TuneConfig) -> PairSelection:
    """Take fewer of the chosen pairs: the first ones where they are the first, else some by chance."""
    most = tuning.tune_pairs
    if selection.first_pairs is not None:
        return replace(selection, first_pairs=min(most, selection.first_pairs))
    return replace(selection, max_pairs=min(most, selection.max_pairs or most))


def _best(
    record: TuneRecord, encoder: EncoderConfig, config: TrainConfig, tuning: TuneConfig
) -> tuple[EncoderConfig, TrainConfig]:
    """The best settings, with the final number of epochs."""
    best_encoder, best_config = apply(record.best.settings, encoder, config)
    return best_encoder, replace(best_config, epochs=tuning.final_epochs)


def _identity(whole: TrainingRun, order: Order) -> dict[str, Any]:
    searched = {name: list(values) for name, values in order.grid.values.items()}
    # In another order of the names other combinations come first.
    search = {**asdict(order.config), "names": order.grid.names}
    return as_json({**whole.identity, "grid": searched, "search": search})


def _options(sources: Sequence[str | Path], selection: PairSelection, exclude: str | Path | None) -> dict[str, Any]:
    """Which pairs a run takes, as options."""
    usual = PairSelection()
    chosen = {name: value for name, value in asdict(selection).items() if value != getattr(usual, name)}
    left_out = {"exclude": os.fspath(exclude)} if exclude is not None else {}
    return {"data": [os.fspath(source) for source in sources], **chosen, **left_out}
