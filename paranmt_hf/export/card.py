"""The README.md of an exported encoder: how to load it, and what is not as in the encoder it was made from."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

import yaml

from paranmt_hf.hub.repository import Model

LIBRARIES = {"static": "sentence-transformers", "tokenizers": "sentence-transformers", "model2vec": "model2vec"}
LICENSE_KEYS = ("license", "license_name", "license_link")
STOCK_USE = """from sentence_transformers import SentenceTransformer

vectors = SentenceTransformer("{name}").encode(["A dog runs."])"""
MODEL2VEC_USE = """from model2vec import StaticModel

vectors = StaticModel.from_pretrained("{name}").encode(["A dog runs."])"""
ONNX_USE = """import numpy as np, onnxruntime
from tokenizers import Tokenizer

inputs = {{}}
for part in {suffixes}:
    batch = Tokenizer.from_file(f"{name}/tokenizer{{part}}.json").encode_batch(["A dog runs.", "It rains."])
    inputs[f"input_ids{{part}}"] = np.array([one.ids for one in batch], np.int64)
    inputs[f"attention_mask{{part}}"] = np.array([one.attention_mask for one in batch], np.int64)
(vectors,) = onnxruntime.InferenceSession("{name}/model.onnx").run(["sentence_embedding"], inputs)"""
TRIGRAM_NOTE = (
    "Its tokenizer makes character trigrams out of stock components of the `tokenizers` library: equal for any text, "
    "but 25 times as slow as the source under `paranmt_hf.load`, or more. The vocabulary of the tokenizer holds "
    "trigrams spelled with other symbols."
)
NOTES = {
    "static": "Rows are float32, whatever precision the source stores.",
    "tokenizers": "Rows are float32, whatever precision the source stores.",
    "model2vec": "Cosines are equal, lengths are not: model2vec leaves unknown units out, where the source counts "
    "them. Rows are float32. Releases of model2vec before 0.10 may cut texts after 512 units.",
    "onnx": "Padding is on the right, as the tokenizer does it. Rows keep the precision of the source and are "
    "calculated with in float32; a sentence without known units is zeros.",
}


def card(name: str, format: str, kinds: Sequence[str], source: Model) -> str:
    """Render the README.md of an export.

    Args:
        name: Name of the folder.
        format: Format it was exported to.
        kinds: The encoders that are combined, by the names of the paper.
        source: The encoder that was exported; its licence is taken over.

    Returns:
        YAML header and Markdown text.
    """
    license = stated_license(source)
    header = {
        "library_name": LIBRARIES.get(format, "onnx"),
        "tags": ["sentence-similarity", "feature-extraction", "paranmt", *(kind.lower() for kind in kinds)],
        **license,
    }
    notes = [NOTES[format]]
    if "TRIGRAM" in kinds:
        notes.append(TRIGRAM_NOTE)
    if not license:
        notes.append("The source states no licence; ask its authors before you pass this on.")
    text = "\n\n".join(notes)
    return (
        f"---\n{yaml.safe_dump(header, sort_keys=False, allow_unicode=True)}---\n\n# {name}\n\n"
        f"{', '.join(kinds)}: the sentence encoder {source.name} of paranmt-hf, exported with "
        f"`paranmt export --format {format}`.\n\n```python\n{_usage(name, format, len(kinds))}\n```\n\n{text}\n"
    )


def _usage(name: str, format: str, parts: int) -> str:
    suffixes = [""] if parts == 1 else [f"_{number}" for number in range(parts)]
    use = {"model2vec": MODEL2VEC_USE, "onnx": ONNX_USE}.get(format, STOCK_USE)
    return use.format(name=name, suffixes=json.dumps(suffixes))


def stated_license(source: Model) -> dict[str, str]:
    """Read what the header of a model's README.md, or else its training.json, says about its licence."""
    readme, record = source.folder / "README.md", source.folder / "training.json"
    stated: Any = None
    if readme.is_file():
        found = re.match(r"---\s*\n(.*?)\n---\s*(?:\n|\Z)", readme.read_text(encoding="utf8"), re.DOTALL)
        try:
            stated = yaml.safe_load(found[1]) if found else None
        except yaml.YAMLError:
            stated = None
    if (not isinstance(stated, dict) or "license" not in stated) and record.is_file():
        try:
            stated = json.loads(record.read_text(encoding="utf8"))
        except ValueError:
            stated = None
    if not isinstance(stated, dict) or not isinstance(stated.get("license"), str):
        return {}
    return {key: stated[key] for key in LICENSE_KEYS if isinstance(stated.get(key), str)}
