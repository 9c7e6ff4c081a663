# /// script
# requires-python = ">=3.11"
# dependencies = [
#     "paranmt-hf",
# ]
# ///
"""Build a corpus that may be used for anything: ParaCrawl (CC0) or Tatoeba (CC BY 2.0) from the Hub.

    python dataset_scripts/paranmt50m_open.py paracrawl --out paranmt-open
    python dataset_scripts/paranmt50m_open.py tatoeba --out paranmt-tatoeba --keep-source

The bitext is streamed, so nothing has to be on disk before the work starts. `--dataset`, `--config` and `--columns`
name another copy of the same data; the licence that goes into the card is that of the choice made here.
"""

from __future__ import annotations

import argparse
import logging
from dataclasses import dataclass
from pathlib import Path

from paranmt_hf import EngineConfig, ReleaseConfig, TextInput, TranslatorConfig, build


@dataclass(frozen=True)
class Open:
    """An openly licensed bitext on the Hub.

    Attributes:
        dataset: Repository.
        config: Config of it.
        revision: Branch that holds Parquet files; `datasets` runs no loading scripts.
        license: The Hub's id of its licence.
    """

    dataset: str
    config: str | None
    revision: str | None
    license: str


BITEXTS = {
    "paracrawl": Open("Helsinki-NLP/opus_paracrawl", "cs-en", "refs/convert/parquet", "cc0-1.0"),
    "tatoeba": Open("Helsinki-NLP/tatoeba", "cs-en", "refs/convert/parquet", "cc-by-2.0"),
}


def main() -> None:
    """Parse the command line and build."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bitext", choices=sorted(BITEXTS))
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--dataset", help="another copy of the bitext, a Hub id or a folder")
    parser.add_argument("--config", help="config of that copy")
    parser.add_argument("--revision", help="revision of that copy")
    parser.add_argument("--foreign", default="cs", help="language of the foreign side in the column `translation`")
    parser.add_argument("--translator", default="Helsinki-NLP/opus-mt-cs-en", help="must have safetensors weights")
    parser.add_argument("--translator-revision", help="for example a refs/pr/N that adds safetensors")
    parser.add_argument("--scorer", help="SentenceTransformer behind the paraphrase score")
    parser.add_argument("--keep-source", action="store_true", help="keep the foreign side; both licences allow it")
    parser.add_argument("--engine", choices=["local", "ray"], default="local")
    parser.add_argument("--workers", type=int, default=0)
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    chosen = BITEXTS[arguments.bitext]
    if arguments.dataset:
        chosen = Open(arguments.dataset, arguments.config, arguments.revision, chosen.license)
    revision = f"@{chosen.revision}" if chosen.revision else ""
    build(
        TextInput(
            data=(f"{chosen.dataset}{revision}:{chosen.config}" if chosen.config else f"{chosen.dataset}{revision}",),
            columns={"source": f"translation.{arguments.foreign}", "reference": "translation.en"},
        ),
        arguments.out,
        translator=TranslatorConfig(name=arguments.translator, revision=arguments.translator_revision),
        scorer=arguments.scorer,
        release=ReleaseConfig(license=chosen.license, keep_source=arguments.keep_source),
        engine=EngineConfig(kind=arguments.engine, workers=arguments.workers),
    )


if __name__ == "__main__":
    main()
