"""The pieces of a paraphraser: byte-level BPE, made of the data, as a tokenizer of transformers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerFast

# Their ids are 0, 1 and 2.
PAD, START, END = "<pad>", "<s>", "</s>"


def train_tokenizer(columns: Iterable[pa.Array | pa.ChunkedArray], pieces: int) -> PreTrainedTokenizerFast:
    """Make pieces of text by byte-pair encoding (Sennrich et al. 2016), over bytes so that no character is unknown.

    Equal text gives equal pieces.

    Args:
        columns: Text (string), column by column.
        pieces: Most pieces of the vocabulary: three special ones, 256 bytes, and what was joined.

    Returns:
        A tokenizer that puts the end behind each sentence.
    """
    tokenizer = Tokenizer(models.BPE())
    # The blank before the first word makes it the same piece as inside of a sentence.
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=pieces,
        special_tokens=[PAD, START, END],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(_sentences(columns), trainer)
    tokenizer.post_processor = processors.TemplateProcessing(single=f"$A {END}", special_tokens=[(END, 2)])
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token=PAD,
        bos_token=START,
        eos_token=END,
        padding_side="right",
        clean_up_tokenization_spaces=False,
        model_input_names=["input_ids", "attention_mask"],
    )


def _sentences(columns: Iterable[pa.Array | pa.ChunkedArray]) -> Iterator[list[str]]:
    for column in columns:
        yield column.to_pylist()
