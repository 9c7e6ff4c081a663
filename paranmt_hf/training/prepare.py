"""Prepare a training: the encoder, the pairs as rows of its tables, and the teacher's vectors.

Each is made once and kept in the work folder, so that a resumed run does not read the corpus again.
"""

from __future__ import annotations

import logging
import shutil
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from paranmt_hf.corpus.reading.pairs import SIDES
from paranmt_hf.encoders.building import build_encoder, choose_vocabularies, trainable
from paranmt_hf.encoders.composition import take_apart
from paranmt_hf.encoders.config import EncoderConfig, UnitKind
from paranmt_hf.encoders.loading import load
from paranmt_hf.encoders.saving import save
from paranmt_hf.encoders.sentence_encoder import SentenceEncoder
from paranmt_hf.encoders.units import Lookup, UnitCounter, lookup
from paranmt_hf.encoders.vocabulary import most_frequent
from paranmt_hf.errors import InputError, UnfitError
from paranmt_hf.hub.repository import locate
from paranmt_hf.text.word_vectors import UNKNOWN_WORDS, WordVectors, read_vectors
from paranmt_hf.training.inputs import TrainingInputs
from paranmt_hf.training.pair_store import ABOUT, PairStore, write_pairs
from paranmt_hf.training.teacher_vectors import TeacherVectors, teach_all
from paranmt_hf.training.text import PairsAndText, log_left_out
from paranmt_hf.training.token_store import TokenStore, keys_are_whole, write_tokens
from paranmt_hf.util.files import write_bytes
from paranmt_hf.util.wording import counted

logger = logging.getLogger(__name__)
# Names in the work folder: the encoder before the first step, the file with its checksum, the pairs as rows, and the
# keys of sentences.
INITIAL, INITIAL_CHECKSUM, PAIRS, TOKENS = "initial", "initial.sha256", "pairs", "tokens"


def prepare_training(
    inputs: TrainingInputs, work: Path, teacher_cache: Path
) -> tuple[SentenceEncoder, PairStore, TeacherVectors | None]:
    """Make what training needs, or read it if an earlier run made it.

    Args:
        inputs: The inputs of the run.
        work: The work folder.
        teacher_cache: Folder of the teacher's vectors, unless the settings name one.

    Returns:
        The encoder with its initial weights, the pairs as rows of its tables, and the teacher's vectors, None without
        one.
    """
    model, store = _kept(inputs, work) or _make(inputs, work)
    store.unit = inputs.pairs.unit
    if not inputs.teachers:
        return model, store, None
    cache = Path(inputs.config.teacher_cache or teacher_cache).expanduser()
    return model, store, teach_all(inputs, work / TOKENS, cache)


def _kept(inputs: TrainingInputs, work: Path) -> tuple[SentenceEncoder, PairStore] | None:
    """Read the encoder and the pairs that an earlier run made; None if there are none, or if they are damaged."""
    if not (work / INITIAL_CHECKSUM).exists() or not (work / PAIRS / ABOUT).exists():
        return None
    try:
        store, initial = PairStore(work / PAIRS), locate(work / INITIAL)
        whole = initial.revision == (work / INITIAL_CHECKSUM).read_text(encoding="utf8") and store.is_whole()
        if whole and (not inputs.teachers or keys_are_whole(work / TOKENS)):
            return trainable(load(initial, device="cpu")), store
    # Of another version the file lacks some of the values.
    except (InputError, UnicodeDecodeError, KeyError):
        pass
    logger.warning(f"warning: the pairs or the initial encoder in {work} are damaged and are made again")
    return None


def _make(inputs: TrainingInputs, work: Path) -> tuple[SentenceEncoder, PairStore]:
    """Read the corpus once, build the encoder, and write both into the work folder."""
    if inputs.vectors is not None:
        # Read one vector now, so that a file without vectors is refused before the corpus is read.
        read_vectors(inputs.vectors, limit=1)
    logger.info("reading the training data")
    counter = UnitCounter([] if inputs.start is not None else inputs.encoder.kinds)
    batches = ((table[SIDES[0]], table[SIDES[1]]) for table in inputs.pairs.batches())
    tokens = write_tokens(batches, work / TOKENS, counter.add)
    counts = counter.result()
    if inputs.start is None and not any(counts.values()):
        raise InputError(
            f"nothing to train on: {inputs.pairs.left_out}; check the data and the options that select them"
        )
    model = inputs.start or build_for(inputs.encoder, counts, inputs.vectors, seed=inputs.config.seed)
    initial, mark = work / INITIAL, work / INITIAL_CHECKSUM
    # Remove the checksum first: an encoder without one counts as incomplete.
    mark.unlink(missing_ok=True)
    shutil.rmtree(initial, ignore_errors=True)
    save(model, initial)
    write_bytes(mark, locate(initial).revision.encode())
    # Convert the encoder as `_kept` does, so that a resumed run ends with the same bytes.
    model = trainable(model)
    store = _store(tokens, work / PAIRS, model, inputs)
    tokens.drop_tokens()
    return model, store


def build_for(
    config: EncoderConfig, counts: Mapping[UnitKind, Counter[str]], path: Path | None, *, seed: int
) -> SentenceEncoder:
    """Build an encoder with initial weights.

    Args:
        config: Settings of the encoder.
        counts: How often each unit occurs in the text, by the kind of units.
        path: File of word vectors; None for none.
        seed: Seed of the random weights.

    Raises:
        UnfitError: The settings do not fit together, the text or the file, or the encoder does not fit into memory.
    """
    vectors = _vectors(config, counts, path)
    try:
        return build_encoder(config, choose_vocabularies(config, counts, vectors), vectors=vectors, seed=seed)
    except InputError as error:
        raise UnfitError(str(error)) from None


def _vectors(config: EncoderConfig, counts: Mapping[UnitKind, Counter[str]], path: Path | None) -> WordVectors | None:
    """Read the vectors that the vocabulary may use; None without a file, or for an encoder without words.

    These are the vectors of the text's words, wherever they are in the file, and others from its beginning.
    """
    if path is None or "word" not in config.kinds:
        return None
    frequent = most_frequent("word", counts["word"], config.words, min_count=config.min_count)
    # The vector of unknown words may be anywhere in the file, often at its end.
    shared = UNKNOWN_WORDS if config.unknown == "share" else ()
    vectors = read_vectors(path, limit=config.words, wanted=[*frequent.units, *shared])
    if vectors.unknown is not None and config.unknown != "share":
        logger.info(f"{path} has a vector for unknown words, which is left out; `unknown` share takes it")
    if set(frequent.units).isdisjoint(vectors.words):
        shown = ", ".join(map(repr, frequent.units[1:4]))
        raise UnfitError(
            f"{path} knows none of the {len(frequent) - 1:,} words of the training data, such as {shown}; "
            "expected vectors of words of their language"
        )
    return vectors


def _store(tokens: TokenStore, folder: Path, model: SentenceEncoder, inputs: TrainingInputs) -> PairStore:
    """Write the pairs as rows of the encoder's tables.

    Args:
        tokens: The pairs as word tokens.
        folder: Folder of the rows.
        model: The encoder.
        inputs: The inputs of the run.
    """
    readers: dict[str, Lookup] = {}
    for part in take_apart(model).parts:
        readers[part.unit_kind] = readers.get(part.unit_kind) or lookup(part.vocabulary)
    reasons, unit = inputs.pairs.left_out_by, inputs.pairs.unit
    store = write_pairs(tokens.batches(), folder, readers, left_out=reasons, unit=unit)
    log_left_out(store.left_out)
    of_text = isinstance(inputs.pairs, PairsAndText)
    size = counted(store.sentences, "sentence") if of_text else counted(store.pairs, "pair")
    logger.info(f"training on {size}")
    return store
