"""Tiny encoders for the tests."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Transformer
from sentence_transformers.sentence_transformer.modules import Pooling, StaticEmbedding
from tokenizers import Tokenizer, models, pre_tokenizers
from torch import nn
from transformers import BertConfig, BertModel, BertTokenizerFast

from paranmt_hf import EncoderConfig, SentenceEncoder, load
from paranmt_hf.encoders.building import word_sequence
from paranmt_hf.encoders.config import FAMILIES
from paranmt_hf.encoders.modules.paranmt_averages import TrigramEmbedding, WordEmbedding
from paranmt_hf.encoders.modules.paranmt_combination import Combination
from paranmt_hf.encoders.modules.paranmt_recurrent import IdentityRNN, LastStateRNN, PeepholeLSTM, Recurrence
from paranmt_hf.encoders.saving import from_stock
from paranmt_hf.encoders.units import count_units
from paranmt_hf.encoders.vocabulary import most_frequent
from paranmt_hf.hub.repository import ASSETS
from paranmt_hf.util.optional import available

WORDS = ["[UNK]", "the", "cat", "sat", ".", "n't", "is", "3.5", "it", "'s", "café"]
TRIGRAMS = ["[UNK]", *" th|the|he |e c| ca|cat|at |t s| sa|sat| . | is|is |n't|é i".split("|")]
# What is not a word of its own is made of these: `zebra` is `ze ##bra`, and `sats` is unknown.
PIECES = [*WORDS, "z", "ze", "##b", "##bra", "##ra", "##.5"]
SENTENCES = [
    "The cat sat.",
    "",
    "It's 3.5, isn't it?",
    "   ",
    "zebra!",
    "the\u00a0café is\tthe cat’s",
    "cat " * 40,
    "\u0130 [UNK] sat",
]

needs_onnx = pytest.mark.skipif(not available("onnx") or not available("onnxruntime"), reason="needs paranmt-hf[onnx]")


class Payload:
    """Runs when it is unpickled."""

    def __reduce__(self) -> tuple:
        return (pytest.fail, ("a pickle was read",))


def tiny_bert(folder: Path, pieces: list[str], width: int = 8, longest: int = 32) -> Path:
    """A transformer of one layer with random weights: `bert` in a folder, and as a sentence encoder `model` there."""
    folder.mkdir(exist_ok=True)
    (folder / "vocab.txt").write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *pieces]))
    torch.manual_seed(1)
    sizes = {"num_hidden_layers": 1, "hidden_size": width, "num_attention_heads": 2, "intermediate_size": width}
    BertModel(BertConfig(vocab_size=5 + len(pieces), **sizes)).save_pretrained(folder / "bert")
    BertTokenizerFast(str(folder / "vocab.txt")).save_pretrained(folder / "bert")
    modules = [Transformer(str(folder / "bert"), max_seq_length=longest), Pooling(width)]
    SentenceTransformer(modules=modules, device="cpu").save(str(folder / "model"), create_model_card=False)
    return folder / "model"


def foreign_table(units: list[str], weight: np.ndarray) -> StaticEmbedding:
    """A stock table whose tokenizer is not of this package."""
    tokenizer = Tokenizer(models.WordLevel({unit: row for row, unit in enumerate(units)}, unk_token=units[0]))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    return StaticEmbedding(tokenizer, embedding_weights=weight)


def cosines(vectors: np.ndarray) -> np.ndarray:
    """Cosines of every two vectors; 0 for zeros."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit = vectors / np.where(lengths > 0, lengths, 1)
    return unit @ unit.T


def rows(units: list[str], width: int, seed: int = 1) -> np.ndarray:
    """Random vectors; zeros for unknown units."""
    weight = np.random.default_rng(seed).standard_normal((len(units), width)).astype(np.float32)
    weight[0] = 0
    return weight


def word(width: int = 4, precision: str = "float32") -> WordEmbedding:
    return WordEmbedding(WORDS, rows(WORDS, width)).stored_as(precision)


def trigram(width: int = 4, precision: str = "float32") -> TrigramEmbedding:
    return TrigramEmbedding(TRIGRAMS, rows(TRIGRAMS, width, 2)).stored_as(precision)


def layers(name: str, width: int, dimension: int, seed: int, **settings: object) -> list[nn.Module]:
    """The layers of a family behind a table of `width` dimensions."""
    config = EncoderConfig(model=name, **settings)  # type: ignore[arg-type]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return FAMILIES[name].layers(width, dimension, config)  # type: ignore[misc]


def lstm(width: int = 4, units: list[str] = WORDS, name: str = "lstm", **settings: object) -> list[nn.Module]:
    settings = {"directions": "concatenate", **settings}
    return [word_sequence(units, rows(units, 5)), *layers(name, 5, width, 3, **settings)]


def projection(width: int = 4, precision: str = "float32") -> list[nn.Module]:
    return [word(4, precision), *layers("projection", 4, width, 5)]


def dan(width: int = 3, **settings: object) -> list[nn.Module]:
    return [word(), *layers("dan", 4, width, 6, **settings)]


def recurrent(kind: type[Recurrence], *arguments: object) -> list[nn.Module]:
    """Modules whose weights are all random, those that begin as something else too."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(7)
        module = kind(*arguments)
        for weight in module.parameters():
            nn.init.normal_(weight, std=0.5)
        return [word_sequence(WORDS, rows(WORDS, module.in_features)), module]


def modules_of(name: str) -> list[nn.Module]:
    """The modules of each kind of encoder, by name."""
    kinds = {
        "word": lambda: [word()],
        "word-stock": lambda: [word().stock()],
        "word-float16": lambda: [word(precision="float16").stock()],
        "word-int8": lambda: [word(precision="int8")],
        "word-pieces": lambda: [WordEmbedding(PIECES, rows(PIECES, 4))],
        "word-int4": lambda: [word(precision="int4")],
        "trigram": lambda: [trigram()],
        "trigram-float16": lambda: [trigram(precision="float16")],
        "trigram-int8": lambda: [trigram(precision="int8")],
        "lstm": lstm,
        "lstm-wide": lambda: lstm(7),
        "lstm-pieces": lambda: lstm(units=PIECES),
        "lstm-max": lambda: lstm(pooling="max"),
        "blstm": lambda: lstm(name="blstm"),
        "blstm-average": lambda: lstm(name="blstm", directions="average"),
        "blstm-max": lambda: lstm(name="blstm", pooling="max"),
        "blstm-average-max": lambda: lstm(name="blstm", directions="average", pooling="max"),
        "word+trigram": lambda: [Combination([[word()], [trigram()]], "add")],
        "word,trigram": lambda: [Combination([[word()], [trigram(3)]])],
        "trigram,word-int8": lambda: [Combination([[trigram(precision="int8")], [word(precision="float16")]])],
        "word+lstm": lambda: [Combination([[word()], lstm()], "add")],
        "trigram+blstm-average": lambda: [Combination([[trigram()], lstm(name="blstm", directions="average")], "add")],
        "word+trigram+lstm-max": lambda: [Combination([[word()], [trigram()], lstm(pooling="max")], "add")],
        "word,lstm": lambda: [Combination([[word(3)], lstm()])],
        "projection": lambda: projection(3),
        "projection-int8": lambda: projection(3, "int8"),
        "projection,trigram": lambda: [Combination([projection(3), [trigram()]])],
        "projection+lstm": lambda: [Combination([projection(4), lstm()], "add")],
        "dan": dan,
        "dan-two-layers": lambda: dan(layers=2, activation="relu"),
        "rnn": lambda: recurrent(LastStateRNN, 5, 4),
        "rnn-relu": lambda: recurrent(LastStateRNN, 4, 7, "relu"),
        "irnn": lambda: recurrent(IdentityRNN, 4),
        "plstm": lambda: recurrent(PeepholeLSTM, 5, 4),
        "plstm-without": lambda: recurrent(PeepholeLSTM, 3, 5, False),
        "irnn+plstm": lambda: [Combination([recurrent(IdentityRNN, 4), recurrent(PeepholeLSTM, 5, 4)], "add")],
        "trigram,dan,rnn": lambda: [Combination([[trigram()], dan(layers=2), recurrent(LastStateRNN, 5, 4)])],
        "word,trigram,lstm": lambda: [Combination([[word(3)], [trigram()], lstm(2)])],
    }
    return kinds[name]()


@cache
def real_trigrams() -> list[str]:
    """The trigrams of the sample text of the package."""
    lines = (ASSETS / "sample" / "sample.en").read_text(encoding="utf8").splitlines()
    return most_frequent("trigram", count_units([pa.array(lines)], ["trigram"])["trigram"], 7000).units


REAL = ["real-word", "real-trigram", "real-word,trigram"]


def real(name: str) -> SentenceEncoder:
    """Build one of `REAL`: the encoder of the package, TRIGRAM over the trigrams of real text, and both."""
    parts = [list(load()), [TrigramEmbedding(real_trigrams(), 0.25 * rows(real_trigrams(), 16, 4))]]
    modules = {"real-word": parts[0], "real-trigram": parts[1], "real-word,trigram": [Combination(parts)]}[name]
    return SentenceEncoder(modules=modules, device="cpu", similarity_fn_name="cosine")


AVERAGES = [
    "word", "word-stock", "word-pieces", "trigram", "word+trigram", "word,trigram", "projection", "projection,trigram",
    "dan-two-layers",
]  # fmt: skip
REDUCED = [
    "word-float16", "word-int8", "word-int4", "trigram-float16", "trigram-int8", "trigram,word-int8",
    "projection-int8",
]  # fmt: skip
SEQUENCES = [
    "lstm", "lstm-wide", "lstm-pieces", "lstm-max", "blstm", "blstm-average", "blstm-max", "blstm-average-max",
    "word+lstm",
    "trigram+blstm-average", "word+trigram+lstm-max", "word,lstm", "word,trigram,lstm", "projection+lstm",
    "rnn-relu", "plstm-without", "irnn+plstm", "trigram,dan,rnn",
]  # fmt: skip
# Saved as stock modules, so they load without a flag and without this package.
STOCK = [
    "word", "word-stock", "word-pieces", "word-float16", "lstm", "lstm-wide", "lstm-pieces", "blstm",
    "blstm-average", "projection", "dan-two-layers",
]  # fmt: skip
EVERY = AVERAGES + REDUCED + SEQUENCES
# Layers over an average add their bias also where there is no word.
BIASED = [name for name in EVERY if "projection" in name or "dan" in name]


def encoder(name: str) -> SentenceEncoder:
    """An encoder as `load` gives it: WORD is a module of ours, also where it is saved as a stock one."""
    return SentenceEncoder(modules=from_stock(modules_of(name)), device="cpu").eval()
