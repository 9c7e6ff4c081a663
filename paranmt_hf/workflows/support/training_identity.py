"""What decides a training run, and whether a folder holds the run that is asked for."""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

from paranmt_hf.corpus.pairs import Pairs
from paranmt_hf.encoders.building import name_of, trainable
from paranmt_hf.encoders.config import EncoderConfig
from paranmt_hf.encoders.loading import load
from paranmt_hf.errors import InputError
from paranmt_hf.evaluation.sts_data import StsSet, read_benchmark, read_sts
from paranmt_hf.hub.repository import locate, plain_name
from paranmt_hf.training.config import TrainConfig
from paranmt_hf.util.files import checksum, write_bytes
from paranmt_hf.util.work import describe_differences
from paranmt_hf.workflows.support.model_record import RECORD


def settled(encoder: EncoderConfig) -> EncoderConfig:
    """Fill in what a start decides.

    Raises:
        InputError: The settings ask for another encoder than the start is.
    """
    assert encoder.start is not None
    name = name_of(trainable(load(encoder.start, device="cpu")))
    usual = EncoderConfig()
    asked = {entry.name for entry in fields(encoder) if getattr(encoder, entry.name) != getattr(usual, entry.name)}
    if asked - {"start", "model"} or encoder.model not in (usual.model, name, name.replace(",", "-")):
        raise InputError(
            f"{encoder.start} is a model {name!r} with its own vocabulary and dimensions; leave out "
            f"{', '.join(sorted('--' + option.replace('_', '-') for option in asked - {'start'}))}"
        )
    return replace(encoder, model=name)


def settings_of(encoder: EncoderConfig, config: TrainConfig, pairs: Pairs, held_out: StsSet | None) -> dict[str, Any]:
    """Everything that decides the result, as JSON values."""
    start = locate(encoder.start).revision if encoder.start else None
    teacher = locate(config.teacher).revision if config.teacher else None
    vectors = f"sha256:{checksum(existing(encoder.vectors))}" if encoder.vectors else None
    training = {
        name: value for name, value in asdict(config).items() if name not in ("checkpoint_seconds", "report_to")
    }
    settings = {
        "encoder": {**asdict(encoder), "vectors": vectors}
        if start is None
        else {"model": encoder.model, "start": start},
        "training": {**training, "teacher": teacher},
        "data": pairs.identity,
        "development": held_out.name if held_out is not None else None,
    }
    return json.loads(json.dumps(settings))


def inputs_of(encoder: EncoderConfig, config: TrainConfig) -> dict[str, str]:
    """Names, without their places, of what a run began with; its settings hold only their checksums."""
    models = {"start": encoder.start, "teacher": config.teacher}
    names = {option: plain_name(name) for option, name in models.items() if name}
    return names | ({"vectors": existing(encoder.vectors).name} if encoder.vectors else {})


def existing(path: str) -> Path:
    """Find a file of word vectors."""
    if not Path(path).expanduser().is_file():
        raise InputError(f"--vectors {path}: no such file; expected a text file of word vectors")
    return Path(path).expanduser()


def sentences_of(folder: str | Path) -> set[str]:
    """Every sentence of the STS sets in a folder, the benchmark's training part included."""
    sets = list(read_sts(Path(folder)))
    for place in (Path(folder), Path(folder) / "STSBenchmark"):
        if (place / "sts-train.csv").exists():
            sets.append(read_benchmark(place, split="train"))
    return {sentence for part in sets for sentence in [*part.left, *part.right]}


def finished(out: Path, settings: dict[str, Any]) -> dict[str, Any] | None:
    """The record of an encoder that was trained with these settings; None when there is nothing yet."""
    if not out.exists() or (out.is_dir() and not any(out.iterdir())):
        return None
    try:
        record = json.loads((out / RECORD).read_text(encoding="utf8"))
        if differences := describe_differences(record["settings"], settings):
            raise InputError(
                f"{out} was trained with other settings: {'; '.join(differences)}; choose another --out or delete it"
            )
    except (OSError, ValueError, KeyError, TypeError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(
            f"{out} exists and is no encoder of this program; choose another --out or move it away"
        ) from None
    return record


def keep_settings(path: Path, settings: dict[str, Any]) -> None:
    """Refuse to go on with other settings than the work in progress began with."""
    if path.exists():
        known = json.loads(path.read_text(encoding="utf8"))
        differences = describe_differences(known, settings)
        if differences and not any(path.parent.glob("**/checkpoint*")) and not any(path.parent.glob("teacher/part-*")):
            # Nothing in it took long to make; a corrected command must not be refused for its sake.
            _clear(path.parent)
        elif differences:
            raise InputError(
                f"{path.parent} holds unfinished training with other settings: {'; '.join(differences)}; give "
                "the same ones to go on, or delete that folder"
            )
        else:
            return
    write_bytes(path, json.dumps(settings).encode())


def _clear(folder: Path) -> None:
    """Empty a work folder, but for the lock that this command holds."""
    for path in folder.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        elif path.name != "lock":
            path.unlink()
