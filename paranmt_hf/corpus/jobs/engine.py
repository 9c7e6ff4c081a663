"""Where shard jobs run: worker processes of this machine, or Ray.

Both run `shards.run_shard` over the same list of shards. What is done and what is not stands in the manifest alone,
which only the process that started the job writes.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, Literal

from paranmt_hf.corpus.jobs.shards import Manifest, Stage, Task, run_shard, sweep
from paranmt_hf.errors import InputError
from paranmt_hf.util.optional import require
from paranmt_hf.util.progress import Progress

RETRIES = 3
# Counted for each shard; the loss of a node counts as well as a worker that dies of the shard.
RAY_RETRIES = 10

Done = Callable[[Task, dict[str, Any]], None]
Report = Callable[[Task, int], None]


@dataclass(frozen=True)
class EngineConfig:
    """Where and with how many workers a job runs.

    Attributes:
        engine: `local`, processes of this machine; `ray`, tasks of a Ray cluster.
        workers: Worker processes; with 1 the work is done in this process. 0 is for `settled` to say.
        threads: Cores that one worker uses, likewise.
        gpus: GPUs that one worker uses, likewise.
    """

    engine: Literal["local", "ray"] = field(default="local", metadata={"help": "local processes, or a Ray cluster"})
    workers: int = field(default=0, metadata={"help": "worker processes (default: one per GPU, else up to 8 cores)"})
    threads: int = field(default=0, metadata={"help": "cores of one worker (default: an even share)"})
    gpus: int = field(default=0, metadata={"help": "GPUs of one worker (default: 1 where there are GPUs)"})

    def __post_init__(self) -> None:
        for name in ("workers", "threads", "gpus"):
            if getattr(self, name) < 0:
                raise InputError(f"{name} must not be negative, not {getattr(self, name)!r}")

    def settled(self) -> EngineConfig:
        """The same with every 0 replaced by what suits this machine."""
        gpus = _count_gpus()
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        if self.engine == "local" and self.gpus > gpus:
            raise InputError(f"{self.gpus} GPUs for each worker are asked for, and torch sees {gpus} on this machine")
        each = self.gpus or min(1, gpus)
        workers = self.workers or (gpus // each if each and gpus else min(cores, 8))
        return EngineConfig(self.engine, workers, self.threads or max(1, cores // workers), each)


def _count_gpus() -> int:
    import torch

    return torch.cuda.device_count() if torch.cuda.is_available() else 0


def run_job(source: Manifest, folder: Path, stage: Stage, config: EngineConfig) -> Manifest:
    """Run a stage over every shard of a folder, continuing what is there.

    Args:
        source: Manifest of the input shards.
        folder: Folder of the output shards.
        stage: What to do to a shard.
        config: Where to do it.

    Returns:
        The manifest of the output, all shards done.

    Raises:
        InputError: The folder was made from other input or with other settings, or a shard cannot be done.
    """
    manifest = Manifest.open(folder, {**stage.settings, "input": source.fingerprint()})
    sweep(folder)
    manifest.forget_damaged()
    rows = {name: entry["rows"] for name, entry in source.shards.items()}
    tasks = [
        Task(source.folder / name, folder / name, rows[name]) for name in sorted(rows) if name not in manifest.shards
    ]
    finished = sum(rows.values()) - sum(task.rows for task in tasks)
    config = config.settled()
    if tasks:
        with Progress(stage.label, sum(rows.values()), done=finished) as progress:
            running: dict[Path, int] = {}

            def report(task: Task, count: int) -> None:
                running[task.target] = count
                progress.advance_to(finished + sum(running.values()))

            def done(task: Task, entry: dict[str, Any]) -> None:
                manifest.shards[task.target.name] = entry
                manifest.save()
                report(task, task.rows)

            _run(stage, tasks, config, report, done)
    if not manifest.complete:
        manifest.complete = True
        manifest.save()
    return manifest


def _run(stage: Stage, tasks: Sequence[Task], config: EngineConfig, report: Report, done: Done) -> None:
    if config.engine == "ray":
        run_on_ray(stage, tasks, config, done)
    elif config.workers == 1 or len(tasks) == 1:
        for task in tasks:
            done(task, run_shard(stage, task, lambda count, task=task: report(task, count)))  # type: ignore[misc]
    else:
        _Pool(stage, tasks, config, report, done).run()


@dataclass
class _Worker:
    process: Any
    connection: Connection
    task: Task | None = None
    started: bool = False


@dataclass
class _Pool:
    """Worker processes, one pipe each. A worker that dies is replaced and its shard given out again."""

    stage: Stage
    tasks: Sequence[Task]
    config: EngineConfig
    report: Report
    done: Done
    deaths: dict[Task, int] = field(default_factory=dict)

    def run(self) -> None:
        waiting = list(reversed(self.tasks))
        workers = [self._start(number) for number in range(min(self.config.workers, len(waiting)))]
        try:
            while waiting or any(worker.task for worker in workers):
                for number, worker in enumerate(workers):
                    if not worker.process.is_alive():
                        self._bury(worker, waiting)
                        workers[number] = worker = self._start(number)
                    if worker.task is None and waiting:
                        self._give(worker, waiting.pop())
                for ready in wait([worker.connection for worker in workers], timeout=1.0):
                    self._receive(next(worker for worker in workers if worker.connection is ready))
        finally:
            for worker in workers:
                worker.process.kill()
            for worker in workers:
                worker.process.join()

    def _start(self, number: int) -> _Worker:
        # A fresh interpreter: forking a process that has threads or a GPU context breaks both.
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(target=_serve, args=(self.stage, theirs, os.getpid()), daemon=True)
        with _environment(_worker_environment(number, self.config)):
            process.start()
        theirs.close()
        return _Worker(process, ours)

    def _give(self, worker: _Worker, task: Task) -> None:
        worker.task = task
        try:
            worker.connection.send(task)
        except OSError:
            pass  # It has died; the next round buries it.

    def _receive(self, worker: _Worker) -> bool:
        """Take one message of a worker; False when its pipe has closed."""
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
        """Clear up after a dead worker: take what it had sent, then give its shard out again."""
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
                "system does when memory runs out): use fewer --workers or smaller --batch-tokens, then run the "
                "same command again"
            )
        self.report(task, 0)
        waiting.append(task)


def _worker_environment(number: int, config: EngineConfig) -> dict[str, str]:
    """What the numerical libraries read when a worker imports them: its share of the cores, and its GPUs."""
    environment = {"OMP_NUM_THREADS": str(config.threads)}
    if config.gpus:
        visible = os.environ.get("CUDA_VISIBLE_DEVICES")
        names = visible.split(",") if visible else [str(index) for index in range(_count_gpus())]
        first = number * config.gpus
        environment["CUDA_VISIBLE_DEVICES"] = ",".join(names[(first + own) % len(names)] for own in range(config.gpus))
    return environment


@contextmanager
def _environment(changes: dict[str, str]) -> Iterator[None]:
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


def _serve(stage: Stage, connection: Connection, parent: int) -> None:
    """Body of a worker process: take shards from the pipe until it closes."""
    # Ctrl-C reaches the whole group; the parent decides what follows.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_die_with, args=(parent,), daemon=True).start()
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
    """Send to the parent; a worker whose parent is gone has nobody to tell and ends."""
    try:
        connection.send(message)
    except OSError:
        os._exit(1)


def _die_with(parent: int) -> None:
    """End this process when its parent is gone, however the parent ended."""
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)


def run_on_ray(stage: Stage, tasks: Sequence[Task], config: EngineConfig, done: Done) -> None:
    """Run shards as Ray tasks; Ray gives a shard to another node when a worker or a node is lost.

    All nodes must see the folders under the same paths, and have this package installed. The cluster is the one that
    `RAY_ADDRESS` names, else a new one on this machine.

    Raises:
        InputError: A shard failed for a reason that trying again would not change.
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
    def remote(stage: Stage, task: Task) -> dict[str, Any]:
        return run_shard(stage, task, lambda count: None)

    handle = ray.put(stage)
    for task, result in _completed(ray, [(task, remote.remote(handle, task)) for task in tasks]):
        try:
            entry = ray.get(result)
        except ray.exceptions.RayTaskError as error:
            cause = error.cause if isinstance(error.cause, Exception) else error
            if isinstance(cause, InputError):
                raise InputError(str(cause)) from None
            raise RuntimeError(f"{task.source}: {type(cause).__name__}: {cause}") from error
        done(task, entry)


def _completed(ray: Any, running: list[tuple[Task, Any]]) -> Iterator[tuple[Task, Any]]:  # noqa: ANN401
    tasks = {result: task for task, result in running}
    pending = list(tasks)
    while pending:
        ready, pending = ray.wait(pending, num_returns=1)
        for result in ready:
            yield tasks[result], result
