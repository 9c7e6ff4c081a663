"""How fast is back-translation on one core, and does the package get what its engines can give?

    python benchmarks/translation.py --model captions-cs-en --input test_2016_flickr.cs

Four contestants translate the same sentences with 12 beams in float32 on one thread: the `generate` of transformers
one sentence at a time, CTranslate2 called directly in its best batching, and the package over each of the two. They
take turns in every repeat, so that a change of the machine's pace meets all of them. Time is CPU time of the process,
from text to text: tokenising and detokenising count, loading does not.
"""

from __future__ import annotations

import os

# Before any of the engines is imported: they read it once.
os.environ["OMP_NUM_THREADS"] = "1"

import argparse
import datetime
import platform
import statistics
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import ctranslate2
import torch
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer, GenerationConfig

from paranmt_hf import TranslatorConfig
from paranmt_hf.corpus.translation.ctranslate2 import converted
from paranmt_hf.corpus.translation.engines import load_translator
from paranmt_hf.corpus.translation.transformers import Checkpoint

BEAM = 12
BATCH_TOKENS = 800
MAX_TOKENS = 256

Contestant = Callable[[list[str]], list[str | None]]


def one_at_a_time(folder: str) -> Contestant:
    """Plain transformers."""
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
    """Plain CTranslate2, which sorts by length and batches by tokens itself."""
    engine = ctranslate2.Translator(
        str(converted(Checkpoint(TranslatorConfig(folder)))), compute_type="float32", inter_threads=1, intra_threads=1
    )
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
    """Our translator with its default batches."""
    config = TranslatorConfig(folder, backend=backend, device="cpu", dtype="float32")
    translator = load_translator(config, threads=1)
    return lambda sentences: translator.translate(sentences).texts


def processor() -> str:
    """Name the CPU."""
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").is_file() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def measure(
    contestants: dict[str, Contestant], sentences: list[str], repeats: int
) -> tuple[dict[str, list[float]], dict[str, list[str | None]]]:
    """Let the contestants take turns; give sentences per CPU second of every turn, and the translations."""
    rates: dict[str, list[float]] = {name: [] for name in contestants}
    texts = {name: translate(sentences[:4]) for name, translate in contestants.items()}
    for _ in range(repeats):
        for name, translate in contestants.items():
            started = time.process_time()
            texts[name] = translate(sentences)
            rates[name].append(len(sentences) / (time.process_time() - started))
    return rates, texts


def report(rates: dict[str, list[float]], texts: dict[str, list[str | None]], arguments: argparse.Namespace) -> str:
    """Write the table."""
    first = next(iter(rates))
    base = statistics.median(rates[first])
    lines = [
        f"{len(texts[first])} sentences of `{arguments.input.name}`, model `{Path(arguments.model).name}`, "
        f"beam {BEAM}, float32, one thread, {arguments.repeats} repeats in turn. {processor()}, "
        f"{datetime.datetime.now(datetime.UTC).date()}. "
        + ", ".join(f"{name} {version(name)}" for name in ("torch", "transformers", "ctranslate2"))
        + f", Python {platform.python_version()}.",
        "",
        "| | sentences per CPU second, median | min | max | ratio | same text as the first |",
        "|---|---|---|---|---|---|",
    ]
    for name, values in rates.items():
        median = statistics.median(values)
        same = statistics.mean(one == other for one, other in zip(texts[name], texts[first], strict=True))
        lines.append(
            f"| {name} | {median:.1f} | {min(values):.1f} | {max(values):.1f} | {median / base:.2f} | {same:.1%} |"
        )
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
