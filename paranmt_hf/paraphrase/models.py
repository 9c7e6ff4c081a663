"""The models of a paraphraser from initial weights to the final folder."""

from __future__ import annotations

import json
import logging
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import torch
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerFast

from paranmt_hf.corpus.parsing.trees import template_of, templates_of
from paranmt_hf.errors import InputError
from paranmt_hf.hub.repository import locate
from paranmt_hf.paraphrase.card import card_values, paraphraser_card
from paranmt_hf.paraphrase.config import ParaphraserConfig, ParaphraserTraining
from paranmt_hf.paraphrase.control import measure_control
from paranmt_hf.paraphrase.loading import EncoderDecoder, ParaphraserModels, read_models
from paranmt_hf.paraphrase.modeling_paranmt_controlled import (
    ParaNMTControlledConfig,
    ParaNMTControlledForConditionalGeneration,
)
from paranmt_hf.paraphrase.modeling_paranmt_lstm import ParaNMTLstmConfig, ParaNMTLstmForConditionalGeneration
from paranmt_hf.paraphrase.pieces import Batches, PieceStore, PieceSummary, read_summary, write_pieces
from paranmt_hf.paraphrase.record import ParaphraserRecord, ParseGenerator, TrainingCourse
from paranmt_hf.paraphrase.templates import KnownTemplates
from paranmt_hf.paraphrase.trainer import measure, train_pieces
from paranmt_hf.paraphrase.training_pairs import (
    CONTROLLED_COLUMNS,
    PARSE_COLUMNS,
    SENTENCE_COLUMNS,
    TrainingPairs,
    TrainingSetup,
    first_columns,
)
from paranmt_hf.training.checkpoint import read_checkpoint, set_weights, weights_of, write_checkpoint
from paranmt_hf.util.files import new_folder, write_bytes
from paranmt_hf.util.records import from_json, made_with, read_json
from paranmt_hf.util.wording import counted

logger = logging.getLogger(__name__)
PACKAGES = ("torch", "transformers", "tokenizers", "sacrebleu")
INITIAL = "initial"
LEFT_OUT_FILE = "left-out.json"
TREE_EMBEDDING = 64  # Dimension of the vectors of tree tokens
# Their ids are 0, 1 and 2.
PAD, START, END = "<pad>", "<s>", "</s>"
UNKNOWN = "<unk>"
# Maximum number of tree tokens, special ones included; parsers of Penn Treebank trees have about a hundred labels.
MAX_TREE_TOKENS = 2000
TREE_TOKEN = Regex(r"\([^()\s]*|\)")


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
    tokenizer.pre_tokenizer = pre_tokenizers.Split(TREE_TOKEN, behavior="isolated")
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


@dataclass(frozen=True)
class LeftOut:
    """The content of `left-out.json`: pairs that cannot be trained on, and counts of templates."""

    without_tree: int
    long_trees: int
    same_template: int
    templates: dict[str, int]


def count_left_out(text: TrainingPairs, work: Path) -> LeftOut:
    """Count pairs that cannot be trained on, and the templates of the others; or read the counts of an earlier run."""
    path = work / LEFT_OUT_FILE
    if not path.exists():
        counts: Counter[str] = Counter()
        dropped: Counter[str] = Counter()
        for table in text.tables("read", dropped=dropped):
            found = templates_of(table["target_parse"]).value_counts()
            for template, count in zip(*(part.to_pylist() for part in found.flatten()), strict=True):
                counts[template] += count
        if not counts:
            raise InputError(
                f"nothing to train on: {text.pairs.left_out}; of the others {dropped['without_tree']:,} have a "
                f"sentence without a tree, {dropped['long_trees']:,} a tree of more than {text.max_tree} tokens, and "
                f"{dropped['same_template']:,} two trees of one template (see `same_template`); check the data and "
                "the options that select them"
            )
        kinds = {name: dropped[name] for name in ("without_tree", "long_trees", "same_template")}
        made = LeftOut(**kinds, templates=KnownTemplates(counts).counts)
        write_bytes(path, json.dumps(asdict(made)).encode())
    return from_json(LeftOut, read_json(path, "counts of what was left out of training"), path)


def _initial_models(setup: TrainingSetup, left_out: LeftOut | None, folder: Path) -> ParaphraserModels:
    """Create the initial models with their tokenizers, or read those of an earlier run."""
    if not folder.exists():
        with new_folder(folder) as aside:
            _new_models(setup.config, setup.text, left_out).save(aside)
    return read_models(locate(folder))


def _new_models(config: ParaphraserConfig, text: TrainingPairs, left_out: LeftOut | None) -> ParaphraserModels:
    if left_out is None:
        texts = first_columns(text.pairs.batches(), "reference", "translation")
        tokenizer = train_tokenizer(texts, config.pieces)
        return ParaphraserModels(EncoderDecoder(_new_model(config, text.training, len(tokenizer)), tokenizer))

    def columns(label: str, *names: str) -> Iterator[list[str]]:
        # Both directions have the same text.
        return first_columns(text.tables(label, "to-reference"), *names)

    tokenizer = train_tokenizer(columns("train pieces", "source", "target"), config.pieces)
    trees = train_tree_tokenizer(columns("collect labels", "source_parse", "target_parse"))
    tokens = len(trees)
    shape = {"control_vocab_size": tokens, "control_embedding_size": TREE_EMBEDDING}
    paraphrases = _new_model(config, text.training, len(tokenizer), copying=not config.no_copy, **shape)
    # Every label is generated: there are few, and the template says which ones.
    sizes = {"hidden_size": config.tree_hidden, "embedding_size": TREE_EMBEDDING}
    parses = _new_model(config, text.training, tokens, copying=False, **shape, **sizes)
    parses.generation_config.max_length = config.max_tree
    return ParaphraserModels(
        EncoderDecoder(paraphrases, tokenizer), EncoderDecoder(parses, trees), KnownTemplates(left_out.templates)
    )


def _new_model(
    config: ParaphraserConfig, training: ParaphraserTraining, pieces: int, **more: Any
) -> ParaNMTLstmForConditionalGeneration:  # noqa: ANN401
    """Create a model with initial weights drawn by the seed; `more` adds or overrides settings of its shape."""
    shape = {
        "vocab_size": pieces,
        "embedding_size": config.embedding,
        "hidden_size": config.hidden,
        "dropout": config.dropout,
        **more,
    }
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(training.seed)
        model = (
            ParaNMTControlledForConditionalGeneration(ParaNMTControlledConfig(**shape))
            if config.model == "controlled"
            else ParaNMTLstmForConditionalGeneration(ParaNMTLstmConfig(**shape))
        )
    settings = model.generation_config
    settings.num_beams, settings.early_stopping, settings.max_length = 4, True, training.max_pieces
    return model


@dataclass(frozen=True)
class TrainingTask:
    """A model to train.

    `columns` are those of its source, target, control if there is one, and key, in `TrainingPairs.tables`; `longest`
    is the maximum number of pieces of a source or target; `template_of` gives the template of a target that is a tree.
    """

    name: str
    own: EncoderDecoder
    columns: tuple[str, ...]
    longest: int
    template_of: Callable[[str], str] | None = None


def make_paraphraser(setup: TrainingSetup, work: Path, folder: Path, name: str) -> ParaphraserRecord:
    """Train one model after the other, and write them with their tokenizers and the card."""
    left_out = count_left_out(setup.text, work) if setup.controlled else None
    models = read_models(setup.base) if setup.base else _initial_models(setup, left_out, work / INITIAL)
    tasks = _tasks(setup, models)
    for task in tasks:
        if task.own.positions is not None and task.own.positions < task.longest:
            raise InputError(
                f"max_pieces {task.longest} is more than the {task.own.positions} positions of {setup.inputs['base']}",
                option="max_pieces",
            )
    summaries = {task.name: _cut(setup, task, work / f"pieces-of-{task.name}") for task in tasks}
    courses = {task.name: _trained(setup, task, work) for task in tasks}
    main, first = tasks[-1], tasks[0]
    models.save(folder)
    record = ParaphraserRecord(
        settings=setup.settings,
        inputs=setup.inputs,
        pairs=summaries[main.name].pairs["train"],
        held_out=summaries[main.name].pairs["held-out"],
        too_long=summaries[main.name].too_long,
        left_out=summaries[main.name].left_out,
        course=courses[main.name],
        model_type=main.own.model.config.model_type,
        parameters=models.parameters,
        pieces=len(main.own.tokenizer),
        device="cpu" if setup.training.device == "cpu" or not torch.cuda.is_available() else "cuda",
        parses=None
        if left_out is None
        else ParseGenerator(
            without_tree=left_out.without_tree,
            long_trees=left_out.long_trees,
            same_template=left_out.same_template,
            templates=len(left_out.templates),
            tree_tokens=len(first.own.tokenizer),
            course=courses[first.name],
            control=measure_control(folder, setup.text, setup.inputs.get("parser")),
        ),
        **made_with(*PACKAGES),
    )
    card = paraphraser_card(card_values(name, record, models.templates))
    (folder / "README.md").write_text(card, encoding="utf8", newline="\n")
    return record


def _tasks(setup: TrainingSetup, models: ParaphraserModels) -> list[TrainingTask]:
    """The models to train; the last one generates sentences."""
    longest = setup.training.max_pieces
    if models.parses is None:
        return [TrainingTask("paraphrases", models.paraphrases, SENTENCE_COLUMNS, longest)]
    return [
        TrainingTask("parses", models.parses, PARSE_COLUMNS, setup.config.max_tree, template_of),
        TrainingTask("paraphrases", models.paraphrases, CONTROLLED_COLUMNS, longest),
    ]


def _cut(setup: TrainingSetup, task: TrainingTask, folder: Path) -> PieceSummary:
    """Encode all pairs to pieces, unless an earlier run did."""
    if (found := read_summary(folder)) is not None:
        return found
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    own = task.own
    cuts = {"source": own.cut, "target": own.cut_targets, "control": own.cut_controls}
    if own.controls is None:
        del cuts["control"]

    def columns() -> Iterator[tuple[pa.ChunkedArray, ...]]:
        for table in setup.text.tables(f"cut {task.name}"):
            yield tuple(table[name] for name in task.columns)

    pairs = setup.text.pairs
    summary = write_pieces(
        columns(),
        folder,
        cuts,
        longest=task.longest,
        held_out=setup.training.held_out,
        left_out=lambda: pairs.left_out_by,
    )
    if summary.left_out:
        logger.info(pairs.left_out)
    logger.info(
        f"{counted(summary.pairs['train'], 'pair')}, {summary.pairs['held-out']:,} held out, {summary.too_long:,} too "
        "long"
    )
    return summary


def _trained(setup: TrainingSetup, task: TrainingTask, work: Path) -> TrainingCourse:
    """Train a model to its end, or read the weights of an earlier run."""
    training, folder, path = setup.training, work / task.name, work / f"trained-{task.name}.safetensors"
    done = read_checkpoint(path)
    if done is not None:
        set_weights(task.own.model, done[0])
        task.own.model.eval()
        return from_json(TrainingCourse, done[1], path)
    folder.mkdir(exist_ok=True)
    store, held_out = (PieceStore(work / f"pieces-of-{task.name}", part) for part in ("train", "held-out"))
    batches = Batches(store, training.batch_tokens, epochs=training.epochs, seed=training.seed, pad=task.own.pad)

    measured = partial(
        measure, task.own, held_out, budget=training.batch_tokens, longest=task.longest, template_of=task.template_of
    )
    label = f"train {task.name}"
    course = train_pieces(task.own, batches, folder, training, measured if len(held_out) else None, label=label)
    write_checkpoint(path, weights_of(task.own.model), asdict(course))
    return course
