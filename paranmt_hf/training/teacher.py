"""The vectors of a teacher, a larger encoder whose cosines the student learns (not in the papers).

The teacher encodes every distinct sentence of the pairs once, before training.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch
from filelock import FileLock, Timeout
from torch.nn.functional import normalize

from paranmt_hf.corpus.reading.pairs import SIDES
from paranmt_hf.encoders.loading import load
from paranmt_hf.errors import InputError
from paranmt_hf.hub.repository import Model
from paranmt_hf.text.identity import distinct_texts, hash_texts
from paranmt_hf.training.checkpoint import read_checkpoint, write_checkpoint
from paranmt_hf.training.inputs import TrainingInputs
from paranmt_hf.training.text import TAUGHT
from paranmt_hf.training.token_store import read_keys
from paranmt_hf.util.files import write_bytes, writing
from paranmt_hf.util.machine import torch_threads
from paranmt_hf.util.progress import Progress

logger = logging.getLogger(__name__)
Encode = Callable[[list[str]], np.ndarray]
# Keys of sentences [sentence], uint64, and the sentences [sentence].
Keyed = tuple[np.ndarray, pa.Array | pa.ChunkedArray]
PART_SENTENCES = 10_000  # Number of sentences of a file of the cache, and the most that an interruption loses


class TeacherVectors:
    """The teacher's vectors of sentences, which are found by the keys of the sentences (see `sentence_keys`).

    Args:
        keys: Keys of the sentences [sentence], uint64.
        vectors: Vectors of the sentences [sentence, dimension], float16.
    """

    def __init__(self, keys: np.ndarray, vectors: np.ndarray) -> None:
        self._order = np.argsort(keys)
        self._keys, self._vectors = keys[self._order], vectors

    def of(self, keys: np.ndarray) -> torch.Tensor:
        """Return the vectors of sentences, given by their keys [sentence]: [sentence, dimension], float32.

        Raises:
            InputError: The teacher has not encoded one of them.
        """
        return torch.from_numpy(self._vectors[self._indices(keys)]).float()

    @property
    def dimension(self) -> int:
        """Number of dimensions of a vector."""
        return self._vectors.shape[1]

    def directions(self, keys: np.ndarray) -> np.ndarray:
        """Return the sum of the normalised vectors of the sentences of each item [item, dimension], float16.

        Args:
            keys: Keys of the sentences of each item [item, sentence].
        """
        sums = np.empty((len(keys), self.dimension), np.float16)
        for start in range(0, len(keys), PART_SENTENCES):
            part = slice(start, start + PART_SENTENCES)
            sums[part] = torch.stack([normalize(self.of(side), dim=1) for side in keys[part].T]).sum(dim=0).numpy()
        return sums

    def spread(self, keys: np.ndarray) -> float:
        """Return the standard deviation of cosines, of 20,000 random pairs of sentences with these keys [sentence]."""
        pairs = np.random.default_rng(1).integers(0, len(keys), (20_000, 2))
        sums = self.directions(keys[pairs]).astype(np.float64)
        # The squared length of the sum of two unit vectors is 2 plus twice their cosine.
        return float((np.square(sums).sum(axis=1) / 2 - 1).std())

    def _indices(self, keys: np.ndarray) -> np.ndarray:
        """Return the positions of the vectors of sentences, given by their keys."""
        indices = np.searchsorted(self._keys, keys).clip(max=len(self._keys) - 1)
        if not np.array_equal(self._keys[indices], keys):
            raise InputError(
                "the teacher has not encoded one of these sentences; delete the folders of pairs and of its vectors, "
                "and run again"
            )
        return self._order[indices]


class JoinedTeachers(TeacherVectors):
    """Several teachers as one, whose cosine is the weighted mean of theirs.

    The weight of a teacher is proportional to 1 / s, where s is the standard deviation of its cosines among some
    sentences.

    Args:
        teachers: The teachers.
        keys: Keys of these sentences [sentence].
    """

    def __init__(self, teachers: list[TeacherVectors], keys: np.ndarray) -> None:
        self._teachers = teachers
        weights = np.array([1 / max(teacher.spread(keys), 1e-6) for teacher in teachers])
        # The vectors are the unit vectors of the teachers, each times the root of its weight, concatenated. They have
        # length 1, and the product of two of them is the weighted mean of the cosines.
        self._roots = np.sqrt(weights / weights.sum()).tolist()

    def of(self, keys: np.ndarray) -> torch.Tensor:
        """See `TeacherVectors.of`; the dimensions of all teachers are next to one another."""
        pairs = zip(self._teachers, self._roots, strict=True)
        return torch.cat([root * normalize(teacher.of(keys), dim=1) for teacher, root in pairs], dim=1)

    @property
    def dimension(self) -> int:
        """Number of dimensions of a vector."""
        return sum(teacher.dimension for teacher in self._teachers)


def teach(
    sentences: Iterable[Keyed], encode: Encode, folder: Path, *, name: str = "", part: int = PART_SENTENCES
) -> TeacherVectors:
    """Encode with a teacher the sentences whose vectors are missing in a folder, which several processes may share.

    If sentences have the same key, the teacher reads the first of them. So the result does not depend on what the
    folder holds: vectors of an interrupted call, or of another corpus, are used again.

    Args:
        sentences: Columns of sentences with their keys.
        encode: Encodes texts into vectors [text, dimension].
        folder: The folder of vectors.
        name: Identity of the teacher, for people who look into the folder.
        part: Number of sentences of a file.
    """
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "teacher.txt").exists():
        write_bytes(folder / "teacher.txt", name.encode())
    keys, texts = distinct_texts(sentences)
    # Vectors are stored by a hash of the exact text, because the teacher reads texts as they are, with their case.
    codes, parts = hash_texts(texts), _Parts(folder)
    if len(parts.missing(codes)):
        with _locked(folder):
            # Another process may have encoded some of them in the meantime.
            parts.read()
            _encode_missing(codes, texts, encode, parts, part)
    return TeacherVectors(keys, parts.of(codes))


class _Parts:
    """The files of a folder of vectors; each holds hashes of texts (codes) and their vectors, and is written once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._parts: dict[str, tuple[np.ndarray, np.ndarray]] = {}
        self.read()

    def read(self) -> None:
        """Read the files that were written since the last call."""
        for path in sorted(self._folder.glob("part-*.safetensors")):
            if path.name not in self._parts and (found := read_checkpoint(path)) is not None:
                part = found[0]
                self._parts[path.name] = part["codes"].numpy().view(np.uint64), part["vectors"].numpy()

    def missing(self, codes: np.ndarray) -> np.ndarray:
        """Return the positions of the codes [text] that have no vector yet."""
        known = [part for part, _ in self._parts.values()]
        return np.flatnonzero(~np.isin(codes, np.concatenate([np.empty(0, np.uint64), *known])))

    def add(self, codes: np.ndarray, vectors: np.ndarray) -> None:
        """Write a file with these codes [text] and vectors [text, dimension], float16."""
        number = 1 + max((int(name[5:].split(".")[0]) for name in self._parts), default=-1)
        name = f"part-{number:05d}.safetensors"
        tensors = {"codes": torch.from_numpy(codes.view(np.int64)), "vectors": torch.from_numpy(vectors)}
        write_checkpoint(self._folder / name, tensors, {})
        self._parts[name] = codes, vectors

    def of(self, codes: np.ndarray) -> np.ndarray:
        """Return the vectors of codes [text], all of which are known: [text, dimension], float16."""
        dimension = next(iter(self._parts.values()))[1].shape[1]
        # Codes may repeat, because sentences may have the same translation.
        distinct, first, places = np.unique(codes, return_index=True, return_inverse=True)
        found = np.empty((len(codes), dimension), np.float16)
        # Files are read one after the other, because joining them would copy all vectors.
        for known, vectors in self._parts.values():
            wanted = np.searchsorted(distinct, known).clip(max=len(distinct) - 1)
            same = distinct[wanted] == known
            found[first[wanted[same]]] = vectors[same]
        copies = np.flatnonzero(first[places] != np.arange(len(codes)))
        found[copies] = found[first[places[copies]]]
        return found


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Keep other processes from encoding sentences into a folder, inside a `with` block; wait for one that does."""
    lock = FileLock(folder / "lock")
    with writing(folder):
        try:
            lock.acquire(blocking=False)
        except Timeout:
            logger.info(f"another process is encoding sentences into {folder}; waiting for it")
            lock.acquire()
    try:
        yield
    finally:
        lock.release()


def _encode_missing(codes: np.ndarray, texts: pa.Array, encode: Encode, parts: _Parts, size: int) -> None:
    """Encode the texts whose vectors are missing, and write them in files of `size` texts.

    Args:
        codes: Hashes of the texts [text].
        texts: The texts [text].
        encode: Encodes texts into vectors [text, dimension].
        parts: The files of the folder.
        size: Number of texts of a file.
    """
    missing = parts.missing(codes)
    done = len(codes) - len(missing)
    missing = missing[np.unique(codes[missing], return_index=True)[1]]
    # Sort by length, so that sentences of about the same length are encoded together.
    order = missing[np.lexsort((codes[missing], pc.utf8_length(texts).to_numpy()[missing]))]
    with Progress("teacher", done + len(missing), done=done) as progress:
        for start in range(0, len(order), size):
            chosen = order[start : start + size]
            vectors = np.asarray(encode(texts.take(pa.array(chosen)).to_pylist()))
            parts.add(codes[chosen], vectors.astype(np.float16))
            progress.advance_to(done + start + len(chosen))


def teach_all(inputs: TrainingInputs, tokens: Path, folder: Path) -> TeacherVectors:
    """Encode every sentence of the pairs with the teachers of a run.

    Args:
        inputs: The inputs of the run.
        tokens: Folder of the keys of the sentences.
        folder: Folder of vectors, which gets a folder for each teacher and precision.
    """
    keys = read_keys(tokens)
    config = inputs.config
    taught = [
        teacher_vectors(teacher, _keyed(inputs, keys), folder, device=config.device, precision=config.precision)
        for teacher in inputs.teachers
    ]
    return taught[0] if len(taught) == 1 else JoinedTeachers(taught, np.unique(keys))


def teacher_vectors(
    model: Model, sentences: Iterable[Keyed], folder: Path, *, device: str | None, precision: str
) -> TeacherVectors:
    """Encode sentences with a teacher; see `teach`.

    Args:
        model: The teacher.
        sentences: Columns of sentences with their keys.
        folder: Folder of vectors, which gets a folder for this teacher and precision.
        device: The device that encodes; None for the best one.
        precision: `bf16` for bfloat16, if it is fast on the device; otherwise float32.
    """
    teacher = load(model, device=device)
    in_bf16 = precision == "bf16" and fast_in_bf16(teacher.device.type)
    # On a CPU small batches are faster, because their states stay in its cache.
    size = 32 if teacher.device.type == "cpu" else 512

    def encode_batch(sentences: list[str]) -> np.ndarray:
        # Rounding to bfloat16 changes a teacher's cosines far less than the student can follow.
        with torch.autocast(teacher.device.type, torch.bfloat16, enabled=in_bf16):
            vectors = teacher.encode(sentences, batch_size=size, show_progress_bar=False, convert_to_tensor=True)
        return np.asarray(vectors.float().cpu().numpy())

    # The first call changes settings of the tokenizer. After it, several threads can use the tokenizer.
    encode_batch([""])

    def encode(sentences: list[str]) -> np.ndarray:
        with torch_threads(teacher.device.type) as pool:
            batches = (sentences[start : start + size] for start in range(0, len(sentences), size))
            return np.concatenate(list(pool.map(encode_batch, batches)))

    identity = f"{model.revision} in {'bfloat16' if in_bf16 else 'float32'}"
    of_teacher = folder / hashlib.sha256(identity.encode()).hexdigest()[:16]
    return teach(sentences, encode, of_teacher, name=identity)


def fast_in_bf16(device: str) -> bool:
    """Whether bfloat16 is faster than float32 on this kind of device, such as `cpu`."""
    known = torch.cpu.get_capabilities()
    return device != "cpu" or bool(known.get("avx512_bf16") or known.get("amx_bf16"))


def _keyed(inputs: TrainingInputs, keys: np.ndarray) -> Iterator[Keyed]:
    """Read the sentences that a teacher reads, or their translations, with the keys of the sentences.

    Args:
        inputs: The inputs of the run.
        keys: Keys of the sentences, computed with the tokens [pair, side].
    """
    start = 0
    for table in inputs.pairs.batches():
        for side, name in enumerate(SIDES):
            read = TAUGHT[name] if TAUGHT[name] in table.column_names else name
            yield keys[start : start + table.num_rows, side], table[read]
        start += table.num_rows
