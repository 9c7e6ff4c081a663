"""Train a model for a task, `paranmt supervise`: similarity, entailment or sentiment.

PARAGRAM-PHRASE (Wieting et al. 2016, arXiv:1511.08198), section 4.4, tables 5 and 6.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paranmt_hf.encoders.config import EncoderConfig
from paranmt_hf.hub.repository import locate
from paranmt_hf.supervised.config import CHECKPOINT, SuperviseConfig, SupervisedRecord
from paranmt_hf.util.files import shown_path
from paranmt_hf.util.run import Result, result_folder, run
from paranmt_hf.util.settings import values_for

if TYPE_CHECKING:
    from paranmt_hf.supervised.model import SupervisedModel


class Supervised(Result[SupervisedRecord]):
    """The result of `paranmt supervise`: a model for a task."""

    def load(self) -> SupervisedModel:
        """Load the model."""
        from paranmt_hf.supervised.model import SupervisedModel

        return SupervisedModel.from_pretrained(self.folder)

    def summary(self) -> str:
        """Return lines about the task and the training, and a table of figures."""
        record, training = self.record, self.record.settings.training
        state = "" if self.fresh else " (was trained already)"
        folder = shown_path(self.folder)
        return "\n".join(
            [
                f"{folder}: {training.task}, {training.way}, {record.parameters:,} parameters{state}",
                f"  the weights are those of epoch {record.best_epoch} of {len(record.epochs)}",
                f"  {record.unknown:.1%} of the words or trigrams of the training items are unknown to the encoder",
                record.table(),
                f"load it: paranmt_hf.SupervisedModel.from_pretrained({folder!r})",
            ]
        )


def supervise(
    data: str | Path,
    out: str | Path,
    *,
    config: SuperviseConfig,
    init_from: str | None = None,
    encoder: Mapping[str, Any] | EncoderConfig | None = None,
) -> Supervised:
    """Train an encoder, and a head over its vectors, for a supervised task.

    Equal settings give the same bytes on one machine, also if the run was interrupted: the same command continues from
    the last checkpoint.

    Args:
        data: Folder with the files of the task in SentEval's layout (SICK, SST), or with those of the STS benchmark.
        out: Folder of the model: encoder and head.
        config: The task, and how it is trained.
        init_from: Encoder folder or Hub id to start from.
        encoder: Without one to start from: options of a new encoder as in `paranmt train`, such as
            `model=lstm,dimension=50,vectors=glove.txt`.
    """
    if not isinstance(encoder, EncoderConfig):
        encoder = EncoderConfig(**values_for([EncoderConfig], encoder, "encoder")[0])
    if init_from is not None:
        encoder = replace(encoder, init_from=init_from)
    sources = [locate(encoder.init_from).folder] if encoder.init_from else []
    out = result_folder(out, SupervisedRecord, sources=sources)
    # Imported here, because it imports torch.
    from paranmt_hf.supervised.task import resolve_task, train_task

    setup = resolve_task(data, config, encoder)

    def make(work: Path, folder: Path) -> SupervisedRecord:
        model, record = train_task(setup, work)
        model.save_pretrained(folder)
        return record

    return run(
        out,
        setup.settings,
        SupervisedRecord,
        make,
        result=Supervised,
        command="supervise",
        holds=lambda work: (work / CHECKPOINT).exists(),
    )
