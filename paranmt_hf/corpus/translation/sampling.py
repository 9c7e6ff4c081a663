"""Sampling: targets of an encoder-decoder are drawn token by token."""

from __future__ import annotations

import hashlib

import numpy as np
import torch

from paranmt_hf.corpus.translation.beam import Change, EncodedBatch, reorder
from paranmt_hf.errors import InputError


def uniforms(sources: list[list[int]], seed: int, count: int, longest: int) -> np.ndarray:
    """Return random numbers in [0, 1), float64 [source, sample, position], for samples of each source.

    The numbers of a source depend only on the seed and its ids, not on other sources. Those of the first samples do
    not depend on `count`.

    Args:
        sources: Ids of each source.
        seed: Seed of the samples.
        count: Number of samples of each source.
        longest: Number of positions.
    """
    drawn = np.empty((len(sources), count, longest))
    for row, pieces in enumerate(sources):
        content = np.array([seed, *pieces], dtype="<i8").tobytes()
        key = int.from_bytes(hashlib.blake2b(content, digest_size=16).digest(), "little")
        drawn[row] = np.random.Generator(np.random.Philox(key=key)).random((count, longest))
    return drawn


@torch.inference_mode()
def sample(
    batch: EncodedBatch, numbers: np.ndarray, *, temperature: float, top_p: float, change: Change | None = None
) -> tuple[list[list[int]], list[float]]:
    """Sample targets of each sentence, token by token.

    Args:
        batch: The encoded sentences.
        numbers: Random numbers [sentence, sample, position]; see `uniforms`.
        temperature: Divides the logits, after `change`.
        top_p: Tokens are drawn from the smallest set of the most probable ones that together reach this probability
            (nucleus sampling, Holtzman et al. 2020).
        change: Changes the logits before a token is drawn; None for no change.

    Returns:
        Ids of each sample with its end, the samples of a sentence one after the other; and the mean log-probability of
        the tokens of each, under the model without temperature, `top_p` and `change`.

    Raises:
        InputError: If the model gives no finite probabilities.
    """
    sentences, count, longest = numbers.shape
    device, ends = batch.mask.device, torch.tensor(batch.ends, device=batch.mask.device)
    rows = torch.arange(sentences * count, device=device)
    random = torch.from_numpy(numbers.reshape(-1, longest)).to(device)
    batch = batch.take(rows // count)
    inputs = torch.tensor([batch.start], device=device).repeat(len(rows), 1)
    tokens = inputs.new_full((len(rows), longest), batch.ends[0])
    lengths, sums = inputs.new_zeros(len(rows)), torch.zeros(len(rows), device=device)
    cache = None
    for step in range(longest):
        logits, cache = batch.logits(inputs, cache)
        logits = logits[:, -1]
        wanted = change(logits, rows // count, tokens[rows, :step]) if change is not None else logits
        chosen = sample_token(wanted, random[rows, step], temperature, top_p)
        known = logits.log_softmax(dim=-1, dtype=torch.float32)
        sums[rows] += known.gather(1, chosen[:, None])[:, 0]
        lengths[rows] += 1
        tokens[rows, step] = chosen
        going = (~torch.isin(chosen, ends)).nonzero().flatten()
        if not len(going):
            break
        if len(going) < len(rows):
            reorder(cache, going, True)
            batch, rows, chosen = batch.take(going), rows[going], chosen[going]
        inputs = chosen[:, None]
    if not torch.isfinite(sums).all():
        raise InputError("the model gives no finite probabilities in this dtype; use bfloat16 or float32")
    ids = [row[:length] for row, length in zip(tokens.tolist(), lengths.tolist(), strict=True)]
    return ids, (sums / lengths).tolist()


def sample_token(logits: torch.Tensor, numbers: torch.Tensor, temperature: float, top_p: float) -> torch.Tensor:
    """Draw a token [row] from logits [row, token] by a random number in [0, 1) for each row.

    Tokens are summed up in the order of the vocabulary, so that a rounding error of one probability shifts no other
    token.
    """
    shares = (logits.double() / temperature).softmax(dim=-1)
    if top_p < 1:
        ordered, order = shares.sort(dim=-1, descending=True, stable=True)
        # A token is kept if more probable ones do not reach `top_p` together; so the most probable one always is.
        kept = ordered.cumsum(dim=-1) - ordered < top_p
        shares = torch.zeros_like(shares).scatter(1, order, ordered * kept)
    sums = shares.cumsum(dim=-1)
    tokens = torch.searchsorted(sums, (numbers * sums[:, -1])[:, None], right=True)[:, 0]
    return tokens.clamp(max=logits.shape[-1] - 1)


def best_first(ids: list[list[int]], scores: list[float], count: int) -> tuple[list[list[int]], list[float]]:
    """Sort the hypotheses of each sentence by their scores, the highest first.

    Args:
        ids: Ids of the hypotheses, `count` for each sentence.
        scores: Their scores.
        count: Number of hypotheses of each sentence.

    Returns:
        The ids and the scores in the new order.
    """
    order: list[int] = []
    for first in range(0, len(ids), count):
        order += sorted(range(first, first + count), key=lambda index: -scores[index])
    return [ids[index] for index in order], [scores[index] for index in order]
