"""A paraphraser that has learned nothing, made in a moment, and labelled sentences."""

import torch
from transformers import AutoTokenizer, BertConfig, BertForSequenceClassification

from paranmt_hf.paraphrase import loading  # noqa: F401 - registers the models
from paranmt_hf.paraphrase.modeling_paranmt_lstm import ParaNMTLstmConfig, ParaNMTLstmForConditionalGeneration
from paranmt_hf.paraphrase.models import train_tokenizer

NOUNS, VERBS = ("man", "woman", "dog", "child", "horse"), ("sees", "follows", "likes")
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


def write_classifier(folder, paraphraser):
    """Write a tiny classifier of transformers with random weights, which reads the pieces of a paraphraser."""
    tokenizer = AutoTokenizer.from_pretrained(paraphraser)
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        pad_token_id=0,
        id2label={0: "others", 1: "people"},
        label2id={"others": 0, "people": 1},
    )
    BertForSequenceClassification(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def label_of(sentence):
    """Which sentences belong together: of men and women, or of others."""
    return "people" if set(sentence.split()) & {"man", "woman"} else "others"
