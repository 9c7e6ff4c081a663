"""Sets of sentence pairs with gold similarities: SentEval's folders, the STS benchmark, single files, the Hub."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple, get_args

import numpy as np

from paranmt_hf.corpus.reading.arrow_tables import STATE as SAVED
from paranmt_hf.corpus.reading.formats import open_table
from paranmt_hf.errors import InputError
from paranmt_hf.evaluation.pair_file import COLUMNS, read_pair_file, read_pairs
from paranmt_hf.evaluation.pair_set import ScoredPair, StsSet, collect, read_lines, tab_separated
from paranmt_hf.evaluation.transfer_data import read_relatedness
from paranmt_hf.hub.client import absent_here, is_id, perhaps_path
from paranmt_hf.hub.repository import ASSETS, own_files
from paranmt_hf.util.files import check_regular
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
DEVELOPMENT = "STS17-track5"
_TRACK5, _TRACK5_PAIRS = "track5.en-en", 250
_CAPTIONS = "main-captions"
Split = Literal["train", "dev", "test"]
_SPLITS: tuple[Split, ...] = get_args(Split)
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
    the development set, not train), those of SICK and of Twitter (PIT 2015), a folder that holds such folders, a file
    with scores and sentences (see `read_pair_file`), a folder with a dataset (Parquet, JSON lines), a Hub id such as
    `mteb/sts12-sts`, or `sample`, forty pairs that the package carries.
    """
    path = Path(data).expanduser()
    if is_sample(data):
        return [_sample()]
    check_regular(path)
    if (split := _benchmark_split(path)) is not None:
        return [read_benchmark(path.parent, split)]
    if path.is_file() or (path / SAVED).is_file():
        return [read_pair_file(path)]
    if not path.is_dir():
        if re.fullmatch(r"[\w-][\w.-]*/[\w-][\w.-]*", str(data)):
            return [read_hub(str(data))]
        raise InputError(
            f"there is no file or folder {data}; expected STS data, a Hub id like 'mteb/sts12-sts' or {SAMPLE!r}"
        )
    sets = _read_folder(path)
    if not sets:
        for folder in sorted(path.iterdir()):
            if folder.is_dir():
                sets += _read_folder(folder)
    if not sets and any(file.name.endswith(_TABLES) for file in path.rglob("*")):
        return [read_hub(str(path))]
    if not sets:
        raise InputError(f"{path} holds no STS data: expected {_LAYOUTS}")
    _check_twice(sets, path)
    return sets


def _benchmark_split(path: Path) -> Split | None:
    """The split of the STS benchmark that a file is; None for other files, of whatever name."""
    for split in _SPLITS:
        if path.name == f"sts-{split}.csv" and path.is_file() and read_lines(path)[0].count("\t") >= 6:
            return split
    return None


def is_sample(data: Path | str) -> bool:
    """Whether `sample`, the pairs of the package, is named, and not a path."""
    return str(data) == SAMPLE and not Path(data).exists()


def _sample() -> StsSet:
    return read_pair_file(ASSETS / "sample" / "similarity.tsv", SAMPLE)


def _read_folder(folder: Path) -> list[StsSet]:
    sets: list[StsSet] = []
    if any(_INPUT.fullmatch(file.name) for file in folder.iterdir()):
        sets += read_senteval(folder)
    dev = (folder / "sts-dev.csv").exists()
    test = (folder / "sts-test.csv").exists()
    if dev:
        sets.append(read_benchmark(folder, "dev"))
    if test:
        sets.append(read_benchmark(folder, "test"))
    if dev and test:
        sets.append(development_set(folder))
    if any((folder / name).exists() for name in SICK_FILES.values()):
        sets.append(read_sick(folder))
    if (folder / PIT_FILE).exists():
        sets.append(read_pit(folder))
    return sets


def sets_of(data: StsData) -> list[StsSet]:
    """Read all sets of one or several files, folders or Hub datasets, see `read_sts`; sets are returned unchanged."""
    sets: list[StsSet] = []
    places = []
    read: list[StsSet] = []
    for each in [data] if isinstance(data, str | Path) else data:
        if isinstance(each, StsSet):
            sets.append(each)
        else:
            places.append(str(each))
            read += read_sts(each)
    _check_twice(read, " and ".join(places))
    return sets + read


def _check_twice(sets: list[StsSet], path: Path | str) -> None:
    for title, count in Counter(each.title for each in sets).items():
        if count > 1:
            raise InputError(f"{path} holds {title} twice; move one copy elsewhere")


def read_senteval(folder: Path) -> list[StsSet]:
    """Read one year in SentEval's layout: `STS.input.<name>.txt` and `STS.gs.<name>.txt`, aligned line by line.

    An input line is two sentences and a tab between; what follows another tab (2016: the sources) is left out.
    """
    name = folder.resolve().name
    match = _YEAR.search(name)
    year = f"STS{match.group(1)}" if match else name
    for file in sorted(folder.glob("STS*.gs.*.txt")):
        sentences = file.with_name(file.name.replace(".gs.", ".input.", 1))
        if not sentences.exists():
            raise InputError(f"{file} has no {sentences.name} next to it; get the data again")
    sets = []
    for file in sorted(folder.iterdir()):
        named = _INPUT.fullmatch(file.name)
        if named:
            sets.append(_read_pair_of_files(year, named[1], file))
    return sets


def _read_pair_of_files(year: str, name: str, file: Path) -> StsSet:
    gold_file = file.with_name(file.name.replace(".input.", ".gs.", 1))
    lines, golds = read_lines(file), read_lines(gold_file)
    if len(lines) != len(golds):
        raise InputError(
            f"expected as many pairs as gold scores, but {file} has {counted(len(lines), 'line')} and {gold_file} has "
            f"{len(golds)}: one of them is cut off; get the data again"
        )
    pairs = []
    for number, (line, gold) in enumerate(zip(lines, golds, strict=True), 1):
        left, _, rest = line.partition("\t")
        if gold.strip() and not rest:
            raise InputError(f"{file}, line {number}: expected two sentences and a tab between, found {line[:40]!r}")
        right = rest.partition("\t")[0]
        pairs.append(ScoredPair(gold, left, right, f"{gold_file}, line {number}", f"{file}, line {number}"))
    return collect(name, pairs, gold_file, year=year, scale=SCALE)


def read_benchmark(folder: Path | str, split: Split = "test") -> StsSet:
    """Read a split of the STS benchmark, with parts that have results of their own.

    Captions are the rows of the genre `main-captions` (table 16 of ParaNMT-50M): MSRvid, images, and track 5 of 2017.
    Of dev and test `v2` is the part in MTEB's task `STSBenchmark.v2`: without pairs that are there twice, in either
    order, or in another split too. It is left out if the folder lacks a split.
    """
    folder = Path(folder)
    rows = [row for row in _benchmark_rows(folder, split) if row.pair.score.strip()]
    captions = np.array([row.genre == _CAPTIONS for row in rows], bool)
    subsets = {"captions": captions, "no captions": ~captions}
    others = [other for other in _SPLITS if other != split]
    if split != "train" and all((folder / f"sts-{other}.csv").is_file() for other in others):
        subsets["v2"] = _in_second_version(rows, [row for other in others for row in _benchmark_rows(folder, other)])
    filled = {name: mask for name, mask in subsets.items() if mask.any()}
    pairs = [row.pair for row in rows]
    return collect(f"STSB-{split}", pairs, folder / f"sts-{split}.csv", subsets=filled, scale=SCALE)


def _in_second_version(rows: Sequence[_BenchmarkRow], others: Sequence[_BenchmarkRow]) -> np.ndarray:
    """Whether a row [row] has a pair that is there once, and in none of the other splits."""
    counts = Counter(row.key for row in rows)
    elsewhere = {row.key for row in others}
    return np.array([counts[row.key] == 1 and row.key not in elsewhere for row in rows], bool)


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
        pairs = [row.pair for row in _benchmark_rows(folder, split) if row.file == _TRACK5]
        parts.append(collect(DEVELOPMENT, pairs, folder / f"sts-{split}.csv", may_be_empty=True, scale=SCALE))
    left, right = parts[0].left + parts[1].left, parts[0].right + parts[1].right
    if len(left) != _TRACK5_PAIRS:
        raise InputError(
            f"expected {_TRACK5_PAIRS} pairs of {_TRACK5} in sts-dev.csv and sts-test.csv of {folder}, found "
            f"{len(left)}; get the STS benchmark again"
        )
    return StsSet(DEVELOPMENT, left, right, np.concatenate([part.gold for part in parts]))


class _BenchmarkRow(NamedTuple):
    """A row of the STS benchmark."""

    genre: str
    file: str
    pair: ScoredPair

    @property
    def key(self) -> tuple[str, ...]:
        """The sentences in either order, without case and white space."""
        return tuple(sorted(" ".join(text.lower().split()) for text in (self.pair.left, self.pair.right)))


def _benchmark_rows(folder: Path, split: str) -> list[_BenchmarkRow]:
    """Read a split: genre, file, year, id, score, two sentences, and of some rows two columns of licences."""
    path = folder / f"sts-{split}.csv"
    if not path.is_file():
        raise InputError(f"there is no {path}: expected the folder of the STS benchmark with sts-{split}.csv")
    rows = []
    what = "genre, file, year, id, score and two sentences"
    for number, fields in enumerate(tab_separated(path, 7, what), 1):
        place = f"{path}, line {number}"
        rows.append(_BenchmarkRow(fields[0], fields[1], ScoredPair(fields[4], fields[5], fields[6], place, place)))
    return rows


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
    pairs = []
    for number, fields in enumerate(tab_separated(path, 5, "topic, its name, two sentences and a judgement"), 1):
        if not _PIT_LABEL.fullmatch(fields[4].strip()):
            raise InputError(
                f"{path}, line {number}: expected a judgement from 0 to 5 in the fifth column, found "
                f"{fields[4][:40]!r}; get the file with the answers"
            )
        place = f"{path}, line {number}"
        pairs.append(ScoredPair(fields[4], fields[2], fields[3], place, place))
    return collect(TWITTER, pairs, path)


def read_hub(dataset: str, *, split: str = "test") -> StsSet:
    """Read a split of a dataset on the Hub or in a local folder, such as MTEB's: all sets of a year in one."""
    from datasets import load_dataset, load_dataset_builder

    folder = Path(dataset)
    name = folder.resolve().name if folder.is_dir() else dataset
    try:
        if folder.is_dir():
            splits = own_files(folder, lambda: load_dataset_builder(dataset))
            if split not in splits:
                raise InputError(
                    f"cannot load the split {split!r} of {folder}, which has {', '.join(splits) or 'none'}; STS data "
                    f"are {_LAYOUTS}"
                )
        rows = load_dataset(dataset, split=split)
    except InputError:
        raise
    except Exception as error:  # the library raises whatever the Hub, the files and pyarrow raise
        reason = str(error).strip().split("\n")[0]
        here = absent_here(dataset)
        where = f"{here}; taken for an id on the Hub: " if here else ""
        raise InputError(f"{where}cannot load the split {split!r} of {dataset}: {reason}") from None
    for column in COLUMNS:
        if column not in rows.column_names:
            raise InputError(
                f"{dataset} has no column {column!r}; its columns are {', '.join(rows.column_names)}: rename those of "
                "score and sentences"
            )
    pairs = []
    try:
        for number, row in enumerate(rows, 1):
            score, left, right = ("" if row[column] is None else str(row[column]) for column in COLUMNS)
            place = f"{dataset}, row {number}"
            pairs.append(ScoredPair(score, left, right, place, place))
    # Parquet readers do not check that text is UTF-8.
    except UnicodeDecodeError:
        raise InputError(f"{dataset}: expected text in UTF-8, found other bytes; write its files again") from None
    return collect(name, pairs, folder)


def notes(sets: list[StsSet]) -> list[str]:
    """Explain why yearly scores are not comparable with published ones, a sentence for each reason."""
    sentences = []
    found: dict[str, dict[str, int]] = {}
    for sts_set in sets:
        if sts_set.year:
            found.setdefault(sts_set.year, {})[sts_set.name] = len(sts_set)
    missing = [year for year in COUNTS if year not in found]
    if found and missing:
        sentences.append(f"The mean of the years is that of {', '.join(sorted(found))}, without {', '.join(missing)}.")
    for year in sorted(COUNTS.keys() & found.keys()):
        pairs = found[year]
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

    It is `sample` (forty pairs that the package carries); a file with scores and sentences (see `read_pair_file`); a
    folder of Parquet files or a dataset on the Hub (its split `validation`, or the one behind a colon,
    `you/pairs:dev`), with the columns `sentence1`, `sentence2` and `score`; or the folder of the STS benchmark, of
    which the 250 pairs of STS 2017 track 5 are read.
    """
    path = Path(data).expanduser()
    if is_sample(data):
        return _sample()
    if path.is_file() or (path / SAVED).is_file():
        pairs = read_pair_file(path)
    elif any((folder / "sts-dev.csv").exists() for folder in (path, path / "STSBenchmark")):
        return development_set(path)
    elif path.is_dir() and (files := sorted(path.rglob("*.parquet"))):
        rows = [row for file in files for row in read_pairs(open_table(file))]
        pairs = collect(path.resolve().name, rows, path)
    elif is_id(str(data).partition(":")[0]) and not Path(data).parent.exists():
        name, _, split = str(data).partition(":")
        pairs = read_hub(name, split=split or "validation")
    else:
        raise InputError(
            f"there is no development set {data}: expected {SAMPLE!r}, a TSV, CSV, JSON lines or Parquet file (or a "
            "folder of Parquet files) with sentence1, sentence2 and score, the folder of the STS benchmark with "
            f"sts-dev.csv, or the id of a dataset on the Hub{perhaps_path(str(data), SAMPLE)}"
        )
    if len(np.unique(pairs.gold)) < 2:
        raise InputError(f"{data}: all {len(pairs)} scores are equal, so nothing can agree with them; give others")
    return pairs
