"""One stage over all shards of a folder.

What is done and what is not stands in the manifest alone, which only the process that started the job writes.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from paranmt_hf.corpus.jobs.engine import EngineConfig
from paranmt_hf.corpus.jobs.pool import Pool
from paranmt_hf.corpus.jobs.ray import run_on_ray
from paranmt_hf.corpus.jobs.shards import Done, Manifest, ShardRecord, Stage, Task, TaskReport, run_shard, sweep
from paranmt_hf.util.machine import threads_kept
from paranmt_hf.util.progress import Progress


def run_job(source: Manifest, folder: Path, stage: Stage, config: EngineConfig) -> Manifest:
    """Run a stage over every shard of a folder, continuing what is there.

    Args:
        source: Manifest of the input shards.
        folder: Folder of the output shards.
        stage: What to do to a shard.
        config: Where to do it.

    Returns:
        The manifest of the output, all shards done.
    """
    manifest = Manifest.open(folder, {**stage.identity, "input": source.checksum})
    sweep(folder)
    manifest.forget_damaged()
    rows = {name: shard.rows for name, shard in source.shards.items()}
    tasks = [
        Task(source.folder / name, folder / name, rows[name]) for name in sorted(rows) if name not in manifest.shards
    ]
    already = sum(rows.values()) - sum(task.rows for task in tasks)
    config = config.resolved()
    if tasks:
        with Progress(stage.label, sum(rows.values()), done=already, unit=stage.unit) as progress:
            running: dict[Path, int] = {}

            def report(task: Task, count: int) -> None:
                running[task.target] = count
                progress.advance_to(already + sum(running.values()))

            def done(task: Task, record: ShardRecord) -> None:
                manifest.shards[task.target.name] = record
                manifest.save()
                report(task, task.rows)

            _run(stage, tasks, config, report, done)
    if not manifest.complete:
        manifest.complete = True
        manifest.save()
    return manifest


def _run(stage: Stage, tasks: Sequence[Task], config: EngineConfig, report: TaskReport, done: Done) -> None:
    if config.engine == "ray":
        run_on_ray(stage, tasks, config, done)
    elif config.workers == 1 or len(tasks) == 1:
        # A stage sets the threads of its process; this one belongs to the caller.
        with threads_kept():
            for task in tasks:
                done(task, run_shard(stage, task, lambda count, task=task: report(task, count)))  # type: ignore[misc]
    else:
        Pool(stage, tasks, config, report, done).run()
