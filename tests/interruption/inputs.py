"""What the commands that are stopped read, and options that many of them have."""

from __future__ import annotations

from pathlib import Path

from paranmt_hf.hub.repository import ASSETS

SAMPLE = ASSETS / "sample"
SETTLED = ["--license", "cc-by-nc-sa-4.0"]
ONE = ["--engine", "workers=1,threads=1"]
TWO_ROWS, TEN_ROWS = (["--engine", f"workers=1,threads=1,shard_rows={rows}"] for rows in (2, 10))


def bitext(root: Path, lines: int) -> None:
    """Write the first lines of the sample."""
    for name in ("sample.cs", "sample.en"):
        text = (SAMPLE / name).read_text(encoding="utf8").splitlines(keepends=True)
        (root / name).write_text("".join(text[:lines]), encoding="utf8")


def pairs(root: Path) -> None:
    """Write forty pairs."""
    from tests.training.toys import synonyms, write_data

    write_data(root / "pairs.parquet", synonyms(40))
