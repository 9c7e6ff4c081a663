"""The whole way on a small scale and without a network: bitext, translator, release, encoder, measurement."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from paranmt_hf.corpus.bitext.readers import LineFiles
from paranmt_hf.corpus.translation.translator import TranslatorConfig
from paranmt_hf.encoders.scorer import ScorerConfig
from paranmt_hf.hub.repository import ASSETS
from paranmt_hf.workflows.build import build
from paranmt_hf.workflows.support.release_run import ReleaseConfig


def quickstart(out: Path) -> Iterator[str]:
    """Build `<out>/paranmt50m` from the sample that the package carries, train `<out>/word` on it, measure that.

    Args:
        out: Folder for everything that is made.

    Yields:
        What to tell the user, line by line.

    Raises:
        InputError: `<out>/paranmt50m` or `<out>/word` exists and is something else.
    """
    folder = Path(out) / "paranmt50m"
    yield from _build(folder)
    yield from _train(folder, Path(out) / "word")


def _build(folder: Path) -> Iterator[str]:
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
    scorer = built.record.settings["scorer"]["name"]
    yield f"{folder}: {built.record.statistics.rows} pairs, scored by {scorer}"

    from datasets import load_dataset

    pairs = load_dataset(str(folder), split="train")
    yield f"load_dataset({str(folder)!r}) -> {pairs.num_rows} rows, columns {', '.join(pairs.column_names)}"
    for row in sorted(pairs.select(range(min(60, pairs.num_rows))), key=lambda row: -row["para_score"])[:60:12]:
        yield f"  {row['para_score']:.2f}  {row['reference']}  |  {row['translation']}"
    yield f"the card is {folder / 'README.md'}"


def _train(corpus: Path, folder: Path) -> Iterator[str]:
    # Torch is loaded only now, so that the corpus shows first.
    from paranmt_hf.encoders.config import EncoderConfig
    from paranmt_hf.encoders.loading import load
    from paranmt_hf.evaluation.sts import evaluate_sts
    from paranmt_hf.evaluation.sts_data import read_tsv
    from paranmt_hf.training.config import TrainConfig
    from paranmt_hf.workflows.train import train

    trained = train(
        corpus, folder, encoder=EncoderConfig(model="word"), config=TrainConfig(epochs=40, batch_size=25, mega_batch=4)
    )
    seconds = trained.record.history.seconds
    yield f"{folder}: WORD with {trained.record.parameters:,} parameters, trained in {seconds:.0f} s"
    pairs = read_tsv(ASSETS / "sample" / "similarity.tsv", name="sample")
    for name, encoder in ((str(folder), trained.load()), ("the encoder that the package carries", load())):
        score = evaluate_sts(encoder, [pairs], bootstrap=0).sets[0].pearson
        yield f"  Pearson {100 * score:.0f} on the sample of {len(pairs.gold)} judged pairs: {name}"
    yield f"SentenceTransformer({str(folder)!r}) loads it; no flag and no package of ours is needed"
