"""Evaluate paraphrasers: their paraphrases by several decodings, or how well they normalise noisy sentences."""

from __future__ import annotations

import shlex
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paranmt_hf.corpus.reading.pairs import SIDES, Pairs, PairSelection
from paranmt_hf.corpus.statistics.draws import text_numbers
from paranmt_hf.encoders.named_encoder import NamedEncoder
from paranmt_hf.errors import InputError
from paranmt_hf.evaluation.results import Evaluation, Results, Row
from paranmt_hf.hub.repository import Model, plain_name, weights_checksum
from paranmt_hf.paraphrase.config import Decoding, ParaphraseConfig, read_decodings
from paranmt_hf.paraphrase.measures import (
    COPIED,
    NOISY,
    REFERENCE,
    EvaluationItems,
    Measures,
    NormalisationMeasures,
    ParaphraseMeasures,
    noisy_examples,
)
from paranmt_hf.paraphrase.noise import KINDS, add_noise
from paranmt_hf.paraphrase.paraphrase_file import is_paraphrase_file, read_paraphrases
from paranmt_hf.paraphrase.record import ParaphraserRecord
from paranmt_hf.util.files import checksum, listed, source_name
from paranmt_hf.util.markers import Advanced, Group, Prefixed, Range, Share, Without
from paranmt_hf.util.optional import versions
from paranmt_hf.util.settings import Settings, is_given, option_words
from paranmt_hf.version import __version__

DECODINGS = (
    "greedy",
    "beams=4",
    "beams=8",
    "beams=8,groups=4",
    "sample,temperature=0.7",
    "sample,top_p=0.9",
    "sample",
)
# Settings that `decoding` does not take. Those of the first line are given for each decoding in `compare`; those of
# the second line are the same for all decodings.
COMPARED = (
    *("groups", "diversity", "sample", "temperature", "top_p"),
    *("order", "max_mutual_overlap", "has_template", "trees", "keep_copies"),
)


@dataclass(frozen=True)
class MeasuredSentences(Settings):
    """Which sentences paraphrasers are evaluated on.

    Attributes:
        direction: Which side is paraphrased and compared with the other: translations (`to-reference`) or references
            (`to-translation`). A sentence with several references counts once.
        held_out: Take only pairs whose reference was held out of the training of each model.
        items: Maximum number of sentences, drawn at random by the seed of the decoding; 0 for all.
        noise: Evaluate the normalisation of noisy sentences: noise is added to the references, and each word changes
            with this probability, such as 0.15. With 0 no noise is added, because the sentences of the data are noisy
            already, and their references are the standard form.
    """

    direction: Literal["to-reference", "to-translation"] = "to-reference"
    held_out: bool = False
    items: Annotated[int, Range(at_least=0)] = 500
    noise: Share | None = None


def evaluate_paraphrases(
    models: str | Path | Sequence[str | Path],
    *,
    data: str | Path | Sequence[str | Path] = (),
    columns: Mapping[str, str] | None = None,
    sentences: MeasuredSentences | None = None,
    compare: Sequence[str] = (),
    decoding: Annotated[ParaphraseConfig | None, Group(), Without(*COMPARED)] = None,
    selection: Annotated[PairSelection | None, Group(), Prefixed, Advanced] = None,
    scorer: Annotated[str | Path | None, Advanced] = None,
) -> Evaluation:
    """Evaluate paraphrasers by several decodings, and files of paraphrases; or the normalisation of noisy sentences.

    With `noise`, noisy sentences before, and outputs after, are compared with the clean sentences by edit distance,
    BLEU and the share of equal sentences, and so are outputs of clean input (ParaNMT-50M, section 6, table 11).

    Args:
        models: Folders or Hub ids of encoder-decoders, and files that `paranmt paraphrase text` wrote.
        data: Pairs, as for training; for files of paraphrases they may be left out, and nothing is compared with
            references then.
        columns: Columns of `data` with other names: reference=sentence1,translation=sentence2.
        sentences: Which sentences are paraphrased.
        compare: Decodings to compare: `greedy`, `beams=8`, `beams=8,groups=4,n=3`, `sample,temperature=0.7` (default:
            seven of them; with `noise`, beams=4).
        decoding: Settings that are the same for all decodings.
        selection: Which pairs are used.
        scorer: Encoder of the paraphrase score: folder or Hub id, or a text file of word vectors (default: the small
            encoder of this package, which is for English).
    """
    from paranmt_hf.paraphrase.models import locate_paraphraser

    models, data = listed(models), listed(data)
    sentences, selection = sentences or MeasuredSentences(), selection or PairSelection()
    common, encoder = decoding or ParaphraseConfig(), NamedEncoder.of(scorer)
    if not models:
        raise InputError("name a paraphraser, or a file that `paranmt paraphrase text` wrote", option="models")
    located = {str(name): None if is_paraphrase_file(name) else locate_paraphraser(name) for name in models}
    paraphrasers = [model for model in located.values() if model is not None]
    if sentences.noise is not None and len(paraphrasers) < len(located):
        raise InputError("noisy sentences are given to models; leave out the files of paraphrases", option="noise")
    if paraphrasers and not data:
        raise InputError("data is missing: pairs of sentences and references", option="data")
    decodings = read_decodings(
        compare or (DECODINGS if sentences.noise is None else ("beams=4",)),
        # Copies of the input are measured too.
        replace(common, keep_copies=True),
    )
    items = None
    if data:
        pairs = Pairs(data, selection, columns=columns, seed=common.seed)
        items = read_items(", ".join(map(source_name, data)), pairs, sentences, common.seed, paraphrasers)
    measures = ParaphraseMeasures(encoder) if sentences.noise is None else NormalisationMeasures()
    settings = {
        "sentences": asdict(sentences),
        "pairs": asdict(selection),
        "decoding": asdict(common),
        "variants": measures.settings,
        "command": _command(models, data, columns, sentences, compare, common, selection, scorer),
    }
    results = []
    for name, model in located.items():
        if model is None:
            own = file_outputs(Path(name).expanduser(), items)
        else:
            assert items is not None
            own = model_outputs(model, plain_name(name), items, decodings, encoder)
        results.append(measured(own, measures, settings))
    return Evaluation(results, (together,) if sentences.noise is None else (together, examples_of_noise), each=False)


def read_items(
    name: str, pairs: Pairs, config: MeasuredSentences, seed: int, models: Sequence[Model]
) -> EvaluationItems:
    """Read the sentences that models are evaluated on; `name` is the name of the data, `seed` that of the draw."""
    reference, translation = SIDES
    source, wanted = (translation, reference) if config.direction == "to-reference" else (reference, translation)
    # With noise, references are drawn, because noise is added to each of them once.
    key = reference if config.noise else source
    share = _smallest_held_out(models) if config.held_out else None
    table = _sampled(pairs.batches(), key, config.items, seed, share)
    if not table.num_rows:
        more = "held out of training " if config.held_out else ""
        raise InputError(f"{name}: no pair {more}is left to measure; look at the options that choose", option="data")
    if config.noise:
        return _noisy_items(name, list(dict.fromkeys(table[reference].to_pylist())), config.noise, seed)
    grouped: dict[str, dict[str, None]] = {}
    for sentence, other in zip(table[source].to_pylist(), table[wanted].to_pylist(), strict=True):
        grouped.setdefault(" ".join(sentence.split()), {})[" ".join(other.split())] = None
    references = [list(own) for own in grouped.values()]
    if config.noise is None:
        return EvaluationItems(name, list(grouped), references)
    clean = [own[0] for own in references]
    return EvaluationItems(name, [*grouped, *clean], [[each] for each in clean] * 2)


def _smallest_held_out(models: Sequence[Model]) -> float:
    """Return the share of the references that was held out of the training of each of the models."""
    if not models:
        raise InputError("`held_out` is about the training of models; name one", option="held_out")
    shares = []
    for model in models:
        shares.append(ParaphraserRecord.read(model.folder).settings.training.held_out)
        if not shares[-1]:
            raise InputError(
                f"{model.name} was trained with nothing held out; leave out `held_out`", option="held_out"
            )
    # References that a smaller share holds out are also held out by a larger one.
    return min(shares)


def _sampled(tables: Iterator[pa.Table], key: str, count: int, seed: int, held_out: float | None) -> pa.Table:
    """Return all rows of `count` values of the column `key`, drawn at random; of all values if `count` is 0.

    With `held_out`, only rows whose reference is held out at this share. Only the drawn rows are in memory.
    """
    from paranmt_hf.paraphrase.training_data import held_out_keys

    kept = pa.table({side: pa.array([], pa.string()) for side in SIDES})
    for table in tables:
        table = table.select(SIDES).filter(pc.greater(pc.utf8_length(pc.utf8_trim_whitespace(table[key])), 0))
        if held_out is not None:
            table = table.filter(pa.array(held_out_keys(table["reference"], held_out)))
        kept = pa.concat_tables([kept, table])
        if count and kept.num_rows:
            numbers = text_numbers(kept[key], salt=f"{seed}")
            distinct = np.unique(numbers)
            if len(distinct) > count:
                kept = kept.filter(pa.array(numbers < distinct[count]))
    return kept


def _noisy_items(name: str, references: Sequence[str], rate: float, seed: int) -> EvaluationItems:
    """Add noise to references; a reference that it does not change is left out, because it measures nothing."""
    noisy, clean, changes = [], [], Counter[str]()
    for reference in references:
        sentence = " ".join(reference.split())
        text, kinds = add_noise(sentence, rate, seed)
        if kinds:
            noisy.append(text)
            clean.append(sentence)
            changes.update(kinds)
    if not noisy:
        raise InputError(
            f"noise {rate:g} changed none of {len(references)} sentences; give a higher one, or more sentences",
            option="noise",
        )
    about = {"unchanged": len(references) - len(noisy), "changes": {kind: changes[kind] for kind in KINDS}}
    return EvaluationItems(name, [*noisy, *clean], [[each] for each in clean] * 2, about)


@dataclass
class Outputs:
    """The outputs of a model, or in a file, for the sentences of an evaluation.

    Attributes:
        name: Name of the model or file.
        weights: Checksum of the weights, or of the file.
        items: The sentences.
        texts: Outputs of each decoding [item][output], the best first, by its name; a file is one decoding.
        details: Settings and seconds of each decoding of a model, by its name; empty for a file.
    """

    name: str
    weights: str
    items: EvaluationItems
    texts: dict[str, list[list[str]]] = field(default_factory=dict)
    details: dict[str, dict[str, Any]] = field(default_factory=dict)


def file_outputs(path: Path, items: EvaluationItems | None) -> Outputs:
    """Return the outputs in a file for the sentences that it shares with `items`; if None, for all its sentences."""
    found = read_paraphrases(path)
    if items is None:
        items = EvaluationItems(path.name, list(found), [[] for _ in found])
    shared = [row for row, source in enumerate(items.sources) if source in found]
    if not shared:
        raise InputError(f"{path} holds none of the sentences of {items.name}", option="models", path=path)
    items = EvaluationItems(
        items.name, [items.sources[row] for row in shared], [items.references[row] for row in shared]
    )
    outputs = [found[source] for source in items.sources]
    return Outputs(path.name, f"sha256:{checksum(path)}", items, {path.name: outputs})


def model_outputs(
    model: Model, name: str, items: EvaluationItems, decodings: Sequence[Decoding], scorer: NamedEncoder
) -> Outputs:
    """Paraphrase sentences with each decoding of a model, and return the outputs."""
    from paranmt_hf.paraphrase.paraphraser import Paraphraser

    # Only the decoding is timed, so nothing is scored unless a decoding selects paraphrases by their scores.
    scored = any(decoding.config.scored_for for decoding in decodings)
    paraphraser = Paraphraser(model, decodings[0].config, scorer=scorer.load() if scored else None)
    paraphraser.paraphrase(items.sources[:1], decodings[0].config)
    outputs = Outputs(name, weights_checksum(model.folder), items)
    for decoding in decodings:
        began = time.perf_counter()
        found = paraphraser.paraphrase(items.sources, decoding.config)
        seconds = time.perf_counter() - began
        outputs.texts[decoding.name] = [[each.text for each in own.paraphrases] for own in found]
        outputs.details[decoding.name] = {"settings": decoding.settings, "seconds": seconds}
    return outputs


def measured(outputs: Outputs, measures: Measures, settings: Mapping[str, Any]) -> Results:
    """Measure the outputs of a model or a file; `settings` are those of the evaluation, for the results."""
    items = outputs.items
    rows: list[Row] = []
    for decoding, texts in outputs.texts.items():
        first, *others = measures.rows(decoding, items, texts)
        if details := outputs.details.get(decoding):
            values = first.values | {"sentences_per_second": len(items.sources) / details["seconds"]}
            first = replace(first, values=values, details=details)
        rows += [first, *others]
    notes = [measures.note]
    if items.noise.get("unchanged"):
        notes.append(f"{items.noise['unchanged']:,} more, which noise did not change, are left out.")
    examples = []
    for row, source in enumerate(items.sources[:10]):
        own = {decoding: texts[row] for decoding, texts in outputs.texts.items()}
        examples.append({"source": source, "references": items.references[row], "outputs": own})
    return Results(
        kind=measures.kind,
        model=outputs.name,
        weights=outputs.weights,
        data={items.name: items.checksum},
        settings={**settings, "references": sum(map(len, items.references)), "noise": items.noise},
        tables={"Decoding": [*rows, *measures.baselines(items)]},
        notes=notes,
        examples=examples,
        versions={"paranmt-hf": __version__, **versions(("torch", "transformers", "sacrebleu", "nltk"))},
    )


def together(results: Sequence[Results]) -> str:
    """Return one table of several models; the rows for comparison, such as copies, come once for each data set."""
    if len(results) == 1:
        return results[0].text()
    rows: dict[tuple[Any, ...], Row] = {}
    for own in results:
        data = tuple(own.data.values())
        for row in own.rows:
            if row.name in (COPIED, REFERENCE, NOISY):
                rows[row.name, data] = row
            else:
                name = row.name if row.name == own.model else f"{own.model}: {row.name}"
                rows[name, own.model] = replace(row, name=name)
    (title,) = results[0].tables
    return replace(results[0], tables={title: list(rows.values())}).text()


def examples_of_noise(results: Sequence[Results]) -> str:
    """Return five noisy sentences, with their outputs by the first decoding of the first model, as text."""
    blocks = []
    for noisy, output, clean in noisy_examples(results[0], 5):
        blocks.append(f"  noisy   {noisy}\n  output  {output}\n  clean   {clean}")
    return "\n\n".join(blocks)


def _command(
    models: Sequence[str | Path],
    data: Sequence[str | Path],
    columns: Mapping[str, str] | None,
    sentences: MeasuredSentences,
    compare: Sequence[str],
    decoding: ParaphraseConfig,
    selection: PairSelection,
    scorer: str | Path | None,
) -> str | None:
    """Return the command of an evaluation, with paths shortened; None if a setting is not on the command line."""
    words = ["paranmt", "paraphrase", "evaluate", *map(source_name, models)]
    if data:
        words += ["--data", *map(source_name, data)]
    if columns:
        words += ["--columns", ",".join(f"{name}={theirs}" for name, theirs in columns.items())]
    words += option_words(sentences)
    settings: Settings
    for group, settings in (("decoding", decoding), ("selection", selection)):
        given = [name for name in settings.__dataclass_fields__ if is_given(settings, name)]
        if not {*COMPARED, "dtype", "batch_tokens"}.isdisjoint(given):
            return None
        if given:
            words += [f"--{group}", ",".join(f"{name}={getattr(settings, name)}" for name in given)]
    if compare:
        words += ["--compare", *compare]
    if scorer is not None:
        words += ["--scorer", source_name(scorer)]
    return shlex.join(words)
