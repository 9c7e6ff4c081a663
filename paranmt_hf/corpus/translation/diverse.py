"""Several hypotheses that differ: diverse beams, and draws by chance, over an encoder-decoder of transformers."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import torch
from transformers.cache_utils import DynamicCache, EncoderDecoderCache
from transformers.modeling_outputs import BaseModelOutput

from paranmt_hf.corpus.translation.beam_search import beam_search
from paranmt_hf.errors import InputError

Found = tuple[list[list[int]], list[float]]
# Most numbers of rows x positions x words that are computed at once: 256 MB of floats, of which there are two copies.
LOGITS = 2**26


def diverse_search(
    model: Any,  # noqa: ANN401
    source: torch.Tensor,
    mask: torch.Tensor,
    *,
    start: list[int],
    end: int,
    beam: int,
    longest: int,
    count: int,
    groups: int,
    diversity: float,
) -> Found:
    """Search groups of beams one after the other, each kept from what those before it found.

    Vijayakumar et al. 2016 (arXiv:1610.02424), Hamming diversity. What counts of a group is what it found in the end
    and not the beams that it followed on the way, so a group is a beam search like any other and a sentence does not
    depend on its batch.

    Args:
        model: As of `beam_search`, like `source`, `mask`, `start`, `end` and `longest`.
        source: As above.
        mask: As above.
        start: As above.
        end: As above.
        beam: Beams of all groups together.
        longest: As above.
        count: Hypotheses of each sentence; the groups give theirs in turn.
        groups: Number of groups, a divisor of `beam`.
        diversity: What the log-probability of a word loses for each earlier hypothesis that has it at the same place.

    Returns:
        As `beam_search`: ids, and the mean log-probability of their tokens under the model alone.
    """
    each, sentences = beam // groups, len(source)
    taken = torch.full((sentences, 0, longest), -1, device=source.device)
    found: list[list[list[int]]] = []

    def lower(scores: torch.Tensor, rows: torch.Tensor, place: int) -> torch.Tensor:
        words = taken[rows, :, place]
        lost = torch.where(words >= 0, -diversity, 0.0).to(scores.dtype)
        return scores.scatter_add(1, words.clamp(min=0), lost)

    for _ in range(groups):
        options: dict[str, Any] = {"start": start, "end": end, "beam": each, "longest": longest, "count": each}
        ids, _ = beam_search(model, source, mask, **options, lower=lower if taken.shape[1] else None)
        found.append(ids)
        added = torch.tensor([one + [-1] * (longest - len(one)) for one in ids], device=source.device)
        taken = torch.cat([taken, added.view(sentences, each, longest)], dim=1)
    # The best of each group first, then the second best.
    chosen = [
        [found[group][sentence * each + rank] for rank in range(each) for group in range(groups)][:count]
        for sentence in range(sentences)
    ]
    flat = [ids for own in chosen for ids in own]
    rows = torch.arange(sentences, device=source.device).repeat_interleave(count)
    scores = _scores(model, source[rows], mask[rows], flat, start)
    return _best_first(flat, scores, count)


@torch.inference_mode()
def _scores(
    model: Any,  # noqa: ANN401
    source: torch.Tensor,
    mask: torch.Tensor,
    targets: list[list[int]],
    start: list[int],
) -> list[float]:
    """Mean log-probability of the tokens of each target [row], by forward passes of bounded memory."""
    # Those of similar length together, so many that the logits stay within the bound.
    order = sorted(range(len(targets)), key=lambda row: len(targets[row]))
    found, first = [0.0] * len(targets), 0
    words = model.config.vocab_size
    while first < len(order):
        last = first + 1
        while last < len(order) and (last + 1 - first) * len(targets[order[last]]) * words <= LOGITS:
            last += 1
        rows = order[first:last]
        part = _scores_at_once(model, source[rows], mask[rows], [targets[row] for row in rows], start)
        for row, score in zip(rows, part, strict=True):
            found[row] = score
        first = last
    return found


def _scores_at_once(
    model: Any,  # noqa: ANN401
    source: torch.Tensor,
    mask: torch.Tensor,
    targets: list[list[int]],
    start: list[int],
) -> list[float]:
    longest = max(map(len, targets))
    ids = torch.tensor([one + [0] * (longest - len(one)) for one in targets], device=source.device)
    lengths = torch.tensor([len(one) for one in targets], device=source.device)
    before = torch.tensor([start], device=source.device).expand(len(ids), -1)
    inputs = torch.cat([before, ids[:, :-1]], dim=1)
    logits = model(input_ids=source, attention_mask=mask, decoder_input_ids=inputs, use_cache=False).logits
    known = logits[:, len(start) - 1 :].log_softmax(dim=-1, dtype=torch.float32).gather(2, ids[:, :, None])[:, :, 0]
    inside = torch.arange(longest, device=ids.device) < lengths[:, None]
    return ((known * inside).sum(dim=1) / lengths).tolist()


def uniforms(sources: list[list[int]], seed: int, count: int, longest: int) -> np.ndarray:
    """Draw the numbers that decide the hypotheses of each source, from the seed and its pieces alone.

    Args:
        sources: Pieces of each source.
        seed: Another seed, other numbers.
        count: Hypotheses of each.
        longest: Most target tokens.

    Returns:
        Numbers [source, hypothesis, position] from 0 up to 1; those of the first hypotheses do not depend on `count`.
    """
    drawn = np.empty((len(sources), count, longest))
    for row, pieces in enumerate(sources):
        content = np.array([seed, *pieces], dtype="<i8").tobytes()
        key = int.from_bytes(hashlib.blake2b(content, digest_size=16).digest(), "little")
        drawn[row] = np.random.Generator(np.random.Philox(key=key)).random((count, longest))
    return drawn


@torch.inference_mode()
def draw(
    model: Any,  # noqa: ANN401
    source: torch.Tensor,
    mask: torch.Tensor,
    numbers: np.ndarray,
    *,
    start: list[int],
    end: int,
    temperature: float,
    top_p: float,
) -> Found:
    """Draw hypotheses word by word.

    Args:
        model: As of `beam_search`, like `source`, `mask`, `start` and `end`.
        source: As above.
        mask: As above.
        numbers: What decides, [sentence, hypothesis, position], see `uniforms`.
        start: As above.
        end: As above.
        temperature: Divides the logits.
        top_p: Words are drawn from the smallest set of the most probable ones that reaches this probability (nucleus
            sampling, Holtzman et al. 2020).

    Returns:
        As `beam_search`: ids, and the mean log-probability of their tokens under the model as it is, whatever the
        temperature; those of each sentence together, the best first.
    """
    sentences, count, longest = numbers.shape
    rows = torch.arange(sentences * count, device=source.device)
    random = torch.from_numpy(numbers.reshape(-1, longest)).to(source.device)
    encoded = model.get_encoder()(input_ids=source, attention_mask=mask).last_hidden_state
    encoded, mask = (value.repeat_interleave(count, dim=0) for value in (encoded, mask))
    cache = EncoderDecoderCache(DynamicCache(), DynamicCache())
    inputs = torch.tensor([start], device=source.device).repeat(len(rows), 1)
    tokens = inputs.new_full((len(rows), longest), end)
    lengths, sums = inputs.new_zeros(len(rows)), torch.zeros(len(rows), device=source.device)
    for step in range(longest):
        logits = model(
            encoder_outputs=BaseModelOutput(last_hidden_state=encoded),
            attention_mask=mask,
            decoder_input_ids=inputs,
            past_key_values=cache,
            use_cache=True,
        ).logits[:, -1]
        chosen = _drawn(logits, random[rows, step], temperature, top_p)
        known = logits.log_softmax(dim=-1, dtype=torch.float32)
        sums[rows] += known.gather(1, chosen[:, None])[:, 0]
        lengths[rows] += 1
        tokens[rows, step] = chosen
        going = (chosen != end).nonzero().flatten()
        if not len(going):
            break
        if len(going) < len(rows):
            cache.reorder_cache(going)
            encoded, mask, rows, chosen = encoded[going], mask[going], rows[going], chosen[going]
        inputs = chosen[:, None]
    if not torch.isfinite(sums).all():
        raise InputError("the model gives no finite probabilities in this dtype; take bfloat16 or float32")
    flat = [ids[:length] for ids, length in zip(tokens.tolist(), lengths.tolist(), strict=True)]
    return _best_first(flat, (sums / lengths).tolist(), count)


def _drawn(logits: torch.Tensor, numbers: torch.Tensor, temperature: float, top_p: float) -> torch.Tensor:
    """Draw a word [row] by a number from 0 to 1 [row].

    The words stand in the order of the vocabulary, in which a rounding error of a probability moves no other word.
    """
    shares = (logits.double() / temperature).softmax(dim=-1)
    if top_p < 1:
        ordered, order = shares.sort(dim=-1, descending=True, stable=True)
        # A word stays if those before it do not reach top_p yet; the first one always does.
        kept = ordered.cumsum(dim=-1) - ordered < top_p
        shares = torch.zeros_like(shares).scatter(1, order, ordered * kept)
    sums = shares.cumsum(dim=-1)
    found = torch.searchsorted(sums, (numbers * sums[:, -1])[:, None], right=True)[:, 0]
    return found.clamp(max=logits.shape[-1] - 1)


def _best_first(ids: list[list[int]], scores: list[float], count: int) -> Found:
    """Bring the hypotheses of each sentence into the order of their scores."""
    order = [
        first + place
        for first in range(0, len(ids), count)
        for place in sorted(range(count), key=lambda place, first=first: -scores[first + place])  # type: ignore[misc]
    ]
    return [ids[index] for index in order], [scores[index] for index in order]
