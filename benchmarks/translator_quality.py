"""BLEU and mean translation score of a translator on aligned text.

For example on captions:

    python benchmarks/translator_quality.py --text captions test_2016_flickr.cs test_2016_flickr.en
"""

from __future__ import annotations

import argparse
from datetime import date
from importlib.metadata import version
from itertools import islice
from pathlib import Path

import numpy as np
import sacrebleu

from paranmt_hf import TranslatorConfig
from paranmt_hf.corpus.translation.engines import load_translator


def read(path: Path, limit: int) -> list[str]:
    """Read the first lines of a file."""
    with path.open(encoding="utf8") as lines:
        return [line.strip() for line in islice(lines, limit)]


def main() -> None:
    """Parse the command line, translate, print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--text", nargs=3, action="append", required=True, metavar=("NAME", "SOURCE", "REFERENCE"))
    parser.add_argument("--translator", default="embedded")
    parser.add_argument("--backend", default="auto")
    parser.add_argument("--beam", type=int, nargs="+", default=[12])
    parser.add_argument("--sentences", type=int, default=1000)
    arguments = parser.parse_args()
    print(f"{date.today()}, sacrebleu {version('sacrebleu')} (13a, mixed case)\n")
    print("| text | sentences | beam | BLEU | mean translation score |\n|---|---:|---:|---:|---:|")
    for beam in arguments.beam:
        translator = load_translator(TranslatorConfig(name=arguments.translator, backend=arguments.backend, beam=beam))
        for name, source, reference in arguments.text:
            result = translator.translate(read(Path(source), arguments.sentences))
            texts = [text or "" for text in result.texts]
            bleu = sacrebleu.corpus_bleu(texts, [read(Path(reference), arguments.sentences)]).score
            print(f"| {name} | {len(texts)} | {beam} | {bleu:.1f} | {np.nanmean(result.scores):.3f} |", flush=True)


if __name__ == "__main__":
    main()
