"""Adversarial examples: paraphrases that change the label of a sentence that a classifier gets right."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from paranmt_hf.corpus.jobs.engine import EngineConfig
from paranmt_hf.corpus.jobs.job import run_job
from paranmt_hf.corpus.jobs.shards import Manifest
from paranmt_hf.encoders.named_encoder import NamedEncoder
from paranmt_hf.errors import InputError
from paranmt_hf.hub.publish import kind_of
from paranmt_hf.hub.repository import Model, locate
from paranmt_hf.paraphrase.config import Beams, ParaphraseConfig
from paranmt_hf.paraphrase.paraphrase_file import (
    PACKAGES,
    ParaphraseStage,
    cut_shards,
    holds_paraphrases,
    without_lines,
)
from paranmt_hf.paraphrase.tables import LABELLED_SUFFIXES, LabelledColumns, LabelledFile, TableWriter, with_text
from paranmt_hf.supervised.config import SupervisedRecord
from paranmt_hf.util.files import result_file
from paranmt_hf.util.markers import Advanced, Cosine, Group
from paranmt_hf.util.records import FileRecord, as_json, made_with
from paranmt_hf.util.run import Result, run
from paranmt_hf.util.wording import counted

Function = Callable[[list[str]], Sequence[Any]]  # Gives the label of each sentence
CLASSIFIER_BATCH = 64  # Sentences that are classified at once


@dataclass(frozen=True)
class AdversarialSearch(ParaphraseConfig):
    """How paraphrases are searched, how many are tried, and which are close enough.

    Attributes:
        n: Maximum number of paraphrases of a sentence.
        min_score: Smallest paraphrase score; below it a paraphrase may mean something else.
    """

    n: Beams = 10
    min_score: Cosine | None = 0.7


@dataclass(frozen=True, kw_only=True)
class AdversarialRecord(FileRecord):
    """The effect of paraphrases on a classifier."""

    KIND: ClassVar[str] = "a file of adversarial examples (`paranmt paraphrase adversarial`)"

    # For each label the number of `sentences` that were classified; of those that the classifier gets `right`; of
    # those of them that were `tried`, with at least one paraphrase above the score; of those that are `broken`, with a
    # paraphrase that gets another label; of the `paraphrases` that were tried, and of those that get another label,
    # `changed`
    labels: dict[str, dict[str, int]]
    notes: dict[str, int] = field(default_factory=dict)  # Sentences without a paraphrase, by reason

    def total(self, name: str) -> int:
        """Sum of a count over all labels."""
        return sum(counts[name] for counts in self.labels.values())


class Adversarial(Result[AdversarialRecord]):
    """A file of adversarial examples."""

    @property
    def before(self) -> float:
        """Accuracy on the sentences, in [0, 1]."""
        return self.record.total("right") / self.record.total("sentences")

    @property
    def after(self) -> float:
        """Accuracy if each sentence may be replaced by a paraphrase that was tried, in [0, 1]."""
        return self.before - self.record.total("broken") / self.record.total("sentences")

    def summary(self) -> str:
        """Counts, also for each label, and accuracy before and after."""
        total, state = self.record.total, "" if self.fresh else " (made before)"
        return "\n".join(
            [
                f"{self.folder}: {counted(total('broken'), 'sentence')} broken{state}",
                f"  {total('right'):,} of {counted(total('sentences'), 'sentence')} classified right",
                f"  {total('tried'):,} of these have paraphrases that are close enough",
                f"  {total('changed'):,} of {total('paraphrases'):,} paraphrases get another label",
                *(
                    f"  {label}: {each['broken']:,} broken of {each['tried']:,} tried and {each['right']:,} right"
                    for label, each in self.record.labels.items()
                ),
                f"  accuracy {self.before:.1%} before, {self.after:.1%} after",
                *without_lines(self.record.notes),
            ]
        )


def find_adversarial(
    file: str | Path,
    out: str | Path,
    *,
    model: str | Path,
    classifier: str | Path | Function,
    columns: Annotated[LabelledColumns | None, Group()] = None,
    search: Annotated[AdversarialSearch | None, Group()] = None,
    scorer: Annotated[str | Path | None, Advanced] = None,
    engine: Annotated[EngineConfig | None, Group(), Advanced] = None,
) -> Adversarial:
    """Find paraphrases that change a classifier's label, of sentences that it gets right.

    Args:
        file: Labelled sentences, of any format with columns (docs/formats.md). Labels are those of the classifier, or
            numbers of its classes from 0.
        out: The file of the examples, .tsv, .csv, .jsonl or .parquet: for each sentence that is broken the most
            probable paraphrase that breaks it, with index (in `file`, from 0), source, label, paraphrase, predicted,
            score (the paraphrase score) and rank. Work in progress is in `OUT.work`.
        model: Folder or Hub id of an encoder-decoder.
        classifier: Folder or Hub id of a model of `paranmt supervise` or of a text classifier of transformers; in
            Python also a function from sentences to labels.
        columns: Columns of the sentences and labels.
        search: How paraphrases are searched, how many are tried, and which are close enough.
        scorer: Encoder of the paraphrase score: folder or Hub id, or a text file of word vectors (default: the small
            encoder of this package).
        engine: The engine for the work.
    """
    search = search or AdversarialSearch()
    out = result_file(out, LABELLED_SUFFIXES, sources=[model])
    judge = find_classifier(classifier)
    engine = (engine or EngineConfig()).resolved()
    stage = ParaphraseStage(str(model), search, NamedEncoder.of(scorer), engine.threads)
    # The models are checked before the file is read, which may take long.
    settings = stage.identity
    source = LabelledFile(file, columns, out=out)
    identity = as_json({**settings, "classifier": judge.identity, "input": source.identity})

    def make(work: Path, path: Path) -> AdversarialRecord:
        counts = _Counts()
        cut = cut_shards(_right(source, judge), work / "input", identity, engine)
        for table in source.batches():
            counts.add("sentences", table["label"].to_pylist())
        done = run_job(cut, work / "output", stage, engine)
        _write(cut, done, judge, counts, path)
        labels = dict(sorted(counts.items()))
        return AdversarialRecord(settings=identity, labels=labels, notes=done.dropped, **made_with(*PACKAGES))

    return run(
        out,
        identity,
        AdversarialRecord,
        make,
        result=Adversarial,
        command="paraphrase adversarial",
        holds=holds_paraphrases,
    )


class _Counts(dict[str, dict[str, int]]):
    """The counts of each label, as in `AdversarialRecord`."""

    def add(self, name: str, labels: Iterable[str | int]) -> None:
        """Count labels."""
        for label in labels:
            names = ("sentences", "right", "tried", "broken", "paraphrases", "changed")
            self.setdefault(str(label), dict.fromkeys(names, 0))[name] += 1


def _right(source: LabelledFile, judge: Classifier) -> Iterator[pa.Table]:
    """Read the sentences that the classifier labels correctly."""
    for table in source.batches():
        labels = table["label"].to_pylist()
        judge.check_labels(labels, source.path)
        table = with_text(table)
        found = judge.labels_of(table["source"].to_pylist(), labels[0])
        yield table.filter(pa.array([label == predicted for label, predicted in zip(labels, found, strict=True)]))


def _write(cut: Manifest, done: Manifest, judge: Classifier, counts: _Counts, path: Path) -> None:
    """Classify the paraphrases, and write the first one of each sentence that changes its label."""
    kind = pq.read_schema(cut.paths()[0]).field("label").type if cut.shards else pa.string()
    columns: dict[str, Any] = {"index": pa.int64(), "source": pa.string(), "label": kind, "paraphrase": pa.string()}
    schema = pa.schema({**columns, "predicted": kind, "score": pa.float32(), "rank": pa.int32()})
    with TableWriter(path, schema) as writer:
        for before, after in zip(cut.paths(), done.paths(), strict=True):
            rows, found = pq.read_table(before), pq.read_table(after)
            label_of = dict(zip(rows["index"].to_pylist(), rows["label"].to_pylist(), strict=True))
            found = found.filter(pc.greater(found["rank"], 0))
            indices = found["index"].to_pylist()
            labels = [label_of[index] for index in indices]
            predicted = judge.labels_of(found["paraphrase"].to_pylist(), next(iter(label_of.values())))
            changed = [at for at, label in enumerate(labels) if label != predicted[at]]
            first: dict[int, int] = {}
            for at in changed:
                first.setdefault(indices[at], at)
            counts.add("right", label_of.values())
            counts.add("tried", (label_of[index] for index in set(indices)))
            counts.add("broken", (label_of[index] for index in first))
            counts.add("paraphrases", labels)
            counts.add("changed", (labels[at] for at in changed))
            table = found.append_column("label", pa.array(labels, kind))
            table = table.append_column("predicted", pa.array(predicted, kind))
            writer.write(table.take(pa.array(list(first.values()), pa.int64())))


class Classifier:
    """Labels sentences, with the labels of the labelled file.

    `labels` are all labels in the order of the classes, or None if only the function knows; `identity` determines
    them.
    """

    def __init__(self, predict: Function, labels: Sequence[str] | None, identity: dict[str, Any]) -> None:
        self._predict, self._labels, self.identity = predict, labels, identity

    def check_labels(self, found: Sequence[str | int], where: Path) -> None:
        """Check that the classifier knows the labels of a file."""
        if self._labels is None:
            return
        known: Sequence[str] | range = range(len(self._labels)) if self._numbered(found[0]) else self._labels
        if unknown := sorted(set(found) - {type(found[0])(label) for label in known}, key=str):
            raise InputError(
                f"{where} has the label {unknown[0]!r}, and the classifier gives {', '.join(self._labels)} (or, where "
                f"labels are whole numbers, 0 to {len(self._labels) - 1}); rename the labels of the file"
            )

    def _numbered(self, label: str | int) -> bool:
        """Whether a label of the file is a class index, which is text in TSV and CSV."""
        names = self._labels or ()
        return not isinstance(label, str) or (label.isdecimal() and not any(name.isdecimal() for name in names))

    def labels_of(self, sentences: list[str], like: str | int) -> list[str | int]:
        """Classify sentences; labels are names, or class indices if `like` is one."""
        found = list(self._predict(sentences)) if sentences else []
        if len(found) != len(sentences):
            raise InputError(f"the classifier gave {len(found):,} labels for {len(sentences):,} sentences")
        if self._labels is not None and self._numbered(like):
            number = {label: type(like)(at) for at, label in enumerate(self._labels)}
            return [number[str(label)] for label in found]
        try:
            return [type(like)(label) for label in found]
        except (TypeError, ValueError):
            raise InputError(
                f"the classifier gave a label that is not a whole number; those of the file are, such as {like!r}"
            ) from None


def find_classifier(classifier: str | Path | Function) -> Classifier:
    """Find a classifier: a folder or Hub id of a model of `paranmt supervise` or of a text classifier of transformers.

    These are read without running code of theirs. A function from sentences to labels is known by its name alone.
    """
    if callable(classifier):
        name = getattr(classifier, "__qualname__", type(classifier).__qualname__)
        return Classifier(classifier, None, {"function": f"{getattr(classifier, '__module__', '')}.{name}"})
    files = locate(classifier)
    identity = {"name": files.name, "revision": files.revision}
    predict, labels = (_supervised if (files.folder / SupervisedRecord.FILE).is_file() else _of_transformers)(files)
    return Classifier(predict, labels, identity)


def _supervised(files: Model) -> tuple[Function, list[str]]:
    from paranmt_hf.supervised.model import SupervisedModel

    model = SupervisedModel.from_pretrained(files.folder)
    config = model.head.config
    if config.sides != 1 or config.values is not None:
        raise InputError(f"{files.folder} is a model of {config.task}; expected one that classifies single sentences")
    return lambda sentences: model.predict(sentences).tolist(), list(config.classes)


def _of_transformers(files: Model) -> tuple[Function, list[str]]:
    import torch
    from transformers import AutoTokenizer

    from paranmt_hf.hub.pretrained import loadable, read_sequence_classifier

    kind = kind_of(files.folder)
    if kind is not None or (files.folder / "modules.json").is_file():
        raise InputError(
            f"{files.folder} is {kind.title if kind else 'an encoder'}, not a classifier; expected a model of "
            "`paranmt supervise`, or a text classifier of transformers"
        )
    model = read_sequence_classifier(files, "text classifier of transformers or model of `paranmt supervise`")
    with loadable(files, "has no readable tokenizer") as folder:
        tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=False, local_files_only=True)
    labels = [str(model.config.id2label[number]) for number in range(model.config.num_labels)]

    def predict(sentences: list[str]) -> list[str]:
        found = [""] * len(sentences)
        # Sentences of similar length together.
        order = sorted(range(len(sentences)), key=lambda at: len(sentences[at]))
        for start in range(0, len(order), CLASSIFIER_BATCH):
            batch = order[start : start + CLASSIFIER_BATCH]
            inputs = tokenizer([sentences[at] for at in batch], padding=True, truncation=True, return_tensors="pt")
            with torch.inference_mode():
                classes = model(**inputs).logits.argmax(dim=-1).tolist()
            for at, number in zip(batch, classes, strict=True):
                found[at] = labels[number]
        return found

    return predict, labels
