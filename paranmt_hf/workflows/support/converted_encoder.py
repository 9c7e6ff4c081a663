"""What a converted Sent2Vec model consists of beside its weights."""

from __future__ import annotations

import numpy as np
import torch

from paranmt_hf.corpus.bitext.readers import Report
from paranmt_hf.encoders.modules.paranmt_averages import AverageEmbedding, NgramEmbedding, WordEmbedding
from paranmt_hf.encoders.modules.paranmt_tables import blank_tokens, known_rows, ngram_buckets
from paranmt_hf.encoders.sent2vec_bin import Sent2VecWords
from paranmt_hf.encoders.sentence_encoder import SentenceEncoder
from paranmt_hf.encoders.units import WordLookup
from paranmt_hf.encoders.vocabulary import Vocabulary
from paranmt_hf.errors import InputError
from paranmt_hf.text import cut_chunk
from paranmt_hf.tokens import WordTokenizer
from paranmt_hf.workflows.support.sentence_file import SentenceFile

# How text is cut, by the name of the setting.
CUTS = {"words": cut_chunk, "blanks": blank_tokens}
# The program's name for the end of a line, which is no word of a text.
END_OF_LINE = "</s>"
# Buckets that are collected before repeated ones among them go.
COLLECTED = 2**22


def unreachable(found: Sent2VecWords, cut: str) -> int:
    """Count the words that no text can hold, because it is cut otherwise."""
    words = (unit for unit in found.units[1:] if unit != END_OF_LINE)
    return sum(" " in unit or CUTS[cut](unit) != [unit] for unit in words)


def kept_buckets(path: str, found: Sent2VecWords, order: int, cut: str) -> np.ndarray:
    """Find the buckets of the n-grams that occur in a text [bucket], int64, ascending.

    Raises:
        InputError: The text cannot be read, or holds no two known words beside each other.
    """
    tokenizer, lookup = WordTokenizer(cut=CUTS[cut]), WordLookup(Vocabulary("word", found.units))
    kept, waiting = np.empty(0, np.int64), []
    for _, sentences in SentenceFile(path).batches(Report()):
        (table,) = tokenizer.tables(sentences)
        bags = lookup.bags(table)
        buckets, _ = ngram_buckets(*known_rows(bags.rows, bags.offsets), order, found.settings.bucket)
        waiting.append(np.unique(buckets))
        if sum(map(len, waiting)) > max(COLLECTED, len(kept)):
            kept, waiting = np.unique(np.concatenate([kept, *waiting])), []
    kept = np.unique(np.concatenate([kept, *waiting]))
    if not len(kept):
        raise InputError(
            f"--text {path} holds no two words of the model beside each other, so no n-gram would be left; name text "
            "of the model's language, or --order 1"
        )
    return kept


def make_frame(
    found: Sent2VecWords, order: int, cut: str, precision: str, kept: np.ndarray | int, *, stock: bool
) -> SentenceEncoder:
    """Make an encoder with all but the weights, of one dimension: when it is saved, its weights are put in place.

    Args:
        found: The words.
        order: Words of the longest n-grams.
        cut: How text is cut.
        precision: How the weights are stored.
        kept: The buckets that have a row, ascending; a number for all below it.
        stock: Whether it is WORD, which is saved as a stock module.
    """
    hashes = np.arange(kept) if isinstance(kept, int) else kept
    weight = torch.zeros(len(found.units) + len(hashes), 1)
    module: AverageEmbedding = (
        WordEmbedding(found.units, weight, precision)
        if stock
        else NgramEmbedding(
            found.units,
            weight,
            precision,
            order=order,
            buckets=found.settings.bucket if order > 1 else 0,
            hashes=hashes,
            cut=cut,
        )
    )
    return SentenceEncoder(modules=[module], device="cpu", similarity_fn_name="cosine")
