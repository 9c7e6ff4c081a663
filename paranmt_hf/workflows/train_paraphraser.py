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

import pyarrow as pa
import torch

from paranmt_hf.corpus.pairs import SIDES, Pairs, SelectionConfig
from paranmt_hf.errors import InputError
from paranmt_hf.hub.pretrained import quiet
from paranmt_hf.hub.repository import Model, locate, plain_name
from paranmt_hf.paraphrase.config import ParaphraserConfig, ParaphraserTraining
from paranmt_hf.paraphrase.loading import EncoderDecoder, read_model
from paranmt_hf.paraphrase.measuring import measure
from paranmt_hf.paraphrase.modeling_paranmt_lstm import ParaNMTLstmConfig, ParaNMTLstmForConditionalGeneration
from paranmt_hf.paraphrase.paraphraser import Paraphraser
from paranmt_hf.paraphrase.piece_store import Batches, PieceStore, read_about, write_pieces
from paranmt_hf.paraphrase.record import Course, Measured, ParaphraserRecord, read_paraphraser
from paranmt_hf.paraphrase.tokenizer import train_tokenizer
from paranmt_hf.paraphrase.trainer import train_pieces
from paranmt_hf.training.record import TRAINING_FILE
from paranmt_hf.util.optional import versions
from paranmt_hf.util.progress import Progress
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
from paranmt_hf.workflows.support.paraphraser_card import write_paraphraser_card
from paranmt_hf.workflows.support.training_run import holds_training

logger = logging.getLogger(__name__)
COMMAND, INITIAL, PIECES = "train-paraphraser", "initial", "pieces"
AGAIN = "make room and run the same command again, which goes on from what is kept in the folder above"
# Pairs of which pieces are made; more change next to nothing of them.
MOST_FOR_PIECES = 2_000_000
# Settings that change nothing of the result.
WITHOUT_EFFECT = ("checkpoint_seconds",)


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
    selection: SelectionConfig | None = None,
) -> TrainedParaphraser:
    """Train an encoder-decoder on paraphrase pairs.

    Killed at any moment and called again it goes on from the last checkpoint; on the CPU it ends with the same bytes.

    Args:
        data: One or more releases, Parquet files with `reference` and `translation`, or datasets on the Hub.
        out: Folder of the model; work in progress lies beside it in `<out>.work`.
        config: Which encoder-decoder.
        training: How it is trained.
        selection: Which pairs are used.

    Raises:
        InputError: Something in the data, the settings or the folders has to be put right first.
    """
    config, training = config or ParaphraserConfig(), training or ParaphraserTraining()
    out = result_folder(out)
    if training.device == "cuda" and not torch.cuda.is_available():
        raise InputError("--device cuda: there is no GPU that torch can use; leave it out, or give --device cpu")
    sources = [data] if isinstance(data, str | Path) else list(data)
    base = locate(config.base) if config.base is not None else None
    pairs = Pairs(sources, selection or SelectionConfig(), seed=training.seed)
    names = ", ".join(Path(source).name if Path(source).exists() else str(source) for source in sources)
    run = _Run(config, training.resolved("lstm" if base is None else "base"), pairs, names, base)
    record = finished(out, run.identity, _read_record, lambda record: record.settings, made="trained")
    if record is not None:
        remove_leftover(out, COMMAND)
        return TrainedParaphraser(out, record, fresh=False)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"--out {out}: cannot make its folder: {error.strerror}; choose another place") from None
    work = work_folder(out)
    with locked(work, COMMAND, worth=holds_training):
        keep_identity(work, run.identity, worth=holds_training, doing="training")
        record = _train(run, work, out.name)
        put_in_place(work / "model", out)
        remove(work)
    return TrainedParaphraser(out, record, fresh=True)


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
    about = read_about(work / PIECES)
    if about is None:
        _cut(run, own, work / PIECES)
        about = read_about(work / PIECES)
    assert about is not None
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
            tokenizer = train_tokenizer(_text(run.pairs), run.config.pieces)
            with quiet():
                tokenizer.save_pretrained(aside)
                _new_model(run, len(tokenizer)).save_pretrained(aside)
    return read_model(locate(folder))


def _new_model(run: _Run, pieces: int) -> ParaNMTLstmForConditionalGeneration:
    config = run.config
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(run.training.seed)
        model = ParaNMTLstmForConditionalGeneration(
            ParaNMTLstmConfig(
                vocab_size=pieces,
                embedding_size=config.embedding,
                hidden_size=config.hidden,
                encoder_layers=config.encoder_layers,
                decoder_layers=config.decoder_layers,
                dropout=config.dropout,
                tie_word_embeddings=not config.untied,
            )
        )
    settings = model.generation_config
    settings.num_beams, settings.early_stopping, settings.max_length = 4, True, run.training.max_pieces
    return model


def _text(pairs: Pairs) -> Iterator[pa.ChunkedArray]:
    """Both sides of the first pairs, batch by batch."""
    left = MOST_FOR_PIECES
    for table in pairs.batches():
        for side in SIDES:
            yield table[side].slice(0, left)
        left -= table.num_rows
        if left <= 0:
            return


def _cut(run: _Run, own: EncoderDecoder, folder: Path) -> None:
    """Cut all chosen pairs into pieces."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    training = run.training
    with Progress("cut", unit="pairs") as progress:
        write_pieces(
            _directed(run, progress),
            folder,
            own.cut,
            own.cut_targets,
            most=training.max_pieces,
            held_out=training.held_out,
        )


def _directed(run: _Run, progress: Progress) -> Iterator[tuple[pa.ChunkedArray, pa.ChunkedArray, pa.ChunkedArray]]:
    """Sources, targets and references, in each direction that is asked for."""
    direction, done = run.training.direction, 0
    for table in run.pairs.batches():
        reference, translation = (table[side] for side in SIDES)
        if direction != "to-translation":
            yield translation, reference, reference
        if direction != "to-reference":
            yield reference, translation, reference
        done += table.num_rows
        progress.advance_to(done)


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
        (aside / TRAINING_FILE).write_text(json.dumps(record.to_json(), indent=1), encoding="utf8")
        write_paraphraser_card(aside, name, record)
    return record
