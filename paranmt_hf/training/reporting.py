"""Report losses and scores to TensorBoard, trackio or Weights & Biases, through the callbacks of transformers."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments
from transformers.integrations import get_reporting_integration_callbacks

from paranmt_hf.errors import InputError
from paranmt_hf.util.machine import threads_kept

logger = logging.getLogger(__name__)


def reporting_callbacks(service: str | None, runs: Path) -> list[TrainerCallback]:
    """Make the callbacks of a reporting service; none if there is no service.

    Args:
        service: Name of the service; None for none.
        runs: Folder for TensorBoard's files, unless the variable TENSORBOARD_LOGGING_DIR names another one.

    Raises:
        InputError: There is no such service, or its package is missing.
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
    """Reports the values of a run to a service; used in a `with` block.

    A service that cannot begin is refused. If it fails later, there is a warning, and training goes on without it.

    Args:
        service: Name of the service; None for none.
        runs: Folder for TensorBoard's files, outside of the work folder, which is removed at the end.
        arguments: Returns the settings of the run that the service shows.
    """

    def __init__(self, service: str | None, runs: Path, arguments: Callable[[], TrainingArguments]) -> None:
        self._service, self._callbacks = service, reporting_callbacks(service, runs)
        self._state, self._control = TrainerState(), TrainerControl()
        # Creating the arguments changes the number of threads if several processes train together.
        with threads_kept():
            self._arguments = arguments() if self._callbacks else None

    def __enter__(self) -> Reporter:
        try:
            self._call("on_train_begin")
        except Exception as error:
            raise InputError(f"cannot report to {self._service!r}: {error}", option="report_to") from error
        return self

    def log(self, step: int, values: dict[str, float]) -> None:
        """Report the values of a step."""
        self._state.global_step = step
        self._try("on_log", logs=values)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._try("on_train_end")

    def _call(self, event: str, **values: Any) -> None:
        """Call the method of this name of all callbacks."""
        for each in self._callbacks:
            getattr(each, event)(self._arguments, self._state, self._control, model=None, **values)

    def _try(self, event: str, **values: Any) -> None:
        """Call a method of all callbacks, and stop reporting if it raises an error of whatever kind."""
        try:
            self._call(event, **values)
        except Exception as error:
            logger.warning(f"warning: {self._service} failed, and gets no more reports: {error}")
            self._callbacks = []
