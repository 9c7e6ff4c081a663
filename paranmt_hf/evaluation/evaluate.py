"""Evaluate encoders and baselines on semantic textual similarity and transfer tasks, and write the results down.

And the measure of overfitting of arXiv:1511.08198, section 5, and the contrast set.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from paranmt_hf.errors import InputError
from paranmt_hf.evaluation.baselines import baseline
from paranmt_hf.evaluation.correlation import RESAMPLES
from paranmt_hf.evaluation.data_configs import OverfittingConfig
from paranmt_hf.evaluation.record import ResultsRecord
from paranmt_hf.evaluation.results import StsResult
from paranmt_hf.evaluation.speed import PASSES, Speed, encoding_speed
from paranmt_hf.evaluation.sts import evaluate_sts
from paranmt_hf.evaluation.sts_data import StsSet, read_several
from paranmt_hf.evaluation.transfer.data import TransferTask, read_tasks
from paranmt_hf.evaluation.transfer.protocol import TransferConfig
from paranmt_hf.evaluation.transfer.record import TransferRecord
from paranmt_hf.evaluation.transfer.tasks import evaluate_transfer
from paranmt_hf.evaluation.word_averages import read_averages
from paranmt_hf.evaluation.word_weights import AverageConfig
from paranmt_hf.hub.repository import Model, locate, weights_checksum
from paranmt_hf.util.files import check_result_path, write_result

if TYPE_CHECKING:
    from paranmt_hf.encoders.sentence_encoder import SentenceEncoder
    from paranmt_hf.evaluation.contrast import ContrastRecord
    from paranmt_hf.evaluation.generation.record import CanonicalRecord, ParaphrasesRecord
    from paranmt_hf.evaluation.mteb.run import MtebEvaluation
    from paranmt_hf.training.pair_margins import MarginsRecord


@dataclass(frozen=True)
class Evaluation:
    """The evaluation of a model.

    Attributes:
        result: The result, single similarities included; `compare` makes one table of several.
        record: Its figures, which weights they are of and how fast these are; `write_results` and `publish_model`
            take it.
    """

    result: StsResult
    record: ResultsRecord


def evaluate(
    models: str | Path | Sequence[str | Path],
    data: str | Path | Sequence[str | Path | StsSet],
    *,
    baselines: Sequence[Literal["bleu", "meteor"]] = (),
    vectors: Sequence[str | Path] = (),
    averages: AverageConfig | None = None,
    bootstrap: int = RESAMPLES,
    measure: bool = True,
) -> list[Evaluation]:
    """Evaluate models on sets of sentence pairs with gold similarities.

    Args:
        models: Folders or Hub ids of encoders; `embedded` is the one that the package carries.
        data: Where the data are, see `read_sts`, one place or several; or the sets themselves.
        baselines: Baselines that are evaluated beside the models.
        vectors: Files of word vectors, whose averages are evaluated beside the models.
        averages: How the words of these averages are weighted.
        bootstrap: Resamples of the pairs for the 95 % interval of each Pearson's r; 0 for no interval.
        measure: Whether the records say which weights these are and how fast they encode, which the card of a
            published model shows.

    Returns:
        The evaluations of the models, then those of the baselines, then those of the averages, in their order.

    Raises:
        InputError: There is nothing to evaluate, or a model or the data cannot be read.
    """
    names = [models] if isinstance(models, str | Path) else list(models)
    if not names and not baselines and not vectors:
        raise InputError("name a model to evaluate, a file of --vectors, or --baselines bleu meteor")
    sets = sets_of(data)
    # Before the first evaluation, whose result would be lost: is each of them a model, and is its package there?
    located = [locate(name) for name in names]
    measures = {kind: baseline(kind) for kind in baselines}
    sentences = list(dict.fromkeys(text for each in sets for text in (*each.left, *each.right))) if vectors else []
    made = read_averages(vectors, sentences, averages or AverageConfig())
    evaluations = []
    for name, model in zip(names, located, strict=True):
        # Baselines alone need no torch.
        from paranmt_hf.encoders.loading import load

        evaluations.append(evaluate_encoder(load(model), sets, name=str(name), bootstrap=bootstrap, measure=measure))
    for kind, similarity in measures.items():
        result = evaluate_sts(similarity, sets, name=kind, bootstrap=bootstrap)
        evaluations.append(Evaluation(result, result.record()))
    for title, average in made:
        result = evaluate_sts(average, sets, name=title, bootstrap=bootstrap)
        evaluations.append(Evaluation(result, result.record(average.checksum)))
    return evaluations


def sets_of(data: str | Path | Sequence[str | Path | StsSet]) -> list[StsSet]:
    """Read the sets of places, and leave sets as they are; see `evaluate`."""
    given = [data] if isinstance(data, str | Path) else list(data)
    places = [each for each in given if not isinstance(each, StsSet)]
    return [*(each for each in given if isinstance(each, StsSet)), *(read_several(places) if places else [])]


def evaluate_encoder(
    encoder: SentenceEncoder, sets: Sequence[StsSet], *, name: str, bootstrap: int = RESAMPLES, measure: bool = True
) -> Evaluation:
    """Evaluate an encoder as `paranmt_hf.load` gives it; arguments as for `evaluate`.

    Args:
        encoder: The encoder.
        sets: The sets.
        name: Name of the model in the result.
        bootstrap: Resamples.
        measure: Whether to measure speed and weights too.

    Raises:
        InputError: The encoder was not loaded, so its weights have no checksum; or as of `evaluate_sts`.
    """
    result = evaluate_sts(encoder, sets, name=name, bootstrap=bootstrap)
    if not measure:
        return Evaluation(result, result.record())
    if encoder.source is None:
        raise InputError("weights and speed are measured of an encoder that was loaded; give measure=False for others")
    return Evaluation(result, result.record(weights_checksum(encoder.source.folder), _speed(encoder, sets)))


def _speed(encoder: SentenceEncoder, sets: Sequence[StsSet]) -> Speed | None:
    """Speed on the CPU, over the sentences of the sets; None where these are too few."""
    from paranmt_hf.encoders.loading import load

    assert encoder.source is not None
    sentences = [sentence for sts_set in sets for sentence in [*sts_set.left, *sts_set.right]]
    if len(set(sentences)) <= PASSES:
        return None
    # Speed is that of a core.
    on_cpu = encoder if encoder.device.type == "cpu" else load(encoder.source.folder, device="cpu")
    return encoding_speed(on_cpu, sentences)


def transfer(
    models: str | Path | Sequence[str | Path],
    data: str | Path,
    *,
    vectors: Sequence[str | Path] = (),
    averages: AverageConfig | None = None,
    tasks: Sequence[str] | None = None,
    config: TransferConfig | None = None,
) -> list[TransferRecord]:
    """Evaluate models on transfer tasks, in SentEval's protocol.

    Args:
        models: Folders or Hub ids of encoders; `embedded` is the one that the package carries.
        data: A folder with the tasks' files in SentEval's layout, see `read_tasks`.
        vectors: Files of word vectors, whose averages are evaluated beside the models.
        averages: How the words of these averages are weighted.
        tasks: Names of the tasks; all that are there if left out.
        config: Folds and seed.

    Returns:
        The results of the models, then those of the word vectors, in their order.

    Raises:
        InputError: There is nothing to evaluate, or a model, a file of word vectors or the data cannot be read.
    """
    names = [models] if isinstance(models, str | Path) else list(models)
    if not names and not vectors:
        raise InputError("name a model to evaluate, or a file of --vectors")
    found, left_out = read_tasks(data, tasks)
    # Before the first evaluation, whose result would be lost: is each of them one?
    located = [locate(name) for name in names]
    sentences = _sentences(found) if vectors else []
    made = read_averages(vectors, sentences, averages or AverageConfig())
    records = []
    for name, model in zip(names, located, strict=True):
        # Word vectors alone need no sentence-transformers.
        from paranmt_hf.encoders.loading import load

        weights = weights_checksum(model.folder)
        records.append(
            evaluate_transfer(load(model), found, name=str(name), config=config, left_out=left_out, weights=weights)
        )
    for title, average in made:
        records.append(
            evaluate_transfer(average, found, name=title, config=config, left_out=left_out, weights=average.checksum)
        )
    return records


def evaluate_overfitting(
    models: str | Path | Sequence[str | Path],
    data: str | Path | Sequence[str | Path],
    *,
    development: str | Path | None = None,
    config: OverfittingConfig | None = None,
) -> list[MarginsRecord]:
    """Measure how far training pairs stand out from their negatives; arXiv:1511.08198, section 5.

    Args:
        models: Folders or Hub ids of encoders; `embedded` is the one that the package carries.
        data: What they were trained on, as of `train`.
        development: Pairs that they were not trained on, see `read_scored_pairs`; their scores do not matter.
        config: How many training pairs are measured, and the pools of their negatives.

    Returns:
        The results of the models, in their order.

    Raises:
        InputError: There is nothing to measure, or a model or the data cannot be read.
    """
    # They bring torch, which baselines can do without.
    from paranmt_hf.encoders.loading import load
    from paranmt_hf.training.pair_margins import MarginPairs, MarginsRecord
    from paranmt_hf.training.train import Quiet

    found = _located(models)
    sources = [data] if isinstance(data, str | Path) else list(data)
    pairs = MarginPairs(sources, development, config)
    records = []
    for name, model in found:
        margins = pairs.measure(Quiet(load(model)))
        records.append(MarginsRecord(name, weights_checksum(model.folder), pairs.pairs, margins))
    return records


def evaluate_mteb(
    models: str | Path | Sequence[str | Path],
    tasks: str | Sequence[str],
    out: str | Path,
    *,
    data: str | Path | None = None,
    languages: Sequence[str] = ("eng",),
    name: str | None = None,
) -> list[MtebEvaluation]:
    """Evaluate models on tasks of the library `mteb`.

    Args:
        models: Folders or Hub ids of encoders; `embedded` is the one that the package carries.
        tasks: Names of tasks or benchmarks, see `find_tasks`.
        out: Folder for the results, which grows: a task whose result is there is not run again. Of each
            model it has all figures (`NAME.json`) and the `ModelMeta` (`NAME.py`); `out/results` is laid out as the
            repository of results to which mteb takes pull requests.
        data: A folder that holds a folder for each task, see `data_folder`; the Hub if left out.
        languages: Which parts of tasks in several languages, by codes of three letters.
        name: Name under which the model is submitted, `ORGANISATION/NAME`; for one model alone.

    Returns:
        The evaluations of the models, in their order.

    Raises:
        InputError: There is no such model, task or data; the data are not such as a task expects; a result of other
            settings is there; or mteb is not installed.
    """
    # It brings torch, which baselines can do without.
    from paranmt_hf.evaluation.mteb.run import run_mteb

    names = [models] if isinstance(models, str | Path) else list(models)
    return run_mteb(
        names, [tasks] if isinstance(tasks, str) else list(tasks), Path(out), data=data, languages=languages, name=name
    )


def evaluate_contrast(
    models: str | Path | Sequence[str | Path], data: str | Path | None = None
) -> list[ContrastRecord]:
    """Measure how often a paraphrase is closer than a sentence that looks alike and means something else.

    Args:
        models: Folders or Hub ids of encoders; `embedded` is the one that the package carries.
        data: Triples of your own, see `read_triples`; those that the package carries if left out.

    Returns:
        The results of the models, in their order.

    Raises:
        InputError: There is nothing to measure, or a model or the data cannot be read.
    """
    from paranmt_hf.encoders.loading import load
    from paranmt_hf.evaluation.contrast import ContrastRecord, contrast, read_triples

    triples = read_triples(data)
    found = _located(models)
    records = []
    for name, model in found:
        results = contrast(load(model), triples)
        weights = weights_checksum(model.folder)
        records.append(ContrastRecord(name, weights, triples.name, triples.checksum, results))
    return records


def _located(models: str | Path | Sequence[str | Path]) -> list[tuple[str, Model]]:
    """Find models, each with its name as given, before the first of them is measured."""
    names = [models] if isinstance(models, str | Path) else list(models)
    if not names:
        raise InputError("name a model to measure")
    return [(str(name), locate(name)) for name in names]


def _sentences(tasks: Sequence[TransferTask]) -> list[str]:
    """The distinct sentences of tasks."""
    parts = [part for task in tasks for part in task.parts.values()]
    return list(dict.fromkeys(sentence for part in parts for side in part.sides for sentence in side))


def write_results(
    path: str | Path,
    records: Sequence[ResultsRecord]
    | Sequence[TransferRecord]
    | Sequence[MarginsRecord]
    | Sequence[ContrastRecord]
    | Sequence[ParaphrasesRecord]
    | Sequence[CanonicalRecord],
) -> None:
    """Write results as JSON; until they are whole, what was there stays. `publish_model` takes those on STS.

    Raises:
        InputError: They cannot be written.
    """
    check_result_path(Path(path), "--json")
    text = f"{json.dumps([record.to_json() for record in records], indent=2)}\n"
    write_result(Path(path), text)
