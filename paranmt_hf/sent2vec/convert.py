"""Convert a `.bin` model of the authors' Sent2Vec program into an encoder for the Hub."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, BinaryIO, ClassVar, Literal, cast

import numpy as np

from paranmt_hf.corpus.reading.readers import Report
from paranmt_hf.corpus.reading.sentences import open_sentences
from paranmt_hf.encoders.config import FAMILIES
from paranmt_hf.encoders.modules.paranmt_tables import known_rows, ngram_buckets
from paranmt_hf.encoders.units import WordLookup
from paranmt_hf.encoders.vocabulary import CUTTERS, Vocabulary
from paranmt_hf.errors import InputError
from paranmt_hf.evaluation.results import Results
from paranmt_hf.hub.licenses import License
from paranmt_hf.hub.publish import About
from paranmt_hf.sent2vec.bin_file import (
    BinReader,
    Sent2VecBinSettings,
    Sent2VecRows,
    Sent2VecWords,
    read_vocabulary,
)
from paranmt_hf.text.definitions import is_piece
from paranmt_hf.text.tokens import WordTokenizer
from paranmt_hf.training.card import encoder_values, shell_word, write_card
from paranmt_hf.util.files import shown_path
from paranmt_hf.util.markers import ByContent, Count, Group
from paranmt_hf.util.progress import Progress
from paranmt_hf.util.records import Record, as_json, made_with
from paranmt_hf.util.run import Result, result_folder, run
from paranmt_hf.util.settings import Settings, option_words
from paranmt_hf.util.wording import counted

END_OF_LINE = "</s>"  # The program's name for the end of a line, which is not a word of a text
# Buckets that are collected before duplicates among them are removed.
COLLECTED_BUCKETS = 2**22
# The program's options that a card shows.
SHOWN_OPTIONS = ("dim", "epoch", "minCount", "neg", "t", "wordNgrams", "bucket")
# The name of standard input as a path, and in messages.
STREAM, STREAM_NAME = "-", "the stream on standard input"
GZIP_MAGIC = b"\x1f\x8b"
KEEP = Group("keep", "Which n-grams are kept; all by default.")


@dataclass(frozen=True)
class ConvertConfig(Settings):
    """Which parts of a model of the Sent2Vec program are kept, and how.

    Attributes:
        order: Number of words of the longest n-grams to keep; None for all. 1 keeps the words alone, whose average is
            another vector than the program's for a model that has n-grams.
        cut: How the encoder cuts text: `words`, lower-cased and with punctuation apart, for raw text; or `blanks`, at
            white space as the program does, for text that was tokenised as the model's training text was.
        precision: How numbers are stored: as they are, or in half or a quarter of the space.
        text: Keep only n-grams that occur in this file of sentences, for a smaller model.
    """

    order: Annotated[Count | None, KEEP] = None
    cut: Literal["words", "blanks"] = "words"
    precision: Literal["float32", "float16", "int8"] = "float32"
    # Its content determines the result, see `ConversionSettings`
    text: Annotated[str | None, ByContent, KEEP] = None


@dataclass(frozen=True)
class ConversionSettings:
    """Everything that determines a converted encoder, besides the converted file.

    `text` is the identity of `config.text`, with its checksum.
    """

    config: ConvertConfig
    text: dict[str, Any] | None
    license: str


@dataclass(frozen=True, kw_only=True)
class ConversionRecord(Record):
    """The content of an encoder's `conversion.json`."""

    FILE: ClassVar[str] = "conversion.json"
    KIND: ClassVar[str] = "an encoder made by `paranmt encoder convert`"

    settings: ConversionSettings
    source: str  # Name of the file that was converted
    checksum: str  # `sha256:` and the checksum of its bytes, unpacked
    bytes: int  # Their number
    trained: Sent2VecBinSettings  # How the program trained it, as the file says
    labels: int  # Number of labels in the file, which are left out
    order: int  # Number of words of the longest n-grams that were kept
    dimension: int
    words: int  # Number of words with a vector
    ngrams: int  # Number of buckets of n-grams with a vector
    unreachable: int  # Number of words that no text can hold, because this encoder cuts it otherwise

    @property
    def license(self) -> str:
        """The licence of the model."""
        return self.settings.license


class Converted(Result[ConversionRecord]):
    """A converted encoder."""

    def summary(self) -> str:
        """Describe the conversion, and how to load the encoder."""
        record, folder, state = self.record, shown_path(self.folder), "" if self.fresh else " (was converted already)"
        title = "WORD" if record.order == 1 and record.settings.config.cut == "words" else "Sent2Vec"
        of = f"{title} of {counted(record.dimension, 'dimension')}, {counted(record.words, 'word')}"
        if record.ngrams:
            of += f" and {counted(record.ngrams, 'bucket')} of n-grams of up to {counted(record.order, 'word')}"
        lines = [f"{folder}{state}: {of}"]
        if record.unreachable:
            lines.append(f"{counted(record.unreachable, 'word')} never met, because text is cut otherwise; see `cut`")
        return "\n".join([*lines, f"load it: paranmt_hf.load({folder!r})"])


def convert_model(
    model: str | Path, out: str | Path, *, license: str, config: ConvertConfig | None = None
) -> Converted:
    """Convert a `.bin` model of the authors' Sent2Vec program into an encoder.

    The file is read once, front to back, in bounded memory: the rows go straight to the encoder's weights.

    Args:
        model: The file, plain or compressed by gzip; `-` reads standard input.
        out: Folder of the encoder: a stock `StaticEmbedding` if it has only words and cuts text as WORD does, else
            the family `sent2vec`.
        license: Licence under which the model was published: a Hub licence id, or a name with a link; its authors
            decide that.
        config: The settings.
    """
    out, config = result_folder(out, ConversionRecord, sources=[model]), config or ConvertConfig()
    text = as_json(open_sentences(config.text).identity) if config.text is not None else None
    settings = ConversionSettings(config, text, str(License.parse(license)))
    made = run(
        out,
        settings,
        ConversionRecord,
        lambda work, folder: _convert(model, config, settings, folder, out.name),
        result=Converted,
        command="encoder convert",
    )
    if not made.fresh:
        _refuse_other_source(out, made.record, model)
    return made


def _order(config: ConvertConfig, found: Sent2VecWords, name: str) -> int:
    """Number of words of the longest n-grams to keep; one that the file does not have is rejected."""
    held = found.settings.wordNgrams
    if config.order is not None and config.order > held:
        raise InputError(
            f"`order` {config.order} asks for n-grams of {config.order} words, and {name} holds those of at most "
            f"{held}; leave it out, or give at most {held}"
        )
    return config.order or held


@contextmanager
def _opened(source: str | Path) -> Iterator[tuple[BinaryIO, str, int | None]]:
    """Open a model: the stream, its name, and its size if known."""
    if str(source) == STREAM:
        yield cast(BinaryIO, sys.stdin.buffer), STREAM_NAME, None
        return
    path = Path(source).expanduser()
    try:
        with path.open("rb") as file:
            # A pipe tells no size, and the size of a packed file is not that of the model.
            whole = path.is_file()
            packed = whole and file.peek(2)[:2] == GZIP_MAGIC
            yield file, path.name if whole else str(path), path.stat().st_size if whole and not packed else None
    except OSError as error:
        if error.filename != str(path):
            raise
        raise InputError(
            f"cannot read {path}: {error.strerror or error}; expected a .bin file of the Sent2Vec program, or - for "
            "standard input"
        ) from None


def _progress(label: str, size: int | None) -> Progress:
    return Progress(label, size, unit="bytes", least=10)


def _refuse_other_source(out: Path, made: ConversionRecord, source: str | Path) -> None:
    """Read a model for its checksum, and reject one that differs from the source of a finished result."""
    with _opened(source) as (stream, name, size), _progress("reading", size) as progress:
        reader = BinReader(stream, name)
        rows = Sent2VecRows(reader, read_vocabulary(reader))
        for parts in (rows.blocks(), rows.rest()):
            for _ in parts:
                progress.advance_to(reader.position)
    if made.checksum != f"sha256:{reader.checksum}":
        raise InputError(
            f"{out} was converted from another model ({made.source}, {made.checksum[:20]}...); choose another path "
            "or delete it",
            option="out",
            path=out,
        )


def _convert(
    source: str | Path, config: ConvertConfig, settings: ConversionSettings, folder: Path, name: str
) -> ConversionRecord:
    """Write the weights while the model is read, then the other files of the encoder."""
    from paranmt_hf.encoders.row_file import RowFile
    from paranmt_hf.sent2vec.train import save_around_rows

    with _opened(source) as (stream, source_name, size):
        reader = BinReader(stream, source_name)
        found = read_vocabulary(reader)
        order, buckets = _order(config, found, source_name), found.settings.bucket
        words, stock = len(found.units), order == 1 and config.cut == "words"
        kept: np.ndarray | int = buckets if order > 1 else 0
        if config.text is not None and order > 1:
            kept = _kept_buckets(config.text, found, order, config.cut)
        ngrams = kept if isinstance(kept, int) else len(kept)
        rows = Sent2VecRows(reader, found)
        weights = folder / "rows"
        with (
            _progress("converting", size) as progress,
            RowFile(weights, words + ngrams, rows.dim, config.precision, None if stock else kept) as file,
        ):
            for start, block in rows.blocks():
                chosen = _chosen(start, block, words, kept)
                rows.refuse_not_finite(start, block[: max(0, words + buckets - start)])
                file.write(chosen)
                progress.advance_to(reader.position)
            for _ in rows.rest():
                progress.advance_to(reader.position)
    hashes = np.arange(kept) if isinstance(kept, int) else kept
    # A word such as `##ing` would be read as a piece; renamed to `###ing` it has the same row and matches no text.
    units = [f"#{unit}" if stock and is_piece(unit) else unit for unit in found.units]
    save_around_rows(weights, folder, units, order, buckets, hashes, config.cut, config.precision)
    record = ConversionRecord(
        settings=settings,
        source=reader.name,
        checksum=f"sha256:{reader.checksum}",
        bytes=reader.position,
        trained=found.settings,
        labels=found.labels,
        order=order,
        dimension=rows.dim,
        words=words - 1,
        ngrams=ngrams,
        unreachable=_unreachable(found, config.cut),
        **made_with("numpy", "torch", "sentence-transformers"),
    )
    write_card(folder, converted_values(name, folder, record))
    return record


def _unreachable(found: Sent2VecWords, cut: str) -> int:
    """Count the words that no text can contain, because it is split differently."""
    words = (unit for unit in found.units[1:] if unit != END_OF_LINE)
    return sum(" " in unit or CUTTERS[cut](unit) != [unit] for unit in words)


def _kept_buckets(path: str, found: Sent2VecWords, order: int, cut: str) -> np.ndarray:
    """Find the buckets of the n-grams that occur in a text [bucket], int64, ascending."""
    tokenizer, lookup = WordTokenizer(cut=CUTTERS[cut]), WordLookup(Vocabulary("word", found.units))
    kept, waiting = np.empty(0, np.int64), []
    for batch in open_sentences(path).batches(Report()):
        (table,) = tokenizer.tables(batch["sentence"])
        bags = lookup.bags(table)
        buckets, _ = ngram_buckets(*known_rows(bags.rows, bags.offsets), order, found.settings.bucket)
        waiting.append(np.unique(buckets))
        if sum(map(len, waiting)) > max(COLLECTED_BUCKETS, len(kept)):
            kept, waiting = np.unique(np.concatenate([kept, *waiting])), []
    kept = np.unique(np.concatenate([kept, *waiting]))
    if not len(kept):
        raise InputError(
            f"`text` {path} holds no two successive words of the model, so no n-gram would be left; name text of the "
            "model's language, or `order` 1",
            option="text",
        )
    return kept


def _chosen(start: int, block: np.ndarray, words: int, kept: np.ndarray | int) -> np.ndarray:
    """Select the rows of a block [row, dimension] that are kept: all words, and some buckets.

    `start` is the index of the first row; the row of unknown words becomes zeros. `kept` are the buckets, ascending,
    or a number for all below it.
    """
    if start == 0:
        block[0] = 0
    if isinstance(kept, int):
        return block[: max(0, words + kept - start)]
    own = block[: max(0, words - start)]
    first = max(start, words) - words
    low, high = np.searchsorted(kept, [first, max(first, start + len(block) - words)])
    return np.concatenate([own, block[kept[low:high] + words - start]])


def converted_values(
    name: str, folder: Path, conversion: ConversionRecord, about: About | None = None, results: Sequence[Results] = ()
) -> dict[str, Any]:
    """Collect the values of the card; see `encoder_values`."""
    return encoder_values(
        "converted",
        name,
        folder,
        conversion.to_json(),
        about or About(conversion.license),
        results,
        commands=[_command(conversion)],
        # The file does not say in which language its text was.
        languages=[],
        limits=FAMILIES["word" if conversion.order == 1 else "sent2vec"].limits,
        options=" ".join(f"-{option} {getattr(conversion.trained, option)}" for option in SHOWN_OPTIONS),
    )


def _command(conversion: ConversionRecord) -> str:
    settings = conversion.settings
    words = ["paranmt encoder convert", shell_word(conversion.source), "--out FOLDER"]
    words += ["--license", shell_word(settings.license)]
    words += option_words(replace(settings.config, order=None), ConvertConfig())
    keep = [f"order={conversion.order}"] if conversion.order != conversion.trained.wordNgrams else []
    keep += ["text=FILE"] if settings.text else []
    return " ".join([*words, *(["--keep", ",".join(keep)] if keep else [])])
