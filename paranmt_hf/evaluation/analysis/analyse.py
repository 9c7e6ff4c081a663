"""`paranmt analyse`: the analyses of the sibling papers.

PARAGRAM-PHRASE (Wieting et al. 2016, arXiv:1511.08198), sections 5 and 6; Sent2Vec (arXiv:1703.02507), figure 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from paranmt_hf.errors import InputError
from paranmt_hf.evaluation.analysis.lengths import UP_TO, LengthTable, pearson_by_length
from paranmt_hf.evaluation.analysis.neighbours import COMMON, NeighbourTable, find_neighbours
from paranmt_hf.evaluation.analysis.norms import FIRST_WORDS, NormTable, measure_norms
from paranmt_hf.evaluation.analysis.under_trained import AT_LEAST, CoverageTable, measure_coverage, read_references
from paranmt_hf.evaluation.evaluate import evaluate, sets_of
from paranmt_hf.evaluation.pair_set import StsSet
from paranmt_hf.evaluation.results import StsResult
from paranmt_hf.evaluation.word_averages import count_words, word_vectors, words_in_order
from paranmt_hf.evaluation.word_counts import counts_by_rank
from paranmt_hf.evaluation.word_weights import RANK, AverageConfig
from paranmt_hf.text.definitions import words as cut

Data = str | Path | Sequence[str | Path | StsSet]


def analyse_lengths(
    models: Sequence[str | Path],
    data: Data,
    *,
    vectors: Sequence[str | Path] = (),
    averages: AverageConfig | None = None,
    up_to: Sequence[int] = UP_TO,
    bootstrap: int = 0,
) -> LengthTable:
    """Compute Pearson's r by the length of the longer sentence, over the pairs of all sets together (table 7).

    Args:
        models: Folders or Hub ids of encoders; `embedded` is the one that the package carries.
        data: STS data, see `evaluate`; of those with years the yearly sets are pooled, else all.
        vectors: Files of word vectors, whose averages are analysed beside the models.
        averages: How the words of these averages are weighted.
        up_to: Most tokens of each bin but the last one, ascending.
        bootstrap: Resamples for 95 % intervals; 0 for none.

    Raises:
        InputError: There is nothing to analyse, or a model or the data cannot be read.
    """
    sets = sets_of(data)
    return pearson_by_length(_results(models, sets, vectors, averages), sets, up_to=list(up_to), bootstrap=bootstrap)


def analyse_under_trained(
    models: Sequence[str | Path],
    data: Data,
    training: str | Path,
    *,
    vectors: Sequence[str | Path] = (),
    averages: AverageConfig | None = None,
    at_least: int = AT_LEAST,
    references: str | Path | None = None,
) -> CoverageTable:
    """Measure which part of the tokens of each set training hardly saw, beside Pearson's r (section 5.1).

    Args:
        models: Folders or Hub ids of encoders.
        data: STS data, see `evaluate`.
        training: What the models learned from: a release, Parquet files, a text; or a list of words and counts.
        vectors: Files of word vectors, whose averages are measured beside the models.
        averages: How the words of these averages are weighted.
        at_least: Words that were seen fewer times are under-trained.
        references: A file with figures that Pearson's r is compared with, see `read_references`.

    Raises:
        InputError: A model or the data cannot be read.
    """
    if at_least < 1:
        raise InputError(f"--at-least must be at least 1, was {at_least}")
    sets = sets_of(data)
    compared = None if references is None else read_references(Path(references))
    counts = count_words(training)
    results = _results(models, sets, vectors, averages)
    return measure_coverage(results, sets, counts, at_least=at_least, references=compared)


def _results(
    models: Sequence[str | Path],
    sets: Sequence[StsSet],
    vectors: Sequence[str | Path],
    averages: AverageConfig | None,
) -> list[StsResult]:
    if not models and not vectors:
        raise InputError("name an encoder, or a file of --vectors")
    found = evaluate(models, sets, vectors=vectors, averages=averages, bootstrap=0, measure=False)
    return [each.result for each in found]


def analyse_neighbours(
    spaces: Sequence[str | Path],
    words: Sequence[str],
    *,
    frequencies: str | Path = RANK,
    common: int = COMMON,
    top: int = 10,
) -> NeighbourTable:
    """Find the nearest neighbours of words among the most common ones, in several spaces side by side (table 8).

    Args:
        spaces: Encoders, or files of word vectors.
        words: The words.
        frequencies: How often words occur: `rank` (the order of the first space), or see `count_words`.
        common: How many of the most common words can be neighbours.
        top: Neighbours of each word.

    Raises:
        InputError: A space cannot be read or has no word vectors, or none of the words is in any.
    """
    _check_numbers(common, top)
    asked = [_one_word(word) for word in words]
    if not spaces or not asked:
        raise InputError("name encoders or files of word vectors, and --words")
    names = [str(space) for space in spaces]
    by_rank = str(frequencies) == RANK
    counts = counts_by_rank(words_in_order(spaces[0]), names[0]) if by_rank else count_words(frequencies)
    frequent = counts.most_frequent(common)
    wanted = {*frequent, *asked}
    found = [(name, word_vectors(space, wanted)) for name, space in zip(names, spaces, strict=True)]
    return find_neighbours(found, asked, frequent, counts.source, top=top)


def _one_word(text: str) -> str:
    tokens = cut(text)
    if len(tokens) != 1:
        raise InputError(f"{text!r} is {len(tokens)} words; neighbours are those of one word")
    return tokens[0]


def analyse_norms(
    spaces: Sequence[str | Path],
    *,
    frequencies: str | Path = RANK,
    first_words: int = FIRST_WORDS,
    common: int = COMMON,
    top: int = 10,
) -> NormTable:
    """Measure how the norms of word vectors go with frequency (section 6; Sent2Vec, figure 1).

    Args:
        spaces: Encoders, or files of word vectors.
        frequencies: How often words occur: `rank` (the order of each by itself), or see `count_words`.
        first_words: So many words of a file are read, from its beginning; of an encoder all are.
        common: The words with the largest and smallest norms are chosen from so many of the most common ones.
        top: How many of them are named.

    Raises:
        InputError: A space cannot be read or has no word vectors, or none of its words was seen.
    """
    _check_numbers(common, top)
    if first_words < 2:
        raise InputError(f"--first-words must be at least 2, was {first_words}")
    if not spaces:
        raise InputError("name encoders or files of word vectors")
    counted = None if str(frequencies) == RANK else count_words(frequencies)
    found = []
    for space in spaces:
        vectors = word_vectors(space, limit=first_words)
        found.append((str(space), vectors, counted or counts_by_rank(vectors.words, str(space))))
    source = counted.source if counted else "order of the words of each (Zipf's law)"
    return measure_norms(found, source, common=common, top=top)


def _check_numbers(common: int, top: int) -> None:
    for name, value in (("--common", common), ("--top", top)):
        if value < 1:
            raise InputError(f"{name} must be at least 1, was {value}")
