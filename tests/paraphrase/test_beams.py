"""Our beam search gives what `generate` gives."""

import numpy as np
import pytest
import torch
from transformers import GenerationConfig, LogitsProcessor, LogitsProcessorList

from paranmt_hf import ParaphraseConfig
from paranmt_hf.corpus.translation.beam import beam_search, diverse_beam_search, encode
from paranmt_hf.corpus.translation.sampling import sample
from paranmt_hf.paraphrase.models import EncoderDecoder
from tests.paraphrase.test_models import PAD, START, make

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


def encoded(model, batch, ends, longest=LONGEST):
    ids, mask = batch
    sources = [row[:length].tolist() for row, length in zip(ids, mask.sum(1).tolist(), strict=True)]
    return encode(model, sources, pad=PAD, start=[START], ends=ends, longest=longest)


@pytest.mark.parametrize("ends", [[2], [2, 5, 11]], ids=["one end", "three ends"])
@pytest.mark.parametrize("beams", [1, 3, 10])
def test_all_hypotheses_are_those_of_generate(model, batch, beams, ends):
    found, _ = beam_search(encoded(model, batch, ends), beams=beams, count=beams)
    assert found == [ids for own in generated(model, *batch, beams, ends) for ids in own]
    assert len(set(map(len, found))) >= 3, "sentences end at several lengths, so that finished ones are dropped"


class OtherGroups(LogitsProcessor):
    """Lowers, for each beam of `generate`, what its sentence's hypotheses so far have at the same place."""

    def __init__(self, rate, beams):
        self.rate, self.beams, self.found = rate, beams, [[] for _ in range(SENTENCES)]

    def __call__(self, input_ids, scores):
        scores, place = scores.clone(), input_ids.shape[1] - 1
        for beam in range(len(scores)):
            for target in self.found[beam // self.beams]:
                if place < len(target):
                    scores[beam, target[place]] -= self.rate
        return scores


def test_groups_are_kept_apart_as_by_generate(model, batch):
    found = diverse_beam_search(encoded(model, batch, [2]), beams=9, groups=3, diversity=1.5)
    others, before = OtherGroups(1.5, 3), None
    for group in range(3):
        theirs = generated(model, *batch, 3, [2], others)
        # Of each sentence the best of each group, then the second best.
        assert [[found[9 * row + 3 * rank + group] for rank in range(3)] for row in range(SENTENCES)] == theirs
        assert theirs != before
        before = theirs
        others.found = [own + new for own, new in zip(others.found, theirs, strict=True)]


def test_the_limit(model, batch):
    found, _ = beam_search(encoded(model, batch, [39], longest=4), beams=2, count=2)
    assert max(map(len, found)) == 4


def test_bad_words_and_a_forced_first_word_are_those_of_generate(model, batch):
    """What the folder of a model says about its targets, in each kind of search."""
    own, sources = EncoderDecoder(model, None), [[5, 6, 7, 2], [9, 2]]
    model.generation_config.bad_words_ids, model.generation_config.forced_bos_token_id = [[7], [8, 9]], 11
    try:
        for row, source in enumerate(sources):
            expected = model.generate(
                input_ids=torch.tensor([source]),
                num_beams=3,
                num_return_sequences=3,
                max_new_tokens=7,
                early_stopping=True,
                max_length=None,
            )
            wanted = [_whole(ids[1:], [2]) for ids in expected.tolist()]
            wanted = [ids[:-1] if ids[-1] == 2 else ids for ids in wanted]
            assert own.search(sources, ParaphraseConfig(beams=3, max_length=7))[row] == wanted
        for config in (
            ParaphraseConfig(beams=4, groups=2, max_length=7),
            ParaphraseConfig(n=4, sample=True, max_length=7),
        ):
            for ids in [ids for found in own.search(sources, config) for ids in found]:
                assert ids[0] == 11 and 7 not in ids and (8, 9) not in zip(ids, ids[1:], strict=False)
    finally:
        model.generation_config.bad_words_ids = model.generation_config.forced_bos_token_id = None


def test_samples_depend_on_seed_and_source_alone(model):
    own = EncoderDecoder(model, None)
    sources = [[5, 6, 7, 2], [9, 2], [8, 8, 2]]
    config = ParaphraseConfig(n=3, sample=True, max_length=7)
    together = own.search(sources, config)
    assert [own.search([source], config)[0] for source in sources] == together
    assert own.search(sources, ParaphraseConfig(n=3, sample=True, max_length=7, seed=2)) != together


def test_pieces_are_sampled_as_often_as_they_are_probable(model):
    source = [[5, 6, 7, 2]]
    numbers = (np.arange(2000)[None, :, None] + 0.5) / 2000
    batch = encode(model, source, pad=PAD, start=[START], ends=[2], longest=1)
    ids, _ = sample(batch, numbers, temperature=1.0, top_p=1.0)
    with torch.inference_mode():
        logits = model(input_ids=torch.tensor(source), decoder_input_ids=torch.tensor([[START]])).logits[0, -1]
    expected = logits.softmax(-1)
    found = torch.bincount(torch.tensor([own[0] for own in ids]), minlength=len(expected)) / 2000
    assert (found - expected).abs().max() < 1e-3
