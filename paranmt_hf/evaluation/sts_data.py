"""Sets of sentence pairs with gold similarities: SentEval's folders, the STS benchmark, TSV, Parquet, the Hub."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

import numpy as np

from paranmt_hf.errors import InputError
from paranmt_hf.evaluation.pair_set import StsSet, collect, read_lines, tab_separated
from paranmt_hf.evaluation.transfer_data import read_relatedness
from paranmt_hf.hub.client import absent_here, is_id, perhaps_path
from paranmt_hf.hub.repository import ASSETS, own_files
from paranmt_hf.util.files import check_regular
from paranmt_hf.util.parquet import check_unique, open_parquet
from paranmt_hf.util.wording import counted

SCALE = (0, 5)  # Of the gold scores of the SemEval tasks and of the STS benchmark
# Pairs with a gold score in each data set of the SemEval tasks 2012-2016; STS 2013 SMT (750 more) is not free.
COUNTS: Mapping[str, Mapping[str, int]] = {
    "STS12": {"MSRpar": 750, "MSRvid": 750, "SMTeuroparl": 459, "surprise.OnWN": 750, "surprise.SMTnews": 399},
    "STS13": {"FNWN": 189, "OnWN": 561, "headlines": 750},
    "STS14": {"OnWN": 750, "deft-forum": 450, "deft-news": 300, "headlines": 750, "images": 750, "tweet-news": 750},
    "STS15": {"answers-forums": 375, "answers-students": 750, "belief": 375, "headlines": 750, "images": 750},
    "STS16": {"answer-answer": 254, "headlines": 249, "plagiarism": 230, "postediting": 244, "question-question": 209},
}
# Columns of tables with names.
COLUMNS = ("score", "sentence1", "sentence2")
DEVELOPMENT = "STS17-track5"
_TRACK5, _TRACK5_PAIRS = "track5.en-en", 250
_CAPTIONS = "main-captions"
_INPUT = re.compile(r"STS(?:20\d\d)?\.input\.(.+)\.txt")
_YEAR = re.compile(r"STS(?:20)?(1[2-6])(?!\d)", re.IGNORECASE)
_LAYOUTS = (
    "STS.input.*.txt and STS.gs.*.txt, sts-dev.csv and sts-test.csv, SICK_test_annotated.txt, test.data of PIT 2015, "
    "folders with such files, or a dataset with the split 'test' and the columns score, sentence1 and sentence2"
)
_TABLES = (".parquet", ".jsonl", ".jsonl.gz", ".arrow")
# Forty pairs of our own, which the package carries.
SAMPLE = "sample"
SICK, TWITTER = "SICK", "Twitter"
# The trial part of 500 pairs is in neither paper's figures.
SICK_FILES: Mapping[str, str] = {"train": "SICK_train.txt", "test": "SICK_test_annotated.txt"}
PIT_FILE = "test.data"
_PIT_LABEL = re.compile(r"[0-5]")
StsData = str | Path | Sequence[str | Path | StsSet]


def read_sts(data: Path | str) -> list[StsSet]:
    """Read all sets of a file, a folder or a Hub dataset, years first.

    These are a folder in SentEval's layout (`STS12-en-test` and the like), the STS benchmark's folder (dev, test and
    the development set, not train), those of SICK and of Twitter (PIT 2015), a folder that holds such folders, a TSV
    file, a folder with a dataset (Parquet, JSON lines), a Hub id such as `mteb/sts12-sts`, or `sample`, forty pairs
    that the package carries.
    """
    path = Path(data).expanduser()
    if is_sample(data):
        return [_sample()]
    check_regular(path)
    if path.is_file():
        return [read_tsv(path)]
    if not path.is_dir():
        if re.fullmatch(r"[\w-][\w.-]*/[\w-][\w.-]*", str(data)):
            return [read_hub(str(data))]
        raise InputError(
            f"there is no file or folder {data}; expected STS data, a Hub id like 'mteb/sts12-sts' or {SAMPLE!r}"
        )
    sets = _read_folder(path)
    if not sets:
        folders = sorted(folder for folder in path.iterdir() if folder.is_dir())
        sets = [sts_set for folder in folders for sts_set in _read_folder(folder)]
    if not sets and any(file.name.endswith(_TABLES) for file in path.rglob("*")):
        return [read_hub(str(path))]
    if not sets:
        raise InputError(f"{path} holds no STS data: expected {_LAYOUTS}")
    _check_twice(sets, path)
    return sets


def is_sample(data: Path | str) -> bool:
    """Whether `sample`, the pairs of the package, is named, and not a path."""
    return str(data) == SAMPLE and not Path(data).exists()


def _sample() -> StsSet:
    return read_tsv(ASSETS / "sample" / "similarity.tsv", name=SAMPLE)


def _read_folder(folder: Path) -> list[StsSet]:
    sets: list[StsSet] = []
    if any(_INPUT.fullmatch(file.name) for file in folder.iterdir()):
        sets += read_senteval(folder)
    splits: list[Literal["dev", "test"]] = [
        split for split in ("dev", "test") if (folder / f"sts-{split}.csv").exists()
    ]
    sets += [read_benchmark(folder, split) for split in splits]
    if len(splits) == 2:
        sets.append(development_set(folder))
    if any((folder / name).exists() for name in SICK_FILES.values()):
        sets.append(read_sick(folder))
    if (folder / PIT_FILE).exists():
        sets.append(read_pit(folder))
    return sets


def sets_of(data: StsData) -> list[StsSet]:
    """Read all sets of one or several files, folders or Hub datasets, see `read_sts`; sets are returned unchanged."""
    given = [data] if isinstance(data, str | Path) else list(data)
    places = [each for each in given if not isinstance(each, StsSet)]
    read = [sts_set for place in places for sts_set in read_sts(place)]
    _check_twice(read, " and ".join(map(str, places)))
    return [*(each for each in given if isinstance(each, StsSet)), *read]


def _check_twice(sets: list[StsSet], path: Path | str) -> None:
    seen = set()
    for title in (sts_set.title for sts_set in sets):
        if title in seen:
            raise InputError(f"{path} holds {title} twice; move one copy elsewhere")
        seen.add(title)


def read_senteval(folder: Path) -> list[StsSet]:
    """Read one year in SentEval's layout: `STS.input.<name>.txt` and `STS.gs.<name>.txt`, aligned line by line.

    An input line is two sentences and a tab between; what follows another tab (2016: the sources) is left out.
    """
    name = folder.resolve().name
    match = _YEAR.search(name)
    year = f"STS{match.group(1)}" if match else name
    inputs = {named.group(1): file for file in sorted(folder.iterdir()) if (named := _INPUT.fullmatch(file.name))}
    golds = {file.name.replace(".input.", ".gs.", 1) for file in inputs.values()}
    for file in sorted(folder.glob("STS*.gs.*.txt")):
        if file.name not in golds:
            raise InputError(f"{file} has no {file.name.replace('.gs.', '.input.', 1)} next to it; get the data again")
    return [_read_pair_of_files(year, name, file) for name, file in inputs.items()]


def _read_pair_of_files(year: str, name: str, file: Path) -> StsSet:
    gold_file = file.with_name(file.name.replace(".input.", ".gs.", 1))
    lines, golds = read_lines(file), read_lines(gold_file)
    if len(lines) != len(golds):
        raise InputError(
            f"expected as many pairs as gold scores, but {file} has {counted(len(lines), 'line')} and {gold_file} has "
            f"{len(golds)}: one of them is cut off; get the data again"
        )
    rows = []
    for line_number, (line, gold) in enumerate(zip(lines, golds, strict=True), 1):
        fields = line.split("\t")
        if gold.strip() and len(fields) < 2:
            raise InputError(
                f"{file}, line {line_number}: expected two sentences and a tab between, found {line[:40]!r}"
            )
        rows.append((gold, *fields[:2]))
    return collect(name, rows, (gold_file, file), year=year, scale=SCALE)


def read_tsv(path: Path | str, *, columns: tuple[int, int, int] = (1, 2, 3), name: str | None = None) -> StsSet:
    """Read a tab-separated file without header or quoting; columns count from 1: score, first and second sentence."""
    path = Path(path)
    rows = [
        tuple(fields[column - 1] for column in columns)
        for fields in tab_separated(path, max(columns), "a score and two sentences")
    ]
    return collect(name or path.stem, rows, (path, path))


def read_benchmark(folder: Path | str, split: Literal["train", "dev", "test"] = "test") -> StsSet:
    """Read a split of the STS benchmark, with the subsets of Table 16 of ParaNMT-50M: captions and no captions.

    Captions are the rows of the genre `main-captions`: MSRvid, images, and track 5 of 2017.
    """
    rows = _benchmark_rows(Path(folder), split)
    path = Path(folder) / f"sts-{split}.csv"
    captions = [row[0] == _CAPTIONS for row in rows if row[4].strip()]
    subsets = {"captions": np.array(captions, bool)}
    subsets["no captions"] = ~subsets["captions"]
    filled = {name: mask for name, mask in subsets.items() if mask.any()}
    return collect(f"STSB-{split}", [row[4:7] for row in rows], (path, path), subsets=filled, scale=SCALE)


def development_set(folder: Path | str) -> StsSet:
    """Read the papers' development set: the 250 pairs of STS 2017 track 5, which are in no test set of 2012-2016.

    They stand in the STS benchmark's dev and test files as `track5.en-en`; `folder` is the benchmark's, or holds it as
    `STSBenchmark`. STS-B dev itself must not select a model that is tested on STS 2012-2016, because most of its pairs
    come from those years.
    """
    folder = Path(folder)
    if not (folder / "sts-dev.csv").exists() and (folder / "STSBenchmark").is_dir():
        folder = folder / "STSBenchmark"
    parts = []
    for split in ("dev", "test"):
        path = folder / f"sts-{split}.csv"
        rows = [row[4:7] if row[1] == _TRACK5 else ("", "", "") for row in _benchmark_rows(folder, split)]
        parts.append(collect(DEVELOPMENT, rows, (path, path), may_be_empty=True, scale=SCALE))
    left, right = parts[0].left + parts[1].left, parts[0].right + parts[1].right
    if len(left) != _TRACK5_PAIRS:
        raise InputError(
            f"expected {_TRACK5_PAIRS} pairs of {_TRACK5} in sts-dev.csv and sts-test.csv of {folder}, found "
            f"{len(left)}; get the STS benchmark again"
        )
    return StsSet(DEVELOPMENT, left, right, np.concatenate([part.gold for part in parts]))


def _benchmark_rows(folder: Path, split: str) -> list[tuple[str, ...]]:
    """Genre, file, year, id, score and the two sentences; two more columns, which some rows have, are licences."""
    path = folder / f"sts-{split}.csv"
    if not path.is_file():
        raise InputError(f"there is no {path}: expected the folder of the STS benchmark with sts-{split}.csv")
    what = "genre, file, year, id, score and two sentences"
    return [tuple(fields[:7]) for fields in tab_separated(path, 7, what)]


def read_sick(folder: Path) -> StsSet:
    """Read the relatedness of SICK (Marelli et al. 2014): train and test together, or one of them, each a subset.

    PARAGRAM-PHRASE (arXiv:1511.08198) reports the test part, Sent2Vec (arXiv:1703.02507, table 2) both.
    """
    parts = {part: read_relatedness(folder / name) for part, name in SICK_FILES.items() if (folder / name).exists()}
    if not parts:
        raise InputError(f"{folder} holds no SICK: expected {' and '.join(SICK_FILES.values())}")
    rows = [row for own in parts.values() for row in own]
    of_part = np.repeat(list(parts), [len(own) for own in parts.values()])
    return StsSet(
        SICK,
        [left for (left, _), _ in rows],
        [right for (_, right), _ in rows],
        np.array([gold for _, gold in rows], np.float64),
        subsets={part: of_part == part for part in parts},
    )


def read_pit(folder: Path) -> StsSet:
    """Read the test part of PIT 2015 (Xu et al. 2015), `test.data`: pairs of tweets, and a judgement from 0 to 5."""
    path = folder / PIT_FILE
    rows = []
    for number, fields in enumerate(tab_separated(path, 5, "topic, its name, two sentences and a judgement"), 1):
        if not _PIT_LABEL.fullmatch(fields[4].strip()):
            raise InputError(
                f"{path}, line {number}: expected a judgement from 0 to 5 in the fifth column, found "
                f"{fields[4][:40]!r}; get the file with the answers"
            )
        rows.append((fields[4], fields[2], fields[3]))
    return collect(TWITTER, rows, (path, path))


def read_hub(dataset: str, *, split: str = "test") -> StsSet:
    """Read a split of a dataset on the Hub or in a local folder, such as MTEB's: all sets of a year in one."""
    from datasets import load_dataset, load_dataset_builder

    folder = Path(dataset) if Path(dataset).is_dir() else None
    try:
        if folder is not None and split not in (splits := own_files(folder, lambda: load_dataset_builder(dataset))):
            raise InputError(
                f"cannot load the split {split!r} of {folder}, which has {', '.join(splits) or 'none'}; STS data are "
                f"{_LAYOUTS}"
            )
        rows = load_dataset(dataset, split=split)
    except InputError:
        raise
    except Exception as error:  # the library raises whatever the Hub, the files and pyarrow raise
        reason = str(error).strip().split("\n")[0]
        here = absent_here(dataset)
        where = f"{here}; taken for an id on the Hub: " if here else ""
        raise InputError(f"{where}cannot load the split {split!r} of {dataset}: {reason}") from None
    if missing := [column for column in COLUMNS if column not in rows.column_names]:
        raise InputError(
            f"{dataset} has no column {missing[0]!r}; its columns are {', '.join(rows.column_names)}: rename those of "
            "score and sentences"
        )
    try:
        values = [["" if value is None else str(value) for value in rows[column]] for column in COLUMNS]
    # Parquet readers do not check that text is UTF-8.
    except UnicodeDecodeError:
        raise InputError(f"{dataset}: expected text in UTF-8, found other bytes; write its files again") from None
    name = dataset if folder is None else folder.resolve().name
    return collect(name, list(zip(*values, strict=True)), (Path(dataset), Path(dataset)), unit="row")


def notes(sets: list[StsSet]) -> list[str]:
    """Explain why yearly scores are not comparable with published ones, a sentence for each reason."""
    sentences = []
    for year in sorted({sts_set.year for sts_set in sets if sts_set.year} & COUNTS.keys()):
        pairs = {sts_set.name: len(sts_set) for sts_set in sets if sts_set.year == year}
        if year == "STS13" and "SMT" not in pairs:
            sentences.append(
                "STS13 is without SMT, which is not free; papers that had it report the mean of four sets."
            )
        for name, count in COUNTS[year].items():
            if name not in pairs:
                sentences.append(f"{year} lacks {name}: its mean is not comparable with published figures.")
            elif pairs[name] != count:
                sentences.append(f"{year} {name} has {pairs[name]} scored pairs where {count} are expected.")
    return sentences


def read_scored_pairs(data: str | Path) -> StsSet:
    """Read a development set; scores may have any range.

    It is `sample` (forty pairs that the package carries); a TSV file; a Parquet file, a folder of such files or a
    dataset on the Hub (its split `validation`, or the one behind a colon, `you/pairs:dev`), with the columns
    `sentence1`, `sentence2` and `score`; or the folder of the STS benchmark, of which the 250 pairs of STS 2017 track
    5 are read. A TSV file names these columns in its first line, or has score and sentences in this order, or the
    score last.
    """
    path = Path(data).expanduser()
    if is_sample(data):
        return _sample()
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
        _, *lines = tab_separated(path, len(names), ", ".join(names), exactly=True)
        rows = [tuple(fields[names.index(column)] for column in COLUMNS) for fields in lines]
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
