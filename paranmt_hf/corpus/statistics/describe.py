"""`paranmt stats`: lengths, IDF, entropies and paraphrase scores of corpora side by side.

The figures are those of ParaNMT-50M (Wieting & Gimpel 2018), section 3.2, table 1.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import pyarrow as pa
from scipy.sparse import csr_array

from paranmt_hf.corpus.parsing.parsers import NAMED_PARSERS, Parser, open_parser, parse_sentences
from paranmt_hf.corpus.parsing.trees import READINGS, Reading, top_levels
from paranmt_hf.corpus.reading.pair_columns import check_names
from paranmt_hf.corpus.reading.readers import Report
from paranmt_hf.corpus.release.record import RELEASE_RECORD
from paranmt_hf.corpus.statistics.diversity import (
    HEADER,
    IDF,
    OTHER_TOKENS,
    TOKENS,
    CorpusFigures,
    DocumentFrequencies,
    ParseFigures,
    WordCounter,
    corpus_figures,
    figures_row,
    mean_idf,
    notes_of,
    parse_figures,
    plot_figures,
    spread,
)
from paranmt_hf.corpus.statistics.sampling import COLUMN_NAMES, MeasuredCorpus, draw, open_corpus
from paranmt_hf.errors import InputError
from paranmt_hf.text.languages import ENGLISH, LANGUAGES, check_language
from paranmt_hf.text.tokens import CorpusIds, PerToken
from paranmt_hf.util.files import listed, refuse_inside, resolved, result_file, write_result, writing
from paranmt_hf.util.machine import visible_cores
from paranmt_hf.util.markers import Advanced, AlsoWrites, Count, Group, PythonOnly, Range, RunOnly, Seed, Writes
from paranmt_hf.util.optional import require
from paranmt_hf.util.progress import Progress
from paranmt_hf.util.records import as_json
from paranmt_hf.util.settings import Settings
from paranmt_hf.util.tables import markdown_table, text_table
from paranmt_hf.version import __version__

MAX_SENTENCES = 2_000_000  # Largest number of sentences in memory, about a gigabyte of text


@dataclass(frozen=True)
class StatsConfig(Settings):
    """Which statistics are computed.

    Attributes:
        sample: Maximum number of sentences of each corpus, sampled at random (ParaNMT-50M, table 1: 100,000).
        seed: Seed of the sample.
        language: Language of the sentences, an ISO 639-1 code (default: that of the corpora, else en).
        side: Which sentence of each pair is measured.
        by_origin: Add a row for each origin of a corpus.
    """

    sample: Annotated[int, Range(at_least=1, at_most=MAX_SENTENCES)] = 100_000
    seed: Annotated[Seed, PythonOnly] = 0
    language: str | None = None
    side: Literal["reference", "translation"] = "reference"
    by_origin: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.language is not None:
            check_language(self.language)


@dataclass(frozen=True)
class ParsingConfig(Settings):
    """How the trees of a sample are made and counted.

    Attributes:
        levels: Levels of a tree that count: two-levels is the root of the sentence and the level below, two-below the
            root and two levels below, with-wrapper the outermost node (ROOT) and the level below.
        max_parsed: Maximum number of sentences that are parsed in each sample.
        keep: File in which trees are kept; sentences in it are not parsed again.
    """

    levels: Reading = "two-levels"
    max_parsed: Count | None = None
    keep: Annotated[Path | None, RunOnly, AlsoWrites] = None


@dataclass(frozen=True)
class CorpusStatistics:
    """Figures of corpora side by side."""

    version: str  # Version of this package
    side: str  # Which sentences of pairs are measured
    sample: int  # Maximum number of sentences in the sample of each corpus
    seed: int  # Seed of the samples
    tokens: str  # Definition of a token
    idf: str  # Formula of the inverse document frequency
    idf_text: str | None  # Name of the text that gives document frequencies; None if each sample gives its own
    idf_sentences: int | None  # Number of sentences in that text; None without one
    parse_levels: str | None  # Levels of a tree that count; None without a parser
    corpora: list[CorpusFigures]  # Figures of each corpus, each followed by those of its origins

    def to_json(self) -> dict[str, Any]:
        """Return the figures as JSON values."""
        return as_json(self)

    def summary(self) -> str:
        """Return the figures as a table for a terminal, with notes below it."""
        return "\n\n".join([text_table(HEADER, list(map(figures_row, self.corpora))), "\n".join(self.notes())])

    def markdown(self) -> str:
        """Return the figures as a table in Markdown, with notes below it."""
        notes = "\n".join(f"- {note}" for note in self.notes())
        return "\n\n".join([markdown_table(HEADER, list(map(figures_row, self.corpora))), notes])

    def notes(self) -> list[str]:
        """Return sentences that explain what the figures measure."""
        idf = f"IDF: {self.idf}. Sentences: "
        if self.idf_text is None:
            idf += "each sample's own, so compare it between corpora only with `idf_text`."
        else:
            idf += f"the {self.idf_sentences:,} of {self.idf_text}."
        parses = "no parser; `parser` takes link-grammar, stanza, or a file of trees."
        if self.parse_levels is not None:
            parses = f"of trees cut to {self.parse_levels}."
        return [
            f"Mean ± standard deviation over at most {self.sample:,} {self.side}s of each corpus, sampled with seed "
            f"{self.seed}; entropies in nats.",
            f"Tokens: {self.tokens}.",
            idf,
            f"Parse entropy: {parses}",
            *(note for figures in self.corpora for note in notes_of(figures)),
        ]

    def plot(self, path: Path) -> None:
        """Draw the distributions of the figures, the corpora side by side, into a PNG file."""
        plot_figures(self.corpora, path)


def describe_corpora(
    data: str | Path | Sequence[str | Path],
    *,
    config: StatsConfig | None = None,
    columns: Mapping[str, str] | None = None,
    idf_text: str | Path | None = None,
    parser: str | Path | Parser | Sequence[str | Path | Parser] = (),
    parsing: Annotated[ParsingConfig | None, Group(), Advanced] = None,
    write_samples: Annotated[Path | None, Advanced, RunOnly, AlsoWrites] = None,
    write: Annotated[Sequence[str | Path], RunOnly, Writes] = (),
) -> CorpusStatistics:
    """Measure samples of corpora side by side: table 1 of ParaNMT-50M.

    Args:
        data: Corpora, folders of their configs, files with columns (docs/formats.md), or text files with a sentence
            on each line.
        config: Which statistics are computed.
        columns: Columns of files, such as reference=english,para_score=score.
        idf_text: Corpus whose sentences give the document frequencies (the paper: Wikipedia); if left out, each sample
            gives its own.
        parser: Source of trees: link-grammar, stanza, or files of trees, one for each corpus; without it there is no
            parse entropy.
        parsing: How trees are made and counted.
        write_samples: Folder for the sentences of each sample.
        write: Files for the table in Markdown (.md), and for a picture of the figures (.png, extra `plots`).
    """
    config, parsing, columns = config or StatsConfig(), parsing or ParsingConfig(), dict(columns or {})
    sources = listed(data)
    files = _files_to_write(write_samples, write, sources)
    corpora = [open_corpus(path, side=config.side, columns=columns, by_origin=config.by_origin) for path in sources]
    background = None if idf_text is None else open_corpus(idf_text, columns=columns)
    _check_columns(corpora, background, config, columns)
    language = _language(config, corpora)
    parsers = _parsers(corpora, parser, language)
    ids = CorpusIds()
    counter = WordCounter(ids, language)
    measured: list[tuple[CorpusFigures, csr_array]] = []
    file_names: set[str] = set()  # Names of the files of samples so far
    for corpus, name, corpus_parser in zip(corpora, _names(corpora), parsers, strict=True):
        report = Report()
        with Progress(f"read {name}", unit="rows") as progress:
            samples = draw(
                corpus, config.sample, config.seed, limit=MAX_SENTENCES, report=report, progress=progress.advance_to
            )
        for origin, sample in samples.items():
            label = name if origin is None else f"{name}: {origin or 'no origin'}"
            table = sample.table()
            if write_samples is not None:
                _write_sample(write_samples, label, table["sentence"], file_names)
            counts = counter.count(table["sentence"])
            parses = None if corpus_parser is None else _parse(table["sentence"], label, corpus_parser, parsing)
            dropped = dict(sorted(report.dropped.items())) if origin is None else {}
            figures = corpus_figures(label, table, counts, sample.seen, parses=parses, dropped=dropped)
            measured.append((figures, counts))
    shared = None if background is None else _document_frequencies(background, ids.id_of, language)
    statistics = CorpusStatistics(
        version=__version__,
        side=config.side,
        sample=config.sample,
        seed=config.seed,
        tokens=TOKENS if language == ENGLISH else OTHER_TOKENS.format(LANGUAGES.get(language, language)),
        idf=IDF,
        idf_text=None if background is None else background.path.name,
        idf_sentences=None if shared is None else shared.sentences,
        parse_levels=READINGS[parsing.levels] if any(one is not None for one in parsers) else None,
        corpora=[
            replace(figures, idf=spread(mean_idf(counts, (shared or own_frequencies(counts)).idf), "idf"))
            for figures, counts in measured
        ],
    )
    for path in files:
        if path.suffix.lower() == ".png":
            statistics.plot(path)
        else:
            write_result(path, f"{statistics.markdown()}\n")
    return statistics


def _files_to_write(
    write_samples: Path | None, write: Sequence[str | Path], sources: Sequence[str | Path]
) -> list[Path]:
    """Return the files to write for `write`, after checking that they and the folder of samples can be written."""
    if write_samples is not None and write_samples.exists() and not write_samples.is_dir():
        raise InputError(f"`write_samples` {write_samples} is a file; name a folder", option="write_samples")
    if write_samples is not None:
        refuse_inside(resolved(write_samples), sources, "write_samples")
    files = [result_file(path, [".md", ".png"], sources=sources, option="write") for path in write]
    if any(path.suffix.lower() == ".png" for path in files):
        require("matplotlib", "plots")
    return files


def _check_columns(
    corpora: Sequence[MeasuredCorpus],
    background: MeasuredCorpus | None,
    config: StatsConfig,
    columns: Mapping[str, str],
) -> None:
    """Reject names of columns that no corpus can use, and `by_origin` if no corpus has origins."""
    if not corpora:
        raise InputError("name what to measure: a corpus, a file with columns or a text file")
    if config.by_origin and not any("origin" in corpus.columns for corpus in corpora):
        raise InputError(
            f"`by_origin`: {', '.join(str(corpus.path) for corpus in corpora)} has no column origin; "
            "name it with `columns` origin=NAME, except in a corpus",
            option="by_origin",
        )
    check_names(columns, COLUMN_NAMES)
    tables = [corpus for corpus in (*corpora, background) if corpus is not None and corpus.has_free_columns]
    if columns and not tables:
        raise InputError("`columns` is for files with columns that are not in a corpus", option="columns")


def _language(config: StatsConfig, corpora: Sequence[MeasuredCorpus]) -> str:
    """Return the language (ISO 639-1) by whose rules all sentences are split into words.

    It is that of the settings, else the one of the corpora, else English.

    Raises:
        InputError: If the corpora are in several languages and the settings name none.
    """
    if config.language is not None:
        return config.language
    known = {corpus.language: corpus.path for corpus in corpora if corpus.language is not None}
    if len(known) > 1:
        named = ", ".join(f"{path} is {language}" for language, path in known.items())
        raise InputError(
            f"the corpora are in several languages ({named}), which have different rules for words; measure them one "
            "by one, or name one with `language`",
            option="language",
        )
    return next(iter(known), ENGLISH)


def _names(corpora: Sequence[MeasuredCorpus]) -> list[str]:
    """Return a name for each corpus: that of its file or folder, or its path if several corpora have that name."""
    short = []
    for corpus in corpora:
        path = corpus.path.resolve()
        is_config = (path.parent / RELEASE_RECORD).is_file() and path.is_dir()
        short.append(f"{path.parent.name}/{path.name}" if is_config else path.name)
    return [name if short.count(name) == 1 else str(corpus.path) for name, corpus in zip(short, corpora, strict=True)]


def _parsers(
    corpora: Sequence[MeasuredCorpus], parser: str | Path | Parser | Sequence[str | Path | Parser], language: str
) -> list[Parser | None]:
    """Return a parser for each corpus; None for all if there is no source of trees."""
    sources = list(parser) if isinstance(parser, Sequence) and not isinstance(parser, str) else [parser]
    if not sources:
        return [None] * len(corpora)
    if len(sources) == 1 and (not isinstance(sources[0], str | Path) or str(sources[0]) in NAMED_PARSERS):
        shared = open_parser(sources[0], processes=visible_cores(), languages=[language])
        return [shared] * len(corpora)
    if len(sources) != len(corpora):
        raise InputError(
            f"`parser` takes {' or '.join(NAMED_PARSERS)} for all corpora, or one name or file of trees for each: "
            f"expected {len(corpora)}, got {len(sources)}",
            option="parser",
        )
    return [
        open_parser(item, text=corpus.text, processes=visible_cores(), languages=[language])
        for item, corpus in zip(sources, corpora, strict=True)
    ]


def _write_sample(folder: Path, label: str, sentences: pa.ChunkedArray, used_names: set[str]) -> None:
    """Write the sentences of a sample into a text file named after its label.

    Args:
        folder: Folder of the files, created if it is missing.
        label: Name of the corpus or origin.
        sentences: The sentences [sentence].
        used_names: Names of the files of earlier samples, which this one must not have; its name is added.

    Raises:
        InputError: If a file of this name exists with other content.
    """
    # File systems allow 255 bytes in a name, and a character may take four.
    name = re.sub(r"[^\w.-]+", "_", label).strip("._")[:50] or "corpus"
    candidates = (name if number == 1 else f"{name}_{number}" for number in count(1))
    name = next(candidate for candidate in candidates if candidate not in used_names)
    used_names.add(name)
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    file, text = folder / f"{name}.txt", "".join(f"{sentence}\n" for sentence in sentences.to_pylist())
    # An existing file may be the corpus itself, so it is not replaced.
    if file.exists() and (file.is_dir() or file.read_bytes() != text.encode()):
        raise InputError(
            f"{file} exists and is not this sample; choose another folder", option="write_samples", path=file
        )
    write_result(file, text)


def _parse(sentences: pa.ChunkedArray, label: str, parser: Parser, parsing: ParsingConfig) -> ParseFigures:
    """Parse the sentences of a sample, and return the figures of their trees."""
    # Samples are in random order, so the first sentences of one are a sample too.
    chosen = sentences.slice(0, parsing.max_parsed or len(sentences)).to_pylist()
    tops = parse_sentences(
        parser, chosen, lambda tree: top_levels(tree, parsing.levels), keep=parsing.keep, label=f"parse {label}"
    )
    return parse_figures(tops, parser.name, parsing.levels)


def _document_frequencies(background: MeasuredCorpus, id_of: Mapping[str, int], language: str) -> DocumentFrequencies:
    """Count the sentences of a text that contain each word.

    Args:
        background: The text.
        id_of: Id of each word of the samples; other words are not counted.
        language: Language of the text (ISO 639-1).
    """
    frequencies = DocumentFrequencies(len(id_of))
    unknown = len(id_of)
    known = PerToken(lambda words: [id_of.get(word, unknown) for word in words], np.int32)
    counter = WordCounter(known, language)
    with Progress(f"count {background.path.name}") as progress:
        for batch in background.batches(Report()):
            frequencies.add(counter.count(batch["sentence"]))
            progress.advance_to(frequencies.sentences)
    return frequencies


def own_frequencies(counts: csr_array) -> DocumentFrequencies:
    """Return the document frequencies in a sample itself, from the counts [sentence, word] of its words."""
    frequencies = DocumentFrequencies(counts.shape[1])
    frequencies.add(counts)
    return frequencies
