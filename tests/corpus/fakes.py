"""A stage and a job that need no model, for tests that kill them."""

import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from paranmt_hf import EngineConfig
from paranmt_hf.corpus.jobs.job import run_job
from paranmt_hf.corpus.jobs.shards import Manifest, write_shard
from paranmt_hf.errors import WriteError
from paranmt_hf.util.work import locked


@dataclass(frozen=True)
class UpperStage:
    """Writes text in capitals, slowly; keeps a log of the rows it was given."""

    log: str
    seconds: float = 0.0
    setting: int = 1
    poison: str = ""
    label: str = "upper"
    unit: str = "lines"

    @property
    def identity(self) -> dict:
        return {"setting": self.setting}

    def load(self):
        def work(table, report):
            if self.poison and self.poison in table["text"].to_pylist():
                raise WriteError(f"cannot write {self.poison!r} in capitals", option="poison", path=Path(self.log))
            if self.poison == "die" and not Path(self.log + ".died").exists():
                Path(self.log + ".died").touch()
                os._exit(9)
            with Path(self.log).open("a") as log:
                for row in table["id"].to_pylist():
                    time.sleep(self.seconds)
                    log.write(f"{row}\n")
            report(table.num_rows)
            kept = table.filter(pc.not_equal(table["text"], "drop"))
            return kept.set_column(1, "text", pc.utf8_upper(kept["text"])), {
                "unwanted": table.num_rows - kept.num_rows
            }

        return work


def make_input(folder: Path, shards: int = 4, rows: int = 5) -> Manifest:
    manifest = Manifest.open(folder, {"made": "by hand"})
    for index in range(shards):
        ids = list(range(index * rows, (index + 1) * rows))
        table = pa.table({"id": ids, "text": ["drop" if row % 7 == 6 else f"row {row}" for row in ids]})
        name = f"shard-{index:06d}.parquet"
        manifest.shards[name] = write_shard(table, folder / name)
    manifest.complete = True
    manifest.save()
    return manifest


def run(folder: Path, *, seconds: float = 0.0, workers: int = 1, engine: str = "local", shards: int = 4) -> Manifest:
    with locked(folder, "build", {}, lambda folder: True):
        source = make_input(folder / "input", shards)
        stage = UpperStage(str(folder / "log"), seconds)
        return run_job(source, folder / "output", stage, EngineConfig(engine, workers, threads=1))


if __name__ == "__main__":
    run(Path(sys.argv[1]), seconds=float(sys.argv[2]), workers=int(sys.argv[3]), engine=sys.argv[4])
