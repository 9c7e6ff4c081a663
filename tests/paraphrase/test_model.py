"""The encoder-decoder: attention by hand, padding, cache, beams, files."""

import os
import subprocess
import sys

import pytest
import torch
from torch.nn import functional
from transformers import AutoConfig, AutoModelForSeq2SeqLM

from paranmt_hf.paraphrase import loading  # noqa: F401 - registers the models
from paranmt_hf.paraphrase.modeling_paranmt_lstm import (
    ParaNMTLstmConfig,
    ParaNMTLstmForConditionalGeneration,
    shifted,
    token_loss,
)

PAD, START, END = 0, 1, 2


def make(seed=0, **settings):
    torch.manual_seed(seed)
    sizes = {"vocab_size": 40, "embedding_size": 12, "hidden_size": 16, "init_scale": 2.0}
    return ParaNMTLstmForConditionalGeneration(ParaNMTLstmConfig(**{**sizes, **settings})).eval()


@pytest.fixture(scope="module")
def model():
    return make(encoder_layers=2)


@pytest.fixture
def source():
    """Three sentences of different lengths, filled up on the right, and their mask."""
    torch.manual_seed(5)
    ids = torch.randint(3, 40, (3, 7))
    lengths = torch.tensor([7, 4, 2])
    mask = (torch.arange(7) < lengths[:, None]).long()
    return ids.masked_fill(mask == 0, PAD), mask


def test_padding_on_either_side_changes_nothing(model, source):
    ids, mask = source
    target = torch.randint(3, 40, (3, 5))
    whole = model(input_ids=ids, attention_mask=mask, decoder_input_ids=target).logits
    for row in range(3):
        length = int(mask[row].sum())
        alone = model(input_ids=ids[row : row + 1, :length], decoder_input_ids=target[row : row + 1]).logits
        assert torch.allclose(whole[row], alone[0], atol=1e-6)
    left = torch.stack([row.roll(7 - int(own.sum())) for row, own in zip(ids, mask, strict=True)])
    moved = model(input_ids=left, attention_mask=mask.flip(1), decoder_input_ids=target).logits
    assert torch.allclose(whole, moved, atol=1e-6)


def test_encoder_is_the_bidirectional_lstm_of_torch(source):
    model, (ids, mask) = make(), source
    reference = torch.nn.LSTM(12, 8, batch_first=True, bidirectional=True)
    for name, weight in model.encoder.forwards[0].named_parameters():
        getattr(reference, name).data.copy_(weight)
    for name, weight in model.encoder.backwards[0].named_parameters():
        getattr(reference, f"{name}_reverse").data.copy_(weight)
    packed = torch.nn.utils.rnn.pack_padded_sequence(
        model.encoder.embed(ids), mask.sum(1), batch_first=True, enforce_sorted=False
    )
    expected, _ = torch.nn.utils.rnn.pad_packed_sequence(reference(packed)[0], batch_first=True)
    assert torch.allclose(model.encoder(ids, mask).last_hidden_state, expected, atol=1e-6)


def test_attention_is_a_softmax_of_bilinear_products(model, source):
    ids, mask = source
    target = torch.randint(3, 40, (3, 5))
    encoded = model.encoder(ids, mask).last_hidden_state
    state = model.decoder.start(encoded, mask.bool())
    states, _ = model.decoder.lstm(model.encoder.embed(target), (state.hidden, state.cell))
    product = torch.einsum("bth,hk,bsk->bts", states, model.decoder.bilinear.weight, encoded)
    expected = product.masked_fill(mask[:, None] == 0, -torch.inf).softmax(-1)
    found = model(input_ids=ids, attention_mask=mask, decoder_input_ids=target, output_attentions=True)
    assert torch.allclose(found.cross_attentions[0], expected, atol=1e-6)
    assert model.decoder.lstm.num_layers == 2


def test_steps_with_a_state_are_all_positions_at_once(model, source):
    ids, mask = source
    target = torch.randint(3, 40, (3, 6))
    whole = model(input_ids=ids, attention_mask=mask, decoder_input_ids=target).logits
    state, steps = None, []
    for position in range(6):
        step = model(
            input_ids=ids,
            attention_mask=mask,
            decoder_input_ids=target[:, position : position + 1],
            past_key_values=state,
            use_cache=True,
        )
        state = step.past_key_values
        steps.append(step.logits)
    assert state.get_seq_length() == 6
    assert torch.allclose(whole, torch.cat(steps, dim=1), atol=1e-6)


def brute_force(model, ids, mask, beams, longest):
    """Beam search over whole sequences, one sentence at a time, without a state: sum of log-probabilities / length."""
    best = []
    for row in range(len(ids)):
        running, ended = [([START], 0.0)], []
        for _ in range(longest):
            found = []
            for tokens, total in running:
                logits = (
                    model(
                        input_ids=ids[row : row + 1],
                        attention_mask=mask[row : row + 1],
                        decoder_input_ids=torch.tensor([tokens]),
                    )
                    .logits[0, -1]
                    .log_softmax(-1)
                )
                found += [([*tokens, piece], total + value) for piece, value in enumerate(logits.tolist())]
            found.sort(key=lambda item: -item[1])
            for tokens, total in found[:beams]:
                if tokens[-1] == END:
                    ended.append((total / (len(tokens) - 1), tokens))
            running = [item for item in found if item[0][-1] != END][:beams]
            if len(ended) >= beams:
                break
        else:
            ended += [(total / (len(tokens) - 1), tokens) for tokens, total in running]
        best.append(max(ended)[1])
    return best


@torch.no_grad()
def test_beam_search_is_that_over_whole_sequences(source):
    model, (ids, mask) = make(seed=3, init_scale=3.0), source
    longest = 6
    found = model.generate(
        input_ids=ids, attention_mask=mask, num_beams=3, max_new_tokens=longest, do_sample=False, early_stopping=True
    )
    expected = brute_force(model, ids, mask, 3, longest)
    assert [[piece for piece in row if piece != PAD] for row in found.tolist()] == expected
    assert len({tuple(row) for row in expected}) == 3


def test_generation_of_a_batch_is_that_of_each_sentence_with_and_without_a_state(model, source):
    ids, mask = source
    for options in ({"num_beams": 1}, {"num_beams": 4}, {"num_beams": 4, "num_return_sequences": 3}):
        given = {"max_new_tokens": 8, "do_sample": False, **options}
        whole = model.generate(input_ids=ids, attention_mask=mask, **given)
        assert torch.equal(whole, model.generate(input_ids=ids, attention_mask=mask, use_cache=False, **given))
        count = options.get("num_return_sequences", 1)
        for row in range(3):
            length = int(mask[row].sum())
            alone = model.generate(input_ids=ids[row : row + 1, :length], **given)
            own = whole[row * count : (row + 1) * count, : alone.shape[1]]
            assert torch.equal(own, alone)


def test_sampling_follows_the_seed_and_the_probabilities(model, source):
    ids, mask = source
    drawn = []
    for _ in range(2):
        torch.manual_seed(11)
        drawn.append(model.generate(input_ids=ids, attention_mask=mask, do_sample=True, max_new_tokens=5, top_p=0.9))
    assert torch.equal(*drawn)
    torch.manual_seed(0)
    many = model.generate(
        input_ids=ids[:1], do_sample=True, top_k=0, max_new_tokens=1, num_return_sequences=4000, num_beams=1
    )
    expected = model(input_ids=ids[:1], decoder_input_ids=torch.tensor([[START]])).logits[0, -1].softmax(-1)
    counted = torch.bincount(many[:, 1], minlength=40) / 4000
    assert torch.allclose(counted, expected.detach(), atol=0.03)


def test_loss_by_hand():
    logits = torch.tensor([[[0.0, 1.0, 2.0], [3.0, 0.0, 0.0], [9.0, 9.0, 9.0]]])
    labels = torch.tensor([[2, 0, -100]])
    log = logits.log_softmax(-1)
    plain = -(log[0, 0, 2] + log[0, 1, 0]) / 2
    assert torch.allclose(token_loss(logits, labels), plain)
    even = -(log[0, 0].mean() + log[0, 1].mean()) / 2
    assert torch.allclose(token_loss(logits, labels, 0.1), 0.9 * plain + 0.1 * even)
    assert shifted(torch.tensor([[5, 6, -100]]), 1, 0).tolist() == [[1, 5, 6]]
    assert shifted(torch.tensor([[5, -100, -100]]), 1, 0).tolist() == [[1, 5, 0]]


def test_labels_give_the_loss_of_shifted_targets(model, source):
    ids, mask = source
    labels = torch.randint(3, 40, (3, 5))
    labels[1, 3:] = -100
    found = model(input_ids=ids, attention_mask=mask, labels=labels)
    logits = model(input_ids=ids, attention_mask=mask, decoder_input_ids=shifted(labels, START, PAD)).logits
    assert torch.allclose(found.loss, functional.cross_entropy(logits[labels != -100], labels[labels != -100]))
    smooth = make(encoder_layers=2, label_smoothing=0.1, dropout=0.0).train()
    assert torch.allclose(
        smooth(input_ids=ids, attention_mask=mask, labels=labels).loss, token_loss(logits, labels, 0.1), atol=1e-6
    )


@pytest.mark.parametrize("tied", [True, False])
def test_round_trip_through_files_with_equal_bytes(tmp_path, source, tied):
    model, (ids, mask) = make(tie_word_embeddings=tied), source
    model.save_pretrained(tmp_path / "one")
    again = AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "one")
    assert type(again) is ParaNMTLstmForConditionalGeneration
    assert type(AutoConfig.from_pretrained(tmp_path / "one")) is ParaNMTLstmConfig
    assert (again.lm_head.weight is again.encoder.embed_tokens.weight) == tied
    again.save_pretrained(tmp_path / "two")
    names = sorted(path.name for path in (tmp_path / "one").iterdir())
    assert names == ["config.json", "generation_config.json", "model.safetensors", "modeling_paranmt_lstm.py"]
    for name in names:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
    target = torch.randint(3, 40, (3, 5))
    given = {"input_ids": ids, "attention_mask": mask, "decoder_input_ids": target}
    assert torch.equal(model(**given).logits, again.eval()(**given).logits)


def test_half_precision_is_near(model, source):
    ids, mask = source
    target = torch.randint(3, 40, (3, 5))
    given = {"input_ids": ids, "attention_mask": mask, "decoder_input_ids": target}
    expected = model(**given).logits.softmax(-1)
    half = make(encoder_layers=2).to(torch.bfloat16)
    assert torch.allclose(half(**given).logits.float().softmax(-1), expected, atol=0.05)
    assert half.generate(input_ids=ids, attention_mask=mask, num_beams=2, max_new_tokens=4).shape[0] == 3


def test_what_does_not_fit_is_refused(model, source):
    with pytest.raises(ValueError, match="even"):
        ParaNMTLstmConfig(hidden_size=15)
    with pytest.raises(ValueError, match="decoder_input_ids or labels"):
        model(input_ids=source[0])


def test_registration_can_be_repeated():
    loading._register()
    assert type(AutoModelForSeq2SeqLM.from_config(make().config)) is ParaNMTLstmForConditionalGeneration


@pytest.mark.slow
def test_loads_where_the_package_is_not_installed(tmp_path):
    make().save_pretrained(tmp_path / "model")
    code = (
        "import sys, torch; from transformers import AutoModelForSeq2SeqLM as Auto\n"
        f"model = Auto.from_pretrained({str(tmp_path / 'model')!r}, trust_remote_code=True)\n"
        "print(model.generate(torch.tensor([[5, 6, 2]]), max_new_tokens=4).shape[0], 'paranmt_hf' in sys.modules)"
    )
    clean = {**os.environ, "HF_HOME": str(tmp_path / "home"), "HF_HUB_OFFLINE": "1"}
    done = subprocess.run([sys.executable, "-c", code], env=clean, capture_output=True, text=True, cwd=tmp_path)
    assert done.stdout.split() == ["1", "False"], done.stderr
