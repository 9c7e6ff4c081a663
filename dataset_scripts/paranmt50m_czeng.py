# /// script
# requires-python = ">=3.11"
# dependencies = [
#     "paranmt-hf",
# ]
# ///
"""Build the 51-million-pair corpus: the English side of CzEng and the translation of its Czech side.

ParaNMT-50M (Wieting & Gimpel 2018), section 3, back-translated CzEng 1.6. CzEng may be used for non-commercial
research only and is not on the Hub: get your own copy of CzEng 2.0 (files of six tab-separated columns, Czech in the
fifth, English in the sixth) and name its files:

    python dataset_scripts/paranmt50m_czeng.py czeng20-train*.gz --scorer sentence-transformers/all-MiniLM-L6-v2

On one GPU this takes days; `docs/scale.md` has the arithmetic and shows several GPUs and a cluster. Interrupted at any
moment, the same command continues.
"""

from __future__ import annotations

import argparse
import logging
from pathlib import Path

from paranmt_hf import EngineConfig, ReleaseConfig, TextInput, TranslatorConfig, build


def main() -> None:
    """Parse the command line and build."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", type=Path, nargs="+", help="CzEng files, plain or .gz")
    parser.add_argument("--out", type=Path, default=Path("paranmt50m"))
    parser.add_argument("--czech-column", type=int, default=5)
    parser.add_argument("--english-column", type=int, default=6)
    parser.add_argument("--translator", default="Helsinki-NLP/opus-mt-cs-en", help="must have safetensors weights")
    parser.add_argument("--translator-revision", help="for example a refs/pr/N that adds safetensors")
    parser.add_argument("--scorer", help="SentenceTransformer behind the paraphrase score")
    parser.add_argument("--engine", choices=["local", "ray"], default="local")
    parser.add_argument("--workers", type=int, default=0)
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    columns = {"source": str(arguments.czech_column), "reference": str(arguments.english_column)}
    build(
        TextInput(data=tuple(map(str, arguments.files)), columns=columns),
        arguments.out,
        translator=TranslatorConfig(name=arguments.translator, revision=arguments.translator_revision),
        scorer=arguments.scorer,
        # The Hub has no name for CzEng's terms. The Czech side is left out of the release.
        release=ReleaseConfig(license="czeng-2.0 <https://ufal.mff.cuni.cz/czeng/czeng20>"),
        engine=EngineConfig(kind=arguments.engine, workers=arguments.workers),
    )


if __name__ == "__main__":
    main()
