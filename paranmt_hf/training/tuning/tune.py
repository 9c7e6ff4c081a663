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
from paranmt_hf.training.inputs import resolve
from paranmt_hf.training.record import TrainingRecord
from paranmt_hf.training.train import Trained, train
from paranmt_hf.training.tuning.grid import Grid, Order, Preset, TuneConfig, apply, parse_grid, read_grid, read_preset
from paranmt_hf.training.tuning.trials import (
    OPTIONS,
    SHOWN,
    TABLE,
    Trials,
    TuneRecord,
    as_options,
    as_tsv,
    holds_trials,
    table_of,
)
from paranmt_hf.util.files import shown_path
from paranmt_hf.util.records import as_json, made_with
from paranmt_hf.util.run import Result, result_folder, run
from paranmt_hf.util.settings import PythonOnly, values_for

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

    def summary(self) -> str:
        """The best trials, and how to train with the best settings."""
        record, folder = self.record, shown_path(self.folder)
        lines = [table_of(record)]
        if len(record.trials) > SHOWN:
            lines.append(f"... and {len(record.trials) - SHOWN} more in {folder}/{TABLE}")
        lines.append(
            "Spearman x 100 on the development set; train, dev: mean of 2 cos(g1,g2) - cos(n1,g1) - cos(n2,g2)"
        )
        counts = f"{len(record.trials)} of {record.combinations:,} combinations, {record.pairs:,} pairs"
        lines.append(f"{counts}, {sum(trial.seconds for trial in record.trials):,.0f} s")
        if record.refused:
            lines.append(f"{record.refused} more do not fit together, such as: {record.refusal}")
        best = f"the best is trial {record.best.number}"
        lines.append(f"{best}: paranmt train --config {folder}/{OPTIONS} --out FOLDER")
        if self.final is not None:
            pairs = self.final.record.history.pairs
            lines.append(f"{shown_path(self.final.folder)}: trained with it on {pairs:,} pairs")
        return "\n".join(lines)


def tune(
    data: str | Path | Sequence[str | Path],
    out: str | Path,
    grid: Grid | Mapping[str, Sequence[Any]] | Sequence[str] | None = None,
    *,
    development: str | Path,
    preset: str | None = None,
    grid_file: str | Path | None = None,
    settings: Mapping[str, Any] | None = None,
    exclude: str | Path | None = None,
    final: str | Path | None = None,
    tuning: TuneConfig | None = None,
    encoder: Annotated[EncoderConfig | None, PythonOnly] = None,
    config: Annotated[TrainConfig | None, PythonOnly] = None,
    selection: Annotated[PairSelection | None, PythonOnly] = None,
) -> Tuned:
    """Search for the settings of an encoder: train each on a sample of the pairs, and keep the best.

    The search is that of arXiv:1511.08198, section 4.2. After an interruption the same command continues with the
    trial that was interrupted.

    Args:
        data: Pairs, as of `paranmt train`.
        out: Folder of the outcome: `tune.json`, a table, and `best.yaml` for `paranmt train --config`.
        grid: Settings and their values: lambda-w=0,1e-5 batch-size=25,50; they replace those of `grid_file` and
            `preset`.
        development: Scored pairs whose similarities decide, by Spearman's rho: `sample`, a TSV or Parquet file with
            sentence1, sentence2 and score, or a folder with STSBenchmark (its STS 2017 pairs).
        preset: The grid of arXiv:1511.08198 for a kind of encoder: word, projection, dan, rnn, irnn or plstm.
        grid_file: A grid in YAML: a setting and a list of values on each line.
        settings: Settings that are not searched, as options of `paranmt train`: model=dan,dimension=25,max-length=30.
        exclude: Folder with STS sets: leave out pairs with their sentences.
        final: Train the best settings on all pairs; folder of the encoder.
        tuning: How the search goes.
        encoder: Settings of the encoder that are not searched.
        config: Settings of training that are not searched.
        selection: Which pairs there are; trials get a sample of these.
    """
    chosen = read_preset(preset) if preset is not None else Preset({}, {})
    if not isinstance(grid, Grid):
        words = grid if isinstance(grid, Mapping) else parse_grid(grid or [])
        parts = [chosen.grid, read_grid(Path(grid_file)) if grid_file is not None else {}, words]
        grid = Grid({str(name).replace("_", "-"): values for part in parts for name, values in part.items()})
    given = {str(name).replace("_", "-"): value for name, value in {**chosen.settings, **(settings or {})}.items()}
    own = values_for([EncoderConfig, TrainConfig, PairSelection], given, "settings")
    encoder = replace(encoder or EncoderConfig(), **own[0])
    config = replace(config or TrainConfig(), **own[1])
    selection = replace(selection or PairSelection(), **own[2])
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
    identity = as_json({**whole.identity, "grid": searched, "search": search})
    options = _options(sources, selection, exclude)

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
            **made_with("numpy", "torch"),
        )
        best = as_options(*_best(record, encoder, config, tuning), options)
        for name, text in ((OPTIONS, best), (TABLE, as_tsv(record))):
            (folder / name).write_text(text, encoding="utf8")
        return record

    tuned = run(
        out,
        identity,
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
