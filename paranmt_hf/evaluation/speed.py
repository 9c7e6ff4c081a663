"""How fast a model encodes sentences that it has not seen before."""

from __future__ import annotations

import platform
import statistics
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from paranmt_hf.errors import InputError
from paranmt_hf.protocols import Encoder

PASSES = 5
SENTENCES = 2000
# A slow encoder is not asked for all passes.
SECONDS = 20.0


def encoding_speed(
    encoder: Encoder, sentences: Sequence[str], *, passes: int = PASSES, count: int = SENTENCES
) -> dict[str, Any]:
    """Measure sentences per second of one core, over disjoint parts of the distinct sentences.

    One part more is encoded first and not counted. No sentence is encoded twice, so that an encoder which remembers
    the text of earlier calls gains no more from it than from other text.

    Args:
        encoder: Anything with `encode(sentences)`.
        sentences: Sentences to choose from; at least one more than passes.
        passes: Number of parts that are measured.
        count: Sentences of a part; fewer where there are not enough.

    Returns:
        `sentences_per_second`, per second of processor time, all threads together; the median of the passes;
        `passes`, `sentences` in each, `words` (white-space separated) in a sentence, `processor`.

    Raises:
        InputError: There are too few sentences.
    """
    distinct = list(dict.fromkeys(sentences))
    count = min(count, len(distinct) // (passes + 1))
    if count < 1:
        raise InputError(f"speed is measured on at least {passes + 1} distinct sentences, there are {len(distinct)}")
    rates: list[float] = []
    started = time.monotonic()
    for number in range(passes + 1):
        part = distinct[number * count : (number + 1) * count]
        before = time.process_time()
        encoder.encode(part)
        seconds = time.process_time() - before
        if number:
            rates.append(count / max(seconds, 1e-9))
            if time.monotonic() - started > SECONDS:
                break
    used = distinct[: (len(rates) + 1) * count]
    return {
        "sentences_per_second": round(statistics.median(rates)),
        "passes": len(rates),
        "sentences": count,
        "words": round(sum(len(sentence.split()) for sentence in used) / len(used), 1),
        "processor": processor(),
    }


def processor() -> str:
    """Name of this machine's processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf8").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()
