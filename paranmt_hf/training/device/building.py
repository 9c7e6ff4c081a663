"""Puts an encoder onto a device for training."""

from __future__ import annotations

import torch

from paranmt_hf.encoders.composition import Composition
from paranmt_hf.training.config import TrainConfig
from paranmt_hf.training.device.graph import Capturing
from paranmt_hf.training.device.optimizers import DEVICE_OPTIMIZERS, Schedule
from paranmt_hf.training.device.tables import DeviceTable
from paranmt_hf.training.device.trainer import DeviceTrainer
from paranmt_hf.training.loop import learning_rates
from paranmt_hf.training.processes import Processes
from paranmt_hf.training.teacher import TeacherVectors


def device_trainer(
    composition: Composition,
    config: TrainConfig,
    pairs: int,
    teacher: TeacherVectors | None,
    device: torch.device,
    capturing: Capturing | None = None,
    processes: Processes | None = None,
) -> DeviceTrainer:
    """Make the trainer of an averaging encoder on a device.

    Args:
        composition: The encoder; its tables, on the host, get the trained rows.
        config: The settings.
        pairs: Number of pairs of an epoch.
        teacher: The teacher's vectors, if similarities are learned too.
        device: Where it is trained.
        capturing: How steps are captured; on a GPU as a CUDA graph if left out, elsewhere not at all.
        processes: Those that train together; None if this one is alone.
    """
    if capturing is None and device.type == "cuda":
        capturing = Capturing()
    schedule = Schedule(learning_rates(pairs, config), config.optimizer, device)
    tables = []
    for part in composition.parts:
        weight = part.table.weight.data
        fixed = config.freeze_words and part.family.units == "word"
        optimizer = DEVICE_OPTIMIZERS[config.optimizer](weight, schedule, device)
        pull = 0.0 if fixed else config.lambda_w
        frozen = not bool(weight[0].any())
        tables.append(DeviceTable(part.reader, optimizer, pull=pull, frozen=frozen, fixed=fixed))
    return DeviceTrainer(tables, composition.mode, config, teacher, capturing, processes)
