"""Search for settings: combinations of a grid are trained on a sample, and evaluated on scored pairs of phrases.

arXiv:1511.08198, section 4.2: every model is trained for 5 epochs on 100,000 pairs. The settings with the highest
Spearman's rho on similarities of phrases are then trained on all pairs for 10 epochs. Section 4.4: for a supervised
task, the settings that are best on its development items are chosen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from paranmt_hf.errors import InputError
from paranmt_hf.supervised.config import TaskName
from paranmt_hf.tuning.grid import SUPERVISE, TRAIN, read_grid
from paranmt_hf.tuning.objectives import TRIAL_PAIRS, PairObjective, TaskObjective
from paranmt_hf.tuning.record import OPTIONS, TABLE, TuneConfig, TuneRecord, TuneResult
from paranmt_hf.util.files import listed, write_bytes
from paranmt_hf.util.optional import check_installed
from paranmt_hf.util.processes import process_count
from paranmt_hf.util.records import as_json, made_with
from paranmt_hf.util.run import result_folder, run
from paranmt_hf.util.yaml_files import as_yaml


def tune(
    data: str | Path | Sequence[str | Path],
    out: str | Path,
    *,
    columns: Mapping[str, str] | None = None,
    development: str | Path | None = None,
    grid: Mapping[str, Sequence[Any]] | Sequence[str],
    task: TaskName | None = None,
    training: Mapping[str, Any] | None = None,
    tuning: TuneConfig | None = None,
    exclude: str | Path | None = None,
) -> TuneResult:
    """Search for the settings of an encoder: train each on a sample, keep the best (arXiv:1511.08198, section 4.2).

    With `task`, search for those of a supervised task (section 4.4). After an interruption the same command continues
    with the trial that was running.

    Args:
        data: Pairs, as in `paranmt train`; with `task` the folder of the task, as in `paranmt supervise`.
        out: Folder of the outcome: `tune.json`, a table, and `best.yaml` for `--config` of the command that trains, of
            pairs for 10 epochs over all of them (section 4.2).
        columns: Columns of `data` with other names: reference=sentence1,translation=sentence2,label=is_duplicate.
        development: Scored pairs of phrases whose similarities decide, by Spearman's rho: a TSV or Parquet file with
            sentence1, sentence2 and score, or a folder with STSBenchmark (its STS 2017 pairs). The development items
            of a `task` decide without it.
        grid: Settings and their values, lambda-w=0,1e-5 batch-size=25,50; YAML files with a setting and a list of its
            values on each line; grids of arXiv:1511.08198 for a kind of encoder: word, projection, dan, rnn, irnn,
            plstm; for a task these train from scratch, and regularised, regularised-word and fixed start from an
            encoder. Later values of a setting replace earlier ones.
        task: A supervised task, as in `paranmt supervise`.
        training: Other options of `paranmt train`, such as `model=lstm,dimension=100`; by default 5 `epochs`
            (section 4.2). With `task` those of `paranmt supervise`, such as `init-from=models/word`.
        tuning: Settings of the search.
        exclude: Folder with STS sets: leave out pairs with their sentences.
    """
    tuning, out = tuning or TuneConfig(), result_folder(out, TuneRecord, sources=listed(data))
    if process_count() > 1:
        raise InputError("a search runs as one process; start it without accelerate launch or torchrun")
    check_installed("optuna", "tune")
    fixed, searched = read_grid(grid, TRAIN if task is None else SUPERVISE)
    objective: PairObjective | TaskObjective
    if task is None:
        most = tuning.tune_pairs or TRIAL_PAIRS
        objective = PairObjective(data, columns, fixed, training, development, exclude, most)
    else:
        of_pairs = {"columns": columns, "development": development, "exclude": exclude}
        for name, value in {**of_pairs, "tune_pairs": tuning.tune_pairs}.items():
            if value is not None:
                raise InputError(f"`{name}` is for pairs; leave it out, or `task`", option=name)
        objective = TaskObjective(data, task, searched, fixed, training)
    # The order of the names is part of the identity, because it is that of the table's columns.
    search = {**asdict(tuning), "names": searched.names}
    identity = as_json({**objective.identity, "grid": searched.axes, "search": search})

    def make(work: Path, folder: Path) -> TuneRecord:
        from paranmt_hf.tuning.study import Search

        items = objective.begin(work)
        trials, refusals = Search(objective, searched, tuning, work).run()
        record = TuneRecord(
            settings=identity,
            command=objective.command,
            measure=objective.measure,
            items=items,
            combinations=searched.size,
            refusals=refusals,
            trials=trials,
            **made_with("torch", "optuna"),
        )
        options: dict[str, Any] = {}
        for name, value in objective.options(record.best.settings).items():
            options[name.replace("_", "-")] = value
        heading = f"# paranmt {objective.command} --config {OPTIONS} --out FOLDER\n"
        write_bytes(folder / OPTIONS, f"{heading}{as_yaml(options)}".encode())
        write_bytes(folder / TABLE, record.as_tsv().encode())
        return record

    return run(out, identity, TuneRecord, make, result=TuneResult, command="tune", holds=holds_trials)


def holds_trials(work: Path) -> bool:
    """Whether a work folder holds a trial with a score, or one that trained for a while; failed ones do not count."""
    from paranmt_hf.tuning.study import JOURNAL, RUNNING, TrialState, open_study

    if any((work / RUNNING).glob("**/checkpoint*")):
        return True
    return (work / JOURNAL).exists() and bool(open_study(work).get_trials(states=[TrialState.COMPLETE]))
