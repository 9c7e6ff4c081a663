"""Everything that training needs before its first step: the encoder, the pairs as rows, the teacher's vectors.

Each is made once and kept in the work folder, so that going on after an interruption does not read the corpus again.
"""

from __future__ import annotations

import hashlib
import logging
import math
import shutil
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import numpy as np
import pyarrow as pa
import torch

from paranmt_hf.corpus.pairs import ERRORS, SIDES
from paranmt_hf.encoders.building import build_encoder, choose_vocabularies, trainable
from paranmt_hf.encoders.composition import take_apart
from paranmt_hf.encoders.config import EncoderConfig
from paranmt_hf.encoders.families import Kind
from paranmt_hf.encoders.loading import load
from paranmt_hf.encoders.saving import save
from paranmt_hf.encoders.sentence_encoder import SentenceEncoder
from paranmt_hf.encoders.units import UnitCounter, lookup
from paranmt_hf.encoders.vocabulary import most_frequent
from paranmt_hf.errors import InputError, UnfitError
from paranmt_hf.hub.repository import Model, locate
from paranmt_hf.text.word_vectors import UNKNOWN_WORDS, WordVectors, read_vectors
from paranmt_hf.training.inputs import TrainingRun
from paranmt_hf.training.pair_store import ABOUT, PairStore, Reader, write_pairs
from paranmt_hf.training.pair_views import PairsWithErrors
from paranmt_hf.training.teacher import JoinedTeachers, TeacherVectors, teach
from paranmt_hf.training.token_store import TokenStore, keys_are_whole, read_keys, write_tokens
from paranmt_hf.util.files import AGAIN, write_bytes, writing
from paranmt_hf.util.work import folder_aside

logger = logging.getLogger(__name__)
# In the work folder: the encoder before the first step and its checksum, the pairs as rows, the keys of sentences.
INITIAL, INITIAL_CHECKSUM, PAIRS, TOKENS = "initial", "initial.sha256", "pairs", "tokens"
# Wrong translations: as rows and as tokens.
ERROR_PAIRS, ERROR_TOKENS = "errors", "error-tokens"
# Sentences with which a teacher's speed is measured.
MEASURED = 64
# What a full disk says of an encoder that cannot be written.
SAVING, GO_ON = "save the encoder to", f"{AGAIN}, which goes on from what is kept in the folder above"


def prepare(
    run: TrainingRun, work: Path, teacher_cache: Path
) -> tuple[SentenceEncoder, PairStore, TeacherVectors | None]:
    """Make what training starts from, or find it made.

    Args:
        run: The run.
        work: Its work folder.
        teacher_cache: Folder that keeps the teacher's vectors.

    Returns:
        The encoder with its initial weights, the pairs as rows of its tables, and the teacher's vectors, if any.
    """
    initial, tokens = _whole_initial(work), None
    store = _whole_pairs(work / PAIRS, run, work) if initial is not None else None
    if store is None:
        # Units are counted for a vocabulary that is still to be chosen.
        counter = UnitCounter(run.encoder.kinds) if run.start is None and initial is None else None
        tokens = _read_corpus(run, work / TOKENS, counter)
        if initial is None:
            initial = _save_initial(_build(run, counter) if counter else run.start, work)
        # The counts of a large corpus are large, too.
        del counter
    assert initial is not None
    model = trainable(load(initial, device="cpu"))
    if store is None:
        assert tokens is not None
        store = _store(tokens, work / PAIRS, model, run)
        tokens.drop_tokens()
    store.unit = run.pairs.unit
    if run.config.error_negatives:
        store = _with_errors(run, work, model)
    return model, store, _taught(run, work / TOKENS, teacher_cache) if run.teachers else None


def _whole_initial(work: Path) -> Model | None:
    """The encoder with its initial weights, where it is there as it was written."""
    try:
        found = locate(work / INITIAL)
        if found.revision == (work / INITIAL_CHECKSUM).read_text(encoding="utf8"):
            return found
    except (InputError, OSError, UnicodeDecodeError):
        pass
    return None


def _whole_pairs(folder: Path, run: TrainingRun, work: Path) -> PairStore | None:
    """Pairs as rows, where they are there as they were written; and the keys of all sentences for a teacher."""
    if not (folder / ABOUT).exists():
        return None
    with suppress(InputError):
        store = PairStore(folder)
        if store.is_whole() and (not run.teachers or keys_are_whole(work / TOKENS)):
            return store
    logger.warning(f"warning: {folder} is damaged and is made again")
    return None


def _read_corpus(run: TrainingRun, folder: Path, counter: UnitCounter | None) -> TokenStore:
    """Read the text of all pairs, once, and count its units where a counter is given."""
    if run.vectors is not None:
        # A file that is none shows before the corpus is read.
        read_vectors(run.vectors, limit=1)
    logger.info("reading the training data")
    batches = ((table[SIDES[0]], table[SIDES[1]]) for table in run.pairs.batches())
    return write_tokens(batches, folder, counter.add if counter else None)


def _build(run: TrainingRun, counter: UnitCounter) -> SentenceEncoder:
    counts = counter.result()
    if not any(counts.values()):
        raise InputError(f"nothing to train on: {run.pairs.left_out}; look at the data and at the options that choose")
    return build_for(run.encoder, counts, run.vectors, seed=run.config.seed)


def build_for(
    config: EncoderConfig, counts: Mapping[Kind, Counter[str]], path: Path | None, *, seed: int
) -> SentenceEncoder:
    """Make an encoder with initial weights for a text.

    Args:
        config: The settings.
        counts: How often each unit occurs in the text, by kind.
        path: File of word vectors to start from.
        seed: Decides random weights.

    Raises:
        UnfitError: The settings fit neither together nor to the text or the file, or the memory is too small for them.
        InputError: The file cannot be read.
    """
    vectors = _vectors(config, counts, path)
    try:
        return build_encoder(config, choose_vocabularies(config, counts, vectors), vectors=vectors, seed=seed)
    except InputError as error:
        raise UnfitError(str(error)) from None


def _vectors(config: EncoderConfig, counts: Mapping[Kind, Counter[str]], path: Path | None) -> WordVectors | None:
    """Read the vectors of the words to come: those of the text wherever they stand, others from the beginning."""
    if path is None or "word" not in config.kinds:
        return None
    own = most_frequent("word", counts["word"], config.words, min_count=config.min_count)
    # The row of unknown words may stand anywhere in the file, often at its end.
    shared = UNKNOWN_WORDS if config.unknown == "share" else ()
    vectors = read_vectors(path, limit=config.words, wanted=[*own.units, *shared])
    if vectors.unknown is not None and config.unknown != "share":
        logger.info(f"{path} has a vector for unknown words, which is left out; --unknown share takes it")
    if set(own.units).isdisjoint(vectors.words):
        shown = ", ".join(map(repr, own.units[1:4]))
        raise UnfitError(
            f"--vectors {path} knows none of the {len(own) - 1:,} words of the training data, such as {shown}; "
            "expected vectors of words of their language"
        )
    return vectors


def _save_initial(model: SentenceEncoder | None, work: Path) -> Model:
    """Write the encoder with its initial weights, and its checksum."""
    assert model is not None
    folder = work / INITIAL
    shutil.rmtree(folder, ignore_errors=True)
    with folder_aside(folder, doing=SAVING) as aside:
        save(model, aside)
    found = locate(folder)
    write_bytes(work / INITIAL_CHECKSUM, found.revision.encode())
    return found


def _with_errors(run: TrainingRun, work: Path, model: SentenceEncoder) -> PairStore:
    """The pairs, with the wrong translations of their references."""
    errors = _whole_pairs(work / ERROR_PAIRS, run, work)
    if errors is None:
        batches = ((table[SIDES[0]], table[SIDES[1]]) for table in run.pairs.errors())
        tokens = write_tokens(batches, work / ERROR_TOKENS)
        if not tokens.pairs:
            raise InputError(
                f"--error-negatives: no pair differs in a number or a negation, as {' and '.join(ERRORS)} tell; leave "
                "it out"
            )
        readers, rows = _readers(model)
        errors = write_pairs(tokens.tables(), work / ERROR_PAIRS, readers, rows)
        shutil.rmtree(work / ERROR_TOKENS)
    store = PairsWithErrors(work / PAIRS, errors, run.config.error_negatives, run.config.seed)
    if not (count := store.count()):
        raise InputError(
            f"--error-negatives: {errors.pairs:,} pairs differ in a number or a negation, but none of the other "
            f"{store.pairs:,} has the reference of one of them; it is for corpora with several translations of a "
            "reference, so leave it out"
        )
    logger.info(f"{errors.pairs:,} pairs differ in a number or a negation; {count:,} others have their references")
    return store


def _readers(model: SentenceEncoder) -> tuple[dict[str, Reader], dict[str, int]]:
    """How sentences become rows of an encoder's tables, and how many rows these have, by the name of the reader."""
    vocabularies = {part.reader: part.vocabulary for part in take_apart(list(model)).parts}
    return (
        {name: lookup(vocabulary) for name, vocabulary in vocabularies.items()},
        {name: len(vocabulary) for name, vocabulary in vocabularies.items()},
    )


def _store(tokens: TokenStore, folder: Path, model: SentenceEncoder, run: TrainingRun) -> PairStore:
    """Pairs as rows of the encoder's tables."""
    store = write_pairs(tokens.tables(), folder, *_readers(model))
    unknown = {f"{run.pairs.unit} without a known word on a side": store.left_out} if store.left_out else {}
    for reason, count in (run.pairs.left_out_by | unknown).items():
        logger.info(f"left out: {count:,} {reason}")
    logger.info(f"training on {store.pairs:,} {run.pairs.unit}")
    return store


def _taught(run: TrainingRun, tokens: Path, folder: Path) -> TeacherVectors:
    """Let the teachers encode every sentence of the pairs; each has its place in the folder, by its content."""
    keys = read_keys(tokens)
    places = [folder / hashlib.sha256(teacher.revision.encode()).hexdigest()[:16] for teacher in run.teachers]
    taught = [_teach(run, teacher, keys, place) for teacher, place in zip(run.teachers, places, strict=True)]
    return taught[0] if len(taught) == 1 else JoinedTeachers(taught, np.unique(keys))


def _teach(run: TrainingRun, name: Model, keys: np.ndarray, folder: Path) -> TeacherVectors:
    teacher = load(name, device=run.config.device)
    in_bf16 = run.config.precision == "bf16" and _bf16_pays(teacher, run, folder)

    def encode(sentences: list[str]) -> np.ndarray:
        # Rounding to bfloat16 changes a teacher's cosines far less than the student can follow.
        with torch.autocast(teacher.device.type, torch.bfloat16, enabled=in_bf16):
            vectors = teacher.encode(sentences, batch_size=128, show_progress_bar=False, convert_to_tensor=True)
        return vectors.float().cpu().numpy()

    return teach(_keyed(run, keys), encode, folder, name=name.revision)


def _bf16_pays(teacher: SentenceEncoder, run: TrainingRun, folder: Path) -> bool:
    """Tell whether this processor encodes faster in bfloat16; asked once for each folder of vectors."""
    if teacher.device.type != "cpu":
        return True
    kept = folder / "precision.txt"
    if not kept.exists():
        table = next(iter(run.pairs.batches()))
        sentences = table[SIDES[0]].slice(0, MEASURED).to_pylist()
        seconds = {True: math.inf, False: math.inf}
        # The first round warms up; the best of the others counts.
        for round_ in range(3):
            for in_bf16 in seconds:
                started = time.perf_counter()
                with torch.autocast("cpu", torch.bfloat16, enabled=in_bf16):
                    teacher.encode(sentences, show_progress_bar=False)
                if round_:
                    seconds[in_bf16] = min(seconds[in_bf16], time.perf_counter() - started)
        faster = seconds[True] < seconds[False]
        if not faster:
            logger.info("bfloat16 is no faster than float32 on this processor, so the teacher encodes in float32")
        with writing(folder):
            folder.mkdir(parents=True, exist_ok=True)
        write_bytes(kept, b"bf16" if faster else b"float32")
    return kept.read_bytes() == b"bf16"


def _keyed(run: TrainingRun, keys: np.ndarray) -> Iterator[tuple[np.ndarray, pa.Array | pa.ChunkedArray]]:
    """Read the sentences with their keys [pair, side], which were made when the text was cut."""
    start = 0
    for table in run.pairs.batches():
        for side, name in enumerate(SIDES):
            yield keys[start : start + table.num_rows, side], table[name]
        start += table.num_rows
