"""`paranmt quickstart`: an example from a bitext to a corpus, an encoder and its evaluation, without a network."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

from paranmt_hf.cli.pipeline import run_pipeline
from paranmt_hf.corpus.release.record import RELEASE_RECORD
from paranmt_hf.encoders.named_encoder import NamedEncoder
from paranmt_hf.errors import refuse
from paranmt_hf.hub.repository import ASSETS, CAPTIONS, check_name
from paranmt_hf.text.protocols import Encoder
from paranmt_hf.util.files import resolved


def quickstart(out: str | Path, *, translator: str = CAPTIONS) -> Iterator[str]:
    """Build a small corpus and train an encoder offline, with the sample and the translator of the package.

    The corpus is `<out>/paranmt50m`, the encoder `<out>/word`.

    Args:
        out: Folder for everything that is made.
        translator: Czech-English translation model: folder, Hub id, or `captions-cs-en`, which the package carries.
    """
    folder, steps = Path(out).expanduser(), ASSETS / "quickstart.yaml"
    # In a folder that is a corpus or an encoder, its files would be mixed with the new ones.
    held = [name for name in (RELEASE_RECORD, "modules.json") if (folder / name).exists()]
    for wrong, reason in (
        (not resolved(out).name, "is the root of the file system"),
        (folder.exists() and not folder.is_dir(), "is a file, and the quickstart makes a folder"),
        (held, f"is a corpus or an encoder: it holds {' and '.join(held)}"),
    ):
        refuse(wrong, f"{folder} {reason}; choose another `out`", option="out", path=folder)
    check_name(translator, kind="translator")
    changes = {}
    if translator != CAPTIONS:
        name = Path(translator).expanduser()
        # The licence of what another translator writes is not known here.
        other = {"translator": str(name.resolve() if name.exists() else translator), "license": "unknown"}
        changes["paranmt50m"] = other
    yield from run_pipeline(steps, out=folder, changes=changes)
    yield from _show_corpus(folder / "paranmt50m")
    yield from _show_encoder(folder / "word", folder / "vectors.txt")
    yield f"these steps are in {steps}; `paranmt run` runs such files"
    corpus, index = (shlex.quote(str(folder / name)) for name in ("paranmt50m", "index"))
    yield "next, search its sentences:"
    yield f"  paranmt search index {corpus} --out {index}"
    yield f'  paranmt search query {index} "a man is playing a guitar ."'


def _show_corpus(folder: Path) -> Iterator[str]:
    """Yield lines about a corpus: how to load it, and pairs with high to low scores."""
    from datasets import load_dataset

    pairs = load_dataset(str(folder), split="train")
    yield f"load_dataset({str(folder)!r}) -> {pairs.num_rows} rows, columns {', '.join(pairs.column_names)}"
    for row in sorted(pairs.select(range(min(60, pairs.num_rows))), key=lambda row: -row["para_score"])[:60:12]:
        yield f"  {row['para_score']:.2f}  {row['reference']}  |  {row['translation']}"
    yield f"the card is {folder / 'README.md'}"


def _show_encoder(folder: Path, vectors: Path) -> Iterator[str]:
    """Yield lines about an encoder: its loss, and its score on similarity compared with other encoders."""
    # The imports, which load torch, are here so that the lines about the corpus show earlier.
    from paranmt_hf.encoders.loading import load
    from paranmt_hf.training.record import TrainingRecord

    losses = [loss for _, loss in TrainingRecord.read(folder).history.losses]
    yield f"the loss went from {losses[0]:.2f} to {losses[-1]:.2f}; at 0 no other sentence comes as near as a pair's"
    yield "how well cosines agree with people, on 40 pairs of sentences (Pearson times 100; 100 is perfect):"
    yield f"  {_score(NamedEncoder(str(vectors)).load())}  before training: the mean of the words' vectors, {vectors}"
    yield f"  {_score(load(folder))}  after training on these few pairs: {folder}"
    yield f"  {_score(load())}  the encoder that the package carries: from much text and a larger model"
    yield f"SentenceTransformer({str(folder)!r}) loads it; no flag and no package of ours is needed"


def _score(encoder: Encoder) -> str:
    """Return Pearson's correlation times 100 of an encoder on the judged pairs of the package, as text."""
    from paranmt_hf.evaluation.sts import evaluate_sts
    from paranmt_hf.evaluation.sts_data import SAMPLE, read_scored_pairs

    results = evaluate_sts(encoder, [read_scored_pairs(SAMPLE)], bootstrap=0)
    return f"{100 * results.tables['Set'][0].main:.1f}"
