"""Search for the targets of an encoder-decoder: beams (ParaNMT-50M, section 3) and diverse beams."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

import torch
from transformers.cache_utils import EncoderDecoderCache
from transformers.modeling_outputs import Seq2SeqLMOutput

from paranmt_hf.errors import InputError

# Changes log-probabilities [row, token], given the sentence of each row [row] and its target so far [row, position].
Change = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]
# The state of a decoder is named `cache` since transformers 5.24.
CACHE = "cache" if "cache" in {field.name for field in fields(Seq2SeqLMOutput)} else "past_key_values"


@dataclass(frozen=True)
class EncodedBatch:
    """Sources read by the encoder, and the prefix and end of their targets."""

    model: Any  # An encoder-decoder of transformers
    outputs: Any  # Outputs of its encoder, tensors [sentence, ...]
    mask: torch.Tensor  # Shape [sentence, position], 0 at padding
    start: list[int]  # Ids that every target begins with
    ends: list[int]  # Ids that end a target
    longest: int  # Maximum number of target tokens, the end included and `start` not

    def take(self, rows: torch.Tensor) -> EncodedBatch:
        """Select sentences, which may repeat."""
        tensors = {name: value[rows] for name, value in self.outputs.items() if isinstance(value, torch.Tensor)}
        return replace(self, outputs=type(self.outputs)(**tensors), mask=self.mask[rows])

    def logits(self, inputs: torch.Tensor, cache: Any = None, use_cache: bool = True) -> tuple[torch.Tensor, Any]:  # noqa: ANN401
        """Run the decoder on ids [sentence, position]; returns logits [sentence, position, token] and the cache."""
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
    """Run the encoder of an encoder-decoder of transformers on the ids of each source.

    Every target begins with the ids `start`, ends with one of `ends`, and has at most `longest` tokens, the end
    included. A syntactically controlled model reads the ids `control` as the second sequence for each source.
    """
    device = model.device
    lengths = torch.tensor([len(source) for source in sources])
    mask = (torch.arange(int(lengths.max())) < lengths[:, None]).long().to(device)
    ids = pad_rows(sources, pad).to(device)
    given = {"control_ids": pad_rows(control, pad).to(device)} if control is not None else {}
    outputs = model.get_encoder()(input_ids=ids, attention_mask=mask, return_dict=True, **given)
    return EncodedBatch(model, outputs, mask, start, ends, longest)


def pad_rows(rows: list[list[int]], value: int) -> torch.Tensor:
    """Create a tensor [row, position] of lists of ids, padded on the right."""
    longest = max(map(len, rows))
    return torch.tensor([row + [value] * (longest - len(row)) for row in rows])


def check_finite(good: torch.Tensor) -> None:
    """Reject a model without finite probabilities, of which some of `good` are 0 or False."""
    if not good.all():
        raise InputError("the model gives no finite probabilities in this dtype; use bfloat16 or float32")


@dataclass
class _Best:
    """The best finished hypotheses of every sentence of a batch, the best first."""

    tokens: torch.Tensor  # [sentence, hypothesis, position]
    lengths: torch.Tensor  # [sentence, hypothesis]
    scores: torch.Tensor  # [sentence, hypothesis]
    finished: torch.Tensor  # [sentence], number of hypotheses finished so far

    @classmethod
    def empty(cls, sentences: int, count: int, longest: int, device: torch.device) -> _Best:
        tokens = torch.zeros(sentences, count, longest, dtype=torch.int64, device=device)
        scores = torch.full((sentences, count), -math.inf, device=device)
        return cls(tokens, tokens.new_zeros(sentences, count), scores, tokens.new_zeros(sentences))

    def add(self, rows: torch.Tensor, tokens: torch.Tensor, scores: torch.Tensor) -> None:
        """Add finished hypotheses [row, beam, position] with scores [row, beam], -inf if unfinished."""
        some = (scores > -math.inf).any(dim=1)
        rows, tokens, scores = rows[some], tokens[some], scores[some]
        self.finished[rows] += (scores > -math.inf).sum(dim=1)
        count, position = self.scores.shape[1], tokens.shape[2]
        # Stable, so that of equal scores the one found first stays first.
        scores, order = torch.cat([self.scores[rows], scores], dim=1).sort(dim=1, descending=True, stable=True)
        lengths = torch.cat([self.lengths[rows], torch.full_like(tokens[:, :, 0], position)], dim=1)
        wide = torch.nn.functional.pad(tokens, (0, self.tokens.shape[2] - position))
        every, order = torch.cat([self.tokens[rows], wide], dim=1), order[:, :count]
        self.scores[rows] = scores[:, :count]
        self.lengths[rows] = lengths.gather(1, order)
        self.tokens[rows] = every.gather(1, order[:, :, None].expand(-1, -1, every.shape[2]))

    def results(self, prefix: int) -> tuple[list[list[int]], list[float]]:
        """Hypotheses and their scores; lengths do not count the prefix, and missing ones repeat the best."""
        check_finite(self.lengths[:, 0])
        place = torch.arange(self.lengths.shape[1], device=self.lengths.device) * (self.scores > -math.inf)
        lengths = self.lengths.gather(1, place)
        tokens = self.tokens.gather(1, place[:, :, None].expand_as(self.tokens)).flatten(0, 1)
        scores = (self.scores.gather(1, place) * (lengths + prefix) / lengths).flatten()
        hypotheses = zip(tokens.tolist(), lengths.flatten().tolist(), strict=True)
        return [ids[:length] for ids, length in hypotheses], scores.tolist()


@torch.inference_mode()
def beam_search(
    batch: EncodedBatch, *, beams: int, count: int = 1, change: Change | None = None
) -> tuple[list[list[int]], list[float]]:
    """Find the `count` best hypotheses of each sentence, at most as many as there are beams.

    The search is that of transformers with `early_stopping=True` and of CTranslate2: a sentence is finished with its
    first `beams` complete hypotheses, and the best is the one with the highest sum of log-probabilities over length, a
    language token counted in that length. Unlike `generate` it drops a finished sentence from the batch and moves the
    encoder's keys and values only then, which makes it faster, and it returns the scores.

    Returns the ids of each hypothesis, without `start` and with its end, and the mean log-probability of its tokens,
    as `change` left it; `count` for each sentence, the best first.
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
        # Only a hypothesis among the best `beams` may finish; at the limit all of them do.
        finishing = ended[:, :beams] | (step == longest)
        if bool(finishing.any()):
            scores = (values[:, :beams] / (step + prefix)).masked_fill(~finishing, -math.inf)
            best.add(rows, extended[:, :beams], scores)
        going = (best.finished[rows] < beams).nonzero().flatten()
        if step == longest or not len(going):
            break
        values, order = values.masked_fill(ended, -math.inf).topk(min(beams, values.shape[1]), dim=1)
        origin = (going[:, None] * tokens.shape[1] + parents.gather(1, order)[going]).flatten()
        # Beams of one sentence share what the encoder gave, so only a change of the batch moves it.
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
    """Find the `count` best continuations of the beams of each sentence: sums, beams continued, and tokens.

    `scores`, which are changed, are log-probabilities of the next token [sentence * beam, token], and `totals` their
    sums so far [sentence, beam]; `tokens` are [sentence, beam, position].
    """
    words = scores.shape[-1]
    scores = scores.add_(totals.view(-1, 1)).view(len(totals), -1)
    values, positions = scores.topk(min(count, scores.shape[1]), dim=1)
    parents = positions // words
    history = tokens.gather(1, parents[:, :, None].expand(-1, -1, tokens.shape[2]))
    return values, parents, torch.cat([history, (positions % words)[:, :, None]], dim=2)


def reorder(cache: Any, origin: torch.Tensor, moved: bool) -> None:  # noqa: ANN401
    """Select rows of a decoder's cache; those of the encoder too if the batch `moved`."""
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
    """Search groups of beams one after the other; each is penalised for tokens of earlier groups.

    Vijayakumar et al. 2016 (arXiv:1610.02424), Hamming diversity. What counts of a group is what it found in the end
    and not the beams that it followed on the way, so a group is a beam search like any other and the result of a
    sentence does not depend on its batch.

    There are `beams` hypotheses of each sentence, of which `groups` is a divisor. A token loses `diversity` of its
    log-probability, after `change`, for each earlier hypothesis that has it at the same place. Returns the ids of each
    hypothesis, with its end: of each sentence the best of each group, then the second best.
    """
    each, sentences, longest = beams // groups, len(batch.mask), batch.longest
    taken = torch.full((sentences, 0, longest), -1, device=batch.mask.device)
    found: list[list[list[int]]] = []

    def lower(scores: torch.Tensor, rows: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
        if change is not None:
            scores = change(scores, rows, tokens)
        if not taken.shape[1]:
            return scores
        words = taken[rows, :, tokens.shape[1]]
        lost = torch.where(words >= 0, -diversity, 0.0).to(scores.dtype)
        return scores.scatter_add(1, words.clamp(min=0), lost)

    for _ in range(groups):
        ids, _ = beam_search(batch, beams=each, count=each, change=lower)
        found.append(ids)
        added = torch.tensor([one + [-1] * (longest - len(one)) for one in ids], device=taken.device)
        taken = torch.cat([taken, added.view(sentences, each, longest)], dim=1)
    places = [sentence * each + rank for sentence in range(sentences) for rank in range(each)]
    return [group[place] for place in places for group in found]


@torch.inference_mode()
def score(batch: EncodedBatch, targets: list[list[int]], *, most_logits: int = 2**26) -> list[float]:
    """Mean log-probability of the tokens of one target for each sentence, by forward passes of bounded memory.

    `most_logits` are rows x positions x tokens at once: 256 MB of floats, of which there are two copies.
    """
    # Targets of similar length together, as many as keep the logits within the bound.
    order = sorted(range(len(targets)), key=lambda row: len(targets[row]))
    found, first = [0.0] * len(targets), 0
    words = batch.model.config.vocab_size
    while first < len(order):
        last = first + 1
        while last < len(order) and (last + 1 - first) * len(targets[order[last]]) * words <= most_logits:
            last += 1
        rows = order[first:last]
        part = _score_at_once(batch.take(torch.tensor(rows, device=batch.mask.device)), [targets[row] for row in rows])
        for row, value in zip(rows, part, strict=True):
            found[row] = value
        first = last
    return found


def _score_at_once(batch: EncodedBatch, targets: list[list[int]]) -> list[float]:
    device = batch.mask.device
    ids, lengths = pad_rows(targets, 0).to(device), torch.tensor([len(one) for one in targets], device=device)
    before = torch.tensor([batch.start], device=device).expand(len(ids), -1)
    logits, _ = batch.logits(torch.cat([before, ids[:, :-1]], dim=1), use_cache=False)
    logits = logits[:, len(batch.start) - 1 :]
    known = logits.log_softmax(dim=-1, dtype=torch.float32).gather(2, ids[:, :, None])[:, :, 0]
    inside = torch.arange(ids.shape[1], device=device) < lengths[:, None]
    return ((known * inside).sum(dim=1) / lengths).tolist()
