# /// script
# requires-python = ">=3.11"
# dependencies = [
#     "paranmt-hf",
# ]
# ///
"""Measure a trained encoder and write its card and the record that the card is rendered from.

    python dataset_scripts/write_model_card.py models/word --name word --sts sts --about about.yaml --license mit \
        --out model_cards

`about.yaml` holds what no program can know: `summary`, `data`, `commands` (a list), `license_text`. The
record, `model_cards/word.json`, holds the results; `model_cards/word.md` is rendered from it and from nothing else.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path

from paranmt_hf import evaluate, evaluate_sts, load
from paranmt_hf.encoders.building import with_precision
from paranmt_hf.encoders.saving import save
from paranmt_hf.evaluation.sts_data import DEVELOPMENT, StsSet, read_sts
from paranmt_hf.hub.publish import read_about
from paranmt_hf.training.card import encoder_card, trained_values
from paranmt_hf.training.record import TrainingRecord


def stored(folder: Path, precision: str, sets: list[StsSet]) -> dict[str, float | int | None]:
    """Save an averaging encoder with another precision, and measure what that costs."""
    with tempfile.TemporaryDirectory() as saved:
        save(with_precision(load(folder), precision), saved)
        size = sum(path.stat().st_size for path in Path(saved).rglob("*.safetensors"))
        result = evaluate_sts(load(saved), sets, bootstrap=0)
    return {"bytes": size, "mean": result.mean, "development": result.value(DEVELOPMENT)}


def main() -> None:
    """Measure, record, render."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("--name", required=True)
    parser.add_argument("--sts", type=Path, required=True)
    parser.add_argument("--about", type=Path, required=True)
    parser.add_argument("--license", required=True)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    sets = read_sts(arguments.sts)
    encoder = load(arguments.model, device="cpu")
    (results,) = evaluate([arguments.model], data=sets, speed=True)
    about = read_about(arguments.about, arguments.license)
    record = trained_values(arguments.name, arguments.model, TrainingRecord.read(arguments.model), about, results)
    # The course of training stays with the weights.
    record["picture"] = None
    record["precisions"] = {"float32": record["precisions"]["as stored"]}
    for precision in ("float16", "int8") if encoder.average is not None else ():
        record["precisions"][precision] = stored(arguments.model, precision, sets)
    arguments.out.mkdir(parents=True, exist_ok=True)
    text = json.dumps(record, indent=1, ensure_ascii=False)
    (arguments.out / f"{arguments.name}.json").write_text(f"{text}\n", encoding="utf8")
    (arguments.out / f"{arguments.name}.md").write_text(encoder_card(record), encoding="utf8")


if __name__ == "__main__":
    main()
