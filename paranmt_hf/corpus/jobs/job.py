"""One stage over all shards of a folder.

The manifest alone says what is done; only the process that started the job writes it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from paranmt_hf.corpus.jobs.engine import EngineConfig
from paranmt_hf.corpus.jobs.pool import Pool
from paranmt_hf.corpus.jobs.shards import Done, Manifest, ShardRecord, Stage, Task, TaskReport, run_shard
from paranmt_hf.errors import InputError
from paranmt_hf.util.files import sweep
from paranmt_hf.util.machine import threads_kept
from paranmt_hf.util.optional import require
from paranmt_hf.util.progress import Progress
from paranmt_hf.util.wording import counted

# Counted for each shard; the loss of a node counts as well as a worker that dies of the shard.
RAY_RETRIES = 10


def run_job(source: Manifest, folder: Path, stage: Stage, config: EngineConfig) -> Manifest:
    """Run a stage over every shard of `source`, continuing the work in `folder`; returns its complete manifest."""
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
    if config.kind == "ray":
        run_on_ray(stage, tasks, config, done)
    elif config.workers == 1 or len(tasks) == 1:
        # A stage sets the threads of its process; this one belongs to the caller.
        with threads_kept():
            for task in tasks:
                done(task, run_shard(stage, task, lambda count, task=task: report(task, count)))  # type: ignore[misc]
    else:
        Pool(stage, tasks, config, report, done).run()


def run_on_ray(stage: Stage, tasks: Sequence[Task], config: EngineConfig, done: Done) -> None:
    """Run shards as Ray tasks; Ray reassigns a shard if a worker or a node is lost.

    All nodes must see the folders under the same paths, and have this package installed. The cluster is the one that
    `RAY_ADDRESS` names, else a new one on this machine.
    """
    ray = require("ray", "ray")
    if not ray.is_initialized():
        ray.init(address=os.environ.get("RAY_ADDRESS"), log_to_driver=False, include_dashboard=False)

    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    if not any(node.get("CPU", 0) >= config.threads and node.get("GPU", 0) >= config.gpus for node in nodes):
        raise InputError(
            f"no node of the Ray cluster has {counted(config.threads, 'core')} and {counted(config.gpus, 'GPU')} for "
            "a worker: lower `threads` or `gpus`"
        )

    # A worker process that Ray uses again keeps the loaded stage, so a model is loaded once in each, not per shard.
    @ray.remote(num_cpus=config.threads, num_gpus=config.gpus, max_retries=RAY_RETRIES)
    def remote(stage: Stage, task: Task) -> ShardRecord:
        return run_shard(stage, task, lambda count: None)

    handle = ray.put(stage)
    running = {remote.remote(handle, task): task for task in tasks}
    while running:
        (result,), _ = ray.wait(list(running), num_returns=1)
        task = running.pop(result)
        try:
            record = ray.get(result)
        except ray.exceptions.RayTaskError as error:
            cause = error.cause if isinstance(error.cause, Exception) else error
            if isinstance(cause, InputError):
                raise cause from None
            raise RuntimeError(f"{task.source}: {type(cause).__name__}: {cause}") from error
        done(task, record)
