"""Losses and scores on TensorBoard, trackio or Weights & Biases, through the callbacks of transformers."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType

from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments
from transformers.integrations import get_reporting_integration_callbacks

from paranmt_hf.errors import InputError


def reporting_callbacks(service: str | None, runs: Path) -> list[TrainerCallback]:
    """Make the callbacks of a reporting service; none if there is no service.

    TensorBoard's files are written into `runs`, unless the variable TENSORBOARD_LOGGING_DIR names another folder.
    """
    try:
        callbacks = [kind() for kind in get_reporting_integration_callbacks([service] if service else [])]
    except (ValueError, RuntimeError, ImportError) as error:
        reason = str(error).split("\n")[0]
        raise InputError(f"cannot report to {service!r}: {reason}", option="report_to") from None
    for each in callbacks:
        if getattr(each, "logging_dir", "") is None:
            each.logging_dir = str(runs)
    return callbacks


class Reporter:
    """Reports the values of a run; a context manager. `arguments` are those of its trainer, if it has one.

    `runs` is next to the work folder, which is removed at the end.
    """

    def __init__(self, service: str | None, runs: Path, arguments: TrainingArguments | None = None) -> None:
        self._callbacks = reporting_callbacks(service, runs)
        self._state, self._control = TrainerState(), TrainerControl()
        if self._callbacks:
            self._arguments = arguments or TrainingArguments(output_dir=str(runs), use_cpu=True)
            self._arguments.run_name = runs.stem

    def __enter__(self) -> Reporter:
        for each in self._callbacks:
            each.on_train_begin(self._arguments, self._state, self._control, model=None)
        return self

    def log(self, step: int, values: dict[str, float]) -> None:
        """Report values of a step."""
        self._state.global_step = step
        for each in self._callbacks:
            each.on_log(self._arguments, self._state, self._control, logs=values, model=None)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for each in self._callbacks:
            each.on_train_end(self._arguments, self._state, self._control, model=None)
