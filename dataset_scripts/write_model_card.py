"""Measure a trained encoder and write its card and the record that the card is rendered from.

    python dataset_scripts/write_model_card.py models/word --name word --sts sts --about about.yaml --out model_cards

`about.yaml` holds what no program can know: `summary`, `data`, `commands` (a list), `license`, `license_text`. The
record, `model_cards/word.json`, holds the results; `model_cards/word.md` is rendered from it and from nothing else.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path

import yaml

from paranmt_hf.encoders.loading import load, save, with_precision
from paranmt_hf.evaluation.sts import evaluate_sts
from paranmt_hf.evaluation.sts_data import StsSet, read_sts
from paranmt_hf.hub.model_cards import model_card


def stored(folder: Path, precision: str, sets: list[StsSet]) -> dict[str, float | int | None]:
    """Save an averaging encoder with another precision, and measure what that costs."""
    with tempfile.TemporaryDirectory() as place:
        save(with_precision(load(folder), precision), place)
        size = sum(path.stat().st_size for path in Path(place).rglob("*.safetensors"))
        result = evaluate_sts(load(place), sets, bootstrap=0)
    return {"bytes": size, "mean": result.mean, "development": result.development}


def main() -> None:
    """Measure, record, render."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("--name", required=True)
    parser.add_argument("--sts", type=Path, required=True)
    parser.add_argument("--about", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    sets = read_sts(arguments.sts)
    encoder = load(arguments.model)
    result = evaluate_sts(encoder, sets, name=arguments.name)
    averaging = encoder.averages is not None
    size = sum(path.stat().st_size for path in arguments.model.rglob("*.safetensors"))
    precisions = {"float32": {"bytes": size, "mean": result.mean, "development": result.development}}
    for precision in ("float16", "int8") if averaging else ():
        precisions[precision] = stored(arguments.model, precision, sets)
    training = json.loads((arguments.model / "training.json").read_text(encoding="utf8"))
    # The course of the loss belongs to the model's folder, not to its card.
    training["history"] = {name: training["history"][name] for name in ("pairs", "seconds", "best_step")}
    about = yaml.safe_load(arguments.about.read_text(encoding="utf8"))
    record = {"name": arguments.name, **about, "training": training, "results": result.to_json()}
    record["precisions"] = precisions
    modules = json.loads((arguments.model / "modules.json").read_text(encoding="utf8"))
    record["stock"] = all(entry["type"].startswith("sentence_transformers.") for entry in modules)
    arguments.out.mkdir(parents=True, exist_ok=True)
    text = json.dumps(record, indent=1, ensure_ascii=False)
    (arguments.out / f"{arguments.name}.json").write_text(f"{text}\n", encoding="utf8")
    (arguments.out / f"{arguments.name}.md").write_text(model_card(record), encoding="utf8")


if __name__ == "__main__":
    main()
