"""Measures paraphrasers over ways to search, files of paraphrases, and paraphrasers on noisy sentences."""

from __future__ import annotations

import shlex
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from paranmt_hf.corpus.meaning.columns import MismatchReader
from paranmt_hf.corpus.pairs import PairSelection
from paranmt_hf.encoders.scorer import ScorerConfig
from paranmt_hf.errors import InputError
from paranmt_hf.evaluation.data_configs import ItemsConfig
from paranmt_hf.evaluation.generation.canonical import canonical
from paranmt_hf.evaluation.generation.figures import MatchTemplates, Measures, Output
from paranmt_hf.evaluation.generation.items import Items, group
from paranmt_hf.evaluation.generation.record import COPIED, REFERENCE, CanonicalRecord, ParaphrasesRecord, Row
from paranmt_hf.hub.repository import Model, locate, plain_name, weights_checksum
from paranmt_hf.paraphrase.config import ParaphraseConfig
from paranmt_hf.paraphrase.decodings import DECODINGS, Decoding, read_decodings
from paranmt_hf.paraphrase.noise import KINDS, WORD_RATE, add_noise
from paranmt_hf.paraphrase.paraphrase_items import drawn_rows, is_tsv, name_of, read_items, read_references
from paranmt_hf.paraphrase.paraphrase_outputs import is_outputs, read_outputs
from paranmt_hf.util.files import checksum
from paranmt_hf.util.optional import versions
from paranmt_hf.version import __version__

EXAMPLES = 10
# What a sentence may take to be parsed.
PACKAGES = ("torch", "transformers", "sacrebleu", "nltk")


def evaluate_paraphrases(
    models: str | Path | Sequence[str | Path],
    data: str | Path | Sequence[str | Path] = (),
    *,
    items: ItemsConfig | None = None,
    decodings: Sequence[str] | None = None,
    config: ParaphraseConfig | None = None,
    selection: PairSelection | None = None,
    scorer: ScorerConfig | None = None,
    parser: str | None = None,
) -> list[ParaphrasesRecord]:
    """Measure paraphrasers over ways to search, and files of paraphrases.

    Args:
        models: Folders or Hub ids of encoder-decoders, and files that `paraphrase_file` wrote.
        data: A TSV file with a sentence and a reference on each line, or pairs, as of `train_paraphraser`. For files
            alone it may be left out; then nothing is compared with references.
        items: Which sentences.
        decodings: Ways to search, or one YAML file of them, see `read_decodings`; else `DECODINGS`.
        config: What the ways to search say nothing of.
        selection: Which pairs.
        scorer: The encoder behind the paraphrase score.
        parser: `link-grammar` or `stanza`, for files with a column `template`: how many paraphrases have theirs?

    Returns:
        The results of the models, in their order.

    Raises:
        InputError: There is nothing to measure, or a model, a file or the data cannot be read.
    """
    models, data = _several(models), _several(data)
    items, selection, scorer = items or ItemsConfig(), selection or PairSelection(), scorer or ScorerConfig()
    asked = config or ParaphraseConfig()
    # A model that copies is to be seen.
    config = replace(asked, seed=items.seed, keep_copies=True)
    if not models:
        raise InputError("name a paraphraser to measure, or a file that `paranmt paraphrase` wrote")
    located = {str(name): None if is_outputs(name) else locate(name) for name in models}
    own = [model for model in located.values() if model is not None]
    if own and not data:
        raise InputError("--data is missing: a TSV file with sentences and references, or pairs")
    if not own:
        _refuse_search([*(["decodings"] if decodings else []), *_asked(asked)])
    chosen = read_decodings(decodings or DECODINGS, config)
    outputs = {name: read_outputs(Path(name).expanduser()) for name, model in located.items() if model is None}
    if parser is not None and not any(any(each.templates) for own in outputs.values() for each in own.values()):
        raise InputError("--template-parser is about files with a column template, and there is none; leave it out")
    found = read_items(data, items, selection, own) if data else None
    measures = Measures(scorer.load(), _count_errors, _matching(parser))
    ways = [("decodings", decodings or DECODINGS)] if own else []
    command = _command("paraphrases", models, data, items, selection, ways, config)
    records = []
    for name, model in located.items():
        if model is None:
            measured, rows, examples = _of_file(Path(name), outputs[name], found, measures)
        else:
            assert found is not None
            measured, rows, examples = found, *_of_model(model, found, chosen, measures, scorer)
        records.append(
            ParaphrasesRecord(
                model=plain_name(name) if model else Path(name).name,
                weights=weights_checksum(model.folder) if model else f"sha256:{checksum(Path(name).expanduser())}",
                data=measured.name,
                data_checksum=measured.checksum,
                items=len(measured.sources),
                references=sum(map(len, measured.references)),
                seed=items.seed,
                settings=_chosen(items, selection, config),
                variants={**measures.variants, "scorer": scorer.identity},
                rows=[*_baselines(measured, measures), *rows],
                examples=examples,
                versions={"paranmt-hf": __version__, **versions(PACKAGES)},
                command=command,
            )
        )
    return records


def _refuse_search(names: Sequence[str]) -> None:
    """Refuse what is said of the search of models where there are none."""
    if names:
        options = ", ".join(f"--{name.replace('_', '-')}" for name in names)
        raise InputError(f"there are only files of paraphrases, and no model that searches; leave out {options}")


def _several(given: str | Path | Sequence[str | Path]) -> list[str | Path]:
    return [given] if isinstance(given, str | Path) else list(given)


def _count_errors(sources: list[str], texts: list[str]) -> Mapping[str, np.ndarray]:
    columns = MismatchReader().columns(pa.array(sources, pa.string()), pa.array(texts, pa.string()))
    return {name: column.to_numpy() for name, column in columns.items()}


def _matching(parser: str | None) -> MatchTemplates | None:
    """What says which paraphrases have the template beside them, by the trees of a parser."""
    if parser is None:
        return None
    from paranmt_hf.corpus.parsing.parsers import open_parser, parse
    from paranmt_hf.corpus.parsing.templates import linearised, read_template, template_of

    trees = open_parser(parser)

    def match(texts: list[str], templates: list[str]) -> list[bool]:
        found = parse(trees, texts, lambda tree: template_of(linearised(tree)))
        return [own == read_template(wanted) for own, wanted in zip(found, templates, strict=True)]

    return match


def _baselines(items: Items, measures: Measures) -> list[Row]:
    """What a copy of the input would get, and what the references are like."""
    copied = [Output([source], []) for source in items.sources]
    rows = [Row(COPIED, None, None, measures(items, copied))]
    if items.has_references:
        references = [Output(own, []) for own in items.references]
        rows.append(Row(REFERENCE, None, None, measures(items, references, against_references=False)))
    return rows


def _of_model(
    model: Model, items: Items, decodings: Sequence[Decoding], measures: Measures, scorer: ScorerConfig
) -> tuple[list[Row], list[dict[str, Any]]]:
    """Search in each way, and measure."""
    from paranmt_hf.paraphrase.paraphraser import Paraphraser

    # The time is that of the search alone, so nothing is scored that no way to search chooses by.
    asked = any(decoding.config.scored_for for decoding in decodings)
    paraphraser = Paraphraser(model, decodings[0].config, scorer=scorer if asked else None)
    paraphraser.paraphrase(items.sources[:1], decodings[0].config)
    rows, examples = [], _examples(items)
    for decoding in decodings:
        began = time.perf_counter()
        found = paraphraser.paraphrase(items.sources, decoding.config)
        seconds = time.perf_counter() - began
        outputs = [Output([each.text for each in own.paraphrases], []) for own in found]
        rows.append(Row(decoding.name, decoding.settings, seconds, measures(items, outputs)))
        for example, output in zip(examples, outputs, strict=False):
            example["outputs"][decoding.name] = output.texts
    return rows, examples


def _examples(items: Items) -> list[dict[str, Any]]:
    shown = zip(items.sources[:EXAMPLES], items.references[:EXAMPLES], strict=True)
    return [{"source": source, "references": own, "outputs": {}} for source, own in shown]


def _of_file(
    path: Path, found: dict[str, Output], items: Items | None, measures: Measures
) -> tuple[Items, list[Row], list[dict[str, Any]]]:
    """Measure a file of paraphrases, on the sentences of the data that it has; without data on its own sentences."""
    if items is None:
        known = Items(path.name, list(found), [[] for _ in found])
    else:
        rows = [row for row, source in enumerate(items.sources) if source in found]
        known = Items(items.name, [items.sources[row] for row in rows], [items.references[row] for row in rows])
    if not known.sources:
        what = f"none of the sentences of {items.name}" if items else "no sentence"
        raise InputError(f"{path} holds {what}; expected what `paranmt paraphrase` writes of such sentences")
    outputs = [found[source] for source in known.sources]
    examples = _examples(known)
    for example, output in zip(examples, outputs, strict=False):
        example["outputs"][path.name] = output.texts
    return known, [Row(path.name, None, None, measures(known, outputs))], examples


def evaluate_canonical(
    models: str | Path | Sequence[str | Path],
    data: str | Path | Sequence[str | Path],
    *,
    items: ItemsConfig | None = None,
    noise: float | None = None,
    config: ParaphraseConfig | None = None,
    selection: PairSelection | None = None,
) -> list[CanonicalRecord]:
    """Measure how far noisy sentences are brought into a standard form (ParaNMT-50M, section 6, table 11).

    Args:
        models: Folders or Hub ids of encoder-decoders.
        data: A TSV file with a noisy and a clean sentence on each line; or pairs, to whose references noise is added.
        items: Which sentences.
        noise: Probability that a word changes, see `add_noise`; else `WORD_RATE`.
        config: How the models search.
        selection: Which pairs.

    Returns:
        The results of the models, in their order.

    Raises:
        InputError: There is nothing to measure, or a model or the data cannot be read.
    """
    models, data = _several(models), _several(data)
    items, selection = items or ItemsConfig(), selection or PairSelection()
    # What was right already is to stay.
    config = replace(config or ParaphraseConfig(), n=1, seed=items.seed, keep_copies=True)
    if noise is not None and is_tsv(data):
        raise InputError(f"{data[0]} holds noisy sentences, to which no noise is added; leave out --noise")
    noise = WORD_RATE if noise is None else noise
    from paranmt_hf.paraphrase.paraphraser import Paraphraser

    if not models:
        raise InputError("name a paraphraser to measure")
    located = {str(name): locate(name) for name in models}
    noisy, clean, about = _noisy(data, items, selection, noise, list(located.values()))
    pairs = group(name_of(data), zip(noisy, clean, strict=True))
    command = _command("canonical", models, data, items, selection, [("noise", noise)] if about else [], config)
    records = []
    for name, model in located.items():
        paraphraser = Paraphraser(model, config, scorer=None)
        made, of_clean = (
            [own.paraphrases[0].text if own.paraphrases else None for own in paraphraser.paraphrase(texts)]
            for texts in (noisy, clean)
        )
        records.append(
            CanonicalRecord(
                model=plain_name(name),
                weights=weights_checksum(model.folder),
                data=name_of(data),
                data_checksum=pairs.checksum,
                sentences=len(clean),
                noise=about,
                seed=items.seed,
                settings=_chosen(items, selection, config),
                figures=canonical(noisy, clean, made, of_clean),
                versions={"paranmt-hf": __version__, **versions(PACKAGES)},
                command=command,
            )
        )
    return records


def _noisy(
    data: Sequence[str | Path], items: ItemsConfig, selection: PairSelection, rate: float, models: Sequence[Model]
) -> tuple[list[str], list[str], dict[str, Any] | None]:
    """Noisy and clean sentences, and what the noise was where it was made."""
    if is_tsv(data):
        rows = drawn_rows(data, items, selection)
        sides = [[" ".join(each.split()) for each in side] for side in rows]
        return sides[0], sides[1], None
    if not 0 < rate <= 1:
        raise InputError(f"--noise must be above 0 and at most 1, was {rate}")
    clean = read_references(data, items, selection, models).sources
    made = [(*add_noise(sentence, rate, items.seed), sentence) for sentence in clean]
    # Sentences that nothing happened to say nothing.
    changed = [row for row in made if row[1]]
    if not changed:
        raise InputError(
            f"--noise {rate} changed none of {len(clean)} sentences; give a higher one, or more sentences"
        )
    kinds = {kind: sum(own.count(kind) for _, own, _ in changed) for kind in KINDS}
    about = {"rate": rate, "unchanged": len(made) - len(changed), "changes": kinds}
    return [noisy for noisy, _, _ in changed], [sentence for _, _, sentence in changed], about


def _chosen(items: ItemsConfig, selection: PairSelection, config: ParaphraseConfig) -> dict[str, Any]:
    return {"sentences": asdict(items), "pairs": _given(selection), "search": _given(config)}


def _given(settings: Any) -> dict[str, Any]:  # noqa: ANN401 - a dataclass
    """Settings that are not the default."""
    return {
        entry.name: getattr(settings, entry.name)
        for entry in fields(settings)
        if getattr(settings, entry.name) != entry.default
    }


def _asked(config: ParaphraseConfig) -> dict[str, Any]:
    """What was asked of a search, by option: pairs have one called like its length."""
    return {"max_pieces" if name == "max_length" else name: value for name, value in _given(config).items()}


def _command(
    kind: str,
    models: Sequence[str | Path],
    data: Sequence[str | Path],
    items: ItemsConfig,
    selection: PairSelection,
    options: Sequence[tuple[str, Any]],
    config: ParaphraseConfig,
) -> str:
    """Write the command, names without their folders."""
    words = [
        "paranmt",
        "evaluate",
        kind,
        *(Path(name).name if is_outputs(name) else plain_name(str(name)) for name in models),
    ]
    words += ["--data", *name_of(data).split(", ")] if data else []
    # Copies are always kept here, and there is no option for it.
    asked = {name: value for name, value in _asked(config).items() if name != "keep_copies"}
    given = {**asked, **_given(items), **_given(selection), **dict(options)}
    for name, value in given.items():
        flag = f"--{name.replace('_', '-')}"
        if value is True:
            words.append(flag)
        else:
            words += [flag, *(map(str, value) if isinstance(value, list | tuple) else [str(value)])]
    return shlex.join(words)
