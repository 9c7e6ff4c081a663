"""Measure BLEU and the mean translation score of a translator on aligned text.

For example on captions:

    python benchmarks/translator_quality.py --text captions test_2016_flickr.cs test_2016_flickr.en
"""

from __future__ import annotations

import argparse
import tempfile
from itertools import islice
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import sacrebleu
from commands import heading

from paranmt_hf import EngineConfig, ReleaseConfig, TextInput, TranslatorConfig, build


def cut(path: Path, limit: int, out: Path) -> Path:
    """Copy the first `limit` lines of a file into the file `out`, and return its path."""
    with path.open(encoding="utf8") as lines:
        out.write_text("".join(islice(lines, limit)), encoding="utf8")
    return out


def main() -> None:
    """Parse the command line, translate, print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--text", nargs=3, action="append", required=True, metavar=("NAME", "SOURCE", "REFERENCE"))
    parser.add_argument("--translator", default="captions-cs-en")
    parser.add_argument("--backend", default="auto")
    parser.add_argument("--beam", type=int, nargs="+", default=[12])
    parser.add_argument("--sentences", type=int, default=1000)
    arguments = parser.parse_args()
    print(f"{heading('sacrebleu')} (13a, mixed case)\n")
    print("| text | sentences | beam | BLEU | mean translation score |\n|---|---:|---:|---:|---:|")
    for beam in arguments.beam:
        config = TranslatorConfig(name=arguments.translator, backend=arguments.backend, beam=beam)
        for name, source, reference in arguments.text:
            with tempfile.TemporaryDirectory() as folder:
                sides = [
                    cut(Path(path), arguments.sentences, Path(folder) / side)
                    for side, path in (("source", source), ("reference", reference))
                ]
                built = build(
                    TextInput(source=sides[0], reference=sides[1]),
                    Path(folder) / "release",
                    translator=config,
                    release=ReleaseConfig(license="unknown"),
                    engine=EngineConfig(workers=1),
                )
                rows = pq.read_table(built.folder / "data").to_pydict()
            bleu = sacrebleu.corpus_bleu(rows["translation"], [rows["reference"]]).score
            score = np.mean(rows["translation_score"])
            print(f"| {name} | {len(rows['id'])} | {beam} | {bleu:.1f} | {score:.3f} |", flush=True)


if __name__ == "__main__":
    main()
