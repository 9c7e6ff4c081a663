"""Scored pairs for model selection: the embedded ones, TSV or Parquet files, or the STS benchmark."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from paranmt_hf.errors import InputError
from paranmt_hf.evaluation.pair_set import read_lines
from paranmt_hf.evaluation.sts_data import COLUMNS, StsSet, collect, development_set, read_hub, read_tsv
from paranmt_hf.hub.client import is_id, perhaps_path
from paranmt_hf.hub.repository import ASSETS
from paranmt_hf.util.parquet import check_unique, open_parquet
from paranmt_hf.util.wording import counted

# Forty pairs of our own, which the package carries.
SAMPLE = "sample"


def read_scored_pairs(data: str | Path) -> StsSet:
    """Read a development set.

    Args:
        data: `sample` (forty pairs that the package carries); a TSV file; a Parquet file, a folder of such files or a
            dataset on the Hub (its split `validation`, or the one behind a colon, `you/pairs:dev`), with the columns
            `sentence1`, `sentence2` and `score`; or the folder of the STS benchmark, of which the 250 pairs of STS
            2017 track 5 are read. A TSV file names these columns in its first line, or has score and
            sentences in this order, or the score last. Scores may have any range.
    """
    path = Path(data).expanduser()
    if str(data) == SAMPLE and not path.exists():
        return read_tsv(ASSETS / "sample" / "similarity.tsv", name=SAMPLE)
    if path.is_file():
        pairs = _read_parquet([path], path.stem) if path.suffix == ".parquet" else _read_tsv(path)
    elif any((folder / "sts-dev.csv").exists() for folder in (path, path / "STSBenchmark")):
        return development_set(path)
    elif path.is_dir() and (files := sorted(path.rglob("*.parquet"))):
        pairs = _read_parquet(files, path.resolve().name)
    elif is_id(str(data).partition(":")[0]) and not Path(data).parent.exists():
        name, _, split = str(data).partition(":")
        pairs = read_hub(name, split=split or "validation")
    else:
        raise InputError(
            f"there is no development set {data}: expected {SAMPLE!r}, a TSV or Parquet file (or a folder of Parquet "
            "files) with sentence1, sentence2 and score, the folder of the STS benchmark with sts-dev.csv, or the id "
            f"of a dataset on the Hub{perhaps_path(str(data), SAMPLE)}"
        )
    if len(np.unique(pairs.gold)) < 2:
        raise InputError(f"{data}: all {len(pairs)} scores are equal, so nothing can agree with them; give others")
    return pairs


def _read_tsv(path: Path) -> StsSet:
    first = read_lines(path)[0].split("\t")
    names = [name.strip().lower() for name in first]
    if set(COLUMNS) <= set(names):
        rows = []
        for number, line in enumerate(read_lines(path)[1:], 2):
            fields = line.split("\t")
            if len(fields) != len(names):
                raise InputError(
                    f"{path}, line {number}: expected {counted(len(names), 'column')}, found {len(fields)}"
                )
            rows.append(tuple(fields[names.index(column)] for column in COLUMNS))
        return collect(path.stem, rows, (path, path), first=2)
    if len(first) >= 3 and all(names) and not any(map(_is_number, first)):
        raise InputError(
            f"{path}, line 1: expected a score and two sentences, or a header that names the columns sentence1, "
            f"sentence2 and score; found {', '.join(first)[:80]!r}; rename the columns"
        )
    score_last = len(first) >= 3 and not _is_number(first[0]) and _is_number(first[2])
    return read_tsv(path, columns=(3, 1, 2) if score_last else (1, 2, 3))


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _read_parquet(files: list[Path], name: str) -> StsSet:
    rows: list[tuple[str, ...]] = []
    for file in files:
        with open_parquet(file) as opened:
            names = opened.schema_arrow.names
            if missing := [column for column in COLUMNS if column not in names]:
                raise InputError(f"{file} has no column {', '.join(missing)}; it has {', '.join(names)}")
            check_unique(opened.schema_arrow, COLUMNS, file)
            table = opened.read(columns=list(COLUMNS))
        columns = [["" if value is None else str(value) for value in table[column].to_pylist()] for column in COLUMNS]
        rows += zip(*columns, strict=True)
    where = files[0] if len(files) == 1 else files[0].parent
    return collect(name, rows, (where, where), unit="row")
