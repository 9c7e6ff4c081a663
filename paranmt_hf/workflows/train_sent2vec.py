"""`paranmt train-sent2vec`: sentences in, an encoder out. Sent2Vec (Pagliardini, Gupta and Jaggi 2018)."""

from __future__ import annotations

import json
import logging
import platform
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from paranmt_hf.corpus.bitext.readers import Report
from paranmt_hf.errors import InputError, WriteError
from paranmt_hf.training.history import TRAINING_PICTURE, plot_history
from paranmt_hf.training.record import TRAINING_FILE
from paranmt_hf.training.sent2vec.config import Sent2VecConfig
from paranmt_hf.training.sent2vec.corpus import TextOnDisk, read_corpus, write_corpus
from paranmt_hf.training.sent2vec.record import CHECKPOINT, Course, Sent2VecRecord, read_sent2vec
from paranmt_hf.util.optional import require, versions
from paranmt_hf.util.work import (
    Identity,
    as_json,
    finished,
    folder_aside,
    keep_identity,
    locked,
    put_in_place,
    remove,
    remove_leftover,
    result_folder,
    work_folder,
)
from paranmt_hf.version import __version__
from paranmt_hf.workflows.support.sent2vec_card import write_sent2vec_card
from paranmt_hf.workflows.support.sentence_sources import SentenceSources

if TYPE_CHECKING:
    from paranmt_hf.encoders.sentence_encoder import SentenceEncoder

logger = logging.getLogger(__name__)
COMMAND, TEXT = "train-sent2vec", "text"
AGAIN = "make room and run the same command again, which goes on from the end of training"


@dataclass
class TrainedSent2Vec:
    """A model that was trained on sentences.

    Attributes:
        folder: Where it is.
        record: Settings, course and result, as in `training.json`.
        fresh: Whether this call trained it; it may have been there already.
    """

    folder: Path
    record: Sent2VecRecord
    fresh: bool

    def load(self) -> SentenceEncoder:
        """Load the encoder."""
        from paranmt_hf.encoders.loading import load

        return load(self.folder)


def train_sent2vec(
    data: str | Path | Sequence[str | Path],
    out: str | Path,
    *,
    columns: Sequence[str] | None = None,
    config: Sent2VecConfig | None = None,
) -> TrainedSent2Vec:
    """Train an encoder on sentences: each word is predicted from the average of the rest of its sentence.

    Killed at any moment and called again it goes on from the last checkpoint; with one thread it ends with the same
    bytes.

    Args:
        data: Text files with one sentence on a line, Parquet files, releases, or data sets on the Hub.
        out: Folder of the encoder; work in progress lies beside it in `<out>.work`.
        columns: Columns of Parquet, releases and data sets; by default both sides of pairs.
        config: How it is trained.

    Raises:
        InputError: Something in the data, the settings or the folders has to be put right first.
    """
    require("numba", "fast")
    config = config or Sent2VecConfig()
    config.refuse_unused()
    config, out = config.resolved(), result_folder(out)
    sources = SentenceSources([data] if isinstance(data, str | Path) else list(data), columns)
    identity = as_json({"sent2vec": config.identity, "data": sources.identity})
    record = finished(out, identity, _read_record, lambda record: record.settings, made="trained")
    if record is not None:
        remove_leftover(out, COMMAND)
        return TrainedSent2Vec(out, record, fresh=False)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"--out {out}: cannot make its folder: {error.strerror}; choose another place") from None
    work = work_folder(out)
    with locked(work, COMMAND, worth=_holds_training):
        keep_identity(work, identity, worth=_holds_training, doing="training")
        record = _train(sources, config, identity, work, out.name)
        put_in_place(work / "model", out)
        remove(work)
    return TrainedSent2Vec(out, record, fresh=True)


def _holds_training(work: Path) -> bool:
    return (work / CHECKPOINT).exists()


def _read_record(folder: Path) -> Sent2VecRecord:
    try:
        return read_sent2vec(folder)
    except InputError as error:
        raise InputError(
            f"{folder} exists and is no model of this command ({error}); choose another --out or move it away"
        ) from None


def _train(
    sources: SentenceSources, config: Sent2VecConfig, identity: Identity, work: Path, name: str
) -> Sent2VecRecord:
    """Read the text, unless an earlier run did; train; write the model into the work folder."""
    from paranmt_hf.training.sent2vec.loop import Loop

    text = read_corpus(work / TEXT)
    if text is None:
        shutil.rmtree(work / TEXT, ignore_errors=True)
        (work / TEXT).mkdir()
        report = Report()
        try:
            text = write_corpus(sources.batches(report), work / TEXT, config)
        except WriteError:
            raise
        except InputError as error:
            # What was dropped may be why too little is left.
            raise InputError(f"{error} ({report.describe()})" if report.dropped else str(error)) from None
        logger.info(report.describe())
    logger.info(
        f"{text.sentences:,} sentences, {text.known:,} known words; rows for {len(text.words.names) - 1:,} words and "
        f"{len(text.hashes):,} buckets of n-grams"
    )
    loop = Loop(text, config, work)
    course = loop.run()
    record = Sent2VecRecord(
        settings=identity,
        sources=sources.names,
        datasets=sources.datasets,
        sentences=text.sentences,
        words=len(text.words.names) - 1,
        ngrams=len(text.hashes),
        known=text.known,
        course=course,
        dimension=config.dimension or 0,
        parameters=int(loop.inputs.size),
        versions=versions(("numba", "numpy", "torch", "sentence-transformers")),
        machine=platform.machine(),
        paranmt_hf=__version__,
    )
    _write(record, _encoder(loop.inputs, text, config), work / "model", name, course)
    return record


def _encoder(inputs: np.ndarray, text: TextOnDisk, config: Sent2VecConfig) -> SentenceEncoder:
    """Make the encoder of the trained rows; words alone, cut as WORD cuts them, are a WORD model."""
    from paranmt_hf.encoders.modules.paranmt_averages import NgramEmbedding, WordEmbedding
    from paranmt_hf.encoders.sentence_encoder import SentenceEncoder

    # The placeholder's row becomes that of unknown words, which add nothing.
    inputs[0] = 0
    module = (
        WordEmbedding(text.words.names, inputs)
        if config.ngrams == 1 and config.cut == "words"
        else NgramEmbedding(
            text.words.names,
            inputs,
            order=config.ngrams,
            buckets=config.buckets if config.ngrams > 1 else 0,
            hashes=text.hashes,
            cut=config.cut,
        )
    )
    return SentenceEncoder(modules=[module], device="cpu", similarity_fn_name="cosine")


def _write(record: Sent2VecRecord, encoder: SentenceEncoder, folder: Path, name: str, course: Course) -> None:
    """Write the encoder with its record, its card and, where matplotlib is there, its picture."""
    from paranmt_hf.encoders.saving import save

    shutil.rmtree(folder, ignore_errors=True)
    with folder_aside(folder, doing="save the encoder to", advice=AGAIN) as aside:
        save(encoder, aside)
        (aside / TRAINING_FILE).write_text(json.dumps(record.to_json(), indent=1), encoding="utf8")
        if course.losses:
            plot_history(course.history, aside / TRAINING_PICTURE, "Sent2Vec", unit="words")
        write_sent2vec_card(aside, name, record)
