"""Turn a `.bin` model of the authors' Sent2Vec program into an encoder for the Hub."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast

import numpy as np

from paranmt_hf.corpus.bitext.readers import Report
from paranmt_hf.corpus.sentences import SentenceFile
from paranmt_hf.encoders.modules.paranmt_tables import known_rows, ngram_buckets
from paranmt_hf.encoders.sent2vec_bin import BinReader, Sent2VecRows, Sent2VecWords, read_words
from paranmt_hf.encoders.units import WordLookup
from paranmt_hf.encoders.vocabulary import Vocabulary
from paranmt_hf.errors import InputError
from paranmt_hf.hub.licenses import License
from paranmt_hf.text.definitions import cut_chunk
from paranmt_hf.text.tokens import WordTokenizer
from paranmt_hf.training.conversion_record import (
    ConversionRecord,
    ConversionSettings,
    ConvertConfig,
    write_conversion_card,
)
from paranmt_hf.util.files import shown_path
from paranmt_hf.util.progress import Progress
from paranmt_hf.util.records import as_json, made_with
from paranmt_hf.util.run import Result, result_folder, run

if TYPE_CHECKING:
    from paranmt_hf.encoders.modules.paranmt_averages import AverageEmbedding
    from paranmt_hf.encoders.sentence_encoder import SentenceEncoder

# The program's name for the end of a line, which is no word of a text.
END_OF_LINE = "</s>"
# Buckets that are collected before repeated ones among them go.
COLLECTED = 2**22


def _cutter(cut: str) -> Callable[[str], list[str]]:
    """How text is cut, by the name of the setting."""
    from paranmt_hf.encoders.modules.paranmt_tables import blank_tokens

    return {"words": cut_chunk, "blanks": blank_tokens}[cut]


def unreachable(found: Sent2VecWords, cut: str) -> int:
    """Count the words that no text can hold, because it is cut otherwise."""
    words, cutter = (unit for unit in found.units[1:] if unit != END_OF_LINE), _cutter(cut)
    return sum(" " in unit or cutter(unit) != [unit] for unit in words)


def kept_buckets(path: str, found: Sent2VecWords, order: int, cut: str) -> np.ndarray:
    """Find the buckets of the n-grams that occur in a text [bucket], int64, ascending."""
    tokenizer, lookup = WordTokenizer(cut=_cutter(cut)), WordLookup(Vocabulary("word", found.units))
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
            f"`text` {path} holds no two words of the model beside each other, so no n-gram would be left; name text "
            "of the model's language, or `order` 1"
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
    import torch

    from paranmt_hf.encoders.modules.paranmt_averages import NgramEmbedding, WordEmbedding
    from paranmt_hf.encoders.sentence_encoder import SentenceEncoder

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


# What stands for standard input, and what it is called.
STREAM, STREAM_NAME = "-", "the stream on standard input"
# What files of gzip begin with.
PACKED = b"\x1f\x8b"


class Converted(Result[ConversionRecord]):
    """An encoder that was converted."""

    def summary(self) -> str:
        """What was converted, and how to load it."""
        record, folder, state = self.record, shown_path(self.folder), "" if self.fresh else " (was converted already)"
        of = f"{record.title} of {record.dimension} dimensions, {record.words:,} words"
        if record.ngrams:
            of += f" and {record.ngrams:,} buckets of n-grams of up to {record.order} words"
        lines = [f"{folder}{state}: {of}"]
        if record.unreachable:
            lines.append(f"{record.unreachable:,} words are never met, because text is cut otherwise; see `cut`")
        return "\n".join([*lines, f"load it: paranmt_hf.load({folder!r})"])


def convert_model(
    model: str | Path,
    out: str | Path,
    *,
    license: str,
    config: ConvertConfig | None = None,
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
    out, config = result_folder(out, ConversionRecord), config or ConvertConfig()
    text = as_json(SentenceFile(config.text).identity) if config.text is not None else None
    settings = ConversionSettings(config, text, str(License.parse(license)))
    made = run(
        out,
        settings,
        ConversionRecord,
        lambda work, folder: _convert(model, config, settings, folder, out.name),
        result=Converted,
        command="convert",
    )
    if not made.fresh:
        _refuse_other_source(out, made.record, model)
    return made


def _order(config: ConvertConfig, found: Sent2VecWords, name: str) -> int:
    """Number of words of the longest n-grams to keep; one that the file does not hold is refused."""
    held = found.settings.wordNgrams
    if config.order is not None and config.order > held:
        raise InputError(
            f"`order` {config.order} asks for n-grams of {config.order} words, and {name} holds those of at most "
            f"{held}; leave it out, or give at most {held}"
        )
    order = config.order or held
    if config.text is not None and order == 1:
        raise InputError("`text` chooses among n-grams, and words alone are kept here; leave out `text` or `order`")
    return order


@contextmanager
def _opened(source: str | Path) -> Iterator[tuple[BinaryIO, str, int | None]]:
    """Open a model: the stream, its name, and its size, if that is known."""
    if str(source) == STREAM:
        yield cast(BinaryIO, sys.stdin.buffer), STREAM_NAME, None
        return
    path = Path(source).expanduser()
    try:
        with path.open("rb") as file:
            # A pipe tells no size, and the size of a packed file is not that of the model.
            whole = path.is_file()
            packed = whole and file.peek(2)[:2] == PACKED
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
    """Read a model for its checksum, and refuse one that a finished result was not made from."""
    with _opened(source) as (stream, name, size), _progress("reading", size) as progress:
        reader = BinReader(stream, name)
        rows = Sent2VecRows(reader, read_words(reader))
        for parts in (rows.blocks(), rows.rest()):
            for _ in parts:
                progress.advance_to(reader.position)
    if made.checksum != f"sha256:{reader.checksum}":
        raise InputError(
            f"{out} was converted from another model ({made.source}, {made.checksum[:20]}...); choose another place "
            "or delete it",
            option="out",
            path=out,
        )


def _convert(
    source: str | Path, config: ConvertConfig, settings: ConversionSettings, folder: Path, name: str
) -> ConversionRecord:
    """Write the weights while the model goes past, and then what goes with them."""
    from paranmt_hf.encoders.modules.paranmt_tables import WEIGHTS_FILE
    from paranmt_hf.encoders.row_file import RowFile
    from paranmt_hf.encoders.saving import save

    with _opened(source) as (stream, source_name, size):
        reader = BinReader(stream, source_name)
        found = read_words(reader)
        order = _order(config, found, source_name)
        words, stock = len(found.units), order == 1 and config.cut == "words"
        kept: np.ndarray | int = found.settings.bucket if order > 1 else 0
        if config.text is not None:
            kept = kept_buckets(config.text, found, order, config.cut)
        ngrams = kept if isinstance(kept, int) else len(kept)
        rows = Sent2VecRows(reader, found)
        weights = folder / "rows"
        with (
            _progress("converting", size) as progress,
            RowFile(weights, words + ngrams, rows.dim, config.precision, None if stock else kept) as file,
        ):
            for start, block in rows.blocks():
                chosen = _chosen(start, block, words, kept)
                rows.refuse_not_finite(start, block[: max(0, words + found.settings.bucket - start)])
                file.write(chosen)
                progress.advance_to(reader.position)
            for _ in rows.rest():
                progress.advance_to(reader.position)
    save(make_frame(found, order, config.cut, config.precision, kept, stock=stock), folder)
    weights.replace(folder / WEIGHTS_FILE)
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
        unreachable=unreachable(found, config.cut),
        **made_with("numpy", "torch", "sentence-transformers"),
    )
    write_conversion_card(folder, name, record)
    return record


def _chosen(start: int, block: np.ndarray, words: int, kept: np.ndarray | int) -> np.ndarray:
    """Choose the rows of a block that are kept: all words, and some buckets.

    Args:
        start: Index of the first row.
        block: Rows [row, dimension]; the row of unknown words becomes zeros.
        words: Number of words.
        kept: The buckets, ascending; a number for all below it.
    """
    if start == 0:
        block[0] = 0
    if isinstance(kept, int):
        return block[: max(0, words + kept - start)]
    own = block[: max(0, words - start)]
    first = max(start, words) - words
    low, high = np.searchsorted(kept, [first, max(first, start + len(block) - words)])
    return np.concatenate([own, block[kept[low:high] + words - start]])
