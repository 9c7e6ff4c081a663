"""Average the weights of encoders that were trained from one start."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

import torch

from paranmt_hf.encoders.building import name_of, parts_of, trainable
from paranmt_hf.encoders.loading import SentenceEncoder, load, save
from paranmt_hf.errors import InputError
from paranmt_hf.training.record import TRAINING_FILE as RECORD


def average_encoders(models: Sequence[str | Path], out: str | Path) -> SentenceEncoder:
    """Write the encoder whose weights are the mean of those of others, in full precision.

    A model that was trained further on narrower data, averaged with what it started from, keeps part of what it gained
    and gets back part of what it lost (Wortsman et al. 2022, arXiv:2109.01903). A model that is named twice counts
    twice.

    Args:
        models: Folders or Hub ids of at least two encoders, with equal vocabularies and dimensions.
        out: Folder of the result; its `training.json` is that of the last model, and says of what this is the mean.

    Raises:
        InputError: They cannot be averaged, or there is something at `out` already.
    """
    out = Path(out).expanduser().resolve()
    if len(models) < 2:
        raise InputError("name at least two models to average")
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise InputError(f"{out} is there already; choose another --out or move it away")
    first = load(models[0], device="cpu")
    found, mean = [first.source], trainable(first)
    sums = {name: weight.double() for name, weight in mean.state_dict().items()}
    for other in models[1:]:
        loaded = load(other, device="cpu")
        found.append(loaded.source)
        model = trainable(loaded)
        weights = model.state_dict()
        if _kind(model) != _kind(mean) or any(weights[name].shape != sums[name].shape for name in sums):
            raise InputError(
                f"{other} has not the kind, the vocabulary and the dimensions of {models[0]}; only models trained "
                "from one start can be averaged"
            )
        for name, weight in weights.items():
            sums[name] += weight
    mean.load_state_dict({name: (total / len(models)).to(torch.float32) for name, total in sums.items()})
    mean.forget_averages()
    aside = out.with_name(f".{out.name}.tmp")
    # Left over from a call that was killed.
    shutil.rmtree(aside, ignore_errors=True)
    save(mean, aside)
    sources = [source for source in found if source is not None]
    last = sources[-1].folder / RECORD
    record = json.loads(last.read_text(encoding="utf8")) if last.is_file() else {}
    # What the last model reached on the development set, this one does not.
    record |= {"mean_of": [{"name": one.name, "revision": one.revision} for one in sources], "development": None}
    (aside / RECORD).write_text(json.dumps(record, indent=1), encoding="utf8")
    if out.exists():
        out.rmdir()
    aside.rename(out)
    return mean


def _kind(model: SentenceEncoder) -> tuple[str, list[list[str]]]:
    parts, _ = parts_of(model)
    return name_of(model), [part.vocabulary.units for part in parts]
