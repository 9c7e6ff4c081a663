"""The inputs of training before its first step: the encoder, the pairs as rows, the teacher's vectors.

Each is made once and kept in the work folder, so that a resumed run does not read the corpus again.
"""

from __future__ import annotations

import logging
import shutil
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from paranmt_hf.corpus.reading.pairs import ERRORS, SIDES
from paranmt_hf.encoders.building import build_encoder, choose_vocabularies, trainable
from paranmt_hf.encoders.composition import take_apart
from paranmt_hf.encoders.config import EncoderConfig, UnitKind
from paranmt_hf.encoders.loading import load
from paranmt_hf.encoders.saving import save
from paranmt_hf.encoders.sentence_encoder import SentenceEncoder
from paranmt_hf.encoders.units import Lookup, UnitCounter, lookup
from paranmt_hf.encoders.vocabulary import most_frequent
from paranmt_hf.errors import InputError, UnfitError
from paranmt_hf.hub.repository import Model, locate
from paranmt_hf.text.word_vectors import UNKNOWN_WORDS, WordVectors, read_vectors
from paranmt_hf.training.inputs import PairsAndText, TrainingRun, log_left_out
from paranmt_hf.training.pair_store import ABOUT, PairStore, TokenStore, keys_are_whole, write_pairs, write_tokens
from paranmt_hf.training.pair_views import PairsWithErrors
from paranmt_hf.training.teacher import TeacherVectors, teach_all
from paranmt_hf.util.files import write_bytes
from paranmt_hf.util.wording import counted

logger = logging.getLogger(__name__)
# In the work folder: the encoder before the first step and its checksum, the pairs as rows, the keys of sentences.
INITIAL, INITIAL_CHECKSUM, PAIRS, TOKENS = "initial", "initial.sha256", "pairs", "tokens"
ERROR_PAIRS, ERROR_TOKENS = "errors", "error-tokens"  # Wrong translations: as rows and as tokens


def prepare_training(
    run: TrainingRun, work: Path, teacher_cache: Path
) -> tuple[SentenceEncoder, PairStore, TeacherVectors | None]:
    """Create the inputs of training, unless an earlier run did.

    Returns the encoder with its initial weights, the pairs as rows of its tables, and the teacher's vectors, if any;
    these are kept in the given folder, unless the settings name one.
    """
    initial, tokens = _whole_initial(work), None
    store = _whole_pairs(work / PAIRS, run, work) if initial is not None else None
    if store is None:
        # Units are counted to choose a vocabulary.
        counter = UnitCounter(run.encoder.kinds) if run.start is None and initial is None else None
        tokens = _read_corpus(run, work / TOKENS, counter)
        if initial is None:
            initial = _save_initial(_build(run, counter) if counter else run.start, work)
        # The counts of a large corpus are large.
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
    cache = Path(run.config.teacher_cache or teacher_cache).expanduser()
    return model, store, teach_all(run, work / TOKENS, cache) if run.teachers else None


def _whole_initial(work: Path) -> Model | None:
    """Find the encoder with its initial weights, if it is intact."""
    try:
        found = locate(work / INITIAL)
        if found.revision == (work / INITIAL_CHECKSUM).read_text(encoding="utf8"):
            return found
    except (InputError, OSError, UnicodeDecodeError):
        pass
    return None


def _whole_pairs(folder: Path, run: TrainingRun, work: Path) -> PairStore | None:
    """Find the pairs as rows, and for a teacher the keys of all sentences, if they are intact."""
    if not (folder / ABOUT).exists():
        return None
    with suppress(InputError):
        store = PairStore(folder)
        if store.is_whole() and (not run.teachers or keys_are_whole(work / TOKENS)):
            return store
    logger.warning(f"warning: {folder} is damaged and is made again")
    return None


def _read_corpus(run: TrainingRun, folder: Path, counter: UnitCounter | None) -> TokenStore:
    """Read the text of all pairs once, and count its units if a counter is given."""
    if run.vectors is not None:
        # A file without vectors is refused before the corpus is read.
        read_vectors(run.vectors, limit=1)
    logger.info("reading the training data")
    batches = ((table[SIDES[0]], table[SIDES[1]]) for table in run.pairs.batches())
    return write_tokens(batches, folder, counter.add if counter else None)


def _build(run: TrainingRun, counter: UnitCounter) -> SentenceEncoder:
    counts = counter.result()
    if not any(counts.values()):
        raise InputError(f"nothing to train on: {run.pairs.left_out}; check the data and the options that select them")
    return build_for(run.encoder, counts, run.vectors, seed=run.config.seed)


def build_for(
    config: EncoderConfig, counts: Mapping[UnitKind, Counter[str]], path: Path | None, *, seed: int
) -> SentenceEncoder:
    """Build an encoder with initial weights, from the unit counts of a text and a file of word vectors, if any.

    Settings that fit neither together nor to the text or the file, or not into memory, raise `UnfitError`.
    """
    vectors = _vectors(config, counts, path)
    try:
        return build_encoder(config, choose_vocabularies(config, counts, vectors), vectors=vectors, seed=seed)
    except InputError as error:
        raise UnfitError(str(error)) from None


def _vectors(config: EncoderConfig, counts: Mapping[UnitKind, Counter[str]], path: Path | None) -> WordVectors | None:
    """Read the vectors of the vocabulary: those of the text from the whole file, others from its beginning."""
    if path is None or "word" not in config.kinds:
        return None
    own = most_frequent("word", counts["word"], config.words, min_count=config.min_count)
    # The row of unknown words may be anywhere in the file, often at its end.
    shared = UNKNOWN_WORDS if config.unknown == "share" else ()
    vectors = read_vectors(path, limit=config.words, wanted=[*own.units, *shared])
    if vectors.unknown is not None and config.unknown != "share":
        logger.info(f"{path} has a vector for unknown words, which is left out; `unknown` share takes it")
    if set(own.units).isdisjoint(vectors.words):
        shown = ", ".join(map(repr, own.units[1:4]))
        raise UnfitError(
            f"{path} knows none of the {len(own) - 1:,} words of the training data, such as {shown}; "
            "expected vectors of words of their language"
        )
    return vectors


def _save_initial(model: SentenceEncoder | None, work: Path) -> Model:
    """Write the encoder with its initial weights, and its checksum."""
    assert model is not None
    folder = work / INITIAL
    # Without its checksum, which is written last, the folder does not count.
    (work / INITIAL_CHECKSUM).unlink(missing_ok=True)
    shutil.rmtree(folder, ignore_errors=True)
    save(model, folder)
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
                f"no pair differs in a number or a negation according to {' and '.join(ERRORS)}, or has the label 0; "
                "leave `error_negatives` out",
                option="error_negatives",
            )
        errors = write_pairs(tokens.tables(), work / ERROR_PAIRS, _readers(model))
        shutil.rmtree(work / ERROR_TOKENS)
    store = PairsWithErrors(work / PAIRS, errors, run.config.error_negatives, run.config.seed)
    differing = counted(errors.pairs, "pair is no paraphrase", "pairs are no paraphrases")
    if not (count := store.count()):
        raise InputError(
            f"{differing}, by label, number or negation, but none of the other {store.pairs:,} has the reference of "
            "one of them; `error_negatives` is for corpora with several translations of a reference, so leave it out",
            option="error_negatives",
        )
    logger.info(f"{differing}, by label, number or negation; others with their references: {count:,}")
    return store


def _readers(model: SentenceEncoder) -> dict[str, Lookup]:
    """Lookups of an encoder's tables, which convert sentences to rows, by name."""
    vocabularies = {part.unit_kind: part.vocabulary for part in take_apart(model).parts}
    return {name: lookup(vocabulary) for name, vocabulary in vocabularies.items()}


def _store(tokens: TokenStore, folder: Path, model: SentenceEncoder, run: TrainingRun) -> PairStore:
    """Pairs as rows of the encoder's tables."""
    reasons, unit = run.pairs.left_out_by, run.pairs.unit
    store = write_pairs(tokens.tables(), folder, _readers(model), left_out=reasons, unit=unit)
    log_left_out(store.left_out)
    of_text = isinstance(run.pairs, PairsAndText)
    found = counted(store.sentences, "sentence") if of_text else counted(store.pairs, "pair")
    logger.info(f"training on {found}")
    return store
