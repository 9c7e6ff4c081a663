"""The inputs of a training run: models, vectors and data, each found, hashed and read once."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from paranmt_hf.corpus.reading.pairs import SIDES, Pairs, PairSelection
from paranmt_hf.corpus.reading.readers import Report
from paranmt_hf.corpus.reading.sentences import SENTENCE, TRANSLATION, SentenceSources
from paranmt_hf.corpus.selection.decontamination import EvaluationText
from paranmt_hf.encoders.config import EncoderConfig
from paranmt_hf.encoders.loading import load
from paranmt_hf.errors import InputError
from paranmt_hf.evaluation.sts_data import StsSet, read_benchmark, read_scored_pairs, read_sts
from paranmt_hf.hub.repository import Model, check_name, locate, plain_name
from paranmt_hf.text.identity import distinct_rows, keys_of
from paranmt_hf.text.word_vectors import check_vectors, read_vectors
from paranmt_hf.training.config import TrainConfig
from paranmt_hf.training.record import TrainingSettings
from paranmt_hf.util.files import Names, checksum, existing, listed
from paranmt_hf.util.records import Identity, as_json
from paranmt_hf.util.settings import is_given
from paranmt_hf.util.wording import counted

if TYPE_CHECKING:
    from paranmt_hf.encoders.sentence_encoder import SentenceEncoder

logger = logging.getLogger(__name__)
TEACHERS = ("teacher", "second_teacher")  # Settings that name a teacher
# The sides of a row of text with translations, and the columns of what a teacher reads in place of them.
TAUGHT = {side: f"taught {side}" for side in SIDES}
# The sources of a record, and how they were chosen, for text alone.
NO_PAIRS: dict[str, Any] = {"sources": [], "ranges": {}, "unwanted_sentences": 0}


@dataclass(frozen=True)
class TrainingRun:
    """The inputs of a training run; the encoder's settings are completed from the encoder to continue from.

    `vectors` is the file of word vectors, `teachers` are at most two, and `processes` train together.
    """

    encoder: EncoderConfig
    config: TrainConfig
    pairs: Pairs | PairsAndText
    development: StsSet | None = None
    start: SentenceEncoder | None = None
    teachers: Sequence[Model] = ()
    vectors: Path | None = None
    processes: int = 1

    @property
    def in_engine(self) -> bool:
        """Whether an engine for averages trains the encoder, not the trainer."""
        return not any(family.layers for family in self.encoder.families) and not self.config.word_factors

    @cached_property
    def settings(self) -> TrainingSettings:
        """Everything that determines the result."""
        revisions: dict[str, Any] = dict(zip(TEACHERS, (each.revision for each in self.teachers), strict=False))
        # If each process mines in all of a mega-batch, any number of them gives the same result.
        counts = not self.in_engine or self.config.mine_over == "rank"
        return TrainingSettings(
            encoder=encoder_identity(self.encoder, self.start, self.vectors),
            training=replace(self.config, **revisions),
            data=self.pairs.identity,
            development=self.development.name if self.development is not None else None,
            development_checksum=self.development.checksum if self.development is not None else None,
            processes=self.processes if counts and self.processes > 1 else None,
        )

    @property
    def identity(self) -> Identity:
        """Everything that determines the result, as JSON values."""
        return as_json(self.settings)

    @property
    def inputs(self) -> dict[str, str]:
        """Names of the inputs without folders; the settings hold only their checksums."""
        models = {"init_from": self.encoder.init_from, **{name: getattr(self.config, name) for name in TEACHERS}}
        names = {option: plain_name(name) for option, name in models.items() if name}
        if isinstance(self.pairs, PairsAndText):
            names["text"] = ", ".join(self.pairs.names)
        return names | ({"vectors": self.vectors.name} if self.vectors else {})


def resolve_inputs(
    data: Names | None,
    encoder: EncoderConfig,
    config: TrainConfig,
    selection: PairSelection,
    *,
    columns: Mapping[str, str] | None = None,
    development: str | Path | None = None,
    exclude: str | Path | None = None,
    text: Names | None = None,
    processes: int = 1,
) -> TrainingRun:
    """Find the inputs of a run; arguments as in `train`, and the number of processes."""
    names = [name for name in (getattr(config, teacher) for teacher in TEACHERS) if name]
    _check_given(data, text, columns, config, selection)
    # Quick checks come before the data is read, and that before torch is imported.
    for name in [*names, *([encoder.init_from] if encoder.init_from else [])]:
        check_name(name)
    if encoder.vectors:
        check_vectors(vectors_file(encoder.vectors))
    held_out = read_scored_pairs(development) if development is not None else None
    unwanted = sentences_of(exclude) if exclude is not None else set()
    own = None
    if data is not None:
        own = Pairs(
            listed(data),
            selection,
            unwanted,
            columns=columns,
            seed=config.seed,
            errors_apart=config.error_negatives > 0,
        )
    pairs = own if text is None else PairsAndText(own, SentenceSources(listed(text)), unwanted)
    assert pairs is not None
    teachers = [locate(name) for name in names]
    encoder, start, vectors = resolve_encoder(encoder)
    run = TrainingRun(encoder, config, pairs, held_out, start, teachers, vectors, processes)
    _check_settings(run)
    return run


def _check_given(data: object, text: object, columns: object, config: TrainConfig, selection: PairSelection) -> None:
    """Reject data that do not fit the settings; arguments as in `train`."""
    if text is not None and config.margin_weight:
        raise InputError(
            "`text` has sentences without paraphrases, which only a teacher helps to learn from; give `teacher`, "
            "leave `teacher_weight` at 1.0, and train on pairs afterwards (`init_from`)",
            option="text",
        )
    if data is None and text is None:
        raise InputError("there is nothing to train on: give pairs as `data`, or sentences as `text` with a `teacher`")
    if data is None and columns:
        raise InputError("`columns` are those of pairs; give some as `data`", option="columns")
    if data is None and selection != PairSelection():
        raise InputError("options that choose pairs need pairs; give some as `data`", option="data")


def _check_settings(run: TrainingRun) -> None:
    """Reject settings that would be recorded without an effect on the result."""
    config = run.config
    if config.word_factors and run.encoder.model != "word":
        raise InputError(f"`word_factors` is for the model word, not for {run.encoder.model}", option="word_factors")
    if config.neighbours and not run.in_engine:
        raise InputError("`neighbours` is for averaging models trained in float32", option="neighbours")
    if config.error_negatives and (not run.in_engine or config.device == "cuda"):
        raise InputError("`error_negatives` is for averaging models on the CPU", option="error_negatives")


def resolve_encoder(encoder: EncoderConfig) -> tuple[EncoderConfig, SentenceEncoder | None, Path | None]:
    """Find the initial weights and vectors of an encoder.

    Returns the settings, resolved; the encoder to continue from and the file of word vectors, at most one of them.
    """
    if encoder.init_from:
        from paranmt_hf.encoders.building import trainable

        start = trainable(load(encoder.init_from, device="cpu"))
        return _resolved(encoder, start), start, None
    vectors = vectors_file(encoder.vectors) if encoder.vectors else None
    width = read_vectors(vectors, limit=1).matrix.shape[1] if vectors is not None else None
    return encoder.resolved(width), None, vectors


def encoder_identity(encoder: EncoderConfig, start: SentenceEncoder | None, vectors: Path | None) -> EncoderConfig:
    """Replace the names in the settings of an encoder by checksums; arguments as returned by `resolve_encoder`."""
    if start is not None:
        revision = start.source.revision if start.source is not None else None
        return EncoderConfig(model=encoder.model, init_from=revision)
    return replace(encoder, vectors=f"sha256:{checksum(vectors)}" if vectors else None)


def _resolved(encoder: EncoderConfig, start: SentenceEncoder) -> EncoderConfig:
    """Fill in settings from the initial encoder, and reject those of another encoder."""
    from paranmt_hf.encoders.composition import take_apart

    name = take_apart(list(start)).name
    given = {entry.name for entry in fields(encoder) if is_given(encoder, entry.name)} - {"init_from"}
    if given - {"model"} or encoder.model not in (EncoderConfig().model, name, name.replace(",", "-")):
        raise InputError(
            f"{encoder.init_from} is a model {name!r} with its own vocabulary and dimensions; leave out "
            f"{', '.join(f'`{name}`' for name in sorted(given))}",
            option="init_from",
        )
    return replace(encoder, model=name)


def vectors_file(path: str) -> Path:
    """Find a file of word vectors."""
    (file,) = existing([Path(path).expanduser()])
    return file


def sentences_of(folder: str | Path) -> set[str]:
    """Every sentence of the STS sets in a folder, including the benchmark's training part."""
    folder = Path(folder).expanduser()
    sets = list(read_sts(folder))
    for benchmark in (folder, folder / "STSBenchmark"):
        if (benchmark / "sts-train.csv").exists():
            sets.append(read_benchmark(benchmark, split="train"))
    return {sentence for part in sets for sentence in [*part.left, *part.right]}


def holds_training(work: Path) -> bool:
    """Whether a work folder holds expensive work: a checkpoint, or vectors of a teacher."""
    return holds_checkpoint(work) or any(work.glob("teacher/**/part-*"))


def holds_checkpoint(work: Path) -> bool:
    """Whether a work folder holds a checkpoint."""
    return any(work.glob("**/checkpoint*"))


class PairsAndText:
    """Pairs, if there are any, followed by sentences of text, if there are any, every two of which form a row.

    They are not paraphrases, so this is for a teacher alone. Text that shares one of the `unwanted` sentences of test
    sets, or eight words in a row, is left out, and so is text whose translation does. `unit` is the name of a row in
    messages.
    """

    unit = "pairs of sentences"

    def __init__(self, pairs: Pairs | None, text: SentenceSources | None, unwanted: Collection[str] = ()) -> None:
        self._pairs, self._text = pairs, text
        self._unwanted = EvaluationText(unwanted) if unwanted else None
        lines = "\n".join(sorted(unwanted)).encode("utf8", "surrogatepass")
        self._checksum = hashlib.sha256(lines).hexdigest() if unwanted else None
        self._shared = self._read = 0
        self._dropped: dict[str, int] = {}

    @property
    def identity(self) -> dict[str, Any]:
        """Everything that determines the sentences, as JSON values."""
        pairs = self._pairs.identity if self._pairs is not None else NO_PAIRS
        return {
            **pairs,
            "text": self._text.identity if self._text is not None else None,
            "text_unwanted_checksum": self._checksum,
        }

    @property
    def translated(self) -> bool:
        """Whether a teacher reads translations of some of the text."""
        return self._text is not None and self._text.translated

    @property
    def names(self) -> list[str]:
        """Names of the files and datasets of text, without folders."""
        return self._text.names if self._text is not None else []

    @property
    def left_out_by(self) -> dict[str, int]:
        """Numbers of rows and sentences that the last reading left out, by reason."""
        of_pairs = self._pairs.left_out_by if self._pairs is not None else {}
        return of_pairs | {f"sentences of text {reason}": count for reason, count in self._reasons.items() if count}

    @property
    def left_out(self) -> str:
        """Description of what the last reading left out."""
        of_pairs = [self._pairs.left_out] if self._pairs is not None else []
        counts = [f"{count:,} left out, {reason}" for reason, count in self._reasons.items() if count]
        read = self._read + sum(self._dropped.values())
        return "; ".join(
            [*of_pairs, f"of {counted(read, 'sentence')} of text {', '.join(counts) or 'none was left out'}"]
        )

    @property
    def _reasons(self) -> dict[str, int]:
        dropped = {f"dropped as {reason}": count for reason, count in self._dropped.items()}
        return {**dropped, "with a sentence of the excluded sets, or eight words of one": self._shared}

    def errors(self) -> Iterator[pa.Table]:
        """Yield no pairs with errors, which are only for a margin loss."""
        return iter(())

    def batches(self) -> Iterator[pa.Table]:
        """Read tables with the columns `reference` and `translation`, and `TAUGHT` if it is translated; no nulls."""
        if self._pairs is not None:
            yield from self._pairs.batches()
        waiting: list[pa.Table] = []
        for rows in self.rows():
            rows = pa.concat_tables([*waiting, rows])
            whole = len(rows) // 2 * 2
            waiting = [rows[whole:]]
            if whole:
                yield _by_twos(rows[:whole], translated=self.translated)
        if waiting and len(waiting[0]):
            # The last sentence of an odd number is both sides.
            yield _by_twos(pa.concat_tables(2 * waiting), translated=self.translated)

    def columns(self) -> Iterator[pa.Array]:
        """Read every sentence once: both sides of the pairs, then the text [sentence]."""
        for table in self._pairs.batches() if self._pairs is not None else ():
            for side in SIDES:
                yield pa.concat_arrays(table[side].chunks)
        for rows in self.rows():
            yield rows[SENTENCE].combine_chunks()

    def rows(self) -> Iterator[pa.Table]:
        """Read the text next to what a teacher reads of it, without excluded sentences, and count these."""
        self._shared = self._read = 0
        report = Report()
        for rows in self._text.rows(report) if self._text is not None else ():
            self._read += len(rows)
            if self._unwanted is not None and len(rows):
                read = [SENTENCE, *([TRANSLATION] if self.translated else [])]
                shared = np.any([self._unwanted.found_in(rows[name].combine_chunks()) for name in read], axis=0)
                self._shared += int(shared.sum())
                rows = rows.filter(pa.array(~shared))
            yield rows
        self._dropped = dict(report.dropped)
        if self._dropped.get("undecodable", 0) > self._read:
            raise InputError(
                f"most lines are not UTF-8: {self.left_out}; convert the files, such as with `iconv`", option="text"
            )


def _by_twos(rows: pa.Table, *, translated: bool) -> pa.Table:
    """Form rows of two sentences: 2i and 2i + 1 are the sides of row i."""
    rows, found = rows.combine_chunks(), dict[str, pa.Array]()
    for index, side in enumerate(SIDES):
        chosen = rows.take(pa.array(np.arange(index, len(rows), 2)))
        found |= {side: chosen[SENTENCE]} | ({TAUGHT[side]: chosen[TRANSLATION]} if translated else {})
    return pa.table(found)


def split_text(sentences: PairsAndText, most: int, multiple: int, seed: int) -> tuple[pa.Table, pa.Table]:
    """Hold out some of the distinct sentences of text, at most a tenth; returns the others, and those.

    Text with translations has them in a second column; of a repeated sentence the first one is used. The number that
    is held out is the largest `multiple` that is at most `most`.
    """
    columns = [SENTENCE, *([TRANSLATION] if sentences.translated else [])]
    # A source whose lines are all left out gives no table.
    nothing = pa.table({name: pa.array([], pa.string()) for name in columns})
    table = pa.concat_tables([nothing, *(rows.select(columns) for rows in sentences.rows())])
    log_left_out(sentences.left_out_by)
    keys = keys_in(table) if len(table) else np.empty(0, np.uint64)
    first = distinct_rows(keys)
    # 0 is the key of sentences without a word.
    distinct = first[keys[first] != 0]
    if len(distinct) < 2:
        found = f"{counted(len(distinct), 'distinct sentence')}; {sentences.left_out}"
        raise InputError(f"there is nothing to learn from: {found}; give more text", option="text")
    count = min(most, len(distinct) // 10) // multiple * multiple
    chosen = distinct[np.random.default_rng(seed).choice(len(distinct), count, replace=False)]
    is_held_out, is_other = np.zeros((2, len(table)), bool)
    is_held_out[chosen] = is_other[distinct] = True
    return table.filter(is_other & ~is_held_out), table.filter(is_held_out)


def keys_in(table: pa.Table) -> np.ndarray:
    """Keys of the sentences of a table [sentence], uint64."""
    return np.concatenate([keys_of(part)[0] for part in table[SENTENCE].chunks if len(part)])


def log_left_out(reasons: Mapping[str, int]) -> None:
    """Log how many rows or sentences were left out, by reason."""
    for reason, count in reasons.items():
        logger.info(f"left out, {reason}: {count:,}")
