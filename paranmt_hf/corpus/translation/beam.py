"""Search for the best targets of an encoder-decoder: beam search (ParaNMT-50M, section 3) and diverse beam search."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

import torch
from transformers.cache_utils import EncoderDecoderCache
from transformers.modeling_outputs import Seq2SeqLMOutput

from paranmt_hf.errors import InputError

# A function that changes the log-probabilities [row, token] of the next token, given also the index of the sentence of
# each row [row] and its target so far [row, position].
Change = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]
# Name of the decoder's cache in outputs and arguments: `cache` since transformers 5.24.
CACHE = "cache" if "cache" in {field.name for field in fields(Seq2SeqLMOutput)} else "past_key_values"


@dataclass(frozen=True)
class EncodedBatch:
    """Sentences after the encoder, and how their targets begin and end."""

    model: Any  # An encoder-decoder of transformers
    outputs: Any  # Outputs of its encoder, whose tensors are [sentence, ...]
    mask: torch.Tensor  # 1 at pieces and 0 at padding [sentence, position]
    start: list[int]  # Ids with which every target begins
    ends: list[int]  # Ids that end a target
    longest: int  # Largest number of tokens in a target, with the end and without `start`

    def take(self, rows: torch.Tensor) -> EncodedBatch:
        """Return a batch of the sentences at some indices [row], which may repeat."""
        tensors = {name: value[rows] for name, value in self.outputs.items() if isinstance(value, torch.Tensor)}
        return replace(self, outputs=type(self.outputs)(**tensors), mask=self.mask[rows])

    def logits(self, inputs: torch.Tensor, cache: Any = None, use_cache: bool = True) -> tuple[torch.Tensor, Any]:  # noqa: ANN401
        """Run the decoder on target ids.

        Args:
            inputs: Ids [sentence, position]; with a cache only those after the cached ones.
            cache: Cache from the call before; None at the first one.
            use_cache: Whether the decoder makes a cache.

        Returns:
            Logits [sentence, position, token], and the new cache, None if it is not used.
        """
        output = self.model(
            encoder_outputs=self.outputs,
            attention_mask=self.mask,
            decoder_input_ids=inputs,
            use_cache=use_cache,
            **{CACHE: cache},
        )
        return output.logits, getattr(output, CACHE) if use_cache else None


@torch.inference_mode()
def encode(
    model: Any,  # noqa: ANN401
    sources: list[list[int]],
    *,
    pad: int,
    start: list[int],
    ends: list[int],
    longest: int,
    control: list[list[int]] | None = None,
) -> EncodedBatch:
    """Run the encoder of an encoder-decoder of transformers.

    Args:
        model: The model.
        sources: Ids of each source.
        pad: Id of the padding.
        start: Ids with which every target begins.
        ends: Ids that end a target.
        longest: Largest number of tokens in a target, with the end.
        control: For a syntactically controlled model, ids of the second sequence that it reads for each source.
    """
    device = model.device
    lengths = torch.tensor([len(source) for source in sources])
    mask = (torch.arange(int(lengths.max())) < lengths[:, None]).long().to(device)
    ids = pad_rows(sources, pad).to(device)
    extra = {"control_ids": pad_rows(control, pad).to(device)} if control is not None else {}
    outputs = model.get_encoder()(input_ids=ids, attention_mask=mask, return_dict=True, **extra)
    return EncodedBatch(model, outputs, mask, start, ends, longest)


def pad_rows(rows: list[list[int]], value: int) -> torch.Tensor:
    """Return lists of ids as a tensor [row, position], padded on the right with `value`."""
    longest = max(map(len, rows))
    return torch.tensor([row + [value] * (longest - len(row)) for row in rows])


@dataclass
class _Best:
    """The best finished hypotheses of each sentence so far, the best first."""

    tokens: torch.Tensor  # Ids [sentence, hypothesis, position]
    lengths: torch.Tensor  # Number of tokens [sentence, hypothesis]; 0 if there is no such hypothesis
    scores: torch.Tensor  # [sentence, hypothesis]; -inf if there is no such hypothesis
    finished: torch.Tensor  # Number of hypotheses [sentence] finished so far, also those that were not kept

    @classmethod
    def empty(cls, sentences: int, count: int, longest: int, device: torch.device) -> _Best:
        """Make the state before any hypothesis is finished.

        Args:
            sentences: Number of sentences.
            count: Number of hypotheses kept for each sentence.
            longest: Largest number of tokens in a hypothesis.
            device: Device of the tensors.
        """
        tokens = torch.zeros(sentences, count, longest, dtype=torch.int64, device=device)
        scores = torch.full((sentences, count), -math.inf, device=device)
        return cls(tokens, tokens.new_zeros(sentences, count), scores, tokens.new_zeros(sentences))

    def add(self, rows: torch.Tensor, tokens: torch.Tensor, scores: torch.Tensor) -> None:
        """Add finished hypotheses.

        Args:
            rows: Index [row] of the sentence of each row.
            tokens: Ids [row, beam, position].
            scores: Scores [row, beam]; -inf if the beam is not finished.
        """
        some = (scores > -math.inf).any(dim=1)
        rows, tokens, scores = rows[some], tokens[some], scores[some]
        self.finished[rows] += (scores > -math.inf).sum(dim=1)
        count, position = self.scores.shape[1], tokens.shape[2]
        # The sort is stable, so among equal scores the hypothesis found first stays first.
        scores, order = torch.cat([self.scores[rows], scores], dim=1).sort(dim=1, descending=True, stable=True)
        lengths = torch.cat([self.lengths[rows], torch.full_like(tokens[:, :, 0], position)], dim=1)
        wide = torch.nn.functional.pad(tokens, (0, self.tokens.shape[2] - position))
        every, order = torch.cat([self.tokens[rows], wide], dim=1), order[:, :count]
        self.scores[rows] = scores[:, :count]
        self.lengths[rows] = lengths.gather(1, order)
        self.tokens[rows] = every.gather(1, order[:, :, None].expand(-1, -1, every.shape[2]))

    def results(self, prefix: int) -> tuple[list[list[int]], list[float]]:
        """Return the ids and the scores of all hypotheses, those of a sentence one after the other.

        Scores are changed to the mean over the tokens without the prefix, whose length is `prefix`. If a sentence has
        too few hypotheses, its best one is repeated.

        Raises:
            InputError: If a sentence has no hypothesis, because its probabilities are not finite.
        """
        if not self.lengths[:, 0].all():
            raise InputError("the model gives no finite probabilities in this dtype; use bfloat16 or float32")
        # Index of each hypothesis, or 0 for one that is missing.
        index = torch.arange(self.lengths.shape[1], device=self.lengths.device) * (self.scores > -math.inf)
        lengths = self.lengths.gather(1, index)
        tokens = self.tokens.gather(1, index[:, :, None].expand_as(self.tokens)).flatten(0, 1)
        scores = (self.scores.gather(1, index) * (lengths + prefix) / lengths).flatten()
        hypotheses = zip(tokens.tolist(), lengths.flatten().tolist(), strict=True)
        return [ids[:length] for ids, length in hypotheses], scores.tolist()


@torch.inference_mode()
def beam_search(
    batch: EncodedBatch, *, beams: int, count: int = 1, change: Change | None = None
) -> tuple[list[list[int]], list[float]]:
    """Find the `count` best hypotheses of each sentence.

    The search is that of transformers with `early_stopping=True` and of CTranslate2. A sentence is finished with its
    first `beams` complete hypotheses; the best is the one with the highest sum of log-probabilities divided by its
    length, in which a language token counts. Unlike `generate`, this drops finished sentences from the batch and moves
    the encoder's keys and values only then, which is faster, and it returns scores.

    Args:
        batch: The encoded sentences.
        beams: Number of beams.
        count: Number of hypotheses of each sentence, at most `beams`.
        change: Changes the log-probabilities of the next token; None for no change.

    Returns:
        Ids of each hypothesis, without `start` and with the end, and the mean log-probability of its tokens after
        `change`; `count` for each sentence, the best first.
    """
    prefix, candidates, longest = len(batch.start) - 1, max(2, 1 + len(batch.ends)) * beams, batch.longest
    sentences, device = len(batch.mask), batch.mask.device
    best = _Best.empty(sentences, count, longest, device)
    ends = torch.tensor(batch.ends, device=device)
    rows = torch.arange(sentences, device=device)
    inputs = torch.tensor([batch.start], device=device).repeat(sentences, 1)
    tokens = inputs.new_empty(sentences, 1, 0)
    totals = torch.zeros(sentences, 1, device=device)
    cache = None
    for step in range(1, longest + 1):
        logits, cache = batch.logits(inputs, cache)
        scores = logits[:, -1].log_softmax(dim=-1, dtype=torch.float32)
        if change is not None:
            scores = change(scores, rows.repeat_interleave(totals.shape[1]), tokens.flatten(0, 1))
        values, parents, extended = _extend(scores, totals, tokens, candidates)
        ended = torch.isin(extended[:, :, -1], ends)
        # Only the best `beams` hypotheses may finish; at the largest length all of them do.
        finishing = ended[:, :beams] | (step == longest)
        if bool(finishing.any()):
            scores = (values[:, :beams] / (step + prefix)).masked_fill(~finishing, -math.inf)
            best.add(rows, extended[:, :beams], scores)
        going = (best.finished[rows] < beams).nonzero().flatten()
        if step == longest or not len(going):
            break
        values, order = values.masked_fill(ended, -math.inf).topk(min(beams, values.shape[1]), dim=1)
        origin = (going[:, None] * tokens.shape[1] + parents.gather(1, order)[going]).flatten()
        # All beams of a sentence have the same encoder outputs, so these move only if the rows of the batch change.
        moved = step == 1 or len(going) < len(rows)
        reorder(cache, origin, moved)
        if moved:
            batch = batch.take(origin)
        tokens = extended.gather(1, order[:, :, None].expand(-1, -1, step))[going]
        rows, totals = rows[going], values[going]
        inputs = tokens[:, :, -1].reshape(-1, 1)
    return best.results(prefix)


def _extend(
    scores: torch.Tensor, totals: torch.Tensor, tokens: torch.Tensor, count: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Find the `count` best continuations by one token of the beams of each sentence.

    Args:
        scores: Log-probabilities [sentence * beam, token] of the next token; they are changed in place.
        totals: Sums [sentence, beam] of the log-probabilities so far.
        tokens: Ids [sentence, beam, position] so far.
        count: Number of continuations.

    Returns:
        Sums of log-probabilities [sentence, continuation], index of the beam that each one continues, and its ids
        [sentence, continuation, position].
    """
    words = scores.shape[-1]
    scores = scores.add_(totals.view(-1, 1)).view(len(totals), -1)
    values, positions = scores.topk(min(count, scores.shape[1]), dim=1)
    parents = positions // words
    history = tokens.gather(1, parents[:, :, None].expand(-1, -1, tokens.shape[2]))
    return values, parents, torch.cat([history, (positions % words)[:, :, None]], dim=2)


def reorder(cache: Any, origin: torch.Tensor, moved: bool) -> None:  # noqa: ANN401
    """Select rows of a decoder's cache, for the next step of a search.

    Args:
        cache: The cache.
        origin: Index [row] of the old row that each new row continues.
        moved: Whether the sentences of rows have changed, so that what the cache keeps of the encoder is selected too.
    """
    if isinstance(cache, EncoderDecoderCache):
        cache.self_attention_cache.reorder_cache(origin)
        if moved:
            cache.cross_attention_cache.reorder_cache(origin)
    elif moved:
        cache.select(origin)
    else:
        cache.reorder_cache(origin)


@torch.inference_mode()
def diverse_beam_search(
    batch: EncodedBatch, *, beams: int, groups: int, diversity: float, change: Change | None = None
) -> list[list[int]]:
    """Find hypotheses in groups, one group after the other, with a penalty for the tokens of earlier groups.

    This is diverse beam search with Hamming diversity (Vijayakumar et al. 2016, arXiv:1610.02424). The penalty is for
    tokens in the final hypotheses of a group, not in beams on the way. So the search of each group is a plain beam
    search, and the result of a sentence does not depend on its batch.

    Args:
        batch: The encoded sentences.
        beams: Number of hypotheses of each sentence, a multiple of `groups`.
        groups: Number of groups.
        diversity: What a token loses of its log-probability, after `change`, for each earlier hypothesis with this
            token at the same position.
        change: Changes the log-probabilities of the next token; None for no change.

    Returns:
        Ids of each hypothesis, with its end. For each sentence the best of every group comes first, then the second
        best of every group, and so on.
    """
    size, sentences, longest = beams // groups, len(batch.mask), batch.longest
    # Tokens [sentence, hypothesis, position] of the groups so far, -1 behind their ends.
    earlier = torch.full((sentences, 0, longest), -1, device=batch.mask.device)
    ids_of_groups: list[list[list[int]]] = []

    def lower(scores: torch.Tensor, rows: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
        if change is not None:
            scores = change(scores, rows, tokens)
        if not earlier.shape[1]:
            return scores
        words = earlier[rows, :, tokens.shape[1]]
        lost = torch.where(words >= 0, -diversity, 0.0).to(scores.dtype)
        return scores.scatter_add(1, words.clamp(min=0), lost)

    for _ in range(groups):
        ids, _ = beam_search(batch, beams=size, count=size, change=lower)
        ids_of_groups.append(ids)
        added = torch.tensor([one + [-1] * (longest - len(one)) for one in ids], device=earlier.device)
        earlier = torch.cat([earlier, added.view(sentences, size, longest)], dim=1)
    indices = [sentence * size + rank for sentence in range(sentences) for rank in range(size)]
    return [group[index] for index in indices for group in ids_of_groups]


@torch.inference_mode()
def score(batch: EncodedBatch, targets: list[list[int]], *, most_logits: int = 2**26) -> list[float]:
    """Return the mean log-probability of the tokens of one target for each sentence.

    Args:
        batch: The encoded sentences.
        targets: Ids of each target, with its end.
        most_logits: Largest number of logits (rows x positions x tokens) at once, which bounds the memory. The default
            is 256 MB as floats, of which there are two copies.
    """
    # Targets of similar length are scored together, as many as the bound allows.
    order = sorted(range(len(targets)), key=lambda row: len(targets[row]))
    scores, first = [0.0] * len(targets), 0
    words = batch.model.config.vocab_size
    while first < len(order):
        end = first + 1
        while end < len(order) and (end + 1 - first) * len(targets[order[end]]) * words <= most_logits:
            end += 1
        rows = order[first:end]
        some = _score_at_once(batch.take(torch.tensor(rows, device=batch.mask.device)), [targets[row] for row in rows])
        for row, value in zip(rows, some, strict=True):
            scores[row] = value
        first = end
    return scores


def _score_at_once(batch: EncodedBatch, targets: list[list[int]]) -> list[float]:
    """Return the mean log-probability of the tokens of each target, in one pass."""
    device = batch.mask.device
    ids, lengths = pad_rows(targets, 0).to(device), torch.tensor([len(one) for one in targets], device=device)
    before = torch.tensor([batch.start], device=device).expand(len(ids), -1)
    logits, _ = batch.logits(torch.cat([before, ids[:, :-1]], dim=1), use_cache=False)
    logits = logits[:, len(batch.start) - 1 :]
    known = logits.log_softmax(dim=-1, dtype=torch.float32).gather(2, ids[:, :, None])[:, :, 0]
    inside = torch.arange(ids.shape[1], device=device) < lengths[:, None]
    return ((known * inside).sum(dim=1) / lengths).tolist()
