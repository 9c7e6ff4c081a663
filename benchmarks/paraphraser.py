"""Compare the speed of the LSTM in training and generation with that of a transformer with as many parameters.

    python benchmarks/paraphraser.py --pairs machine-translations.parquet
    python benchmarks/paraphraser.py --model models/paraphraser --input sentences.txt

With pairs: our encoder-decoder and Marian (transformers) of as many parameters are trained for a few steps on the same
pairs, from random weights, and generate from the first references; the time of two steps is subtracted from that of
training. With a model: the beam search of the package and `generate()` of transformers, from text to text. The
contestants take turns in every repeat; time is CPU time of the process on one thread.
"""

from __future__ import annotations

import os

# This must be set before torch is imported, which reads it once.
os.environ["OMP_NUM_THREADS"] = "1"

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import torch
from commands import heading, in_turn
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer, GenerationConfig, MarianConfig, MarianMTModel

from paranmt_hf import Paraphraser, ParaphraserConfig, ParaphraserTraining, train_paraphraser

LAYERS, HEADS = 2, 4
# The time of this number of steps is subtracted.
FEW = 2
# A function from sentences to their most probable paraphrases.
Generate = Callable[[list[str]], list[str]]


def marian(lstm: Path, embedding: int, folder: Path) -> Path:
    """Write a Marian model with two layers on each side and the pieces of our model.

    Its inner width is chosen so that it has as many parameters as ours.
    """
    ours, tokenizer = AutoModelForSeq2SeqLM.from_pretrained(lstm), AutoTokenizer.from_pretrained(lstm)

    def made(inner: int) -> MarianMTModel:
        return MarianMTModel(
            MarianConfig(
                vocab_size=len(tokenizer),
                d_model=embedding,
                encoder_layers=LAYERS,
                decoder_layers=LAYERS,
                encoder_attention_heads=HEADS,
                decoder_attention_heads=HEADS,
                encoder_ffn_dim=inner,
                decoder_ffn_dim=inner,
                max_position_embeddings=128,
                pad_token_id=ours.config.pad_token_id,
                eos_token_id=ours.config.eos_token_id,
                decoder_start_token_id=ours.config.decoder_start_token_id,
                forced_eos_token_id=None,
            )
        )

    # Each layer has two matrices and a bias of the inner width.
    inner = (size(ours) - size(made(1))) / (2 * LAYERS * (2 * embedding + 1))
    made(max(1, round(inner))).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def size(model: torch.nn.Module) -> int:
    """Return the number of trained parameters."""
    return sum(weight.numel() for weight in model.parameters() if weight.requires_grad)


def training(config: ParaphraserConfig, arguments: argparse.Namespace) -> Callable[[], float]:
    """Return a function that trains for a few steps, and returns the target pieces per CPU second."""

    def run(steps: int) -> tuple[float, int]:
        settings = ParaphraserTraining(
            max_steps=steps, batch_tokens=arguments.batch_tokens, held_out=0, max_pieces=arguments.length, device="cpu"
        )
        with tempfile.TemporaryDirectory() as name:
            started = time.process_time()
            made = train_paraphraser(arguments.few, Path(name) / "model", config=config, training=settings)
            return time.process_time() - started, made.record.course.tokens

    def rate() -> float:
        (few, before), (whole, tokens) = run(FEW), run(FEW + arguments.steps)
        return (tokens - before) / (whole - few)

    return rate


def searching(model: str | Path, beams: int, length: int, budget: int) -> Generate:
    """Return a function that generates with our beam search."""
    settings = {"beams": beams, "max_length": length, "batch_tokens": budget, "keep_copies": True, "device": "cpu"}
    paraphraser = Paraphraser.from_pretrained(model, scorer=None, **settings)
    return lambda sentences: [own[0].text if own else "" for own in paraphraser(sentences)]


def generating(model: str | Path, beams: int, length: int, budget: int) -> Generate:
    """Return a function that calls `generate()` of transformers, in batches of sentences of similar length."""
    network, tokenizer = AutoModelForSeq2SeqLM.from_pretrained(model).eval(), AutoTokenizer.from_pretrained(model)
    network.generation_config = GenerationConfig(
        num_beams=beams,
        max_new_tokens=length,
        decoder_start_token_id=network.config.decoder_start_token_id,
        pad_token_id=network.config.pad_token_id,
        eos_token_id=network.config.eos_token_id,
        **({"early_stopping": True} if beams > 1 else {}),
    )

    @torch.inference_mode()
    def run(sentences: list[str]) -> list[str]:
        ids = tokenizer(sentences)["input_ids"]
        # Sentences that are too long are left out, as by our search.
        waiting = sorted((row for row in range(len(ids)) if len(ids[row]) <= length), key=lambda row: len(ids[row]))
        texts = [""] * len(sentences)
        while waiting:
            # The sentences ascend in length, so the last one is the longest.
            count = next(n for n in range(len(waiting), 0, -1) if n == 1 or n * len(ids[waiting[n - 1]]) <= budget)
            batch, waiting = waiting[:count], waiting[count:]
            inputs = tokenizer.pad({"input_ids": [ids[row] for row in batch]}, return_tensors="pt")
            found = network.generate(input_ids=inputs["input_ids"], attention_mask=inputs["attention_mask"])
            for row, text in zip(batch, tokenizer.batch_decode(found, skip_special_tokens=True), strict=True):
                texts[row] = " ".join(text.split())
        return texts

    return run


def timed(generate: Generate, sentences: list[str], texts: list[list[str]]) -> Callable[[], float]:
    """Return a function that generates, adds the texts to `texts`, and returns the sentences per CPU second."""
    generate(sentences[:2])

    def rate() -> float:
        started = time.process_time()
        texts.append(generate(sentences))
        return len(sentences) / (time.process_time() - started)

    return rate


def table(title: str, rates: dict[str, list[float]]) -> list[str]:
    """Return the lines of a table; ratios are to the first row."""
    base = statistics.median(next(iter(rates.values())))
    lines = [f"| {title} | median | min | max | ratio |", "|---|---:|---:|---:|---:|"]
    for name, values in rates.items():
        median = statistics.median(values)
        lines.append(f"| {name} | {median:,.1f} | {min(values):,.1f} | {max(values):,.1f} | {median / base:.2f} |")
    return [*lines, ""]


def random_weights(arguments: argparse.Namespace, folder: Path) -> list[str]:
    """Measure training and generation of both architectures with random weights; return the lines of the tables."""
    own = ParaphraserConfig(pieces=arguments.pieces, embedding=arguments.embedding, hidden=arguments.hidden)
    start = ParaphraserTraining(max_steps=1, held_out=0, max_pieces=arguments.length, device="cpu")
    arguments.few = folder / "few.parquet"
    pq.write_table(pq.read_table(arguments.pairs).slice(0, arguments.count), arguments.few)
    lstm = train_paraphraser(arguments.few, folder / "lstm", config=own, training=start).folder
    other = marian(lstm, arguments.embedding, folder / "marian")
    sizes = {path: size(AutoModelForSeq2SeqLM.from_pretrained(path)) for path in (other, lstm)}
    theirs, mine = f"Marian, {sizes[other]:,} parameters", f"LSTM, {sizes[lstm]:,} parameters"
    lines = [
        f"{arguments.pieces:,} pieces; LSTM {arguments.embedding} / {arguments.hidden}, Marian {LAYERS} + {LAYERS} "
        f"layers of {arguments.embedding}; sentences of at most {arguments.length} pieces.",
        "",
    ]
    contestants = {
        theirs: training(ParaphraserConfig(base=str(other)), arguments),
        mine: training(own, arguments),
    }
    lines += table("target pieces trained per CPU second", in_turn(contestants, arguments.repeats))
    sentences = pq.read_table(arguments.few)["reference"].to_pylist()[: arguments.sentences]
    for beams in (1, 4):
        settings = (beams, arguments.length, arguments.budgets[0])
        systems = {
            f"{theirs}, generate()": generating(other, *settings),
            f"{mine}, generate()": generating(lstm, *settings),
            f"{mine}, our beam search": searching(lstm, *settings),
        }
        rates = in_turn({name: timed(each, sentences, []) for name, each in systems.items()}, arguments.repeats)
        lines += table(f"sentences per CPU second, {beams} beams", rates)
    return lines


def real_sentences(arguments: argparse.Namespace) -> list[str]:
    """Measure our beam search and `generate()` in batches of several sizes; return the lines of the table."""
    sentences = arguments.input.read_text(encoding="utf8").split("\n")[: arguments.sentences]
    lines = [f"{len(sentences)} sentences of `{arguments.input.name}`, model `{Path(arguments.model).name}`.", ""]
    same = True
    for beams in arguments.beams:
        texts: list[list[str]] = []
        first = generating(arguments.model, beams, arguments.length, arguments.budgets[0])
        contestants = {f"generate(), batches of {arguments.budgets[0]}": timed(first, sentences, texts)}
        for budget in arguments.budgets:
            ours = searching(arguments.model, beams, arguments.length, budget)
            contestants[f"our beam search, batches of {budget}"] = timed(ours, sentences, texts)
        lines += table(f"sentences per CPU second, {beams} beams", in_turn(contestants, arguments.repeats))
        same = same and all(text == texts[0] for text in texts)
    return [*lines, f"All repeats gave the same text with and without our search: {'yes' if same else 'no'}."]


def main() -> None:
    """Parse the command line, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--pairs", type=Path, help="Parquet with reference and translation, for random weights")
    source.add_argument("--model", help="folder of a paraphraser")
    parser.add_argument("--input", type=Path, help="with --model: sentences, one per line")
    parser.add_argument("--sentences", type=int, default=100)
    parser.add_argument("--beams", type=int, nargs="+", default=[1, 4, 8], help="with --model")
    parser.add_argument("--budgets", type=int, nargs="+", default=[800], help="pieces of a batch")
    parser.add_argument("--count", type=int, default=20_000, help="pairs that are read")
    parser.add_argument("--pieces", type=int, default=6000)
    parser.add_argument("--embedding", type=int, default=192)
    parser.add_argument("--hidden", type=int, default=256)
    parser.add_argument("--length", type=int, default=40, help="pieces of a sentence, at most")
    parser.add_argument("--batch-tokens", type=int, default=2000, help="of a step of training")
    parser.add_argument("--steps", type=int, default=10, help="of training in a repeat")
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        lines = real_sentences(arguments) if arguments.model else random_weights(arguments, Path(folder))
    print(f"{heading('torch', 'transformers')}; one thread, {arguments.repeats} repeats in turn\n")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
