# /// script
# requires-python = ">=3.11"
# dependencies = [
#     "sacrebleu>=2.4.3",
#     "sentencepiece>=0.2.0",
#     "torch>=2.13",
#     "transformers>=5.12",
# ]
# ///
r"""Train a small captions translator, such as the Czech-English one that the package carries.

A Marian-architecture encoder-decoder on the Multi30k captions, small enough to ship inside a wheel, so that the
quickstart runs a real translator on a machine without a network. It translates descriptions of everyday scenes and
nothing else. The recipe whose result is in `paranmt_hf/assets/captions-cs-en`:

    python dataset_scripts/train_captions_translator.py --data multi30k --out captions-cs-en

`--data` is a folder with `train.cs`, `train.en`, `val.cs` and `val.en`, one sentence per line. The settings are the
defaults below; `--steps` trades time for quality. Needs `sacrebleu` for the development score.

Other languages, from some of the lines, so that a corpus can be built from the others:

    python dataset_scripts/train_captions_translator.py --data multi30k --source en --target de --lines 1-14500 \
      --device cuda --out captions-en-de
"""

from __future__ import annotations

import argparse
import io
import itertools
import json
import math
import random
import shutil
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import sentencepiece
import torch
from torch.nn import functional
from transformers import GenerationConfig, MarianConfig, MarianMTModel, MarianTokenizer


@dataclass
class Recipe:
    """Every setting of the recorded run.

    Attributes:
        source: Language that is translated, the extension of its files.
        target: Language of the translations, the extension of its files.
        lines: First and last line of the training files to learn from, such as 1-14500; all if empty.
        pieces: Size of the joint unigram vocabulary, special symbols not counted.
        sampled: Share of source sentences whose segmentation is drawn and not the best one (Kudo 2018, "Subword
            Regularization"); targets always have the best one.
        alpha: Smoothing of the drawn segmentations.
        tokens: Target tokens per batch, padding counted.
        average: Decay of the running average of the weights; the average is what is saved.
    """

    source: str = "cs"
    target: str = "en"
    lines: str = ""
    pieces: int = 4000
    width: int = 192
    heads: int = 4
    feed_forward: int = 768
    encoder_layers: int = 3
    decoder_layers: int = 2
    dropout: float = 0.2
    sampled: float = 0.0
    alpha: float = 0.3
    label_smoothing: float = 0.1
    tokens: int = 1200
    rate: float = 1e-3
    warmup: int = 500
    steps: int = 11000
    average: float = 0.998
    evaluate_every: int = 1000
    seed: int = 1


def read_lines(path: Path) -> list[str]:
    """Read one sentence per line."""
    return path.read_text(encoding="utf8").split("\n")[:-1]


def training_lines(data: Path, recipe: Recipe) -> tuple[list[str], list[str]]:
    """Read the source and the target side of the lines to learn from."""
    sides = [read_lines(data / f"train.{language}") for language in (recipe.source, recipe.target)]
    if len(sides[0]) != len(sides[1]):
        raise SystemExit(f"the training files must have equally many lines, not {len(sides[0])} and {len(sides[1])}")
    if recipe.lines:
        first, last = map(int, recipe.lines.split("-"))
        sides = [side[first - 1 : last] for side in sides]
    return sides[0], sides[1]


def train_pieces(data: Path, out: Path, recipe: Recipe) -> None:
    """Write the joint sentencepiece model and the tokenizer around it.

    The padding symbol comes last, so that cutting the last row of the embedding keeps it out of the softmax.
    """
    written = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        # The model is trained from lines, not files, because it would store the paths of the files.
        sentence_iterator=itertools.chain(*training_lines(data, recipe)),
        model_writer=written,
        vocab_size=recipe.pieces + 2,
        character_coverage=1.0,
        unk_id=1,
        eos_id=0,
        bos_id=-1,
        pad_id=-1,
        num_threads=1,
        minloglevel=2,
    )
    (out / "source.spm").write_bytes(written.getvalue())
    (out / "target.spm").write_bytes((out / "source.spm").read_bytes())
    model = sentencepiece.SentencePieceProcessor(model_file=str(out / "source.spm"))
    vocabulary = {model.id_to_piece(number): number for number in range(model.get_piece_size())}
    vocabulary["<pad>"] = len(vocabulary)
    (out / "vocab.json").write_text(json.dumps(vocabulary, ensure_ascii=False), encoding="utf8")
    tokenizer = MarianTokenizer(
        source_spm=str(out / "source.spm"),
        target_spm=str(out / "target.spm"),
        vocab=str(out / "vocab.json"),
        source_lang=recipe.source,
        target_lang=recipe.target,
        model_max_length=256,
    )
    tokenizer.save_pretrained(out)


def build_model(recipe: Recipe) -> MarianMTModel:
    """Build the untrained model; both sides and the output layer share one embedding matrix."""
    symbols = recipe.pieces + 3
    config = MarianConfig(
        vocab_size=symbols,
        decoder_vocab_size=symbols,
        d_model=recipe.width,
        encoder_layers=recipe.encoder_layers,
        decoder_layers=recipe.decoder_layers,
        encoder_attention_heads=recipe.heads,
        decoder_attention_heads=recipe.heads,
        encoder_ffn_dim=recipe.feed_forward,
        decoder_ffn_dim=recipe.feed_forward,
        activation_function="relu",
        dropout=recipe.dropout,
        attention_dropout=recipe.dropout / 2,
        init_std=recipe.width**-0.5,
        scale_embedding=True,
        pad_token_id=symbols - 1,
        eos_token_id=0,
        bos_token_id=None,
        decoder_start_token_id=symbols - 1,
        forced_eos_token_id=0,
        max_position_embeddings=256,
    )
    model = MarianMTModel(config)
    # On a CPU with bfloat16 instructions plain attention is faster than the fused kernel at these lengths.
    model.set_attn_implementation("eager")
    for module in model.modules():
        # `init_std` suits the embedding; linear layers start from Glorot's uniform range.
        if isinstance(module, torch.nn.Linear) and module is not model.lm_head:
            torch.nn.init.xavier_uniform_(module.weight)
    model.generation_config = GenerationConfig(
        bad_words_ids=[[symbols - 1]],
        decoder_start_token_id=symbols - 1,
        eos_token_id=0,
        forced_eos_token_id=0,
        pad_token_id=symbols - 1,
        max_length=128,
        num_beams=4,
    )
    model.final_logits_bias[0, -1] = -1e4
    return model


def pad(rows: list[list[int]], value: int) -> torch.Tensor:
    """Stack rows of ids into a tensor [row, position], padded on the right with `value`."""
    longest = max(map(len, rows))
    return torch.tensor([row + [value] * (longest - len(row)) for row in rows])


def batches(pairs: list[tuple[str, str]], out: Path, recipe: Recipe) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Yield batches of source and target ids without end; segmentations are drawn again in every epoch."""
    model = sentencepiece.SentencePieceProcessor(model_file=str(out / "source.spm"))
    sentencepiece.set_random_generator_seed(recipe.seed)
    order = random.Random(recipe.seed)
    padding = recipe.pieces + 2

    def encode(text: str) -> list[int]:
        if order.random() >= recipe.sampled:
            return [*model.encode(text), 0]
        return [*model.encode(text, enable_sampling=True, alpha=recipe.alpha, nbest_size=-1), 0]

    while True:
        rows = [(encode(source), [*model.encode(target), 0]) for source, target in pairs]
        order.shuffle(rows)
        rows.sort(key=lambda row: (len(row[1]) // 3, len(row[0]) // 3))
        epoch, batch = [], []
        for row in rows:
            if (len(batch) + 1) * max(len(row[1]), len(row[0])) > recipe.tokens:
                epoch.append(batch)
                batch = []
            batch.append(row)
        epoch.append(batch)
        order.shuffle(epoch)
        for batch in epoch:
            yield pad([source for source, _ in batch], padding), pad([target for _, target in batch], padding)


def loss_of(model: MarianMTModel, source: torch.Tensor, target: torch.Tensor, smoothing: float) -> torch.Tensor:
    """Return the mean cross-entropy per target token, with the padding symbol left out of the softmax."""
    padding = model.config.pad_token_id
    start = torch.full((len(target), 1), padding, device=target.device)
    hidden = model.model(
        input_ids=source,
        attention_mask=source != padding,
        decoder_input_ids=torch.cat([start, target[:, :-1]], dim=1),
        # The start symbol at the first position is the padding symbol, but it must be attended to.
        decoder_attention_mask=torch.cat([start == padding, target[:, :-1] != padding], dim=1),
    ).last_hidden_state
    kept = target != padding
    logits = functional.linear(hidden[kept], model.model.shared.weight[:-1])
    return functional.cross_entropy(logits.float(), target[kept], label_smoothing=smoothing)


@torch.no_grad()
def development_bleu(model: MarianMTModel, out: Path, data: Path, recipe: Recipe) -> float:
    """Return the BLEU of greedy translations of the development set."""
    import sacrebleu

    tokenizer = MarianTokenizer.from_pretrained(out)
    source = read_lines(data / f"val.{recipe.source}")
    order = sorted(range(len(source)), key=lambda index: len(source[index]))
    hypotheses = [""] * len(source)
    for first in range(0, len(order), 64):
        chosen = order[first : first + 64]
        features = tokenizer([source[index] for index in chosen], return_tensors="pt", padding=True).to(model.device)
        output = model.generate(**features, num_beams=1, max_length=80)
        for index, text in zip(chosen, tokenizer.batch_decode(output, skip_special_tokens=True), strict=True):
            hypotheses[index] = text
    return sacrebleu.corpus_bleu(hypotheses, [read_lines(data / f"val.{recipe.target}")]).score


def train(data: Path, out: Path, recipe: Recipe, device: str) -> None:
    """Train the model by the recipe, and write its folder."""
    torch.manual_seed(recipe.seed)
    out.mkdir(parents=True, exist_ok=True)
    train_pieces(data, out, recipe)
    model = build_model(recipe).to(device)
    averaged = build_model(recipe).to(device).eval()
    averaged.load_state_dict(model.state_dict())
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.Adam(parameters, lr=recipe.rate, betas=(0.9, 0.98), eps=1e-9, fused=True)
    print(f"{sum(map(torch.numel, parameters)):,} parameters", flush=True)
    pairs = list(zip(*training_lines(data, recipe), strict=True))
    stream = batches(pairs, out, recipe)
    model.train()
    started, total, seen = time.time(), 0.0, 0
    for step in range(1, recipe.steps + 1):
        progress = max(0.0, (step - recipe.warmup) / max(1, recipe.steps - recipe.warmup))
        factor = min(step / recipe.warmup, 0.5 * (1 + math.cos(math.pi * progress)))
        for group in optimizer.param_groups:
            group["lr"] = recipe.rate * factor
        source, target = (side.to(device) for side in next(stream))
        with torch.autocast(device, torch.bfloat16):
            loss = loss_of(model, source, target, recipe.label_smoothing)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        optimizer.zero_grad()
        with torch.no_grad():
            decay = min(recipe.average, step / (step + 10))
            for mean, current in zip(averaged.parameters(), model.parameters(), strict=True):
                mean.lerp_(current, 1 - decay)
        total, seen = total + loss.item(), seen + 1
        if step % 200 == 0:
            print(f"step {step} loss {total / seen:.3f} seconds {time.time() - started:.0f}", flush=True)
            total, seen = 0.0, 0
        if step % recipe.evaluate_every == 0 or step == recipe.steps:
            print(f"step {step} development BLEU {development_bleu(averaged, out, data, recipe):.2f}", flush=True)
            averaged.save_pretrained(out / "float32")
    shutil.rmtree(out / "float32")
    averaged.half().save_pretrained(out)
    (out / "recipe.json").write_text(json.dumps(asdict(recipe), indent=2) + "\n", encoding="utf8")


def main() -> None:
    """Parse the command line and train."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    for name, value in asdict(Recipe()).items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=type(value), default=value)
    arguments = vars(parser.parse_args())
    data, out, threads, device = (arguments.pop(name) for name in ("data", "out", "threads", "device"))
    torch.set_num_threads(threads)
    train(data, out, Recipe(**arguments), device)


if __name__ == "__main__":
    main()
