"""Translating with transformers and torch: OPUS-MT (Marian), NLLB, M2M100 and other encoder-decoders."""

from __future__ import annotations

import torch

from paranmt_hf.corpus.translation.batching import BatchTranslator
from paranmt_hf.corpus.translation.beam_search import beam_search
from paranmt_hf.corpus.translation.checkpoint import (
    Checkpoint,
    default_batch_tokens,
    read_weights,
    resolve_device,
    resolve_dtype,
)
from paranmt_hf.corpus.translation.translator import TranslatorConfig
from paranmt_hf.errors import InputError


class TransformersTranslator(BatchTranslator):
    """Translates with transformers and torch (ParaNMT-50M, section 3).

    Deviations from `generate`: nothing in the checkpoint's `generation_config.json` has a say, and Marian's padding
    symbol, which only stands in for an empty start, takes no share of the probability.

    Args:
        config: The settings.
        checkpoint: The model without its weights, where it has been read already.
        threads: CPU threads, for the whole process; None leaves them as they are.

    Raises:
        InputError: The model cannot be found, read or used with these settings.
    """

    def __init__(
        self, config: TranslatorConfig, checkpoint: Checkpoint | None = None, threads: int | None = None
    ) -> None:
        if config.dtype == "int8":
            raise InputError("dtype 'int8' needs backend ctranslate2; got backend 'transformers'")
        device = resolve_device(config.device)
        self._checkpoint = checkpoint = checkpoint or Checkpoint(config)
        super().__init__(checkpoint, batch_tokens=config.batch_tokens or default_batch_tokens(device))
        if threads is not None:
            torch.set_num_threads(threads)
        self._beam = config.beam
        self._model = read_weights(checkpoint.files, getattr(torch, resolve_dtype(config))).to(device)
        if checkpoint.config.model_type == "marian":
            self._model.final_logits_bias[:, checkpoint.pad] = -1e4
        self.identity = checkpoint.identity(config, "transformers")

    def search(self, sources: list[list[int]]) -> tuple[list[list[int]], list[float]]:
        """Find the best hypothesis and its score for each source of one batch."""
        longest = max(map(len, sources))
        ids = torch.tensor([source + [self._checkpoint.pad] * (longest - len(source)) for source in sources])
        lengths = torch.tensor([len(source) for source in sources])
        mask = (torch.arange(longest) < lengths[:, None]).long()
        return beam_search(
            self._model,
            ids.to(self._model.device),
            mask.to(self._model.device),
            start=self._checkpoint.start,
            end=self._checkpoint.end,
            beam=self._beam,
            longest=self._checkpoint.max_target_tokens,
        )
