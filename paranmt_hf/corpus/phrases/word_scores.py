"""Scores of chosen word pairs from a file of phrase pairs."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from paranmt_hf.corpus.bitext.readers import Report
from paranmt_hf.corpus.phrases.files import SCORE, SIDES, PhraseFiles, features_of, first_line, is_rule

# The scores of PPDB 2.0 and 1.0; of a file that has both the first one counts.
SCORES = ("PPDB2.0Score", "PPDB1.0Score")

WordPairKey = tuple[str, str]


def read_word_scores(path: str | Path, wanted: Collection[WordPairKey]) -> tuple[dict[WordPairKey, float], str]:
    """Read the scores of word pairs from a file of the Paraphrase Database (Pavlick et al. 2015), or from a list.

    The score of a pair is the feature `PPDB2.0Score`, else `PPDB1.0Score`; of several lines of a pair (with other
    parts of speech) the first one counts. In a list, and in a file without these features, each pair that is there has
    the score 1.

    Args:
        path: The file, plain or compressed.
        wanted: Words and paraphrases in lower case; others are passed over.

    Returns:
        The scores of the wanted pairs that are there, and a name that says what they are.

    Raises:
        InputError: A line is malformed or of another form than the first one; with file and line.
    """
    path = Path(path).expanduser()
    reader = PhraseFiles([path])
    features = features_of(path) if is_rule(first_line(path)) else []
    score = next((name for name in SCORES if name in features), None)
    if score is not None:
        reader = PhraseFiles([path], score=score)
    keys = pa.array([_joined(*pair) for pair in wanted], pa.string())
    scores: dict[WordPairKey, float] = {}
    for batch in reader.batches(Report()):
        sides = [pc.utf8_lower(batch[side]) for side in SIDES]
        hits = batch.filter(pc.is_in(pc.binary_join_element_wise(*sides, "\t"), keys)).to_pydict()
        found = hits.get(SCORE) or [1.0] * len(hits["id"])
        for *pair, value in zip(*(hits[side] for side in SIDES), found, strict=True):
            if value is not None:
                scores.setdefault((pair[0].lower(), pair[1].lower()), value)
    return scores, f"PPDB{'' if score else ', listed or not'} ({path.name})"


def _joined(word: str, paraphrase: str) -> str:
    return f"{word}\t{paraphrase}"
