"""Encoding of the sentences of requests, and the limits of requests."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from paranmt_hf.encoders.static_average import normalize
from paranmt_hf.encoders.static_encoder import StaticEncoder
from paranmt_hf.errors import refuse
from paranmt_hf.hub.repository import locate
from paranmt_hf.util.machine import visible_cores
from paranmt_hf.util.markers import Count
from paranmt_hf.util.settings import Settings

if TYPE_CHECKING:
    from paranmt_hf.meaning.judgement import Meaning


@dataclass(frozen=True)
class ServeLimits(Settings):
    """Largest sizes of requests, and limits of connections.

    Attributes:
        body: Bytes of a request.
        sentences: Sentences in a request.
        characters: Characters in a sentence.
        connections: Open connections of each process; if there are more, those that have sent nothing for the longest
            time are closed.
        seconds: Seconds for the head of a request, for its body (and one more for each 10,000 bytes), and between two
            requests of a connection.
    """

    body: Count = 16 * 2**20
    sentences: Count = 2048
    characters: Count = 100_000
    connections: Count = 500
    seconds: Count = 30


class SentenceVectors:
    """An encoder of the sentences of requests: a `StaticEncoder` or a `SentenceTransformer`.

    A `StaticEncoder` encodes each request by itself, because a batch of several would take as long. Another encoder
    works in one thread; while it encodes a batch, the sentences of all new requests are collected for its next batch.

    Args:
        encoder: The encoder.
        revision: Its commit on the Hub, or the checksum of its folder.
        workers: Number of processes that answer, which have the cores of this machine together.
    """

    def __init__(
        self,
        encoder: Any,  # noqa: ANN401 - the type of one needs torch
        revision: str = "",
        *,
        workers: int = 1,
    ) -> None:
        self.encoder, self.revision = encoder, revision
        self.is_average = isinstance(encoder, StaticEncoder)
        self.dimension: int = encoder.dimension if self.is_average else encoder.get_embedding_dimension()
        self._options = {} if self.is_average else {"show_progress_bar": False}
        self._pool = ThreadPoolExecutor(max(1, visible_cores() // workers) if self.is_average else 1)
        self._waiting: list[tuple[list[str], asyncio.Future[np.ndarray]]] = []
        self._working: asyncio.Task[None] | None = None

    @classmethod
    def load(cls, name: str, *, workers: int = 1) -> SentenceVectors:
        """Load an encoder by its folder or Hub id; an average is loaded without torch.

        Raises:
            InputError: Several processes are to answer, and it is not an averaging encoder.
        """
        model = locate(name)
        encoder: Any = StaticEncoder.read(model)
        if encoder is None:
            refuse(
                workers > 1,
                f"{model.name} is not an averaging encoder; others are served by one process, which uses all cores",
                option="workers",
            )
            from paranmt_hf.encoders.loading import load

            encoder = load(model)
        return cls(encoder, model.revision, workers=workers)

    def warm_up(self) -> None:
        """Load everything that the first requests would wait for, such as compiled loops."""
        if self.is_average:
            self.encoder.warm_up()
        else:
            self._encode(["a b"])

    async def encode(
        self, sentences: list[str], *, normalized: bool = True, dimensions: int | None = None
    ) -> np.ndarray:
        """Encode sentences, as the method `encode` of the encoder does.

        Args:
            sentences: The sentences.
            normalized: Whether to scale the vectors to length 1.
            dimensions: Number of dimensions to keep, the first ones; None for all.

        Returns:
            Vectors [sentence, dimension], float32.
        """
        if not self.is_average:
            found: asyncio.Future[np.ndarray] = asyncio.get_running_loop().create_future()
            self._waiting.append((sentences, found))
            self._working = self._working or asyncio.create_task(self._work())
            # Without `shield`, a request that ends early would end the other requests of its batch.
            vectors = await asyncio.shield(found)
        elif sum(map(len, sentences)) <= 4096:
            # So little text takes less time than handing it to another thread.
            vectors = self._encode(sentences)
        else:
            vectors = await asyncio.get_running_loop().run_in_executor(self._pool, self._encode, sentences)
        vectors = vectors[:, :dimensions]
        return np.ascontiguousarray(normalize(vectors) if normalized else vectors)

    async def same_meaning(
        self, first: list[str], second: list[str], threshold: float, language: str
    ) -> list[Meaning]:
        """Decide whether pairs of sentences mean the same, as the method of the encoder does."""
        judge = partial(self.encoder.same_meaning, first, second, threshold=threshold, language=language)
        return await asyncio.get_running_loop().run_in_executor(self._pool, judge)

    def _encode(self, sentences: list[str]) -> np.ndarray:
        return np.asarray(self.encoder.encode(sentences, **self._options), np.float32)

    async def _work(self) -> None:
        """Encode the sentences that wait, batch by batch, until none wait."""
        while self._waiting:
            batch, self._waiting = self._waiting, []
            texts = [sentence for sentences, _ in batch for sentence in sentences]
            ends = np.cumsum([len(sentences) for sentences, _ in batch])
            try:
                vectors = await asyncio.get_running_loop().run_in_executor(self._pool, self._encode, texts)
            except Exception as error:
                for _, found in batch:
                    found.set_exception(error)
                continue
            for (_, found), part in zip(batch, np.split(vectors, ends[:-1]), strict=True):
                found.set_result(part)
        self._working = None
