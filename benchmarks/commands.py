"""Runs commands as processes of their own, on one core, and measures them; what benchmarks print about it.

A process inherits the peak memory of the one that starts it, so that what is large is imported where it is needed.
"""

from __future__ import annotations

import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Run:
    """What a command took: CPU seconds, wall seconds, and peak resident memory in GB."""

    cpu: float
    wall: float
    memory: float


def measured(
    command: Sequence[str | Path], *, project: Path = PROJECT, stdin: Path | None = None, log: Path | None = None
) -> Run:
    """Run a command on one core; what it prints goes to the file `log`, and is shown if it fails.

    `python` in it imports the package from the folder `project`, in which it starts.
    """
    environment = {**os.environ, "PYTHONPATH": str(project), "OMP_NUM_THREADS": "1"}
    with (
        tempfile.TemporaryFile() if log is None else log.open("w+b") as printed,
        Path(stdin or os.devnull).open("rb") as text,
    ):
        started = time.monotonic()
        child = subprocess.Popen(
            command, env=environment, cwd=project, stdin=text, stdout=printed, stderr=printed, preexec_fn=_on_one_core
        )
        _, status, usage = os.wait4(child.pid, 0)
        wall = time.monotonic() - started
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode:
            printed.seek(0)
            raise SystemExit(
                f"failed: {' '.join(map(str, command))}\n{printed.read().decode(errors='replace')[-2000:]}"
            )
    return Run(usage.ru_utime + usage.ru_stime, wall, usage.ru_maxrss / 1e6)


def paranmt(*words: object, project: Path = PROJECT) -> Run:
    """Run a `paranmt` command; paths may be relative."""
    given = [str(word.resolve()) if isinstance(word, Path) else str(word) for word in words]
    return measured([sys.executable, "-m", "paranmt_hf.cli", *given], project=project)


def _on_one_core() -> None:
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def spread(values: Sequence[float], form: str = ",.0f") -> str:
    """Write the median and the range of some figures."""
    return f"{statistics.median(values):{form}} ({min(values):{form}} to {max(values):{form}})"


def processor() -> str:
    """Name the CPU."""
    path = Path("/proc/cpuinfo")
    lines = path.read_text().splitlines() if path.is_file() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def heading(*packages: str) -> str:
    """Write the day, the machine, and the versions of Python and of those packages that are installed."""
    found = [str(date.today()), processor(), f"Python {platform.python_version()}"]
    for name in packages:
        with suppress(PackageNotFoundError):
            found.append(f"{name} {version(name)}")
    return ", ".join(found)


def copies_of(release: Path, copies: int, folder: Path) -> Path:
    """Write a release of several copies of another, whose ids are all different; returns its folder."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    sources = sorted((release / "data").glob("*.parquet"))
    data = folder / f"copies-{copies}" / "data"
    data.mkdir(parents=True)
    largest = max(pc.max(pq.read_table(path, columns=["id"])["id"]).as_py() for path in sources)
    total = copies * len(sources)
    for number in range(total):
        with pq.ParquetFile(sources[number % len(sources)]) as file:
            target = data / f"train-{number:05d}-of-{total:05d}.parquet"
            with pq.ParquetWriter(target, file.schema_arrow, compression="zstd") as writer:
                for group in range(file.num_row_groups):
                    table = file.read_row_group(group)
                    ids = pc.add(table["id"], pa.scalar(number // len(sources) * (largest + 1)))
                    writer.write_table(table.set_column(0, table.schema.field("id"), ids))
    return data.parent


def rows_of(release: Path) -> int:
    """Count the rows of a release."""
    import pyarrow.parquet as pq

    return sum(pq.read_metadata(path).num_rows for path in (release / "data").iterdir())
