"""Write the card of a paraphraser from its record."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from paranmt_hf.corpus.reading.pair_files import languages
from paranmt_hf.evaluation.results import Results
from paranmt_hf.hub.cards import render
from paranmt_hf.hub.licenses import License
from paranmt_hf.hub.publish import About
from paranmt_hf.paraphrase.measures import noisy_examples
from paranmt_hf.paraphrase.record import ParaphraserRecord
from paranmt_hf.paraphrase.templates import CODE, LSTM_TYPE
from paranmt_hf.text.languages import ENGLISH, LANGUAGES
from paranmt_hf.training.card import data_options, hub_datasets
from paranmt_hf.util.settings import option_words
from paranmt_hf.util.tables import code, escape, markdown_table


def card_values(
    name: str,
    record: ParaphraserRecord,
    templates: Mapping[str, int] | None = None,
    about: About | None = None,
    results: Sequence[Results] = (),
) -> dict[str, Any]:
    """Return the values that `paraphraser_card` renders.

    Args:
        name: Name of the paraphraser.
        record: Record of the paraphraser.
        templates: Templates of a controlled network with their counts, the most frequent first.
        about: What the authors say about the paraphraser. With None, the card is that of the folder, without times, so
            that equal runs give equal bytes.
        results: Results of its evaluation.
    """
    said = (about or About()).values
    data, best = record.settings.data, record.course.best
    values: dict[str, Any] = {"license": said["license"]} if "license" in said else {}
    if spoken := languages(data):
        values["languages"] = spoken
    values |= {
        "name": name,
        "datasets": sorted({*said.get("datasets", ()), *hub_datasets(data)}),
        "summary": said.get("summary") or _summary(record),
        "data": said.get("data") or _data(record),
        "command": "\n".join(said.get("commands", ())) or _command(record),
        "made": _made(record, timed=about is not None),
        "measured": [asdict(each) for each in record.course.measured],
        "best": best.step if best is not None else record.course.steps,
        "own": record.model_type in CODE,
        "license_text": said.get("license_text"),
        "notes": about.notes if about else None,
        "figures": shown_figures(results),
        "evaluations": [each.to_json() for each in results],
    }
    if record.parses is not None and templates is not None:
        # The card shows 20 templates, as many as the paper uses (Iyyer et al. 2018, section 3.3).
        values["templates"] = list(templates.items())[:20]
        values["parses"] = [asdict(each) for each in record.parses.course.measured]
        if record.parses.control is not None:
            values["control"] = record.parses.control.describe()
    return values


def shown_figures(evaluations: Sequence[Results]) -> str:
    """Return the commands (where known) and scores of evaluations, and examples of normalisation, as Markdown."""
    blocks = []
    for results in evaluations:
        if command := results.settings["command"]:
            blocks.append(code(command))
        blocks.append(results.markdown())
        if results.kind == "canonical":
            rows = [list(map(escape, texts)) for texts in noisy_examples(results, 3)]
            blocks.append(markdown_table(["noisy", "output", "clean"], rows, left=(0, 1, 2)))
    return "\n\n".join(blocks)


def paraphraser_card(values: Mapping[str, Any]) -> str:
    """Return the text of a card, given the values of `card_values` or of a file of `model_cards/paraphrasers/`.

    The values may also hold `repository`, the id on the Hub.
    """
    license = License.parse(values["license"], listed=False) if values.get("license") else None
    header: dict[str, Any] = {
        "library_name": "transformers",
        "pipeline_tag": "text-generation",
        "language": list(values.get("languages") or ["en"]),
        **(license.header if license else {}),
        "tags": ["paraphrase", "paraphrase-generation", "paranmt"],
    }
    if values.get("datasets"):
        header["datasets"] = list(values["datasets"])
    shown = {
        **dict.fromkeys(["figures", "templates", "parses", "control", "license_text", "repository"]),
        **values,
        "license": license,
        "notes": (values.get("notes") or "").strip(),
    }
    return render("paraphraser", header, shown)


def _summary(record: ParaphraserRecord) -> str:
    """Return a sentence about what the model generates, in which languages, and what kind of model it is."""
    *others, last = [LANGUAGES.get(code, code) for code in languages(record.settings.data) or [ENGLISH]]
    what = f"Generates paraphrases of {', '.join(others) + ' and ' if others else ''}{last} sentences"
    if record.parses is not None:
        return (
            f"{what} that have the syntax asked for: a syntactically controlled paraphrase network after Iyyer, "
            "Wieting, Gimpel and Zettlemoyer (2018), arXiv:1804.06059. From the tree of a sentence and a template it "
            "generates a tree, and from that tree and the sentence a paraphrase, with pieces of the sentence copied "
            "where that is probable."
        )
    if record.model_type == LSTM_TYPE:
        return (
            f"{what}: a bidirectional LSTM encoder and an LSTM decoder with bilinear attention, after ParaNMT-50M "
            "(Wieting and Gimpel 2018), section 6."
        )
    return f"{what}: {escape(record.inputs.get('base', record.model_type))}, trained further on pairs."


def _data(record: ParaphraserRecord) -> str:
    """Return sentences about the pairs that the model was trained on, and those that were left out."""
    trees, parser = "", ""
    if record.parses is not None:
        trees = (
            f"{record.parses.without_tree:,} pairs with a sentence that has no tree, "
            f"{record.parses.long_trees:,} with a long tree, {record.parses.same_template:,} with two trees of one "
            "template and "
        )
        parser = f" The trees are those of {escape(record.inputs['parser'])}." if "parser" in record.inputs else ""
    others = "".join(f"{count:,} {reason}, " for reason, count in record.left_out.items())
    return (
        f"Trained on {record.pairs:,} {'parsed ' if trees else ''}pairs of {escape(record.inputs['data'])}; "
        f"{record.held_out:,} more pairs, whose references are in none of these, were held out. "
        f"Left out were {others}{trees}{record.too_long:,} {'' if trees else 'pairs '}with a long sentence.{parser}"
    )


def _command(record: ParaphraserRecord) -> str:
    """Return the command that trains the model, with paths shortened to names."""
    settings = record.settings
    model = replace(settings.paraphraser, base=record.inputs.get("base"))
    words = ["paranmt", "paraphrase", "train", *record.inputs["data"].split(", ")]
    words += [*option_words(model), *option_words(settings.training)]
    chosen, without = data_options(settings.data)
    return " ".join([shlex.join(words), *chosen, *(["--exclude", "SETS"] if without else []), "--out FOLDER"])


def _made(record: ParaphraserRecord, *, timed: bool) -> str:
    """Return sentences about how the model was trained and, if `timed`, how long that took."""
    training, course, parses = record.settings.training, record.course, record.parses
    took = f" in {course.seconds:,.0f} seconds" if timed else ""
    packages = {"paranmt-hf": record.paranmt_hf, **record.versions}
    versions = ", ".join(f"{escape(name)} {escape(version)}" for name, version in packages.items())
    directions = {
        "to-reference": "Translations are the sources and references the targets",
        "to-translation": "References are the sources and translations the targets",
        "both": "Each side of a pair is the source of the other",
    }
    text = (
        f"{directions[training.direction]}. {course.steps:,} steps, {course.pairs:,} pairs and {course.tokens:,} "
        f"target pieces{took} on {code(record.device)} ({code(record.machine)}), Adam with a highest rate of "
        f"{training.learning_rate:g}, label smoothing {training.label_smoothing:g}, seed {training.seed}. "
        f"{record.parameters:,} parameters, {record.pieces:,} pieces. Made with {versions}."
    )
    if parses is not None:
        text += f" {parses.tree_tokens:,} tokens of trees."
        if timed:
            text += f" The parse generator took {parses.course.seconds:,.0f} seconds before."
    return text
