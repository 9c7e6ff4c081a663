"""Measure how many hidden paraphrases of evaluation items are found by meaning and by n-grams, and at what cost.

500 items are hidden in a million pairs of machine translations as paraphrases, on both sides of a row. Half of these
were written by people: the second sentences of pairs of MRPC's test set that are paraphrases, and of STS 2012 to 2014
with a score of at least 4. Half were written by machines: the distinct outputs of machine translation in SMTeuroparl
and SMTnews of STS 2012, as far as they go, and else items whose words are replaced by a lexicon and whose clauses are
put in another order; or all are those of a paraphraser. The items are looked for among other ones, first sentences of
the same sets. A row is removed falsely if it holds no hidden item and shares no sentence and no 8 words in a row with
any item: some sets stem from the news that the pairs stem from.

    python benchmarks/decontamination.py --sts sts --mrpc senteval/MRPC --lexicon ppdb-xl.txt --pairs pairs.parquet

`--tune` shows the settings beside each other on other data: the training sets of MRPC and of the STS benchmark,
without sentences of STS 2012 to 2014, and pairs of news with their machine translation, against rows beyond the
million.
"""

from __future__ import annotations

import argparse
import os
import resource
import time
from collections.abc import Iterator
from pathlib import Path

# The number of threads must be set before numpy is imported.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from commands import heading, mrpc_pairs, sts_pairs

from paranmt_hf.corpus.reading.evaluation_sets import EvaluationSentences
from paranmt_hf.corpus.selection.decontamination import MIN_WORDS, EvaluationText
from paranmt_hf.corpus.selection.paraphrased_items import (
    COUNTED,
    ITEM_SIMILARITY,
    LENGTH,
    MISMATCH,
    NotParaphrased,
    penalties,
    unit_vectors,
)
from paranmt_hf.encoders.named_encoder import NamedEncoder
from paranmt_hf.meaning.mismatch_columns import MismatchReader

Pairs = list[tuple[str, str]]
MACHINE = ("SMTeuroparl", "SMTnews")
SEED = 1
BATCH = 10_000


def usable(pairs: Pairs) -> Pairs:
    """Return the pairs of different sentences that are long enough to be looked for, each first sentence once."""
    kept = {first: second for first, second in pairs if first != second and len(first.split()) >= MIN_WORDS}
    return list(kept.items())


def mrpc(folder: Path, part: str) -> Pairs:
    """Read the paraphrases in a part of MRPC."""
    return usable([(left, right) for label, left, right in mrpc_pairs(folder, part) if label])


def sts(folder: Path, *, machine: bool, least: float = 4.0) -> Pairs:
    """Read pairs of STS 2012 to 2014 whose score is at least `least`, by machine translation or by people."""
    files = sorted(folder.glob("STS1[234]-en-test/STS.input.*.txt"))
    chosen = [file for file in files if any(name in file.name for name in MACHINE) == machine]
    return usable([(left, right) for file in chosen for score, left, right in sts_pairs(file) if score >= least])


def draw(pairs: Pairs, count: int, generator: np.random.Generator) -> Pairs:
    """Draw `count` pairs at random."""
    return [pairs[row] for row in generator.permutation(len(pairs))[:count].tolist()]


def paraphrased(items: list[str], model: Path) -> Pairs:
    """Return pairs of each item and a paraphrase that a model generates."""
    from paranmt_hf import Paraphraser

    found = Paraphraser(model).paraphrase(items)
    return [(item, own[0].text) for item, own in zip(items, found, strict=True) if own]


def rewritten(items: list[str], lexicon: Path, generator: np.random.Generator) -> Pairs:
    """Return pairs of each item and a rewritten one.

    40 % of its words in the lexicon are replaced, and its last clause, or last third, is moved to the front.
    """
    entries = [line.split() for line in lexicon.read_text(encoding="utf8").splitlines()]
    others = {entry[0]: entry[1:4] for entry in entries if len(entry) > 1 and entry[0].isalpha() and len(entry[0]) > 3}

    def replaced(word: str) -> str:
        known = others.get(word.lower())
        return word if known is None or generator.random() > 0.4 else str(generator.choice(known))

    pairs = []
    for item in items:
        words = item.split()
        commas = [place + 1 for place, word in enumerate(words[:-1]) if word.endswith(",")]
        cut = commas[-1] if commas else len(words) * 2 // 3
        pairs.append((item, " ".join(map(replaced, words[cut:] + words[:cut]))))
    return usable(pairs)


def batches(path: Path, start: int, stop: int, hidden: dict[int, str]) -> Iterator[tuple[int, pa.Table]]:
    """Yield the rows `start` to `stop` of a file of pairs, with hidden sentences in place of some, by their row."""
    at = 0
    for batch in pq.ParquetFile(path).iter_batches(BATCH, columns=["reference", "translation"]):
        table = pa.Table.from_batches([batch]).slice(max(start - at, 0), max(min(stop - at, len(batch)), 0))
        first, at = max(start, at), at + len(batch)
        if not len(table) or at <= start:
            continue
        sides = {name: table[name].to_pylist() for name in table.column_names}
        for row in range(first, first + len(table)):
            if row in hidden:
                for texts in sides.values():
                    texts[row - first] = hidden[row]
        yield first, pa.table(sides)


def measure(arguments: argparse.Namespace) -> None:
    """Hide paraphrases of items in pairs, look for them, and print a table."""
    generator = np.random.default_rng(SEED)
    people = draw(mrpc(arguments.mrpc, "test"), arguments.hidden // 4, generator)
    of_sts, of_machines = sts(arguments.sts, machine=False), sts(arguments.sts, machine=True)
    people += draw(of_sts, arguments.hidden // 2 - len(people), generator)
    own = {text for pair in people for text in pair}
    rest = [first for first, _ in draw(of_sts + mrpc(arguments.mrpc, "test"), 10**6, generator) if first not in own]
    count = arguments.hidden // 2
    if arguments.paraphraser:
        parts = {"people": people, "a paraphraser": paraphrased(rest[:count], arguments.paraphraser)}
    else:
        translated = draw(of_machines, count, generator)
        replaced = rewritten(rest[: count - len(translated)], arguments.lexicon, generator)
        parts = {"people": people, "machine translation": translated, "word replacement and order": replaced}
    probes = sum(parts.values(), [])
    seen = {text for pair in probes for text in pair}
    others = [pair for part in (True, False) for pair in sts(arguments.sts, machine=part, least=0)]
    others = [first for first, _ in others + mrpc(arguments.mrpc, "train") if first not in seen]
    items = [first for first, _ in probes]
    items += [others[row] for row in generator.permutation(len(others))[: arguments.items - len(items)].tolist()]
    places = generator.permutation(arguments.rows)[: len(probes)].tolist()
    hidden = {place: second for place, (_, second) in zip(places, probes, strict=True)}
    found = EvaluationSentences(sorted(set(items)), ["items"] * len(set(items)), {}, {})
    by_meaning = NotParaphrased(found, NamedEncoder(arguments.encoder), arguments.similarity)
    by_ngrams = EvaluationText(found.texts)
    meaning, ngrams = (np.zeros(arguments.rows, bool) for _ in range(2))
    seconds = 0.0
    for first, table in batches(arguments.pairs, 0, arguments.rows, hidden):
        started = time.process_time()
        meaning[first : first + len(table)] = ~by_meaning.judge(table).kept
        seconds += time.process_time() - started
        sides = [by_ngrams.found_in(table[name].combine_chunks()) for name in ("reference", "translation")]
        ngrams[first : first + len(table)] = sides[0] | sides[1]
    held = np.zeros(arguments.rows, bool)
    held[places] = True
    print(
        f"{heading('numpy', 'pyarrow')}; one thread; {arguments.rows:,} rows, {len(found.texts):,} items, "
        f"{len(probes)} hidden; {seconds:.0f} CPU seconds by meaning, peak memory of the process "
        f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GB\n"
    )
    print("| | hidden | found by meaning | found by n-grams |\n|---|---:|---:|---:|")
    bounds = np.cumsum([0, *map(len, parts.values())])
    for name, start, stop in zip([*parts, "all"], [*bounds[:-1], 0], [*bounds[1:], len(probes)], strict=True):
        rows = places[start:stop]
        print(f"| paraphrased by {name} | {len(rows)} | {meaning[rows].mean():.1%} | {ngrams[rows].mean():.1%} |")
    free = ~held & ~ngrams
    wrong, others = (meaning & free).sum(), free.sum()
    print(f"\nrows removed falsely: {wrong:,} of {others:,}, {wrong / others:.2%}")


def tune(arguments: argparse.Namespace) -> None:
    """Print recall and the number of removed rows for several thresholds, on data that `measure` does not use."""
    generator, encoder, reader = (
        np.random.default_rng(SEED),
        NamedEncoder(arguments.encoder).load(),
        MismatchReader(COUNTED),
    )
    known = {text for part in (True, False) for pair in sts(arguments.sts, machine=part, least=0) for text in pair}
    lines = [line.split("\t") for line in (arguments.sts / "STSBenchmark" / "sts-train.csv").read_text().split("\n")]
    benchmark = usable([(row[5], row[6]) for row in lines if len(row) > 6 and float(row[4]) >= 4])
    news = pq.read_table(arguments.pairs, columns=["reference", "translation"]).slice(arguments.rows)
    sides = news.take(pa.array(generator.permutation(len(news))[:20_000])).to_pydict()
    positive = {
        "MRPC": mrpc(arguments.mrpc, "train"),
        "STS benchmark": [pair for pair in benchmark if not known & set(pair)],
        "news": usable(list(zip(sides["reference"], sides["translation"], strict=True)))[:5_000],
    }
    items = [
        pair[0] for pair in draw(sum(positive.values(), [])[: -len(positive["news"])], arguments.items, generator)
    ]
    items += [first for first in sorted(known) if len(first.split()) >= MIN_WORDS][: arguments.items - len(items)]

    def vectors(texts: list[str]) -> np.ndarray:
        return unit_vectors(np.asarray(encoder.encode(texts), np.float32))

    def kinds(first: list[str], second: list[str]) -> np.ndarray:
        sides = pa.array(second, pa.string()), pa.array(first, pa.string())
        lengths = penalties(*sides, None)
        return np.stack([(penalties(*sides, reader) - lengths) / MISMATCH, lengths / LENGTH])

    scores = {}
    for name, pairs in positive.items():
        first, second = ([pair[side] for pair in pairs] for side in (0, 1))
        scores[name] = np.einsum("pd,pd->p", vectors(first), vectors(second)), kinds(first, second)
    of_items, close = vectors(items), []
    for side in ("reference", "translation"):
        for start in range(0, len(sides[side]), BATCH):
            texts = sides[side][start : start + BATCH]
            cosines = vectors(texts) @ of_items.T
            rows, columns = np.nonzero(cosines >= 0.55)
            wrong = kinds([items[one] for one in columns], [texts[row] for row in rows])
            close.append((rows + start, cosines[rows, columns], wrong))
    rows, cosines, wrong = (np.concatenate(part, axis=-1) for part in zip(*close, strict=True))
    print(f"| mismatch | length | similarity | {' | '.join(scores)} | rows removed |")
    print("|---:" * (len(scores) + 4) + "|")
    for off in ((0, 0), (0.04, 0), (0.02, 0.1), (0.04, 0.05), (0.04, 0.1), (0.04, 0.15), (0.06, 0.1)):
        for similarity in (0.56, 0.58, 0.6, 0.62, 0.64, 0.66):
            shares = [(cosine - off @ kind >= similarity).mean() for cosine, kind in scores.values()]
            shares.append(len(np.unique(rows[cosines - off @ wrong >= similarity])) / len(sides["reference"]))
            print(f"| {off[0]} | {off[1]} | {similarity} | {' | '.join(f'{share:.2%}' for share in shares)} |")


def main() -> None:
    """Parse the command line, and measure or tune."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sts", type=Path, required=True, help="folder with STS12-en-test and so on, STSBenchmark")
    parser.add_argument("--mrpc", type=Path, required=True, help="folder with MRPC")
    parser.add_argument("--pairs", type=Path, required=True, help="Parquet with reference and translation")
    parser.add_argument("--lexicon", type=Path, help="a word on each line, then its paraphrases")
    parser.add_argument("--paraphraser", type=Path, help="model that paraphrases the half by machines")
    parser.add_argument("--encoder", default=NamedEncoder.name)
    parser.add_argument("--similarity", type=float, default=ITEM_SIMILARITY)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--items", type=int, default=5_000)
    parser.add_argument("--hidden", type=int, default=500)
    parser.add_argument("--tune", action="store_true", help=f"thresholds, and mismatches beside {MISMATCH}")
    arguments = parser.parse_args()
    tune(arguments) if arguments.tune else measure(arguments)


if __name__ == "__main__":
    main()
