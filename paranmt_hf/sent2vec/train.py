"""Train an encoder on sentences, `paranmt train-sent2vec`: Sent2Vec (Pagliardini, Gupta and Jaggi 2018)."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from paranmt_hf.corpus.reading.readers import Report
from paranmt_hf.corpus.reading.sentences import SentenceSources
from paranmt_hf.corpus.reading.splitting import SentenceSplitter
from paranmt_hf.errors import InputError, WriteError
from paranmt_hf.sent2vec.config import Sent2VecConfig
from paranmt_hf.sent2vec.record import Sent2VecRecord, Sent2VecSettings, sent2vec_values
from paranmt_hf.text.languages import ENGLISH, check_language
from paranmt_hf.training.card import write_model_card
from paranmt_hf.training.record import TRAINING_PICTURE, EncoderResult, History, plot_history
from paranmt_hf.util.files import listed, shown_path
from paranmt_hf.util.records import made_with
from paranmt_hf.util.run import result_folder, run
from paranmt_hf.util.wording import counted

if TYPE_CHECKING:
    import numpy as np

    from paranmt_hf.sent2vec.corpus import TextOnDisk

logger = logging.getLogger(__name__)
# Names in the work folder.
TEXT, CHECKPOINT = "text", "checkpoint.safetensors"
# With fewer words of text the similarities of unrelated sentences are mostly noise, so a warning is shown.
FEW_WORDS = 10_000_000


class TrainedSent2Vec(EncoderResult[Sent2VecRecord]):
    """The result of `paranmt train-sent2vec`: an encoder."""

    def summary(self) -> str:
        """Return lines about the encoder's size, the speed of training, and its loss."""
        record, course, folder = self.record, self.record.course, shown_path(self.folder)
        state = "" if self.fresh else " (was trained already)"
        rows = counted(record.words, "word")
        if record.ngrams:
            rows += f" and {counted(record.ngrams, 'bucket')} of n-grams"
        rate = course.words / max(course.seconds, 1e-9)
        lines = [
            f"{folder}: {counted(record.dimension, 'dimension')}, {rows}{state}",
            f"  {counted(course.words, 'word')} in {course.seconds:,.0f} s ({rate:,.0f} a second), loss "
            f"{course.mean:.3f}",
        ]
        if record.known < FEW_WORDS:
            lines.append(
                f"  warning: {counted(record.known, 'word')} of text are few, the paper has 1.7 billion; from little "
                "text an encoder learns more with a teacher, `paranmt train --text FILE --teacher small`"
            )
        return "\n".join([*lines, f"load it: paranmt_hf.load({folder!r})"])


def train_sent2vec(
    data: str | Path | Sequence[str | Path],
    out: str | Path,
    *,
    columns: Sequence[str] | None = None,
    split: bool = False,
    language: str | None = None,
    config: Sent2VecConfig | None = None,
) -> TrainedSent2Vec:
    """Train an encoder on sentences: each word is predicted from the average of the rest of its sentence (Sent2Vec).

    After an interruption the same command continues from the last checkpoint; with one thread the result has the same
    bytes as without the interruption.

    Args:
        data: Text files with one sentence on a line, files with columns (docs/formats.md), corpora, or datasets on
            the Hub.
        out: Folder of the encoder.
        columns: Columns of files, corpora and datasets; by default both sides of pairs, else the one column of text.
        split: The texts are documents, which are split into sentences by the package sentencex (docs/formats.md).
        language: Language of the text (ISO 639-1), for `split` and the card; `split` takes `en` if left out.
        config: How it is trained.
    """
    data = listed(data)
    config, out = (config or Sent2VecConfig()).resolved(), result_folder(out, Sent2VecRecord, sources=data)
    if language is not None:
        check_language(language)
    sources = SentenceSources(data, columns, splitter=SentenceSplitter(language or ENGLISH) if split else None)
    settings = Sent2VecSettings(config, sources.identity, language)
    return run(
        out,
        settings,
        Sent2VecRecord,
        lambda work, folder: _train(sources, settings, work, folder, out.name),
        result=TrainedSent2Vec,
        command="train-sent2vec",
        holds=lambda work: (work / CHECKPOINT).exists(),
    )


def _train(
    sources: SentenceSources, settings: Sent2VecSettings, work: Path, folder: Path, name: str
) -> Sent2VecRecord:
    """Read the text, unless an earlier run did, train, and write the encoder with its card and picture.

    Args:
        sources: The text.
        settings: Everything that determines the encoder.
        work: The work folder.
        folder: Folder of the encoder.
        name: Name of the encoder, for its card.
    """
    from paranmt_hf.encoders.row_file import RowFile
    from paranmt_hf.sent2vec.corpus import read_corpus
    from paranmt_hf.sent2vec.loop import Loop

    config = settings.sent2vec
    text = read_corpus(work / TEXT) or _read_text(sources, work / TEXT, config)
    logger.info(
        f"{counted(text.sentences, 'sentence')}, {text.known:,} known words; rows for "
        f"{counted(len(text.words.names) - 1, 'word')} and {counted(len(text.hashes), 'bucket')} of n-grams"
    )
    loop = Loop(text, config, work / CHECKPOINT)
    course, parameters, rows = loop.run(), int(loop.inputs.size), folder / "rows"
    stock = config.ngrams == 1 and config.cut == "words"
    # Row 0 was that of the placeholder. In the encoder it is that of unknown words, which add nothing.
    loop.inputs[0] = 0
    with RowFile(rows, len(loop.inputs), loop.inputs.shape[1], "float32", None if stock else text.hashes) as file:
        for start in range(0, len(loop.inputs), 10_000):
            file.write(loop.inputs[start : start + 10_000])
    # Free the memory of the tables before the libraries that save encoders are imported.
    del loop
    save_around_rows(rows, folder, text.words.names, config.ngrams, config.buckets, text.hashes, config.cut)
    record = Sent2VecRecord(
        settings=settings,
        sources=sources.names,
        datasets=sources.datasets,
        sentences=text.sentences,
        words=len(text.words.names) - 1,
        ngrams=len(text.hashes),
        known=text.known,
        threshold=config.threshold_for(text.words.tokens),
        course=course,
        dimension=config.dimension or 0,
        parameters=parameters,
        **made_with("numba", "numpy", "torch", "sentence-transformers"),
    )
    if course.losses:
        plot_history(History(losses=course.losses), folder / TRAINING_PICTURE, "Sent2Vec", unit="words")
    write_model_card(folder, name, sent2vec_values(record, folder))
    return record


def _read_text(sources: SentenceSources, folder: Path, config: Sent2VecConfig) -> TextOnDisk:
    """Read the text into an empty folder."""
    from paranmt_hf.sent2vec.corpus import write_corpus

    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    report = Report()
    try:
        text = write_corpus(sources.batches(report), folder, config)
    except WriteError:
        raise
    except InputError as error:
        # Say what was dropped, because that may be why too little text is left.
        raise InputError(f"{error} ({report.describe()})" if report.dropped else str(error)) from None
    logger.info(report.describe())
    return text


def save_around_rows(
    rows: Path,
    folder: Path,
    units: Sequence[str],
    order: int,
    buckets: int,
    hashes: np.ndarray,
    cut: str,
    precision: str = "float32",
) -> None:
    """Write an encoder into a folder, with weights that a `RowFile` holds.

    Words without n-grams, cut as by WORD, make an encoder of the family WORD, all others one of Sent2Vec.

    Args:
        rows: File of the rows [word or n-gram, dimension]; it is moved into the folder.
        folder: Folder of the encoder.
        units: The words; the first stands for unknown ones.
        order: Number of words of the longest n-grams.
        buckets: Number of buckets that n-grams are hashed into.
        hashes: The buckets that have a row, ascending.
        cut: How text is cut into words: `words` or `blanks`.
        precision: How the rows are stored.
    """
    import torch

    from paranmt_hf.encoders.modules.paranmt_averages import NgramEmbedding, WordEmbedding
    from paranmt_hf.encoders.modules.paranmt_tables import WEIGHTS_FILE
    from paranmt_hf.encoders.saving import save
    from paranmt_hf.encoders.sentence_encoder import SentenceEncoder

    # Weights of one dimension, which are replaced by the file of rows at the end.
    frame = torch.zeros(len(units) + len(hashes), 1)
    module: WordEmbedding | NgramEmbedding
    if order == 1 and cut == "words":
        module = WordEmbedding(units, frame, precision)
    else:
        buckets = buckets if order > 1 else 0
        module = NgramEmbedding(units, frame, precision, order=order, buckets=buckets, hashes=hashes, cut=cut)
    save(SentenceEncoder(modules=[module], device="cpu", similarity_fn_name="cosine"), folder)
    rows.replace(folder / WEIGHTS_FILE)
