"""SICK and the tweets of SemEval 2015 (PIT), which the papers report beside the yearly STS sets."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from paranmt_hf.errors import InputError
from paranmt_hf.evaluation.pair_set import StsSet, collect, tab_fields

SICK, TWITTER = "SICK", "Twitter"
# The trial part of 500 pairs is in neither paper's figures.
SICK_FILES: Mapping[str, str] = {"train": "SICK_train.txt", "test": "SICK_test_annotated.txt"}
PIT_FILE = "test.data"
_SICK_HEADER = ["pair_ID", "sentence_A", "sentence_B", "relatedness_score", "entailment_judgment"]
_PIT_LABEL = re.compile(r"[0-5]")


def read_sick(folder: Path) -> StsSet:
    """Read the relatedness of SICK (Marelli et al. 2014): train and test together, each a subset.

    PARAGRAM-PHRASE (arXiv:1511.08198) reports the test part, Sent2Vec (arXiv:1703.02507, table 2) both.

    Args:
        folder: A folder with `SICK_train.txt` and `SICK_test_annotated.txt`, or one of them, as published.

    Raises:
        InputError: There is neither, or a line is malformed.
    """
    parts = {}
    for part, name in SICK_FILES.items():
        if (folder / name).exists():
            path = folder / name
            lines = list(tab_fields(path, 5, "pair, two sentences, relatedness and judgement"))
            if [field.strip() for field in lines[0]] != _SICK_HEADER:
                raise InputError(
                    f"{path}, line 1: expected the header {' '.join(_SICK_HEADER)!r} with tabs between, found "
                    f"{' '.join(lines[0])[:60]!r}; is it the original file?"
                )
            rows = [(fields[3], fields[1], fields[2]) for fields in lines[1:]]
            parts[part] = collect(SICK, rows, (path, path), first=2)
    if not parts:
        raise InputError(f"{folder} holds no SICK: expected {' and '.join(SICK_FILES.values())}")
    sizes = {part: len(each) for part, each in parts.items()}
    of_part = np.repeat(list(sizes), list(sizes.values()))
    return StsSet(
        SICK,
        [sentence for each in parts.values() for sentence in each.left],
        [sentence for each in parts.values() for sentence in each.right],
        np.concatenate([each.gold for each in parts.values()]),
        skipped=sum(each.skipped for each in parts.values()),
        subsets={part: of_part == part for part in sizes},
    )


def read_pit(folder: Path) -> StsSet:
    """Read the test part of PIT 2015 (Xu et al. 2015): pairs of tweets, and an expert's judgement from 0 to 5.

    Args:
        folder: A folder with `test.data`: topic id, topic, two sentences, judgement, and tags of both, as published.

    Raises:
        InputError: A line is malformed, or holds no judgement, as those of the version without answers.
    """
    path = folder / PIT_FILE
    rows = []
    for number, fields in enumerate(tab_fields(path, 5, "topic, its name, two sentences and a judgement"), 1):
        if not _PIT_LABEL.fullmatch(fields[4].strip()):
            raise InputError(
                f"{path}, line {number}: expected a judgement from 0 to 5 in the fifth column, found "
                f"{fields[4][:40]!r}; get the file with the answers"
            )
        rows.append((fields[4], fields[2], fields[3]))
    return collect(TWITTER, rows, (path, path))
