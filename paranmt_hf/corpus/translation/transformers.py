"""Translating with transformers and torch: OPUS-MT (Marian), NLLB, M2M100 and other encoder-decoders."""

from __future__ import annotations

import torch

from paranmt_hf.corpus.translation.batching import BatchTranslator
from paranmt_hf.corpus.translation.beam import (
    beam_search,
    best_first,
    diverse_beam_search,
    encode,
    sample,
    score,
    uniforms,
)
from paranmt_hf.corpus.translation.checkpoint import Checkpoint, read_weights
from paranmt_hf.corpus.translation.device import default_batch_tokens, resolve_device, resolve_dtype
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
    """

    def __init__(
        self, config: TranslatorConfig, checkpoint: Checkpoint | None = None, threads: int | None = None
    ) -> None:
        if config.dtype == "int8":
            raise InputError("dtype 'int8' needs backend ctranslate2; got backend 'transformers'")
        device = resolve_device(config.device)
        self._checkpoint = checkpoint = checkpoint or Checkpoint(config)
        batch_tokens = config.batch_tokens or default_batch_tokens(device)
        super().__init__(checkpoint, batch_tokens=batch_tokens, count=config.hypotheses)
        if threads is not None:
            torch.set_num_threads(threads)
        self._config = config
        self._model = read_weights(checkpoint.files, getattr(torch, resolve_dtype(config))).to(device)
        if checkpoint.config.model_type == "marian":
            self._model.final_logits_bias[:, checkpoint.pad] = -1e4
        self.identity = checkpoint.identity(config, "transformers")

    def search(self, sources: list[list[int]]) -> tuple[list[list[int]], list[float]]:
        """Find hypotheses and their scores for each source of one batch."""
        config, count, point = self._config, self._count, self._checkpoint
        longest = point.max_target_tokens
        batch = encode(self._model, sources, pad=point.pad, start=point.start, ends=[point.end], longest=longest)
        if config.sample:
            numbers = uniforms(sources, config.draw_seed, count, longest)
            return best_first(*sample(batch, numbers, temperature=config.temperature, top_p=config.top_p), count)
        if config.beam_groups == 1:
            return beam_search(batch, beams=config.beam, count=count)
        found = diverse_beam_search(batch, beams=config.beam, groups=config.beam_groups, diversity=config.diversity)
        ids = [one for place, one in enumerate(found) if place % config.beam < count]
        rows = torch.arange(len(sources), device=self._model.device).repeat_interleave(count)
        return best_first(ids, score(batch.take(rows), ids), count)
