"""The vectors of a teacher, a larger encoder whose cosines the student learns (not in the papers).

The teacher encodes every distinct sentence of the pairs once, before training.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch
from filelock import FileLock, Timeout
from torch.nn.functional import normalize

from paranmt_hf.corpus.reading.pairs import SIDES
from paranmt_hf.errors import InputError
from paranmt_hf.text.identity import distinct_texts, hash_texts
from paranmt_hf.training.checkpoint import read_checkpoint, write_checkpoint
from paranmt_hf.training.inputs import TrainingInputs
from paranmt_hf.training.teachers import Encode, Teacher
from paranmt_hf.training.text import TAUGHT
from paranmt_hf.training.token_store import read_keys
from paranmt_hf.util.files import write_bytes, writing
from paranmt_hf.util.progress import Progress

logger = logging.getLogger(__name__)
# Keys of sentences [sentence], uint64, and the sentences [sentence].
Keyed = tuple[np.ndarray, pa.Array | pa.ChunkedArray]
PART_SENTENCES = 10_000  # Number of sentences of a file of the cache, and the most that an interruption loses


class TeacherVectors:
    """The teacher's vectors of sentences, which are found by the keys of the sentences (see `sentence_keys`).

    Args:
        keys: Keys of the sentences [sentence], uint64.
        vectors: Vectors of the sentences [sentence, dimension], float16.

    Attributes:
        scale: Factor by which the distance of two vectors, 1 less their cosine, is multiplied: the similarity that a
            student learns is 1 less the product.
    """

    scale = 1.0

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

    def random_cosines(self, keys: np.ndarray) -> np.ndarray:
        """Return the cosines of 20,000 random pairs of sentences with these keys [sentence]: [pair]."""
        pairs = np.random.default_rng(1).integers(0, len(keys), (20_000, 2))
        sums = self.directions(keys[pairs]).astype(np.float64)
        # The squared length of the sum of two unit vectors is 2 plus twice their cosine.
        return np.square(sums).sum(axis=1) / 2 - 1

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
    """One or several teachers, whose similarities are the weighted mean of their rescaled cosines.

    The cosines of some teachers are all high: those of multilingual-e5-small are 0.8 for random sentences. Rescaled
    cosines are (c - m) / (1 - m), where m is the mean of random sentences, so they are 0 for these and 1 for copies.
    The weight of a teacher is proportional to 1 / s, where s is the standard deviation of its rescaled cosines.

    Args:
        teachers: The teachers.
        keys: Keys of sentences [sentence], of which random ones are compared.
    """

    def __init__(self, teachers: Sequence[TeacherVectors], keys: np.ndarray) -> None:
        self.teachers = teachers
        cosines = np.stack([teacher.random_cosines(keys) for teacher in teachers])
        # At most 0.99, in case nearly all sentences are copies.
        rests = 1 - cosines.mean(axis=1).clip(0, 0.99)
        weights = 1 / np.maximum(cosines.std(axis=1) / rests, 1e-6)
        shares = weights / weights.sum() / rests
        # The joined vectors are the unit vectors of the teachers, each times a root, concatenated. They have length 1,
        # and 1 - scale * (1 - cosine) is the weighted mean of the rescaled cosines.
        self.scale = float(shares.sum())
        self._roots = np.sqrt(shares / self.scale).tolist()

    def of(self, keys: np.ndarray) -> torch.Tensor:
        """See `TeacherVectors.of`; the dimensions of all teachers are next to one another."""
        pairs = zip(self.teachers, self._roots, strict=True)
        return torch.cat([root * normalize(teacher.of(keys), dim=1) for teacher, root in pairs], dim=1)

    @property
    def dimension(self) -> int:
        """Number of dimensions of a vector."""
        return sum(teacher.dimension for teacher in self.teachers)


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


def teach_all(inputs: TrainingInputs, tokens: Path, folder: Path) -> JoinedTeachers:
    """Encode every sentence of the pairs with the teachers of a run.

    Args:
        inputs: The inputs of the run.
        tokens: Folder of the keys of the sentences.
        folder: Folder of vectors, which gets a folder for each teacher and precision.
    """
    keys, config = read_keys(tokens), inputs.config
    options = {"device": config.device, "precision": config.precision}
    return joined_vectors(inputs.teachers, lambda: _keyed(inputs, keys), folder, keys=keys, **options)


def teacher_vectors(
    teacher: Teacher, sentences: Iterable[Keyed], folder: Path, *, device: str | None, precision: str
) -> TeacherVectors:
    """Encode sentences with a teacher; see `teach`, and `Teacher.open` for `device` and `precision`.

    Args:
        teacher: The teacher.
        sentences: Columns of sentences with their keys.
        folder: Folder of vectors, which gets a folder for this teacher and precision.
        device: The device of a model.
        precision: The precision that is asked for.
    """
    encode, used = teacher.open(device, precision)
    identity = f"{teacher.identity} in {used}"
    of_teacher = folder / hashlib.sha256(identity.encode()).hexdigest()[:16]
    return teach(sentences, encode, of_teacher, name=identity)


def joined_vectors(
    teachers: Sequence[Teacher],
    columns: Callable[[], Iterable[Keyed]],
    folder: Path,
    *,
    keys: np.ndarray,
    **options: Any,
) -> JoinedTeachers:
    """Encode sentences with teachers; see `teacher_vectors` and `JoinedTeachers`.

    Args:
        teachers: The teachers.
        columns: Returns columns of sentences with their keys; each teacher reads them once.
        folder: Folder of vectors.
        keys: Keys of the sentences that are trained on, whose cosines decide the weights.
        options: `device` and `precision`.
    """
    taught = [teacher_vectors(teacher, columns(), folder, **options) for teacher in teachers]
    return JoinedTeachers(taught, np.unique(keys))


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
