"""Read, create and save encoder-decoders with their tokenizers, and search for targets with them.

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
    # With this, the folder of a model names its code, which `trust_remote_code=True` runs where this package is not
    # installed.
    _config.register_for_auto_class()
    _model.register_for_auto_class("AutoModelForSeq2SeqLM")


@dataclass
class EncoderDecoder:
    """An encoder-decoder with its tokenizer."""

    model: Any
    tokenizer: Any  # Tokenizer of sources and targets
    controls: Any = None  # Tokenizer of controls, the second input of a controlled model; None without control

    @property
    def start(self) -> int:
        """Id of the piece that starts every target."""
        return int(self.model.config.decoder_start_token_id)

    @property
    def pad(self) -> int:
        """Id of the padding piece."""
        return int(self.model.config.pad_token_id)

    @property
    def ends(self) -> list[int]:
        """Ids of the pieces that end a target."""
        ends = self.model.config.eos_token_id
        return list(ends) if isinstance(ends, list | tuple) else [int(ends)]

    @property
    def positions(self) -> int | None:
        """Maximum number of pieces of a sentence; None if the model has no such limit."""
        positions = getattr(self.model.config, "max_position_embeddings", None)
        return positions if isinstance(positions, int) else None

    def cut(self, sentences: list[str]) -> list[list[int]]:
        """Encode sources to ids of pieces, with the end piece; nothing is truncated."""
        if not sentences:
            return []
        found: list[list[int]] = self.tokenizer(sentences, add_special_tokens=True, truncation=False).input_ids
        return found

    def cut_targets(self, sentences: list[str]) -> list[list[int]]:
        """Encode targets to ids of pieces, with the end piece; nothing is truncated."""
        found: list[list[int]] = self.tokenizer(text_target=sentences, truncation=False).input_ids
        return found

    def cut_controls(self, trees: list[str]) -> list[list[int]]:
        """Encode controls, such as trees, to ids of tokens, with the end token; nothing is truncated."""
        found: list[list[int]] = self.controls(trees, truncation=False).input_ids
        return found

    def join(self, targets: list[list[int]]) -> list[str]:
        """Decode ids into text, without special pieces and with single blanks."""
        if not targets:
            # Some versions of transformers take an empty list for the ids of one text.
            return []
        texts = self.tokenizer.batch_decode(targets, skip_special_tokens=True)
        return [" ".join(text.split()) for text in texts]

    def search(
        self, sources: list[list[int]], config: ParaphraseConfig, controls: list[list[int]] | None = None
    ) -> list[list[list[int]]]:
        """Search for candidates for the targets of one batch.

        Args:
            sources: Ids of each source, with the end piece [source][piece].
            config: Settings of the search.
            controls: Ids of the control of each source, with the end token; None for a model without control.

        Returns:
            Ids of the candidates of each source, without start and end piece [source][candidate][piece]. Each source
            has at least `config.n` candidates, some of which may be equal. The most probable one comes first; groups
            of beams take turns, and samples are in the order of sampling.
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
        ids = [target[:-1] if target[-1] in ends else target for target in ids]
        return [ids[first : first + count] for first in range(0, len(ids), count)]

    def _change(self) -> Change | None:
        """Return a function that changes scores by the banned words and the first piece of `generation_config.json`.

        Returns None if the file names neither.
        """
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
    """Find an encoder-decoder by folder or Hub id.

    Raises `InputError` for any other model, before its weights are read.
    """
    files = locate(name)
    read_configuration(files, EXPECTED)
    return files


def _read_model(files: Model, dtype: torch.dtype = torch.float32) -> EncoderDecoder:
    """Read an encoder-decoder with its tokenizer; raises `InputError` if they do not fit each other."""
    _, tokenizer = read_configuration(files, EXPECTED)
    # Without this, the tokenizer would warn of long sentences that training accepts.
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
    """The model of a paraphraser, or both models of a syntactically controlled network (Iyyer et al. 2018, section 3).

    Attributes:
        paraphrases: Generates a paraphrase from a sentence; in a controlled network, from a sentence and the tree of
            the paraphrase.
        parses: Generates the tree of a paraphrase from the tree of a sentence and a template; None without control.
        templates: Templates of a controlled network with their counts, the most frequent first; None without control.
    """

    paraphrases: EncoderDecoder
    parses: EncoderDecoder | None = None
    templates: dict[str, int] | None = None

    @property
    def all(self) -> list[EncoderDecoder]:
        """All models, in the order of their training."""
        return [network for network in (self.parses, self.paraphrases) if network is not None]

    @property
    def parameters(self) -> int:
        """Number of weights of all models."""
        return sum(weight.numel() for network in self.all for weight in network.model.parameters())

    @property
    def longest_tree(self) -> int:
        """Maximum number of tokens of a tree, the end token included; for a controlled network only."""
        assert self.parses is not None
        return int(self.parses.model.generation_config.max_length)

    def save(self, folder: Path) -> None:
        """Write the models with their tokenizers and templates into a folder."""
        with quiet():
            for network in self.all:
                place = folder if network is self.paraphrases else folder / PARSE_GENERATOR
                network.model.save_pretrained(place)
                network.tokenizer.save_pretrained(place)
        share_weights(folder)
        if self.templates is not None:
            write_bytes(folder / TEMPLATES_FILE, f"{json.dumps(self.templates, indent=0)}\n".encode())


def read_models(files: Model, dtype: torch.dtype = torch.float32) -> ParaphraserModels:
    """Read the models of a paraphraser, controlled or not, with their tokenizers and templates."""
    paraphrases = _read_model(files, dtype)
    if not is_controlled(files):
        return ParaphraserModels(paraphrases)
    parses = _read_model(Model(files.name, files.folder / PARSE_GENERATOR, files.revision), dtype)
    parses.controls = paraphrases.controls = parses.tokenizer
    return ParaphraserModels(paraphrases, parses, read_templates(files.folder))


def torch_dtype(config: ParaphraseConfig, device: str) -> torch.dtype:
    """Return the number format of the settings; by default float32 on a CPU and float16 on a GPU."""
    if config.dtype != "auto":
        found: torch.dtype = getattr(torch, config.dtype)
        return found
    return torch.float32 if device == "cpu" else torch.float16


def new_models(text: TrainingPairs, templates: dict[str, int]) -> ParaphraserModels:
    """Train tokenizers on pairs, and create the models of a paraphraser with initial weights.

    `templates` are the templates of the targets with their counts, for a controlled network only.
    """
    config = text.config
    # One direction is enough, because both have the same text. Noise is left out, because misspelt words need no
    # pieces of their own.
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
        # Labels are not copied, because there are few of them and the template says which ones to generate.
        copying=False,
        **tree_shape,
    )
    parses.generation_config.max_length = MAX_TREE
    return ParaphraserModels(EncoderDecoder(paraphrases, tokenizer), EncoderDecoder(parses, trees), templates)


def _first(tables: Iterable[Any], *columns: str) -> Iterator[list[str]]:
    """Yield the texts of some columns of the first two million pairs, from which tokenizers are trained."""
    # More pairs would hardly change the tokenizers.
    left = 2_000_000
    for table in tables:
        for name in columns:
            yield table[name].slice(0, left).to_pylist()
        left -= table.num_rows
        if left <= 0:
            return


def _initial(network: Any, shape: Any, text: TrainingPairs, **sizes: Any) -> Any:  # noqa: ANN401 - classes of models
    """Create a network with initial weights drawn by the seed of the training.

    Args:
        network: Class of the model.
        shape: Class of its configuration.
        text: Training pairs, with the settings of model and training.
        sizes: Fields of the configuration, which add to or replace the sizes in the settings.
    """
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
    """Train a tokenizer of sentences by byte-pair encoding (Sennrich et al. 2016).

    Pieces are made of bytes, so that no character is unknown. The tokenizer adds the end piece to each sentence. Equal
    texts give equal tokenizers.

    Args:
        texts: Batches of texts.
        pieces: Maximum size of the vocabulary: three special pieces, 256 bytes, and merges.
    """
    tokenizer = Tokenizer(BPE())
    # With a blank before it, the first word has the same pieces as inside a sentence.
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
    """Train a tokenizer of linearised trees, whose tokens are `(S`, `(NP`, `)` and the like, the most frequent first.

    The tokenizer adds the end token to each tree. Equal trees give equal tokenizers.
    """
    tokenizer = Tokenizer(WordLevel(unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(r"\([^()\s]*|\)"), behavior="isolated")
    tokenizer.decoder = decoders.Fuse()
    trainer = trainers.WordLevelTrainer(
        # Parsers of Penn Treebank trees have about a hundred labels, so no label is left out.
        vocab_size=2000,
        special_tokens=[PAD, START, END, "<unk>"],
        show_progress=False,
    )
    tokenizer.train_from_iterator(trees, trainer)
    return _pretrained(tokenizer, unk_token="<unk>")


def _pretrained(tokenizer: Tokenizer, **tokens: str) -> PreTrainedTokenizerFast:
    """Return a tokenizer of transformers that adds the end piece to each text; `tokens` are more special tokens."""
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
