"""The text that paraphrasers are trained on: sources, targets and controls from pairs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paranmt_hf.corpus.parsing.template_counts import ParseRecord, parsed_files
from paranmt_hf.corpus.parsing.trees import are_trees, templates_of
from paranmt_hf.corpus.reading.pairs import SIDES, Pairs
from paranmt_hf.corpus.statistics.draws import text_numbers
from paranmt_hf.errors import InputError
from paranmt_hf.hub.repository import Model
from paranmt_hf.paraphrase.config import ParaphraserConfig, ParaphraserTraining
from paranmt_hf.paraphrase.noise import WORD_RATE, add_noise
from paranmt_hf.paraphrase.record import ParaphraserSettings
from paranmt_hf.util.progress import Progress

# Bits of a hash that decide whether a reference is held out.
HELD_OUT_BITS = 32
PARSES = {side: f"{side}_parse" for side in SIDES}
# Source, target, control and key of the held-out part, of each model.
SENTENCE_COLUMNS = ("source", "target", "reference")
CONTROLLED_COLUMNS = ("source", "target", "target_parse", "reference")
PARSE_COLUMNS = ("source_parse", "target_parse", "template", "reference")
TOKENIZER_PAIRS = 2_000_000  # Pairs from which a tokenizer is trained; more change hardly anything


def held_out_keys(keys: pa.ChunkedArray, share: float) -> np.ndarray:
    """Mark held-out rows [row] by the hash of their key, so that the choice is the same in every corpus.

    What a smaller share holds out, a larger one does too.
    """
    if not share:
        return np.zeros(len(keys), bool)
    return text_numbers(keys, size=HELD_OUT_BITS // 8) < np.uint64(share * 2**HELD_OUT_BITS)


@dataclass
class TrainingPairs:
    """Pairs to train on, as tables of text; `names` are those of their sources, for errors.

    Of a controlled network, pairs with a tree of more than `max_tree` tokens are left out, and without `same_template`
    those whose trees have the same template.
    """

    pairs: Pairs
    names: str
    training: ParaphraserTraining
    max_tree: int | None = None
    same_template: bool = False

    def tables(
        self, label: str, direction: str | None = None, dropped: Counter[str] | None = None
    ) -> Iterator[pa.Table]:
        """Read the pairs that can be trained on, in each direction of the training.

        Yields tables of `source`, `target` and `reference`; with trees also `source_parse`, `target_parse` and the
        target's `template`. `dropped` gets the number of pairs `without_tree`, with `long_trees` and of the
        `same_template`.
        """
        direction, done = direction or self.training.direction, 0
        with Progress(label, unit="pairs") as progress:
            for table in self.pairs.batches():
                first, done = done, done + table.num_rows
                if self.max_tree is not None:
                    table = self._with_trees(table, Counter() if dropped is None else dropped)
                progress.advance_to(done)
                for wanted, source, target in (
                    ("to-reference", "translation", "reference"),
                    ("to-translation", "reference", "translation"),
                ):
                    if table.num_rows and direction in (wanted, "both"):
                        yield self._directed(table, source, target, first)
        if not done:
            raise InputError(f"nothing to train on: {self.pairs.left_out}; look at the options that choose pairs")

    def _directed(self, table: pa.Table, source: str, target: str, first: int) -> pa.Table:
        columns = {"source": table[source], "target": table[target], "reference": table["reference"]}
        if self.max_tree is not None:
            parse = table[PARSES[target]].cast(pa.string())
            trees = {"source_parse": table[PARSES[source]].cast(pa.string()), "target_parse": parse}
            return pa.table({**columns, **trees, "template": templates_of(parse)})
        if self.training.noise:
            columns["source"] = self._noisy(**columns, first=first)
        return pa.table(columns)

    def _noisy(
        self, source: pa.ChunkedArray, target: pa.ChunkedArray, reference: pa.ChunkedArray, first: int
    ) -> pa.ChunkedArray:
        """Replace sources that are not held out by their noisy target, with the probability `noise`.

        `first` is the number of the first row.
        """
        training = self.training
        drawn = np.random.default_rng([training.seed, first]).random(len(source)) < training.noise
        drawn &= ~held_out_keys(reference, training.held_out)
        rows, texts = np.flatnonzero(drawn) + first, target.filter(pa.array(drawn)).to_pylist()
        noisy = [
            add_noise(text, WORD_RATE, f"{training.seed} {row}")[0] for row, text in zip(rows, texts, strict=True)
        ]
        return pc.replace_with_mask(source.combine_chunks(), pa.array(drawn), pa.array(noisy, source.type))

    def _with_trees(self, table: pa.Table, dropped: Counter[str]) -> pa.Table:
        """Drop pairs without a tree on a side, with a long one, or with two of the same template."""
        if missing := [name for name in PARSES.values() if name not in table.column_names]:
            raise InputError(
                f"{self.names} has no column {', '.join(missing)}; expected parsed pairs: run `paranmt parse` on them "
                "first, and train on its result"
            )
        trees = [self._checked_trees(name, table[name]) for name in PARSES.values()]
        whole = pc.and_(*(tree.is_valid() for tree in trees))
        # Each node has two tokens, its beginning and its end, and the tree ends with one more.
        lengths = [pc.add(pc.multiply(pc.count_substring(tree, "("), 2), 1) for tree in trees]
        short = pc.and_(*(pc.less_equal(length, self.max_tree) for length in lengths))
        kept = table.filter(pc.and_(whole, pc.fill_null(short, False)))
        parsed = pc.sum(whole).as_py() or 0
        dropped["without_tree"] += table.num_rows - parsed
        dropped["long_trees"] += parsed - kept.num_rows
        if self.same_template:
            return kept
        other = kept.filter(pc.not_equal(*(templates_of(kept[name].cast(pa.string())) for name in PARSES.values())))
        dropped["same_template"] += kept.num_rows - other.num_rows
        return other

    def _checked_trees(self, name: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
        """Convert a column to the type that `paranmt parse` writes, and reject values that are not trees."""
        expected = "expected trees without words such as (S(NP)(VP)), as `paranmt parse` writes them"
        try:
            trees = column.cast(pa.string())
        except pa.ArrowException:
            raise InputError(f"{self.names}: {name} holds {column.type}; {expected}") from None
        bad = np.flatnonzero(trees.is_valid().to_numpy() & ~are_trees(trees))
        if len(bad):
            raise InputError(f"{self.names}: {name} has {trees[int(bad[0])].as_py()[:80]!r}; {expected}")
        return trees


def parsers_of(sources: Sequence[str | Path]) -> str | None:
    """Check the results of `paranmt parse`, and name their parsers; None if a source does not name its parser."""
    folders = [
        folder for folder in (Path(source).expanduser() for source in sources) if (folder / ParseRecord.FILE).is_file()
    ]
    names: dict[str, None] = {}
    for folder in folders:
        parsed_files(folder)
        names[ParseRecord.read(folder).parser] = None
    return ", ".join(names) if folders and len(folders) == len(sources) else None


def first_columns(tables: Iterable[pa.Table], *names: str) -> Iterator[list[str]]:
    """Text of some columns of the first pairs, from which tokenizers are trained."""
    left = TOKENIZER_PAIRS
    for table in tables:
        for name in names:
            yield table[name].slice(0, left).to_pylist()
        left -= table.num_rows
        if left <= 0:
            return


@dataclass(frozen=True)
class TrainingSetup:
    """Inputs of a run: settings that determine the result, names of the inputs, pairs, and a base model if given."""

    settings: ParaphraserSettings
    inputs: dict[str, str]
    text: TrainingPairs
    base: Model | None

    @property
    def config(self) -> ParaphraserConfig:
        """Settings of the model."""
        return self.settings.paraphraser

    @property
    def training(self) -> ParaphraserTraining:
        """Settings of its training."""
        return self.text.training

    @property
    def controlled(self) -> bool:
        """Whether it is a syntactically controlled network."""
        return self.config.model == "controlled"
