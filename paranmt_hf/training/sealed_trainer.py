"""What our trainers of transformers have in common: sealed checkpoints, the course of a run, and the best weights."""

from __future__ import annotations

import logging
import shutil
import time
from pathlib import Path
from typing import Any, TypeVar

from torch import nn
from transformers import PrinterCallback, TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from paranmt_hf.training.checkpoint import (
    COMPLETE,
    read_checkpoint,
    read_sealed,
    seal,
    set_weights,
    weights_of,
    write_checkpoint,
)
from paranmt_hf.training.reporting import Reporter
from paranmt_hf.util.files import writing
from paranmt_hf.util.progress import Progress
from paranmt_hf.util.records import as_json, from_json

logger = logging.getLogger(__name__)

# Files of weights: those of a checkpoint, in its folder, and those that scored best, next to the folder of
# checkpoints.
WEIGHTS, BEST = "weights.safetensors", "best.safetensors"
A = TypeVar("A", bound=TrainingArguments)


def trainer_arguments(kind: type[A], folder: Path, *, precision: str, use_cpu: bool, seed: int, **options: Any) -> A:
    """Create the arguments of a trainer whose batches we make, and whose callback requests checkpoints.

    Args:
        kind: Class of the arguments.
        folder: Folder that gets the folder of checkpoints, `trainer`.
        precision: Type of numbers: float32, bf16 or fp16.
        use_cpu: Whether to train on the CPU.
        seed: Seed of the trainer.
        options: Further arguments.
    """
    args = kind(
        output_dir=str(folder / "trainer"),
        per_device_train_batch_size=1,
        save_strategy="no",
        save_total_limit=2,
        report_to="none",
        bf16=precision == "bf16",
        fp16=precision == "fp16",
        use_cpu=use_cpu,
        seed=seed,
        disable_tqdm=True,
        **options,
    )
    # Otherwise one process with several GPUs would split a batch among them.
    if args.device.type == "cuda":
        args._n_gpu = 1
    return args


class SealedCheckpoints:
    """A base class of trainers: their checkpoints have checksums, and hold the weights in full precision."""

    args: Any
    model: Any
    state: Any

    def _save_checkpoint(self, *arguments: Any, **options: Any) -> None:  # noqa: ANN401
        """Write a checkpoint; errors of writing name its path."""
        with writing(Path(str(self.args.output_dir)) / f"checkpoint-{self.state.global_step}"):
            super()._save_checkpoint(*arguments, **options)  # type: ignore[misc]

    def _save(self, output_dir: str | None = None, state_dict: dict[str, Any] | None = None) -> None:
        """Write the weights into the folder of a checkpoint."""
        # transformers 5 calls this in every process, and only one may write.
        if self.args.should_save:
            folder = Path(output_dir or str(self.args.output_dir))
            folder.mkdir(parents=True, exist_ok=True)
            write_checkpoint(folder / WEIGHTS, weights_of(self.model), {})

    def _load_from_checkpoint(self, checkpoint_path: str, model: nn.Module | None = None) -> None:
        """Load the weights of a checkpoint."""
        found = read_checkpoint(Path(checkpoint_path) / WEIGHTS)
        assert found is not None, "the seal was read before, which lists this file"
        set_weights(self.model, found[0])

    def run_from(self, checkpoint: Path | None, *, over: bool) -> None:
        """Train to the end.

        Args:
            checkpoint: Folder of the checkpoint to continue from; None to start from the beginning.
            over: Whether training was over at this checkpoint, so that it is only loaded.
        """
        self.remove_callback(PrinterCallback)  # type: ignore[attr-defined]
        if checkpoint is not None and over:
            self._load_from_checkpoint(str(checkpoint))
        else:
            if checkpoint is not None:
                logger.info(f"continuing after step {checkpoint.name.rpartition('-')[2]}")
            self.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)  # type: ignore[attr-defined]

    def last_checkpoint(self) -> Path | None:
        """Return the folder of the last complete checkpoint, None if there is none, and remove incomplete ones."""
        folder = Path(str(self.args.output_dir))
        whole = [path.parent for path in folder.glob(f"checkpoint-*/{COMPLETE}")]
        if self.args.process_index == 0:
            # Remove them even if no checkpoint is complete: the trainer keeps the checkpoints of the latest steps, so
            # an incomplete one of a later step would displace new ones.
            for path in folder.glob("checkpoint-*"):
                if not (path / COMPLETE).exists():
                    shutil.rmtree(path)
        return max(whole, key=lambda path: int(path.name.rpartition("-")[2]), default=None)


class CourseCallback(TrainerCallback):
    """Keeps the course of a run and the weights that scored best, seals checkpoints, and shows the progress.

    Args:
        folder: The folder that has the folder of checkpoints in it.
        course: The course at the beginning: a dataclass with `seconds`, and with `last` for reports.
    """

    # Set before training begins.
    trainer: Any
    progress: Progress
    reporter: Reporter

    def __init__(self, folder: Path, course: Any) -> None:  # noqa: ANN401 - a dataclass
        self.folder, self.course = folder, course
        self._saved = self._noted = time.monotonic()

    def restore(self, trainer: SealedCheckpoints) -> Path | None:
        """Read the course from the last complete checkpoint of a trainer; return its folder, None without one."""
        self.trainer = trainer
        found = trainer.last_checkpoint()
        if found is not None:
            self.course = from_json(type(self.course), read_sealed(found), found)
        return found

    def show(self, step: int, done: int, note: str) -> None:
        """Add the time since the last call to the course, and show and report the course.

        Args:
            step: Number of the step.
            done: What was done so far, in the unit of the progress.
            note: Text for the progress.
        """
        now = time.monotonic()
        self.course.seconds += now - self._noted
        self._noted = now
        self.progress.advance_to(done, note)
        self.reporter.log(step, self.course.last)

    def is_due(self, seconds: float) -> bool:
        """Whether the last checkpoint is at least this number of seconds old."""
        return time.monotonic() - self._saved >= seconds

    def on_save(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        """Mark a checkpoint as complete; the trainer calls this when it has written one."""
        if state.is_world_process_zero:
            folder = Path(str(args.output_dir)) / f"checkpoint-{state.global_step}"
            seal(folder, as_json(self.course))
        self._saved = time.monotonic()

    def keep_best(self, state: TrainerState) -> None:
        """Write the current weights to disk as the best so far."""
        if state.is_world_process_zero:
            write_checkpoint(self.folder / BEST, weights_of(self.trainer.model), {"step": state.global_step})

    def load_best(self, model: nn.Module) -> None:
        """Load the best weights into a model, if any were written."""
        if (best := read_checkpoint(self.folder / BEST)) is not None:
            set_weights(model, best[0])
