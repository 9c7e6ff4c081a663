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
from typing import Any

from paranmt_hf.corpus.pairs import PairSelection
from paranmt_hf.encoders.config import EncoderConfig
from paranmt_hf.errors import InputError
from paranmt_hf.training.config import TrainConfig
from paranmt_hf.training.inputs import resolve
from paranmt_hf.training.record import TrainingRecord
from paranmt_hf.training.train import Trained, train
from paranmt_hf.training.tuning.grid import Grid, Order, TuneConfig, apply
from paranmt_hf.training.tuning.trials import (
    OPTIONS,
    TABLE,
    Trials,
    TuneRecord,
    as_options,
    as_tsv,
    holds_trials,
)
from paranmt_hf.util.records import as_json, made_with
from paranmt_hf.util.run import Result, result_folder, run

logger = logging.getLogger(__name__)


@dataclass(frozen=True, repr=False)
class Tuned(Result[TuneRecord]):
    """The outcome of a search.

    Attributes:
        encoder: The best encoder settings.
        config: The best training settings, with the final number of epochs.
        final: The encoder that was trained with them, if there is one.
    """

    encoder: EncoderConfig
    config: TrainConfig
    final: Trained | None = None


def tune(
    data: str | Path | Sequence[str | Path],
    out: str | Path,
    grid: Grid | Mapping[str, Sequence[Any]],
    *,
    development: str | Path,
    encoder: EncoderConfig | None = None,
    config: TrainConfig | None = None,
    selection: PairSelection | None = None,
    tuning: TuneConfig | None = None,
    exclude: str | Path | None = None,
    final: str | Path | None = None,
) -> Tuned:
    """Search for the best settings, as arXiv:1511.08198, section 4.2, does.

    Killed at any moment and called again it goes on with the trial that was cut off.

    Args:
        data: As of `train`.
        out: Folder for the outcome: `tune.json`, a table, and `best.yaml` for `paranmt train --config`.
        grid: Settings and their values.
        development: Scored pairs whose similarities decide, by Spearman's rho; see `read_scored_pairs`.
        encoder: Settings of the encoder that are not searched.
        config: Settings of training that are not searched.
        selection: Which pairs there are; trials get a sample of these.
        tuning: How the search goes.
        exclude: Folder with STS sets; pairs with one of their sentences are left out.
        final: Folder of an encoder that is trained with the best settings on all pairs.
    """
    grid = grid if isinstance(grid, Grid) else Grid(grid)
    encoder, config, selection = encoder or EncoderConfig(), config or TrainConfig(), selection or PairSelection()
    tuning, out = tuning or TuneConfig(), result_folder(out, TuneRecord)
    if final is not None and result_folder(final, TrainingRecord, option="final") == out:
        raise InputError(f"{final} is the folder of the outcome; choose another place", option="final")
    if config.patience is not None:
        raise InputError("patience counts evaluations on a development set, and a search makes none; leave it out")
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise InputError("a search runs as one process; start it without accelerate launch or torchrun")
    order = Order(grid, tuning)
    sources = [data] if isinstance(data, str | Path) else list(data)
    whole = resolve(sources, encoder, config, _sample_of(selection, tuning), development=development, exclude=exclude)
    searched = {name: list(values) for name, values in order.grid.values.items()}
    # In another order of the names other combinations come first.
    search = {**asdict(order.config), "names": order.grid.names}
    settings = as_json({**whole.identity, "grid": searched, "search": search})
    options = _options(sources, selection, exclude)

    def make(work: Path, folder: Path) -> TuneRecord:
        trials = Trials(whole, encoder, order, work)
        trials.run()
        record = TuneRecord(
            settings=settings,
            pairs=trials.pairs,
            combinations=len(order.grid),
            refused=trials.refused,
            refusal=trials.refusal,
            trials=trials.done,
            **made_with("numpy", "torch"),
        )
        best = as_options(*_best(record, encoder, config, tuning), options)
        for name, text in ((OPTIONS, best), (TABLE, as_tsv(record))):
            (folder / name).write_text(text, encoding="utf8")
        return record

    tuned = run(
        out,
        settings,
        TuneRecord,
        make,
        result=lambda folder, record, fresh: Tuned(folder, record, fresh, *_best(record, encoder, config, tuning)),
        command="tune",
        holds=holds_trials,
    )
    if final is None:
        return tuned
    logger.info(f"training on all pairs for {tuned.config.epochs} epochs")
    trained = train(sources, final, encoder=tuned.encoder, config=tuned.config, selection=selection, exclude=exclude)
    return replace(tuned, final=trained)


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


def _options(sources: Sequence[str | Path], selection: PairSelection, exclude: str | Path | None) -> dict[str, Any]:
    """Which pairs a run takes, as options."""
    usual = PairSelection()
    chosen = {name: value for name, value in asdict(selection).items() if value != getattr(usual, name)}
    left_out = {"exclude": os.fspath(exclude)} if exclude is not None else {}
    return {"data": [os.fspath(source) for source in sources], **chosen, **left_out}
