"""The vectors that a server answers with, and how large a request may be."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from paranmt_hf.encoders.static_average import normalize
from paranmt_hf.encoders.static_encoder import StaticEncoder
from paranmt_hf.hub.repository import locate
from paranmt_hf.util.machine import visible_cores
from paranmt_hf.util.markers import Count
from paranmt_hf.util.settings import Settings


@dataclass(frozen=True)
class ServeLimits(Settings):
    """Largest sizes of a request, and what clients may take of the server.

    Attributes:
        body: Bytes of a request.
        sentences: Sentences of a request.
        characters: Characters of a sentence.
        connections: Open connections; of more, those that send nothing for the longest time are closed.
        seconds: Time for the head of a request, for its body (and one second more for each 10,000 bytes), and between
            two requests of a connection.
    """

    body: Count = 16 * 2**20
    sentences: Count = 2048
    characters: Count = 100_000
    connections: Count = 500
    seconds: Count = 30


class SentenceVectors:
    """Encodes the sentences of requests, with a `StaticEncoder` or a `SentenceTransformer`.

    An average encodes each request by itself: together they would take as long. Another encoder works in one thread;
    the sentences of all requests that come meanwhile are its next batch.
    """

    def __init__(self, encoder: Any, revision: str = "") -> None:  # noqa: ANN401 - the type of one needs torch
        self.encoder, self.revision = encoder, revision
        self.is_average = isinstance(encoder, StaticEncoder)
        self.dimension: int = encoder.dimension if self.is_average else encoder.get_embedding_dimension()
        self._options = {} if self.is_average else {"show_progress_bar": False}
        self._pool = ThreadPoolExecutor(visible_cores() if self.is_average else 1)
        self._waiting: list[tuple[list[str], asyncio.Future[np.ndarray]]] = []
        self._working: asyncio.Task[None] | None = None

    @classmethod
    def load(cls, name: str) -> SentenceVectors:
        """Load an encoder by folder or Hub id; averages without torch."""
        model = locate(name)
        encoder: Any = StaticEncoder.read(model)
        if encoder is None:
            from paranmt_hf.encoders.loading import load

            encoder = load(model)
        return cls(encoder, model.revision)

    def warm_up(self) -> None:
        """Load what the first requests would wait for, such as compiled loops."""
        if self.is_average:
            self.encoder.warm_up()
        else:
            self._encode(["a b"])

    async def encode(
        self, sentences: list[str], *, normalized: bool = True, dimensions: int | None = None
    ) -> np.ndarray:
        """Encode sentences into vectors [sentence, dimension], float32, as the `encode` of the encoder does."""
        if not self.is_average:
            found: asyncio.Future[np.ndarray] = asyncio.get_running_loop().create_future()
            self._waiting.append((sentences, found))
            self._working = self._working or asyncio.create_task(self._work())
            # A request that ends early does not end those of its batch.
            vectors = await asyncio.shield(found)
        elif sum(map(len, sentences)) <= 4096:
            # So few characters take less time than the change to a thread.
            vectors = self._encode(sentences)
        else:
            vectors = await asyncio.get_running_loop().run_in_executor(self._pool, self._encode, sentences)
        vectors = vectors[:, :dimensions]
        return np.ascontiguousarray(normalize(vectors) if normalized else vectors)

    def _encode(self, sentences: list[str]) -> np.ndarray:
        return np.asarray(self.encoder.encode(sentences, **self._options), np.float32)

    async def _work(self) -> None:
        """Encode what waits, until nothing does."""
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
