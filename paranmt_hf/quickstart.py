"""The whole way on a small scale and without a network: embedded bitext, embedded translator, release, load."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from paranmt_hf.corpus.backtranslation import TranslatorConfig
from paranmt_hf.corpus.bitext import LineFiles
from paranmt_hf.corpus.scorers import ScorerConfig
from paranmt_hf.models import ASSETS
from paranmt_hf.pipeline import ReleaseConfig, build


def quickstart(out: Path) -> Iterator[str]:
    """Build `<out>/paranmt50m` from the sample that the package carries, and load it.

    Args:
        out: Folder for everything that is made.

    Yields:
        What to tell the user, line by line.

    Raises:
        InputError: `<out>/paranmt50m` exists and is something else.
    """
    folder = Path(out) / "paranmt50m"
    sample = ASSETS / "sample"
    count = len((sample / "sample.cs").read_bytes().splitlines())
    yield f"translating the {count} sentences of the sample with beam 12"
    built = build(
        LineFiles({"source": sample / "sample.cs", "reference": sample / "sample.en"}),
        folder,
        # The engine that every install has, so that an extra installed later does not make this another corpus.
        translator=TranslatorConfig(name="embedded", backend="transformers"),
        scorer=ScorerConfig(),
        # The sample and its translations are the project's own: MIT.
        release=ReleaseConfig(license="mit", keep_source=True, rows_per_shard=250),
    )
    scorer = built.record["settings"]["scorer"]["name"]
    yield f"{folder}: {built.record['statistics']['rows']} pairs, scored by the {scorer}"

    from datasets import load_dataset

    pairs = load_dataset(str(folder), split="train")
    yield f"load_dataset({str(folder)!r}) -> {pairs.num_rows} rows, columns {', '.join(pairs.column_names)}"
    for row in sorted(pairs.select(range(min(60, pairs.num_rows))), key=lambda row: -row["para_score"])[:60:12]:
        yield f"  {row['para_score']:.2f}  {row['reference']}  |  {row['translation']}"
    yield f"the card is {folder / 'README.md'}"
