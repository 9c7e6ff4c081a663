"""A complete small example without a network: bitext, translator, release, encoder, evaluation."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from paranmt_hf.corpus.bitext.readers import LineFiles
from paranmt_hf.corpus.build import build
from paranmt_hf.corpus.jobs.engine import EngineConfig
from paranmt_hf.corpus.record import RELEASE_RECORD
from paranmt_hf.corpus.release_run import Built, ReleaseConfig
from paranmt_hf.corpus.translation.translator import TranslatorConfig
from paranmt_hf.encoders.named_encoder import NamedEncoder
from paranmt_hf.errors import InputError
from paranmt_hf.hub.licenses import CARRIED_TERMS
from paranmt_hf.hub.repository import ASSETS, EMBEDDED, check_name
from paranmt_hf.text.protocols import Encoder

EPOCHS = 5  # After five epochs over the sample the loss is near zero; more would overfit


def quickstart(out: str | Path, *, translator: str = EMBEDDED) -> Iterator[str]:
    """Build a small corpus and train an encoder offline, with the sample and the translator of the package.

    The corpus is `<out>/paranmt50m`, the encoder `<out>/word`.

    Args:
        out: Folder for everything that is made.
        translator: Czech-English translation model: a folder, an id on the Hub, or `embedded`, that of the package.
    """
    folder = Path(out).expanduser() / "paranmt50m"
    _check_free(Path(out))
    check_name(translator, kind="translator")
    yield from _build(folder, translator)
    yield from _train(folder, Path(out))


def _check_free(out: Path) -> None:
    """Reject a folder that is a result itself, whose files would be mixed with the new ones."""
    if out.exists() and not out.is_dir():
        raise InputError(f"{out} is a file; the quickstart makes a folder, choose another `out`")
    for record in (RELEASE_RECORD, "modules.json"):
        if (out / record).exists():
            raise InputError(f"{out} is a release or an encoder: it holds {record}; choose another `out`")


def _build(folder: Path, translator: str) -> Iterator[str]:
    sample = ASSETS / "sample"
    count = len((sample / "sample.cs").read_bytes().splitlines())
    yield f"translating the {count} sentences of the sample with beam 12"
    built = build(
        LineFiles({"source": sample / "sample.cs", "reference": sample / "sample.en"}),
        folder,
        # The engine that every install has, so that an extra installed later does not make this another corpus.
        translator=TranslatorConfig(name=translator, backend="transformers"),
        # The terms of what another model writes are its own.
        release=ReleaseConfig(license=CARRIED_TERMS if translator == EMBEDDED else "unknown", keep_source=True),
        engine=EngineConfig(shard_rows=250),
    )
    assert isinstance(built, Built)
    scorer = built.record.settings["scorer"]["name"]
    yield f"{folder}: {built.record.statistics.rows} pairs, scored by {scorer}"

    from datasets import load_dataset

    pairs = load_dataset(str(folder), split="train")
    yield f"load_dataset({str(folder)!r}) -> {pairs.num_rows} rows, columns {', '.join(pairs.column_names)}"
    for row in sorted(pairs.select(range(min(60, pairs.num_rows))), key=lambda row: -row["para_score"])[:60:12]:
        yield f"  {row['para_score']:.2f}  {row['reference']}  |  {row['translation']}"
    yield f"the card is {folder / 'README.md'}"


def _train(corpus: Path, out: Path) -> Iterator[str]:
    # Torch is loaded only now, so that the corpus shows first.
    from paranmt_hf.encoders.config import EncoderConfig
    from paranmt_hf.encoders.loading import load
    from paranmt_hf.training.config import TrainConfig
    from paranmt_hf.training.train import train
    from paranmt_hf.training.vectors import distill_vectors

    vectors, folder = out / "vectors.txt", out / "word"
    words = distill_vectors(EMBEDDED, vectors, data=[corpus]).vectors
    yield f"{vectors}: {len(words.words):,} words of the corpus, each encoded by the encoder that the package carries"
    dimension = words.matrix.shape[1]
    trained = train(
        corpus,
        folder,
        encoder=EncoderConfig(model="word", dimension=dimension, vectors=str(vectors)),
        config=TrainConfig(epochs=EPOCHS, batch_size=25, mega_batch=4),
    )
    record = trained.record
    yield f"{folder}: WORD with {record.parameters:,} parameters, trained in {record.history.seconds:.0f} s"
    losses = [loss for _, loss in record.history.losses]
    yield f"  the loss went from {losses[0]:.2f} to {losses[-1]:.2f}; at 0 no other sentence comes as near as a pair's"
    yield "how well cosines agree with people, on 40 pairs of sentences (Pearson times 100; 100 is perfect):"
    yield f"  {_score(NamedEncoder(str(vectors)).load())}  before training: the mean of the words' vectors"
    yield f"  {_score(trained.load())}  after training on these few pairs: {folder}"
    yield f"  {_score(load())}  the encoder that the package carries: from much text and a larger model"
    yield f"SentenceTransformer({str(folder)!r}) loads it; no flag and no package of ours is needed"


def _score(encoder: Encoder) -> str:
    """Pearson times 100 on the embedded judged pairs."""
    from paranmt_hf.evaluation.sts import evaluate_sts
    from paranmt_hf.evaluation.sts_data import SAMPLE, read_scored_pairs

    results = evaluate_sts(encoder, [read_scored_pairs(SAMPLE)], bootstrap=0)
    return f"{100 * results.tables['Set'][0].main:.1f}"
