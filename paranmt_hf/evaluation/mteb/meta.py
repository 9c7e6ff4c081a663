"""What mteb shall know of an encoder: its `ModelMeta`, with what it was trained on."""

from __future__ import annotations

import json
import keyword
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from safetensors import safe_open

from paranmt_hf.encoders.composition import composition_of
from paranmt_hf.encoders.export.card import stated_license
from paranmt_hf.errors import InputError
from paranmt_hf.evaluation.mteb.tasks import EXTRA, every_task, quiet
from paranmt_hf.evaluation.sts_data import DEVELOPMENT
from paranmt_hf.hub.client import is_id
from paranmt_hf.hub.repository import Model, weights_checksum
from paranmt_hf.training.card import sources
from paranmt_hf.training.provenance import origin_of
from paranmt_hf.training.record import TRAINING_FILE, TrainingRecord
from paranmt_hf.util.optional import require
from paranmt_hf.util.yaml_files import card_header

if TYPE_CHECKING:
    from mteb.models import ModelMeta

    from paranmt_hf.encoders.sentence_encoder import SentenceEncoder

# The tasks that hold the pairs on which encoders are chosen, in their test parts.
CHOSEN_ON = ("STS17", "STSBenchmark")
IMPORTS = """from mteb.models import ModelMeta, SentenceTransformerEncoderWrapper
from mteb.models.model_meta import ScoringFunction
"""
# Where people find teachers that are named without an organisation.
TEACHERS = "sentence-transformers"


@dataclass(frozen=True)
class Learned:
    """What an encoder learned from, as far as is written down.

    Attributes:
        datasets: Names: tasks of mteb, ids on the Hub, releases and files; None where nothing is written down.
        notes: Sentences on where they come from and what is not known.
        english: Whether its card names no other language.
    """

    datasets: set[str] | None
    notes: list[str]
    english: bool = True


def submission_name(model: Model, name: str | None = None) -> str:
    """Name under which a model is submitted.

    Args:
        model: The model.
        name: What a person chose, `ORGANISATION/NAME`; else its id on the Hub, or a placeholder for a folder.

    Raises:
        InputError: It is no such name.
    """
    if name is not None:
        if not is_id(name):
            raise InputError(f"--name must be ORGANISATION/NAME, as on the Hub; was {name!r}")
        return name
    plain = re.sub(r"[^\w.-]+", "-", model.name) or "model"
    return model.name if is_id(model.name) else f"ORGANISATION/{plain}"


def learned_from(folder: Path) -> Learned:
    """Find out what an encoder was trained on: from the record of its training, and the header of its card.

    Data sets count by the tasks of mteb that hold the same ones; the data of a teacher count too, as far as mteb knows
    them; and so does the set on which the encoder was chosen.
    """
    mteb = require("mteb", EXTRA)
    header = card_header(folder / "README.md")
    header = header if isinstance(header, Mapping) else {}
    english = header.get("language") in (None, "en", ["en"])
    listed = header.get("datasets")
    listed = [listed] if isinstance(listed, str) else listed
    names = {str(each) for each in listed} if isinstance(listed, list) else set()
    notes: list[str] = []
    if (folder / TRAINING_FILE).is_file():
        record = origin_of(folder).read(folder)
        if isinstance(record, TrainingRecord):
            more, notes = _of_training(mteb, record)
            names |= more
        else:
            notes.append("trained on single sentences, whose files are named in its training.json")
    elif not names:
        unknown = "there is no training.json and no 'datasets' in the card: say yourself what it learned from"
        return Learned(None, [unknown], english)
    if ids := {id for name in names if is_id(id := name.partition("@")[0])}:
        names |= {task.name for task in every_task() if task.dataset.get("path") in ids}
    return Learned(names, notes, english)


def _of_training(mteb: Any, record: TrainingRecord) -> tuple[set[str], list[str]]:  # noqa: ANN401
    """Names of what a run read, of what its teacher had read, and of what its result was chosen on."""
    names, notes = set(sources(record)), []
    if record.settings.development == DEVELOPMENT:
        names |= set(CHOSEN_ON)
        notes.append(f"{' and '.join(CHOSEN_ON)}: it was not trained on their pairs but chosen by those of STS 2017")
    for teacher in filter(None, (record.inputs.get(name) for name in ("teacher", "second_teacher"))):
        known = _known(mteb, teacher)
        names |= known or set()
        what = "what mteb names of its data counts too" if known else "mteb does not know its data: add them"
        notes.append(f"teacher: {teacher}; {what}")
    others = [each.name for each in record.mean_of or []] or [record.inputs.get("init_from", "")]
    if others := [each for each in others if each]:
        notes.append(f"made from {', '.join(others)}: add what those were trained on")
    return names, notes


def _known(mteb: Any, name: str) -> set[str] | None:  # noqa: ANN401
    """The training data of a model that mteb has in its list; None where it has not."""
    with quiet():
        found = [meta for meta in mteb.get_model_metas() if meta.name in (name, f"{TEACHERS}/{name}")]
    return set(found[0].training_datasets) if found and found[0].training_datasets else None


def model_meta(encoder: SentenceEncoder, model: Model, name: str, learned: Learned) -> ModelMeta:
    """Describe an encoder for mteb.

    Args:
        encoder: The encoder.
        model: Where it lies.
        name: Name under which it is submitted.
        learned: What it was trained on.
    """
    require("mteb", EXTRA)
    from mteb.models import ModelMeta, SentenceTransformerEncoderWrapper
    from mteb.models.model_meta import ScoringFunction
    from mteb.types import Licenses

    composition = composition_of(list(encoder))
    tables = sum(part.table.weight.numel() for part in composition.parts) if composition else None
    license = stated_license(model).get("license")
    similar = {"cosine": ScoringFunction.COSINE, "dot": ScoringFunction.DOT_PRODUCT}
    return ModelMeta.create_empty(
        overwrites={
            "loader": SentenceTransformerEncoderWrapper,
            "loader_kwargs": {} if _is_stock(model.folder) else {"trust_remote_code": True},
            "name": name,
            "revision": revision_of(model),
            # mteb has codes of its own; only those of English are known here.
            "languages": ["eng-Latn"] if learned.english else None,
            "n_parameters": _parameters(model.folder),
            "n_embedding_parameters": tables,
            "memory_usage_mb": round(sum(path.stat().st_size for path in model.folder.rglob("*.safetensors")) / 2**20),
            # Averages and recurrent encoders read texts of any length.
            "max_tokens": encoder.max_seq_length or math.inf,
            "embed_dim": encoder.get_embedding_dimension(),
            "license": license if license in get_args(Licenses) else None,
            "open_weights": True,
            "framework": ["Sentence Transformers", "PyTorch", "safetensors"],
            "reference": f"https://huggingface.co/{name}",
            "similarity_fn_name": similar.get(str(encoder.similarity_fn_name or "cosine")),
            "use_instructions": any(encoder.prompts.values()),
            "training_datasets": learned.datasets,
        }
    )


def revision_of(model: Model) -> str:
    """Revision for mteb: the commit on the Hub, or as many digits of the checksum of a folder's weights."""
    if not model.revision.startswith("sha256:"):
        return model.revision
    return weights_checksum(model.folder).removeprefix("sha256:")[:40]


def _is_stock(folder: Path) -> bool:
    """Tell whether plain sentence-transformers loads a model without a flag."""
    entries = json.loads((folder / "modules.json").read_text(encoding="utf8"))
    return all(entry["type"].startswith("sentence_transformers.") for entry in entries)


def _parameters(folder: Path) -> int:
    """Number of weights that are stored."""
    total = 0
    for path in folder.rglob("*.safetensors"):
        with safe_open(path, "np") as stored:
            total += sum(math.prod(stored.get_slice(name).get_shape()) for name in stored.keys())  # noqa: SIM118
    return total


def left_open(meta: ModelMeta) -> list[str]:
    """Names of the fields that only a person can fill in before a submission."""
    asked = ("release_date", "license", "public_training_code", "public_training_data", "adapted_from")
    return [name for name in asked if getattr(meta, name) is None]


def meta_code(meta: ModelMeta, learned: Learned) -> str:
    """Write the Python module that makes a `ModelMeta`, as it goes into a pull request."""
    code = str(meta.to_python()).replace("max_tokens=inf", 'max_tokens=float("inf")')
    if learned.datasets:
        # A set has no order of its own.
        code = code.replace(repr(learned.datasets), f"{{{', '.join(map(repr, sorted(learned.datasets)))}}}")
    variable = re.sub(r"\W+", "_", str(meta.name).rpartition("/")[2]).strip("_").lower()
    name = variable if variable.isidentifier() and not keyword.iskeyword(variable) else f"model_{variable}"
    return f"{IMPORTS}\n{name} = {code}\n"
