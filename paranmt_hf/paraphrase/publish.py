"""Checks of a paraphraser before publication: folder, record and published files must belong to one model."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paranmt_hf.errors import InputError
from paranmt_hf.evaluation.results import Results, all_results
from paranmt_hf.hub.publish import About, Kind, PublishPlan, files_of
from paranmt_hf.hub.repository import Model, locate, weights_checksum
from paranmt_hf.hub.upload import Content
from paranmt_hf.paraphrase.card import card_values, paraphraser_card
from paranmt_hf.paraphrase.record import ParaphraserRecord
from paranmt_hf.paraphrase.templates import CODE, CONTROLLED_TYPE, TEMPLATES_FILE
from paranmt_hf.util.records import from_json, read_json

if TYPE_CHECKING:
    from paranmt_hf.paraphrase.loading import ParaphraserModels

# The folder of the parse generator, as `loading.py` has it, which needs torch.
INNER = "parse-generator/"
CODE_PATHS = tuple(f"{place}{name}" for place in ("", INNER) for name in CODE[CONTROLLED_TYPE])
# Files of encoder-decoders of transformers and of their tokenizers.
_OF_MODELS = (
    r"config\.json|generation_config\.json|model(-\d+-of-\d+)?\.safetensors|model\.safetensors\.index\.json|"
    r"(tokenizer|tokenizer_config|special_tokens_map|added_tokens|vocab)\.json|merges\.txt|"
    r"(spiece|source|target|sentencepiece(\.bpe)?)\.(model|spm)"
)
_FILES = re.compile(
    rf"({re.escape(INNER)})?({_OF_MODELS})|{re.escape(TEMPLATES_FILE)}|{re.escape(ParaphraserRecord.FILE)}"
)
EVALUATIONS = ("paraphrases", "canonical")  # Evaluations whose figures a card shows
# Sentences, and rough trees of them, whose paraphrases show whether a folder and its published files are one model.
_SENTENCES = ["a man is playing a guitar .", "it is 3.5 km to the town ."]
_TREES = ["(S(NP)(VP))", "(S(NP)(VP(NP)))"]


def belongs_to_a_paraphraser(path: str) -> bool:
    """Whether a file of a repository belongs to a published paraphraser."""
    return path in CODE_PATHS or bool(_FILES.fullmatch(path))


def paraphraser_files(folder: Path, record: ParaphraserRecord) -> dict[str, Content]:
    """Collect the files to publish; code is that of this version of the package, not that in the folder."""
    files: dict[str, Content] = {path: folder / path for path in files_of(folder) if _FILES.fullmatch(path)}
    for place in ("", INNER) if record.parses else ("",):
        for name in CODE.get(record.model_type, ()):
            files[f"{place}{name}"] = Path(__file__).with_name(name).read_bytes()
    return files


def load_checked(folder: Path, record: ParaphraserRecord) -> ParaphraserModels:
    """Load a paraphraser, and reject one that differs from its record or names custom code."""
    from paranmt_hf.paraphrase.loading import read_models

    models = read_models(locate(folder))
    main, parses = models.paraphrases, models.parses
    found: dict[str, Any] = {
        "model_type": main.model.config.model_type,
        "parameters": models.parameters,
        "pieces": len(main.tokenizer),
        "tree_tokens": len(parses.tokenizer) if parses else None,
        "templates": len(models.templates) if models.templates else None,
    }
    for name, value in found.items():
        wanted = getattr(record.parses if name in ("tree_tokens", "templates") else record, name, None)
        if value != wanted:
            raise InputError(
                f"{folder} holds a model with the {name} {value}, its {record.FILE} says {wanted}; they do not "
                "belong together"
            )
    for place in (folder, folder / INNER) if parses else (folder,):
        _refuse_other_code(place)
    return models


@dataclass(frozen=True)
class _Coded:
    auto_map: dict[str, Any] | None = None


def _refuse_other_code(folder: Path) -> None:
    """Reject configurations that name custom code, which `trust_remote_code=True` would run."""
    modules = tuple(f"{name.removesuffix('.py')}." for name in CODE[CONTROLLED_TYPE])
    for name in ("config.json", "tokenizer_config.json", "generation_config.json"):
        path = folder / name
        if not path.is_file():
            continue
        named = from_json(_Coded, read_json(path, "settings of a model"), path).auto_map or {}
        for code in named.values():
            if not str(code).startswith(modules):
                raise InputError(
                    f"{path} names the code {code!r}, which is not of this package and is not published; remove it",
                    path=path,
                )


def plan_paraphraser(folder: Path, about: About, results: Sequence[Any] = ()) -> PublishPlan:
    """Check a paraphraser and collect the files to publish."""
    from paranmt_hf.paraphrase.loading import read_models

    record, about = ParaphraserRecord.read(folder), about.required()
    models = load_checked(folder, record)
    templates, figures = models.templates, _figures_of(results, folder)

    def values(repository: str) -> dict[str, Any]:
        own = card_values(repository.split("/")[1], record, templates, about, figures)
        return {**own, "repository": repository}

    def verify(staged: Path) -> None:
        if _generated(models) != _generated(read_models(Model(folder.name, staged, ""))):
            raise InputError(
                f"{folder} gives other paraphrases than its published files would; train or copy it again", path=folder
            )

    return PublishPlan(
        paraphraser_files(folder, record),
        lambda repository: paraphraser_card(values(repository)),
        paraphraser_card(card_values(folder.resolve().name, record, templates)),
        f"Paraphraser {folder.resolve().name}",
        _missing(record, about),
        verify=verify,
        values=values,
    )


def _figures_of(results: Sequence[Any], folder: Path) -> list[Results]:
    """Select the results of a paraphraser among some results, or files of them; each of them must have some."""
    weights, found = weights_checksum(folder), []
    for given in results:
        own = [each for each in all_results([given]) if each.weights == weights and each.kind in EVALUATIONS]
        if not own:
            raise InputError(
                f"{given if isinstance(given, str | Path) else 'results'} has no figures of the weights in {folder}; "
                f"measure them: paranmt paraphrase evaluate {folder} --data PAIRS --held-out --json FILE",
                option="results",
            )
        found += own
    return found


def _missing(record: ParaphraserRecord, about: About) -> list[str]:
    """Missing parts of the card, in sentences."""
    missing = [] if record.course.measured else ["figures: nothing was held out (--held-out)"]
    if "base" in record.inputs and not about.summary:
        missing.append("what the model it began with is, and its terms: 'summary' and 'license_text' in --about FILE")
    return missing + [
        f"your own words on the {name.replace('_', ' ')}: {name!r} in --about FILE"
        for name in ("data", "license_text")
        if not getattr(about, name)
    ]


def _generated(models: ParaphraserModels) -> object:
    """Paraphrases, and trees and templates of a controlled network, to compare the models of two folders."""
    from paranmt_hf.paraphrase.config import ParaphraseConfig

    config, main, parses = ParaphraseConfig(beams=2, n=2, max_length=20), models.paraphrases, models.parses
    if parses is None or models.templates is None:
        return main.search(main.cut(_SENTENCES), config)
    templates = models.templates.most_frequent(len(_SENTENCES))
    asked = parses.cut_controls((templates * len(_SENTENCES))[: len(_SENTENCES)])
    trees = parses.search(parses.cut(_TREES), config, asked)
    controls = [[*candidates[0], parses.ends[0]] for candidates in trees]
    return models.templates.counts, trees, main.search(main.cut(_SENTENCES), config, controls)


PARAPHRASER = Kind(
    "a paraphraser",
    "model",
    "paranmt_hf.Paraphraser.from_pretrained",
    owns=belongs_to_a_paraphraser,
    plan=plan_paraphraser,
    takes_results=True,
    code=lambda: CODE_PATHS,
)
