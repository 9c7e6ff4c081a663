"""Measure how fast a teacher reads sentences, and words in sentences, compared with a plain loop.

Each run is a process of its own; figures are CPU seconds of the whole process, with the loading of the model. The
plain loop has the weights in bfloat16, sentences sorted by length and batches of 256 (of 128 where the states of the
pieces are summed), and gives the means of the states:

    python benchmarks/teacher.py --text sentences.txt --teacher FOLDER --repeats 5
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from functools import partial
from pathlib import Path

from commands import Run, heading, in_turn, measured, paranmt, spread

BATCH = {"sentences": 256, "contexts": 128}
# So many contexts, more than there are sentences, that every sentence is read.
CONTEXTS = 1_000_000


def plain(kind: str, text: Path, teacher: str) -> None:
    """Read the text with the simplest loop over the teacher."""
    import torch
    from sentence_transformers import SentenceTransformer

    encoder = SentenceTransformer(teacher, device="cpu").to(torch.bfloat16)
    sentences = sorted(text.read_text(encoding="utf8").splitlines(), key=len)
    network, tokenizer = encoder[0].auto_model, encoder.tokenizer
    vectors, sums = [], torch.zeros(len(tokenizer), network.config.hidden_size)
    with torch.inference_mode():
        for start in range(0, len(sentences), BATCH[kind]):
            batch = tokenizer(
                sentences[start : start + BATCH[kind]],
                padding=True,
                truncation=True,
                max_length=encoder.max_seq_length,
                return_tensors="pt",
            )
            states, mask = network(**batch).last_hidden_state.float(), batch["attention_mask"]
            if kind == "sentences":
                vectors.append((states * mask[..., None]).sum(1) / mask.sum(1, keepdim=True))
            else:
                sums.index_add_(0, batch["input_ids"][mask.bool()], states[mask.bool()])


def ours(kind: str, text: Path, teacher: str) -> Run:
    """Run and measure the command in which a teacher reads sentences, or words in sentences."""
    with tempfile.TemporaryDirectory() as folder:
        if kind == "contexts":
            reading = f"contexts={CONTEXTS},precision=bf16"
            out = f"{folder}/v.txt"
            return paranmt("encoder", "vectors", teacher, "--text", text, "--reading", reading, "--out", out)
        options = ["--model", "word", "--dimension", 32, "--epochs", 1, "--precision", "bf16", "--device", "cpu"]
        return paranmt("train", "--text", text, "--teacher", teacher, *options, "--out", f"{folder}/m")


def main() -> None:
    """Run both in turn, and print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--text", type=Path, required=True, help="one sentence on a line, all different")
    parser.add_argument("--teacher", required=True)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--plain", choices=BATCH, help="only the plain loop")
    given = parser.parse_args()
    if given.plain:
        plain(given.plain, given.text, given.teacher)
        return
    count, rows = len(given.text.read_text(encoding="utf8").splitlines()), []
    program, text = str(Path(__file__).resolve()), given.text.resolve()
    for kind in BATCH:
        command = [sys.executable, program, "--plain", kind, "--text", text, "--teacher", given.teacher]
        systems = {"plain": partial(measured, command), "ours": partial(ours, kind, given.text, given.teacher)}
        runs = in_turn(systems, given.repeats)
        rates = {name: [count / run.cpu for run in own] for name, own in runs.items()}
        ratio = sorted(rates["ours"])[given.repeats // 2] / sorted(rates["plain"])[given.repeats // 2]
        rows.append(f"| {kind} | {spread(rates['plain'])} | {spread(rates['ours'])} | {ratio:.2f} |")
    print(heading("torch", "sentence-transformers", "numpy"))
    print(f"\nSentences per CPU second of {count:,} sentences, median of {given.repeats} (range).\n")
    print("| what is read | plain loop | ours | ratio |\n|---|---:|---:|---:|")
    print("\n".join(rows))


if __name__ == "__main__":
    main()
