"""Targets of an encoder-decoder, sampled token by token."""

from __future__ import annotations

import hashlib

import numpy as np
import torch

from paranmt_hf.corpus.translation.beam import Change, EncodedBatch, check_finite, reorder


def uniforms(sources: list[list[int]], seed: int, count: int, longest: int) -> np.ndarray:
    """Random numbers in [0, 1) [source, sample, position] for samples of each source, from the seed and its ids alone.

    Those of the first samples do not depend on `count`.
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
    """Sample targets token by token, with random numbers [sentence, sample, position], see `uniforms`.

    Logits, after `change`, are divided by `temperature`; tokens are sampled from the smallest set of the most probable
    ones that reaches the probability `top_p` (nucleus sampling, Holtzman et al. 2020).

    Returns the ids of each sample, with its end, those of a sentence together in the order of sampling; and the mean
    log-probability of their tokens under the model as it is, whatever the temperature.
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
    check_finite(sums.isfinite())
    ids = [own[:length] for own, length in zip(tokens.tolist(), lengths.tolist(), strict=True)]
    return ids, (sums / lengths).tolist()


def sample_token(logits: torch.Tensor, numbers: torch.Tensor, temperature: float, top_p: float) -> torch.Tensor:
    """Sample a token [row] of logits [row, token] by a random number in [0, 1) for each row.

    Tokens are in the order of the vocabulary, in which a rounding error of a probability moves no other token.
    """
    shares = (logits.double() / temperature).softmax(dim=-1)
    if top_p < 1:
        ordered, order = shares.sort(dim=-1, descending=True, stable=True)
        # A token stays if those before it do not reach top_p yet; the first one always does.
        kept = ordered.cumsum(dim=-1) - ordered < top_p
        shares = torch.zeros_like(shares).scatter(1, order, ordered * kept)
    sums = shares.cumsum(dim=-1)
    found = torch.searchsorted(sums, (numbers * sums[:, -1])[:, None], right=True)[:, 0]
    return found.clamp(max=logits.shape[-1] - 1)


def best_first(ids: list[list[int]], scores: list[float], count: int) -> tuple[list[list[int]], list[float]]:
    """Sort the `count` hypotheses of each sentence by their scores, the highest first."""
    order: list[int] = []
    for first in range(0, len(ids), count):
        order += sorted(range(first, first + count), key=lambda place: -scores[place])
    return [ids[index] for index in order], [scores[index] for index in order]
