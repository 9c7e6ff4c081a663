"""Our encoders as a `SentenceTransformer` whose `encode` is fast."""

from __future__ import annotations

import hashlib
import json
import os
import zlib
from collections.abc import Callable, Mapping
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal, Unpack

import numpy as np
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import WordEmbeddings
from torch import nn

from paranmt_hf.encoders.calibrated import WithCalibration
from paranmt_hf.encoders.card_data import REVISION_DIGITS, EncoderCardData
from paranmt_hf.encoders.composition import Composition, combined, composition_of
from paranmt_hf.encoders.model_folder import SETTINGS
from paranmt_hf.encoders.modules.paranmt_averages import AverageEmbedding
from paranmt_hf.encoders.modules.paranmt_tables import PRECISIONS
from paranmt_hf.encoders.pushing import push_encoder
from paranmt_hf.encoders.saving import CLASSES, add_code, from_stock, saved_modules
from paranmt_hf.encoders.static_average import StaticAverage, normalize
from paranmt_hf.encoders.vocabulary import AverageTable
from paranmt_hf.errors import InputError, refuse
from paranmt_hf.hub.push import CardOptions, with_datasets
from paranmt_hf.hub.repository import Model
from paranmt_hf.text.text_lists import list_of_texts
from paranmt_hf.util.typed import read

# Options of `encode` that `_encode_fast` accepts with any value.
FAST_OPTIONS = {
    "prompt",
    "prompt_name",
    "batch_size",
    "show_progress_bar",
    "convert_to_numpy",
    "convert_to_tensor",
    "normalize_embeddings",
    "truncate_dim",
    "task",
}
# Options that it accepts with this value only.
USUAL_VALUES = {
    "output_value": "sentence_embedding",
    "precision": "float32",
    "device": None,
    "pool": None,
    "chunk_size": None,
}
CACHED = ("average", "_layered")  # Cached properties that hold weights or modules

# The threads of OpenMP do not survive a fork, and torch would wait for them: in the child process an LSTM would never
# return.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=partial(torch.set_num_threads, 1))


class SentenceEncoder(WithCalibration, SentenceTransformer):
    """A `SentenceTransformer` that `paranmt_hf.load` returns, with a fast `encode` for averaging encoders on the CPU.

    It has all that a `SentenceTransformer` has, and in addition:

    - `calibration` and `probability`: the probability that two sentences are paraphrases;
    - `stored_as`: the same encoder with rows of fewer bits;
    - `revision`: the commit on the Hub, or a checksum;
    - `push_to_hub`: publishes it with a full card.

    Attributes:
        source: The model that `load` found; None if it was made otherwise.
    """

    model_card_data_class = EncoderCardData
    _loaded: tuple[int, dict[str, Any]] | None = None  # Checksum of the weights, and settings, when it was loaded

    def encode(self, inputs: Any = None, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        """Encode sentences; arguments and result are those of `SentenceTransformer.encode`, vectors within 1e-6.

        Sentences may also be a generator, or a column of pandas, polars, pyarrow or datasets. Halves of surrogate
        pairs are read as U+FFFD.

        On the CPU an averaging encoder ignores `batch_size`: it averages thousands of sentences at once, on as many
        threads as torch uses. Its vectors are float32, [0, dimension] if there are no sentences.
        """
        if inputs is None and "sentences" in kwargs:
            # The argument's name in older releases.
            inputs = kwargs.pop("sentences")
        single = isinstance(inputs, str)
        if self.modalities == ["text"]:
            texts = list_of_texts([inputs] if single else inputs, "sentences")
            inputs = texts[0] if single else texts
            average = self.average
            unusual = {name for name in kwargs if name not in USUAL_VALUES or kwargs[name] != USUAL_VALUES[name]}
            if average is not None and not args and unusual <= FAST_OPTIONS and kwargs.get("batch_size", 1) > 0:
                return self._encode_fast(average, texts, single, **kwargs)
        return super().encode(inputs, *args, **kwargs)

    def preprocess(self, inputs: Any, prompt: str | None = None, **kwargs: Any) -> dict[str, Any]:  # noqa: ANN401
        """Preprocess texts; arguments and result are those of `SentenceTransformer.preprocess`."""
        if isinstance(self[0], WordEmbeddings):
            # The stock module would pass `task` to a tokenizer that does not accept it, so `encode_query` would fail.
            kwargs.pop("task", None)
        return dict(super().preprocess(inputs, prompt=prompt, **kwargs))

    @property
    def composition(self) -> Composition | None:
        """The parts of the encoder and how they are combined; None if it is not an encoder of this package."""
        return composition_of(self)

    @cached_property
    def average(self) -> StaticAverage | None:
        """The object that averages rows on the CPU, sharing the weights; None on other devices or without averages.

        If layers follow the averages of several parts, it concatenates these, so that each part's layers can read its
        own.
        """
        composition = self.composition
        if composition is None or not composition.is_bag or self.device.type != "cpu":
            return None
        tables = []
        for part in composition.parts:
            rows = part.table.weight.detach().float().numpy()
            tables.append(AverageTable(part.vocabulary, rows, part.cut))
        return StaticAverage(tables, "concatenate" if self._layered else composition.mode)

    @cached_property
    def _layered(self) -> Composition | None:
        """The composition of an encoder with layers behind its averages; None if the averages are its vectors."""
        composition = self.composition
        return None if composition is None or composition.only_tables else composition

    def forget_average(self) -> None:
        """Discard the cached average; call it after the tensors of the weights were replaced by others."""
        for name in CACHED:
            self.__dict__.pop(name, None)

    def tensors_checksum(self) -> int:
        """Compute a checksum of the weights in memory, in a fraction of the time of a cryptographic one."""
        found = 0
        for weight in self.parameters():
            values = weight.detach().cpu().flatten().view(torch.uint8).numpy()
            # Each 1024 bytes are added up to 8, and the CRC is computed from these sums, which is faster.
            whole = len(values) // 1024 * 1024
            sums = values[:whole].view(np.uint64).reshape(-1, 1024 // 8).sum(axis=1)
            found = zlib.crc32(values[whole:], zlib.crc32(sums, found))
        return found

    @property
    def settings(self) -> dict[str, Any]:
        """The settings of the whole encoder (see `SETTINGS`) with their current values, by name."""
        return {name: getattr(self, name) for name in SETTINGS}

    def remember_source(self, source: Model) -> None:
        """Note the model that the encoder was loaded from, and its weights and settings at that time."""
        self.source = source
        self._loaded = (self.tensors_checksum(), self.settings)

    @property
    def revision(self) -> str:
        """Revision of the encoder as it is now.

        That is the revision of its source, unless the encoder has none or was changed since; then it is a checksum.
        """
        if self.source is not None and self._loaded == (self.tensors_checksum(), self.settings):
            return self.source.revision.removeprefix("sha256:")[:REVISION_DIGITS]
        digest = hashlib.sha256(json.dumps([repr(self), self.settings], default=str).encode())
        composition = self.composition
        for part in composition.parts if composition is not None else []:
            digest.update(json.dumps(part.vocabulary.units).encode())
        for weight in self.parameters():
            digest.update(weight.detach().cpu().flatten().view(torch.uint8).numpy())
        return digest.hexdigest()[:REVISION_DIGITS]

    def _is_as_loaded(self) -> bool:
        return self._loaded is not None and self.tensors_checksum() == self._loaded[0]

    def stored_as(self, precision: str) -> SentenceEncoder:
        """Return a copy of an averaging encoder whose rows are rounded, as `save_pretrained` will write them.

        If they are trained afterwards, they are written as float32.

        Args:
            precision: float32, float16, int8 or int4.

        Raises:
            InputError: It is another kind of encoder, or int4 and the dimension is odd.
        """
        composition = self.composition
        if composition is None or not composition.is_bag:
            raise InputError(
                "only averaging encoders (WORD, TRIGRAM, their combinations, Sent2Vec) are stored in other precisions"
            )
        precision = read(Literal[PRECISIONS], precision, "precision")
        chains: list[list[nn.Module]] = []
        for part in composition.parts:
            table = part.modules[0]
            assert isinstance(table, AverageEmbedding)
            try:
                chains.append([table.stored_as(precision), *part.modules[1:]])
            except ValueError as error:
                raise InputError(f"{error}; choose another `precision`", option="precision") from None
        return SentenceEncoder(modules=combined(chains, composition.mode), device="cpu", **self.settings)

    @classmethod
    def _load_with_module_classes(
        cls, model_name_or_path: str, module_classes: Mapping[str, type[nn.Module]], **kwargs: Any
    ) -> SentenceEncoder:
        """Load a checkpoint; the trainers of sentence-transformers call this to continue, and for the best one."""
        found = super()._load_with_module_classes(model_name_or_path, {**module_classes, **CLASSES}, **kwargs)
        # Convert as `load` does, so that the weights have the same names as in an encoder that `load` returns.
        return cls(modules=from_stock(found), device="cpu")

    def save(self, path: str, *args: Any, **kwargs: Any) -> None:
        """Save as `SentenceTransformer.save` does: stock modules if possible, otherwise with the code of ours."""
        with saved_modules(self):
            super().save(path, *args, **kwargs)
        add_code(Path(path))

    def push_to_hub(
        self,
        repo_id: str,
        token: str | bool | None = None,
        private: bool | None = None,
        safe_serialization: bool = True,
        commit_message: str | None = None,
        local_model_path: str | None = None,
        exist_ok: bool = False,
        replace_model_card: bool = False,
        train_datasets: list[str] | None = None,
        revision: str | None = None,
        create_pr: bool = False,
        **options: Unpack[CardOptions],
    ) -> str:
        """Publish the encoder with a full card, as `paranmt publish` does.

        The card is that of the folder which the encoder was loaded from. If that has no record, or the encoder was
        changed since, the card says what is known. An encoder that is not of this package is pushed by
        sentence-transformers.

        Args:
            repo_id: Where to: ORGANISATION/NAME or USER/NAME.
            token: Token that may write; that of the login or of HF_TOKEN if left out.
            private: Make a new repository private.
            safe_serialization: Must be true: weights are safetensors only.
            commit_message: Message of the commit.
            local_model_path: Not supported; `paranmt_hf.publish` publishes a folder.
            exist_ok: Makes no difference: a repository that exists gets a new version, and keeps those before.
            replace_model_card: Makes no difference: the card is always that of this encoder.
            train_datasets: Ids of datasets on the Hub that it was trained on; the card names them.
            revision: Branch that gets the files.
            create_pr: Not supported; `revision` names a branch instead.
            options: `license`, `about`, `results` and `tag`, as for `paranmt_hf.publish`. A licence is needed, unless
                the record states one.

        Returns:
            The address of the commit on the Hub.
        """
        if self.composition is None:
            for name in options:
                raise InputError(f"this encoder is not of this package, so it has no `{name}`", option=name)
            return str(
                super().push_to_hub(
                    repo_id,
                    token=token,
                    private=private,
                    safe_serialization=safe_serialization,
                    commit_message=commit_message,
                    local_model_path=local_model_path,
                    exist_ok=exist_ok,
                    replace_model_card=replace_model_card,
                    train_datasets=train_datasets,
                    revision=revision,
                    create_pr=create_pr,
                    **options,
                )
            )
        refuse(not safe_serialization, "weights are published as safetensors only", option="safe_serialization")
        refuse(
            local_model_path is not None,
            "`local_model_path` is not supported; paranmt_hf.publish(folder, name) publishes a folder",
            option="local_model_path",
        )
        if train_datasets:
            options["about"] = with_datasets(options.get("about"), train_datasets)
        return push_encoder(
            self,
            self.source,
            repo_id,
            token=token,
            private=private,
            commit_message=commit_message,
            revision=revision,
            create_pr=create_pr,
            **options,
        )

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in CACHED}

    def _apply(self, *args: Any, **kwargs: Any) -> SentenceEncoder:
        self.forget_average()
        return super()._apply(*args, **kwargs)

    def train(self, mode: bool = True) -> SentenceEncoder:
        """Switch between training and evaluation mode; the cached average is discarded, because weights may change."""
        self.forget_average()
        return super().train(mode)

    @property
    def known_tokens(self) -> Callable[[list[str]], np.ndarray]:
        """Function that counts each sentence's units with a row; only averaging encoders on the CPU have it."""
        if self.average is None:
            raise AttributeError("only averaging encoders count their known tokens")
        return self.average.known_tokens

    def _encode_fast(
        self,
        average: StaticAverage,
        sentences: list[str],
        single: bool,
        *,
        prompt: str | None = None,
        prompt_name: str | None = None,
        convert_to_numpy: bool = True,
        convert_to_tensor: bool = False,
        normalize_embeddings: bool = False,
        truncate_dim: int | None = None,
        **unused: Any,
    ) -> Any:  # noqa: ANN401
        """Encode sentences with `average`, and the layers behind it; options as in `SentenceTransformer.encode`."""
        prompt = self._resolve_prompt(prompt, prompt_name)
        if prompt:
            sentences = [prompt + sentence for sentence in sentences]
        vectors = average.encode(sentences, threads=torch.get_num_threads() if len(sentences) > 1 else 1)
        if self._layered is not None:
            vectors = _through_layers(self._layered, vectors)
        if truncate_dim is None:
            truncate_dim = self.truncate_dim
        if truncate_dim is not None:
            vectors = np.ascontiguousarray(vectors[:, :truncate_dim])
        if normalize_embeddings:
            vectors = normalize(vectors)
        if convert_to_numpy and not convert_to_tensor:
            return vectors[0] if single else vectors
        tensors = torch.from_numpy(vectors)
        if single:
            return tensors[0]
        return tensors if convert_to_tensor else list(tensors)


def _through_layers(composition: Composition, vectors: np.ndarray) -> np.ndarray:
    """Apply the layers of each part to its average, and combine the results.

    Args:
        composition: The parts of the encoder.
        vectors: Averages of the parts side by side [sentence, sum of widths].

    Returns:
        Sentence vectors [sentence, dimension].
    """
    found = []
    begin = 0
    with torch.no_grad():
        for part in composition.parts:
            end = begin + part.table.weight.shape[1]
            features = {"sentence_embedding": torch.from_numpy(vectors[:, begin:end])}
            for module in part.modules[1:]:
                features = module(features)
            found.append(features["sentence_embedding"])
            begin = end
        if composition.mode == "add":
            return torch.stack(found).sum(dim=0).numpy()
        return torch.cat(found, dim=1).numpy()
