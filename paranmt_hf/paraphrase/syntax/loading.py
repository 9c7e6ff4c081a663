"""Reading a syntactically controlled network: two models, and the templates it was trained on."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from paranmt_hf.errors import InputError
from paranmt_hf.hub.repository import Model
from paranmt_hf.paraphrase.loading import EncoderDecoder, read_model
from paranmt_hf.paraphrase.syntax.kind import check_control
from paranmt_hf.paraphrase.syntax.templates import TEMPLATES_FILE, Templates, read_templates

# The folder of the parse generator in that of the paraphrase generator.
PARSE_GENERATOR = "parse-generator"


@dataclass
class Network:
    """A syntactically controlled network (Iyyer et al. 2018, section 3).

    Attributes:
        parses: From the tree of a sentence and a template to the tree of a paraphrase.
        paraphrases: From a sentence and the tree of a paraphrase to the paraphrase.
        templates: What it was trained on.
    """

    parses: EncoderDecoder
    paraphrases: EncoderDecoder
    templates: Templates


def read_network(files: Model, dtype: torch.dtype = torch.float32) -> Network:
    """Read a syntactically controlled network.

    Raises:
        InputError: It is a model of another kind, damaged, or a part of it is missing.
    """
    check_control(files, templates=True)
    inner = files.folder / PARSE_GENERATOR
    if not inner.is_dir() or not (files.folder / TEMPLATES_FILE).is_file():
        missing = PARSE_GENERATOR if not inner.is_dir() else TEMPLATES_FILE
        raise InputError(f"{files.folder} has no {missing}, so it is incomplete; put a whole copy in its place")
    parses = read_model(Model(files.name, inner, files.revision), dtype)
    paraphrases = read_model(files, dtype)
    tokens, wanted = len(parses.tokenizer), paraphrases.model.config.control_vocab_size
    if tokens != wanted:
        raise InputError(
            f"{inner} has {tokens:,} tokens of trees and the model beside it {wanted:,}, so they do not belong "
            "together; put a whole copy in its place"
        )
    parses.controls = paraphrases.controls = parses.tokenizer
    return Network(parses, paraphrases, read_templates(files.folder))
