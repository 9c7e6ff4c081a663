"""Stops every command at every moment and prints a table: `python -m tests.interruption.all`."""

from __future__ import annotations

import argparse
import gc
import os
import random
import sys
import tempfile
import time
from pathlib import Path

# Before anything that starts threads is imported: what forks must have none.
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"
os.environ |= {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false", "MPLBACKEND": "agg"}


def warm_up() -> None:
    """Import what the commands import while they run, but for onnxruntime, which starts threads."""
    import importlib
    import pkgutil

    import paranmt_hf
    from paranmt_hf.util.optional import available

    for module in (
        "datasets matplotlib.figure matplotlib.pyplot model2vec onnx sacrebleu sentencepiece torch tokenizers "
        "transformers.models.marian.modeling_marian transformers.models.marian.tokenization_marian "
        "transformers.models.bert.modeling_bert transformers.generation.utils sentence_transformers "
        "tests.training.toys"
    ).split():
        importlib.import_module(module)
    for info in pkgutil.walk_packages(paranmt_hf.__path__, "paranmt_hf."):
        module = importlib.import_module(info.name)
        if hasattr(module, "CHECKPOINT_SECONDS"):
            module.CHECKPOINT_SECONDS = 0
    # The names of weights of all models, hundreds of patterns, which each fork would compile.
    importlib.import_module("transformers.conversion_mapping").get_checkpoint_conversion_mapping("marian")
    if available("openai"):
        importlib.import_module("openai.resources.chat.completions")
        importlib.import_module("py3langid.langid")
    if available("mteb"):
        importlib.import_module("mteb")
    # What is there for good need not be looked through, and so copied, in each fork.
    gc.collect()
    gc.freeze()
    threads = [path.read_text().strip() for path in Path("/proc/self/task").glob("*/comm")]
    # Arrow's allocator knows of forks; what mteb imports for its tables starts a thread that only waits.
    if len(threads) > 1 + sum(name.startswith(("jemalloc_bg_thd", "polars-ooc")) for name in threads):
        raise RuntimeError(f"threads are running, and a process with threads cannot be forked safely: {threads}")


def _drawn(generator: random.Random, count: int, every: int) -> range:
    """Every such moment from a start that is drawn; at least one."""
    step = min(every, count)
    return range(1 + generator.randrange(step), count + 1, step)


def main() -> int:
    """Try the moments; 1 where one of them went wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--every", type=int, default=1, help="try one of this number of moments, drawn at random")
    parser.add_argument("--twice", type=int, default=10, help="pairs of moments for each command")
    parser.add_argument("--full", type=int, default=1, help="try one of this number with a full disk; 0 for none")
    parser.add_argument("--seed", type=int, default=0, help="decides what is drawn")
    parser.add_argument("--only", help="commands whose name begins so")
    chosen = parser.parse_args()
    warm_up()
    from tests.interruption.cases import CASES
    from tests.interruption.driver import Outcomes, Trial

    faults = []
    with tempfile.TemporaryDirectory(prefix="interruption-") as folder:
        for case in CASES:
            if not case.name.startswith(chosen.only or ""):
                continue
            started, generator = time.monotonic(), random.Random(f"{chosen.seed} {case.name}")
            trial, found = Trial(case, Path(folder) / "case"), Outcomes(case.name)
            count = trial.moments
            for moment in _drawn(generator, count, chosen.every):
                found.add(str(moment), trial.killed([moment]))
            for _ in range(chosen.twice):
                moments = [generator.randint(1, count), generator.randint(1, count)]
                found.add(f"{moments[0]} and {moments[1]}", trial.killed(moments))
            if chosen.full:
                for moment in _drawn(generator, count, chosen.full):
                    found.add(f"{moment}, disk full", trial.full(moment))
            outcomes = ", ".join(f"{number} {outcome}" for outcome, number in found.counts.items())
            print(f"{case.name:20} {count:5} moments: {outcomes} ({time.monotonic() - started:.0f} s)", flush=True)
            faults += found.faults
    for fault in faults:
        print(fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
