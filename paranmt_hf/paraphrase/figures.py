"""Sentences that paraphrasers are evaluated on, and scores of their paraphrases.

Paraphrases should be close to references, far from the input, and of the same meaning; noisy input should be brought
into a standard form.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paranmt_hf.corpus.reading.formats import open_table
from paranmt_hf.corpus.reading.pairs import SIDES, Pairs, PairSelection
from paranmt_hf.corpus.reading.tables import text_rows
from paranmt_hf.corpus.scoring.mismatch_columns import MismatchReader
from paranmt_hf.corpus.statistics.draws import text_numbers
from paranmt_hf.errors import InputError
from paranmt_hf.evaluation.baselines import Meteor
from paranmt_hf.evaluation.pair_set import parse_sentence, tab_separated
from paranmt_hf.evaluation.results import Row
from paranmt_hf.evaluation.similarities import PairSimilarity, pair_similarities
from paranmt_hf.hub.repository import Model
from paranmt_hf.paraphrase.config import ParaphraseEvaluationData
from paranmt_hf.paraphrase.record import ParaphraserRecord
from paranmt_hf.text.definitions import words
from paranmt_hf.text.protocols import Encoder
from paranmt_hf.util.optional import require
from paranmt_hf.util.settings import is_given
from paranmt_hf.util.wording import brief

TSV_SUFFIXES = (".tsv", ".txt")
OUTPUT_SUFFIXES = (".parquet", ".jsonl", ".tsv")
OUTPUT_COLUMNS = ("source", "paraphrase", "rank")
TEMPLATE = "template"
BLEU_VARIANT = "sacrebleu, corpus, 13a tokens, mixed case, exponential smoothing"
NOISY = "noisy input"
EXAMPLES = 20  # Examples of canonicalisation that are kept
# Tells whether each sentence has the template of the same index.
MatchTemplates = Callable[[list[str], list[str]], Sequence[bool]]


@dataclass(frozen=True)
class ParaphraseItems:
    """Sentences [item], all different, with what people wrote for each [item][reference]; empty if unknown."""

    name: str
    sources: list[str]
    references: list[list[str]]

    @property
    def checksum(self) -> str:
        """SHA-256 of all sentences and references."""
        rows = ("\t".join(row) for row in zip(self.sources, map("\t".join, self.references), strict=True))
        return hashlib.sha256("\n".join(rows).encode()).hexdigest()

    @property
    def has_references(self) -> bool:
        """Whether each sentence has a reference."""
        return bool(self.references) and all(self.references)


def group(name: str, pairs: Iterable[tuple[str, str]]) -> ParaphraseItems:
    """Group pairs of sources and references by source."""
    found: dict[str, dict[str, None]] = {}
    for source, reference in pairs:
        found.setdefault(" ".join(source.split()), {})[" ".join(reference.split())] = None
    return ParaphraseItems(name, list(found), [list(references) for references in found.values()])


@dataclass(frozen=True)
class ParaphraseData:
    """Sentences that paraphrasers are evaluated on, sampled at random by a seed.

    `data` is one TSV file (sentence, reference), which has no direction and nothing held out, or what `Pairs` reads.
    The training of `models` held references out.
    """

    data: Sequence[str | Path]
    config: ParaphraseEvaluationData
    selection: PairSelection
    seed: int = 1
    models: Sequence[Model] = ()

    @property
    def name(self) -> str:
        """Name of the data, without parent folders."""
        return ", ".join(Path(each).name if Path(each).exists() else str(each) for each in self.data)

    @property
    def is_tsv(self) -> bool:
        """Whether the data are one TSV file."""
        return len(self.data) == 1 and Path(self.data[0]).suffix.lower() in TSV_SUFFIXES

    def items(self) -> ParaphraseItems:
        """Read sentences with their references."""
        if self.is_tsv:
            return group(self.name, self.rows())
        key, value = SIDES[::-1] if self.config.direction == "to-reference" else SIDES
        table = self._chosen(key)
        return group(self.name, zip(table[key].to_pylist(), table[value].to_pylist(), strict=True))

    def references(self) -> list[str]:
        """Read the distinct references of pairs; not for TSV files."""
        references = self._chosen(SIDES[0])[SIDES[0]].to_pylist()
        return list(dict.fromkeys(" ".join(reference.split()) for reference in references))

    def rows(self) -> list[tuple[str, str]]:
        """Read rows of a TSV file of two columns."""
        given = [name for name in ("direction", "held_out") if is_given(self.config, name)]
        given += [name for name in PairSelection.__dataclass_fields__ if is_given(self.selection, name)]
        if given:
            raise InputError(
                f"{self.data[0]} holds sentences and references, not pairs to choose from; leave out "
                f"{', '.join(f'`{name}`' for name in given)}"
            )
        path = Path(self.data[0]).expanduser()
        rows = [
            [parse_sentence(cell, f"{path}, line {number}", f"column {place}") for place, cell in enumerate(cells, 1)]
            for number, cells in enumerate(tab_separated(path, 2, "two sentences", exactly=True), 1)
        ]
        table = pa.table(dict(zip(SIDES, zip(*rows, strict=True), strict=True)))
        table = self._sampled(iter([table]), SIDES[0])
        return list(zip(*(table[side].to_pylist() for side in SIDES), strict=True))

    def _chosen(self, key: str) -> pa.Table:
        tables = Pairs(self.data, self.selection, seed=self.seed).batches()
        table = self._sampled(self._held_out(tables) if self.config.held_out else tables, key)
        if not table.num_rows:
            more = "held out of training " if self.config.held_out else ""
            raise InputError(f"{self.name}: no pair {more}is left to measure; look at the options that choose")
        return table

    def _sampled(self, tables: Iterator[pa.Table], key: str) -> pa.Table:
        """Keep all rows of the sampled sentences; only these rows are in memory."""
        kept, items = pa.table({side: pa.array([], pa.string()) for side in SIDES}), self.config.items
        for table in tables:
            table = table.select(SIDES).filter(pc.greater(pc.utf8_length(pc.utf8_trim_whitespace(table[key])), 0))
            kept = pa.concat_tables([kept, table]) if kept.num_rows else table
            if items and kept.num_rows:
                numbers = text_numbers(kept[key], salt=f"{self.seed}")
                distinct = np.unique(numbers)
                if len(distinct) > items:
                    kept = kept.filter(pa.array(numbers < distinct[items]))
        return kept

    def _held_out(self, tables: Iterator[pa.Table]) -> Iterator[pa.Table]:
        """Keep the pairs whose reference is held out from training."""
        from paranmt_hf.paraphrase.training_pairs import held_out_keys

        if not self.models:
            raise InputError("`held_out` is about the training of models; name one", option="held_out")
        records = {model.name: ParaphraserRecord.read(model.folder) for model in self.models}
        shares = {name: record.settings.training.held_out for name, record in records.items()}
        if nothing := [name for name, share in shares.items() if not share]:
            raise InputError(
                f"{', '.join(nothing)} was trained with nothing held out; leave out `held_out`, or measure others",
                option="held_out",
            )
        for table in tables:
            # What a smaller share holds out, a larger one does too.
            yield table.filter(pa.array(held_out_keys(table[SIDES[0]], min(shares.values()))))


@dataclass(frozen=True)
class Output:
    """The paraphrases of one sentence, the best first, and the template of each, empty without one."""

    texts: list[str]
    templates: list[str]


def is_outputs(name: str | Path) -> bool:
    """Whether a path is a file of paraphrases rather than a model."""
    path = Path(name).expanduser()
    return path.is_file() or (path.suffix.lower() in OUTPUT_SUFFIXES and not path.is_dir())


def read_outputs(path: Path) -> dict[str, Output]:
    """Read the paraphrases of each sentence, the best first.

    The file has the columns `source`, `paraphrase` and `rank`, from 1 (0 if a sentence has none), perhaps `template`.
    """
    table = open_table(path, OUTPUT_COLUMNS)
    if missing := [name for name in OUTPUT_COLUMNS if name not in table.names]:
        raise InputError(
            f"{path} has no column {', '.join(missing)}; it has {', '.join(table.names)}; expected a file that "
            "`paranmt paraphrase text` wrote",
            option="models",
            path=path,
        )
    columns = [*OUTPUT_COLUMNS, *[name for name in table.names if name == TEMPLATE]]
    found: dict[str, list[tuple[int, str, str]]] = {}
    for place, (source, paraphrase, rank, *template) in text_rows(table, columns, ["rank"]):
        number = _rank(rank, place, path)
        if source:
            entries = found.setdefault(source, [])
            if number and paraphrase:
                entries.append((number, paraphrase, "".join(template)))
    # A sentence that is in the input twice has the same paraphrases twice.
    ordered = {source: list(dict.fromkeys(sorted(rows, key=lambda row: row[0]))) for source, rows in found.items()}
    return {
        source: Output([text for _, text, _ in rows], [template for _, _, template in rows])
        for source, rows in ordered.items()
    }


def _rank(text: str, place: str, path: Path) -> int:
    """Read the rank of a paraphrase; 0 if it is missing."""
    try:
        rank = float(text or 0)
        if rank.is_integer():
            return int(rank)
    except ValueError:
        pass
    raise InputError(f"{place}: expected a whole number in column 'rank', found {brief(text)}", path=path)


class ParaphraseMeasures:
    """Scores the first output of each sentence; only `among_bleu` and `outputs` use all outputs.

    - `bleu`, corpus BLEU against the references, 0 to 100, where a sentence without output counts as an empty one; and
      `meteor`, mean METEOR against the nearest reference, in [0, 1], where it counts as 0. Both need references.
    - `self_bleu`: corpus BLEU of the outputs against their inputs, 0 to 100: 100 is a copy.
    - `among_bleu`: corpus BLEU of each output against the others of its sentence, 0 to 100 (self-BLEU of
      Zhu et al. 2018): the lower, the more diverse. It needs a sentence with two.
    - `score`: mean paraphrase score of output and input, in [-1, 1].
    - One for each kind of error: share of the outputs that differ from their input in a number, a negation, a name or
      an address.
    - `copies`: share of the outputs with the words of their input, case and white space aside.
    - `length_ratio`: words of all outputs by words of their inputs.
    - `template_match`: share of the outputs with a template that have it, if there is `match_templates`.
    - `without`: number of sentences without output, which the other figures leave out.
    - `outputs`: mean number of outputs of a sentence.
    """

    def __init__(
        self,
        scorer: Encoder | PairSimilarity,
        match_templates: MatchTemplates | None = None,
    ) -> None:
        self._scorer, self._match = scorer, match_templates
        self._mismatches = MismatchReader()
        self._bleu = corpus_bleu()
        self._meteor = Meteor()
        self._words = lru_cache(maxsize=100_000)(words)

    @property
    def variants(self) -> dict[str, str]:
        """Variants of BLEU and METEOR."""
        return {"bleu": BLEU_VARIANT, "meteor": f"nltk, stages {', '.join(self._meteor.stages)}"}

    def __call__(
        self, items: ParaphraseItems, outputs: Sequence[Output], *, against_references: bool = True
    ) -> dict[str, float]:
        """Score the outputs of each sentence [item]; scores that cannot be computed are left out."""
        rows = [row for row, output in enumerate(outputs) if output.texts]
        if not rows:
            raise InputError(f"{items.name}: none of {len(outputs):,} sentences has a paraphrase; nothing to measure")
        sources, best = [items.sources[row] for row in rows], [outputs[row].texts[0] for row in rows]
        figures: dict[str, float | None] = {}
        if against_references and items.has_references:
            every = [output.texts[0] if output.texts else "" for output in outputs]
            figures["bleu"] = self._bleu(every, items.references)
            nearest = [self._nearest(*pair) for pair in zip(every, items.references, strict=True)]
            figures["meteor"] = float(np.mean(nearest))
        cut = [(self._words(source), self._words(text)) for source, text in zip(sources, best, strict=True)]
        figures |= {
            "self_bleu": self._bleu(best, [[source] for source in sources]),
            "among_bleu": self._among([output.texts for output in outputs]),
            "score": float(np.mean(pair_similarities(self._scorer, sources, best, items.name).values)),
            "copies": float(np.mean([source == text for source, text in cut])),
            "length_ratio": sum(len(text) for _, text in cut) / max(1, sum(len(source) for source, _ in cut)),
            "template_match": self._templates([outputs[row] for row in rows]),
            "without": len(outputs) - len(rows),
            "outputs": float(np.mean([len(output.texts) for output in outputs])),
        }
        mismatches = self._mismatches.columns(pa.array(sources, pa.string()), pa.array(best, pa.string()))
        for name, counts in mismatches.items():
            figures[name.replace("_mismatch", "")] = float(np.mean(counts.to_numpy() > 0))
        return {name: figure for name, figure in figures.items() if figure is not None}

    def _nearest(self, text: str, references: Sequence[str]) -> float:
        own = self._words(text)
        return max(self._meteor.one_direction(own, self._words(each)) for each in references) if own else 0.0

    def _among(self, outputs: Sequence[Sequence[str]]) -> float | None:
        several = [texts for texts in outputs if len(texts) > 1]
        if not several:
            return None
        others = [[*texts[:place], *texts[place + 1 :]] for texts in several for place in range(len(texts))]
        return self._bleu([text for texts in several for text in texts], others)

    def _templates(self, outputs: Sequence[Output]) -> float | None:
        asked = [output for output in outputs if output.templates and output.templates[0]]
        if self._match is None or not asked:
            return None
        return float(np.mean(self._match([each.texts[0] for each in asked], [each.templates[0] for each in asked])))


def corpus_bleu() -> Callable[[list[str], Sequence[Sequence[str]]], float]:
    """Return a function that computes corpus BLEU, 0 to 100, of sentences with several references each."""
    sacrebleu: Any = require("sacrebleu", "evaluate")
    # Otherwise it warns about tokenised sentences.
    measure = sacrebleu.BLEU(force=True)

    def compute(sentences: list[str], references: Sequence[Sequence[str]]) -> float:
        most = max(map(len, references))
        # Streams, where the first references of all sentences are one; a sentence with fewer has none in the others.
        streams = [[own[place] if place < len(own) else None for own in references] for place in range(most)]
        return float(measure.corpus_score(sentences, streams).score)

    return compute


def closeness(sentences: Sequence[str], clean: Sequence[str]) -> dict[str, float]:
    """Measure how close sentences are to the clean ones of the same index.

    `character_edits` and `word_edits` are for each 100 characters, or words cut at blanks, of the clean sentences;
    `bleu` is corpus BLEU, 0 to 100, and `equal` the share that equals the clean sentence.
    """
    pairs = list(zip(sentences, clean, strict=True))
    characters = sum(edit_distance(one, other) for one, other in pairs)
    words = sum(edit_distance(one.split(), other.split()) for one, other in pairs)
    return {
        "character_edits": 100 * characters / sum(map(len, clean)),
        "word_edits": 100 * words / sum(len(each.split()) for each in clean),
        "bleu": corpus_bleu()(list(sentences), [[each] for each in clean]),
        "equal": sum(one == other for one, other in pairs) / len(clean),
    }


def canonical_figures(
    noisy: Sequence[str], clean: Sequence[str], outputs: Sequence[str | None], of_clean: Sequence[str | None]
) -> tuple[list[Row], list[dict[str, Any]]]:
    """Measure how close outputs of noisy sentences are to the clean ones (ParaNMT-50M, section 6, table 11).

    The paper shows examples; here the clean sentence is known, and the distance to it is measured before and after. An
    output of None, where nothing was generated, counts as the sentence itself; `of_clean` was generated from the clean
    sentences, whose own distance is 0.

    Returns figures of the outputs, of those of clean sentences, and of the noisy sentences; and the first sentences as
    examples. `improved` and `worse` are the shares whose output needs fewer or more character edits than they did.
    """
    if not clean:
        raise InputError("there are no noisy sentences to measure")
    made = [own if output is None else output for own, output in zip(noisy, outputs, strict=True)]
    kept = [own if output is None else output for own, output in zip(clean, of_clean, strict=True)]
    before, after = ([edit_distance(*pair) for pair in zip(side, clean, strict=True)] for side in (noisy, made))
    changes = {
        "improved": sum(one < other for one, other in zip(after, before, strict=True)) / len(clean),
        "worse": sum(one > other for one, other in zip(after, before, strict=True)) / len(clean),
    }
    columns = {"noisy": noisy, "output": made, "clean": clean, "before": before, "after": after}
    rows = {
        "output": closeness(made, clean) | changes,
        "output of clean input": closeness(kept, clean),
        NOISY: closeness(noisy, clean),
    }
    return (
        [Row(name=name, items=len(clean), values=values) for name, values in rows.items()],
        [{name: column[row] for name, column in columns.items()} for row in range(min(EXAMPLES, len(clean)))],
    )


def edit_distance(first: Sequence[Hashable], second: Sequence[Hashable]) -> int:
    """Minimum number of insertions, deletions and replacements between two sequences (Levenshtein 1966).

    A column of the table of distances is kept as the differences of neighbours, each +1, 0 or -1, in the bits of two
    numbers, and so each item of `second` costs a few operations on whole columns (Hyyrö 2003).

    >>> edit_distance("kitten", "sitting"), edit_distance("a b c".split(), "a c".split())
    (3, 1)
    """
    if not first:
        return len(second)
    places: dict[Hashable, int] = {}
    for place, item in enumerate(first):
        places[item] = places.get(item, 0) | 1 << place
    column, last = (1 << len(first)) - 1, 1 << len(first) - 1
    up, down, distance = column, 0, len(first)
    for item in second:
        equal = places.get(item, 0)
        diagonal = ((equal & up) + up ^ up) | equal | down
        rises, falls = down | ~(diagonal | up) & column, diagonal & up
        distance += bool(rises & last) - bool(falls & last)
        rises, falls = rises << 1 | 1, falls << 1
        up, down = (falls | ~(diagonal | rises)) & column, rises & diagonal & column
    return distance
