"""Evaluate encoders, baselines and averages of word vectors on semantic textual similarity and transfer tasks."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Literal

from paranmt_hf.errors import InputError
from paranmt_hf.evaluation.baselines import BaselineName, baseline
from paranmt_hf.evaluation.correlation import RESAMPLES
from paranmt_hf.evaluation.finished_tasks import FinishedTasks, folder_of_tasks
from paranmt_hf.evaluation.paired import paired_table, with_differences
from paranmt_hf.evaluation.paper_tables import TABLES, PaperTable
from paranmt_hf.evaluation.results import Evaluation, Results, difference_table
from paranmt_hf.evaluation.similarities import PairSimilarity
from paranmt_hf.evaluation.speed import Speed, encoding_speed
from paranmt_hf.evaluation.sts import evaluate_sts
from paranmt_hf.evaluation.sts_data import StsData, sets_of
from paranmt_hf.evaluation.transfer import LIBRARIES, evaluate_transfer
from paranmt_hf.evaluation.transfer_data import TaskName, read_tasks
from paranmt_hf.evaluation.transfer_heads import TransferConfig
from paranmt_hf.evaluation.word_averages import read_averages
from paranmt_hf.evaluation.word_weights import WordWeighting
from paranmt_hf.hub.repository import Model, locate, weights_checksum
from paranmt_hf.text.protocols import Encoder
from paranmt_hf.util.markers import PythonOnly, RunOnly
from paranmt_hf.util.optional import versions
from paranmt_hf.version import __version__

AnyModel = str | Path | Encoder | PairSimilarity
Models = AnyModel | Sequence[AnyModel] | Mapping[str, AnyModel]


@dataclass(frozen=True)
class NamedModel:
    """A model to evaluate, with its name; an encoder that is given by its files is not loaded yet."""

    name: str
    model: Any  # An encoder, a measure of pairs, or the files of an encoder (`Model`)
    weights: str | None = None  # Checksum of the weights; None for a model that does not come from files

    def load(self) -> Any:  # noqa: ANN401 - an encoder, or a measure of pairs
        """Return the model, which is loaded if it is given by its files."""
        if not isinstance(self.model, Model):
            return self.model
        # Imported here, because this imports torch, which baselines and averages do not need.
        from paranmt_hf.encoders.loading import load

        return load(self.model)

    @property
    def identity(self) -> dict[str, Any] | None:
        """What the model's vectors depend on, as JSON values; None for a model that does not come from files."""
        if self.weights is None:
            return None
        if isinstance(self.model, Model):
            return {"revision": self.model.revision}
        # An encoder in memory may have been changed since it was loaded, so its own revision counts.
        revision = getattr(self.model, "revision", None) or self.model.source.revision
        return {"revision": revision, "settings": getattr(self.model, "settings", None)}


def find_models(
    models: Models,
    *,
    baselines: Sequence[BaselineName] = (),
    vectors: Sequence[str | Path] = (),
    averages: WordWeighting | None = None,
    sentences: Iterable[str] = (),
) -> list[NamedModel]:
    """Find all models to evaluate.

    This is done before the first evaluation, so that a wrong name costs no finished result.

    Args:
        models: Encoders by folder or Hub id, encoders and measures of pairs as objects, or a mapping of names to
            these.
        baselines: Names of baselines.
        vectors: Files of word vectors; their averages are models.
        averages: How the words of these averages are weighted.
        sentences: Sentences that will be encoded; only the vectors of their words are read from `vectors`.

    Returns:
        The models, then the baselines, then the averages.

    Raises:
        InputError: There is nothing to evaluate, or a model is not found.
    """
    given = _listed(models)
    if not given and not baselines and not vectors:
        raise InputError("name a model to evaluate, a file of `vectors`, or `baselines`", option="models")
    found = []
    for name, model in given:
        if isinstance(model, str | Path):
            files = locate(model)
            found.append(NamedModel(name or str(model), files, weights_checksum(files.folder)))
        elif (source := getattr(model, "source", None)) is not None:
            found.append(NamedModel(name or source.name, model, weights_checksum(source.folder)))
        else:
            found.append(NamedModel(name or type(model).__name__, model))
    for kind in baselines:
        found.append(NamedModel(kind, baseline(kind)))
    if vectors:
        for title, average in read_averages(vectors, list(dict.fromkeys(sentences)), averages or WordWeighting()):
            found.append(NamedModel(title, average, average.checksum))
    return found


def _listed(models: Models) -> list[tuple[str | None, AnyModel]]:
    """Return the models, each with the name that a mapping gives it, or None without a mapping."""
    if isinstance(models, Mapping):
        return list(models.items())
    if isinstance(models, str | Path | PairSimilarity) or hasattr(models, "encode"):
        return [(None, models)]
    return [(None, model) for model in models]


def evaluate(
    models: Models = (),
    *,
    data: StsData,
    baselines: Sequence[BaselineName] = (),
    vectors: Sequence[str | Path] = (),
    averages: WordWeighting | None = None,
    tables: Sequence[PaperTable] = (),
    bootstrap: Annotated[int, PythonOnly] = RESAMPLES,
    speed: bool = False,
    stored: Annotated[Sequence[Literal["float16", "int8", "int4"]], PythonOnly] = (),
) -> Evaluation:
    """Evaluate models on sets of sentence pairs with gold similarities.

    Several models are compared with the first one: the summary has the differences with their 95 % intervals, and says
    which models are not separable from the first.

    Args:
        models: Folders or Hub ids of encoders; `small`, `base`, `de`, ... are those of the package. In Python also
            encoders, objects with `similarities(left, right)`, and a mapping of names to models.
        data: Folders with STS sets (SentEval's layout), with SICK or PIT 2015, TSV files, Hub ids, or `sample` (40
            pairs of the package).
        baselines: Baselines of the papers, BLEU and METEOR, that are evaluated too.
        vectors: Files of word vectors whose averages are evaluated too.
        averages: How the words of these averages are weighted.
        tables: Tables of the papers that are printed too: paragram (22 sets, arXiv:1511.08198), sent2vec (STS 2014
            and SICK, arXiv:1703.02507).
        bootstrap: Number of resamples of the pairs for the 95 % interval of each Pearson's r and of each difference to
            the first model; 0 for no interval.
        speed: Measure how fast encoders are, which cards of published models show.
        stored: Precisions, float16, int8 or int4, in which averaging encoders are evaluated too, with the rows of
            their tables stored in them; cards show what that costs.

    Returns:
        The results of the models, then those of the baselines, then those of the averages, in their order.
    """
    sets = sets_of(data)
    sentences = list(chain.from_iterable(each.sentences for each in sets))
    results = []
    for model in find_models(models, baselines=baselines, vectors=vectors, averages=averages, sentences=sentences):
        encoder = model.load()
        result = evaluate_sts(encoder, sets, name=model.name, bootstrap=bootstrap)
        measured = encoder_speed(encoder, sentences) if speed else None
        results.append(replace(result, weights=model.weights, speed=measured))
        for precision in stored if hasattr(encoder, "stored_as") else ():
            from paranmt_hf.encoders.loading import load

            with tempfile.TemporaryDirectory() as folder:
                encoder.stored_as(precision).save_pretrained(folder, create_model_card=False)
                size = sum(path.stat().st_size for path in Path(folder).rglob("*.safetensors"))
                copy = load(folder, device="cpu")
            result = evaluate_sts(copy, sets, name=f"{model.name}, {precision}", bootstrap=bootstrap)
            settings = {**result.settings, "bytes": size, "stored": precision}
            results.append(replace(result, weights=model.weights, settings=settings))
    shown = [TABLES[name] for name in tables]
    if len(results) > 1 and results[0].tables["Year"]:
        shown.insert(0, difference_table)
    if len(results) > 1 and bootstrap:
        results = with_differences(results)
        shown.append(paired_table)
    return Evaluation(results, tuple(shown))


def encoder_speed(encoder: Any, sentences: Sequence[str]) -> Speed | None:  # noqa: ANN401
    """Measure the speed of an encoder on the CPU; None for a model that is no encoder, or for too few sentences."""
    source, device = getattr(encoder, "source", None), getattr(encoder, "device", None)
    if source is None:
        return None
    if device is not None and device.type != "cpu":
        from paranmt_hf.encoders.loading import load

        encoder = load(source.folder, device="cpu")
    return encoding_speed(encoder, sentences)


def transfer(
    models: Models = (),
    *,
    data: str | Path,
    tasks: Sequence[TaskName] = (),
    vectors: Sequence[str | Path] = (),
    averages: WordWeighting | None = None,
    config: TransferConfig | None = None,
    out: Annotated[str | Path | None, RunOnly] = None,
) -> Evaluation:
    """Evaluate models on transfer tasks in SentEval's protocol: classifiers are trained on their vectors.

    Args:
        models: Folders or Hub ids of encoders; `small`, `base`, `de`, ... are those of the package.
        data: Folder with the tasks' files in SentEval's layout.
        tasks: Names of the tasks to evaluate; all that are in the folder if left out.
        vectors: Files of word vectors whose averages are evaluated too.
        averages: How the words of these averages are weighted.
        config: Folds and seed.
        out: Folder that keeps the result of each task when it is finished; after an interruption the same command
            continues there.

    Returns:
        The results of the models, then those of the averages, in their order.
    """
    sources = [data, *(model for _, model in _listed(models) if isinstance(model, str | Path))]
    folder = folder_of_tasks(out, sources) if out is not None else None
    found, left_out = read_tasks(data, tasks)
    config = config or TransferConfig()
    sentences = chain.from_iterable(task.sentences for task in found)
    results: list[Results] = []
    for model in find_models(models, vectors=vectors, averages=averages, sentences=sentences):
        known = None
        if (own := model.identity) is not None:
            made = {"paranmt-hf": __version__, **versions(LIBRARIES)}
            known = {"model": model.name, **own, "protocol": config.describe(), "versions": made}
        kept = FinishedTasks(folder, known)
        encoder = model.load()
        result = evaluate_transfer(encoder, found, name=model.name, config=config, left_out=left_out, finished=kept)
        results.append(replace(result, weights=model.weights))
    return Evaluation(results)
