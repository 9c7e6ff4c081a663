"""Search for settings: combinations of a grid are trained on a sample, and measured on scored pairs of phrases.

arXiv:1511.08198, section 4.2: every model is trained for 5 epochs on 100,000 pairs; the settings of the highest
Spearman's rho on similarities of phrases are then trained on all pairs for 10 epochs.
"""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from paranmt_hf.corpus.pairs import PairSelection
from paranmt_hf.encoders.config import EncoderConfig
from paranmt_hf.errors import InputError
from paranmt_hf.training.config import TrainConfig
from paranmt_hf.training.inputs import TrainingRun, resolve
from paranmt_hf.training.record import TRAINING_FILE
from paranmt_hf.training.train import Trained, train
from paranmt_hf.training.tuning.grid import Grid, Order, TuneConfig, apply
from paranmt_hf.training.tuning.trials import (
    OPTIONS,
    RECORD,
    TABLE,
    Trials,
    TuneRecord,
    as_options,
    as_text,
    as_tsv,
    holds_trials,
    read_tune,
)
from paranmt_hf.util.files import write_bytes, writing
from paranmt_hf.util.records import as_json
from paranmt_hf.util.run import is_free, put_in_place, result_folder, work_folder
from paranmt_hf.util.work import finished, keep_identity, locked, remove, remove_leftover
from paranmt_hf.version import __version__

logger = logging.getLogger(__name__)
COMMAND = "tune"


@dataclass(frozen=True)
class Tuned:
    """The outcome of a search.

    Attributes:
        folder: Where it is.
        record: The trials.
        encoder: The best encoder settings.
        config: The best training settings, with the final number of epochs.
        fresh: Whether this call searched; the outcome may have been there already.
        final: The encoder that was trained with them, if that was asked for.
    """

    folder: Path
    record: TuneRecord
    encoder: EncoderConfig
    config: TrainConfig
    fresh: bool
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
    tuning, out = tuning or TuneConfig(), result_folder(out)
    final = _final_folder(final, out) if final is not None else None
    if config.patience is not None:
        raise InputError("patience counts evaluations on a development set, and a search makes none; leave it out")
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise InputError("a search runs as one process; start it without accelerate launch or torchrun")
    order = Order(grid, tuning)
    sources = [data] if isinstance(data, str | Path) else list(data)
    whole = resolve(sources, encoder, config, _sample_of(selection, tuning), development=development, exclude=exclude)
    record = finished(out, _identity(whole, order), read_tune, lambda record: record.identity, made="found")
    fresh = record is None
    if record is None:
        record = _search(whole, encoder, order, out, _options(sources, selection, exclude))
    else:
        remove_leftover(out, COMMAND)
    best_encoder, best_config = _best(record, encoder, config, tuning)
    trained = None
    if final is not None:
        logger.info(f"training on all pairs for {best_config.epochs} epochs")
        trained = train(sources, final, encoder=best_encoder, config=best_config, selection=selection, exclude=exclude)
    return Tuned(out, record, best_encoder, best_config, fresh, trained)


def _final_folder(final: str | Path, out: Path) -> Path:
    """Where the final encoder goes; refused before the search where it cannot go there."""
    folder = result_folder(final)
    if folder == out or not (is_free(folder) or (folder / TRAINING_FILE).is_file()):
        what = "is the folder of the outcome" if folder == out else "exists and is no encoder of this program"
        raise InputError(f"--final {final} {what}; choose another place for the encoder")
    return folder


def _sample_of(selection: PairSelection, tuning: TuneConfig) -> PairSelection:
    """Take fewer of the chosen pairs: the first ones where they are the first, else some by chance."""
    most = tuning.tune_pairs
    if selection.first_pairs is not None:
        return replace(selection, first_pairs=min(most, selection.first_pairs))
    return replace(selection, max_pairs=min(most, selection.max_pairs or most))


def _search(
    whole: TrainingRun, encoder: EncoderConfig, order: Order, out: Path, options: Mapping[str, Any]
) -> TuneRecord:
    """Run the trials and put the outcome into place.

    Args:
        whole: The run that the trials vary.
        encoder: Its encoder settings as they were given.
        order: Which combinations are tried.
        out: Folder of the outcome.
        options: What `best.yaml` holds beside the settings.
    """
    work, identity = work_folder(out), _identity(whole, order)
    with writing(out.parent):
        out.parent.mkdir(parents=True, exist_ok=True)
    with locked(work, COMMAND, worth=holds_trials):
        keep_identity(work, identity, worth=holds_trials, doing="search")
        trials = Trials(whole, encoder, order, work)
        trials.run()
        record = TuneRecord(
            identity, trials.pairs, len(order.grid), trials.refused, trials.refusal, trials.done, __version__
        )
        best = as_options(*_best(record, encoder, whole.config, order.config), options)
        folder = work / "result"
        shutil.rmtree(folder, ignore_errors=True)
        with writing(out):
            folder.mkdir()
            for name, text in ((OPTIONS, best), (TABLE, as_tsv(record)), (RECORD, as_text(record))):
                write_bytes(folder / name, text.encode())
            put_in_place(folder, out)
        remove(work)
    return record


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
