"""Toys of the tests of paraphrasers: a language of few words, a paraphraser that has learned nothing, stopped work."""

from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import BartConfig, BartForConditionalGeneration

from paranmt_hf import EngineConfig, ParaphraserConfig, ParaphraserTraining
from paranmt_hf.corpus.jobs import job
from paranmt_hf.paraphrase import trainer
from paranmt_hf.paraphrase.modeling_paranmt_lstm import ParaNMTLstmConfig, ParaNMTLstmForConditionalGeneration
from paranmt_hf.paraphrase.models import train_tokenizer

NOUNS, VERBS = ("man", "woman", "dog", "child", "horse"), ("sees", "follows", "likes")
FINDS = (*VERBS, "hears", "finds")
LOCAL = EngineConfig("local", 1, 1)
SMALL = ParaphraserConfig(pieces=330, embedding=32, hidden=32)
SENTENCES = [f"the {noun} {verb} a {other} ." for noun in NOUNS for verb in VERBS for other in NOUNS]


def write_paraphraser(folder):
    """Write a small encoder-decoder with random weights, whose samples are words of `SENTENCES`."""
    torch.manual_seed(0)
    tokenizer = train_tokenizer([SENTENCES], 330)
    config = ParaNMTLstmConfig(vocab_size=len(tokenizer), embedding_size=16, hidden_size=16)
    model = ParaNMTLstmForConditionalGeneration(config)
    with torch.no_grad():
        # Pieces that are no words of the sentences are improbable.
        model.lm_head.bias[:] = -6.0
        model.lm_head.bias[2] = 0.5
        model.lm_head.bias[259:] = 0.0
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def write_bart(folder, positions):
    """Write a tiny encoder-decoder of transformers with random weights."""
    tokenizer = train_tokenizer([sentences(100)[0]], 330)
    torch.manual_seed(0)
    sizes = {"layers": 1, "attention_heads": 2, "ffn_dim": 16}
    config = BartConfig(
        vocab_size=len(tokenizer),
        d_model=16,
        max_position_embeddings=positions,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
        decoder_start_token_id=2,
        forced_eos_token_id=None,
        **{f"{side}_{name}": size for side in ("encoder", "decoder") for name, size in sizes.items()},
    )
    BartForConditionalGeneration(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def label_of(sentence):
    """Which sentences belong together: of men and women, or of others."""
    return "people" if set(sentence.split()) & {"man", "woman"} else "others"


def sentences(count, seed=0):
    """References and translations, which have the words of their reference in another order."""
    random = np.random.default_rng(seed)
    rows = [(NOUNS[a], FINDS[b], NOUNS[c]) for a, b, c in random.integers(0, 5, (count, 3))]
    return [f"the {a} {b} a {c} ." for a, b, c in rows], [f"a {c} , the {a} {b} it ." for a, b, c in rows]


def training(**settings):
    """Settings of a training that takes a moment."""
    given = {"epochs": 8, "learning_rate": 0.01, "batch_tokens": 200, "held_out": 0.1, "warmup": 2, "evaluations": 2}
    return ParaphraserTraining(**{**given, "device": "cpu", **settings})


@contextmanager
def stopped_training(during="paraphrases"):
    """Stop the training of a model after step 45."""
    step = trainer.PieceTrainer.training_step

    def stopping(own, *arguments, **options):
        if own.state.global_step == 45 and Path(own.args.output_dir).parent.name == during:
            raise KeyboardInterrupt
        return step(own, *arguments, **options)

    with pytest.MonkeyPatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(trainer.PieceTrainer, "training_step", stopping)
        yield


@contextmanager
def stopped_job(after=1):
    """Stop a job after some shards."""
    original, done = job.run_shard, []

    def stopping(*arguments):
        if len(done) == after:
            raise KeyboardInterrupt
        done.append(arguments)
        return original(*arguments)

    with pytest.MonkeyPatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(job, "run_shard", stopping)
        yield
