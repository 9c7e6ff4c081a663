"""What is checked of a syntactically controlled network before it is published: that its parts are one network."""

from __future__ import annotations

import inspect
import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from paranmt_hf.errors import InputError
from paranmt_hf.hub.publish import files_of
from paranmt_hf.hub.repository import Model, locate
from paranmt_hf.hub.upload import Content, Parcel, stage
from paranmt_hf.paraphrase.check_paraphraser import (
    CODE_FILE,
    OF_MODELS,
    PROBE,
    kind_of,
    refuse_other_code,
    refuse_other_figures,
    refuse_other_weights,
)
from paranmt_hf.paraphrase.syntax.record import KIND
from paranmt_hf.paraphrase.syntax.templates import TEMPLATES_FILE
from paranmt_hf.training.record import TRAINING_FILE

if TYPE_CHECKING:
    from paranmt_hf.paraphrase.syntax.loading import Network
    from paranmt_hf.paraphrase.syntax.record import ControlledRecord

# The folder of the parse generator, as `syntax/loading.py` has it, which brings torch.
INNER = "parse-generator/"
CODE = ("modeling_paranmt_controlled.py", CODE_FILE)
CODE_PATHS = tuple(f"{place}{name}" for place in ("", INNER) for name in CODE)
OF_NETWORKS = re.compile(rf"({re.escape(INNER)})?({OF_MODELS})|{re.escape(TEMPLATES_FILE)}|{re.escape(TRAINING_FILE)}")
# Trees of the sentences of `PROBE`, more or less.
PROBE_TREES = ["(S(NP)(VP))", "(S(NP)(VP(NP)))"]


def is_network(folder: Path) -> bool:
    """Tell whether a folder says that `paranmt train-controlled` made it."""
    return kind_of(folder) == KIND


def belongs_to_a_network(path: str) -> bool:
    """Tell whether a file of a repository is one of those that a published network may consist of."""
    return path in CODE_PATHS or bool(OF_NETWORKS.fullmatch(path))


def network_files(folder: Path) -> dict[str, Content]:
    """Collect the files of a network that go: both models, templates, record, and the code of this version."""
    from paranmt_hf.paraphrase import modeling_paranmt_controlled, modeling_paranmt_lstm

    files: dict[str, Content] = {path: folder / path for path in files_of(folder) if OF_NETWORKS.fullmatch(path)}
    code = (modeling_paranmt_controlled, modeling_paranmt_lstm)
    sources = {name: inspect.getsource(module).encode() for name, module in zip(CODE, code, strict=True)}
    return files | {path: sources[path.rpartition("/")[2]] for path in CODE_PATHS}


def load_checked_network(folder: Path, record: ControlledRecord) -> Network:
    """Load a network, and compare it with its record.

    Raises:
        InputError: It cannot be loaded, is another network than its record says, holds weights that are no numbers,
            or names code that is not this package's.
    """
    from paranmt_hf.paraphrase.syntax.loading import read_network

    network = read_network(locate(folder))
    models = [own.model for own in (network.paraphrases, network.parses)]
    refuse_other_figures(
        folder,
        record,
        {
            "parameters": sum(weight.numel() for model in models for weight in model.parameters()),
            "pieces": len(network.paraphrases.tokenizer),
            "tree_tokens": len(network.parses.tokenizer),
            "templates": len(network.templates),
        },
    )
    for model in models:
        refuse_other_weights(folder, model)
    for place in (folder, folder / INNER):
        refuse_other_code(place, CODE)
    return network


def check_whole_network(parcel: Parcel, network: Network, folder: Path) -> None:
    """Load what goes as a reader would, and compare its trees and paraphrases with those of the folder.

    Raises:
        InputError: They differ.
    """
    from paranmt_hf.paraphrase.syntax.loading import read_network

    with tempfile.TemporaryDirectory() as staged:
        stage(parcel, Path(staged))
        sent = read_network(Model(folder.name, Path(staged), ""))
        found = [_generated(each) for each in (network, sent)]
    if found[0] != found[1] or sent.templates.counts != network.templates.counts:
        raise InputError(f"{folder} gives other paraphrases than its published files would; train or copy it again")


def _generated(network: Network) -> list[list[list[list[int]]]]:
    """Trees after the most frequent templates, and paraphrases after these trees; a template is a tree too."""
    from paranmt_hf.paraphrase.config import ParaphraseConfig
    from paranmt_hf.paraphrase.search import search

    config = ParaphraseConfig(beams=2, n=2, max_length=20)
    parses, paraphrases = network.parses, network.paraphrases
    templates = network.templates.most_frequent(len(PROBE))
    asked = parses.cut_controls((templates * len(PROBE))[: len(PROBE)])
    trees = search(parses, parses.cut(PROBE_TREES), config, asked)
    controls = [[*candidates[0], parses.ends[0]] for candidates in trees]
    return [trees, search(paraphrases, paraphrases.cut(PROBE), config, controls)]
