"""Measure a corpus and encoders in another language from end to end, by the steps of docs/examples/german.yaml.

The translator and the scorer learned from the first half of a bitext, and the corpus is made of the second. The scorer
and encoders that are trained on the corpus are compared on other lines: by how similar they are to the teacher, which
reads the English side; by how often the translation with the highest cosine is that of the sentence; by Pearson's r
with the scores that people gave to English captions (STS 2012 MSRvid, STS 2014 images), translated likewise.

    python benchmarks/other_language.py --bitext multi30k --translator captions-en-de --teacher all-MiniLM-L6-v2 \
      --sts sts --out german
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import sacrebleu
from commands import heading, sts_pairs
from teacher_likeness import likeness

from paranmt_hf import (
    DistillConfig,
    EncoderConfig,
    EngineConfig,
    ReleaseConfig,
    ReleaseFilter,
    TextInput,
    TrainConfig,
    build,
    distill,
    load,
    select,
    train,
)

CAPTIONS = (("STS12", "MSRvid"), ("STS14", "images"))
LICENSE = "cc-by-nc-sa-4.0"


def read(path: Path) -> list[str]:
    """Read one sentence per line."""
    return path.read_text(encoding="utf8").split("\n")[:-1]


def write(path: Path, lines: list[str]) -> Path:
    """Write one sentence per line."""
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf8")
    return path


def unit(vectors: np.ndarray) -> np.ndarray:
    """Scale vectors to length 1; vectors of zeros stay as they are."""
    return np.asarray(vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9))


class Benchmark:
    """The steps of the benchmark; a second run finds the results of the first in the same folder."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self.arguments, self.out, self.language = arguments, arguments.out, arguments.language
        self.out.mkdir(parents=True, exist_ok=True)
        self.halves = [
            self.half(slice(None, arguments.lines), "half1"),
            self.half(slice(arguments.lines, None), "half2"),
        ]

    def half(self, part: slice, name: str) -> dict[str, Path]:
        """Write a part of both sides of the bitext to files called `name`, and return their paths by language."""
        return {
            side: write(self.out / f"{name}.{side}", read(self.arguments.bitext / f"train.{side}")[part])
            for side in ("en", self.language)
        }

    def corpus(self, name: str, source: Path, reference: Path) -> Path:
        """Build a corpus with the distilled scorer, and return its folder."""
        build(
            TextInput(source=source, reference=reference),
            self.out / name,
            translator=str(self.arguments.translator),
            scorer=self.out / "scorer",
            release=ReleaseConfig(license=LICENSE, language=self.language, keep_source=True),
            engine=EngineConfig(workers=1),
        )
        return self.out / name

    def encoders(self) -> dict[str, Path]:
        """Distill the scorer, build the corpus of the second half, and train on a part; return encoders by name."""
        first, second = self.halves
        seed = self.arguments.seed
        found = {"the scorer, distilled": self.out / "scorer"}
        options = {"text": first[self.language], "translations": first["en"], "language": self.language}
        distill(self.arguments.teacher, out=self.out / "scorer", config=DistillConfig(seed=seed), **options)
        corpus = self.corpus("corpus", second["en"], second[self.language])
        chosen = select(corpus, self.out / "chosen", ReleaseFilter(tenths="3-10", drop_identical=True)).folder
        for name, encoder in {
            "TRIGRAM trained on the corpus": EncoderConfig(model="trigram", dimension=384),
            "the scorer trained further on it": EncoderConfig(init_from=str(self.out / "scorer")),
        }.items():
            found[name] = train(
                chosen, self.out / name.replace(" ", "-"), encoder=encoder, config=TrainConfig(seed=seed)
            ).folder
        name = "distilled with the corpus (`--data`)"
        config = DistillConfig(seed=seed)
        found[name] = distill(
            self.arguments.teacher, out=self.out / "both", data=chosen, config=config, **options
        ).folder
        return found

    def english(self) -> Path:
        """Distill an encoder from the English side of the first half, to compare with what needs no translations."""
        config = DistillConfig(seed=self.arguments.seed, start="trigrams")
        return distill(
            self.arguments.teacher, out=self.out / "english", text=self.halves[0]["en"], config=config
        ).folder

    def captions(self) -> list[tuple[list[str], list[str], np.ndarray]]:
        """Translate the captions of STS; return both sides and the scores of each set."""
        sets, rows = [], []
        for year, name in CAPTIONS:
            pairs = sts_pairs(self.arguments.sts / f"{year}-en-test" / f"STS.input.{name}.txt")
            # Releases store exactly one blank between words.
            lines = [[" ".join(side.split()) for side in pair[1:]] for pair in pairs]
            sets.append((lines, np.array([pair[0] for pair in pairs])))
            rows += [sentence for line in lines for sentence in line]
        english = write(self.out / "sts.en", list(dict.fromkeys(rows)))
        table = pq.read_table(self.corpus("sts", english, english) / "data").to_pydict()
        german = dict(zip(table["source"], table["translation"], strict=True))
        return [
            ([german[left] for left, _ in lines], [german[right] for _, right in lines], gold) for lines, gold in sets
        ]


def main() -> None:
    """Parse the command line, make what is missing, print tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bitext", type=Path, required=True, help="folder with train and test_2016_flickr")
    parser.add_argument("--translator", type=Path, required=True)
    parser.add_argument("--teacher", required=True)
    parser.add_argument("--sts", type=Path, required=True)
    parser.add_argument("--language", default="de")
    parser.add_argument("--lines", type=int, default=14_500, help="of the first half")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=1)
    benchmark = Benchmark(parser.parse_args())
    bitext, language = benchmark.arguments.bitext, benchmark.language
    encoders = benchmark.encoders()
    held_out = benchmark.corpus("test", bitext / "test_2016_flickr.en", bitext / f"test_2016_flickr.{language}")
    rows = pq.read_table(held_out / "data").to_pydict()
    print(f"{heading('sacrebleu', 'torch')}\n")
    describe_corpus(rows, pq.read_table(benchmark.out / "corpus" / "data").to_pydict())
    teacher = load(benchmark.arguments.teacher).encode(rows["source"])
    compare(encoders, rows, teacher, benchmark.captions())
    alike = likeness(load(str(benchmark.english())).encode(rows["source"]), teacher)
    print(f"\nThe same distillation of English is {100 * alike:.1f} like the teacher on the English lines.")


def describe_corpus(rows: dict[str, list], corpus: dict[str, list]) -> None:
    """Print the BLEU of the translator on the test lines, and the scores of the corpus."""
    bleu = sacrebleu.corpus_bleu(rows["translation"], [rows["reference"]]).score
    print(f"BLEU of the translator on {len(rows['id']):,} lines: {bleu:.1f}\n")
    scores = np.array(corpus["para_score"])
    shares = 100 * np.histogram(scores, [-1, 0.2, 0.4, 0.6, 0.8, 1.001])[0] / len(scores)
    print(f"{len(scores):,} pairs, mean score {scores.mean():.2f}; % to 0.2, 0.4, 0.6, 0.8, 1: {shares.round(1)}\n")


def compare(
    encoders: dict[str, Path],
    rows: dict[str, list],
    teacher: np.ndarray,
    captions: list[tuple[list[str], list[str], np.ndarray]],
) -> None:
    """Print a row of the table for each encoder."""
    titles = ["like the teacher", "translation found", "score of pairs", "of random pairs"]
    titles += [" ".join(names) for names in CAPTIONS]
    print(f"| | {' | '.join(titles)} |\n|---|{'---:|' * len(titles)}")
    for name, model in {"the carried encoder `base`": "base", **encoders}.items():
        encode = load(str(model)).encode
        left, right = (unit(encode(rows[side])) for side in ("reference", "translation"))
        cosines = left @ right.T
        others = cosines[~np.eye(len(cosines), dtype=bool)]
        figures = [
            f"{100 * likeness(left, teacher):.1f}",
            f"{100 * np.mean(cosines.argmax(axis=1) == np.arange(len(cosines))):.1f} %",
            f"{cosines.diagonal().mean():.2f}",
            f"{others.mean():.2f} ± {others.std():.2f}",
        ]
        for first, second, gold in captions:
            pairs = (unit(encode(first)) * unit(encode(second))).sum(axis=1)
            figures.append(f"{100 * np.corrcoef(pairs, gold)[0, 1]:.1f}")
        print(f"| {name} | {' | '.join(figures)} |", flush=True)


if __name__ == "__main__":
    main()
