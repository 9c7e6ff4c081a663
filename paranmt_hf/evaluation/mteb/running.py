"""An encoder on a task of `mteb`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from paranmt_hf.errors import InputError
from paranmt_hf.evaluation.mteb.tasks import EXTRA, columns_of, fresh, hub_id, parts_of, quiet, unreadable
from paranmt_hf.hub.client import explain
from paranmt_hf.util.optional import require

if TYPE_CHECKING:
    from mteb.abstasks import AbsTask
    from mteb.models import ModelMeta
    from sentence_transformers import SentenceTransformer

# Sentences that the model is given at once; averaging encoders take their own number.
BATCH = 32


def run_task(encoder: SentenceTransformer, meta: ModelMeta, task: AbsTask, data: Path | None = None) -> dict[str, Any]:
    """Evaluate an encoder on a task.

    Args:
        encoder: The encoder.
        meta: What mteb shall know of it.
        task: The task.
        data: The folder that its data are in, for errors; None for the Hub.

    Returns:
        The result as mteb gives it: `scores` by split, of which each has a `main_score` and a `hf_subset`.

    Raises:
        InputError: The data cannot be fetched or read, or are not such as the task expects.
    """
    mteb, task = require("mteb", EXTRA), fresh(task)
    with quiet():
        wrapper = mteb.SentenceTransformerEncoderWrapper(encoder)
        wrapper.mteb_model_meta = meta
        for part in parts_of(task):
            _load(part, data)
        try:
            result = mteb.evaluate(
                wrapper,
                task,
                cache=None,
                co2_tracker=False,
                show_progress_bar=False,
                encode_kwargs={"batch_size": BATCH, "show_progress_bar": False},
            )
        # What a task makes of data of another kind: text for a number, no label, one class alone.
        except (ValueError, TypeError, KeyError, IndexError, AttributeError) as error:
            reason = " ".join(str(error).split())[:300]
            columns = f" in the columns {', '.join(names)}" if (names := columns_of(task)) else ""
            raise InputError(
                f"the data of the task {task.metadata.name} in {_place(task, data)} do not fit it: {reason}; expected "
                f"what its data set on the Hub has{columns}"
            ) from error
        finally:
            for part in parts_of(task):
                part.unload_data()
    values: dict[str, Any] = result.task_results[0].model_dump(mode="json")
    return values


def _load(task: AbsTask, data: Path | None) -> None:
    """Load the data of a task, and look at their columns before anything is encoded."""
    try:
        task.load_data()
    # Errors of several libraries; all mean that the data are not to be had.
    except Exception as error:
        if data is None:
            raise InputError(
                f"the task {task.metadata.name}: {explain(error, hub_id(task), 'dataset')}; or give --data FOLDER "
                f"with these data in FOLDER/{task.metadata.name}"
            ) from error
        raise InputError(unreadable(task, _place(task, data), error)) from error
    wanted = columns_of(task)
    for split, there in _splits(task):
        if missing := [name for name in wanted if name not in there]:
            raise InputError(
                f"the data of the task {task.metadata.name} in {_place(task, data)} have no column "
                f"{' and '.join(map(repr, missing))} in the split {split!r}: expected {', '.join(wanted)}, found "
                f"{', '.join(there)}"
            )


def _splits(task: AbsTask) -> list[tuple[str, list[str]]]:
    """The splits that a task is evaluated on and the names of their columns, of tasks that read one table."""
    loaded: Any = task.dataset
    # Of tasks in several languages there is a table for each of them.
    tables = [loaded] if any(split in loaded for split in task.eval_splits) else list(loaded.values())
    return [
        (split, list(table[split].column_names))
        for table in tables
        for split in task.eval_splits
        if split in table and hasattr(table[split], "column_names")
    ]


def _place(task: AbsTask, data: Path | None) -> str:
    inner = parts_of(task)
    if data is not None and len(inner) > 1:
        return str(data)
    return hub_id(inner[0]) if data is None else str(inner[0].metadata.dataset["path"])
