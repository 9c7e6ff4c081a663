"""Compare encoders of this project with those of others by size, agreement with people on STS, and speed.

Each is measured in one run, in turn: WordLlama (pip install wordllama), what model2vec distils from a teacher (pip
install model2vec skeletoken), the average of GloVe, teachers, and ours. Figures of models that were not run are
quoted, and marked. How long they take to start is in `peers_start.py`.

    python benchmarks/peers.py --sts sts --teachers all-MiniLM-L6-v2 all-mpnet-base-v2 --words glove.100d.100k.txt.gz
"""

from __future__ import annotations

import argparse
import gzip
import json
import statistics
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from commands import in_turn, python
from fill_pages import figure
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import StaticEmbedding
from words import static_embedding, word_tokenizer

from paranmt_hf import evaluate, load

YEARS = ("STS12", "STS13", "STS14")
# MTEB's repository of results (github.com/embeddings-benchmark/results, commit f4cc6c8b, 2026-08-20): main_score of
# STS12, STS13, STS14, STSBenchmark (the first version), STS15 and STS16.
QUOTED = (
    ("potion-base-32M", 129, 512, "MIT", (62.7, 77.6, 72.9, 76.8, 80.8, None)),
    ("potion-base-8M", 30, 256, "MIT", (62.2, 77.3, 71.9, 75.4, 79.8, 76.3)),
    ("potion-base-2M", 8, 64, "MIT", (62.1, 75.7, 69.3, 72.8, 76.3, 73.5)),
    ("static-similarity-mrl-multilingual-v1", 434, 1024, "Apache-2.0", (71.6, 74.3, 72.8, 79.9, 82.5, 78.4)),
    ("static-retrieval-mrl-en-v1", 125, 1024, "Apache-2.0", (60.4, 72.6, 69.6, 74.0, 80.1, 72.8)),
)
# The same figures of models that are measured here too, only for STS15 and STS16.
QUOTED_YEARS = {"all-MiniLM-L6-v2": (85.4, 79.0), "all-mpnet-base-v2": (85.7, 80.0)}
# The code with which each library loads an encoder.
LOADING = {
    "paranmt_hf": "import paranmt_hf; model = paranmt_hf.load({folder!r})",
    "model2vec": "from model2vec import StaticModel; model = StaticModel.from_pretrained({folder!r})",
    "sentence_transformers": "from sentence_transformers import SentenceTransformer; "
    "model = SentenceTransformer({folder!r}, device='cpu')",
}


@dataclass
class Peer:
    """An encoder to measure.

    Attributes:
        folder: Its folder, or the name of one that the package carries.
        license: Its licence.
        library: What loads it, a key of `LOADING`.
        sentences: How many sentences its speed is measured on.
    """

    folder: str
    license: str
    library: str = "sentence_transformers"
    sentences: int = 20_000

    def megabytes(self) -> float:
        """The size of the encoder's weights in megabytes."""
        folder = Path(load(self.folder).source.folder if self.library == "paranmt_hf" else self.folder)
        return sum(path.stat().st_size for path in folder.rglob("*.safetensors")) / 1e6

    def encode_once(self, sentences: list[str]) -> float:
        """Return the CPU seconds that a new process on one core takes for these sentences, without its start."""
        program = (
            f"import json, sys, time; {LOADING[self.library].format(folder=self.folder)}\n"
            "sentences = json.load(sys.stdin); model.encode(sentences[:1000])\n"
            "started = time.process_time(); model.encode(sentences[1000:]); print(time.process_time() - started)"
        )
        return float(python(program, given=json.dumps(sentences[: self.sentences + 1000])).split()[-1])


def wordllama(folder: Path) -> Path:
    """Save WordLlama's table and tokenizer as a SentenceTransformer."""
    from safetensors.torch import load_file
    from tokenizers import Tokenizer

    found = find_spec("wordllama")
    assert found is not None
    # Only the files are used, because the package needs further packages.
    package = Path(next(iter(found.submodule_search_locations or [])))
    (table,) = load_file(package / "weights" / "l2_supercat_256.safetensors").values()
    tokenizer = Tokenizer.from_file(str(package / "tokenizers" / "l2_supercat_tokenizer_config.json"))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    embedding = StaticEmbedding(tokenizer, embedding_weights=table.half().numpy())
    SentenceTransformer(modules=[embedding], device="cpu").save(str(folder / "wordllama-256"))
    return folder / "wordllama-256"


def model2vec(folder: Path, teacher: str) -> Path:
    """Distil a teacher with model2vec, and return the folder of the encoder."""
    from model2vec.distill import distill

    out = folder / f"model2vec-{Path(teacher).name}"
    if not out.exists():
        distill(teacher, pca_dims=256, device="cpu").save_pretrained(str(out))
    return out


def average(folder: Path, vectors: Path) -> Path:
    """Save the average of word vectors as a SentenceTransformer, and return its folder."""
    units, rows = ["[UNK]"], [""]
    for line in _lines(vectors):
        word, _, numbers = line.partition(" ")
        units.append(word)
        rows.append(numbers)
    weight = np.array([np.fromstring(row, sep=" ", dtype=np.float32) for row in rows[1:]])
    weight = np.concatenate([np.zeros_like(weight[:1]), weight])
    model = static_embedding(word_tokenizer(), units, weight)
    model.save_pretrained(str(folder / "average"), create_model_card=False)
    return folder / "average"


def _lines(path: Path) -> Iterator[str]:
    with gzip.open(path, "rt", encoding="utf8") if path.suffix == ".gz" else path.open(encoding="utf8") as lines:
        yield from lines


def row(name: str, values: list[object]) -> str:
    """Return a row of a Markdown table."""
    return f"| {name} | {' | '.join('' if value is None else str(value) for value in values)} |"


def figures(found: Any, measure: str) -> list[str]:  # noqa: ANN401 - the results of `evaluate`
    """Return a measure of the results for each year of STS, times 100."""
    return [f"{100 * found.value(year, measure):.1f}" for year in YEARS]


def of_card(measure: str, *further: tuple[str, str, str]) -> list[str]:
    """Return figures from the card of the encoder `word-trigram`, which the package does not carry."""
    wanted = [*(("Year", year, measure) for year in YEARS), *further]
    return [figure("word-trigram", *each) for each in wanted]


def print_tables(peers: dict[str, Peer], speeds: dict[str, list[float]], results: dict[str, Any]) -> None:
    """Print the figures that MTEB reports, with size and speed, then those that the papers report."""
    print("| | MB | dimensions | licence | STS12 | STS13 | STS14 | STS-B | STS15 | STS16 | sentences/s |")
    print("|---|---:|---:|---|---:|---:|---:|---:|---:|---:|---:|")
    for name, peer in peers.items():
        megabytes, dimension = peer.megabytes(), load(peer.folder).get_embedding_dimension()
        rate = peer.sentences / statistics.median(speeds[name])
        size = f"{megabytes:.0f}" if megabytes >= 10 else f"{megabytes:.1f}"
        sts_b = f"{100 * results[name].value('STSB-test', 'spearman'):.1f}"
        scores = [*figures(results[name], "all_spearman"), sts_b]
        years = QUOTED_YEARS.get(name, (None, None))
        print(row(name, [size, dimension, peer.license, *scores, *years, f"{float(f'{rate:.2g}'):,.0f}"]))
    scores = of_card("all_spearman", ("Set", "STSB-test", "spearman"))
    print(row("word-trigram (its card)", [170, 600, "CC-BY-NC-SA-4.0", *scores, None, None, None]))
    for name, *values, quoted in QUOTED:
        print(row(f"{name} (quoted)", [*values, *quoted, None]))
    print("\n| Pearson x 100, mean of each year's sets | STS12 | STS13 | STS14 | mean | STS-B test |")
    print("|---|---:|---:|---:|---:|---:|")
    for name, found in results.items():
        mean, sts_b = found.value("Mean", "mean"), found.value("STSB-test", "pearson")
        print(row(name, [*figures(found, "mean"), f"{100 * mean:.1f}", f"{100 * sts_b:.1f}"]))
    print(row("word-trigram (its card)", of_card("mean", ("Year", "Mean", "mean"), ("Set", "STSB-test", "pearson"))))


def main() -> None:
    """Parse the command line, make the peers, measure all, print Markdown tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sts", type=Path, required=True, help="folder with the STS sets")
    parser.add_argument(
        "--text", type=Path, required=True, help="text file of at least 21,000 sentences, for the speed"
    )
    parser.add_argument(
        "--teachers", nargs="+", required=True, help="folders of SentenceTransformers; the first distilled"
    )
    parser.add_argument("--words", type=Path, required=True, help="word vectors to average")
    parser.add_argument("--keep", type=Path, help="folder for what is made of others, used again by the next run")
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    sentences = arguments.text.read_text(encoding="utf8").splitlines()
    with tempfile.TemporaryDirectory() as name:
        folder, teacher = arguments.keep or Path(name), str(Path(arguments.teachers[0]).resolve())
        peers = {
            "`load()`": Peer("small", "MIT", "paranmt_hf"),
            '`load("base")`': Peer("base", "MIT", "paranmt_hf"),
            "WordLlama, 256": Peer(str(wordllama(folder)), "MIT"),
            "model2vec of the first teacher": Peer(str(model2vec(folder, teacher)), "Apache-2.0", "model2vec"),
            "average of GloVe": Peer(str(average(folder, arguments.words)), "PDDL"),
            **{
                Path(each).name: Peer(str(Path(each).resolve()), "Apache-2.0", sentences=1000)
                for each in arguments.teachers
            },
        }
        speeds = in_turn(
            {name: partial(peer.encode_once, sentences) for name, peer in peers.items()}, arguments.repeats
        )
        found = evaluate({name: peer.folder for name, peer in peers.items()}, data=arguments.sts, bootstrap=0)
        print_tables(peers, speeds, dict(zip(peers, found, strict=True)))


if __name__ == "__main__":
    main()
