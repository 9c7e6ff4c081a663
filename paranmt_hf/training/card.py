"""The card of an encoder: the values of its template, from its record, its results, and texts by its authors."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from paranmt_hf.corpus.reading.pair_files import languages
from paranmt_hf.corpus.reading.pairs import PairSelection
from paranmt_hf.encoders.calibration import Calibration
from paranmt_hf.encoders.config import FAMILIES, EncoderConfig, Family, title_of
from paranmt_hf.encoders.pushing import MadeRecord
from paranmt_hf.evaluation.results import Results
from paranmt_hf.evaluation.sts_data import DEVELOPMENT
from paranmt_hf.hub.cards import render
from paranmt_hf.hub.client import is_id
from paranmt_hf.hub.licenses import License
from paranmt_hf.hub.publish import About
from paranmt_hf.hub.repository import Model
from paranmt_hf.training.config import TrainConfig
from paranmt_hf.training.record import CALIBRATION_PICTURE, DISTILLATION_FILE, TRAINING_PICTURE, TrainingRecord
from paranmt_hf.util.records import read_json
from paranmt_hf.util.settings import option_words


def encoder_values(
    own: Mapping[str, Any], name: str, folder: Path, about: About | None = None, results: Sequence[Results] = ()
) -> dict[str, Any]:
    """Collect the values that the card of an encoder shows, as JSON values.

    Args:
        own: Values of its kind, such as `trained_values` returns: the name of the template (`made`), the record, and
            what the template shows besides.
        name: Name of the encoder.
        folder: Its folder.
        about: Information by its authors, which replaces some of these values; None for none.
        results: Its results on STS first, then those of copies stored in other precisions.
    """
    modules = json.loads((folder / "modules.json").read_text(encoding="utf8"))
    said = (about or About()).values
    values = {**own, **said}
    size = sum(path.stat().st_size for path in folder.rglob("*.safetensors"))
    precisions: dict[str, Any] = {"as stored": {"bytes": size, "mean": None, "development": None}}
    for each in results:
        precisions[each.settings.get("stored", "as stored")] = {
            "bytes": each.settings.get("bytes", size),
            "mean": each.mean,
            "development": each.value(DEVELOPMENT),
        }
    calibration = None
    if (found := Calibration.of(Model(folder.name, folder, ""))) is not None:
        calibration = {
            "pairs": found.pairs,
            "prior": found.prior,
            "error": found.error,
            "data": [data.name for data in found.settings.data],
            "null": None if found.null is None else {**vars(found.null), **vars(found.settings.null)},
            "picture": CALIBRATION_PICTURE if (folder / CALIBRATION_PICTURE).is_file() else None,
        }
    return {
        "name": name,
        **values,
        "commands": list(values["commands"]),
        "datasets": sorted({*said.get("datasets", ()), *own.get("datasets", ())}),
        "stock": all(entry["type"].startswith("sentence_transformers.") for entry in modules),
        "picture": TRAINING_PICTURE if (folder / TRAINING_PICTURE).is_file() else None,
        "calibration": calibration,
        "notes": about.notes if about else None,
        "results": results[0].to_json() if results else None,
        "precisions": precisions,
    }


def encoder_card(values: Mapping[str, Any]) -> str:
    """Render the card of an encoder.

    Args:
        values: The values of `encoder_values`, or of a file of `model_cards/`. They may also hold `repository`, the id
            on the Hub.
    """
    license = License.parse(values["license"], listed=False) if values.get("license") else None
    header = _header(values, license)
    figures: dict[str, Any] = {**dict.fromkeys(("results", "figures", "development", "speed")), "rate": 0}
    if values["results"] is not None:
        results = Results.from_json(values["results"], "results")
        # Recognise the development set by its content, whatever its name is.
        settings = (values.get("record") or {}).get("settings") or {}
        checksum = settings.get("development_checksum")
        held_out = [name for name, found in results.data.items() if found == checksum]
        notes = list(results.notes)
        if {DEVELOPMENT, "STSB-test"} <= {row.name for row in results.tables["Set"]}:
            notes.append("The 250 pairs of STS 2017 track 5 are also among those of STSB-dev and STSB-test.")
        if held_out:
            names = " and ".join(held_out)
            notes.append(f"The weights were chosen on {names} (the development set), so these figures are no results.")
        results = replace(results, notes=notes)
        header["model-index"] = [{"name": values["name"], "results": _index(results, held_out)}]
        figures |= {
            "results": results,
            "figures": results.markdown(),
            "development": results.value(DEVELOPMENT),
        }
        if (speed := results.speed) is not None:
            figures["rate"] = round(float(f"{speed.sentences_per_second:.2g}"))
            # A speed means something only if the machine is known, and how busy it was.
            if None not in (speed.cores, speed.load):
                figures["speed"] = speed
    shown = {
        **dict.fromkeys(("summary", "data", "license_text", "repository", "calibration")),
        **values,
        **figures,
        "license": license,
        "notes": (values.get("notes") or "").strip(),
        "columns": {
            name: any(entry[name] is not None for entry in values["precisions"].values())
            for name in ("mean", "development")
        },
    }
    return render(values["made"], header, shown)


def _header(values: Mapping[str, Any], license: License | None) -> dict[str, Any]:
    """Return the header of the card, whose fields the Hub reads."""
    languages = ["en"] if values["languages"] is None else list(values["languages"])
    header: dict[str, Any] = {
        "library_name": "sentence-transformers",
        "pipeline_tag": "sentence-similarity",
        **({"language": languages} if languages else {}),
        **(license.header if license else {}),
        "tags": ["sentence-transformers", "sentence-similarity", "feature-extraction", "paranmt", "paraphrase"],
    }
    if values["datasets"]:
        header["datasets"] = list(values["datasets"])
    return header


def _index(results: Results, held_out: Sequence[str]) -> list[dict[str, Any]]:
    """Convert results to the form of `model-index`: the papers' scores per year, and those of sets outside the years.

    Args:
        results: The results.
        held_out: Names of sets on which the weights were chosen; they are left out, because they are no results.
    """
    chosen = [(row, "Pearson, mean of the sets") for row in results.tables["Year"] if row.name != "Mean"]
    chosen += [(row, "Pearson") for row in results.tables["Set"] if row.group is None and row.name not in held_out]
    return [
        {
            "task": {"type": "sentence-similarity", "name": "Semantic textual similarity"},
            "dataset": {"type": row.name.lower(), "name": row.name},
            "metrics": [{"type": "pearson", "name": metric, "value": round(100 * row.main, 2)}],
        }
        for row, metric in chosen
    ]


def eval_results(results: Results | None) -> str | None:
    """Convert results to the YAML of a file in `.eval_results/`, which the Hub's leaderboards read.

    The Hub's benchmarks of these sets rank by Spearman's rho over all pairs of a year.

    Args:
        results: Results on STS; None for none.

    Returns:
        The YAML; None if there are no results of the years that the Hub has.
    """
    from huggingface_hub import EvalResultEntry, eval_result_entries_to_yaml

    entries = []
    for row in results.tables["Year"] if results else ():
        # Only these years have a benchmark on the Hub.
        if row.name in ("STS12", "STS13", "STS14", "STS15", "STS16"):
            score = round(100 * row["all_spearman"], 2)
            notes = f"Spearman's rho times 100 over all {row.items:,} pairs, cosine similarity"
            dataset = f"mteb/{row.name.lower()}-sts"
            entries.append(EvalResultEntry(dataset_id=dataset, task_id=row.name, value=score, notes=notes))
    return yaml.safe_dump(eval_result_entries_to_yaml(entries), sort_keys=False) if entries else None


def trained_values(training: TrainingRecord, folder: Path) -> dict[str, Any]:
    """Return the values of the card of an encoder that was trained on pairs; see `encoder_values`."""
    config, data = training.settings.encoder, training.settings.data
    # A combination depends on the order of words if any of its encoders does, so its limits are those of that encoder.
    family = next((family for family in config.families if family.ordered), config.families[0])
    return {
        "made": "trained",
        "record": training.for_card(),
        "commands": distill_commands(folder) or [command(training)],
        "datasets": hub_datasets(data),
        "languages": languages(data) or None,
        "title": title_of(config.parts, config.mode),
        "papers": _papers(config.families),
        "sources": sources(training),
        "limits": family.limits,
        "trigrams": "trigram" in config.kinds,
    }


def made_values(made: MadeRecord, folder: Path) -> dict[str, Any]:
    """Return the values of the card of an encoder that was made in Python; see `encoder_values`."""
    families = [FAMILIES[name] for name in made.families]
    return {
        "made": "made",
        "record": made.to_json(),
        "commands": [],
        "languages": [],
        "title": title_of(made.families, made.mode),
        "papers": _papers(families),
        "limits": next((family for family in families if family.ordered), families[0]).limits,
        "bibliography": "sent2vec.bib" if "sent2vec" in made.families else "paranmt.bib",
    }


def write_model_card(folder: Path, name: str, own: Mapping[str, Any]) -> None:
    """Write the card of an encoder into its folder; arguments as in `folder_card`."""
    (folder / "README.md").write_text(folder_card(folder, name, own), encoding="utf8", newline="\n")


def folder_card(folder: Path, name: str, own: Mapping[str, Any]) -> str:
    """Render the card in the folder of an encoder. Equal runs have equal cards, so it shows no times.

    Args:
        folder: The folder.
        name: Name of the encoder.
        own: Values of its kind; see `encoder_values`.
    """
    record = own["record"]
    if "history" in record:
        record = {**record, "history": {**record["history"], "seconds": None}}
    return encoder_card(encoder_values({**own, "record": record}, name, folder))


def sources(training: TrainingRecord) -> list[str]:
    """Return the names of the files and datasets that a model was trained on, without folders."""
    names: list[str] = []
    for source in training.settings.data["sources"]:
        if isinstance(source, Mapping) and "release" in source:
            names.append(str(source["release"]))
        elif isinstance(source, Mapping) and source.get("kind") in ("phrases", "tables"):
            names += [str(file["name"]) for file in source["files"]]
        elif isinstance(source, Mapping):
            names.append(f"{source['dataset']}@{source['revision']}" if "revision" in source else source["dataset"])
        else:
            names += [str(file).split(" ")[0] for file in source]
    if text := training.inputs.get("text"):
        names += text.split(", ")
    return names


def hub_datasets(data: Mapping[str, Any]) -> list[str]:
    """Return the ids of the datasets on the Hub that a model was trained on.

    Args:
        data: The data in the settings of a record.
    """
    names = [str(source.get("dataset", "")) for source in data["sources"] if isinstance(source, Mapping)]
    return [name for name in names if is_id(name)]


def command(training: TrainingRecord) -> str:
    """Return the command that made a model, for its card, with paths shortened to names."""
    settings = training.settings
    words = ["paranmt train --data", *map(shell_word, sources(training))]
    for usual, given in ((EncoderConfig().resolved(), settings.encoder), (TrainConfig(), settings.training)):
        words += map(shell_word, option_words(_named(given, training.inputs), usual))
    chosen, without = data_options(settings.data)
    words += chosen
    if name := settings.development:
        words += ["--development", "STS" if name == DEVELOPMENT else shell_word(name)]
    return " ".join([*words, *without, "--out FOLDER"])


def distill_commands(folder: Path) -> list[str]:
    """Return a list with the command that distilled the encoder in a folder; an empty one if it was not distilled."""
    file = folder / DISTILLATION_FILE
    return [read_json(file, "how an encoder was distilled")["command"]] if file.is_file() else []


def data_options(data: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """Return the words of a command that select pairs as a record says.

    Args:
        data: The data in the settings of a record.

    Returns:
        The options that choose pairs, and those that exclude pairs with sentences of evaluation sets.
    """
    chosen: dict[str, Any] = {}
    ranges, usual = data.get("ranges", {}), PairSelection()
    for name, column, bound in (
        ("min_score", "para_score", 0),
        ("max_score", "para_score", 1),
        ("max_overlap", "trigram_overlap", 1),
        ("min_length", "reference_length", 0),
        ("max_length", "reference_length", 1),
    ):
        if column in ranges and ranges[column][bound] is not None:
            chosen[name] = ranges[column][bound]
    scores = [source.get("score") for source in data["sources"] if isinstance(source, Mapping)]
    if score := next(filter(None, scores), None):
        chosen["ppdb_score"] = score
    for name in ("subset", "max_pairs", "first_pairs"):
        if data.get(name, getattr(usual, name)) != getattr(usual, name):
            chosen[name] = data[name]
    given = [f"{name}={value:g}" if isinstance(value, float) else f"{name}={value}" for name, value in chosen.items()]
    words = ["--selection", shell_word(",".join(given))] if given else []
    if columns := data.get("columns"):
        words += ["--columns", shell_word(",".join(f"{name}={theirs}" for name, theirs in columns.items()))]
    return words, ["--exclude", "STS"] if data.get("unwanted_sentences") else []


def _named(given: Any, inputs: Mapping[str, str]) -> Any:  # noqa: ANN401 - settings
    """Replace checksums in settings by the names of the inputs, or if unknown by placeholders such as VECTORS.

    Args:
        given: The settings of a record.
        inputs: Names of the inputs, by the setting.
    """
    checksums = {name for name, value in vars(given).items() if str(value).startswith("sha256:")}
    names = {name: inputs.get(name, name.upper()) for name in vars(given) if name in inputs or name in checksums}
    revisions = getattr(given, "teacher", None) or ()
    if "teacher" in inputs or any(name.startswith("sha256:") for name in revisions):
        # The names of several teachers are one text in the record.
        names |= {"teacher": tuple(inputs.get("teacher", "TEACHER").split(", "))} if revisions else {}
    return replace(given, **names)


def shell_word(text: str) -> str:
    """Quote a word of a command for the shell, on one line."""
    return shlex.quote(re.sub(r"[^\S ]+", " ", text))


def _papers(families: Iterable[Family]) -> list[str]:
    """Return the citations of the papers of some families, each once."""
    return list(dict.fromkeys(family.paper for family in families if family.paper))
