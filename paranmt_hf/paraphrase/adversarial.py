"""Adversarial examples: paraphrases that change what a classifier says of a sentence that it gets right."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from paranmt_hf.corpus.jobs.engine import EngineConfig
from paranmt_hf.corpus.jobs.job import run_job
from paranmt_hf.corpus.jobs.shards import Manifest
from paranmt_hf.encoders.scorer import ScorerConfig
from paranmt_hf.paraphrase.classifiers import Classifier, Function, find_classifier
from paranmt_hf.paraphrase.config import MOST_BEAMS, ParaphraseConfig
from paranmt_hf.paraphrase.labelled_file import SUFFIXES, LabelledFile, TableWriter, with_text
from paranmt_hf.paraphrase.paraphrase_job import cut_shards, make_once, result_file
from paranmt_hf.paraphrase.stage import ParaphraseStage
from paranmt_hf.util.files import replacing
from paranmt_hf.util.records import as_json
from paranmt_hf.util.settings import check, setting

COMMAND = "adversarial"


@dataclass(frozen=True)
class AdversarialConfig:
    """Which paraphrases are tried."""

    text: str = setting("text", "column of the sentences")
    label: str = setting("label", "column of the labels")
    tries: int = setting(10, "paraphrases of each sentence that are tried", at_least=1, at_most=MOST_BEAMS)
    min_score: float = setting(
        0.7, "smallest paraphrase score: below it a paraphrase may mean something else", at_least=-1, at_most=1
    )

    def __post_init__(self) -> None:
        check(self)


@dataclass(frozen=True)
class Adversarial:
    """What paraphrases did to a classifier.

    Attributes:
        path: The file of the examples.
        sentences: Sentences that were classified.
        right: Those that the classifier gets right.
        tried: Those of them with at least one paraphrase above the score.
        paraphrases: Paraphrases that were tried.
        broken: Sentences of which a paraphrase gets another label.
        changed: Paraphrases that get another label.
        labels: `right`, `tried` and `broken` of each label.
        notes: Sentences without a paraphrase, by reason.
        fresh: Whether this call made it.
    """

    path: Path
    sentences: int
    right: int
    tried: int
    paraphrases: int
    broken: int
    changed: int
    labels: dict[str, dict[str, int]]
    notes: dict[str, int] = field(default_factory=dict)
    fresh: bool = True

    @property
    def before(self) -> float:
        """Accuracy on the sentences, in [0, 1]."""
        return self.right / self.sentences

    @property
    def after(self) -> float:
        """Accuracy where each sentence may be replaced by a paraphrase that was tried, in [0, 1]."""
        return (self.right - self.broken) / self.sentences


def find_adversarial(
    file: str | Path,
    out: str | Path,
    *,
    model: str | Path,
    classifier: str | Path | Function,
    config: AdversarialConfig | None = None,
    search: ParaphraseConfig | None = None,
    scorer: ScorerConfig | None = None,
    engine: EngineConfig | None = None,
) -> Adversarial:
    """Find paraphrases that change a classifier's label, of sentences that it gets right.

    Args:
        file: TSV or CSV with a header, JSON lines or Parquet, with a column of text and one of labels. Labels are
            those of the classifier, or the numbers of its classes from 0.
        out: The file of the examples, in any of these forms, one for each sentence that is broken, the most probable:
            `index` (in `file`, from 0), `source`, `label`, `paraphrase`, `predicted`, `score` (the paraphrase score)
            and `rank`. Work in progress lies in `<out>.work`.
        model: Folder or Hub id of an encoder-decoder.
        classifier: See `find_classifier`.
        config: Columns, number of tries, smallest score.
        search: How paraphrases are searched otherwise; its `n` and `min_score` are those of `config`.
        scorer: The encoder behind the paraphrase score; the small one of this package if left out.
        engine: Where the work runs.

    Raises:
        InputError: Bad input, or `out` holds something else.
    """
    config = config or AdversarialConfig()
    search = replace(search or ParaphraseConfig(), n=config.tries, min_score=config.min_score)
    out = result_file(out, SUFFIXES)
    source = LabelledFile(file, config.text, config.label, out=out)
    judge = find_classifier(classifier)
    engine = (engine or EngineConfig()).resolved()
    stage = ParaphraseStage(str(model), search, scorer or ScorerConfig(), engine.threads)
    settings = {"input": source.identity, "adversarial": asdict(config), "classifier": judge.identity}
    identity = as_json({**settings, **stage.identity})

    def make(work: Path) -> dict[str, Any]:
        counts = _Counts()
        cut = cut_shards(_right(source, judge, counts), work / "input", identity)
        if not counts.sentences:
            # They were classified by an earlier run.
            for table in source.batches():
                counts.see(table["label"].to_pylist())
        done = run_job(cut, work / "output", stage, engine)
        with replacing(work / out.name) as aside:
            _write(cut, done, judge, counts, aside, out.suffix.lower())
        return {**asdict(counts), "notes": done.dropped}

    return make_once(Adversarial, out, identity, make, command=COMMAND, doing="searching")


@dataclass
class _Counts:
    """The figures of `Adversarial`."""

    sentences: int = 0
    right: int = 0
    tried: int = 0
    paraphrases: int = 0
    broken: int = 0
    changed: int = 0
    labels: dict[str, dict[str, int]] = field(default_factory=dict)

    def see(self, labels: list[Any]) -> None:
        """Count sentences by their labels; a label of which none is right has its line too."""
        self.sentences += len(labels)
        for label in labels:
            self.of(label)

    def of(self, label: str | int) -> dict[str, int]:
        return self.labels.setdefault(str(label), {"right": 0, "tried": 0, "broken": 0})


def _right(source: LabelledFile, judge: Classifier, counts: _Counts) -> Iterator[pa.Table]:
    """Read the sentences that the classifier gets right."""
    for table in source.batches():
        labels = table["label"].to_pylist()
        judge.speaks(labels, source.path)
        table = with_text(table)
        found = judge.labels_of(table["source"].to_pylist(), labels[0])
        right = [label == predicted for label, predicted in zip(labels, found, strict=True)]
        counts.see(labels)
        yield table.filter(pa.array(right))


def _write(cut: Manifest, done: Manifest, judge: Classifier, counts: _Counts, path: Path, suffix: str) -> None:
    """Classify the paraphrases, and write of each sentence the first one that changes its label."""
    kind = pq.read_schema(cut.paths()[0]).field("label").type if cut.shards else pa.string()
    columns: dict[str, Any] = {"index": pa.int64(), "source": pa.string(), "label": kind, "paraphrase": pa.string()}
    schema = pa.schema({**columns, "predicted": kind, "score": pa.float32(), "rank": pa.int32()})
    with TableWriter(path, schema, suffix) as writer:
        for before, after in zip(cut.paths(), done.paths(), strict=True):
            rows, found = pq.read_table(before), pq.read_table(after)
            label_of = dict(zip(rows["index"].to_pylist(), rows["label"].to_pylist(), strict=True))
            for label in label_of.values():
                counts.of(label)["right"] += 1
            counts.right += len(label_of)
            found = found.filter(pc.greater(found["rank"], 0))
            indices = found["index"].to_pylist()
            labels = [label_of[index] for index in indices]
            predicted = judge.labels_of(found["paraphrase"].to_pylist(), next(iter(label_of.values())))
            changed = [label != other for label, other in zip(labels, predicted, strict=True)]
            counts.paraphrases += len(indices)
            counts.changed += sum(changed)
            first: dict[int, int] = {}
            for at, index in enumerate(indices):
                if changed[at]:
                    first.setdefault(index, at)
            for name, chosen in (("tried", set(indices)), ("broken", first)):
                setattr(counts, name, getattr(counts, name) + len(chosen))
                for index in chosen:
                    counts.of(label_of[index])[name] += 1
            table = found.append_column("label", pa.array(labels, kind))
            table = table.append_column("predicted", pa.array(predicted, kind))
            writer.write(table.take(pa.array(list(first.values()), pa.int64())))
    counts.labels = dict(sorted(counts.labels.items()))
