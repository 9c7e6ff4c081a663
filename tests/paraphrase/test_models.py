"""Both encoder-decoders: attention and the pointer by hand, padding, cache, beams, files."""

import os
import subprocess
import sys

import pytest
import torch
from torch.nn import functional
from transformers import AutoConfig, AutoModelForSeq2SeqLM

from paranmt_hf.paraphrase.modeling_paranmt_controlled import (
    ParaNMTControlledConfig,
    ParaNMTControlledForConditionalGeneration,
    mixed,
)
from paranmt_hf.paraphrase.modeling_paranmt_lstm import (
    CACHE,
    ParaNMTLstmConfig,
    ParaNMTLstmForConditionalGeneration,
    shifted,
    token_loss,
)

PAD, START, END = 0, 1, 2
SIZES = {"vocab_size": 40, "embedding_size": 12, "hidden_size": 16, "init_scale": 2.0}


def make(seed=0, **settings):
    torch.manual_seed(seed)
    return ParaNMTLstmForConditionalGeneration(ParaNMTLstmConfig(**{**SIZES, **settings})).eval()


def make_controlled(seed=0, **settings):
    torch.manual_seed(seed)
    config = ParaNMTControlledConfig(**{**SIZES, "control_vocab_size": 12, "control_embedding_size": 10, **settings})
    return ParaNMTControlledForConditionalGeneration(config).eval()


def filled(lengths, size, pieces):
    """Random ids of rows of some lengths, filled up on the right, and their mask."""
    ids = torch.randint(3, pieces, (len(lengths), size))
    mask = torch.arange(size) < torch.tensor(lengths)[:, None]
    return ids.masked_fill(~mask, PAD), mask.long()


@pytest.fixture
def source():
    """Three sentences of different lengths, and their mask."""
    torch.manual_seed(5)
    return filled([7, 4, 2], 7, 40)


@pytest.fixture
def controlled(source):
    """The same with three trees of different lengths."""
    ids, mask = source
    return {"input_ids": ids, "attention_mask": mask, "control_ids": filled([3, 5, 1], 5, 12)[0]}


KINDS = {
    "lstm": lambda: make(encoder_layers=2),
    "copying": lambda: make_controlled(copying=True),
    "generating": lambda: make_controlled(copying=False, decoder_layers=3),
}


@pytest.fixture(scope="module", params=KINDS)
def model(request):
    return KINDS[request.param]()


@pytest.fixture
def given(model, controlled):
    """What a model reads of three sentences."""
    if isinstance(model, ParaNMTControlledForConditionalGeneration):
        return controlled
    return {name: value for name, value in controlled.items() if name != "control_ids"}


def alone(given, row):
    """What a model reads of one of them."""
    own = {name: value[row : row + 1] for name, value in given.items() if name != "attention_mask"}
    return {name: ids[ids != PAD][None] for name, ids in own.items()}


def target_of(positions=5):
    return torch.randint(3, 40, (3, positions))


def test_padding_on_either_side_changes_nothing(model, given):
    target = target_of()
    whole = model(**given, decoder_input_ids=target).logits
    for row in range(3):
        single = model(**alone(given, row), decoder_input_ids=target[row : row + 1]).logits
        assert torch.allclose(whole[row], single[0], atol=1e-5)
    moved = {name: torch.stack([row.roll(int((row == PAD).sum())) for row in value]) for name, value in given.items()}
    assert torch.equal(moved["attention_mask"], given["attention_mask"].flip(1))
    assert torch.allclose(whole, model(**moved, decoder_input_ids=target).logits, atol=1e-5)


def test_steps_with_a_state_are_all_positions_at_once(model, given):
    target = target_of(6)
    whole = model(**given, decoder_input_ids=target).logits
    state, steps = None, []
    for position in range(6):
        piece = target[:, position : position + 1]
        step = model(**given, decoder_input_ids=piece, use_cache=True, **{CACHE: state})
        state = step[CACHE]
        steps.append(step.logits)
    assert state.get_seq_length() == 6
    assert torch.allclose(whole, torch.cat(steps, dim=1), atol=1e-5)


@torch.no_grad()
def test_generation_of_a_batch_is_that_of_each_sentence_with_and_without_a_state(model, given):
    for options in ({"num_beams": 1}, {"num_beams": 4, "num_return_sequences": 3}):
        settings = {"max_new_tokens": 8, "do_sample": False, **options}
        whole = model.generate(**given, **settings)
        assert torch.equal(whole, model.generate(**given, use_cache=False, **settings))
        count = options.get("num_return_sequences", 1)
        for row in range(3):
            single = model.generate(**alone(given, row), **settings)
            assert torch.equal(whole[row * count : (row + 1) * count, : single.shape[1]], single)


def test_labels_give_the_loss_of_shifted_targets(model, given):
    labels = target_of()
    labels[1, 3:] = -100
    logits = model(**given, decoder_input_ids=shifted(labels, START, PAD)).logits
    expected = functional.cross_entropy(logits[labels != -100], labels[labels != -100])
    assert torch.allclose(model(**given, labels=labels).loss, expected, atol=1e-6)


def test_every_weight_learns(model, given):
    model.train()
    model(**given, labels=target_of()).loss.backward()
    still = [name for name, weight in model.named_parameters() if weight.grad is None or not weight.grad.any()]
    model.eval().zero_grad()
    assert not still


def test_round_trip_through_files_with_equal_bytes(tmp_path, model, given):
    model.save_pretrained(tmp_path / "one")
    again = AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "one")
    assert type(again) is type(model)
    assert type(AutoConfig.from_pretrained(tmp_path / "one")) is type(model.config)
    assert again.lm_head.weight is again.encoder.embed_tokens.weight
    again.save_pretrained(tmp_path / "two")
    names = sorted(path.name for path in (tmp_path / "one").iterdir())
    code = ["modeling_paranmt_controlled.py"] if "control_ids" in given else []
    files = ["config.json", "generation_config.json", "model.safetensors", *code, "modeling_paranmt_lstm.py"]
    assert names == files
    for name in names:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
    target = target_of()
    found, expected = (each.eval()(**given, decoder_input_ids=target).logits for each in (again, model))
    assert torch.equal(found, expected)


def test_the_output_layer_can_have_its_own_weights(tmp_path):
    make(tie_word_embeddings=False).save_pretrained(tmp_path)
    again = AutoModelForSeq2SeqLM.from_pretrained(tmp_path)
    assert again.lm_head.weight is not again.encoder.embed_tokens.weight


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["lstm", "copying"])
def test_loads_where_the_package_is_not_installed(tmp_path, kind):
    KINDS[kind]().save_pretrained(tmp_path / "model")
    control = "" if kind == "lstm" else ", control_ids=torch.tensor([[4, 5]])"
    code = (
        "import sys, torch; from transformers import AutoModelForSeq2SeqLM as Auto\n"
        f"model = Auto.from_pretrained({str(tmp_path / 'model')!r}, trust_remote_code=True)\n"
        f"found = model.generate(torch.tensor([[5, 6, 2]]){control}, max_new_tokens=4)\n"
        "print(found.shape[0], 'paranmt_hf' in sys.modules)"
    )
    clean = {**os.environ, "HF_HOME": str(tmp_path / "home"), "HF_HUB_OFFLINE": "1"}
    done = subprocess.run([sys.executable, "-c", code], env=clean, capture_output=True, text=True, cwd=tmp_path)
    assert done.stdout.split() == ["1", "False"], done.stderr


def test_shapes_and_calls_that_do_not_fit_are_refused(model, given):
    with pytest.raises(ValueError, match="even"):
        ParaNMTLstmConfig(hidden_size=15)
    with pytest.raises(ValueError, match="decoder_layers must be at least 2"):
        ParaNMTControlledConfig(decoder_layers=1)
    with pytest.raises(ValueError, match="decoder_input_ids or labels"):
        model(**given)
    if "control_ids" in given:
        with pytest.raises(ValueError, match="expected input_ids and control_ids"):
            model(input_ids=given["input_ids"], labels=given["input_ids"])


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


def test_attention_is_a_softmax_of_bilinear_products(source):
    model, (ids, mask) = make(encoder_layers=2), source
    target = torch.randint(3, 40, (3, 5))
    encoded = model.encoder(ids, mask).last_hidden_state
    state = model.decoder.start(encoded, mask.bool())
    states, _ = model.decoder.lstm(model.encoder.embed(target), (state.hidden, state.cell))
    product = torch.einsum("bth,hk,bsk->bts", states, model.decoder.bilinear.weight, encoded)
    expected = product.masked_fill(mask[:, None] == 0, -torch.inf).softmax(-1)
    found = model(input_ids=ids, attention_mask=mask, decoder_input_ids=target, output_attentions=True)
    assert torch.allclose(found.cross_attentions[0], expected, atol=1e-6)
    assert model.decoder.lstm.num_layers == 2


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


def test_label_smoothing_of_the_configuration(source):
    ids, mask = source
    labels = target_of()
    smooth = make(label_smoothing=0.1, dropout=0.0).train()
    found = smooth(input_ids=ids, attention_mask=mask, labels=labels)
    assert torch.allclose(found.loss, token_loss(found.logits, labels, 0.1), atol=1e-6)


def test_half_precision_is_near(source):
    model, (ids, mask) = make(encoder_layers=2), source
    target = torch.randint(3, 40, (3, 5))
    given = {"input_ids": ids, "attention_mask": mask, "decoder_input_ids": target}
    expected = model(**given).logits.softmax(-1)
    half = make(encoder_layers=2).to(torch.bfloat16)
    assert torch.allclose(half(**given).logits.float().softmax(-1), expected, atol=0.05)
    assert half.generate(input_ids=ids, attention_mask=mask, num_beams=2, max_new_tokens=4).shape[0] == 3


def test_mixture_is_that_of_generating_and_copying_piece_by_piece():
    torch.manual_seed(1)
    logits, weights, gate = torch.randn(2, 3, 6), torch.randn(2, 3, 4).softmax(-1), torch.randn(2, 3, 1)
    ids = torch.tensor([[5, 3, 5, 0], [1, 1, 1, 2]])
    found = mixed(logits, weights, gate, ids).exp()
    for row in range(2):
        for position in range(3):
            share = 1 / (1 + torch.exp(-gate[row, position, 0]))
            for piece in range(6):
                own = torch.exp(logits[row, position, piece]) / torch.exp(logits[row, position]).sum()
                copied = sum(weights[row, position, place] for place in range(4) if ids[row, place] == piece)
                assert found[row, position, piece] == pytest.approx(
                    float(share * own + (1 - share) * copied), abs=1e-6
                )
    assert torch.allclose(found.sum(-1), torch.ones(2, 3))


def test_gradient_is_that_of_the_plain_mixture():
    """Pieces that are several times in the source, too."""
    torch.manual_seed(2)
    ids, labels = torch.tensor([[5, 3, 5, 5], [1, 1, 1, 2]]), torch.tensor([[5, 3, 0], [1, 2, 1]])
    found = []
    for plain in (False, True):
        torch.manual_seed(3)
        given = [torch.randn(2, 3, size, requires_grad=True) for size in (6, 4, 1)]
        logits, weights, gate = given[0], given[1].softmax(-1), given[2]
        if plain:
            copied = torch.zeros(2, 3, 6).scatter_add(2, ids[:, None].expand(-1, 3, -1), weights)
            log = (gate.sigmoid() * logits.softmax(-1) + (1 - gate.sigmoid()) * copied).log()
        else:
            log = mixed(logits, weights, gate, ids)
        log.gather(2, labels[:, :, None]).sum().backward()
        found.append([each.grad for each in given])
    for one, other in zip(*found, strict=True):
        assert torch.allclose(one, other, atol=1e-6)


def test_mixture_of_an_impossible_piece_has_a_gradient():
    logits = torch.tensor([[[200.0, 0.0, -200.0]]], requires_grad=True)
    found = mixed(logits, torch.ones(1, 1, 1), torch.tensor([[[300.0]]]), torch.tensor([[0]]))
    assert found.isfinite().all()
    found[0, 0, 1].backward()
    assert logits.grad.isfinite().all()


def test_probabilities_are_those_of_the_parts(controlled):
    """The output layer, the attention and the gate, mixed again from what the decoder gives."""
    model, target = make_controlled(), torch.randint(3, 40, (3, 5))
    found = model(**controlled, decoder_input_ids=target, output_attentions=True)
    encoded, mask = model.encoder(**controlled), controlled["attention_mask"].bool()
    state = model.decoder.start(encoded, mask)
    read, weights, control, gate = model.decoder(model.encoder.embed(target), encoded, mask, state)
    share = gate.sigmoid()
    expected = share * model.lm_head(read).softmax(-1)
    for row in range(3):
        for place in range(7):
            expected[row, :, controlled["input_ids"][row, place]] += (1 - share[row, :, 0]) * weights[row, :, place]
    assert torch.allclose(found.logits.exp(), expected, atol=1e-6)
    assert torch.equal(found.cross_attentions[0], weights) and torch.equal(found.cross_attentions[1], control)
    assert torch.allclose(control.sum(-1), torch.ones(3, 5)) and control[0, :, 3:].abs().max() == 0
