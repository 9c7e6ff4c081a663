"""Measure the speed of back-translation on one core, by this package and by its engines called directly.

    python benchmarks/translation.py --model captions-cs-en --input test_2016_flickr.cs

Four contestants translate the same sentences with 12 beams in float32 on one thread: the `generate` of transformers
one sentence at a time, CTranslate2 called directly in its best batching, and `paranmt_hf.build` over each of the two.
They take turns in every repeat, so that the load of the machine affects all of them. Time is CPU time, from text
to text: tokenising and detokenising count, loading does not. A build also cuts shards, scores the pairs and writes a
release; the time of a build of the first four sentences is subtracted.
"""

from __future__ import annotations

import os

# This must be set before the engines are imported, which read it once.
os.environ["OMP_NUM_THREADS"] = "1"

import argparse
import statistics
import tempfile
from collections.abc import Callable
from pathlib import Path

import ctranslate2
import pyarrow.parquet as pq
import torch
from commands import heading
from ctranslate2.converters import TransformersConverter
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer, GenerationConfig

from paranmt_hf import EngineConfig, ReleaseConfig, TextInput, TranslatorConfig, build

BEAM = 12
BATCH_TOKENS = 800
MAX_TOKENS = 256
FEW = 4
Contestant = Callable[[list[str]], list[str | None]]


def one_at_a_time(folder: str) -> Contestant:
    """Return a function that translates with transformers, one sentence at a time."""
    model = AutoModelForSeq2SeqLM.from_pretrained(folder, dtype=torch.float32, use_safetensors=True).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model.generation_config = GenerationConfig(
        num_beams=BEAM,
        early_stopping=True,
        max_new_tokens=MAX_TOKENS - 1,
        decoder_start_token_id=model.config.decoder_start_token_id,
        eos_token_id=model.config.eos_token_id,
        pad_token_id=model.config.pad_token_id,
        bad_words_ids=[[model.config.pad_token_id]],
    )

    @torch.inference_mode()
    def translate(sentences: list[str]) -> list[str | None]:
        outputs = (model.generate(**tokenizer(sentence, return_tensors="pt"))[0] for sentence in sentences)
        return [tokenizer.decode(output, skip_special_tokens=True) for output in outputs]

    return translate


def ctranslate2_directly(folder: str) -> Contestant:
    """Return a function that translates with CTranslate2, which sorts by length and batches by tokens itself."""
    with tempfile.TemporaryDirectory() as name:
        converted = TransformersConverter(folder, load_as_float16=False).convert(f"{name}/model")
        engine = ctranslate2.Translator(converted, compute_type="float32", inter_threads=1, intra_threads=1)
    tokenizer = AutoTokenizer.from_pretrained(folder)

    def translate(sentences: list[str]) -> list[str | None]:
        results = engine.translate_batch(
            [tokenizer.convert_ids_to_tokens(ids) for ids in tokenizer(sentences)["input_ids"]],
            batch_type="tokens",
            max_batch_size=BATCH_TOKENS,
            beam_size=BEAM,
            max_decoding_length=MAX_TOKENS - 1,
            return_scores=True,
        )
        tokens = (result.hypotheses[0] for result in results)
        return [tokenizer.decode(tokenizer.convert_tokens_to_ids(row), skip_special_tokens=True) for row in tokens]

    return translate


def through_the_package(folder: str, backend: str) -> Contestant:
    """Return a function that translates by a build with default batches over the given engine."""
    config = TranslatorConfig(folder, backend=backend, device="cpu", dtype="float32")

    def translate(sentences: list[str]) -> list[str | None]:
        with tempfile.TemporaryDirectory() as name:
            source, reference = Path(name) / "source", Path(name) / "reference"
            source.write_text("".join(f"{sentence}\n" for sentence in sentences), encoding="utf8")
            reference.write_text("".join(f"{number}\n" for number in range(len(sentences))), encoding="utf8")
            built = build(
                TextInput(source=source, reference=reference),
                Path(name) / "release",
                translator=config,
                release=ReleaseConfig(license="unknown"),
                engine=EngineConfig(workers=1, threads=1),
            )
            columns = pq.read_table(built.folder / "data", columns=["id", "translation"]).to_pydict()
        found = dict(zip(columns["id"], columns["translation"], strict=True))
        return [found.get(number) for number in range(len(sentences))]

    return translate


def measure(
    contestants: dict[str, Contestant], sentences: list[str], repeats: int
) -> tuple[dict[str, list[float]], dict[str, list[str | None]]]:
    """Run the contestants in turn; return the sentences per CPU second of every turn, and the translations."""

    def seconds(translate: Contestant, given: list[str]) -> tuple[float, list[str | None]]:
        # The time of this process and of those that it started counts.
        started = sum(os.times()[:4])
        found = translate(given)
        return sum(os.times()[:4]) - started, found

    rates: dict[str, list[float]] = {name: [] for name in contestants}
    texts: dict[str, list[str | None]] = {name: translate(sentences[:FEW]) for name, translate in contestants.items()}
    for _ in range(repeats):
        for name, translate in contestants.items():
            few, _ = seconds(translate, sentences[:FEW])
            whole, texts[name] = seconds(translate, sentences)
            rates[name].append((len(sentences) - FEW) / (whole - few))
    return rates, texts


def report(rates: dict[str, list[float]], texts: dict[str, list[str | None]], arguments: argparse.Namespace) -> str:
    """Return the report: a Markdown table of the rates."""
    first = next(iter(rates))
    base = statistics.median(rates[first])
    lines = [
        f"{len(texts[first])} sentences of `{arguments.input.name}`, model `{Path(arguments.model).name}`, "
        f"beam {BEAM}, float32, one thread, {arguments.repeats} repeats in turn. "
        f"{heading('torch', 'transformers', 'ctranslate2')}",
        "",
        "| | sentences per CPU second, median | min | max | ratio | same text as the first |",
        "|---|---|---|---|---|---|",
    ]
    for name, values in rates.items():
        median = statistics.median(values)
        same = statistics.mean(one == other for one, other in zip(texts[name], texts[first], strict=True))
        figures = f"{median:.1f} | {min(values):.1f} | {max(values):.1f} | {median / base:.2f}"
        lines.append(f"| {name} | {figures} | {same:.1%} |")
    return "\n".join(lines)


def main() -> None:
    """Parse the command line, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True, help="folder of a Marian translation model")
    parser.add_argument("--input", type=Path, required=True, help="source sentences, one per line")
    parser.add_argument("--sentences", type=int, default=200)
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    sentences = arguments.input.read_text(encoding="utf8").split("\n")[: arguments.sentences]
    contestants = {
        "transformers, one sentence at a time": one_at_a_time(arguments.model),
        "paranmt_hf over transformers": through_the_package(arguments.model, "transformers"),
        "CTranslate2 directly, sorted, 800-token batches": ctranslate2_directly(arguments.model),
        "paranmt_hf over CTranslate2": through_the_package(arguments.model, "ctranslate2"),
    }
    print(report(*measure(contestants, sentences, arguments.repeats), arguments))


if __name__ == "__main__":
    main()
