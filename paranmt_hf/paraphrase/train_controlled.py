"""Train a syntactically controlled paraphrase network: parsed pairs in, a folder with its two models out.

Iyyer, Wieting, Gimpel & Zettlemoyer 2018 (arXiv:1804.06059), section 3; ParaNMT-50M (Wieting & Gimpel 2018), section
6.
"""

from __future__ import annotations

import json
import logging
import platform
import shutil
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Literal

import torch

from paranmt_hf.corpus.pairs import PairSelection
from paranmt_hf.corpus.parsing.templates import template_of, templates_of
from paranmt_hf.errors import InputError
from paranmt_hf.hub.pretrained import quiet
from paranmt_hf.hub.repository import locate
from paranmt_hf.paraphrase.config import ParaphraserConfig, ParaphraserTraining
from paranmt_hf.paraphrase.controlled_card import write_controlled_card
from paranmt_hf.paraphrase.loading import EncoderDecoder
from paranmt_hf.paraphrase.measuring import measure
from paranmt_hf.paraphrase.modeling_paranmt_controlled import (
    ParaNMTControlledConfig,
    ParaNMTControlledForConditionalGeneration,
)
from paranmt_hf.paraphrase.paraphraser_run import (
    AGAIN,
    WITHOUT_EFFECT,
    check_training,
    chosen_pairs,
    first_rows,
    found_or_made,
    new_model,
    several,
)
from paranmt_hf.paraphrase.parsed_pairs import ParsedPairs, parsers_of
from paranmt_hf.paraphrase.piece_store import Batches, PieceStore, read_about, write_pieces
from paranmt_hf.paraphrase.record import Course, Measured
from paranmt_hf.paraphrase.syntax.config import SyntaxConfig
from paranmt_hf.paraphrase.syntax.loading import PARSE_GENERATOR, Network, read_network
from paranmt_hf.paraphrase.syntax.record import ControlledRecord, read_controlled_record
from paranmt_hf.paraphrase.syntax.templates import Templates
from paranmt_hf.paraphrase.syntax.tree_tokenizer import train_tree_tokenizer
from paranmt_hf.paraphrase.tokenizer import train_tokenizer
from paranmt_hf.paraphrase.trainer import set_weights, train_pieces, weights_of
from paranmt_hf.training.checkpoint import read_checkpoint, write_checkpoint
from paranmt_hf.training.inputs import holds_training
from paranmt_hf.training.record import TRAINING_FILE
from paranmt_hf.util.files import share_weights, write_bytes
from paranmt_hf.util.optional import versions
from paranmt_hf.util.records import Identity, as_json, from_json, read_json
from paranmt_hf.util.run import result_folder
from paranmt_hf.util.work import folder_aside
from paranmt_hf.version import __version__

logger = logging.getLogger(__name__)
COMMAND = "train-controlled"
INITIAL, LEFT_OUT = "initial", "left-out.json"
Task = Literal["parses", "paraphrases"]
# What is read, what is written, and after what, of each task: columns of `ParsedPairs.tables`.
COLUMNS: dict[Task, tuple[str, str, str]] = {
    "parses": ("source_parse", "target_parse", "template"),
    "paraphrases": ("source", "target", "target_parse"),
}


@dataclass(frozen=True)
class TrainedControlled:
    """A trained network.

    Attributes:
        folder: Where it is.
        record: Settings, course and figures, as in `training.json`.
        fresh: Whether this call trained it; it may have been there already.
    """

    folder: Path
    record: ControlledRecord
    fresh: bool


@dataclass(frozen=True)
class _LeftOut:
    """The content of `left-out.json` in the work folder: pairs that cannot be trained on, and counts of templates."""

    without_tree: int
    long_trees: int
    templates: dict[str, int]


@dataclass(frozen=True)
class _Run:
    """What a run starts from."""

    config: ParaphraserConfig
    syntax: SyntaxConfig
    training: ParaphraserTraining
    parsed: ParsedPairs
    parsers: str | None

    @cached_property
    def identity(self) -> Identity:
        """Everything that decides the result, as JSON values."""
        training = {name: value for name, value in asdict(self.training).items() if name not in WITHOUT_EFFECT}
        shape = {"paraphraser": asdict(self.config), "syntax": asdict(self.syntax)}
        return as_json({**shape, "training": training, "data": self.parsed.pairs.identity})

    @property
    def inputs(self) -> dict[str, str]:
        """Names, without their folders, of what it begins with; and of what gave the trees."""
        return {"data": self.parsed.names, **({"parser": self.parsers} if self.parsers else {})}


def train_controlled(
    data: str | Path | Sequence[str | Path],
    out: str | Path,
    *,
    config: ParaphraserConfig | None = None,
    syntax: SyntaxConfig | None = None,
    training: ParaphraserTraining | None = None,
    selection: PairSelection | None = None,
    exclude: str | Path | Sequence[str | Path] = (),
) -> TrainedControlled:
    """Train a syntactically controlled paraphrase network: a parse generator and a paraphrase generator.

    Killed at any moment and called again it goes on from the last checkpoint; on the CPU it ends with the same bytes.

    Args:
        data: One or more folders or Parquet files of parsed pairs, as `paranmt parse` writes them: with the columns
            `reference`, `translation`, `reference_parse` and `translation_parse`.
        out: Folder of the network; work in progress lies beside it in `<out>.work`.
        config: Shape of the paraphrase generator.
        syntax: Shape of the parse generator.
        training: How both are trained.
        selection: Which pairs are used.
        exclude: Folders or files of evaluation sets, see `read_sentences`; pairs with one of their sentences are left
            out, case and punctuation aside.

    Raises:
        InputError: Something in the data, the settings or the folders has to be put right first.
    """
    config, syntax, training = (
        config or ParaphraserConfig(),
        syntax or SyntaxConfig(),
        training or ParaphraserTraining(),
    )
    _check_settings(config, syntax, training)
    out, sources = result_folder(out), several(data)
    parsers = parsers_of(sources)
    pairs, names = chosen_pairs(sources, selection, exclude, seed=training.seed, all_columns=True)
    run = _Run(config, syntax, training.resolved("lstm"), ParsedPairs(pairs, names, syntax.max_tree), parsers)
    record, fresh = found_or_made(
        out,
        COMMAND,
        run.identity,
        _read_record,
        lambda record: record.settings,
        lambda work: _train(run, work, out.name),
        worth=_holds_models,
    )
    return TrainedControlled(out, record, fresh)


def _check_settings(config: ParaphraserConfig, syntax: SyntaxConfig, training: ParaphraserTraining) -> None:
    """Refuse what these networks cannot be, before any work."""
    if config.base is not None:
        raise InputError("base is of no use here: no other model reads the tree that a paraphrase is to have")
    if config.decoder_layers < 2:
        raise InputError(
            f"decoder_layers must be at least 2, of which the first looks at the tree, was {config.decoder_layers}"
        )
    if syntax.tree_hidden % 2:
        raise InputError(f"tree_hidden is shared by two directions and must be even, was {syntax.tree_hidden}")
    if training.noise:
        raise InputError(f"noise is of no use here: noisy input has no tree; leave it out, was {training.noise:g}")
    check_training(training)


def _read_record(folder: Path) -> ControlledRecord:
    try:
        return read_controlled_record(folder)
    except InputError as error:
        raise InputError(
            f"{folder} exists and is no network of this program ({error}); choose another --out or move it away"
        ) from None


def _holds_models(work: Path) -> bool:
    """Tell whether a work folder holds what took long to make: a checkpoint, or a trained model."""
    return holds_training(work) or any((work / f"{task}.safetensors").exists() for task in COLUMNS)


def _train(run: _Run, work: Path, name: str) -> ControlledRecord:
    """Prepare, unless an earlier run did; train one model after the other; write both into the work folder."""
    left_out = _left_out(run, work)
    if run.parsed.pairs.left_out_by:
        logger.info(run.parsed.pairs.left_out)
    logger.info(
        f"{left_out.without_tree:,} pairs without a tree on a side, {left_out.long_trees:,} with a long one; "
        f"{len(left_out.templates):,} templates"
    )
    network = _initial(run, work / INITIAL, left_out)
    limits: dict[Task, int] = {"parses": run.syntax.max_tree, "paraphrases": run.training.max_pieces}
    courses = {}
    for task, most in limits.items():
        own: EncoderDecoder = getattr(network, task)
        _cut(run, own, work / f"pieces-of-{task}", task, most)
        courses[task] = _trained(run, own, work, task, most)
    return _write(run, network, courses, left_out, work, name)


def _left_out(run: _Run, work: Path) -> _LeftOut:
    """Count what cannot be trained on, and the templates of what can; or find it counted."""
    path = work / LEFT_OUT
    if not path.exists():
        counts: Counter[str] = Counter()
        dropped: Counter[str] = Counter()
        for table in run.parsed.tables(run.training.direction, "read", dropped):
            found = templates_of(table["target_parse"]).value_counts()
            for template, count in zip(*(part.to_pylist() for part in found.flatten()), strict=True):
                counts[template] += count
        if not counts:
            raise InputError(
                f"nothing to train on: {run.parsed.pairs.left_out}; of the others {dropped['without_tree']:,} have a "
                f"sentence without a tree, and {dropped['long_trees']:,} a tree of more than {run.syntax.max_tree} "
                "tokens; look at the data and at the options that choose"
            )
        made = _LeftOut(dropped["without_tree"], dropped["long_trees"], Templates(counts).counts)
        write_bytes(path, json.dumps(asdict(made)).encode())
    return from_json(_LeftOut, read_json(path, "what was left out of training"), path)


def _initial(run: _Run, folder: Path, left_out: _LeftOut) -> Network:
    """Make both models before the first step, with their pieces and tokens, or find them made."""
    if not folder.exists():
        with folder_aside(folder, doing="save the models to", advice=AGAIN) as aside, quiet():
            # Both directions have the same text.
            tables = run.parsed.tables("to-reference", "make pieces")
            pieces = train_tokenizer(
                first_rows((table["source"], table["target"]) for table in tables), run.config.pieces
            )
            tables = run.parsed.tables("to-reference", "list labels")
            tokens = train_tree_tokenizer(
                first_rows((table["source_parse"], table["target_parse"]) for table in tables)
            )
            pieces.save_pretrained(aside)
            tokens.save_pretrained(aside / PARSE_GENERATOR)
            _new_model(run, len(pieces), len(tokens)).save_pretrained(aside)
            _new_parse_generator(run, len(tokens)).save_pretrained(aside / PARSE_GENERATOR)
            Templates(left_out.templates).write(aside)
    return read_network(locate(folder))


def _new_model(run: _Run, pieces: int, tokens: int) -> ParaNMTControlledForConditionalGeneration:
    model = new_model(
        run.config,
        run.training,
        pieces,
        ParaNMTControlledForConditionalGeneration,
        ParaNMTControlledConfig,
        control_vocab_size=tokens,
        control_embedding_size=run.syntax.tree_embedding,
        copying=not run.syntax.no_copy,
    )
    assert isinstance(model, ParaNMTControlledForConditionalGeneration)
    return model


def _new_parse_generator(run: _Run, tokens: int) -> ParaNMTControlledForConditionalGeneration:
    syntax = run.syntax
    config = replace(run.config, hidden=syntax.tree_hidden, embedding=syntax.tree_embedding)
    # Every label is generated: there are few, and the template says which ones.
    own = replace(run, config=config, syntax=replace(syntax, no_copy=True))
    model = _new_model(own, tokens, tokens)
    model.generation_config.max_length = syntax.max_tree
    return model


def _cut(run: _Run, own: EncoderDecoder, folder: Path, task: Task, most: int) -> None:
    """Cut all pairs into pieces and tokens, unless an earlier run did."""
    if read_about(folder) is not None:
        return
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    cuts = {"source": own.cut, "target": own.cut_targets, "control": own.cut_controls}
    tables = run.parsed.tables(run.training.direction, f"cut {task}")
    columns = (tuple(table[name] for name in (*COLUMNS[task], "reference")) for table in tables)
    write_pieces(columns, folder, cuts, most=most, held_out=run.training.held_out)


def _trained(run: _Run, own: EncoderDecoder, work: Path, task: Task, most: int) -> Course:
    """Train one of the models to its end, or find that an earlier run did."""
    training, folder, path = run.training, work / task, work / f"{task}.safetensors"
    done = read_checkpoint(path)
    if done is not None:
        set_weights(own.model, done[0])
        own.model.eval()
        return from_json(Course, done[1], path)
    folder.mkdir(exist_ok=True)
    store, held_out = (PieceStore(work / f"pieces-of-{task}", part) for part in ("train", "held-out"))
    batches = Batches(store, training.batch_tokens, epochs=training.epochs, seed=training.seed, pad=own.pad)

    def measured(step: int) -> Measured:
        return measure(
            own,
            held_out,
            most=training.measured_pairs,
            budget=training.batch_tokens,
            longest=most,
            step=step,
            template_of=template_of if task == "parses" else None,
        )

    course = train_pieces(own, batches, folder, training, measured if len(held_out) else None, label=f"train {task}")
    write_checkpoint(path, weights_of(own.model), asdict(course))
    return course


def _write(
    run: _Run, network: Network, courses: dict[Task, Course], left_out: _LeftOut, work: Path, name: str
) -> ControlledRecord:
    """Write both models with their pieces and tokens, the templates, the record and the card."""
    about = read_about(work / "pieces-of-paraphrases")
    assert about is not None
    both = (network.paraphrases, network.parses)
    record = ControlledRecord(
        settings=run.identity,
        inputs=run.inputs,
        pairs=about.pairs["train"],
        held_out=about.pairs["held-out"],
        too_long=about.too_long,
        long_trees=left_out.long_trees,
        without_tree=left_out.without_tree,
        templates=len(left_out.templates),
        course=courses["paraphrases"],
        parse_course=courses["parses"],
        parameters=sum(weight.numel() for own in both for weight in own.model.parameters()),
        pieces=len(network.paraphrases.tokenizer),
        tree_tokens=len(network.parses.tokenizer),
        versions={"paranmt-hf": __version__, **versions(("torch", "transformers", "tokenizers", "sacrebleu"))},
        machine=platform.machine(),
        device="cpu" if run.training.device == "cpu" or not torch.cuda.is_available() else "cuda",
    )
    folder = work / "model"
    shutil.rmtree(folder, ignore_errors=True)
    with folder_aside(folder, doing="save the models to", advice=AGAIN) as aside:
        with quiet():
            for own, place in zip(both, (aside, aside / PARSE_GENERATOR), strict=True):
                own.model.save_pretrained(place)
                own.tokenizer.save_pretrained(place)
        share_weights(aside)
        network.templates.write(aside)
        (aside / TRAINING_FILE).write_text(json.dumps(record.to_json(), indent=1), encoding="utf8")
        write_controlled_card(aside, name, record, network.templates)
    return record
