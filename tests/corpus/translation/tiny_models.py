"""Untrained translation models of three families, small enough to be made in a moment, and a score of their own."""

import io
import itertools
import json
from pathlib import Path

import pytest
import sentencepiece
import torch
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from transformers import (
    AutoModelForSeq2SeqLM,
    M2M100Config,
    M2M100ForConditionalGeneration,
    M2M100Tokenizer,
    MarianConfig,
    MarianMTModel,
    MarianTokenizer,
    NllbTokenizer,
)

from paranmt_hf import TranslatorConfig
from paranmt_hf.corpus.translation.engines import load_translator
from paranmt_hf.corpus.translation.translator import Translator

LIMIT = 12
WHO, DOES, WHAT = ("muž", "žena", "dívka", "starý pes"), ("vidí", "nese", "maluje"), ("strom", "dům", "červené auto")
SENTENCES = [" ".join(words) + "." for words in itertools.product(WHO, DOES, WHAT)] + ["Muž.", "Ne!", "dům strom dům"]
SIZES = {
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 64,
    "decoder_ffn_dim": 64,
    "max_position_embeddings": 64,
    "scale_embedding": True,
}
# Symbols that may end a hypothesis get a push, so that some hypotheses end and some run into the limit.
END_BIAS = 1.5


def train_pieces(**special: int) -> bytes:
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(SENTENCES * 3),
        model_writer=model,
        vocab_size=70,
        hard_vocab_limit=False,
        minloglevel=2,
        num_threads=1,
        **special,
    )
    return model.getvalue()


def make_marian(folder: Path, *, seed: int = 2, codes: tuple[str, ...] = (), pad_last: bool = True) -> MarianMTModel:
    """Write an OPUS-MT-like folder; `codes` become `>>code<<` symbols."""
    folder.mkdir(parents=True, exist_ok=True)
    pieces = train_pieces(eos_id=0, unk_id=1, bos_id=-1, pad_id=-1)
    for name in ("source.spm", "target.spm"):
        (folder / name).write_bytes(pieces)
    model = sentencepiece.SentencePieceProcessor(model_proto=pieces)
    tokens = [model.id_to_piece(number) for number in range(model.get_piece_size())]
    tokens += [f">>{code}<<" for code in codes]
    tokens.insert(len(tokens) if pad_last else 5, "<pad>")
    vocabulary = {token: number for number, token in enumerate(tokens)}
    (folder / "vocab.json").write_text(json.dumps(vocabulary), encoding="utf8")
    files = {"source_spm": "source.spm", "target_spm": "target.spm", "vocab": "vocab.json"}
    MarianTokenizer(**{key: str(folder / name) for key, name in files.items()}).save_pretrained(folder)
    pad = vocabulary["<pad>"]
    config = MarianConfig(
        vocab_size=len(tokens),
        decoder_vocab_size=len(tokens),
        pad_token_id=pad,
        eos_token_id=0,
        bos_token_id=None,
        decoder_start_token_id=pad,
        forced_eos_token_id=None,
        init_std=0.3,
        activation_function="relu",
        **SIZES,
    )
    torch.manual_seed(seed)
    translator = MarianMTModel(config).eval()
    translator.final_logits_bias[0, pad] = -1e4
    translator.final_logits_bias[0, 0] = END_BIAS
    translator.save_pretrained(folder)
    return translator


def make_multilingual(folder: Path, tokenizer, rows: int, seed: int) -> M2M100ForConditionalGeneration:
    tokenizer.save_pretrained(folder)
    config = M2M100Config(
        vocab_size=rows,
        pad_token_id=1,
        bos_token_id=0,
        eos_token_id=2,
        decoder_start_token_id=2,
        init_std=0.3,
        **SIZES,
    )
    torch.manual_seed(seed)
    translator = M2M100ForConditionalGeneration(config).eval()
    with torch.no_grad():
        translator.model.shared.weight[2] *= END_BIAS
    translator.save_pretrained(folder)
    return translator


def make_m2m100(folder: Path, *, seed: int = 0) -> M2M100ForConditionalGeneration:
    """Write an M2M100 folder, language codes `cs`, `en` and 98 more."""
    folder.mkdir(parents=True, exist_ok=True)
    pieces = train_pieces(unk_id=0, eos_id=1, bos_id=-1, pad_id=-1)
    (folder / "sentencepiece.bpe.model").write_bytes(pieces)
    model = sentencepiece.SentencePieceProcessor(model_proto=pieces)
    tokens = ["<s>", "<pad>", "</s>", "<unk>", *(model.id_to_piece(number) for number in range(2, len(model)))]
    vocabulary = {token: number for number, token in enumerate(tokens)}
    (folder / "vocab.json").write_text(json.dumps(vocabulary), encoding="utf8")
    tokenizer = M2M100Tokenizer(str(folder / "vocab.json"), str(folder / "sentencepiece.bpe.model"))
    return make_multilingual(folder, tokenizer, len(tokens) + len(tokenizer.lang_code_to_id) + 8, seed)


def make_nllb(folder: Path, *, seed: int = 5) -> M2M100ForConditionalGeneration:
    """Write an NLLB folder, language codes `ces_Latn`, `eng_Latn` and 200 more."""
    folder.mkdir(parents=True, exist_ok=True)
    pieces = Tokenizer(models.BPE(unk_token="<unk>"))
    pieces.pre_tokenizer = pre_tokenizers.Metaspace()
    special = ["<s>", "<pad>", "</s>", "<unk>"]
    pieces.train_from_iterator(
        SENTENCES, trainers.BpeTrainer(vocab_size=90, special_tokens=special, show_progress=False)
    )
    trained = json.loads(pieces.to_str())["model"]
    tokenizer = NllbTokenizer(vocab=trained["vocab"], merges=[tuple(pair) for pair in trained["merges"]])
    return make_multilingual(folder, tokenizer, len(tokenizer) + 3, seed)


def forward_score(model, source: list[int], start: list[int], target: list[int]) -> float:
    """Mean log-probability of the target's tokens by one plain forward pass in float64."""
    model = model.double()
    with torch.no_grad():
        logits = model(
            input_ids=torch.tensor([source]), decoder_input_ids=torch.tensor([[*start, *target[:-1]]])
        ).logits[0, len(start) - 1 :]
    model.float()
    return logits.log_softmax(dim=-1)[range(len(target)), target].mean().item()


# Maker and the settings without which the family does not translate.
FAMILIES = {
    "marian": (make_marian, {}),
    "m2m100": (make_m2m100, {"source_language": "cs", "target_language": "en"}),
    "nllb": (make_nllb, {"source_language": "ces_Latn", "target_language": "eng_Latn"}),
}


def config(folder: Path, family: str = "marian", **settings) -> TranslatorConfig:
    """Settings of a small model, with at most `LIMIT` pieces of a target."""
    return TranslatorConfig(
        str(folder), **{"max_target_tokens": LIMIT, "device": "cpu", **FAMILIES[family][1], **settings}
    )


def load(folder: Path, family: str = "marian", threads: int | None = 1, **settings) -> Translator:
    """A translator by transformers, unless the settings say otherwise."""
    return load_translator(config(folder, family, **{"backend": "transformers", **settings}), threads)


def search(translator, sentences=SENTENCES):
    """Pieces, hypotheses and scores of sentences, translated as one batch."""
    pieces = translator._checkpoint.encode(sentences)
    return pieces, *translator.search(pieces)


def check_scores(translator, folder: Path, sentences=SENTENCES, count: int = 1) -> tuple[list[list[int]], list[float]]:
    """Compare the scores of `count` hypotheses of each sentence with those of forward passes."""
    pieces, hypotheses, scores = search(translator, sentences)
    model, start = AutoModelForSeq2SeqLM.from_pretrained(folder, dtype=torch.float32), translator._checkpoint.start
    sources = [source for source in pieces for _ in range(count)]
    expected = [forward_score(model, source, start, ids) for source, ids in zip(sources, hypotheses, strict=True)]
    assert scores == pytest.approx(expected, abs=1e-5)
    return hypotheses, scores


def change_configuration(folder: Path, name: str = "config.json", **values) -> None:
    """Change values of a configuration."""
    (folder / name).write_text(json.dumps(json.loads((folder / name).read_text()) | values))
