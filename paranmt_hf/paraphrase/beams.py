"""Beam search over the encoder-decoder of `modeling_paranmt_lstm.py`, with the results of `generate`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from transformers.modeling_outputs import BaseModelOutput

# As transformers has it: the score of what is none.
NONE = -1e9
# Changes scores [beam, piece] of beams behind so many pieces, given the sentence of each beam [beam].
Change = Callable[[torch.Tensor, int, torch.Tensor], torch.Tensor]


@dataclass
class _Finished:
    """The best finished hypotheses of each sentence, the best first."""

    scores: torch.Tensor  # [sentence, hypothesis], NONE where there is none yet
    tokens: torch.Tensor  # [sentence, hypothesis, position]
    lengths: torch.Tensor  # [sentence, hypothesis], 0 where there is none yet

    @classmethod
    def empty(cls, sentences: int, beams: int, longest: int, device: torch.device) -> _Finished:
        """Make room for so many hypotheses."""
        lengths = torch.zeros(sentences, beams, dtype=torch.int64, device=device)
        tokens = lengths[:, :, None].repeat(1, 1, longest)
        return cls(torch.full((sentences, beams), NONE, device=device), tokens, lengths)

    def add(self, rows: torch.Tensor, scores: torch.Tensor, tokens: torch.Tensor) -> None:
        """Keep the best of what is there and of more hypotheses [row, candidate, position] of some sentences.

        `scores` [row, candidate] are `NONE` where a candidate is not finished.
        """
        best, order = torch.cat([self.scores[rows], scores], dim=1).topk(self.scores.shape[1], dim=1)
        lengths = torch.where(scores > NONE, tokens.shape[2], 0)
        self.scores[rows] = best
        self.lengths[rows] = torch.cat([self.lengths[rows], lengths], dim=1).gather(1, order)
        wide = tokens.new_zeros(*tokens.shape[:2], self.tokens.shape[2])
        wide[:, :, : tokens.shape[2]] = tokens
        both = torch.cat([self.tokens[rows], wide], dim=1)
        self.tokens[rows] = both.gather(1, order[:, :, None].expand(-1, -1, both.shape[2]))

    def results(self) -> list[list[list[int]]]:
        """Ids of each hypothesis, its end included."""
        pairs = zip(self.tokens.tolist(), self.lengths.tolist(), strict=True)
        return [[ids[:length] for ids, length in zip(*own, strict=True)] for own in pairs]


def beam_search(
    model: Any,  # noqa: ANN401 - of a kind whose state can be selected from
    encoded: torch.Tensor,
    mask: torch.Tensor,
    *,
    start: int,
    ends: list[int],
    beams: int,
    longest: int,
    change: Change | None = None,
) -> list[list[list[int]]]:
    """Find the best hypotheses of each sentence.

    The search is that of `generate` with `early_stopping=True`: a sentence is finished with its first `beams` complete
    hypotheses, and they are ordered by the sum of their log-probabilities over their length. Unlike `generate` it
    drops a finished sentence from the batch.

    Args:
        model: The encoder-decoder.
        encoded: The encoder's states [sentence, position, hidden].
        mask: Shape [sentence, position], 0 at padding.
        start: Id that every target begins with.
        ends: Ids that end a target.
        beams: Number of beams, and of the hypotheses.
        longest: Most pieces of a target, the end included.
        change: Changes the log-probabilities.

    Returns:
        Ids of `beams` hypotheses of each sentence, the best first, with the end of those that have one.
    """
    device, count = encoded.device, max(2, 1 + len(ends)) * beams
    finished = _Finished.empty(len(encoded), beams, longest, device)
    stops = torch.tensor(ends, device=device)
    rows = torch.arange(len(encoded), device=device)
    encoded, mask = encoded.repeat_interleave(beams, dim=0), mask.repeat_interleave(beams, dim=0)
    inputs = torch.full((len(encoded), 1), start, device=device)
    tokens = inputs.new_empty(len(rows), beams, 0)
    totals = torch.full((len(rows), beams), NONE, device=device)
    totals[:, 0] = 0
    state = None
    for step in range(1, longest + 1):
        output = model(
            encoder_outputs=BaseModelOutput(last_hidden_state=encoded),
            attention_mask=mask,
            decoder_input_ids=inputs,
            past_key_values=state,
            use_cache=True,
        )
        state = output.past_key_values
        scores = output.logits[:, -1].log_softmax(dim=-1, dtype=torch.float32)
        if change is not None:
            scores = change(scores, step - 1, rows.repeat_interleave(beams))
        pieces = scores.shape[-1]
        values, positions = scores.view(len(rows), beams, -1).add_(totals[:, :, None]).flatten(1).topk(count, dim=1)
        parents = positions // pieces
        extended = torch.cat(
            [tokens.gather(1, parents[:, :, None].expand(-1, -1, step - 1)), (positions % pieces)[:, :, None]], dim=2
        )
        ended = torch.isin(extended[:, :, -1], stops) | (step == longest)
        if bool(ended[:, :beams].any()):
            complete = (values[:, :beams] / step).masked_fill(~ended[:, :beams], NONE)
            finished.add(rows, complete, extended[:, :beams])
        going = (finished.lengths[rows] == 0).any(dim=1).nonzero().flatten()
        if step == longest or not len(going):
            break
        order = (values + ended * NONE).topk(beams, dim=1).indices[going]
        totals = (values + ended * NONE)[going].gather(1, order)
        origin = (going[:, None] * beams + parents[going].gather(1, order)).flatten()
        tokens = extended[going].gather(1, order[:, :, None].expand(-1, -1, step))
        if len(going) < len(rows):
            state.select(origin)
            encoded, mask, rows = encoded[origin], mask[origin], rows[going]
        else:
            state.reorder_cache(origin)
        inputs = tokens[:, :, -1].reshape(-1, 1)
    return finished.results()
