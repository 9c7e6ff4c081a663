"""Convert a `.bin` model of the authors' Sent2Vec program into an encoder for the Hub."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np

from paranmt_hf.corpus.reading.readers import Report
from paranmt_hf.corpus.reading.sentences import open_sentences
from paranmt_hf.encoders.config import FAMILIES
from paranmt_hf.encoders.modules.paranmt_tables import known_rows, ngram_buckets
from paranmt_hf.encoders.units import WordLookup
from paranmt_hf.encoders.vocabulary import CUTTERS, Vocabulary
from paranmt_hf.errors import InputError
from paranmt_hf.hub.licenses import License
from paranmt_hf.sent2vec.bin_file import Sent2VecWords, open_model, read_vector_blocks, read_vocabulary
from paranmt_hf.text.definitions import is_piece
from paranmt_hf.text.tokens import WordTokenizer
from paranmt_hf.training.card import shell_word, write_model_card
from paranmt_hf.training.record import EncoderResult
from paranmt_hf.util.files import checksum, existing, shown_path
from paranmt_hf.util.markers import ByContent
from paranmt_hf.util.progress import Progress
from paranmt_hf.util.records import Record, as_json, made_with
from paranmt_hf.util.run import result_folder, run
from paranmt_hf.util.settings import Settings, option_words
from paranmt_hf.util.wording import counted


@dataclass(frozen=True)
class ConvertConfig(Settings):
    """How a model of the Sent2Vec program is converted.

    Attributes:
        cut: How the encoder cuts text: `words`, lower-cased and with punctuation apart, for raw text; or `blanks`, at
            white space as the program does, for text that was tokenised as the model's training text was.
        precision: How numbers are stored: as they are, or in half or a quarter of the space.
        text: Keep only n-grams that occur in this file of sentences, for a smaller model.
    """

    cut: Literal["words", "blanks"] = "words"
    precision: Literal["float32", "float16", "int8"] = "float32"
    # Its content determines the result, see `ConversionSettings`
    text: Annotated[str | None, ByContent] = None


@dataclass(frozen=True)
class ConversionSettings:
    """Everything that determines a converted encoder.

    Attributes:
        model: `sha256:` and the checksum of the file.
        config: How it is converted.
        text: The identity of the sentences in `config.text`, with a checksum; None if there are none.
        license: The licence of the model.
    """

    model: str
    config: ConvertConfig
    text: dict[str, Any] | None
    license: str


@dataclass(frozen=True, kw_only=True)
class ConversionRecord(Record):
    """The content of an encoder's `conversion.json`.

    Attributes:
        source: Name of the file that was converted.
        bytes: Number of its bytes, decompressed.
        trained: Settings with which the program trained it, as the file says.
        labels: Number of labels in the file, which are left out.
        order: Number of words of the longest n-grams.
        dimension: Dimension of the sentence vectors.
        words: Number of words with a vector.
        ngrams: Number of buckets of n-grams with a vector.
        unreachable: Number of words that are never found in a text, because this encoder cuts text in another way.
    """

    FILE: ClassVar[str] = "conversion.json"
    KIND: ClassVar[str] = "an encoder made by `paranmt encoder convert`"

    settings: ConversionSettings
    source: str
    bytes: int
    trained: dict[str, Any]
    labels: int
    order: int
    dimension: int
    words: int
    ngrams: int
    unreachable: int


class Converted(EncoderResult[ConversionRecord]):
    """The result of `paranmt encoder convert`: an encoder."""

    def summary(self) -> str:
        """Return lines about the encoder, and how to load it."""
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

    The file is read front to back, in bounded memory: the rows go straight to the encoder's weights.

    Args:
        model: The file, plain or compressed by gzip.
        out: Folder of the encoder: a stock `StaticEmbedding` if it has only words and cuts text as WORD does, else
            the family `sent2vec`.
        license: Licence under which the model was published: a Hub licence id, or a name with a link; its authors
            decide that.
        config: The settings.
    """
    out, config = result_folder(out, ConversionRecord, sources=[model]), config or ConvertConfig()
    text = as_json(open_sentences(config.text).identity) if config.text is not None else None
    (path,) = existing([Path(model).expanduser()])
    settings = ConversionSettings(f"sha256:{checksum(path)}", config, text, str(License.parse(license)))
    return run(
        out,
        settings,
        ConversionRecord,
        lambda work, folder: _convert(path, settings, folder, out.name),
        result=Converted,
        command="encoder convert",
    )


def _convert(path: Path, settings: ConversionSettings, folder: Path, name: str) -> ConversionRecord:
    """Convert a model: write the weights while the file is read, then the other files of the encoder.

    Args:
        path: The file.
        settings: Everything that determines the encoder.
        folder: Folder of the encoder.
        name: Name of the encoder, for its card.
    """
    from paranmt_hf.encoders.row_file import RowFile
    from paranmt_hf.sent2vec.train import save_around_rows

    config, weights = settings.config, folder / "rows"
    with open_model(path) as reader:
        found = read_vocabulary(reader)
        words, dimension = len(found.units), found.settings["dim"]
        order, buckets = found.settings["wordNgrams"], found.settings["bucket"]
        stock = order == 1 and config.cut == "words"
        kept = _kept_buckets(config, found)
        with (
            Progress("converting", reader.size, unit="bytes", least=10) as progress,
            RowFile(weights, words + len(kept), dimension, config.precision, None if stock else kept) as file,
        ):
            places = np.concatenate([np.arange(words), words + kept])
            for start, block in read_vector_blocks(reader, found):
                if start == 0:
                    # Row 0 becomes that of unknown words, which add nothing.
                    block[0] = 0
                low, high = np.searchsorted(places, [start, start + len(block)])
                file.write(block[places[low:high] - start])
                progress.advance_to(reader.position)
    # WORD would read a word such as `##ing` as a piece. Renamed to `###ing`, it keeps its row and matches no text.
    units = [f"#{unit}" if stock and is_piece(unit) else unit for unit in found.units]
    save_around_rows(weights, folder, units, order, buckets, kept, config.cut, config.precision)
    # `</s>` is the program's name for the end of a line, not a word of a text.
    words_of_text = [unit for unit in found.units[1:] if unit != "</s>"]
    unreachable = sum(" " in unit or CUTTERS[config.cut](unit) != [unit] for unit in words_of_text)
    record = ConversionRecord(
        settings=settings,
        source=path.name,
        bytes=reader.position,
        trained=found.settings,
        labels=found.labels,
        order=order,
        dimension=dimension,
        words=words - 1,
        ngrams=len(kept),
        unreachable=unreachable,
        **made_with("numpy", "torch", "sentence-transformers"),
    )
    write_model_card(folder, name, converted_values(record, folder))
    return record


def _kept_buckets(config: ConvertConfig, found: Sent2VecWords) -> np.ndarray:
    """Find the n-gram buckets that are kept [bucket], int64, ascending.

    These are all buckets, or with `config.text` those of the n-grams in this text.
    """
    order, buckets = found.settings["wordNgrams"], found.settings["bucket"]
    if order == 1 or config.text is None:
        return np.arange(buckets if order > 1 else 0)
    tokenizer, lookup = WordTokenizer(cut=CUTTERS[config.cut]), WordLookup(Vocabulary("word", found.units))
    is_kept = np.zeros(buckets, bool)
    for batch in open_sentences(config.text).batches(Report()):
        (table,) = tokenizer.tables(batch["sentence"])
        bags = lookup.bags(table)
        in_text, _ = ngram_buckets(*known_rows(bags.rows, bags.offsets), order, buckets)
        is_kept[in_text] = True
    if not is_kept.any():
        raise InputError(
            f"`text` {config.text} holds no two successive words of the model, so no n-gram would be left; name text "
            "of the model's language",
            option="text",
        )
    return np.flatnonzero(is_kept)


def converted_values(conversion: ConversionRecord, folder: Path) -> dict[str, Any]:
    """Return the values of the card of a converted encoder; see `encoder_values` of `training/card.py`."""
    options = "dim epoch minCount neg t wordNgrams bucket".split()
    return {
        "made": "converted",
        "record": conversion.to_json(),
        "commands": [_command(conversion)],
        # The file does not say in which language its text was.
        "languages": [],
        "license": conversion.settings.license,
        "limits": FAMILIES["word" if conversion.order == 1 else "sent2vec"].limits,
        "options": " ".join(f"-{option} {conversion.trained[option]}" for option in options),
    }


def _command(conversion: ConversionRecord) -> str:
    """Return the command that converted a model, for its card, with paths shortened to names."""
    settings = conversion.settings
    words = ["paranmt encoder convert", shell_word(conversion.source), "--out FOLDER"]
    words += ["--license", shell_word(settings.license), *option_words(settings.config)]
    return " ".join([*words, *(["--text FILE"] if settings.text else [])])
