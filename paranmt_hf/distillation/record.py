"""The record of a distilled encoder, `distillation.json`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from paranmt_hf.training.record import DISTILLATION_FILE, EncoderResult
from paranmt_hf.util.files import shown_path
from paranmt_hf.util.records import Record
from paranmt_hf.util.wording import counted


@dataclass(frozen=True, kw_only=True)
class DistillRecord(Record):
    """The content of the `distillation.json` of an encoder; its `training.json` is that of the last step."""

    FILE: ClassVar[str] = DISTILLATION_FILE
    KIND: ClassVar[str] = "a distilled encoder (`paranmt distill`)"

    settings: dict[str, Any]  # What determines the encoder, as JSON values
    command: str  # The command, with paths shortened to names
    start: str  # What training started from: the name of an encoder, `words` or `trigrams`
    sentences: int  # Number of distinct sentences that were trained on
    held_out: int  # Number of sentences that were held out
    epochs: int  # Number of passes over the sentences
    dimension: int  # Dimension of a sentence vector
    # How like the teacher `start` and `encoder` are on the held-out sentences, in [-1, 1]; None if none were held out
    likeness: dict[str, float] | None
    scores: dict[str, dict[str, float]]  # Pearson's r of the start and the encoder by evaluation set, in [-1, 1]


class Distilled(EncoderResult[DistillRecord]):
    """The result of `paranmt distill`: an encoder."""

    def summary(self) -> str:
        """Return lines about the encoder's size, its likeness to the teacher, and its scores."""
        record, shown = self.record, shown_path(self.folder)
        lines = [
            f"{shown}: {counted(record.dimension, 'dimension')}, {counted(record.epochs, 'epoch')} over "
            f"{counted(record.sentences, 'sentence')}, from {record.start}{'' if self.fresh else ' (found)'}"
        ]
        if record.likeness is None:
            lines.append("  no sentences were held out, so how like its teacher it is was not measured")
        else:
            was, now = (f"{100 * record.likeness[name]:.1f}" for name in ("start", "encoder"))
            of = counted(record.held_out, "held-out sentence")
            lines.append(f"  like its teacher: {now} of 100 on {of}, {was} before training")
        for name, score in record.scores["encoder"].items():
            before = record.scores["start"][name]
            lines.append(f"  {name}: Pearson {100 * score:.1f}, {100 * before:.1f} before training")
        return "\n".join([*lines, f"load it: paranmt_hf.load({shown!r})"])
