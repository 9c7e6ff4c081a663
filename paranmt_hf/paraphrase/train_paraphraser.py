"""Train an encoder-decoder that paraphrases: pairs in, a folder out that `AutoModelForSeq2SeqLM` loads.

ParaNMT-50M (Wieting & Gimpel 2018), section 6.
"""

from __future__ import annotations

import json
import logging
import platform
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch

from paranmt_hf.corpus.pairs import SIDES, Pairs, PairSelection
from paranmt_hf.errors import InputError
from paranmt_hf.hub.pretrained import quiet
from paranmt_hf.hub.repository import Model, locate, plain_name
from paranmt_hf.paraphrase.card import write_paraphraser_card
from paranmt_hf.paraphrase.config import ParaphraserConfig, ParaphraserTraining
from paranmt_hf.paraphrase.loading import EncoderDecoder, read_model
from paranmt_hf.paraphrase.measuring import measure
from paranmt_hf.paraphrase.noise import WORD_RATE, add_noise
from paranmt_hf.paraphrase.paraphraser import Paraphraser
from paranmt_hf.paraphrase.paraphraser_run import (
    AGAIN,
    WITHOUT_EFFECT,
    check_training,
    chosen_pairs,
    first_rows,
    found_or_made,
    new_model,
    several,
)
from paranmt_hf.paraphrase.piece_store import Batches, PieceStore, held_out_keys, read_about, write_pieces
from paranmt_hf.paraphrase.record import Course, Measured, ParaphraserRecord, read_paraphraser
from paranmt_hf.paraphrase.syntax.kind import is_controlled
from paranmt_hf.paraphrase.tokenizer import train_tokenizer
from paranmt_hf.paraphrase.trainer import train_pieces
from paranmt_hf.training.record import TRAINING_FILE
from paranmt_hf.util.files import share_weights
from paranmt_hf.util.optional import versions
from paranmt_hf.util.progress import Progress
from paranmt_hf.util.records import Identity, as_json
from paranmt_hf.util.run import result_folder
from paranmt_hf.util.work import folder_aside
from paranmt_hf.version import __version__

logger = logging.getLogger(__name__)
COMMAND, INITIAL, PIECES = "train-paraphraser", "initial", "pieces"


@dataclass(frozen=True)
class TrainedParaphraser:
    """A trained paraphraser.

    Attributes:
        folder: Where it is.
        record: Settings, course and figures, as in `training.json`.
        fresh: Whether this call trained it; it may have been there already.
    """

    folder: Path
    record: ParaphraserRecord
    fresh: bool

    def load(self) -> Paraphraser:
        """Load the paraphraser."""
        return Paraphraser(self.folder)


@dataclass(frozen=True)
class _Run:
    """What a run starts from."""

    config: ParaphraserConfig
    training: ParaphraserTraining
    pairs: Pairs
    names: str
    base: Model | None

    @cached_property
    def identity(self) -> Identity:
        """Everything that decides the result, as JSON values."""
        shape = asdict(self.config) if self.base is None else {"base": self.base.revision}
        training = {name: value for name, value in asdict(self.training).items() if name not in WITHOUT_EFFECT}
        return as_json({"paraphraser": shape, "training": training, "data": self.pairs.identity})

    @property
    def inputs(self) -> dict[str, str]:
        """Names, without their folders, of what it begins with."""
        return {"data": self.names, **({"base": plain_name(self.config.base)} if self.config.base else {})}


def train_paraphraser(
    data: str | Path | Sequence[str | Path],
    out: str | Path,
    *,
    config: ParaphraserConfig | None = None,
    training: ParaphraserTraining | None = None,
    selection: PairSelection | None = None,
    exclude: str | Path | Sequence[str | Path] = (),
) -> TrainedParaphraser:
    """Train an encoder-decoder on paraphrase pairs.

    Killed at any moment and called again it goes on from the last checkpoint; on the CPU it ends with the same bytes.

    Args:
        data: One or more releases, Parquet files with `reference` and `translation`, or datasets on the Hub.
        out: Folder of the model; work in progress lies beside it in `<out>.work`.
        config: Which encoder-decoder.
        training: How it is trained.
        selection: Which pairs are used.
        exclude: Folders or files of evaluation sets, see `read_sentences`; pairs with one of their sentences are left
            out, case and punctuation aside.

    Raises:
        InputError: Something in the data, the settings or the folders has to be put right first.
    """
    config, training = config or ParaphraserConfig(), training or ParaphraserTraining()
    out = result_folder(out)
    check_training(training)
    base = locate(config.base) if config.base is not None else None
    if base is not None and is_controlled(base):
        raise InputError(
            f"base {config.base} is syntactically controlled and reads a tree beside each sentence, so it cannot be "
            "trained on pairs alone; name another encoder-decoder, or train a new network with `train-controlled`"
        )
    pairs, names = chosen_pairs(several(data), selection, exclude, seed=training.seed)
    run = _Run(config, training.resolved("lstm" if base is None else "base"), pairs, names, base)
    record, fresh = found_or_made(
        out,
        COMMAND,
        run.identity,
        _read_record,
        lambda record: record.settings,
        lambda work: _train(run, work, out.name),
    )
    return TrainedParaphraser(out, record, fresh)


def _read_record(folder: Path) -> ParaphraserRecord:
    try:
        return read_paraphraser(folder)
    except InputError as error:
        raise InputError(
            f"{folder} exists and is no paraphraser of this program ({error}); choose another --out or move it away"
        ) from None


def _train(run: _Run, work: Path, name: str) -> ParaphraserRecord:
    """Prepare, unless an earlier run did; train; write the model into the work folder."""
    training = run.training
    own = _initial(run, work / INITIAL)
    if own.places is not None and own.places < training.max_pieces:
        raise InputError(
            f"max_pieces {training.max_pieces} is more than the {own.places} positions of {run.config.base}; lower it"
        )
    about = read_about(work / PIECES)
    if about is None:
        _cut(run, own, work / PIECES)
        about = read_about(work / PIECES)
    assert about is not None
    if run.pairs.left_out_by:
        logger.info(run.pairs.left_out)
    logger.info(f"{about.pairs['train']:,} pairs, {about.pairs['held-out']:,} held out, {about.too_long:,} too long")
    store, held_out = PieceStore(work / PIECES, "train"), PieceStore(work / PIECES, "held-out")
    batches = Batches(store, training.batch_tokens, epochs=training.epochs, seed=training.seed, pad=own.pad)

    def measured(step: int) -> Measured:
        return measure(
            own,
            held_out,
            most=training.measured_pairs,
            budget=training.batch_tokens,
            longest=training.max_pieces,
            step=step,
        )

    course = train_pieces(own, batches, work, training, measured if len(held_out) else None)
    return _write(run, own, course, work, name)


def _initial(run: _Run, folder: Path) -> EncoderDecoder:
    """Make the model before the first step with its pieces, or find it made."""
    if run.base is not None:
        return read_model(run.base)
    if not folder.exists():
        logger.info("reading the training data")
        with folder_aside(folder, doing="save the model to", advice=AGAIN) as aside:
            text = ((table["reference"], table["translation"]) for table in run.pairs.batches())
            tokenizer = train_tokenizer(first_rows(text), run.config.pieces)
            with quiet():
                tokenizer.save_pretrained(aside)
                new_model(run.config, run.training, len(tokenizer)).save_pretrained(aside)
    return read_model(locate(folder))


def _cut(run: _Run, own: EncoderDecoder, folder: Path) -> None:
    """Cut all chosen pairs into pieces."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    training = run.training
    with Progress("cut", unit="pairs") as progress:
        write_pieces(
            _directed(run, progress),
            folder,
            {"source": own.cut, "target": own.cut_targets},
            most=training.max_pieces,
            held_out=training.held_out,
        )


def _directed(run: _Run, progress: Progress) -> Iterator[tuple[pa.ChunkedArray, pa.ChunkedArray, pa.ChunkedArray]]:
    """Sources, targets and references, in each direction that is asked for."""
    direction, done = run.training.direction, 0
    for table in run.pairs.batches():
        reference, translation = (table[side] for side in SIDES)
        if direction != "to-translation":
            yield _noisy(translation, reference, reference, run.training, done), reference, reference
        if direction != "to-reference":
            yield _noisy(reference, translation, reference, run.training, done), translation, reference
        done += table.num_rows
        progress.advance_to(done)
    if not done:
        raise InputError(f"nothing to train on: {run.pairs.left_out}; look at the options that choose pairs")


def _noisy(
    sources: pa.ChunkedArray,
    targets: pa.ChunkedArray,
    references: pa.ChunkedArray,
    training: ParaphraserTraining,
    first: int,
) -> pa.ChunkedArray:
    """Put, with the probability `noise`, the target with noise in the place of a source that is not held out.

    `first` is the number of the first row.
    """
    if not training.noise:
        return sources
    drawn = np.random.default_rng([training.seed, first]).random(len(sources)) < training.noise
    drawn &= ~held_out_keys(references, training.held_out)
    instead = [
        add_noise(target, WORD_RATE, f"{training.seed} {row}")[0]
        for row, target in zip(np.flatnonzero(drawn) + first, targets.filter(pa.array(drawn)).to_pylist(), strict=True)
    ]
    return pc.replace_with_mask(sources.combine_chunks(), pa.array(drawn), pa.array(instead, sources.type))


def _write(run: _Run, own: EncoderDecoder, course: Course, work: Path, name: str) -> ParaphraserRecord:
    """Write the model with its pieces, record and card."""
    folder = work / "model"
    about = read_about(work / PIECES)
    assert about is not None
    record = ParaphraserRecord(
        settings=run.identity,
        inputs=run.inputs,
        pairs=about.pairs["train"],
        held_out=about.pairs["held-out"],
        too_long=about.too_long,
        course=course,
        model_type=own.model.config.model_type,
        parameters=sum(weight.numel() for weight in own.model.parameters()),
        pieces=len(own.tokenizer),
        versions={"paranmt-hf": __version__, **versions(("torch", "transformers", "tokenizers", "sacrebleu"))},
        machine=platform.machine(),
        device="cpu" if run.training.device == "cpu" or not torch.cuda.is_available() else "cuda",
    )
    shutil.rmtree(folder, ignore_errors=True)
    with folder_aside(folder, doing="save the model to", advice=AGAIN) as aside:
        with quiet():
            own.model.save_pretrained(aside)
            own.tokenizer.save_pretrained(aside)
        share_weights(aside)
        (aside / TRAINING_FILE).write_text(json.dumps(record.to_json(), indent=1), encoding="utf8")
        write_paraphraser_card(aside, name, record)
    return record
