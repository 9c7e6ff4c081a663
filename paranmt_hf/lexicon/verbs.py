"""A lexicon of word paraphrases from a corpus: made, looked up, and measured on word similarity.

ParaNMT-50M (arXiv:1711.05732), appendix A.1, Tables 12 and 13.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from paranmt_hf.corpus.bitext.phrases import read_word_scores
from paranmt_hf.corpus.pairs import Pairs, PairSelection
from paranmt_hf.errors import InputError
from paranmt_hf.evaluation.word_similarity import (
    WordSimilarity,
    evaluate_word_scores,
    in_both_orders,
    read_word_pairs,
)
from paranmt_hf.lexicon.building import build, holds_word_sets
from paranmt_hf.lexicon.config import LexiconConfig
from paranmt_hf.lexicon.lexicon import Lexicon
from paranmt_hf.lexicon.record import LexiconRecord, LexiconSettings
from paranmt_hf.text.word_rules import ENGLISH
from paranmt_hf.training.card import languages
from paranmt_hf.util.files import write_result
from paranmt_hf.util.progress import Progress
from paranmt_hf.util.run import result_folder, run


def build_lexicon(
    data: str | Path | Sequence[str | Path], out: str | Path, *, config: LexiconConfig | None = None
) -> Lexicon:
    """Make a lexicon of word paraphrases.

    What is in progress lies in `OUT.work`; after an interruption the same call goes on there.

    Args:
        data: Releases, Parquet files with the columns of a release, or releases on the Hub.
        out: Folder of the lexicon.
        config: Which pairs of sentences count, which words, and how much memory it may take.
    """
    config, out = config or LexiconConfig(), result_folder(out, LexiconRecord)
    sources = [data] if isinstance(data, str | Path) else list(data)
    # Scores are numbers of single precision, and the one that is nearest to 0.35 lies below it.
    min_score = float(np.float32(config.min_score))
    pairs = Pairs(sources, PairSelection(min_score=min_score, max_length=config.max_length))
    settings = LexiconSettings(pairs.identity, config.words, config.min_count, _language(pairs.identity))
    return run(
        out,
        settings,
        LexiconRecord,
        lambda work, folder: build(lambda: _counted(pairs, config), work, folder, config, settings),
        result=lambda folder, record, fresh: Lexicon(folder, record),
        command="lexicon build",
        holds=holds_word_sets,
    )


def _language(pairs: Mapping[str, Any]) -> str:
    """The language of the pairs; several are refused."""
    spoken = languages(pairs)
    if len(spoken) > 1:
        raise InputError(
            f"the releases are of several languages ({', '.join(spoken)}), and a lexicon has words of one; make one "
            "of each"
        )
    return spoken[0] if spoken else ENGLISH


def _counted(pairs: Pairs, config: LexiconConfig) -> Iterator[pa.Table]:
    """Read the pairs that count, and refuse a corpus that has none."""
    kept = 0
    with Progress("words", unit="pairs of sentences") as progress:
        for table in pairs.batches():
            yield table
            kept += table.num_rows
            progress.advance_to(pairs.read)
    if not kept:
        raise InputError(
            f"none of {pairs.read:,} pairs of sentences counts: expected a paraphrase score of at least "
            f"{config.min_score:g} and at most {config.max_length} word tokens on each side; a pair without a score "
            "does not count. Change --min-score or --max-length, or score the release (`paranmt score`)"
        )


def evaluate_lexicon(
    lexicon: Lexicon | str | Path, simlex: str | Path, *, ppdb: str | Path | None = None
) -> list[WordSimilarity]:
    """Measure a lexicon on SimLex-999; ParaNMT-50M (arXiv:1711.05732), Table 13.

    Args:
        lexicon: The lexicon, or its folder.
        simlex: The file of SimLex-999, or another one of word pairs and similarities.
        ppdb: A file of lexical paraphrases of PPDB, the baseline.

    Returns:
        The results of PPDB, if it was named, of PMI, and of adjusted PMI.
    """
    opened = lexicon if isinstance(lexicon, Lexicon) else Lexicon.open(lexicon)
    pairs = read_word_pairs(simlex)
    wanted = in_both_orders(pairs)
    results = []
    if ppdb is not None:
        results.append(evaluate_word_scores(pairs, *read_word_scores(ppdb, wanted)))
    rows = opened.lookup(wanted)
    results.append(evaluate_word_scores(pairs, {pair: row.pmi for pair, row in rows.items()}, "PMI"))
    adjusted = {pair: row.adjusted_pmi for pair, row in rows.items()}
    return [*results, evaluate_word_scores(pairs, adjusted, "adjusted PMI")]


def write_json(path: str | Path, values: Any) -> None:  # noqa: ANN401 - JSON values
    """Write what was found as JSON; until it is whole, what was there stays."""
    write_result(Path(path), f"{json.dumps(values, indent=2, ensure_ascii=False)}\n")
