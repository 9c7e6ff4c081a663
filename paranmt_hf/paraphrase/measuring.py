"""Loss, perplexity and BLEU of held-out pairs."""

from __future__ import annotations

import math

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
        decoder_input_ids=inputs,
        use_cache=False,
    ).logits
    return logits


@torch.inference_mode()
def measure(own: EncoderDecoder, store: PieceStore, *, most: int, budget: int, longest: int, step: int) -> Measured:
    """Measure a model on held-out pairs.

    Args:
        own: The model; it is as it was afterwards.
        store: The pairs.
        most: Most of them that are measured, spread evenly.
        budget: Most that pairs of a batch times pieces of the longest may come to.
        longest: Most pieces that are generated.
        step: After how many steps.
    """
    chosen = np.unique(np.linspace(0, len(store) - 1, min(most, len(store))).round().astype(np.int64))
    training = own.model.training
    own.model.eval()
    total, count = 0.0, 0
    lengths = store.lengths[chosen]
    found: list[str] = [""] * len(chosen)
    sources, targets = store.take(chosen)
    try:
        for batch in token_batches(lengths, budget):
            made = collate([sources[row] for row in batch], [targets[row] for row in batch], pad=own.pad)
            made = {name: value.to(own.model.device) for name, value in made.items()}
            pieces = int((made["labels"] != IGNORED).sum())
            total += float(token_loss(logits_of(own, made), made["labels"])) * pieces
            count += pieces
        if available("sacrebleu"):
            greedy = ParaphraseConfig(beams=1, max_length=longest)
            for batch in token_batches(lengths, SEARCH_TOKENS):
                best = search(own, [sources[row].tolist() for row in batch], greedy)
                for row, text in zip(batch, own.join([candidates[0] for candidates in best]), strict=True):
                    found[row] = text
    finally:
        own.model.train(training)
    bleu = None
    if available("sacrebleu"):
        import sacrebleu

        wanted = own.join([ids.tolist() for ids in targets])
        bleu = round(float(sacrebleu.corpus_bleu(found, [wanted]).score), 4)
    loss = total / count
    return Measured(step, loss, math.exp(min(loss, 700.0)), bleu)
