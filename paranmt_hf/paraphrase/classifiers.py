"""Classifiers of sentences: a model of `paranmt supervise`, one of transformers, or a function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from paranmt_hf.errors import InputError
from paranmt_hf.hub.repository import Model, locate
from paranmt_hf.training.record import TRAINING_FILE
from paranmt_hf.training.supervised.config import SupervisedRecord

# Gives the label of each sentence.
Function = Callable[[list[str]], Sequence[Any]]
# Sentences that are classified at once.
BATCH = 64


class Classifier:
    """Gives each sentence a label, as the labelled file has it.

    Args:
        predict: Gives the label of each sentence.
        labels: All labels that there are, in the order of the classes; None where only the function knows.
        identity: What determines the labels, as JSON values.
    """

    def __init__(self, predict: Function, labels: Sequence[str] | None, identity: dict[str, Any]) -> None:
        self._predict, self._labels, self.identity = predict, labels, identity

    def speaks(self, found: Sequence[str | int], where: Path) -> None:
        """Check that it has the labels of a file.

        Raises:
            InputError: It does not know one of them.
        """
        if self._labels is None:
            return
        known: Sequence[str] | range = range(len(self._labels)) if self._numbered(found[0]) else self._labels
        if unknown := sorted(set(found) - {type(found[0])(label) for label in known}, key=str):
            raise InputError(
                f"{where} has the label {unknown[0]!r}, and the classifier gives {', '.join(self._labels)} (or, where "
                f"labels are whole numbers, 0 to {len(self._labels) - 1}); rename the labels of the file"
            )

    def _numbered(self, label: str | int) -> bool:
        """Whether a label of the file is the number of a class; TSV and CSV have it as text."""
        names = self._labels or ()
        return not isinstance(label, str) or (label.isdecimal() and not any(name.isdecimal() for name in names))

    def labels_of(self, sentences: list[str], like: str | int) -> list[str | int]:
        """Classify sentences; labels are names, or numbers of classes where `like` is the number of one.

        Raises:
            InputError: A function gave another number of labels than there are sentences.
        """
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
                f"the classifier gave a label that is no whole number; those of the file are, such as {like!r}"
            ) from None


def find_classifier(classifier: str | Path | Function) -> Classifier:
    """Find a classifier.

    Args:
        classifier: Folder or Hub id of a model of `paranmt supervise` or of a text classifier of transformers, read
            without running code of theirs; or a function from sentences to labels, which is known by its name alone.

    Raises:
        InputError: There is no such model, it is of another kind or damaged.
    """
    if callable(classifier):
        name = getattr(classifier, "__qualname__", type(classifier).__qualname__)
        return Classifier(classifier, None, {"function": f"{getattr(classifier, '__module__', '')}.{name}"})
    files = locate(classifier)
    identity = {"name": files.name, "revision": files.revision}
    predict, labels = (_supervised if (files.folder / SupervisedRecord.FILE).is_file() else _of_transformers)(files)
    return Classifier(predict, labels, identity)


def _supervised(files: Model) -> tuple[Function, list[str]]:
    from paranmt_hf.training.supervised.model import load_supervised

    model = load_supervised(files.folder)
    config = model.head.config
    if config.sides != 1 or config.values is not None:
        raise InputError(f"{files.folder} is a model of {config.task}; expected one that classifies single sentences")
    return lambda sentences: model.predict(sentences).tolist(), list(config.classes)


def _other_kind(folder: Path) -> str | None:
    """Name what a folder holds where that is no classifier but something else of ours; None where it may be one."""
    if (folder / "modules.json").is_file():
        return "an encoder"
    return "a paraphraser" if (folder / TRAINING_FILE).is_file() else None


def _of_transformers(files: Model) -> tuple[Function, list[str]]:
    import torch
    from transformers import AutoTokenizer

    from paranmt_hf.hub.pretrained import UNREADABLE, quiet, read_sequence_classifier
    from paranmt_hf.hub.repository import readable

    if (own := _other_kind(files.folder)) is not None:
        raise InputError(
            f"{files.folder} is {own} and no classifier; expected a model of `paranmt supervise`, or a text "
            "classifier of transformers"
        )
    model = read_sequence_classifier(files, "text classifier of transformers or model of `paranmt supervise`")
    try:
        with quiet(), readable(files) as folder:
            tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=False, local_files_only=True)
    except UNREADABLE as error:
        raise InputError(f"{files.folder} has no readable tokenizer: {' '.join(str(error).split())[:200]}") from None
    labels = [str(model.config.id2label[number]) for number in range(model.config.num_labels)]

    def predict(sentences: list[str]) -> list[str]:
        found: list[str] = []
        # Sentences of similar length together.
        order = sorted(range(len(sentences)), key=lambda at: len(sentences[at]))
        for start in range(0, len(order), BATCH):
            texts = [sentences[at] for at in order[start : start + BATCH]]
            inputs = tokenizer(texts, padding=True, truncation=True, return_tensors="pt")
            with torch.inference_mode():
                found += [labels[at] for at in model(**inputs).logits.argmax(dim=-1).tolist()]
        back = np.argsort(order)
        return [found[at] for at in back.tolist()]

    return predict, labels
