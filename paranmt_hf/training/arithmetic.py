"""With what the loop of averages computes: compiled or with torch, and how precisely it mines.

Both ways make the same steps to rounding, so a run must not change from one to the other: its bytes would not be those
of a run that was never interrupted. What was chosen therefore stands in the checkpoint, and counts when a run goes on.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any, Literal

import torch

from paranmt_hf.errors import InputError
from paranmt_hf.training.config import TrainConfig

logger = logging.getLogger(__name__)
# What products of integers must save: they are looked at again, which takes a little of that.
WORTHWHILE = 1.5
# Sentences and dimensions of the products that are timed, and how often.
SENTENCES, DIMENSIONS, TIMES = 500, 300, 7


@dataclass(frozen=True)
class Arithmetic:
    """How a run computes.

    Attributes:
        steps: `compiled` by numba, or with `torch`.
        mining: With `torch`; or compiled, by products of `float32` or `int8`.
    """

    steps: Literal["compiled", "torch"] = "torch"
    mining: Literal["float32", "int8", "torch"] = "torch"

    def as_dict(self) -> dict[str, str]:
        """As JSON values, for checkpoint and record."""
        return asdict(self)

    @classmethod
    def of_checkpoint(cls, values: Mapping[str, Any]) -> Arithmetic:
        """Find how a run computed that is to go on.

        Args:
            values: What `as_dict` gave; nothing where a version wrote it that had only torch.

        Raises:
            InputError: It was compiled, and numba is not there.
        """
        found = cls(**values)
        if found != cls() and not compiler_works():
            raise InputError(
                "this run was begun with compiled loops, which need the package 'numba': pip install "
                "'paranmt-hf[fast]' to go on with it, or delete its work folder to begin anew without"
            )
        return found


def choose(config: TrainConfig) -> Arithmetic:
    """Choose how a new run computes.

    Steps are compiled where numba is there and the settings ask for nothing that only torch's steps do. Similarities
    are products of int8 where the settings say so, or leave it open and this processor is faster with them.

    Raises:
        InputError: The settings ask for int8, which needs numba.
    """
    if not compiler_works():
        if config.mining_precision == "int8":
            raise InputError(
                "--mining-precision int8 needs the package 'numba', which cannot be imported: pip install "
                "'paranmt-hf[fast]', or leave it out"
            )
        return Arithmetic()
    if reason := only_torch(config):
        logger.info(f"steps are computed with torch, because of {reason}")
    mining = config.mining_precision or ("int8" if _mines(config) and int8_is_faster() else "float32")
    return Arithmetic("torch" if reason else "compiled", mining)


def _mines(config: TrainConfig) -> bool:
    """Whether negatives are mined; what nobody uses is not measured, for a record should not depend on the time."""
    return config.margin_weight > 0 and config.negatives != "rand"


def only_torch(config: TrainConfig) -> str | None:
    """Name the setting that compiled steps do not know; None if they know all."""
    settings = {
        "--optimizer adagrad": config.optimizer != "adam",
        "--clip": config.clip is not None,
        "--lambda-w": config.lambda_w > 0,
    }
    return next((name for name, given in settings.items() if given), None)


@cache
def compiler_works() -> bool:
    """Tell whether numba is there, and can be imported and used."""
    try:
        import numba  # noqa: F401

        from paranmt_hf.training import step_kernels, tile_kernels  # noqa: F401
    except RuntimeError as error:
        # Where neither the package's folder nor the user's can be written, numba has no place for what it compiled.
        logger.warning(
            f"numba cannot be used ({error}); training computes with torch, which takes longer. Let NUMBA_CACHE_DIR "
            "name a folder that can be written"
        )
        return False
    except ImportError as error:
        if error.name != "numba":
            logger.warning(f"numba cannot be imported ({error}); training computes with torch, which takes longer")
        return False
    return True


@cache
def int8_is_faster() -> bool:
    """Measure whether this processor multiplies matrices of int8 so much faster that it pays, and gets them right.

    Each kind is timed in turn on one thread, and its best time counts: others may be at work on the machine, and
    threads that wait for each other would make it say one thing today and another tomorrow.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return _int8_is_faster_here()
    finally:
        torch.set_num_threads(threads)


def _int8_is_faster_here() -> bool:
    generator = torch.Generator().manual_seed(1)
    whole = torch.randint(-127, 128, (SENTENCES, DIMENSIONS), generator=generator, dtype=torch.int8)
    floats = whole.float()
    try:
        # Below 2^24 these sums are exact in float32 too.
        if not torch.equal(torch._int_mm(whole, whole.T).float(), floats @ floats.T):
            return False
    except (AttributeError, RuntimeError):
        return False
    best = [float("inf"), float("inf")]
    ways: list[Callable[[], torch.Tensor]] = [lambda: floats @ floats.T, lambda: torch._int_mm(whole, whole.T)]
    for _ in range(TIMES):
        for index, way in enumerate(ways):
            started = time.thread_time()
            way()
            best[index] = min(best[index], time.thread_time() - started)
    return best[0] > WORTHWHILE * best[1]
