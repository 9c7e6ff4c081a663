"""Encoder-decoders with their tokenizers, and controlled networks of two: read from a folder, or new; and search.

Importing this module registers the encoder-decoders of this package with the automatic classes of transformers.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from tokenizers import Regex, Tokenizer, decoders, pre_tokenizers, processors, trainers
from tokenizers.models import BPE, WordLevel
from transformers import (
    AutoConfig,
    AutoModelForSeq2SeqLM,
    ForcedBOSTokenLogitsProcessor,
    LogitsProcessor,
    NoBadWordsLogitsProcessor,
    PreTrainedTokenizerFast,
)

from paranmt_hf.corpus.translation.beam import Change, beam_search, diverse_beam_search, encode
from paranmt_hf.corpus.translation.sampling import sample, uniforms
from paranmt_hf.errors import InputError
from paranmt_hf.hub.pretrained import check_tokens, quiet, read_configuration, read_encoder_decoder
from paranmt_hf.hub.repository import Model, locate
from paranmt_hf.paraphrase.config import ParaphraseConfig
from paranmt_hf.paraphrase.modeling_paranmt_controlled import (
    ParaNMTControlledConfig,
    ParaNMTControlledForConditionalGeneration,
)
from paranmt_hf.paraphrase.modeling_paranmt_lstm import ParaNMTLstmConfig, ParaNMTLstmForConditionalGeneration
from paranmt_hf.paraphrase.templates import PARSE_GENERATOR, TEMPLATES_FILE, is_controlled, read_templates
from paranmt_hf.paraphrase.training_data import MAX_TREE, TrainingPairs
from paranmt_hf.util.files import share_weights, write_bytes

EXPECTED = "expected a model of `paranmt paraphrase train`, or another encoder-decoder of transformers"
PAD, START, END = "<pad>", "<s>", "</s>"  # Their ids are 0, 1 and 2

for _config, _model in (
    (ParaNMTLstmConfig, ParaNMTLstmForConditionalGeneration),
    (ParaNMTControlledConfig, ParaNMTControlledForConditionalGeneration),
):
    AutoConfig.register(_config.model_type, _config, exist_ok=True)
    AutoModelForSeq2SeqLM.register(_config, _model, exist_ok=True)
    # So the folder of a model names its own code, for `trust_remote_code=True` where this package is not installed.
    _config.register_for_auto_class()
    _model.register_for_auto_class("AutoModelForSeq2SeqLM")


@dataclass
class EncoderDecoder:
    """A model with its tokenizer; a syntactically controlled one also has a tokenizer of its second sequence."""

    model: Any
    tokenizer: Any
    controls: Any = None

    @property
    def start(self) -> int:
        """Id of the piece that starts every target."""
        return int(self.model.config.decoder_start_token_id)

    @property
    def pad(self) -> int:
        """Id of padding."""
        return int(self.model.config.pad_token_id)

    @property
    def ends(self) -> list[int]:
        """Ids that end a target."""
        ends = self.model.config.eos_token_id
        return list(ends) if isinstance(ends, list | tuple) else [int(ends)]

    @property
    def positions(self) -> int | None:
        """Maximum number of pieces of a sentence; None if the model has no positions."""
        positions = getattr(self.model.config, "max_position_embeddings", None)
        return positions if isinstance(positions, int) else None

    def cut(self, sentences: list[str]) -> list[list[int]]:
        """Encode sources to ids with the end token; nothing is truncated."""
        if not sentences:
            return []
        found: list[list[int]] = self.tokenizer(sentences, add_special_tokens=True, truncation=False).input_ids
        return found

    def cut_targets(self, sentences: list[str]) -> list[list[int]]:
        """Encode targets to ids with the end token."""
        found: list[list[int]] = self.tokenizer(text_target=sentences, truncation=False).input_ids
        return found

    def cut_controls(self, trees: list[str]) -> list[list[int]]:
        """Encode controls to ids with the end token."""
        found: list[list[int]] = self.controls(trees, truncation=False).input_ids
        return found

    def join(self, targets: list[list[int]]) -> list[str]:
        """Decode ids into text, without special pieces and with single blanks."""
        if not targets:
            # Some versions of transformers take no ids for one text.
            return []
        texts = self.tokenizer.batch_decode(targets, skip_special_tokens=True)
        return [" ".join(text.split()) for text in texts]

    def search(
        self, sources: list[list[int]], config: ParaphraseConfig, controls: list[list[int]] | None = None
    ) -> list[list[list[int]]]:
        """Search for the targets of one batch of `sources`, ids with the end token.

        Returns candidates of each sentence, ids without start and end: the most probable first, those of groups in
        turn, samples in the order of sampling. They are at least `config.n`, some of which may be equal.
        """
        batch = encode(
            self.model,
            sources,
            control=controls,
            pad=self.pad,
            start=[self.start],
            ends=self.ends,
            longest=config.max_length,
        )
        change = self._change()
        count = config.width
        if config.sample:
            count = max(config.n, config.beams) if config.chooses else config.n
            content = sources if controls is None else [[*a, *b] for a, b in zip(sources, controls, strict=True)]
            numbers = uniforms(content, config.seed, count, config.max_length)
            ids, _ = sample(batch, numbers, temperature=config.temperature, top_p=config.top_p, change=change)
        elif config.groups > 1:
            ids = diverse_beam_search(
                batch, beams=count, groups=config.groups, diversity=config.diversity, change=change
            )
        else:
            ids, _ = beam_search(batch, beams=count, count=count, change=change)
        ends = set(self.ends)
        ids = [own[:-1] if own[-1] in ends else own for own in ids]
        return [ids[first : first + count] for first in range(0, len(ids), count)]

    def _change(self) -> Change | None:
        """The bans and the forced first word of `generation_config.json`, as a function of scores."""
        asked, processors = self.model.generation_config, list[LogitsProcessor]()
        if words := getattr(asked, "bad_words_ids", None):
            processors.append(NoBadWordsLogitsProcessor(words, self.ends))
        if (first := getattr(asked, "forced_bos_token_id", None)) is not None:
            processors.append(ForcedBOSTokenLogitsProcessor(first))
        if not processors:
            return None

        def change(scores: torch.Tensor, rows: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
            ids = torch.nn.functional.pad(tokens, (1, 0), value=self.start)
            for processor in processors:
                scores = processor(ids, scores)
            return scores

        return change


def locate_paraphraser(name: str | Path) -> Model:
    """Find an encoder-decoder by folder or Hub id, and reject other models before their weights are read."""
    files = locate(name)
    read_configuration(files, EXPECTED)
    return files


def _read_model(files: Model, dtype: torch.dtype = torch.float32) -> EncoderDecoder:
    """Read an encoder-decoder with its tokenizer."""
    _, tokenizer = read_configuration(files, EXPECTED)
    # Otherwise the tokenizer warns of sentences that training accepts.
    tokenizer.model_max_length = int(1e9)
    model = read_encoder_decoder(files, dtype, "model of paraphrases")
    for name in ("decoder_start_token_id", "pad_token_id", "eos_token_id"):
        check_tokens(model.config, name, files.folder / "config.json")
    asked = model.generation_config
    banned = [token for tokens in getattr(asked, "bad_words_ids", None) or [] for token in tokens]
    for name, value in (("forced_bos_token_id", asked.forced_bos_token_id), ("bad_words_ids", banned)):
        if value not in (None, []):
            check_tokens(model.config, name, files.folder / "generation_config.json", value)
    if len(tokenizer) > model.config.vocab_size:
        raise InputError(
            f"the tokenizer in {files.folder} has {len(tokenizer):,} pieces and its model "
            f"{model.config.vocab_size:,}, so they are not of the same model; put a whole copy in its place",
            path=files.folder,
        )
    return EncoderDecoder(model, tokenizer)


@dataclass
class ParaphraserModels:
    """The model of a paraphraser, or the two of a syntactically controlled network (Iyyer et al. 2018, section 3)."""

    paraphrases: EncoderDecoder  # From a sentence, controlled also from the tree of a paraphrase, to the paraphrase
    # From the tree of a sentence and a template to the tree of a paraphrase; None without control
    parses: EncoderDecoder | None = None
    templates: dict[str, int] | None = None  # The templates with their counts, the most frequent first

    @property
    def all(self) -> list[EncoderDecoder]:
        """All models in the order of training."""
        return [own for own in (self.parses, self.paraphrases) if own is not None]

    @property
    def parameters(self) -> int:
        """Number of weights of all models."""
        return sum(weight.numel() for own in self.all for weight in own.model.parameters())

    @property
    def longest_tree(self) -> int:
        """Maximum number of tokens of a tree of a controlled network, the end included."""
        assert self.parses is not None
        return int(self.parses.model.generation_config.max_length)

    def save(self, folder: Path) -> None:
        """Write the models with their tokenizers and templates."""
        with quiet():
            for own in self.all:
                place = folder if own is self.paraphrases else folder / PARSE_GENERATOR
                own.model.save_pretrained(place)
                own.tokenizer.save_pretrained(place)
        share_weights(folder)
        if self.templates is not None:
            write_bytes(folder / TEMPLATES_FILE, f"{json.dumps(self.templates, indent=0)}\n".encode())


def read_models(files: Model, dtype: torch.dtype = torch.float32) -> ParaphraserModels:
    """Read a paraphraser of either kind."""
    paraphrases = _read_model(files, dtype)
    if not is_controlled(files):
        return ParaphraserModels(paraphrases)
    parses = _read_model(Model(files.name, files.folder / PARSE_GENERATOR, files.revision), dtype)
    parses.controls = paraphrases.controls = parses.tokenizer
    return ParaphraserModels(paraphrases, parses, read_templates(files.folder))


def torch_dtype(config: ParaphraseConfig, device: str) -> torch.dtype:
    """Number format to use."""
    if config.dtype != "auto":
        found: torch.dtype = getattr(torch, config.dtype)
        return found
    return torch.float32 if device == "cpu" else torch.float16


def new_models(text: TrainingPairs, templates: dict[str, int]) -> ParaphraserModels:
    """Train tokenizers on pairs, and create the network, or the two of a controlled one, with initial weights.

    `templates` are those of the targets of a controlled network.
    """
    config = text.config
    # Both directions have the same text; without noise, whose misspelt words need no pieces of their own.
    sentences = _first(text.without_noise().tables("train pieces", "to-reference"), "source", "target")
    tokenizer = train_tokenizer(sentences, config.pieces)
    if not text.controlled:
        model = _initial(ParaNMTLstmForConditionalGeneration, ParaNMTLstmConfig, text, vocab_size=len(tokenizer))
        return ParaphraserModels(EncoderDecoder(model, tokenizer))
    trees = train_tree_tokenizer(_first(text.tables("collect labels", "to-reference"), "source_parse", "target_parse"))
    network = ParaNMTControlledForConditionalGeneration
    # Dimension of the vectors of tree tokens.
    width = 64
    tree_shape = {"control_vocab_size": len(trees), "control_embedding_size": width}
    paraphrases = _initial(network, ParaNMTControlledConfig, text, vocab_size=len(tokenizer), **tree_shape)
    parses = _initial(
        network,
        ParaNMTControlledConfig,
        text,
        vocab_size=len(trees),
        embedding_size=width,
        hidden_size=config.tree_hidden,
        # Every label is generated: there are few, and the template says which ones.
        copying=False,
        **tree_shape,
    )
    parses.generation_config.max_length = MAX_TREE
    return ParaphraserModels(EncoderDecoder(paraphrases, tokenizer), EncoderDecoder(parses, trees), templates)


def _first(tables: Iterable[Any], *columns: str) -> Iterator[list[str]]:
    """Text of some columns of the first pairs, from which tokenizers are trained."""
    # More pairs change hardly anything.
    left = 2_000_000
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
    tokenizer = Tokenizer(BPE())
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
    tokenizer = Tokenizer(WordLevel(unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(r"\([^()\s]*|\)"), behavior="isolated")
    tokenizer.decoder = decoders.Fuse()
    trainer = trainers.WordLevelTrainer(
        # Parsers of Penn Treebank trees have about a hundred labels.
        vocab_size=2000,
        special_tokens=[PAD, START, END, "<unk>"],
        show_progress=False,
    )
    tokenizer.train_from_iterator(trees, trainer)
    return _pretrained(tokenizer, unk_token="<unk>")


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
