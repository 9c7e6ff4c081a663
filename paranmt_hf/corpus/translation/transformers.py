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
    """Translates with transformers and torch (ParaNMT-50M, section 3).

    It differs from `generate` of transformers in two ways: `generation_config.json` of the model is ignored, and
    Marian's padding symbol, which only stands for an empty start, gets no probability.

    Args:
        config: Settings of the translation.
        checkpoint: The model without its weights, if it is loaded already.
        threads: Number of CPU threads, set for the whole process; None to leave it as it is.
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
        config, count, model = self._config, self._count, self._checkpoint
        longest = model.max_target_tokens
        batch = encode(self._model, sources, pad=model.pad, start=model.start, ends=[model.end], longest=longest)
        if config.sample:
            numbers = uniforms(sources, config.draw_seed, count, longest)
            return best_first(*sample(batch, numbers, temperature=config.temperature, top_p=config.top_p), count)
        if config.beam_groups == 1:
            return beam_search(batch, beams=config.beam, count=count)
        found = diverse_beam_search(batch, beams=config.beam, groups=config.beam_groups, diversity=config.diversity)
        ids = [one for index, one in enumerate(found) if index % config.beam < count]
        rows = torch.arange(len(sources), device=self._model.device).repeat_interleave(count)
        return best_first(ids, score(batch.take(rows), ids), count)
