"""Options that would change nothing are refused; defaults and those that matter are not."""

import pytest

from paranmt_hf.corpus.pairs import Pairs, PairSelection
from paranmt_hf.encoders.config import EncoderConfig
from paranmt_hf.errors import InputError
from paranmt_hf.training.config import TrainConfig
from paranmt_hf.training.train import train
from paranmt_hf.training.unused_options import refuse_unused
from tests.training.toys import synonyms, write_data

MODELS = ["word", "trigram", "word+trigram", "word,trigram", "lstm", "blstm", "word,lstm", "trigram+blstm"]
TEACHER = {"teacher": "t"}


def check(model="word", training=None, *, development=False, teacher_cache=False, processes=1, **settings):
    encoder, config = EncoderConfig(model=model, **settings), TrainConfig(**(training or {}))
    refuse_unused(encoder, config, development=development, teacher_cache=teacher_cache, processes=processes)


@pytest.mark.parametrize("model", MODELS)
def test_defaults_and_what_every_model_has_go_on_working(model):
    check(model)
    check(model, {"epochs": 1, "batch_size": 7, "margin": 0.5, "negatives": "mix", "one_sided": True, "scrambling": 0})
    check(model, {"lambda_w": 0.1, "decay": True, "seed": 2, "mega_batch": 3, "learning_rate": 0.1}, dimension=7)
    check(model, {**TEACHER, "precision": "bf16"}, teacher_cache=True, min_count=2, unknown="train")
    check(model, {"evaluations": 3}, development=True, init_std=0.1)
    check(model, {**TEACHER, "teacher_weight": 0.5, "margin": 0.3})


@pytest.mark.parametrize(
    ("model", "settings", "message"),
    [
        (
            "word",
            {"pooling": "max"},
            "--pooling would change nothing for this 'word' model: it is for the models lstm, blstm",
        ),
        ("word,trigram", {"word_dimension": 5}, "--word-dimension .* the models lstm, blstm, projection"),
        ("irnn", {"word_dimension": 5}, "--word-dimension .* the models lstm, blstm, projection, dan, rnn, plstm"),
        ("projection", {"layers": 2}, "--layers .* the models dan"),
        ("irnn", {"activation": "relu"}, "--activation .* the models dan, rnn"),
        ("lstm", {"output_gate": "without"}, "--output-gate .* the models plstm"),
        ("lstm", {"directions": "concatenate"}, "--directions .* the models blstm"),
        ("word,lstm", {"trigrams": 5}, "--trigrams .* the models trigram"),
        ("word", {"trigram_dimension": 5}, "--trigram-dimension .* the models trigram"),
        ("trigram", {"words": 5}, "--words .* models that read words"),
        ("trigram", {"vectors": "v.txt"}, "--vectors .* models that read words"),
        ("word", {"vectors": "v.txt", "init_std": 0.1}, "--init-std .* random embeddings; beside --vectors"),
        ("trigram", {"trigram_dimension": 5, "dimension": 6}, "--dimension .* beside the TRIGRAM of"),
    ],
)
def test_options_of_other_encoders(model, settings, message):
    with pytest.raises(InputError, match=f"^{message}.*; leave it out$"):
        check(model, **settings)


@pytest.mark.parametrize(
    ("model", "settings", "message"),
    [
        (
            "word",
            {"scrambling": 0.5},
            "--scrambling .* read words in order .lstm, blstm, rnn, irnn, plstm.",
        ),
        ("trigram", {"scrambling": 0.5, "device": "cuda"}, "--scrambling .* models that read words in order"),
        ("word", {"lambda_c": 0.1}, "--lambda-c .* compositional parameters"),
        ("word", {"lambda_c": 0.1, "device": "cuda"}, "--lambda-c .* compositional parameters"),
        ("word,trigram", {"report_to": "trackio"}, "--report-to .* models that run through the trainer"),
        ("word", {"gather_negatives": True}, "--gather-negatives .* models that run through the trainer"),
        ("lstm", {"gather_negatives": True}, "--gather-negatives .* several processes"),
        ("word", {"gather_negatives": True, "device": "cuda"}, "--gather-negatives .* run through the trainer"),
        ("word", {"mine_over": "all"}, "--mine-over .* several processes .torchrun. with --device cuda"),
        ("word", {"mine_over": "rank", "device": "cuda"}, "--mine-over .* several processes .torchrun."),
        ("word", {"precision": "bf16"}, "--precision .* models that run through the trainer"),
        ("word", {**TEACHER, "precision": "fp16"}, "--precision .* bf16 also for a --teacher"),
        ("lstm", {"teacher_weight": 0.5}, "--teacher-weight .* the similarities of a --teacher"),
        ("lstm", {**TEACHER, "margin": 0.5}, "--margin .* the margin loss, which is left out"),
        ("word", {**TEACHER, "negatives": "rand"}, "--negatives .* the margin loss"),
        ("word", {**TEACHER, "one_sided": True}, "--one-sided .* the margin loss"),
        ("lstm", {**TEACHER, "neighbours": True}, "--neighbours .* averaging models"),
        (
            "word",
            {**TEACHER, "neighbours": True, "device": "cuda", "precision": "bf16"},
            "--neighbours .* averaging models",
        ),
        ("word", {"mining_precision": "int8", "device": "cuda"}, "--mining-precision .* on the CPU"),
        ("word", {"mining_precision": "int8", "negatives": "rand"}, "--mining-precision .* negatives that are mined"),
        ("word", {"freeze_words": True}, "--freeze-words .* models that train something beside their word embeddings"),
        ("trigram", {"freeze_words": True}, "--freeze-words .* models that train something beside"),
        ("lstm", {"freeze_words": True, "lambda_w": 0.1}, "--lambda-w .* embeddings that are not frozen"),
        ("word", {"regularise_to": "initial"}, "--regularise-to .* what --lambda-c pulls"),
        ("irnn", {"regularise_to": "initial"}, "--regularise-to .* what --lambda-c pulls"),
        ("word", {"evaluations": 2}, "--evaluations .* a --development set"),
    ],
)
def test_options_of_other_ways_to_train(model, settings, message):
    with pytest.raises(InputError, match=f"^{message}.*; leave it out$"):
        check(model, settings)


def test_what_makes_them_matter():
    check("blstm", pooling="max", directions="concatenate", word_dimension=5)
    check("trigram", trigrams=5, trigram_dimension=5)
    check("word,trigram", vectors="v.txt", init_std=0.1, words=5, trigram_dimension=6, dimension=7)
    check("lstm", {"scrambling": 0.5, "lambda_c": 0.1, "report_to": "trackio", "precision": "fp16"})
    check("lstm", {"gather_negatives": True}, processes=2)
    check("word", {"mine_over": "rank", "device": "cuda"}, processes=2)
    check("word", {"gather_negatives": True, "device": "cuda", "report_to": "trackio"}, processes=2)
    for model, settings in (("lstm", {}), ("word", {"precision": "bf16"}), ("word", {"negatives": "rand"})):
        with pytest.raises(InputError, match="^--mine-over .*; leave it out$"):
            check(model, {"mine_over": "rank", "device": "cuda", **settings}, processes=2)
    check("word,trigram", {"freeze_words": True, "lambda_w": 0.1, "optimizer": "adagrad", "clip": 1.0})
    check("irnn", {"freeze_words": True, "lambda_c": 0.1, "regularise_to": "zero"})
    check("word", {"precision": "bf16", "device": "cuda"})
    check("word", {**TEACHER, "neighbours": True, "device": "cuda"})
    with pytest.raises(InputError, match="^--teacher-cache .* the vectors of a --teacher; leave it out$"):
        check(teacher_cache=True)


def test_train_refuses_before_it_writes(tmp_path):
    data = write_data(tmp_path / "pairs.parquet", synonyms(20))
    for encoder, config in (({"pooling": "max"}, {}), ({}, {"scrambling": 0.5})):
        with pytest.raises(InputError, match="would change nothing for this 'word' model"):
            train(data, tmp_path / "out", encoder=EncoderConfig(**encoder), config=TrainConfig(**config))
    assert [path.name for path in tmp_path.iterdir()] == ["pairs.parquet"]


def test_subset_of_what_has_none(tmp_path):
    data = write_data(tmp_path / "pairs.parquet", synonyms(20))
    for source in (data, tmp_path):
        with pytest.raises(InputError, match=r"^--subset filtered is for releases .*; .* has no subsets, so leave"):
            Pairs([source], PairSelection(subset="filtered"))
