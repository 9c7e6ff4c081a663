"""`paranmt export`."""

from __future__ import annotations

import argparse
from pathlib import Path

from paranmt_hf.cli.parser import CommandParser, keep_options

# Those of `workflows/export.py`, which loads torch.
FORMATS = ("static", "tokenizers", "model2vec", "onnx", "transformers.js")
SUMMARY = "write an encoder for other libraries: static, model2vec, ONNX, transformers.js"


def configure(parser: CommandParser) -> None:
    """Options of `paranmt export`."""
    parser.add_argument(
        "model", help="folder or Hub id of the encoder; `embedded` is the one that the package carries"
    )
    parser.add_argument(
        "--format",
        required=True,
        choices=FORMATS,
        help="static: WORD for plain sentence-transformers; tokenizers: TRIGRAM for the same; model2vec: WORD or "
        "TRIGRAM; onnx: each encoder; transformers.js: each, for JavaScript",
    )
    parser.add_argument("--out", type=Path, required=True, help="folder to write")

    def run(arguments: argparse.Namespace) -> None:
        from paranmt_hf.encoders.export.export import export_encoder

        made = export_encoder(arguments.model, arguments.out, format=arguments.format)
        keep_options(arguments, made.folder)
        size = sum(path.stat().st_size for path in made.folder.rglob("*") if path.is_file())
        print(f"{made.folder}: {made.encoder} as {made.format}, {made.dimension} dimensions, {size / 1e6:.1f} MB")
        if made.difference is None or made.speed is None:
            print("  not compared with the encoder, because the package that reads it is not installed")
        else:
            measure = "1 - cosine" if made.format == "model2vec" else "difference"
            print(f"  largest {measure} from the encoder's own vectors, on the embedded sample: {made.difference:.0e}")
            print(f"  {made.speed:,.0f} sentences a second here; paranmt_hf.load encodes {made.own_speed:,.0f}")
        if made.alphabet is not None:
            slower = f", {made.own_speed / made.speed:,.0f} times as slow as paranmt_hf.load" if made.speed else ""
            print(f"  for portability{slower}: trigrams by stock components of the tokenizers library")
            print(
                f"  equal for any text: {made.alphabet} characters are known, trigrams with others have no row anyway"
            )
        print(f"  how to load it: {made.folder / 'README.md'}")

    parser.finish(run, "paranmt export models/word --format static --out exports/word")
