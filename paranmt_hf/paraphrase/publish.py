"""Check a paraphraser before publication, and collect its files; they must all belong to one model."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from paranmt_hf.errors import InputError
from paranmt_hf.evaluation.results import Results, all_results
from paranmt_hf.hub.publish import About, Kind, PublishPlan, files_of
from paranmt_hf.hub.repository import locate, weights_checksum
from paranmt_hf.hub.upload import Content
from paranmt_hf.paraphrase.card import card_values, paraphraser_card
from paranmt_hf.paraphrase.record import ParaphraserRecord
from paranmt_hf.paraphrase.templates import CODE, CONTROLLED_TYPE, PARSE_GENERATOR, TEMPLATES_FILE
from paranmt_hf.util.records import read_json

CODE_PATHS = tuple(f"{place}{name}" for place in ("", f"{PARSE_GENERATOR}/") for name in CODE[CONTROLLED_TYPE])
# Files of encoder-decoders of transformers and their tokenizers, templates and the record.
_FILES = re.compile(
    rf"({PARSE_GENERATOR}/)?("
    r"config\.json|generation_config\.json|model(-\d+-of-\d+)?\.safetensors|model\.safetensors\.index\.json|"
    r"(tokenizer|tokenizer_config|special_tokens_map|added_tokens|vocab)\.json|merges\.txt|"
    r"(spiece|source|target|sentencepiece(\.bpe)?)\.(model|spm)"
    rf")|{re.escape(TEMPLATES_FILE)}|{ParaphraserRecord.FILE}"
)


def belongs_to_a_paraphraser(path: str) -> bool:
    """Return whether a path of a repository is a file that publishing a paraphraser writes."""
    return path in CODE_PATHS or bool(_FILES.fullmatch(path))


def paraphraser_files(folder: Path, record: ParaphraserRecord) -> dict[str, Content]:
    """Return the files to publish, by their path in the repository.

    Code is taken from this version of the package, and not from the folder.
    """
    files: dict[str, Content] = {path: folder / path for path in files_of(folder) if _FILES.fullmatch(path)}
    for name in CODE.get(record.model_type, ()):
        code = Path(__file__).with_name(name).read_bytes()
        files[name] = code
        if record.parses:
            files[f"{PARSE_GENERATOR}/{name}"] = code
    return files


def _refuse_other_code(folder: Path) -> None:
    """Raise `InputError` if a configuration names code of others, which `trust_remote_code=True` would run."""
    modules = tuple(f"{name.removesuffix('.py')}." for name in CODE[CONTROLLED_TYPE])
    for name in ("config.json", "tokenizer_config.json", "generation_config.json"):
        path = folder / name
        if not path.is_file():
            continue
        named = read_json(path, "settings of a model").get("auto_map") or {}
        for code in named.values() if isinstance(named, dict) else [named]:
            if not str(code).startswith(modules):
                raise InputError(
                    f"{path} names the code {code!r}, which is not of this package and is not published; remove it",
                    path=path,
                )


def plan_paraphraser(folder: Path, about: About, results: Sequence[Any] = ()) -> PublishPlan:
    """Check a paraphraser, and plan its publication.

    Args:
        folder: Folder of the paraphraser.
        about: What its authors say about it.
        results: Results of its evaluation, or files of such results.

    Raises:
        InputError: The files do not belong to one model, name code of others, or results are of other weights.
    """
    from paranmt_hf.paraphrase.models import read_models

    record, about = ParaphraserRecord.read(folder), about.required()
    models = read_models(locate(folder))
    parameters = models.parameters
    if parameters != record.parameters:
        raise InputError(
            f"{folder} holds a model of {parameters:,} parameters, its {record.FILE} says {record.parameters:,}; they "
            "do not belong together",
            path=folder,
        )
    for place in (folder, folder / PARSE_GENERATOR):
        _refuse_other_code(place)
    figures = _figures_of(results, folder)

    def values(repository: str) -> dict[str, Any]:
        of_card = card_values(repository.split("/")[1], record, models.templates, about, figures)
        return {**of_card, "repository": repository}

    return PublishPlan(
        paraphraser_files(folder, record),
        lambda repository: paraphraser_card(values(repository)),
        paraphraser_card(card_values(folder.resolve().name, record, models.templates)),
        f"Paraphraser {folder.resolve().name}",
        _missing(record, about),
        values=values,
    )


def _figures_of(results: Sequence[Any], folder: Path) -> list[Results]:
    """Return the results with the weights in a folder, from some results or files of results.

    Raises `InputError` if one of the given results or files has none.
    """
    weights = weights_checksum(folder)
    found: list[Results] = []
    for given in results:
        measured = [each for each in all_results([given]) if each.kind in ("paraphrases", "canonical")]
        of_folder = [each for each in measured if each.weights == weights]
        if not of_folder:
            raise InputError(
                f"{given if isinstance(given, str | Path) else 'results'} has no figures of the weights in {folder}; "
                f"measure them: paranmt paraphrase evaluate {folder} --data PAIRS --held-out --json FILE",
                option="results",
            )
        found += of_folder
    return found


def _missing(record: ParaphraserRecord, about: About) -> list[str]:
    """Return a sentence for each part that the card lacks."""
    missing = [] if record.course.measured else ["figures: nothing was held out (--held-out)"]
    if "base" in record.inputs and not about.summary:
        missing.append("what the model it began with is, and its terms: 'summary' and 'license_text' in --about FILE")
    for name in ("data", "license_text"):
        if not getattr(about, name):
            missing.append(f"your own words on the {name.replace('_', ' ')}: {name!r} in --about FILE")
    return missing


PARAPHRASER = Kind(
    "a paraphraser",
    "model",
    "paranmt_hf.Paraphraser.from_pretrained",
    owns=belongs_to_a_paraphraser,
    plan=plan_paraphraser,
    takes_results=True,
    code=lambda: CODE_PATHS,
)
