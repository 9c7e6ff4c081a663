"""Read STS data from SentEval's folders, the STS benchmark, SICK, PIT 2015, single files and the Hub."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Literal, NamedTuple, get_args

import numpy as np

from paranmt_hf.corpus.reading.arrow_tables import STATE as SAVED
from paranmt_hf.corpus.reading.formats import open_table
from paranmt_hf.errors import InputError
from paranmt_hf.evaluation.pair_file import find_columns, read_pair_file, read_pairs
from paranmt_hf.evaluation.pair_set import ScoredPair, StsSet, collect, read_lines, tab_separated
from paranmt_hf.evaluation.transfer_data import read_relatedness
from paranmt_hf.hub.client import absent_here, is_id, perhaps_path
from paranmt_hf.hub.repository import ASSETS, own_files
from paranmt_hf.util.files import check_regular
from paranmt_hf.util.wording import counted

SCALE = (0, 5)  # Lowest and highest gold score of the SemEval tasks and of the STS benchmark
# Number of pairs with a gold score in each set of the SemEval tasks 2012-2016. STS 2013 SMT, 750 more, is not free.
COUNTS: Mapping[str, Mapping[str, int]] = {
    "STS12": {"MSRpar": 750, "MSRvid": 750, "SMTeuroparl": 459, "surprise.OnWN": 750, "surprise.SMTnews": 399},
    "STS13": {"FNWN": 189, "OnWN": 561, "headlines": 750},
    "STS14": {"OnWN": 750, "deft-forum": 450, "deft-news": 300, "headlines": 750, "images": 750, "tweet-news": 750},
    "STS15": {"answers-forums": 375, "answers-students": 750, "belief": 375, "headlines": 750, "images": 750},
    "STS16": {"answer-answer": 254, "headlines": 249, "plagiarism": 230, "postediting": 244, "question-question": 209},
}
# Name of the papers' development set.
DEVELOPMENT = "STS17-track5"
Split = Literal["train", "dev", "test"]
_SPLITS: tuple[Split, ...] = get_args(Split)
_INPUT = re.compile(r"STS(?:20\d\d)?\.input\.(.+)\.txt")
_LAYOUTS = (
    "STS.input.*.txt and STS.gs.*.txt, sts-dev.csv and sts-test.csv, SICK_test_annotated.txt, test.data of PIT 2015, "
    "folders with such files, or a dataset with the split 'test' and the columns score, sentence1 and sentence2"
)
# Name of the forty sentence pairs of this package.
SAMPLE = "sample"
SICK, TWITTER = "SICK", "Twitter"
# The trial part of SICK, 500 pairs, is left out, because neither paper counts it.
SICK_FILES: Mapping[str, str] = {"train": "SICK_train.txt", "test": "SICK_test_annotated.txt"}
StsData = str | Path | Sequence[str | Path | StsSet]


def sets_of(data: StsData) -> list[StsSet]:
    """Return all sets of some data: files, folders and Hub datasets are read (see `read_sts`), sets taken as they are.

    Raises `InputError` if a set was read twice.
    """
    sets: list[StsSet] = []
    places: list[str | Path] = []
    for one in [data] if isinstance(data, str | Path) else data:
        if isinstance(one, StsSet):
            sets.append(one)
        else:
            places.append(one)
    read = list(chain.from_iterable(map(read_sts, places)))
    _check_twice(read, " and ".join(map(str, places)))
    return sets + read


def read_sts(data: Path | str) -> list[StsSet]:
    """Read all sets of a file, a folder or a Hub dataset.

    The data may be:

    - a folder in SentEval's layout, such as `STS12-en-test`;
    - the folder of the STS benchmark: dev, test and the development set of the papers, without train;
    - the folder of SICK, or of Twitter (PIT 2015);
    - a folder that holds such folders;
    - a file with scores and sentences, see `read_pair_file`;
    - a folder with a dataset (Parquet, JSON lines), or a Hub id such as `mteb/sts12-sts`;
    - `sample`, forty sentence pairs of this package.
    """
    path = Path(data).expanduser()
    if is_sample(data):
        return [_sample()]
    check_regular(path)
    for split in _SPLITS:
        # Files of other data may have this name too, but fewer columns.
        if path.name == f"sts-{split}.csv" and path.is_file() and read_lines(path)[0].count("\t") >= 6:
            return [read_benchmark(path.parent, split)]
    if path.is_file() or (path / SAVED).is_file():
        return [read_pair_file(path)]
    if not path.is_dir():
        if re.fullmatch(r"[\w-][\w.-]*/[\w-][\w.-]*", str(data)):
            return [read_hub(str(data))]
        raise InputError(
            f"there is no file or folder {data}; expected STS data, a Hub id like 'mteb/sts12-sts' or {SAMPLE!r}"
        )
    sets = _sets_in(path)
    if not sets:
        for folder in sorted(path.iterdir()):
            if folder.is_dir():
                sets += _sets_in(folder)
    if not sets:
        if any(file.name.endswith((".parquet", ".jsonl", ".jsonl.gz", ".arrow")) for file in path.rglob("*")):
            return [read_hub(str(path))]
        raise InputError(f"{path} holds no STS data: expected {_LAYOUTS}")
    _check_twice(sets, path)
    return sets


def is_sample(data: Path | str) -> bool:
    """Return whether `data` names the sentence pairs of this package, `sample`, and not a path of this name."""
    return str(data) == SAMPLE and not Path(data).exists()


def _sample() -> StsSet:
    """Read the sentence pairs of this package."""
    return read_pair_file(ASSETS / "sample" / "similarity.tsv", SAMPLE)


def _sets_in(folder: Path) -> list[StsSet]:
    """Read the sets whose files are in a folder, but not in its subfolders; an empty list if there are none."""
    names = {file.name for file in folder.iterdir()}
    sets = read_senteval(folder) if any(map(_INPUT.fullmatch, names)) else []
    benchmark = [split for split in _SPLITS[1:] if f"sts-{split}.csv" in names]
    for split in benchmark:
        sets.append(read_benchmark(folder, split))
    if len(benchmark) == 2:
        sets.append(development_set(folder))
    if names & set(SICK_FILES.values()):
        sets.append(read_sick(folder))
    if "test.data" in names:
        sets.append(read_pit(folder))
    return sets


def _check_twice(sets: list[StsSet], path: Path | str) -> None:
    """Raise `InputError` if two sets have the same title; `path` is their location, for the error."""
    for title, count in Counter(each.title for each in sets).items():
        if count > 1:
            raise InputError(f"{path} holds {title} twice; move one copy elsewhere")


def read_senteval(folder: Path) -> list[StsSet]:
    """Read the sets of one year in SentEval's layout.

    A set is two files with as many lines: `STS.input.<name>.txt` has two sentences with a tab between them on each
    line, and `STS.gs.<name>.txt` the gold scores. Text after a second tab, such as the sources in 2016, is left out.
    """
    name = folder.resolve().name
    match = re.search(r"STS(?:20)?(1[2-6])(?!\d)", name, re.IGNORECASE)
    year = f"STS{match[1]}" if match else name
    for file in sorted(folder.glob("STS*.gs.*.txt")):
        sentences = file.with_name(file.name.replace(".gs.", ".input.", 1))
        if not sentences.exists():
            raise InputError(f"{file} has no {sentences.name} next to it; get the data again")
    sets = []
    for file in sorted(folder.iterdir()):
        named = _INPUT.fullmatch(file.name)
        if named is None:
            continue
        gold_file = file.with_name(file.name.replace(".input.", ".gs.", 1))
        lines, golds = read_lines(file), read_lines(gold_file)
        if len(lines) != len(golds):
            raise InputError(
                f"expected as many pairs as gold scores, but {file} has {counted(len(lines), 'line')} and {gold_file} "
                f"has {len(golds)}: one of them is cut off; get the data again"
            )
        pairs = []
        for number, (line, gold) in enumerate(zip(lines, golds, strict=True), 1):
            left, right, *_ = [*line.split("\t"), ""]
            if gold.strip() and not right:
                raise InputError(
                    f"{file}, line {number}: expected two sentences and a tab between, found {line[:40]!r}"
                )
            pairs.append(ScoredPair(gold, left, right, f"{gold_file}, line {number}", f"{file}, line {number}"))
        sets.append(collect(named[1], pairs, gold_file, year=year, scale=SCALE))
    return sets


def read_benchmark(folder: Path | str, split: Split = "test") -> StsSet:
    """Read a split of the STS benchmark, with subsets that get scores of their own.

    The subsets are:

    - `captions`, the rows of the genre `main-captions` (table 16 of ParaNMT-50M): MSRvid, images, and track 5 of 2017;
    - `no captions`, all other rows;
    - `v2`, for dev and test only, the pairs of MTEB's task `STSBenchmark.v2`: those that occur once in all splits, in
      either order. This subset is left out if the folder lacks a split.
    """
    folder = Path(folder)
    rows = _benchmark_rows(folder, split)
    captions = np.array([row.genre for row in rows], np.str_) == "main-captions"
    subsets = {"captions": captions, "no captions": ~captions}
    others = [folder / f"sts-{other}.csv" for other in _SPLITS if other != split]
    if split != "train" and all(map(Path.is_file, others)):
        counts = Counter(row.key for other in _SPLITS for row in _benchmark_rows(folder, other))
        subsets["v2"] = np.array([counts[row.key] for row in rows]) == 1
    filled = {name: mask for name, mask in subsets.items() if mask.any()}
    pairs = [row.pair for row in rows]
    return collect(f"STSB-{split}", pairs, folder / f"sts-{split}.csv", subsets=filled, scale=SCALE)


def development_set(folder: Path | str) -> StsSet:
    """Read the papers' development set: the 250 pairs of STS 2017 track 5, which are in no test set of 2012-2016.

    They are the rows `track5.en-en` of the dev and test files of the STS benchmark. The whole dev file must not select
    a model that is tested on STS 2012-2016, because most of its pairs come from those years.

    Args:
        folder: Folder of the STS benchmark, or a folder that holds it under the name `STSBenchmark`.
    """
    folder = benchmark_folder(folder)
    rows = [*_benchmark_rows(folder, "dev"), *_benchmark_rows(folder, "test")]
    pairs = [row.pair for row in rows if row.file == "track5.en-en"]
    if len(pairs) != 250:
        raise InputError(
            f"expected 250 pairs of track5.en-en in sts-dev.csv and sts-test.csv of {folder}, found {len(pairs)}; get "
            "the STS benchmark again"
        )
    return collect(DEVELOPMENT, pairs, folder, scale=SCALE)


def benchmark_folder(folder: str | Path) -> Path:
    """Return the folder of the STS benchmark: the given one, or `STSBenchmark` in it."""
    folder = Path(folder).expanduser()
    inner = folder / "STSBenchmark"
    return inner if inner.is_dir() and not (folder / "sts-dev.csv").exists() else folder


class _BenchmarkRow(NamedTuple):
    """A row of the STS benchmark."""

    genre: str  # Genre, such as `main-captions`
    file: str  # Name of the set that the pair comes from, such as `track5.en-en`
    pair: ScoredPair

    @property
    def key(self) -> tuple[str, ...]:
        """The two sentences in sorted order, without case, so that equal pairs have equal keys in either order."""
        return tuple(sorted(" ".join(text.lower().split()) for text in (self.pair.left, self.pair.right)))


def _benchmark_rows(folder: Path, split: str) -> list[_BenchmarkRow]:
    """Read the rows of a split that have a score."""
    path = folder / f"sts-{split}.csv"
    if not path.is_file():
        raise InputError(f"there is no {path}: expected the folder of the STS benchmark with sts-{split}.csv")
    rows = []
    # Some rows have two more columns, with licences.
    for place, fields in tab_separated(path, 7, "genre, file, year, id, score and two sentences"):
        genre, file, _, _, score, left, right = fields[:7]
        if score.strip():
            rows.append(_BenchmarkRow(genre, file, ScoredPair(score, left, right, place)))
    return rows


def read_sick(folder: Path) -> StsSet:
    """Read the relatedness scores of SICK (Marelli et al. 2014): the parts train and test, or the one that is there.

    The parts are subsets of the set. PARAGRAM-PHRASE (arXiv:1511.08198) reports the test part, Sent2Vec
    (arXiv:1703.02507, table 2) both together.
    """
    parts = {part: read_relatedness(folder / name) for part, name in SICK_FILES.items() if (folder / name).exists()}
    sentences, gold = zip(*chain.from_iterable(parts.values()), strict=True)
    left, right = map(list, zip(*sentences, strict=True))
    of_part = np.repeat(list(parts), list(map(len, parts.values())))
    subsets = {part: of_part == part for part in parts}
    return StsSet(SICK, left, right, np.array(gold, np.float64), subsets=subsets)


def read_pit(folder: Path) -> StsSet:
    """Read `test.data`, the test part of PIT 2015 (Xu et al. 2015): pairs of tweets with scores from 0 to 5."""
    path = folder / "test.data"
    pairs = []
    for place, fields in tab_separated(path, 5, "topic, its name, two sentences and a judgement"):
        left, right, judgement = fields[2:5]
        if not re.fullmatch("[0-5]", judgement.strip()):
            raise InputError(
                f"{place}: expected a judgement from 0 to 5 in the fifth column, found {judgement[:40]!r}; get the "
                "file with the answers"
            )
        pairs.append(ScoredPair(judgement, left, right, place))
    return collect(TWITTER, pairs, path)


def read_hub(dataset: str, *, split: str = "test") -> StsSet:
    """Read a split of a dataset on the Hub, or in a local folder, as one set.

    Such a dataset has columns of scores and sentences, see `find_columns`. In MTEB's datasets, all sets of a year are
    one dataset.
    """
    from datasets import load_dataset, load_dataset_builder

    folder = Path(dataset)
    local = folder.is_dir()
    try:
        if local:
            splits = own_files(folder, lambda: load_dataset_builder(dataset))
            if splits and split not in splits:
                raise InputError(
                    f"{dataset} has no split {split!r}, only {', '.join(splits)}; STS data are {_LAYOUTS}", path=folder
                )
        rows = load_dataset(dataset, split=split)
    except InputError:
        raise
    except Exception as error:  # the library raises whatever the Hub, the files and pyarrow raise
        reason = str(error).strip().split("\n")[0]
        here = absent_here(dataset)
        where = f"{here}; taken for an id on the Hub: " if here else ""
        expected = f"; STS data are {_LAYOUTS}" if local else ""
        raise InputError(f"{where}cannot load the split {split!r} of {dataset}: {reason}{expected}") from None
    columns = find_columns(rows.column_names, folder)
    pairs = []
    try:
        for number, row in enumerate(rows, 1):
            score, left, right = ("" if row[column] is None else str(row[column]) for column in columns)
            pairs.append(ScoredPair(score, left, right, f"{dataset}, row {number}"))
    # Parquet readers do not check that text is UTF-8.
    except UnicodeDecodeError:
        raise InputError(f"{dataset}: expected text in UTF-8, found other bytes; write its files again") from None
    return collect(folder.resolve().name if local else dataset, pairs, folder)


def notes(sets: list[StsSet]) -> list[str]:
    """Return a sentence for each reason why yearly scores are not comparable with published ones.

    Reasons are years or sets that are missing, and sets with another number of pairs.
    """
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
    """Read a development set of scored sentence pairs; the scores may have any range.

    The data may be:

    - `sample`, forty sentence pairs of this package;
    - a file with scores and sentences, see `read_pair_file`;
    - the folder of the STS benchmark, from which the 250 pairs of STS 2017 track 5 are read;
    - a folder of Parquet files with the columns `sentence1`, `sentence2` and `score`;
    - a dataset on the Hub with these columns: its split `validation`, or the one after a colon, as in `you/pairs:dev`.

    Raises `InputError` if all scores are equal.
    """
    path = Path(data).expanduser()
    if is_sample(data):
        return _sample()
    if path.is_file() or (path / SAVED).is_file():
        pairs = read_pair_file(path)
    elif any((folder / "sts-dev.csv").exists() for folder in (path, path / "STSBenchmark")):
        return development_set(path)
    elif path.is_dir() and (files := sorted(path.rglob("*.parquet"))):
        rows = list(chain.from_iterable(map(read_pairs, map(open_table, files))))
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
