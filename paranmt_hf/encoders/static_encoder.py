"""An encoder for averaging models that needs numpy alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from paranmt_hf.encoders.calibrated import WithCalibration
from paranmt_hf.encoders.loading import read_average_tables
from paranmt_hf.encoders.model_folder import copy_model, model_settings
from paranmt_hf.encoders.static_average import StaticAverage, normalize
from paranmt_hf.encoders.vocabulary import AverageTable
from paranmt_hf.errors import InputError
from paranmt_hf.hub.repository import Model, locate
from paranmt_hf.text.text_lists import list_of_texts
from paranmt_hf.util.machine import give_back_memory

if TYPE_CHECKING:
    from paranmt_hf.hub.push import PushOptions
    from paranmt_hf.text.tokens import TokenTable


class StaticEncoder(WithCalibration):
    """Encodes sentences with numpy alone: WORD, TRIGRAM, their combinations, and Sent2Vec.

    The vectors equal those of `load` to the last bit. Nothing here imports torch, so the first vector of a new process
    takes 0.3 seconds. It is thread-safe, and cheap to copy to other processes.

    Args:
        tables: The tables of the encoder.
        mode: How the means of several tables are combined: `add` or `concatenate`.
        settings: Settings of the whole encoder; see `model_folder.SETTINGS`.
        source: The model that it was loaded from; None if it was not loaded.
    """

    def __init__(
        self,
        tables: Sequence[AverageTable],
        mode: str = "concatenate",
        settings: dict[str, Any] | None = None,
        source: Model | None = None,
    ) -> None:
        self.settings, self.source = settings or {}, source
        self._average = StaticAverage(tables, mode)

    @classmethod
    def from_pretrained(cls, name: str | Path | Model | None = None, *, revision: str | None = None) -> StaticEncoder:
        """Load an averaging encoder.

        Args:
            name: Folder, Hub id, or what `locate` found. The package carries `small` (or None), which is English,
                `base`, the larger one, `de`, `fr` and `es`, and `multilingual`.
            revision: Branch, tag or commit on the Hub.

        Raises:
            InputError: It is another kind of encoder.
        """
        model = locate(name, revision)
        found = cls.read(model)
        if found is None:
            raise InputError(
                f"{model.name} is not an averaging encoder (WORD, TRIGRAM, their combinations, Sent2Vec), which is "
                "what StaticEncoder reads; load it with paranmt_hf.load"
            )
        return found

    @classmethod
    def read(cls, model: Model) -> StaticEncoder | None:
        """Read an averaging encoder from its folder; None if it is another kind of encoder."""
        found = read_average_tables(model)
        # Reading a vocabulary takes some times the memory that it has afterwards.
        give_back_memory()
        return None if found is None else cls(*found, model_settings(model), model)

    @property
    def dimension(self) -> int:
        """Number of dimensions of a sentence vector."""
        return len(range(self._average.dimension)[: self.settings.get("truncate_dim")])

    def encode(
        self,
        sentences: str | Iterable[str],
        *,
        prompt_name: str | None = None,
        prompt: str | None = None,
        normalize_embeddings: bool = False,
        truncate_dim: int | None = None,
        threads: int = 1,
        batch_size: int | None = None,
        show_progress_bar: bool | None = None,
    ) -> np.ndarray:
        """Encode sentences.

        Args:
            sentences: The sentences, or a single one; also a generator, or a column of pandas, polars, pyarrow or
                datasets. Halves of surrogate pairs are read as U+FFFD.
            prompt_name: Name of a prompt of the model to put before each sentence; the model's default one if left
                out.
            prompt: Text to put before each sentence, instead of a prompt of the model.
            normalize_embeddings: Whether to give vectors a length of 1.
            truncate_dim: Number of dimensions to keep; that of the model's settings if left out, or else all.
            threads: Number of threads, for more than some thousand sentences.
            batch_size: Has no effect, because sentences need no batches; for programs that pass it to any encoder.
            show_progress_bar: Has no effect; for programs that pass it to any encoder.

        Returns:
            Vectors [sentence, dimension], float32; [dimension] for a single sentence.
        """
        texts = list_of_texts([sentences] if isinstance(sentences, str) else sentences, "sentences")
        if prompt is None:
            prompt = self._named_prompt(prompt_name)
        if prompt:
            texts = [prompt + text for text in texts]
        vectors = self._truncated(self._average.encode(texts, threads=threads), truncate_dim)
        if normalize_embeddings:
            vectors = normalize(vectors)
        return vectors[0] if isinstance(sentences, str) else vectors

    def encode_tokens(self, tokens: TokenTable) -> np.ndarray:
        """Encode sentences given as word tokens into vectors [sentence, dimension], float32."""
        return self._truncated(self._average.encode_tokens(tokens), None)

    def known_tokens(self, sentences: Iterable[str]) -> np.ndarray:
        """Count the units of each sentence that have their own row [sentence], int64."""
        return self._average.known_tokens(list_of_texts(sentences, "sentences"))

    def warm_up(self) -> None:
        """Load the compiled loops, which takes a second; otherwise the first call with many sentences does it."""
        self._average.warm_up()

    @property
    def splits_words(self) -> bool:
        """Whether its words are those of `text/definitions.py`, so that `encode_tokens` can be used."""
        return self._average.tables[0].cut == "words"

    def similarity(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """Compute the similarity of each vector of `first` to each of `second`, by default the cosine.

        The settings of the model may name another function.

        Args:
            first: Vectors [first, dimension], or a single one [dimension].
            second: Vectors [second, dimension], or a single one [dimension].

        Returns:
            Similarities [first, second]; if the function is a distance, its negative.
        """
        rows, columns = np.atleast_2d(first), np.atleast_2d(second)
        name = self.settings.get("similarity_fn_name", "cosine")
        if name in ("euclidean", "manhattan"):
            order = 2 if name == "euclidean" else 1
            return np.array([-np.linalg.norm(columns - row, ord=order, axis=1) for row in rows], np.float32)
        if name == "cosine":
            rows, columns = normalize(rows.copy()), normalize(columns.copy())
        return rows @ columns.T

    def save_pretrained(self, folder: str | Path) -> None:
        """Write the model into a folder: its original files, and the code of our modules that other libraries need.

        Raises:
            InputError: The encoder was not read from a folder.
        """
        if self.source is None:
            raise InputError("this encoder was not read from a folder, so there are no files to save")
        copy_model(self.source, Path(folder))

    def push_to_hub(self, repo_id: str, **options: Unpack[PushOptions]) -> str:
        """Publish the encoder with its card, as `SentenceEncoder.push_to_hub` does; this needs torch.

        Args:
            repo_id: Where to: ORGANISATION/NAME or USER/NAME.
            options: Those of `PushOptions`.

        Returns:
            The address of the commit on the Hub.
        """
        from paranmt_hf.encoders.loading import load

        if self.source is None:
            raise InputError("this encoder was not read from a folder, so there are no files to publish")
        return load(self.source, device="cpu").push_to_hub(repo_id, **options)

    def __reduce__(self) -> tuple[type[StaticEncoder], tuple[Any, ...]]:
        # Copies and other processes start with empty caches.
        return StaticEncoder, (self._average.tables, self._average.mode, self.settings, self.source)

    def _named_prompt(self, name: str | None) -> str:
        """Return the text of a prompt of the model by its name; None stands for the default prompt, if any."""
        prompts = {"query": "", "document": "", **self.settings.get("prompts", {})}
        name = self.settings.get("default_prompt_name") if name is None else name
        if name is not None and name not in prompts:
            raise InputError(f"prompt_name must be one of {', '.join(prompts)}, was {name!r}")
        return prompts.get(name, "")

    def _truncated(self, vectors: np.ndarray, dimensions: int | None) -> np.ndarray:
        """Return the first dimensions of vectors [sentence, dimension]; None takes the number of the settings."""
        cut = self.settings.get("truncate_dim") if dimensions is None else dimensions
        return vectors if cut is None else vectors[:, :cut]
