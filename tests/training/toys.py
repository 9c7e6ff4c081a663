"""Small corpora, encoders and stores of pairs that tests of training share."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch

from paranmt_hf import EncoderConfig, SentenceEncoder, TrainConfig
from paranmt_hf.encoders.building import build_encoder, choose_vocabularies
from paranmt_hf.encoders.composition import take_apart
from paranmt_hf.encoders.saving import save
from paranmt_hf.encoders.units import count_units, lookup
from paranmt_hf.text.identity import keys_of
from paranmt_hf.training.losses import combined_loss
from paranmt_hf.training.mega_batch import mine_negatives, minibatch
from paranmt_hf.training.pair_store import MegaBatch, PairStore, write_pairs
from paranmt_hf.training.record import History, TrainingRecord, TrainingSettings
from paranmt_hf.training.teacher_vectors import TeacherVectors
from paranmt_hf.training.token_store import write_tokens

Sentences = list[str]
# A run that takes a second.
SMALL = {"batch_size": 10, "mega_batch": 4, "epochs": 2, "learning_rate": 0.01}
# Options with which `torchrun` finds a free port itself.
FREE_PORT = ["--rdzv-backend", "c10d", "--rdzv-endpoint", "127.0.0.1:0", "--local-addr", "127.0.0.1"]

# torch's own, dense, as `TrainConfig.optimizer` names them.
OPTIMIZERS = {"adam": torch.optim.Adam, "adagrad": partial(torch.optim.Adagrad, initial_accumulator_value=1e-6, eps=0)}


def synonyms(pairs: int, seed: int = 1, concepts: int = 30, words: int = 4) -> tuple[Sentences, Sentences]:
    """A language in which every concept has two words: references use one, translations the other."""
    generator = np.random.default_rng(seed)
    chosen = [generator.choice(concepts, words, replace=False).tolist() for _ in range(pairs)]
    references = [" ".join(f"left{concept}" for concept in sentence) for sentence in chosen]
    translations = [" ".join(f"right{concept}" for concept in sentence[::-1]) for sentence in chosen]
    return references, translations


def random_text(pairs: int, seed: int = 1, words: int = 50) -> tuple[Sentences, Sentences]:
    """Sentences of one to nine words, frequent and rare ones."""
    generator = np.random.default_rng(seed)
    chance = 1 / np.arange(1, words + 1)
    sides = []
    for _ in range(2):
        lengths = generator.integers(1, 10, pairs)
        drawn = [generator.choice(words, length, p=chance / chance.sum()) for length in lengths]
        sides.append([" ".join(f"w{word}" for word in sentence) for sentence in drawn])
    return sides[0], sides[1]


def encoder_of(sides: tuple[Sentences, Sentences], seed: int = 1, **settings: object) -> SentenceEncoder:
    """An encoder over the vocabulary of a corpus, with random weights."""
    config = EncoderConfig(**settings)
    counts = count_units([pa.array(side) for side in sides], config.kinds)
    return build_encoder(config, choose_vocabularies(config, counts), seed=seed)


def save_trained(encoder: SentenceEncoder, folder: Path, *, model: str = "word", pairs: int = 10) -> Path:
    """Save an encoder as if it had been trained on pairs."""
    save(encoder, folder)
    data = {"sources": [], "ranges": {}, "unwanted_sentences": 0}
    record = TrainingRecord(
        settings=TrainingSettings(EncoderConfig(model=model), TrainConfig(), data),
        pairs=pairs,
        history=History(losses=[(1, 0.5)]),
        development=0.5,
        dimension=encoder.get_embedding_dimension(),
        parameters=sum(parameter.numel() for parameter in encoder.parameters()),
        versions={},
        machine="",
        paranmt_hf="0",
    )
    record.write(folder)
    return folder


def store_of(sides: tuple[Sentences, Sentences], encoder: SentenceEncoder, folder: Path) -> PairStore:
    """The pairs as rows of an encoder's tables."""
    parts = take_apart(encoder).parts
    vocabularies = {part.unit_kind: part.vocabulary for part in parts}
    readers = {name: lookup(vocabulary) for name, vocabulary in vocabularies.items()}
    columns = [(pa.array(sides[0]), pa.array(sides[1]))]
    return write_text(columns, folder, readers)


def dense_steps(
    encode: Callable[[MegaBatch, np.ndarray], torch.Tensor],
    weights: list[torch.Tensor],
    megas: Iterable[MegaBatch],
    config: TrainConfig,
    *,
    teacher: TeacherVectors | None = None,
    pull: Callable[[], torch.Tensor | float] = lambda: 0.0,
    frozen: Sequence[torch.Tensor] = (),
) -> list[float]:
    """The algorithm as the papers print it, dense from end to end: whole matrices in every step; the losses.

    `encode` gives the vectors of some sentences of a mega-batch, `pull` is what is added to the loss, and row 0 of
    `frozen` tables stays as it is.
    """
    optimizer = OPTIMIZERS[config.optimizer](weights, lr=config.learning_rate)
    losses = []
    for mega in megas:
        negatives = None
        if config.margin_weight:
            with torch.no_grad():
                vectors = encode(mega, np.arange(2 * mega.pairs))
            negatives = mine_negatives(vectors, mega.keys, one_sided=config.one_sided)
        for start in range(0, mega.pairs, config.batch_size):
            pairs = np.arange(start, min(start + config.batch_size, mega.pairs))
            roles = minibatch(pairs, mega.pairs, negatives, one_sided=config.one_sided)
            if not roles.size:
                continue
            loss = combined_loss(encode(mega, roles.ravel()), mega.keys, roles, config, teacher)
            losses.append(float(loss.detach()))
            optimizer.zero_grad()
            (loss + pull()).backward()
            for table in frozen:
                if table.grad is not None:
                    table.grad[0] = 0
            if config.clip:
                torch.nn.utils.clip_grad_norm_(weights, config.clip)
            optimizer.step()
    return losses


def write_text(columns, folder: Path, readers) -> PairStore:
    """Pairs of text as rows: cut into tokens, then looked up."""
    return write_pairs(write_tokens(columns, folder.with_name(f"{folder.name}-tokens")).batches(), folder, readers)


def keyed(column: Sentences) -> tuple[np.ndarray, pa.Array]:
    """Sentences with their keys, as `teach` takes them."""
    return keys_of(column)[0], pa.array(column)


def write_data(path: Path, sides: tuple[Sentences, Sentences], **options: object) -> Path:
    """A Parquet file of pairs, as `train` reads it."""
    pq.write_table(pa.table({"reference": sides[0], "translation": sides[1]}), path, **options)
    return path


def weights_of(folder: Path) -> dict[Path, bytes]:
    """The bytes of all weights in a folder."""
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*.safetensors")}


def small(model: str = "word", **settings: object) -> dict[str, object]:
    """Arguments of `train` for a small run."""
    return {"encoder": EncoderConfig(model=model, dimension=16), "config": TrainConfig(**{**SMALL, **settings})}
