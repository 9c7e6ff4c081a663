"""Several processes that do the same work, and share the memory of what was loaded before."""

from __future__ import annotations

import gc
import multiprocessing
import signal
import socket
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from paranmt_hf.util.local_page import listen

if TYPE_CHECKING:
    # Windows has no such class.
    from multiprocessing.context import ForkProcess

ENDING = (signal.SIGINT, signal.SIGTERM)
MOST_WORKERS = 256
PATIENCE = 7  # Number of seconds that processes have to end; then they are killed


def run_workers(count: int, work: Callable[[int], None], report: Callable[[str], None]) -> None:
    """Run a function in several processes until SIGINT or SIGTERM comes, which then ends this process too.

    The processes are forks of this one, which must be in its main thread and have no others. If one ends before,
    another one takes its place. When this function returns or raises, all have ended.

    Args:
        count: Number of processes.
        work: The function; it is given the number of the process, from 0, and ends at SIGTERM.
        report: Called with a sentence when a process is replaced.
    """
    received: list[int] = []
    former = {each: signal.signal(each, lambda number, _: received.append(number)) for each in ENDING}
    # The garbage collector writes into the objects that it looks at, and memory is shared until it is written to.
    gc.collect()
    gc.freeze()
    processes: list[ForkProcess] = []
    try:
        for number in range(count):
            processes.append(_started(work, number))
        while not received:
            time.sleep(0.1)
            ended = [number for number, process in enumerate(processes) if not process.is_alive()]
            if not ended or received:
                continue
            for number in ended:
                reason = _reason(processes[number])
                report(f"process {number + 1} of {count} ended ({reason}); another one takes its place")
            # Time in between, in case that they end again and again.
            time.sleep(1)
            for number in ended:
                processes[number] = _started(work, number)
    finally:
        _end(processes)
        gc.unfreeze()
        for each, handler in former.items():
            signal.signal(each, handler)
    signal.raise_signal(received[0])


def listening_sockets(count: int, port: int, host: str) -> list[socket.socket]:
    """Return a socket for each of several processes; all listen on one port, and may be one and the same.

    Of processes that share a socket, the fastest one takes all connections that come at once, and keeps them. So each
    gets a socket of its own where the system shares out connections.
    """
    only = listen(port, host)
    if count == 1 or sys.platform != "linux":
        return [only] * count
    # A socket that is not shared has shown that no other program listens on the port.
    number = only.getsockname()[1]
    only.close()
    return [listen(number, host, together=True) for _ in range(count)]


def _started(work: Callable[[int], None], number: int) -> ForkProcess:
    """Start a process."""
    process = multiprocessing.get_context("fork").Process(target=_work, args=(work, number))
    # A signal that comes now waits until the new process no longer has the handlers of this one.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
    try:
        process.start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return process


def _work(work: Callable[[int], None], number: int) -> None:
    """Do the work of a new process."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)
    work(number)


def _reason(process: ForkProcess) -> str:
    """Return why a process ended."""
    code = process.exitcode or 0
    return signal.Signals(-code).name if code < 0 else f"status {code}"


def _end(processes: list[ForkProcess]) -> None:
    """End processes, and wait until they have ended."""
    for process in processes:
        process.terminate()
    latest = time.monotonic() + PATIENCE
    for process in processes:
        process.join(max(0, latest - time.monotonic()))
        # Without effect if it has ended.
        process.kill()
        process.join()
