"""Evaluate paraphrasers over decodings, and how far they bring noisy sentences into a standard form."""

from __future__ import annotations

import shlex
import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

from paranmt_hf.corpus.reading.pairs import PairSelection
from paranmt_hf.encoders.named_encoder import NamedEncoder
from paranmt_hf.errors import InputError
from paranmt_hf.evaluation.results import Evaluation, Results, Row
from paranmt_hf.hub.repository import Model, plain_name, weights_checksum
from paranmt_hf.paraphrase.config import Decoding, ParaphraseConfig, ParaphraseEvaluationData, read_decodings
from paranmt_hf.paraphrase.figures import (
    NOISY,
    MatchTemplates,
    Output,
    ParaphraseData,
    ParaphraseItems,
    ParaphraseMeasures,
    canonical_figures,
    group,
    is_outputs,
    read_outputs,
)
from paranmt_hf.paraphrase.noise import KINDS, WORD_RATE, add_noise
from paranmt_hf.util.files import checksum, listed
from paranmt_hf.util.markers import Advanced, Group, Prefixed, Range
from paranmt_hf.util.optional import versions
from paranmt_hf.util.settings import is_given, option_words
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
EXAMPLES = 10
COPIED, REFERENCE = "copied input", "first reference"
# Examples of canonicalisation that a summary shows.
SHOWN_EXAMPLES = 5
PARAPHRASES_NOTE = (
    "BLEU and METEOR against the references, self-BLEU against the input, BLEU among the outputs of a sentence; "
    "numbers, negation, names, addresses: % of the paraphrases that differ in one from their input."
)
CANONICAL_NOTE = "Edits for each 100 characters or words of the clean sentence."
PACKAGES = ("torch", "transformers", "sacrebleu", "nltk")


def evaluate_paraphrases(
    models: str | Path | Sequence[str | Path],
    *,
    data: str | Path | Sequence[str | Path] = (),
    items: ParaphraseEvaluationData | None = None,
    decodings: Sequence[str] = DECODINGS,
    search: Annotated[ParaphraseConfig | None, Group()] = None,
    selection: Annotated[PairSelection | None, Group(), Prefixed, Advanced] = None,
    scorer: Annotated[str | Path | None, Advanced] = None,
    template_parser: Annotated[str | None, Advanced] = None,
) -> Evaluation:
    """Evaluate paraphrasers over decodings, and files of paraphrases.

    Args:
        models: Folders or Hub ids of encoder-decoders, and files that `paraphrase_file` wrote.
        data: A TSV file with a sentence and a reference on each line, or pairs, as for training. Files of paraphrases
            can do without; then nothing is compared with references.
        items: Which sentences.
        decodings: How models search: `greedy`, `beams=8`, `beams=8,groups=4,n=3`, `sample,temperature=0.7`; or one
            YAML file, names with fields of `ParaphraseConfig` below each.
        search: Settings of all decodings.
        selection: Which pairs.
        scorer: Encoder of the paraphrase score: folder or Hub id, or a text file of word vectors (default: the small
            encoder of this package).
        template_parser: `link-grammar` or `stanza`: parses the paraphrases of files with a column `template`, to
            measure how many have theirs.
    """
    from paranmt_hf.paraphrase.loading import locate_paraphraser

    models, data = listed(models), listed(data)
    items, selection = items or ParaphraseEvaluationData(), selection or PairSelection()
    encoder, asked = NamedEncoder.of(scorer), search or ParaphraseConfig()
    # Copies are measured too.
    base = replace(asked, keep_copies=True)
    if not models:
        raise InputError("name a paraphraser, or a file that `paranmt paraphrase text` wrote", option="models")
    located = {str(name): None if is_outputs(name) else locate_paraphraser(name) for name in models}
    own = [model for model in located.values() if model is not None]
    if own and not data:
        raise InputError("data is missing: a TSV file with sentences and references, or pairs", option="data")
    ways = read_decodings(decodings, base)
    outputs = {name: read_outputs(Path(name).expanduser()) for name, model in located.items() if model is None}
    if template_parser is not None and not any(
        any(each.templates) for found in outputs.values() for each in found.values()
    ):
        raise InputError("template_parser needs files with a column template, and no file has one")
    given = ParaphraseData(data, items, selection, asked.seed, own)
    found = given.items() if data else None
    measures = ParaphraseMeasures(encoder.load(), _matching(template_parser))
    command = _command("evaluate", models, given, asked, decodings if own else ())
    results = []
    for name, model in located.items():
        if model is None:
            measured, rows, examples = _of_file(Path(name), outputs[name], found, measures)
        else:
            assert found is not None
            measured, rows, examples = found, *_of_model(model, found, ways, measures, encoder)
        results.append(
            Results(
                kind="paraphrases",
                model=plain_name(name) if model else Path(name).name,
                weights=weights_checksum(model.folder) if model else f"sha256:{checksum(Path(name).expanduser())}",
                data={measured.name: measured.checksum},
                settings={
                    **_settings(given, base),
                    "references": sum(map(len, measured.references)),
                    "variants": {**measures.variants, "scorer": encoder.identity},
                    "command": command,
                },
                tables={"Decoding": [*rows, *_baselines(measured, measures)]},
                notes=[PARAPHRASES_NOTE],
                examples=examples,
                versions={"paranmt-hf": __version__, **versions(PACKAGES)},
            )
        )
    return Evaluation(results, (together,), each=False)


def together(results: Sequence[Results]) -> str:
    """Format one table of several models; rows that no model generated are shown once for each set of sentences."""
    if len(results) == 1:
        return results[0].text()
    rows = {}
    for own in results:
        for row in own.rows:
            shared = row.name in (COPIED, REFERENCE, NOISY)
            named = row if shared or row.name == own.model else replace(row, name=f"{own.model}: {row.name}")
            rows[named.name, tuple(own.data.values()) if shared else own.model] = named
    (title,) = results[0].tables
    return replace(results[0], tables={title: list(rows.values())}).text()


def canonical_examples(results: Sequence[Results]) -> str:
    """Format some of the noisy sentences, with the first model's outputs."""
    return "\n\n".join(
        f"  noisy   {each['noisy']}\n  output  {each['output']}\n  clean   {each['clean']}"
        for each in results[0].examples[:SHOWN_EXAMPLES]
    )


def _matching(parser: str | None) -> MatchTemplates | None:
    """Return a function that selects the paraphrases with the requested template, by the trees of a parser."""
    if parser is None:
        return None
    from paranmt_hf.corpus.parsing.parsers import open_parser, parse_sentences
    from paranmt_hf.corpus.parsing.trees import linearised, read_template, template_of

    trees = open_parser(parser)

    def match(texts: list[str], templates: list[str]) -> list[bool]:
        found = parse_sentences(trees, texts, lambda tree: template_of(linearised(tree)))
        return [own == read_template(wanted) for own, wanted in zip(found, templates, strict=True)]

    return match


def _baselines(items: ParaphraseItems, measures: ParaphraseMeasures) -> list[Row]:
    """Scores of copies of the input, and of the references."""
    copied = [Output([source], []) for source in items.sources]
    count = len(items.sources)
    rows = [Row(name=COPIED, items=count, values=measures(items, copied))]
    if items.has_references:
        references = [Output(own, []) for own in items.references]
        values = measures(items, references, against_references=False)
        rows.append(Row(name=REFERENCE, items=count, values=values))
    return rows


def _of_model(
    model: Model,
    items: ParaphraseItems,
    decodings: Sequence[Decoding],
    measures: ParaphraseMeasures,
    scorer: NamedEncoder,
) -> tuple[list[Row], list[dict[str, Any]]]:
    """Evaluate each decoding."""
    from paranmt_hf.paraphrase.paraphraser import Paraphraser

    # The time is that of the search alone, so nothing is scored unless a decoding chooses by scores.
    scored = any(decoding.config.scored_for for decoding in decodings)
    paraphraser = Paraphraser(model, decodings[0].config, scorer=scorer.load() if scored else None)
    paraphraser.paraphrase(items.sources[:1], decodings[0].config)
    rows, examples = [], _examples(items)
    for decoding in decodings:
        began = time.perf_counter()
        found = paraphraser.paraphrase(items.sources, decoding.config)
        seconds = time.perf_counter() - began
        outputs = [Output([each.text for each in own.paraphrases], []) for own in found]
        count = len(items.sources)
        values = measures(items, outputs) | {"sentences_per_second": count / seconds}
        details = {"settings": decoding.settings, "seconds": seconds}
        rows.append(Row(name=decoding.name, items=count, values=values, details=details))
        for example, output in zip(examples, outputs, strict=False):
            example["outputs"][decoding.name] = output.texts
    return rows, examples


def _examples(items: ParaphraseItems) -> list[dict[str, Any]]:
    shown = zip(items.sources[:EXAMPLES], items.references[:EXAMPLES], strict=True)
    return [{"source": source, "references": own, "outputs": {}} for source, own in shown]


def _of_file(
    path: Path, found: dict[str, Output], items: ParaphraseItems | None, measures: ParaphraseMeasures
) -> tuple[ParaphraseItems, list[Row], list[dict[str, Any]]]:
    """Evaluate a file of paraphrases on those sentences of the data that it has; without data on its own sentences."""
    if items is None:
        known = ParaphraseItems(path.name, list(found), [[] for _ in found])
    else:
        rows = [row for row, source in enumerate(items.sources) if source in found]
        known = ParaphraseItems(
            items.name, [items.sources[row] for row in rows], [items.references[row] for row in rows]
        )
    if not known.sources:
        what = f"none of the sentences of {items.name}" if items else "no sentence"
        raise InputError(f"{path} holds {what}; expected the result of `paranmt paraphrase text` for such sentences")
    outputs = [found[source] for source in known.sources]
    examples = _examples(known)
    for example, output in zip(examples, outputs, strict=False):
        example["outputs"][path.name] = output.texts
    return known, [Row(name=path.name, items=len(outputs), values=measures(known, outputs))], examples


def evaluate_canonical(
    models: str | Path | Sequence[str | Path],
    *,
    data: str | Path | Sequence[str | Path],
    items: ParaphraseEvaluationData | None = None,
    noise: Annotated[float, Range(above=0, at_most=1)] = WORD_RATE,
    search: Annotated[ParaphraseConfig | None, Group()] = None,
    selection: Annotated[PairSelection | None, Group(), Prefixed, Advanced] = None,
) -> Evaluation:
    """Evaluate the normalisation of noisy sentences (ParaNMT-50M, section 6, table 11).

    Args:
        models: Folders or Hub ids of encoder-decoders.
        data: A TSV file with a noisy and a clean sentence on each line; or pairs, to whose references noise is added.
        items: Which sentences.
        noise: Probability that a word of a reference changes.
        search: How models search.
        selection: Which pairs.
    """
    from paranmt_hf.paraphrase.loading import locate_paraphraser
    from paranmt_hf.paraphrase.paraphraser import Paraphraser

    models, data = listed(models), listed(data)
    items, selection = items or ParaphraseEvaluationData(), selection or PairSelection()
    asked = search or ParaphraseConfig()
    # A clean sentence must stay as it is.
    config = replace(asked, n=1, keep_copies=True)
    if not models:
        raise InputError("name a paraphraser", option="models")
    located = {str(name): locate_paraphraser(name) for name in models}
    given = ParaphraseData(data, items, selection, asked.seed, list(located.values()))
    noisy, clean, about = _noisy(given, noise)
    command = _command("canonical", models, given, asked)
    if about:
        command += f" --noise {noise:g}"
    notes = [CANONICAL_NOTE]
    if about and about["unchanged"]:
        notes.append(f"{about['unchanged']:,} more, which noise did not change, are left out.")
    results = []
    for name, model in located.items():
        paraphraser = Paraphraser(model, config, scorer=None)
        made, of_clean = (
            [own.paraphrases[0].text if own.paraphrases else None for own in paraphraser.paraphrase(texts)]
            for texts in (noisy, clean)
        )
        rows, examples = canonical_figures(noisy, clean, made, of_clean)
        results.append(
            Results(
                kind="canonical",
                model=plain_name(name),
                weights=weights_checksum(model.folder),
                data={given.name: group(given.name, zip(noisy, clean, strict=True)).checksum},
                settings={**_settings(given, config), "noise": about, "command": command},
                tables={"Sentences": rows},
                notes=notes,
                examples=examples,
                versions={"paranmt-hf": __version__, **versions(PACKAGES)},
            )
        )
    return Evaluation(results, (together, canonical_examples), each=False)


def _noisy(given: ParaphraseData, rate: float) -> tuple[list[str], list[str], dict[str, Any] | None]:
    """Noisy and clean sentences, and scores of the noise if it was added here."""
    if given.is_tsv:
        rows = [[" ".join(side.split()) for side in row] for row in given.rows()]
        return [noisy for noisy, _ in rows], [clean for _, clean in rows], None
    clean = given.references()
    made = [(*add_noise(sentence, rate, given.seed), sentence) for sentence in clean]
    # Unchanged sentences measure nothing.
    changed = [row for row in made if row[1]]
    if not changed:
        raise InputError(f"noise {rate} changed none of {len(clean)} sentences; give a higher one, or more sentences")
    kinds = {kind: sum(own.count(kind) for _, own, _ in changed) for kind in KINDS}
    about = {"rate": rate, "unchanged": len(made) - len(changed), "changes": kinds}
    return [noisy for noisy, _, _ in changed], [sentence for _, _, sentence in changed], about


def _settings(given: ParaphraseData, config: ParaphraseConfig) -> dict[str, Any]:
    return {"sentences": asdict(given.config), "pairs": asdict(given.selection), "search": asdict(config)}


def _command(
    kind: str,
    models: Sequence[str | Path],
    given: ParaphraseData,
    search: ParaphraseConfig,
    decodings: Sequence[str] = (),
) -> str:
    """Format the command, with paths shortened to names."""
    names = [Path(name).name if is_outputs(name) else plain_name(str(name)) for name in models]
    words = ["paranmt", "paraphrase", kind, *names, *(["--data", *given.name.split(", ")] if given.data else [])]
    words += option_words(given.config)
    for name, settings in (("search", search), ("selection", given.selection)):
        own = [entry for entry in settings.__dataclass_fields__ if is_given(settings, entry)]
        words += [f"--{name}", ",".join(f"{entry}={getattr(settings, entry)}" for entry in own)] if own else []
    if decodings and tuple(decodings) != DECODINGS:
        words += ["--decodings", *map(str, decodings)]
    return shlex.join(words)
