"""Measure the speed of an encoder on sentences that it has not encoded before."""

from __future__ import annotations

import os
import platform
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from paranmt_hf.text.protocols import Encoder
from paranmt_hf.util.machine import visible_cores


@dataclass(frozen=True)
class Speed:
    """The encoding speed of a model, with the circumstances of the measurement."""

    # Number of sentences encoded in a second of processor time, which adds up the time of all threads; the median of
    # the passes
    sentences_per_second: int
    passes: int  # Number of passes, each over other sentences
    sentences: int  # Number of sentences of each pass
    words: float  # Mean number of words in a sentence, separated by white space
    processor: str  # Name of the processor
    cores: int | None = None  # Number of processor cores that the program may use
    # Mean number of processes of the machine that were at work in the minute before, which slow each other down; None
    # if the system does not say
    load: float | None = None


def encoding_speed(encoder: Encoder, sentences: Sequence[str], *, passes: int = 5, count: int = 2000) -> Speed | None:
    """Measure how many sentences an encoder encodes in a second of processor time.

    Each pass encodes other sentences, so that an encoder which remembers sentences gains nothing. A first pass is not
    counted. Passes end early after 20 seconds.

    Args:
        encoder: The encoder.
        sentences: Sentences, of which distinct ones are used.
        passes: Maximum number of passes that are counted.
        count: Maximum number of sentences of a pass.

    Returns:
        The speed; None if there are too few distinct sentences, at most as many as `passes`.
    """
    distinct = list(dict.fromkeys(sentences))
    count = min(count, len(distinct) // (passes + 1))
    if count < 1:
        return None
    rates: list[float] = []
    load = round(os.getloadavg()[0], 1) if hasattr(os, "getloadavg") else None
    started = time.monotonic()
    for index in range(passes + 1):
        part = distinct[index * count : (index + 1) * count]
        before = time.process_time()
        encoder.encode(part)
        seconds = time.process_time() - before
        if index:
            rates.append(count / max(seconds, 1e-9))
            # A slow encoder does not run all passes.
            if time.monotonic() - started > 20:
                break
    used = distinct[: (len(rates) + 1) * count]
    return Speed(
        sentences_per_second=round(statistics.median(rates)),
        passes=len(rates),
        sentences=count,
        words=round(sum(len(sentence.split()) for sentence in used) / len(used), 1),
        processor=processor(),
        cores=visible_cores(),
        load=load,
    )


def processor() -> str:
    """Return the name of the processor of this machine."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf8").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()
