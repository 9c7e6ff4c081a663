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
        print(made.summary())

    parser.finish(run, "paranmt export models/word --format static --out exports/word")
