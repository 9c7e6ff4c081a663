"""`paranmt stats`: how long, how rare and how varied the sentences of corpora are, side by side.

ParaNMT-50M (Wieting & Gimpel 2018), section 3.2, table 1.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paranmt_hf.corpus.diversity import (
    IDF,
    OTHER_TOKENS,
    TOKENS,
    CorpusFigures,
    Cutter,
    DocumentFrequencies,
    ParseFigures,
    corpus_figures,
    parse_figures,
)
from paranmt_hf.corpus.parsing.parsers import Parser, check_reads, named_parsers, parse
from paranmt_hf.corpus.parsing.tree_file import TreeFile
from paranmt_hf.corpus.parsing.trees import READINGS, Reading, top_levels
from paranmt_hf.corpus.record import RELEASE_RECORD
from paranmt_hf.corpus.sampling import COLUMN_NAMES, Corpus, draw, open_corpus
from paranmt_hf.corpus.stats_report import StatsRecord
from paranmt_hf.errors import InputError
from paranmt_hf.hub.languages import LANGUAGES, check_language
from paranmt_hf.text.tokens import Bags
from paranmt_hf.text.word_rules import ENGLISH
from paranmt_hf.util.files import write_result, writing
from paranmt_hf.util.progress import Progress
from paranmt_hf.util.settings import check, is_given, seed_setting, setting
from paranmt_hf.version import __version__

# Sentences of one side that are in memory together, about a gigabyte of text.
MAX_ROWS = 2_000_000
PARSE_OPTIONS = ("parse_levels", "parse_sample", "parse_seconds", "parse_processes")
NOT_IN_NAMES = re.compile(r"[^\w.-]+")
# Letters may take four bytes each, and a system takes 255.
NAME_CHARACTERS = 50
# What a row without an origin is called.
NO_ORIGIN = "no origin"


@dataclass(frozen=True)
class StatsConfig:
    """What is measured."""

    sample: int = setting(
        100_000,
        "sentences measured of each corpus, drawn by chance (ParaNMT-50M, table 1)",
        at_least=1,
        at_most=MAX_ROWS,
    )
    seed: int = seed_setting(0, "decides which")
    language: str | None = setting(
        None, "language of the sentences, an ISO 639-1 code: what a word is (default: that of the releases, else en)"
    )
    side: Literal["reference", "translation"] = setting("reference", "which sentence of each pair")
    by: Literal["origin"] | None = setting(None, "a row for each origin of a corpus too")
    parse_levels: Reading = setting(
        "two-levels",
        "what of a tree counts: two-levels is the root of the sentence and the level below, two-below the root and "
        "two levels below, with-wrapper the parser's outermost node (ROOT) and the level below",
    )
    parse_sample: int | None = setting(None, "so many of the sentences are parsed, or all of them", at_least=1)
    parse_seconds: int = setting(5, "seconds that link-grammar has for a sentence", at_least=1)
    parse_processes: int | None = setting(None, "processes of link-grammar (default: one for each core)", at_least=1)

    def __post_init__(self) -> None:
        check(self)
        if self.language is not None:
            check_language(self.language)


@dataclass
class _Drawn:
    """A sample that waits for the document frequencies of its tokens; its text is needed no more."""

    name: str
    bags: Bags
    size: int
    distinct: int
    scores: np.ndarray | None
    parses: ParseFigures | None
    dropped: dict[str, int]


def describe_corpora(
    corpora: str | Path | Sequence[str | Path],
    *,
    config: StatsConfig | None = None,
    columns: Mapping[str, str] | None = None,
    idf_text: str | Path | None = None,
    parses: Sequence[str | Path | Parser] = (),
    keep_trees: Path | None = None,
    write_samples: Path | None = None,
) -> StatsRecord:
    """Measure samples of corpora: table 1 of ParaNMT-50M.

    Args:
        corpora: Releases, folders of their configs, Parquet files, or text files with a sentence on each line.
        config: What is measured.
        columns: Where the columns of Parquet files are: `{"reference": "english"}`.
        idf_text: The text whose sentences give the document frequencies, as a corpus is given; in the paper sentences
            of Wikipedia. Without one those of each sample itself.
        parses: What gives trees: one parser for all corpora, or one for each, in their order. `link-grammar`,
            `stanza`, a file (see `TreeFile`), or your own `Parser`. Without any there is no parse entropy.
        keep_trees: A file in which trees are kept, so that a run that was interrupted goes on; see `parse`.
        write_samples: A folder that gets the sentences of each sample, one on each line.

    Returns:
        The figures; `text`, `markdown` and `plot` show them.
    """
    config = config or StatsConfig()
    if write_samples is not None and write_samples.exists() and not write_samples.is_dir():
        raise InputError(f"--write-samples {write_samples} is a file; name a folder")
    given = [corpora] if isinstance(corpora, str | Path) else list(corpora)
    by_origin = config.by == "origin"
    opened = [open_corpus(path, side=config.side, columns=columns, by_origin=by_origin) for path in given]
    if not opened:
        raise InputError("name a corpus to measure: a release, Parquet files or a text file")
    if by_origin and not any("origin" in corpus.columns for corpus in opened):
        raise InputError(
            f"--by origin: {', '.join(str(corpus.path) for corpus in opened)} has no column origin, which says where "
            "each row is from; of Parquet files --columns origin=NAME names it"
        )
    background = None if idf_text is None else open_corpus(idf_text, columns=columns)
    _check_columns(columns or {}, [*opened, *([background] if background else [])])
    language = _language(config, opened)
    for each in parses:
        check_reads(each, [language])
    parsers = _parsers(opened, list(parses), config, keep_trees)
    sampler = _Sampler(config, language, keep_trees, write_samples)
    drawn: list[_Drawn] = []
    for corpus, name, parser in zip(opened, _names(opened), parsers, strict=True):
        drawn += sampler.draw(corpus, name, parser)
    figures, frequencies = _measure(drawn, sampler.index_of, background, language)
    return StatsRecord(
        version=__version__,
        side=config.side,
        sample=config.sample,
        seed=config.seed,
        tokens=TOKENS if language == ENGLISH else OTHER_TOKENS.format(LANGUAGES.get(language, language)),
        idf=IDF,
        idf_text=None if background is None else background.path.name,
        idf_sentences=None if frequencies is None else frequencies.sentences,
        parse_levels=READINGS[config.parse_levels] if any(parser is not None for parser in parsers) else None,
        corpora=figures,
    )


def _language(config: StatsConfig, corpora: Sequence[Corpus]) -> str:
    """Find the language by whose words all are cut, so that their figures can be compared."""
    if config.language is not None:
        return config.language
    known = {corpus.language: corpus.path for corpus in corpora if corpus.language is not None}
    if len(known) > 1:
        named = ", ".join(f"{path} is {language}" for language, path in known.items())
        raise InputError(
            f"the releases are of several languages ({named}), whose words are cut by different rules; measure them "
            "one by one, or say with --language by which rules all are cut"
        )
    return next(iter(known), ENGLISH)


def _check_columns(columns: Mapping[str, str], corpora: Sequence[Corpus]) -> None:
    if unknown := sorted(set(columns) - set(COLUMN_NAMES)):
        raise InputError(f"--columns can name {', '.join(COLUMN_NAMES)}, not {', '.join(unknown)}")
    if columns and not any(corpus.has_free_columns for corpus in corpora):
        raise InputError("--columns is for Parquet files, of which there are none: releases have their own names")


def _names(corpora: Sequence[Corpus]) -> list[str]:
    """Call each corpus by the name of its file or folder, or where two have the same, by its path."""
    short = []
    for corpus in corpora:
        path = corpus.path.resolve()
        is_config = (path.parent / RELEASE_RECORD).is_file() and path.is_dir()
        short.append(f"{path.parent.name}/{path.name}" if is_config else path.name)
    return [name if short.count(name) == 1 else str(corpus.path) for name, corpus in zip(short, corpora, strict=True)]


def _parsers(
    corpora: Sequence[Corpus], parses: list[str | Path | Parser], config: StatsConfig, keep: Path | None
) -> list[Parser | None]:
    """Find the parser of each corpus, before any work."""
    if not parses:
        if keep is not None:
            raise InputError("--keep-trees keeps what a parser gives; name one with --parses")
        if unused := [name for name in PARSE_OPTIONS if is_given(config, name)]:
            raise InputError(
                f"--{unused[0].replace('_', '-')} changes nothing without a parser; name one with --parses"
            )
        return [None] * len(corpora)
    named = named_parsers(seconds=config.parse_seconds, processes=config.parse_processes or _cores())
    if len(parses) == 1 and (not isinstance(parses[0], str | Path) or str(parses[0]) in named):
        parses *= len(corpora)
    if len(parses) != len(corpora):
        raise InputError(
            f"--parses takes one of {', '.join(named)} for all corpora, or one name or file of trees for each: "
            f"expected {len(corpora)}, got {len(parses)}"
        )
    made: dict[str, Parser] = {}
    found: list[Parser | None] = []
    for corpus, item in zip(corpora, parses, strict=True):
        if isinstance(item, str | Path) and str(item) in named:
            found.append(made.setdefault(str(item), made.get(str(item)) or named[str(item)]()))
        elif isinstance(item, str | Path):
            if keep is not None:
                raise InputError(
                    f"--keep-trees keeps what a parser gives, and the trees of {item} are in a file already"
                )
            if not Path(item).exists():
                raise InputError(
                    f"--parses {item}: there is no such file, nor a parser of that name: {', '.join(named)}"
                )
            found.append(TreeFile(Path(item), corpus.text))
        else:
            found.append(item)
    return found


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class _Sampler:
    """Draws samples of corpora, parses them and cuts them into tokens, whose ids hold for all of them."""

    def __init__(self, config: StatsConfig, language: str, keep_trees: Path | None, folder: Path | None) -> None:
        self.index_of: dict[str, int] = {}
        self._cutter = Cutter(self.index_of, grow=True, language=language)
        self._config, self._keep, self._folder = config, keep_trees, folder
        self._files: set[str] = set()

    def _file_name(self, label: str) -> str:
        """Make a file name of a name from data, another one for each."""
        name = NOT_IN_NAMES.sub("_", label).strip("._")[:NAME_CHARACTERS] or "corpus"
        numbered = next(
            found for number in count(1) if (found := name if number == 1 else f"{name}_{number}") not in self._files
        )
        self._files.add(numbered)
        return f"{numbered}.txt"

    def draw(self, corpus: Corpus, name: str, parser: Parser | None) -> list[_Drawn]:
        config = self._config
        with Progress(f"read {name}", unit="rows") as progress:
            samples = draw(corpus, config.sample, config.seed, limit=MAX_ROWS, progress=progress.advance_to)
        drawn = []
        for origin, sample in samples.items():
            label = name if origin is None else f"{name}: {origin or NO_ORIGIN}"
            dropped = dict(sorted(corpus.report.dropped.items())) if origin is None else {}
            table = sample.table()
            if self._folder is not None:
                _write_sample(self._folder, self._file_name(label), table["sentence"])
            has_scores = "para_score" in table.column_names
            drawn.append(
                _Drawn(
                    label,
                    self._cutter.cut(table["sentence"]),
                    sample.seen,
                    pc.count_distinct(table["sentence"]).as_py(),
                    table["para_score"].to_numpy().astype(np.float64) if has_scores else None,
                    None if parser is None else self._parse(table["sentence"], label, parser),
                    dropped,
                )
            )
        return drawn

    def _parse(self, sentences: pa.ChunkedArray, name: str, parser: Parser) -> ParseFigures:
        # They are in the order of a lottery, so the first ones are a sample of them.
        chosen = sentences.slice(0, self._config.parse_sample or len(sentences)).to_pylist()
        reading = self._config.parse_levels
        tops = parse(parser, chosen, lambda tree: top_levels(tree, reading), keep=self._keep, label=f"parse {name}")
        return parse_figures(tops, parser.name, reading)


def _write_sample(folder: Path, name: str, sentences: pa.ChunkedArray) -> None:
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    write_result(folder / name, "".join(f"{sentence}\n" for sentence in sentences.to_pylist()))


def _measure(
    drawn: Sequence[_Drawn], index_of: dict[str, int], background: Corpus | None, language: str
) -> tuple[list[CorpusFigures], DocumentFrequencies | None]:
    frequencies = None if background is None else _count(background, index_of, language)
    figures = []
    for each in drawn:
        counted = frequencies
        if counted is None:
            counted = DocumentFrequencies(len(index_of))
            counted.add(each.bags)
        figures.append(
            corpus_figures(
                each.name,
                each.bags,
                counted.idf,
                size=each.size,
                distinct=each.distinct,
                scores=each.scores,
                parses=each.parses,
                dropped=each.dropped,
            )
        )
    return figures, frequencies


def _count(background: Corpus, index_of: dict[str, int], language: str) -> DocumentFrequencies:
    """Count the sentences of a text of any size that hold each token; tokens that no sample has are left out."""
    frequencies = DocumentFrequencies(len(index_of))
    cutter = Cutter(index_of, grow=False, language=language)
    with Progress(f"count {background.path.name}") as progress:
        for batch in background.batches():
            frequencies.add(cutter.cut(batch["sentence"]))
            progress.advance_to(frequencies.sentences)
    return frequencies
