"""The controlled encoder-decoder: the pointer by hand, padding, steps, beams, files."""

import os
import subprocess
import sys

import pytest
import torch
from transformers import AutoConfig, AutoModelForSeq2SeqLM

from paranmt_hf.paraphrase import loading  # noqa: F401 - registers the models
from paranmt_hf.paraphrase.modeling_paranmt_controlled import (
    ParaNMTControlledConfig,
    ParaNMTControlledForConditionalGeneration,
    mixed,
)
from paranmt_hf.paraphrase.modeling_paranmt_lstm import shifted

PAD, START, END = 0, 1, 2
loading._register()


def make(seed=0, **settings):
    torch.manual_seed(seed)
    sizes = {"vocab_size": 40, "control_vocab_size": 12, "embedding_size": 12, "hidden_size": 16, "init_scale": 2.0}
    config = ParaNMTControlledConfig(**{**sizes, "control_embedding_size": 10, **settings})
    return ParaNMTControlledForConditionalGeneration(config).eval()


@pytest.fixture(scope="module", params=[True, False], ids=["copying", "generating"])
def model(request):
    return make(copying=request.param)


def filled(lengths, size, pieces):
    ids = torch.randint(3, pieces, (len(lengths), size))
    mask = torch.arange(size) < torch.tensor(lengths)[:, None]
    return ids.masked_fill(~mask, PAD), mask.long()


@pytest.fixture
def given():
    """Three sentences and three trees of different lengths, filled up on the right."""
    torch.manual_seed(5)
    ids, mask = filled([7, 4, 2], 7, 40)
    return {"input_ids": ids, "attention_mask": mask, "control_ids": filled([3, 5, 1], 5, 12)[0]}


def alone(given, row):
    length, control = int(given["attention_mask"][row].sum()), given["control_ids"][row : row + 1]
    return {"input_ids": given["input_ids"][row : row + 1, :length], "control_ids": control[control != PAD][None]}


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


def test_probabilities_are_those_of_the_parts(given):
    """The output layer, the attention and the gate, mixed anew from what the decoder gives."""
    model, target = make(copying=True), torch.randint(3, 40, (3, 5))
    found = model(**given, decoder_input_ids=target, output_attentions=True)
    encoded, mask = model.encoder(**given), given["attention_mask"].bool()
    state = model.decoder.start(encoded, mask)
    read, weights, control, gate = model.decoder(model.encoder.embed(target), encoded, mask, state)
    share = gate.sigmoid()
    expected = share * model.lm_head(read).softmax(-1)
    for row in range(3):
        for place in range(7):
            expected[row, :, given["input_ids"][row, place]] += (1 - share[row, :, 0]) * weights[row, :, place]
    assert torch.allclose(found.logits.exp(), expected, atol=1e-6)
    assert torch.equal(found.cross_attentions[0], weights) and torch.equal(found.cross_attentions[1], control)
    assert torch.allclose(control.sum(-1), torch.ones(3, 5)) and control[0, :, 3:].abs().max() == 0


def test_padding_on_either_side_changes_nothing(model, given):
    target = torch.randint(3, 40, (3, 5))
    whole = model(**given, decoder_input_ids=target).logits
    for row in range(3):
        single = model(**alone(given, row), decoder_input_ids=target[row : row + 1]).logits
        assert torch.allclose(whole[row], single[0], atol=1e-5)

    def left(ids):
        return torch.stack([row.roll(int((row == PAD).sum())) for row in ids])

    moved = {
        "input_ids": left(given["input_ids"]),
        "attention_mask": given["attention_mask"].flip(1),
        "control_ids": left(given["control_ids"]),
    }
    assert torch.allclose(whole, model(**moved, decoder_input_ids=target).logits, atol=1e-5)


def test_source_and_control_both_decide(model, given):
    target = torch.randint(3, 40, (3, 5))
    whole = model(**given, decoder_input_ids=target).logits
    for name in ("input_ids", "control_ids"):
        changed = given[name].clone()
        changed[:, 0] += 1 - 2 * (changed[:, 0] == (39 if name == "input_ids" else 11)).long()
        other = model(**{**given, name: changed}, decoder_input_ids=target).logits
        assert (whole - other).abs().amax(dim=(1, 2)).min() > 1e-3


@pytest.mark.parametrize("layers", [2, 3])
def test_steps_with_a_state_are_all_positions_at_once(given, layers):
    model, target = make(decoder_layers=layers), torch.randint(3, 40, (3, 6))
    whole = model(**given, decoder_input_ids=target).logits
    state, steps = None, []
    for position in range(6):
        step = model(
            **given, decoder_input_ids=target[:, position : position + 1], past_key_values=state, use_cache=True
        )
        state = step.past_key_values
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


@torch.no_grad()
def test_greedy_search_takes_the_most_probable_piece(model, given):
    found = model.generate(**given, num_beams=1, do_sample=False, max_new_tokens=6)
    targets = torch.full((3, 1), START)
    for _ in range(6):
        pieces = model(**given, decoder_input_ids=targets).logits[:, -1].argmax(-1)
        ended = (targets == END).any(1)
        targets = torch.cat([targets, pieces.masked_fill(ended, PAD)[:, None]], dim=1)
    assert torch.equal(found, targets[:, : found.shape[1]])


def test_labels_give_the_loss_of_shifted_targets(model, given):
    labels = torch.randint(3, 40, (3, 5))
    labels[1, 3:] = -100
    logits = model(**given, decoder_input_ids=shifted(labels, START, PAD)).logits
    expected = -logits.log_softmax(-1)[labels != -100].gather(1, labels[labels != -100][:, None]).mean()
    assert torch.allclose(model(**given, labels=labels).loss, expected, atol=1e-6)


def test_every_weight_learns(given):
    model = make(dropout=0.0).train()
    model(**given, labels=torch.randint(3, 40, (3, 5))).loss.backward()
    still = [name for name, weight in model.named_parameters() if weight.grad is None or not weight.grad.any()]
    assert not still


def test_round_trip_through_files_with_equal_bytes(tmp_path, model, given):
    model.save_pretrained(tmp_path / "one")
    again = AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "one")
    assert type(again) is ParaNMTControlledForConditionalGeneration
    assert type(AutoConfig.from_pretrained(tmp_path / "one")) is ParaNMTControlledConfig
    assert again.lm_head.weight is again.encoder.embed_tokens.weight
    again.save_pretrained(tmp_path / "two")
    names = sorted(path.name for path in (tmp_path / "one").iterdir())
    assert names == [
        "config.json",
        "generation_config.json",
        "model.safetensors",
        "modeling_paranmt_controlled.py",
        "modeling_paranmt_lstm.py",
    ]
    for name in names:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
    target = torch.randint(3, 40, (3, 5))
    found, expected = (each.eval()(**given, decoder_input_ids=target).logits for each in (again, model))
    assert torch.allclose(found, expected, atol=1e-6)


def test_what_does_not_fit_is_refused(model, given):
    with pytest.raises(ValueError, match="decoder_layers must be at least 2"):
        ParaNMTControlledConfig(decoder_layers=1)
    with pytest.raises(ValueError, match="expected input_ids and control_ids"):
        model(input_ids=given["input_ids"], labels=given["input_ids"])


@pytest.mark.slow
def test_loads_where_the_package_is_not_installed(tmp_path):
    make().save_pretrained(tmp_path / "model")
    code = (
        "import sys, torch; from transformers import AutoModelForSeq2SeqLM as Auto\n"
        f"model = Auto.from_pretrained({str(tmp_path / 'model')!r}, trust_remote_code=True)\n"
        "found = model.generate(torch.tensor([[5, 6, 2]]), control_ids=torch.tensor([[4, 5]]), max_new_tokens=4)\n"
        "print(found.shape[0], 'paranmt_hf' in sys.modules)"
    )
    clean = {**os.environ, "HF_HOME": str(tmp_path / "home"), "HF_HUB_OFFLINE": "1"}
    done = subprocess.run([sys.executable, "-c", code], env=clean, capture_output=True, text=True, cwd=tmp_path)
    assert done.stdout.split() == ["1", "False"], done.stderr
