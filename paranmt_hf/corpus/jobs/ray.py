"""Shard jobs as tasks of a Ray cluster."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

from paranmt_hf.corpus.jobs.engine import EngineConfig
from paranmt_hf.corpus.jobs.shards import Done, ShardRecord, Stage, Task, run_shard
from paranmt_hf.errors import InputError
from paranmt_hf.util.optional import require

# Counted for each shard; the loss of a node counts as well as a worker that dies of the shard.
RAY_RETRIES = 10


def run_on_ray(stage: Stage, tasks: Sequence[Task], config: EngineConfig, done: Done) -> None:
    """Run shards as Ray tasks; Ray gives a shard to another node when a worker or a node is lost.

    All nodes must see the folders under the same paths, and have this package installed. The cluster is the one that
    `RAY_ADDRESS` names, else a new one on this machine.
    """
    ray = require("ray", "ray")
    if not ray.is_initialized():
        ray.init(address=os.environ.get("RAY_ADDRESS"), log_to_driver=False, include_dashboard=False)

    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    if not any(node.get("CPU", 0) >= config.threads and node.get("GPU", 0) >= config.gpus for node in nodes):
        raise InputError(
            f"no node of the Ray cluster has {config.threads} cores and {config.gpus} GPUs for a worker: lower "
            "--threads or --gpus"
        )

    # A worker process that Ray uses again keeps the loaded stage, so a model is loaded once in each, not per shard.
    @ray.remote(num_cpus=config.threads, num_gpus=config.gpus, max_retries=RAY_RETRIES)
    def remote(stage: Stage, task: Task) -> ShardRecord:
        return run_shard(stage, task, lambda count: None)

    handle = ray.put(stage)
    for task, result in _completed(ray, [(task, remote.remote(handle, task)) for task in tasks]):
        try:
            record = ray.get(result)
        except ray.exceptions.RayTaskError as error:
            cause = error.cause if isinstance(error.cause, Exception) else error
            if isinstance(cause, InputError):
                raise InputError(str(cause)) from None
            raise RuntimeError(f"{task.source}: {type(cause).__name__}: {cause}") from error
        done(task, record)


def _completed(ray: Any, running: list[tuple[Task, Any]]) -> Iterator[tuple[Task, Any]]:  # noqa: ANN401
    tasks = {result: task for task, result in running}
    pending = list(tasks)
    while pending:
        ready, pending = ray.wait(pending, num_returns=1)
        for result in ready:
            yield tasks[result], result
