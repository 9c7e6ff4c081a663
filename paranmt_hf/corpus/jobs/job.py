"""Run one stage over all shards of a folder: in this process, in worker processes, or on a Ray cluster.

The manifest alone says which shards are finished, and only the process that started the job writes it.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from paranmt_hf.corpus.jobs.engine import EngineConfig, count_gpus
from paranmt_hf.corpus.jobs.shards import (
    Done,
    Manifest,
    ShardRecord,
    Stage,
    Task,
    TaskReport,
    forget_loaded,
    run_shard,
)
from paranmt_hf.errors import InputError
from paranmt_hf.util.files import sweep
from paranmt_hf.util.machine import threads_kept
from paranmt_hf.util.optional import require
from paranmt_hf.util.progress import Progress
from paranmt_hf.util.wording import counted

RETRIES = 3  # The job fails when workers have died this many times on one shard


@dataclass
class _Worker:
    """A worker process, the pipe to it, its current shard if it has one, and whether it has sent a message yet."""

    process: Any
    connection: Connection
    task: Task | None = None
    started: bool = False


@dataclass
class Pool:
    """Worker processes that work off shards, each behind its own pipe.

    A worker that dies is replaced, and its shard is assigned again, until workers have died `RETRIES` times on it.

    Attributes:
        stage: What is done to each shard.
        tasks: The shards.
        config: The engine, with its defaults filled in.
        report: Called with a shard and the number of its rows that are done.
        done: Called with a shard and its record, once its result is written.
        deaths: Number of workers that died on a shard.
    """

    stage: Stage
    tasks: Sequence[Task]
    config: EngineConfig
    report: TaskReport
    done: Done
    deaths: dict[Task, int] = field(default_factory=dict)

    def run(self) -> None:
        """Process all shards; all workers are ended before this returns or raises."""
        waiting = list(reversed(self.tasks))
        workers = [self._start(index) for index in range(min(self.config.workers, len(waiting)))]
        try:
            while waiting or any(worker.task for worker in workers):
                for index, worker in enumerate(workers):
                    if not worker.process.is_alive():
                        self._bury(worker, waiting)
                        workers[index] = worker = self._start(index)
                    if worker.task is None and waiting:
                        worker.task = waiting.pop()
                        # If the worker has just died, the next round replaces it.
                        with suppress(OSError):
                            worker.connection.send(worker.task)
                for ready in wait([worker.connection for worker in workers], timeout=1.0):
                    self._receive(next(worker for worker in workers if worker.connection is ready))
        finally:
            for worker in workers:
                worker.process.kill()
            for worker in workers:
                worker.process.join()

    def _start(self, index: int) -> _Worker:
        """Start the worker of a number, with its own environment variables."""
        # A fresh interpreter: forking a process that has threads or a GPU context breaks both.
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(target=_serve, args=(self.stage, theirs), daemon=True)
        with _environment(_worker_environment(index, self.config)):
            process.start()
        theirs.close()
        return _Worker(process, ours)

    def _receive(self, worker: _Worker) -> bool:
        """Handle one message of a worker, and return whether there was one; kill a worker whose pipe is closed."""
        try:
            kind, value = worker.connection.recv()
        except (EOFError, OSError):
            worker.process.kill()
            worker.process.join()
            return False
        worker.started = True
        if kind == "error":
            raise value
        if worker.task is not None and kind == "rows":
            self.report(worker.task, value)
        elif worker.task is not None and kind == "done":
            task, worker.task = worker.task, None
            self.done(task, value)
        return True

    def _bury(self, worker: _Worker, waiting: list[Task]) -> None:
        """Clean up after a dead worker: handle its last messages, then put its shard back on the `waiting` list."""
        worker.process.join()
        while worker.connection.poll() and self._receive(worker):
            pass
        worker.connection.close()
        task = worker.task
        if not worker.started and worker.process.exitcode == 1:
            raise InputError(
                "a worker process ended while it started; its own message is above. A Python script that calls this "
                "must do so under `if __name__ == '__main__':`, because workers import the script; or use 1 worker"
            )
        if task is None:
            return
        self.deaths[task] = self.deaths.get(task, 0) + 1
        if self.deaths[task] >= RETRIES:
            raise InputError(
                f"workers died {RETRIES} times on {task.source} (exit code {worker.process.exitcode}; -9 is what the "
                "system does when memory runs out): use fewer `workers` or a smaller `batch_tokens`, then run the "
                "same command again"
            )
        self.report(task, 0)
        waiting.append(task)


def _worker_environment(index: int, config: EngineConfig) -> dict[str, str]:
    """Return the environment variables that limit a worker to its share of the cores and to its GPUs."""
    environment = {"OMP_NUM_THREADS": str(config.threads)}
    if config.gpus:
        visible = os.environ.get("CUDA_VISIBLE_DEVICES")
        names = visible.split(",") if visible else [str(gpu) for gpu in range(count_gpus())]
        first = index * config.gpus
        chosen = [names[(first + number) % len(names)] for number in range(config.gpus)]
        environment["CUDA_VISIBLE_DEVICES"] = ",".join(chosen)
    return environment


@contextmanager
def _environment(changes: dict[str, str]) -> Iterator[None]:
    """Set environment variables in a `with` block, and restore them after it."""
    before = {name: os.environ.get(name) for name in changes}
    os.environ.update(changes)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _serve(stage: Stage, connection: Connection) -> None:
    """Run a worker process: process shards from the pipe until it closes, and send progress, results and errors."""
    # Ctrl-C reaches the whole group; the parent decides what follows.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_die_with_parent, daemon=True).start()
    last = 0.0

    def report(count: int) -> None:
        nonlocal last
        if time.monotonic() - last > 0.5:
            last = time.monotonic()
            _send(connection, ("rows", count))

    _send(connection, ("ready", None))
    while True:
        try:
            task = connection.recv()
        except (EOFError, OSError):
            return
        try:
            _send(connection, ("done", run_shard(stage, task, report)))
        except (InputError, OSError) as error:
            _send(connection, ("error", error))
        except Exception as error:
            _send(connection, ("error", RuntimeError(f"{task.source}: {type(error).__name__}: {error}")))


def _send(connection: Connection, message: tuple[str, Any]) -> None:
    """Send a message to the parent process; exit if the parent is gone."""
    try:
        connection.send(message)
    except OSError:
        os._exit(1)


def _die_with_parent() -> None:
    """Wait in a thread until the parent process ends, for whatever reason, then end this process too."""
    if parent := multiprocessing.parent_process():
        parent.join()
        os._exit(1)


def run_job(source: Manifest, folder: Path, stage: Stage, config: EngineConfig) -> Manifest:
    """Run a stage over every shard of `source`, and return the complete manifest of `folder`.

    Shards that are finished in `folder` already are not processed again, unless their files are missing or damaged.

    Args:
        source: Manifest of the input shards.
        folder: Folder of the results.
        stage: What is done to each shard.
        config: Where the shards are processed.

    Raises:
        InputError: If `folder` was made with another stage or from other input.
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
    """Process the tasks by the engine of the settings; in this process if there is one worker or one task."""
    if config.kind == "ray":
        run_on_ray(stage, tasks, config, done)
    elif config.workers == 1 or len(tasks) == 1:
        # A stage sets the number of threads of its process. In the caller's process that is undone afterwards.
        try:
            with threads_kept():
                for task in tasks:
                    done(task, run_shard(stage, task, lambda count, task=task: report(task, count)))  # type: ignore[misc]
        finally:
            # The workers of the next job need the memory.
            forget_loaded()
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

    # Ray reuses worker processes, and `run_shard` keeps the stage, so each process loads a model once.
    # Retries are per shard. The loss of a node counts as one, like a worker that dies of the shard.
    @ray.remote(num_cpus=config.threads, num_gpus=config.gpus, max_retries=10)
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
