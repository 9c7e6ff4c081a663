"""What the trainings of paraphrasers share: from a work folder to a folder, and the model at the beginning."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import torch

from paranmt_hf.corpus.pairs import Pairs, PairSelection
from paranmt_hf.errors import InputError
from paranmt_hf.evaluation.sentences import read_sentences
from paranmt_hf.paraphrase.config import ParaphraserConfig, ParaphraserTraining
from paranmt_hf.paraphrase.modeling_paranmt_lstm import ParaNMTLstmConfig, ParaNMTLstmForConditionalGeneration
from paranmt_hf.training.distributed import started
from paranmt_hf.training.inputs import holds_training
from paranmt_hf.training.trainer_run import check_reporting
from paranmt_hf.util.files import source_name
from paranmt_hf.util.records import Identity
from paranmt_hf.util.run import Holds, put_in_place, work_folder
from paranmt_hf.util.work import finished, keep_identity, locked, remove, remove_leftover

logger = logging.getLogger(__name__)
AGAIN = "make room and run the same command again, which goes on from what is kept in the folder above"
# Pairs of which pieces are made; more change next to nothing of them.
MOST_FOR_PIECES = 2_000_000
# Settings that change nothing of the result.
WITHOUT_EFFECT = ("checkpoint_seconds", "report_to")
Record = TypeVar("Record")


def check_training(training: ParaphraserTraining) -> None:
    """Refuse, before any work, a GPU or a service to report to that is not there, and several processes."""
    if training.device == "cuda" and not torch.cuda.is_available():
        raise InputError("--device cuda: there is no GPU that torch can use; leave it out, or give --device cpu")
    if training.report_to:
        check_reporting(training.report_to)
    if (count := started()) > 1:
        raise InputError(f"paraphrasers are trained by one process, and {count} were started; start one")


def several(given: str | Path | Sequence[str | Path]) -> list[str | Path]:
    """Make a list of what may be a single one."""
    return [given] if isinstance(given, str | Path) else list(given)


def chosen_pairs(
    sources: list[str | Path],
    selection: PairSelection | None,
    exclude: str | Path | Sequence[str | Path],
    *,
    seed: int,
    all_columns: bool = False,
) -> tuple[Pairs, str]:
    """Find the pairs to train on.

    Args:
        sources: What they are from, see `Pairs`.
        selection: Which ones.
        exclude: Folders or files of evaluation sets, whose sentences are in no pair.
        seed: Decides which ones are drawn.
        all_columns: Read all their columns.

    Returns:
        The pairs, and the names of their sources without folders, between commas.

    Raises:
        InputError: A source is missing or lacks a column.
    """
    excluded = read_sentences(*several(exclude))
    for file, reason in excluded.unread.items():
        logger.warning(f"not read for --exclude: {file} ({reason})")
    pairs = Pairs(sources, selection or PairSelection(), excluded.texts, seed=seed, all_columns=all_columns)
    return pairs, ", ".join(map(source_name, sources))


def found_or_made(
    out: Path,
    command: str,
    identity: Identity,
    read: Callable[[Path], Record],
    identity_of: Callable[[Record], Identity],
    make: Callable[[Path], Record],
    *,
    worth: Holds = holds_training,
) -> tuple[Record, bool]:
    """Find the model of a command, or make it in its work folder and put it into place.

    Args:
        out: Folder of the model.
        command: Name of the command.
        identity: What determines the model.
        read: Reads the record of a model that is there.
        identity_of: What determined that one.
        make: Makes the model in the folder `model` of the work folder that it is given.
        worth: Says whether what lies in the work folder took long to make.

    Returns:
        The record, and whether this call made the model.

    Raises:
        InputError: Something else is there, or what `make` says.
    """
    record = finished(out, identity, read, identity_of, made="trained")
    if record is not None:
        remove_leftover(out, command)
        return record, False
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"--out {out}: cannot make its folder: {error.strerror}; choose another place") from None
    work = work_folder(out)
    with locked(work, command, worth=worth):
        keep_identity(work, identity, worth=worth, doing="training")
        record = make(work)
        put_in_place(work / "model", out)
        remove(work)
    return record, True


def new_model(
    config: ParaphraserConfig,
    training: ParaphraserTraining,
    pieces: int,
    make: Callable[[ParaNMTLstmConfig], ParaNMTLstmForConditionalGeneration] = ParaNMTLstmForConditionalGeneration,
    kind: type[ParaNMTLstmConfig] = ParaNMTLstmConfig,
    **shape: Any,  # noqa: ANN401
) -> ParaNMTLstmForConditionalGeneration:
    """Make a model with initial weights, which the seed decides.

    Args:
        config: Its shape.
        training: Gives the seed, and the most pieces of what is generated.
        pieces: Size of the vocabulary.
        make: Class of the model.
        kind: Class of its shape.
        shape: What differs from `config`, or what it does not have, under the names of `kind`.
    """
    known = {
        "vocab_size": pieces,
        "embedding_size": config.embedding,
        "hidden_size": config.hidden,
        "encoder_layers": config.encoder_layers,
        "decoder_layers": config.decoder_layers,
        "dropout": config.dropout,
        "tie_word_embeddings": not config.untied,
    }
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(training.seed)
        model = make(kind(**{**known, **shape}))
    settings = model.generation_config
    settings.num_beams, settings.early_stopping, settings.max_length = 4, True, training.max_pieces
    return model


def first_rows(columns: Iterable[tuple[pa.ChunkedArray, ...]]) -> Iterable[pa.ChunkedArray]:
    """Columns of text of the first pairs, batch by batch, of which pieces are made."""
    left = MOST_FOR_PIECES
    for sides in columns:
        for side in sides:
            yield side.slice(0, left)
        left -= len(sides[0])
        if left <= 0:
            return
