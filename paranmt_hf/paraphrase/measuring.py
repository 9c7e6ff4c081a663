"""Loss, perplexity and BLEU of held-out pairs; of trees how many have the template that was asked for."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import torch
from torch import nn

from paranmt_hf.paraphrase.config import ParaphraseConfig
from paranmt_hf.paraphrase.loading import EncoderDecoder
from paranmt_hf.paraphrase.modeling_paranmt_lstm import IGNORED, shifted, token_loss
from paranmt_hf.paraphrase.piece_store import PieceStore, collate
from paranmt_hf.paraphrase.record import Measured
from paranmt_hf.paraphrase.search import search
from paranmt_hf.util.batches import token_batches
from paranmt_hf.util.optional import available

# Pieces of a batch that is searched, where memory is needed for several candidates of each.
SEARCH_TOKENS = 2000


def logits_of(own: EncoderDecoder, batch: dict[str, torch.Tensor], wrapped: nn.Module | None = None) -> torch.Tensor:
    """Logits [sentence, position, piece] of a batch's targets; `wrapped` is the model as a trainer calls it."""
    inputs = shifted(batch["labels"], own.start, own.pad)
    logits: torch.Tensor = (wrapped or own.model)(
        input_ids=batch["input_ids"],
        attention_mask=batch["attention_mask"],
        **({"control_ids": batch["control_ids"]} if "control_ids" in batch else {}),
        decoder_input_ids=inputs,
        use_cache=False,
    ).logits
    return logits


@torch.inference_mode()
def measure(
    own: EncoderDecoder,
    store: PieceStore,
    *,
    most: int,
    budget: int,
    longest: int,
    step: int,
    template_of: Callable[[str], str] | None = None,
) -> Measured:
    """Measure a model on held-out pairs.

    Args:
        own: The model; it is as it was afterwards.
        store: The pairs.
        most: Most of them that are measured, spread evenly.
        budget: Most that pairs of a batch times pieces of the longest may come to.
        longest: Most pieces that are generated.
        step: After how many steps.
        template_of: Where targets are trees and controls templates: gives the template of a tree. In place of BLEU
            stands how many of the most probable trees have theirs.
    """
    chosen = np.unique(np.linspace(0, len(store) - 1, min(most, len(store))).round().astype(np.int64))
    training = own.model.training
    own.model.eval()
    total, count = 0.0, 0
    lengths = store.lengths[chosen]
    sides = store.take(chosen)
    try:
        for batch in token_batches(lengths, budget):
            made = collate(*([side[row] for row in batch] for side in sides), pad=own.pad)
            made = {name: value.to(own.model.device) for name, value in made.items()}
            pieces = int((made["labels"] != IGNORED).sum())
            total += float(token_loss(logits_of(own, made), made["labels"])) * pieces
            count += pieces
        bleu = match = None
        if template_of is not None:
            match = _template_match(own, _most_probable(own, sides, lengths, longest), sides[2], template_of)
        elif available("sacrebleu"):
            import sacrebleu

            wanted = own.join([ids.tolist() for ids in sides[1]])
            found = _most_probable(own, sides, lengths, longest)
            bleu = round(float(sacrebleu.corpus_bleu(found, [wanted]).score), 4)
    finally:
        own.model.train(training)
    loss = total / count
    return Measured(step, loss, math.exp(min(loss, 700.0)), bleu, match)


def _most_probable(own: EncoderDecoder, sides: list[list[np.ndarray]], lengths: np.ndarray, longest: int) -> list[str]:
    """What the most probable pieces of each target come to."""
    greedy, found = ParaphraseConfig(beams=1, max_length=longest), [""] * len(lengths)
    sources, _, *controls = sides
    for batch in token_batches(lengths, SEARCH_TOKENS):
        rows = [[side[row].tolist() for row in batch] for side in (sources, *controls)]
        best = search(own, rows[0], greedy, *rows[1:])
        for row, text in zip(batch, own.join([candidates[0] for candidates in best]), strict=True):
            found[row] = text
    return found


def _template_match(
    own: EncoderDecoder, trees: list[str], controls: list[np.ndarray], template_of: Callable[[str], str]
) -> float:
    """Share of trees, from 0 to 1, whose template is the control."""
    asked = own.controls.batch_decode([ids.tolist() for ids in controls], skip_special_tokens=True)
    return float(np.mean([template_of(tree) == template for tree, template in zip(trees, asked, strict=True)]))
