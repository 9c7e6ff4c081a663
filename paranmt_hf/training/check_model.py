"""What is checked of an encoder before it is published: that folder, record, results and what goes are one model."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from paranmt_hf.encoders.families import FILES, FURTHER_FILES
from paranmt_hf.errors import InputError
from paranmt_hf.evaluation.results import Results, read_results
from paranmt_hf.hub.check_folder import files_of
from paranmt_hf.hub.repository import Model, weights_checksum
from paranmt_hf.hub.upload import Content, Parcel, stage
from paranmt_hf.training.conversion_record import CONVERSION_FILE
from paranmt_hf.training.record import TRAINING_FILE

if TYPE_CHECKING:
    from paranmt_hf.encoders.sentence_encoder import SentenceEncoder

RESULTS_FILE = ".eval_results/sts.yaml"
# Files of an encoder that go with it: these names, in its folder and in those of its modules.
OF_MODULES = {*FURTHER_FILES}.union(*FILES.values())
OF_MODELS = {"modules.json", "config_sentence_transformers.json", TRAINING_FILE, "training.png", CONVERSION_FILE}
MODEL_FILES = re.compile(rf"(\d+_\w+/)?({'|'.join(map(re.escape, sorted(OF_MODULES | OF_MODELS)))})")
CODE_FILES = re.compile(r"paranmt_\w+\.py")
# Sentences whose vectors tell whether a folder and what goes of it are one model.
PROBE = ["A man is playing a guitar.", "Isn't it 3.5 km to the town?", ""]


def belongs_to_a_model(path: str) -> bool:
    """Tell whether a file of a repository is one of those that a published encoder may consist of."""
    return path == RESULTS_FILE or bool(MODEL_FILES.fullmatch(path) or CODE_FILES.fullmatch(path))


def model_files(folder: Path) -> dict[str, Content]:
    """Collect the files of an encoder that go: its own, and the code that it needs where this package is absent.

    The code is that of this version, which has loaded the model, and not what lies in the folder.
    """
    from paranmt_hf.encoders.model_folder import PREFIX, code_files

    files: dict[str, Content] = {path: folder / path for path in files_of(folder) if MODEL_FILES.fullmatch(path)}
    kinds = [entry["type"] for entry in json.loads((folder / "modules.json").read_text(encoding="utf8"))]
    if any(kind.startswith(PREFIX) for kind in kinds):
        files |= {name: code.encode() for name, code in code_files().items()}
    return files


def results_of_weights(results: str | Path | Sequence[Results], folder: Path) -> Results:
    """Choose the results of an encoder's weights, the last ones if there are several.

    Args:
        results: Results, or the file that holds them.
        folder: The encoder.

    Raises:
        InputError: The file cannot be read or is damaged, or none are of these weights.
    """
    name, path = "the list of results", "FILE"
    if isinstance(results, str | Path):
        name = path = str(results)
        results = read_results(Path(results).expanduser())
    weights = weights_checksum(folder)
    matching = [record for record in results if record.weights == weights]
    if not matching:
        raise InputError(
            f"{name} holds no results of the weights in {folder}; measure them: paranmt evaluate sts {folder} "
            f"--data STS --json {path}"
        )
    return matching[-1]


def check_dimension(encoder: SentenceEncoder, recorded: int, folder: Path, file: str = TRAINING_FILE) -> None:
    """Refuse a folder whose encoder is not the one that its record is about.

    Raises:
        InputError: The dimensions differ.
    """
    dimension = encoder.get_embedding_dimension()
    if dimension != recorded:
        raise InputError(
            f"{folder} gives vectors of {dimension} dimensions, its {file} says {recorded}; they "
            "do not belong together"
        )


def check_whole(parcel: Parcel, encoder: SentenceEncoder, folder: Path) -> None:
    """Load what goes as a reader would, and compare its vectors with those of the folder.

    Raises:
        InputError: They differ.
    """
    from paranmt_hf.encoders.loading import load

    with tempfile.TemporaryDirectory() as staged:
        stage(parcel, Path(staged))
        # Laid out as links to files that were checked where they lie.
        laid_out = Model(folder.name, Path(staged), "")
        vectors = load(laid_out, device="cpu").encode(PROBE, show_progress_bar=False)
    expected = encoder.encode(PROBE, show_progress_bar=False)
    if not np.array_equal(vectors, expected) or not np.isfinite(vectors).all():
        raise InputError(f"{folder} gives other vectors than its published files would; train or copy it again")
