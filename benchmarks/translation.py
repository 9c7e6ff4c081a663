"""Measure the speed of back-translation on one core, by this package and by its engines called directly.

    python benchmarks/translation.py --model captions-cs-en --input test_2016_flickr.cs

Four contestants translate the same sentences with 12 beams in float32 on one thread: the `generate` of transformers
one sentence at a time, CTranslate2 called directly in its best batching, and `paranmt_hf.build` over each of the two.
With `--engine ctranslate2` only the two that use CTranslate2 do. They take turns in every repeat, so that the load of
the machine affects all of them. Time is CPU time, from text to text: tokenising and detokenising count, loading does
not. A build also cuts shards, scores the pairs and writes a release; the time of a build of the first four sentences
is subtracted. Sentences are drawn at random from the lines that the package translates as they are: not in capitals,
without control characters, and not longer than the model takes.
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
import numpy as np
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
# The translation and the score of each sentence; None if it has none.
Translated = list[tuple[str | None, float | None]]
Contestant = Callable[[list[str]], Translated]


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
    def translate(sentences: list[str]) -> Translated:
        outputs = (
            model.generate(**tokenizer(text, return_tensors="pt"), return_dict_in_generate=True, output_scores=True)
            for text in sentences
        )
        return [
            (tokenizer.decode(output.sequences[0], skip_special_tokens=True), output.sequences_scores[0].item())
            for output in outputs
        ]

    return translate


def ctranslate2_directly(folder: str) -> Contestant:
    """Return a function that translates with CTranslate2, which sorts by length and batches by tokens itself.

    The model is converted from float32. Otherwise a float16 model would stay in float16, encodings of positions
    included, and some scores would differ.
    """
    tokenizer = AutoTokenizer.from_pretrained(folder)
    with tempfile.TemporaryDirectory() as name:
        AutoModelForSeq2SeqLM.from_pretrained(folder, dtype=torch.float32, use_safetensors=True).save_pretrained(name)
        tokenizer.save_pretrained(name)
        converted = TransformersConverter(name).convert(f"{name}/converted")
        engine = ctranslate2.Translator(converted, compute_type="float32", inter_threads=1, intra_threads=1)

    def translate(sentences: list[str]) -> Translated:
        results = engine.translate_batch(
            [tokenizer.convert_ids_to_tokens(ids) for ids in tokenizer(sentences)["input_ids"]],
            batch_type="tokens",
            max_batch_size=BATCH_TOKENS,
            beam_size=BEAM,
            max_decoding_length=MAX_TOKENS,
            return_scores=True,
        )
        ids = (tokenizer.convert_tokens_to_ids(result.hypotheses[0]) for result in results)
        texts = [tokenizer.decode(row, skip_special_tokens=True) for row in ids]
        return [(text, result.scores[0]) for text, result in zip(texts, results, strict=True)]

    return translate


def through_the_package(folder: str, backend: str) -> Contestant:
    """Return a function that translates by a build with default batches over the given engine."""
    config = TranslatorConfig(folder, backend=backend, device="cpu", dtype="float32")

    def translate(sentences: list[str]) -> Translated:
        with tempfile.TemporaryDirectory() as name:
            source, reference = Path(name) / "source", Path(name) / "reference"
            source.write_text("".join(f"{sentence}\n" for sentence in sentences), encoding="utf8")
            reference.write_text("".join(f"line {number}\n" for number in range(len(sentences))), encoding="utf8")
            built = build(
                TextInput(source=source, reference=reference),
                Path(name) / "release",
                translator=config,
                release=ReleaseConfig(license="cc-by-nc-sa-4.0"),
                engine=EngineConfig(workers=1, threads=1),
            )
            table = pq.read_table(built.folder / "data", columns=["id", "translation", "translation_score"])
        found = {number: (text, score) for number, text, score in zip(*table.to_pydict().values(), strict=True)}
        return [found.get(number, (None, None)) for number in range(len(sentences))]

    return translate


def measure(
    contestants: dict[str, Contestant], sentences: list[str], repeats: int
) -> tuple[dict[str, list[float]], dict[str, Translated]]:
    """Run the contestants in turn; return the sentences per CPU second of every turn, and the translations."""

    def seconds(translate: Contestant, given: list[str]) -> tuple[float, Translated]:
        # The time of this process and of those that it started counts.
        started = sum(os.times()[:4])
        translated = translate(given)
        return sum(os.times()[:4]) - started, translated

    rates: dict[str, list[float]] = {name: [] for name in contestants}
    found: dict[str, Translated] = {name: translate(sentences[:FEW]) for name, translate in contestants.items()}
    for _ in range(repeats):
        for name, translate in contestants.items():
            few, _ = seconds(translate, sentences[:FEW])
            whole, found[name] = seconds(translate, sentences)
            rates[name].append((len(sentences) - FEW) / (whole - few))
    return rates, found


def report(rates: dict[str, list[float]], found: dict[str, Translated], arguments: argparse.Namespace) -> str:
    """Return the report: a Markdown table of the rates, and of the agreement with the first contestant."""
    first = next(iter(rates))
    base = statistics.median(rates[first])
    lines = [
        f"{len(found[first])} sentences of `{arguments.input.name}`, model `{Path(arguments.model).name}`, "
        f"beam {BEAM}, float32, one thread, {arguments.repeats} repeats in turn. "
        f"{heading('torch', 'transformers', 'ctranslate2')}",
        "",
        "| | sentences per CPU second, median | min | max | ratio | same text as the first | scores differ by |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, values in rates.items():
        median = statistics.median(values)
        both = [(one, other) for one, other in zip(found[name], found[first], strict=True) if one[0] == other[0]]
        apart = max((abs(one[1] - other[1]) for one, other in both if one[1] and other[1]), default=0.0)
        figures = f"{median:.1f} | {min(values):.1f} | {max(values):.1f} | {median / base:.2f}"
        lines.append(f"| {name} | {figures} | {len(both) / len(found[first]):.1%} | {apart:.1g} |")
    return "\n".join(lines)


def sample(path: Path, count: int) -> list[str]:
    """Draw lines that the package translates as they are, in the order of the file."""
    lines = (" ".join(line.split()) for line in path.read_text(encoding="utf8").split("\n"))
    # A line with a lower-case letter is not in capitals, and 400 characters have at most 256 pieces.
    texts = [line for line in lines if line.isprintable() and any(map(str.islower, line)) and len(line) <= 400]
    drawn = np.random.default_rng(0).choice(len(texts), min(count, len(texts)), replace=False)
    return [texts[index] for index in sorted(drawn)]


def main() -> None:
    """Parse the command line, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True, help="folder of a Marian translation model")
    parser.add_argument("--input", type=Path, required=True, help="source sentences, one per line")
    parser.add_argument("--sentences", type=int, default=200)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--engine", choices=["all", "ctranslate2"], default="all", help="engines that are measured")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    contestants: dict[str, Contestant] = {}
    if arguments.engine == "all":
        contestants["transformers, one sentence at a time"] = one_at_a_time(arguments.model)
        contestants["paranmt_hf over transformers"] = through_the_package(arguments.model, "transformers")
    contestants["CTranslate2 directly, sorted, 800-token batches"] = ctranslate2_directly(arguments.model)
    contestants["paranmt_hf over CTranslate2"] = through_the_package(arguments.model, "ctranslate2")
    sentences = sample(arguments.input, arguments.sentences)
    print(report(*measure(contestants, sentences, arguments.repeats), arguments))


if __name__ == "__main__":
    main()
