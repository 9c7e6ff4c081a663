"""Translation with transformers and torch."""

from __future__ import annotations

import torch

from paranmt_hf.corpus.translation.batches import BatchTranslator, Hypotheses
from paranmt_hf.corpus.translation.beam import beam_search, diverse_beam_search, encode, score
from paranmt_hf.corpus.translation.checkpoint import Checkpoint
from paranmt_hf.corpus.translation.sampling import best_first, sample, uniforms
from paranmt_hf.corpus.translation.translator import TranslatorConfig, default_batch_tokens, resolve_device
from paranmt_hf.hub.pretrained import read_encoder_decoder


class TransformersTranslator(BatchTranslator):
    """Translates with transformers and torch (ParaNMT-50M, section 3), on `threads` threads of the whole process.

    Deviations from `generate`: the checkpoint's `generation_config.json` is ignored, and Marian's padding symbol,
    which only represents an empty start, has no probability.
    """

    def __init__(
        self, config: TranslatorConfig, checkpoint: Checkpoint | None = None, threads: int | None = None
    ) -> None:
        device = resolve_device(config.device)
        checkpoint = checkpoint or Checkpoint(config)
        batch_tokens = config.batch_tokens or default_batch_tokens(device)
        super().__init__(checkpoint, batch_tokens=batch_tokens, count=config.hypotheses)
        if threads is not None:
            torch.set_num_threads(threads)
        self._config = config
        dtype = getattr(torch, config.resolved_dtype)
        self._model = read_encoder_decoder(checkpoint.files, dtype, "translation model").to(device)
        if checkpoint.config.model_type == "marian":
            self._model.final_logits_bias[:, checkpoint.pad] = -1e4
        self.identity = checkpoint.identity("transformers")

    def search(self, sources: list[list[int]]) -> Hypotheses:
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
