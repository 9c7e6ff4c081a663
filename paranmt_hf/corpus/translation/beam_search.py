"""Beam search over an encoder-decoder of transformers (ParaNMT-50M, section 3)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from transformers.cache_utils import DynamicCache, EncoderDecoderCache
from transformers.modeling_outputs import BaseModelOutput

from paranmt_hf.errors import InputError


@dataclass
class _Best:
    """Best finished hypotheses of every sentence of a batch, in order."""

    tokens: torch.Tensor  # [sentence, hypothesis, position]
    lengths: torch.Tensor  # [sentence, hypothesis]
    scores: torch.Tensor  # [sentence, hypothesis]
    finished: torch.Tensor  # [sentence], hypotheses finished so far

    @classmethod
    def empty(cls, sentences: int, count: int, longest: int, device: torch.device) -> _Best:
        tokens = torch.zeros(sentences, count, longest, dtype=torch.int64, device=device)
        scores = torch.full((sentences, count), -math.inf, device=device)
        return cls(tokens, tokens.new_zeros(sentences, count), scores, tokens.new_zeros(sentences))

    def add(self, rows: torch.Tensor, tokens: torch.Tensor, scores: torch.Tensor) -> None:
        """Take finished hypotheses [row, beam, position] with scores [row, beam], -inf where not finished."""
        some = (scores > -math.inf).any(dim=1)
        rows, tokens, scores = rows[some], tokens[some], scores[some]
        self.finished[rows] += (scores > -math.inf).sum(dim=1)
        count, position = self.scores.shape[1], tokens.shape[2]
        # Stable, so that of equal scores the one found first stays first.
        scores, order = torch.cat([self.scores[rows], scores], dim=1).sort(dim=1, descending=True, stable=True)
        lengths = torch.cat([self.lengths[rows], torch.full_like(tokens[:, :, 0], position)], dim=1)
        padded = torch.nn.functional.pad(tokens, (0, self.tokens.shape[2] - position))
        every, order = torch.cat([self.tokens[rows], padded], dim=1), order[:, :count]
        self.scores[rows] = scores[:, :count]
        self.lengths[rows] = lengths.gather(1, order)
        self.tokens[rows] = every.gather(1, order[:, :, None].expand(-1, -1, every.shape[2]))

    def results(self, prefix: int) -> tuple[list[list[int]], list[float]]:
        """Give the hypotheses and their scores, the prefix taken out of the length; the best fills empty places."""
        if not self.lengths[:, 0].all():
            raise InputError("the model gives no finite probabilities in this dtype; take bfloat16 or float32")
        place = torch.arange(self.lengths.shape[1], device=self.lengths.device) * (self.scores > -math.inf)
        lengths = self.lengths.gather(1, place)
        tokens = self.tokens.gather(1, place[:, :, None].expand_as(self.tokens)).flatten(0, 1)
        scores = (self.scores.gather(1, place) * (lengths + prefix) / lengths).flatten()
        hypotheses = zip(tokens.tolist(), lengths.flatten().tolist(), strict=True)
        return [ids[:length] for ids, length in hypotheses], scores.tolist()


@torch.inference_mode()
def beam_search(
    model: Any,  # noqa: ANN401
    source: torch.Tensor,
    mask: torch.Tensor,
    *,
    start: list[int],
    end: int,
    beam: int,
    longest: int,
    count: int = 1,
    lower: Callable[[torch.Tensor, torch.Tensor, int], torch.Tensor] | None = None,
) -> tuple[list[list[int]], list[float]]:
    """Find the best hypotheses of each sentence.

    The search is that of transformers with `early_stopping=True` and of CTranslate2: a sentence is finished with its
    first `beam` complete hypotheses, and the best is the one with the highest sum of log-probabilities over length, a
    language token counted in that length. Unlike `generate` it drops a finished sentence from the batch and moves the
    encoder's keys and values only then, which makes it faster, and the sums are at hand when it ends.

    Args:
        model: An encoder-decoder of transformers.
        source: Shape [sentence, position], ids filled up on the right.
        mask: Shape [sentence, position], 0 at the filling.
        start: Ids that every target begins with.
        end: Id of the end token.
        beam: Number of beams.
        longest: Most target tokens, the end token included.
        count: Hypotheses of each sentence, at most `beam`.
        lower: Changes log-probabilities [row, word] before the beams are chosen, given those, the sentence of each row
            and the position of the next token, from 0.

    Returns:
        The ids of each hypothesis, without `start`, and the mean log-probability of its tokens, as `lower` left it;
        `count` for each sentence, the best first.
    """
    prefix = len(start) - 1
    best = _Best.empty(len(source), count, longest, source.device)
    rows = torch.arange(len(source), device=source.device)
    encoded = model.get_encoder()(input_ids=source, attention_mask=mask).last_hidden_state
    cache = EncoderDecoderCache(DynamicCache(), DynamicCache())
    inputs = torch.tensor([start], device=source.device).repeat(len(source), 1)
    tokens = inputs.new_empty(len(source), 1, 0)
    totals = torch.zeros(len(source), 1, device=source.device)
    for step in range(1, longest + 1):
        logits = model(
            encoder_outputs=BaseModelOutput(last_hidden_state=encoded),
            attention_mask=mask,
            decoder_input_ids=inputs,
            past_key_values=cache,
            use_cache=True,
        ).logits[:, -1]
        scores = logits.log_softmax(dim=-1, dtype=torch.float32)
        if lower is not None:
            scores = lower(scores, rows.repeat_interleave(totals.shape[1]), step - 1)
        values, parents, extended = _extend(scores, totals, tokens, 2 * beam)
        ended = extended[:, :, -1] == end
        # Only a hypothesis among the best `beam` may finish; at the limit all of them do.
        finishing = ended[:, :beam] | (step == longest)
        best.add(rows, extended[:, :beam], (values[:, :beam] / (step + prefix)).masked_fill(~finishing, -math.inf))
        going = (best.finished[rows] < beam).nonzero().flatten()
        if step == longest or not len(going):
            break
        values, order = values.masked_fill(ended, -math.inf).topk(min(beam, values.shape[1]), dim=1)
        origin = (going[:, None] * tokens.shape[1] + parents.gather(1, order)[going]).flatten()
        cache.self_attention_cache.reorder_cache(origin)
        if step == 1 or len(going) < len(rows):
            # Beams of one sentence share what the encoder says, so only a change of the batch moves it.
            cache.cross_attention_cache.reorder_cache(origin)
            encoded, mask = encoded[origin], mask[origin]
        tokens = extended.gather(1, order[:, :, None].expand(-1, -1, step))[going]
        rows, totals = rows[going], values[going]
        inputs = tokens[:, :, -1].reshape(-1, 1)
    return best.results(prefix)


def _extend(
    scores: torch.Tensor, totals: torch.Tensor, tokens: torch.Tensor, count: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Find the best continuations of the beams of each sentence.

    Args:
        scores: Shape [sentence * beam, word], log-probabilities of the next token; they are changed.
        totals: Shape [sentence, beam], sum of log-probabilities so far.
        tokens: Shape [sentence, beam, position].
        count: How many to find.

    Returns:
        Sums, beams they continue, and tokens [sentence, count, position + 1].
    """
    words = scores.shape[-1]
    scores = scores.add_(totals.view(-1, 1)).view(len(totals), -1)
    values, positions = scores.topk(min(count, scores.shape[1]), dim=1)
    parents = positions // words
    history = tokens.gather(1, parents[:, :, None].expand(-1, -1, tokens.shape[2]))
    return values, parents, torch.cat([history, (positions % words)[:, :, None]], dim=2)
