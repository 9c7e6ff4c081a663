"""The tokens of linearised trees, `(S`, `(NP`, `)`, as a tokenizer of transformers."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerFast

from paranmt_hf.paraphrase.tokenizer import END, PAD, START

UNKNOWN = "<unk>"
# Most tokens, special ones included; parsers of the Penn Treebank's kind have about a hundred labels.
MOST_TOKENS = 2000
TOKEN = Regex(r"\([^()\s]*|\)")


def train_tree_tokenizer(columns: Iterable[pa.Array | pa.ChunkedArray]) -> PreTrainedTokenizerFast:
    """Collect the tokens of trees, the most frequent first. Equal trees give equal tokens.

    Args:
        columns: Linearised trees (string) such as `(S(NP)(VP))`, column by column.

    Returns:
        A tokenizer that puts the end behind each tree.
    """
    tokenizer = Tokenizer(models.WordLevel(unk_token=UNKNOWN))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(TOKEN, behavior="isolated")
    tokenizer.decoder = decoders.Fuse()
    trainer = trainers.WordLevelTrainer(
        vocab_size=MOST_TOKENS, special_tokens=[PAD, START, END, UNKNOWN], show_progress=False
    )
    tokenizer.train_from_iterator((column.to_pylist() for column in columns), trainer)
    tokenizer.post_processor = processors.TemplateProcessing(single=f"$A {END}", special_tokens=[(END, 2)])
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token=PAD,
        bos_token=START,
        eos_token=END,
        unk_token=UNKNOWN,
        padding_side="right",
        clean_up_tokenization_spaces=False,
        model_input_names=["input_ids", "attention_mask"],
    )
