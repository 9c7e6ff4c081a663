"""Compare `paranmt distill` with model2vec: similarity of the encoders to their teacher, and time.

All systems get the same text and teacher in one process, in turn, and are compared on the same held-out sentences
(`teacher_likeness.py`) and on the 250 pairs of STS 2017 track 5. The peers are model2vec's `distill`, which reads no
text, and its result after further training on the text by model2vec (`train`) and, if it is installed, by tokenlearn.

    python benchmarks/distill.py --teacher FOLDER --text sentences.txt --sts sts --sentences 100000
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from commands import development_pairs, heading
from sentence_transformers import SentenceTransformer
from teacher_likeness import likeness

from paranmt_hf import DistillConfig, distill, load

HELD_OUT = 2000


def further(teacher: SentenceTransformer, text: list[str], start: Any, trainer: str) -> Any:  # noqa: ANN401
    """Train an encoder of model2vec further on the teacher's vectors of text, with the trainer of that name."""
    vectors = teacher.encode(text, show_progress_bar=False)
    if trainer == "tokenlearn":
        from tokenlearn.train import train_model

        return train_model(start, text, vectors)
    from model2vec.train.similarity import StaticModelForSimilarity

    model = StaticModelForSimilarity.from_static_model(model=start)
    return model.fit(text, vectors, device="cpu").to_static_model()


def main() -> None:
    """Parse the command line, make the encoders in turn, print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--teacher", required=True)
    parser.add_argument("--text", type=Path, required=True, help="file with a sentence a line")
    parser.add_argument("--sts", type=Path, required=True, help="folder with STSBenchmark")
    parser.add_argument("--sentences", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--starts", nargs="+", default=["base", "words"], help="of `paranmt distill`")
    arguments = parser.parse_args()
    lines = list(dict.fromkeys(arguments.text.read_text(encoding="utf8").splitlines()))
    chosen = np.random.default_rng(arguments.seed).permutation(len(lines))[: arguments.sentences + HELD_OUT]
    held_out, text = ([lines[index] for index in part] for part in (chosen[:HELD_OUT], chosen[HELD_OUT:]))
    teacher = SentenceTransformer(arguments.teacher, device="cpu")
    wanted = np.asarray(teacher.encode(held_out, show_progress_bar=False))
    left, right, gold = development_pairs(arguments.sts)
    print(heading("model2vec", "torch", "sentence-transformers"))
    print(
        f"{len(text):,} sentences.\n\n| | wall seconds | like the teacher | STS 2017 track 5 |\n|---|---:|---:|---:|"
    )

    def show(name: str, make: Callable[[], Any]) -> Any:  # noqa: ANN401
        started = time.monotonic()
        encoder = make()
        seconds = time.monotonic() - started
        sides = [np.asarray(encoder.encode(side), np.float64) for side in (left, right)]
        cosines = (sides[0] * sides[1]).sum(axis=1) / np.prod([np.linalg.norm(side, axis=1) for side in sides], axis=0)
        alike = likeness(np.asarray(encoder.encode(held_out)), wanted)
        score = np.corrcoef(cosines, gold)[0, 1]
        print(f"| {name} | {seconds:,.0f} | {100 * alike:.1f} | {100 * score:.1f} |", flush=True)
        return encoder

    show("the teacher", lambda: teacher)
    show("base, which `paranmt distill` starts from", lambda: load("base"))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "text.txt"
        file.write_text("".join(f"{sentence}\n" for sentence in text), encoding="utf8")
        for start in arguments.starts:
            config = DistillConfig(held_out=0, start=start)
            out = Path(folder) / start
            show(
                f"`paranmt distill`, start {start}",
                lambda out=out, config=config: distill(arguments.teacher, out=out, text=file, config=config).load(),
            )
    from model2vec.distill import distill as peer

    start = show(
        "model2vec, distilled", lambda: peer(arguments.teacher, pca_dims=384, device="cpu", quantize_to="float32")
    )
    for trainer in ("model2vec", *(["tokenlearn"] if find_spec("tokenlearn") else [])):
        show(f"and trained by {trainer}", lambda trainer=trainer: further(teacher, text, start, trainer))


if __name__ == "__main__":
    main()
