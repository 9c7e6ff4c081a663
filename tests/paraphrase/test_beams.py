"""Our beam search gives what `generate` gives."""

import pytest
import torch
from transformers import GenerationConfig, LogitsProcessorList

from paranmt_hf.paraphrase.beams import beam_search
from paranmt_hf.paraphrase.config import ParaphraseConfig
from paranmt_hf.paraphrase.loading import EncoderDecoder
from paranmt_hf.paraphrase.search import OtherGroups, search
from tests.paraphrase.test_model import PAD, START, make

SENTENCES, LONGEST = 12, 9


@pytest.fixture(scope="module")
def model():
    """One that ends sentences at many lengths."""
    own = make(seed=3, init_scale=3.0)
    own.lm_head.bias.data[2] += 1.0
    return own


@pytest.fixture(scope="module")
def batch(model):
    torch.manual_seed(4)
    ids = torch.randint(3, 40, (SENTENCES, 8))
    mask = (torch.arange(8) < torch.randint(1, 9, (SENTENCES, 1))).long()
    return ids.masked_fill(mask == 0, PAD), mask


def generated(model, ids, mask, beams, ends, others=None):
    found = model.generate(
        input_ids=ids,
        attention_mask=mask,
        generation_config=GenerationConfig(
            num_beams=beams,
            num_return_sequences=beams,
            max_new_tokens=LONGEST,
            eos_token_id=ends,
            pad_token_id=PAD,
            decoder_start_token_id=START,
            **({"early_stopping": True} if beams > 1 else {}),
        ),
        logits_processor=LogitsProcessorList([others] if others is not None else []),
    )
    rows = [_whole(row[1:], ends) for row in found.tolist()]
    return [rows[first : first + beams] for first in range(0, len(rows), beams)]


def _whole(ids, ends):
    """Ids up to the first end."""
    return ids[: next((place + 1 for place, piece in enumerate(ids) if piece in ends), len(ids))]


@pytest.mark.parametrize("ends", [[2], [2, 5, 11]], ids=["one end", "three ends"])
@pytest.mark.parametrize("beams", [1, 3, 10])
@torch.inference_mode()
def test_all_hypotheses_are_those_of_generate(model, batch, beams, ends):
    ids, mask = batch
    encoded = model.encoder(ids, mask).last_hidden_state
    found = beam_search(model, encoded, mask, start=START, ends=ends, beams=beams, longest=LONGEST)
    assert found == generated(model, ids, mask, beams, ends)
    lengths = {len(own) for candidates in found for own in candidates}
    assert len(lengths) >= 3, "sentences end at several lengths, so that finished ones are dropped"


@torch.inference_mode()
def test_groups_are_kept_apart_as_by_generate(model, batch):
    ids, mask = batch
    encoded = model.encoder(ids, mask).last_hidden_state
    ours, theirs = OtherGroups(1.5, 3), OtherGroups(1.5, 3)
    before = None
    for _ in range(3):
        found = beam_search(model, encoded, mask, start=START, ends=[2], beams=3, longest=LONGEST, change=ours.lower)
        assert found == generated(model, ids, mask, 3, [2], theirs)
        assert found != before
        before = found
        ours.add(found)
        theirs.add(found)


@torch.inference_mode()
def test_the_limit_and_several_ways(model, batch):
    ids, mask = batch
    encoded = model.encoder(ids, mask).last_hidden_state
    found = beam_search(model, encoded, mask, start=START, ends=[39], beams=2, longest=4)
    assert max(len(own) for candidates in found for own in candidates) == 4
    own = EncoderDecoder(model, None)
    sources = [row[:length].tolist() for row, length in zip(ids, mask.sum(1).tolist(), strict=True)]
    for config in (ParaphraseConfig(beams=3, max_length=7), ParaphraseConfig(beams=6, groups=3, max_length=7)):
        fast = search(own, sources, config)
        # A folder that forbids a piece is searched by generate().
        model.generation_config.bad_words_ids = [[38, 38, 38, 38]]
        try:
            assert search(own, sources, config) == fast
        finally:
            model.generation_config.bad_words_ids = None
