"""Speed of a model on sentences that it has not encoded before."""

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
    """Encoding speed of a model on some cores of a processor."""

    sentences_per_second: int  # Per second of processor time, all threads together; the median of the passes
    passes: int
    sentences: int  # Sentences of each pass
    words: float  # Words (separated by white space) in a sentence, on average
    processor: str
    cores: int | None = None
    # Mean number of processes of the machine that were at work in the minute before, which slow each other down; None
    # if the system does not say
    load: float | None = None


def encoding_speed(encoder: Encoder, sentences: Sequence[str], *, passes: int = 5, count: int = 2000) -> Speed | None:
    """Measure sentences per second of one core, over disjoint parts of the distinct sentences; None for few.

    One part more is encoded first and not counted. No sentence is encoded twice, so that an encoder which remembers
    the text of earlier calls gains no more from it than from other text.
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
            # A slow encoder is not asked for all passes.
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
    """Name of the processor of this machine."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf8").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()
