"""Our encoders as a `SentenceTransformer` whose `encode` is fast."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sentence_transformers import SentenceTransformer

from paranmt_hf.encoders.composition import Composition, composition_of
from paranmt_hf.encoders.fast import FastPath
from paranmt_hf.encoders.saving import add_code, saved_modules
from paranmt_hf.encoders.usual_calls import is_plain, materialised
from paranmt_hf.hub.repository import Model

# Sentences that are cut and averaged at once: large enough that most chunks of a batch were seen before.
BATCH = 8192

# The threads of OpenMP do not survive a fork, and a process that was forked would wait for them for ever.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=partial(torch.set_num_threads, 1))


class SentenceEncoder(SentenceTransformer):
    """A SentenceTransformer whose `encode` takes the fast path where it can: where all parts average.

    Attributes:
        fast_dtype: Precision in which the fast path reads rows.
        source: Where `load` found it; None for one that was made otherwise.
    """

    fast_dtype = torch.float32
    source: Model | None = None

    def encode(self, inputs: Any = None, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        """Encode sentences; arguments and result as `SentenceTransformer.encode`, within 1e-6.

        On the CPU an averaging encoder cuts and averages thousands of sentences at once, whatever `batch_size` says,
        on as many threads as torch uses; one in a process that was forked. Its vectors are float32, and of no
        sentences [0, dimension].
        """
        if inputs is None and "sentences" in kwargs:
            # The argument's name in older releases.
            inputs = kwargs.pop("sentences")
        texts = materialised(inputs)
        if not args and self.device.type == "cpu" and is_plain(texts, kwargs) and self.fast_path is not None:
            return self._encode_fast(self.fast_path, texts, **kwargs)
        return super().encode(inputs, *args, **kwargs)

    @property
    def composition(self) -> Composition | None:
        """The encoder taken apart; None where it is not one of this package's encoders."""
        return composition_of(list(self))

    @property
    def fast_path(self) -> FastPath | None:
        """The fast way to encode on the CPU; only averaging encoders have one."""
        if "_fast" not in self.__dict__:
            composition, fast = self.composition, None
            if composition is not None and composition.is_bag and composition.cuts_alike:
                fast = FastPath(composition, self.fast_dtype)
            self.__dict__["_fast"] = fast
        return self.__dict__["_fast"]

    def forget_fast_path(self) -> None:
        """Read the weights anew at the next `encode`; needed where other tensors took their place."""
        self.__dict__.pop("_fast", None)

    def save(self, path: str, *args: Any, **kwargs: Any) -> None:
        """Save as `SentenceTransformer.save` does: stock modules where there are some, else with our code beside."""
        with saved_modules(self):
            super().save(path, *args, **kwargs)
        add_code(Path(path))

    def __getstate__(self) -> dict[str, Any]:
        # What is remembered is made anew in a copy or in another process.
        return {name: value for name, value in self.__dict__.items() if name != "_fast"}

    def _apply(self, *args: Any, **kwargs: Any) -> SentenceEncoder:
        self.forget_fast_path()
        return super()._apply(*args, **kwargs)

    def train(self, mode: bool = True) -> SentenceEncoder:
        """Switch between training and use; weights may change meanwhile."""
        self.forget_fast_path()
        return super().train(mode)

    @property
    def known_tokens(self) -> Callable[[list[str]], np.ndarray]:
        """Function that counts the units of each sentence that are known; only averaging encoders have it."""
        if self.fast_path is None:
            raise AttributeError("only averaging encoders count their known tokens")
        return self._known_tokens

    def _known_tokens(self, sentences: list[str]) -> np.ndarray:
        assert self.fast_path is not None
        with self.fast_path.lend() as worker:
            return worker.known_tokens(sentences)

    def _encode_fast(
        self,
        fast_path: FastPath,
        inputs: str | list[str],
        *,
        prompt: str | None = None,
        convert_to_numpy: bool = True,
        convert_to_tensor: bool = False,
        normalize_embeddings: bool = False,
        truncate_dim: int | None = None,
        **unused: Any,
    ) -> Any:  # noqa: ANN401
        single = isinstance(inputs, str)
        sentences = [inputs] if isinstance(inputs, str) else inputs
        prompt = self._resolve_prompt(prompt, unused.get("prompt_name"))
        cut = truncate_dim if truncate_dim is not None else self.truncate_dim
        # Of the last module: the dimension of the whole is what `truncate_dim` leaves of it.
        width = len(range(self[-1].get_embedding_dimension())[:cut])
        vectors = torch.empty(len(sentences), width)

        def fill(start: int) -> None:
            batch = sentences[start : start + BATCH]
            if prompt:
                batch = [prompt + sentence for sentence in batch]
            fast_path.encode(batch, vectors[start : start + BATCH], normalize=normalize_embeddings)

        starts = range(0, len(sentences), BATCH)
        threads = torch.get_num_threads()
        if min(threads, len(starts)) > 1:
            try:
                with ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,)) as pool:
                    list(pool.map(fill, starts))
            finally:
                # The initializer's call is also what threads to come begin with.
                torch.set_num_threads(threads)
        else:
            for start in starts:
                fill(start)
        if convert_to_tensor:
            return vectors[0] if single else vectors
        if convert_to_numpy:
            return vectors[0].numpy() if single else vectors.numpy()
        return vectors[0] if single else list(vectors)
