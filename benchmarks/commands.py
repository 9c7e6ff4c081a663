"""Functions that several benchmarks share: measuring commands as processes, reading STS and MRPC, headings.

A process inherits the peak memory of the one that starts it, so large packages are imported where they are needed.
"""

from __future__ import annotations

import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TypeVar

PROJECT = Path(__file__).resolve().parents[1]
T = TypeVar("T")


@dataclass(frozen=True)
class Run:
    """The cost of a command: CPU seconds, wall seconds, and peak resident memory in GB."""

    cpu: float
    wall: float
    memory: float


def environment(project: Path = PROJECT, threads: int = 1) -> dict[str, str]:
    """Return environment variables for a program that imports the package from `project` and downloads nothing."""
    return {**os.environ, "PYTHONPATH": str(project), "OMP_NUM_THREADS": str(threads), "HF_HUB_OFFLINE": "1"}


def measured(
    command: Sequence[str | Path],
    *,
    project: Path = PROJECT,
    stdin: Path | None = None,
    log: Path | None = None,
    one_core: bool = True,
) -> Run:
    """Run a command and measure it, on one core or all; its output goes into the file `log`, and is shown if it fails.

    `python` in it imports the package from the folder `project`, in which it starts.
    """
    with (
        tempfile.TemporaryFile() if log is None else log.open("w+b") as printed,
        Path(stdin or os.devnull).open("rb") as text,
    ):
        started = time.monotonic()
        child = subprocess.Popen(
            command,
            env=environment(project),
            cwd=project,
            stdin=text,
            stdout=printed,
            stderr=printed,
            preexec_fn=_on_one_core if one_core else None,
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
    """Run and measure a `paranmt` command, given by its words; paths may be relative."""
    given = [str(word.resolve()) if isinstance(word, Path) else str(word) for word in words]
    return measured([sys.executable, "-m", "paranmt_hf.cli", *given], project=project)


def _on_one_core() -> None:
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def python(
    program: str, *arguments: str | Path, project: Path = PROJECT, threads: int = 1, given: str | None = None
) -> str:
    """Run a Python program given as text, with `given` as its standard input, and return what it prints."""
    command = [sys.executable, "-c", program, *arguments]
    done = subprocess.run(
        command, input=given, env=environment(project, threads), capture_output=True, text=True, cwd=project
    )
    if done.returncode:
        raise SystemExit(f"failed: {program}\n{done.stderr[-2000:]}")
    return done.stdout


def in_turn(systems: Mapping[str, Callable[[], T]], repeats: int) -> dict[str, list[T]]:
    """Call systems in turn, so that the load of the machine affects all of them; return the results of each."""
    results: dict[str, list[T]] = {name: [] for name in systems}
    for _ in range(repeats):
        for name, system in systems.items():
            results[name].append(system())
    return results


def medians(runs: Sequence[Run]) -> Run:
    """Return the median of each figure of some runs."""
    return Run(*(statistics.median(getattr(run, figure) for run in runs) for figure in ("cpu", "wall", "memory")))


def spread(values: Sequence[float], form: str = ",.0f") -> str:
    """Format the median and the range of figures: `120 (110 to 130)`."""
    return f"{statistics.median(values):{form}} ({min(values):{form}} to {max(values):{form}})"


def processor() -> str:
    """Return the name of the CPU."""
    path = Path("/proc/cpuinfo")
    lines = path.read_text().splitlines() if path.is_file() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def heading(*packages: str) -> str:
    """Return a heading: day, machine, and the versions of Python and of those of `packages` that are installed."""
    found = [str(date.today()), processor(), f"Python {platform.python_version()}"]
    for name in packages:
        with suppress(PackageNotFoundError):
            found.append(f"{name} {version(name)}")
    return ", ".join(found)


def copies_of(release: Path, copies: int, folder: Path) -> Path:
    """Write a release that holds another one several times, with distinct ids; return its folder."""
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


def sts_pairs(file: Path) -> list[tuple[float, str, str]]:
    """Read the score and the sentences of the scored pairs of an STS set, given its file `STS.input.NAME.txt`."""
    golds = file.with_name(file.name.replace(".input.", ".gs.")).read_text(encoding="utf8").split("\n")
    lines = [line.split("\t") for line in file.read_text(encoding="utf8").split("\n")]
    scored = [(gold, line) for gold, line in zip(golds, lines, strict=True) if gold.strip()]
    return [(float(gold), line[0], line[1]) for gold, line in scored]


def development_pairs(sts: Path) -> tuple[list[str], list[str], list[float]]:
    """Read both sides and the scores of STS 2017 track 5, from the dev and test files of the STS benchmark."""
    files = [sts / "STSBenchmark" / f"sts-{split}.csv" for split in ("dev", "test")]
    lines = [line.split("\t") for file in files for line in file.read_text(encoding="utf8").split("\n") if line]
    rows = [line for line in lines if line[1] == "track5.en-en"]
    return [row[5] for row in rows], [row[6] for row in rows], [float(row[4]) for row in rows]


def mrpc_pairs(folder: Path, part: str) -> list[tuple[int, str, str]]:
    """Read the label and the sentences of each pair of a part of MRPC, `train` or `test`."""
    lines = (folder / f"msr_paraphrase_{part}.txt").read_text(encoding="utf-8-sig").splitlines()[1:]
    rows = [line.split("\t") for line in lines]
    return [(int(row[0]), row[3], row[4]) for row in rows]
