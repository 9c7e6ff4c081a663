"""Training of the same encoders on several samples of a corpus, and comparison of them on a development set.

The programs of tables 4 to 6 of ParaNMT-50M and of figure 1 of PARAGRAM-PHRASE use this. Each trained encoder is a
folder below `--out`; a program that was interrupted trains only those that are not there yet.
"""

from __future__ import annotations

import argparse
import logging
import re
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from datasets import Dataset, load_dataset

import paranmt_hf

SEED = 0
# The STS benchmark overlaps the yearly sets, and its 2017 pairs are the development set.
CHOSEN_ON = re.compile("STSB-|STS17-")


class Comparison:
    """The encoders of an experiment, as the command line of its program describes them.

    Args:
        options: What `parser` read.
        defaults: Options of training that the experiment chooses; those of `--training` replace them.
    """

    def __init__(self, options: argparse.Namespace, **defaults: Any) -> None:  # noqa: ANN401
        # Only warnings are shown, because there are many trainings.
        logging.getLogger("paranmt_hf").setLevel(logging.WARNING)
        given = dict(value.split("=", 1) for value in options.training)
        values = {**defaults, **{name.replace("-", "_"): yaml.safe_load(text) for name, text in given.items()}}
        self.max_pairs: int = values.pop("max_pairs", 1_000_000)
        self.max_length: int | None = values.pop("max_length", None)
        known = {field.name for field in fields(paranmt_hf.EncoderConfig)}
        self.encoder = {name: value for name, value in values.items() if name in known}
        self.training = {name: value for name, value in values.items() if name not in known}
        self.models: list[str] = options.models
        self.development: str = options.development
        self.sts: list[str] = options.sts
        self.out = Path(options.out)

    def short(self, corpus: Dataset) -> np.ndarray:
        """Return the rows of a corpus whose sentences have at most `max_length` words [row]."""
        if self.max_length is None:
            return np.arange(len(corpus))
        lengths = [np.array(corpus[name]) for name in ("reference_length", "translation_length")]
        return np.flatnonzero(np.maximum(*lengths) <= self.max_length)

    def sample(self, rows: np.ndarray) -> np.ndarray:
        """Sample up to `max_pairs` of some rows; a smaller sample is a part of a larger one."""
        return np.random.default_rng(SEED).permutation(rows)[: self.max_pairs]

    def measure(self, name: str, corpus: Dataset, rows: np.ndarray, **training: Any) -> list[float]:  # noqa: ANN401
        """Train each encoder on rows of a corpus.

        Returns:
            Pearson's r of each encoder on the development set, in [-1, 1], or with `--sts` the mean over those sets.
        """
        self.out.mkdir(parents=True, exist_ok=True)
        pairs = self.out / f"{name}.parquet"
        corpus.select(np.sort(rows)).select_columns(["reference", "translation"]).to_parquet(pairs)
        found = []
        for model in self.models:
            trained = paranmt_hf.train(
                pairs,
                self.out / f"{name}-{model}",
                encoder=paranmt_hf.EncoderConfig(model=model, **self.encoder),
                config=paranmt_hf.TrainConfig(**self.training, **training),
                development=self.development,
            )
            figure = trained.record.development
            if self.sts:
                (results,) = paranmt_hf.evaluate([trained.folder], data=self.sts, bootstrap=0)
                # Sets that the encoders may have been chosen on are left out, and parts of sets.
                titles = {row.name for row in results.tables["Set"]}
                rows_of_sets = [row for row in results.tables["Set"] if row.group not in titles]
                others = [row for row in rows_of_sets if not CHOSEN_ON.match(row.name)]
                figure = float(np.mean([row.main for row in others or rows_of_sets]))
            assert figure is not None
            found.append(figure)
        return found


def parser(description: str | None) -> argparse.ArgumentParser:
    """Create the parser of the options that all programs share which compare samples."""
    made = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("corpus", help="folder of a corpus, or its id on the Hub")
    made.add_argument("--out", required=True, help="folder of the encoders")
    made.add_argument("--models", nargs="+", default=["word", "trigram", "lstm"])
    made.add_argument("--training", nargs="*", default=[], metavar="NAME=VALUE", help="options of `paranmt train`")
    made.add_argument("--development", required=True, help="scored pairs, as `paranmt train` takes them")
    made.add_argument("--sts", nargs="*", default=[], help="STS sets that the encoders are measured on instead")
    return made


def read_corpus(name: str) -> Dataset:
    """Read the pairs of a corpus."""
    return load_dataset(name, split="train")


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Format a table in Markdown: the first column is text, the others are figures."""
    lines = [list(header), ["---", *["---:"] * (len(header) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def percent(values: Sequence[float]) -> list[str]:
    """Format the figures of encoders, and their mean, times 100."""
    return [f"{100 * value:.1f}" for value in [*values, float(np.mean(values))]]
