"""New paraphrasers: tokenizers trained on pairs, and networks with initial weights."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import torch
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerFast

from paranmt_hf.paraphrase.modeling_paranmt_controlled import (
    ParaNMTControlledConfig,
    ParaNMTControlledForConditionalGeneration,
)
from paranmt_hf.paraphrase.modeling_paranmt_lstm import ParaNMTLstmConfig, ParaNMTLstmForConditionalGeneration
from paranmt_hf.paraphrase.models import EncoderDecoder, ParaphraserModels
from paranmt_hf.paraphrase.training_data import MAX_TREE, TrainingPairs

TREE_EMBEDDING = 64  # Dimension of the vectors of tree tokens
PAD, START, END, UNKNOWN = "<pad>", "<s>", "</s>", "<unk>"  # The ids of the first three are 0, 1 and 2
# Maximum number of tree tokens, special ones included; parsers of Penn Treebank trees have about a hundred labels.
MAX_TREE_TOKENS = 2000
TOKENIZER_PAIRS = 2_000_000  # Pairs from which a tokenizer is trained; more change hardly anything


def new_models(text: TrainingPairs, templates: dict[str, int]) -> ParaphraserModels:
    """Train tokenizers on pairs, and create the network, or the two of a controlled one, with initial weights.

    `templates` are those of the targets of a controlled network.
    """
    config = text.config
    # Both directions have the same text.
    if not text.controlled:
        sentences = _first(text.tables("train pieces", "to-reference"), "source", "target")
        tokenizer = train_tokenizer(sentences, config.pieces)
        model = _initial(ParaNMTLstmForConditionalGeneration, ParaNMTLstmConfig, text, vocab_size=len(tokenizer))
        return ParaphraserModels(EncoderDecoder(model, tokenizer))
    sentences = _first(text.tables("train pieces", "to-reference"), "source", "target")
    tokenizer = train_tokenizer(sentences, config.pieces)
    trees = train_tree_tokenizer(_first(text.tables("collect labels", "to-reference"), "source_parse", "target_parse"))
    network = ParaNMTControlledForConditionalGeneration
    tree_shape = {"control_vocab_size": len(trees), "control_embedding_size": TREE_EMBEDDING}
    paraphrases = _initial(network, ParaNMTControlledConfig, text, vocab_size=len(tokenizer), **tree_shape)
    parses = _initial(
        network,
        ParaNMTControlledConfig,
        text,
        vocab_size=len(trees),
        embedding_size=TREE_EMBEDDING,
        hidden_size=config.tree_hidden,
        # Every label is generated: there are few, and the template says which ones.
        copying=False,
        **tree_shape,
    )
    parses.generation_config.max_length = MAX_TREE
    return ParaphraserModels(EncoderDecoder(paraphrases, tokenizer), EncoderDecoder(parses, trees), templates)


def _first(tables: Iterable[Any], *columns: str) -> Iterator[list[str]]:
    """Text of some columns of the first pairs, from which tokenizers are trained."""
    left = TOKENIZER_PAIRS
    for table in tables:
        for name in columns:
            yield table[name].slice(0, left).to_pylist()
        left -= table.num_rows
        if left <= 0:
            return


def _initial(network: Any, shape: Any, text: TrainingPairs, **sizes: Any) -> Any:  # noqa: ANN401 - classes of models
    """Create a network with initial weights drawn by the seed; `sizes` add to or replace those of the settings."""
    config = text.config
    given = {"embedding_size": config.embedding, "hidden_size": config.hidden, "dropout": config.dropout, **sizes}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(text.training.seed)
        model = network(shape(**given))
    model.generation_config.num_beams = 4
    model.generation_config.early_stopping = True
    model.generation_config.max_length = text.training.max_pieces
    return model


def train_tokenizer(texts: Iterable[list[str]], pieces: int) -> PreTrainedTokenizerFast:
    """Train byte-pair encoding (Sennrich et al. 2016), over bytes so that no character is unknown.

    `pieces` is the maximum size of the vocabulary: three special pieces, 256 bytes, and merges. The tokenizer adds the
    end to each sentence. Equal text gives equal pieces.
    """
    tokenizer = Tokenizer(models.BPE())
    # The blank before the first word makes it the same piece as inside a sentence.
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=pieces,
        special_tokens=[PAD, START, END],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return _pretrained(tokenizer)


def train_tree_tokenizer(trees: Iterable[list[str]]) -> PreTrainedTokenizerFast:
    """Collect the tokens of linearised trees, `(S`, `(NP`, `)`, the most frequent first.

    The tokenizer adds the end to each tree. Equal trees give equal tokens.
    """
    tokenizer = Tokenizer(models.WordLevel(unk_token=UNKNOWN))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(r"\([^()\s]*|\)"), behavior="isolated")
    tokenizer.decoder = decoders.Fuse()
    trainer = trainers.WordLevelTrainer(
        vocab_size=MAX_TREE_TOKENS, special_tokens=[PAD, START, END, UNKNOWN], show_progress=False
    )
    tokenizer.train_from_iterator(trees, trainer)
    return _pretrained(tokenizer, unk_token=UNKNOWN)


def _pretrained(tokenizer: Tokenizer, **tokens: str) -> PreTrainedTokenizerFast:
    tokenizer.post_processor = processors.TemplateProcessing(single=f"$A {END}", special_tokens=[(END, 2)])
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token=PAD,
        bos_token=START,
        eos_token=END,
        padding_side="right",
        clean_up_tokenization_spaces=False,
        model_input_names=["input_ids", "attention_mask"],
        **tokens,
    )
