"""How fast are training and generation of the LSTM, beside a transformer of as many parameters?

    python benchmarks/paraphraser.py
    python benchmarks/paraphraser.py --model models/paraphraser --input sentences.txt

Without a model: our encoder-decoder and Marian (transformers) of as many parameters, with random weights, take the
same steps of training on the same batches, and generate targets of the same length. With one: the beam search of the
package and `generate()` of transformers, from text to text, over sentences that end where the model ends them. The
contestants take turns in every repeat; time is CPU time of the process on one thread.
"""

from __future__ import annotations

import os

# Before torch is imported, which reads it once.
os.environ["OMP_NUM_THREADS"] = "1"

import argparse
import datetime
import platform
import statistics
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
from transformers import GenerationConfig, MarianConfig, MarianMTModel

from paranmt_hf import ParaphraseConfig, Paraphraser
from paranmt_hf.corpus.translation.beam import pad_rows
from paranmt_hf.paraphrase.loading import EncoderDecoder
from paranmt_hf.paraphrase.modeling_paranmt_lstm import (
    ParaNMTLstmConfig,
    ParaNMTLstmForConditionalGeneration,
    token_loss,
)

PAD, START, END = 0, 1, 2
LAYERS, HEADS, CLIP = 2, 4, 1.0


def lstm(arguments: argparse.Namespace) -> torch.nn.Module:
    """Our encoder-decoder."""
    return ParaNMTLstmForConditionalGeneration(
        ParaNMTLstmConfig(
            vocab_size=arguments.pieces, embedding_size=arguments.embedding, hidden_size=arguments.hidden
        )
    )


def transformer(arguments: argparse.Namespace, parameters: int) -> torch.nn.Module:
    """Marian of two and two layers, whose inner layers are as wide as gives it so many parameters."""

    def made(inner: int) -> torch.nn.Module:
        return MarianMTModel(
            MarianConfig(
                vocab_size=arguments.pieces,
                d_model=arguments.embedding,
                encoder_layers=LAYERS,
                decoder_layers=LAYERS,
                encoder_attention_heads=HEADS,
                decoder_attention_heads=HEADS,
                encoder_ffn_dim=inner,
                decoder_ffn_dim=inner,
                max_position_embeddings=128,
                pad_token_id=PAD,
                eos_token_id=END,
                decoder_start_token_id=START,
                forced_eos_token_id=None,
            )
        )

    small = size(made(1))
    # Two matrices and a bias of that width in each layer.
    return made(max(1, round((parameters - small) / (2 * LAYERS * (2 * arguments.embedding + 1)))))


def size(model: torch.nn.Module) -> int:
    """Trained parameters."""
    return sum(weight.numel() for weight in model.parameters() if weight.requires_grad)


def trainer(model: torch.nn.Module, batches: list[torch.Tensor]) -> Callable[[], int]:
    """A contestant that takes a step of training for each batch; returns how many target pieces these are."""
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)

    def steps() -> int:
        for batch in batches:
            inputs = torch.cat([torch.full((len(batch), 1), START), batch[:, :-1]], dim=1)
            logits = model(
                input_ids=batch, attention_mask=torch.ones_like(batch), decoder_input_ids=inputs, use_cache=False
            ).logits
            token_loss(logits, batch, 0.1).backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP)
            optimizer.step()
            optimizer.zero_grad()
        return sum(batch.numel() for batch in batches)

    return steps


def generator(model: torch.nn.Module, batches: list[torch.Tensor], beams: int, length: int) -> Callable[[], int]:
    """A contestant that generates targets of a length; returns how many."""
    model.eval()
    config = ParaphraseConfig(beams=beams, max_length=length)
    own = EncoderDecoder(model, None)

    def steps() -> int:
        for batch in batches:
            own.search(batch.tolist(), config)
        return sum(map(len, batches))

    return steps


def with_generate(contestant: Callable[[], Any]) -> Callable[[], Any]:
    """The same by `generate()` of transformers."""

    @torch.inference_mode()
    def search(
        own: EncoderDecoder, sources: list[list[int]], config: ParaphraseConfig, controls: object = None
    ) -> list[list[list[int]]]:
        ids = pad_rows(sources, own.pad)
        settings = GenerationConfig(
            num_beams=config.width,
            num_return_sequences=config.width,
            max_new_tokens=config.max_length,
            decoder_start_token_id=own.start,
            pad_token_id=own.pad,
            eos_token_id=own.ends,
            **({"early_stopping": True} if config.width > 1 else {}),
        )
        mask = pad_rows([[1] * len(source) for source in sources], 0)
        found = own.model.generate(input_ids=ids, attention_mask=mask, generation_config=settings)
        targets = [row[1:] for row in found.tolist()]
        targets = [row[: row.index(own.ends[0])] if own.ends[0] in row else row for row in targets]
        return [targets[first : first + config.width] for first in range(0, len(targets), config.width)]

    def run() -> Any:  # noqa: ANN401
        with patch.object(EncoderDecoder, "search", search):
            return contestant()

    return run


def measure(contestants: dict[str, Callable[[], int]], repeats: int) -> dict[str, list[float]]:
    """Let the contestants take turns; give units per CPU second of every turn."""
    rates: dict[str, list[float]] = {name: [] for name in contestants}
    for contestant in contestants.values():
        contestant()
    for _ in range(repeats):
        for name, contestant in contestants.items():
            started = time.process_time()
            count = contestant()
            rates[name].append(count / (time.process_time() - started))
    return rates


def table(title: str, rates: dict[str, list[float]]) -> list[str]:
    """Write a table; ratios are to the first row."""
    base = statistics.median(next(iter(rates.values())))
    lines = [f"| {title} | median | min | max | ratio |", "|---|---:|---:|---:|---:|"]
    for name, values in rates.items():
        median = statistics.median(values)
        lines.append(f"| {name} | {median:,.1f} | {min(values):,.1f} | {max(values):,.1f} | {median / base:.2f} |")
    return [*lines, ""]


def random_weights(arguments: argparse.Namespace) -> list[str]:
    """Training and generation of both architectures."""
    torch.manual_seed(1)
    ours = lstm(arguments)
    theirs = transformer(arguments, size(ours))
    rows = arguments.batch_tokens // arguments.length
    batches = [torch.randint(3, arguments.pieces, (rows, arguments.length)) for _ in range(arguments.steps)]
    named = {f"LSTM, {size(ours):,} parameters": ours, f"Marian, {size(theirs):,} parameters": theirs}
    names = list(named)
    lines = [
        f"{arguments.pieces:,} pieces; LSTM {arguments.embedding} / {arguments.hidden}, Marian {LAYERS} + {LAYERS} "
        f"layers of {arguments.embedding}; batches of {rows} sentences of {arguments.length} pieces.",
        "",
    ]
    training = {name: trainer(model, batches) for name, model in reversed(named.items())}
    lines += table("target pieces trained per CPU second", measure(training, arguments.repeats))
    few = [batch[: 800 // arguments.length] for batch in batches[:2]]
    for beams in (1, 4):
        made = {name: generator(model, few, beams, arguments.length) for name, model in reversed(named.items())}
        contestants = {
            f"{names[1]}, generate()": made[names[1]],
            f"{names[0]}, generate()": with_generate(made[names[0]]),
            f"{names[0]}, our beam search": made[names[0]],
        }
        lines += table(f"sentences per CPU second, {beams} beams", measure(contestants, arguments.repeats))
    return lines


def real_sentences(arguments: argparse.Namespace) -> list[str]:
    """Our beam search beside `generate()`, over batches of several sizes."""
    sentences = arguments.input.read_text(encoding="utf8").split("\n")[: arguments.sentences]
    texts: dict[str, list[Any]] = {}
    lines = [f"{len(sentences)} sentences of `{arguments.input.name}`, model `{Path(arguments.model).name}`.", ""]
    for beams in arguments.beams:
        contestants: dict[str, Callable[[], int]] = {}
        for budget in arguments.budgets:
            config = ParaphraseConfig(beams=beams, batch_tokens=budget, max_length=arguments.length)
            paraphraser = Paraphraser(arguments.model, config, scorer=None)

            def run(paraphraser: Paraphraser = paraphraser, name: str = f"{beams} {budget}") -> int:
                texts.setdefault(name, []).append([own[0].text if own else "" for own in paraphraser(sentences)])
                return len(sentences)

            if budget == arguments.budgets[0]:
                contestants[f"generate(), batches of {budget}"] = with_generate(run)
            contestants[f"our beam search, batches of {budget}"] = run
        lines += table(f"sentences per CPU second, {beams} beams", measure(contestants, arguments.repeats))
    same = all(text == own[0] for own in texts.values() for text in own)
    return [*lines, f"All repeats gave the same text with and without our search: {'yes' if same else 'no'}."]


def processor() -> str:
    """Name the CPU."""
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").is_file() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def main() -> None:
    """Parse the command line, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", help="folder of a paraphraser; else random weights")
    parser.add_argument("--input", type=Path, help="with --model: sentences, one per line")
    parser.add_argument("--sentences", type=int, default=100)
    parser.add_argument("--beams", type=int, nargs="+", default=[1, 4, 8])
    parser.add_argument("--budgets", type=int, nargs="+", default=[800], help="pieces of a batch")
    parser.add_argument("--pieces", type=int, default=6000)
    parser.add_argument("--embedding", type=int, default=192)
    parser.add_argument("--hidden", type=int, default=256)
    parser.add_argument("--length", type=int, default=24, help="pieces of a sentence; with --model, at most")
    parser.add_argument("--batch-tokens", type=int, default=2000, help="of a step of training")
    parser.add_argument("--steps", type=int, default=2, help="batches of a repeat")
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    lines = real_sentences(arguments) if arguments.model else random_weights(arguments)
    print(
        f"{processor()}, one thread, {arguments.repeats} repeats in turn, "
        f"{datetime.datetime.now(datetime.UTC).date()}. "
        + ", ".join(f"{name} {version(name)}" for name in ("torch", "transformers"))
        + f", Python {platform.python_version()}.\n"
    )
    print("\n".join(lines))


if __name__ == "__main__":
    main()
