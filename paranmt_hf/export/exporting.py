"""Write encoders for other libraries: as stock sentence-transformers or model2vec models, or as ONNX graphs."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from safetensors.numpy import save_file
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import LSTM, Pooling, StaticEmbedding, WordEmbeddings
from tokenizers import Tokenizer
from torch import nn

from paranmt_hf.encoders.loading import SETTINGS, SentenceEncoder, load, save
from paranmt_hf.encoders.modules.average import AverageEmbedding
from paranmt_hf.encoders.modules.combination import Combination
from paranmt_hf.encoders.modules.lstm import AverageDirections
from paranmt_hf.encoders.modules.trigram import TrigramEmbedding
from paranmt_hf.encoders.modules.word import word_tokenizer
from paranmt_hf.errors import InputError
from paranmt_hf.export.card import card
from paranmt_hf.export.onnx import Encode, read_onnx, write_onnx
from paranmt_hf.export.trigram_tokenizer import alphabet_of, trigram_tokenizer
from paranmt_hf.hub.repository import ASSETS, locate
from paranmt_hf.util.optional import available, require

# The name of the stock module that older releases of sentence-transformers know too, and its folder.
STATIC_CLASS = "sentence_transformers.models.StaticEmbedding"
STATIC_FOLDER = "0_StaticEmbedding"
# How often the sample is encoded to measure the speed.
TIMES = 3
# What every export is checked on, beside the sentences of the embedded sample.
CHECKS = (
    "",
    "A man isn't playing 3.5 guitars; he's listening.",
    "  ",
    "“Ça va?” — l'été, zyxqj \u4e2d_\u0130 n't ’s ., .5",
)


@dataclass(frozen=True)
class Format:
    """A format to export to.

    Attributes:
        serves: What it can hold, for messages.
        parts: The single encoders it can hold; nothing where it can hold all of them and their combinations.
        write: Writes the files into a folder that exists.
        read: Loads the files as a reader would and gives what encodes with them; None where the package is missing.
        tolerance: How far its vectors may be from ours, as `_difference` measures.
    """

    serves: str
    parts: tuple[str, ...]
    write: Callable[[SentenceEncoder, Path], None]
    read: Callable[[Path], Encode | None]
    tolerance: float


@dataclass(frozen=True)
class Exported:
    """What `export_encoder` wrote.

    Attributes:
        folder: Where it is.
        format: Name of the format.
        encoder: The encoder by the names of the paper, such as `WORD,TRIGRAM`.
        dimension: Dimensions of a sentence vector.
        difference: Largest difference from our vectors, or of model2vec from a cosine of 1; None where the package
            that reads the format is not installed, so that nothing was checked.
        speed: Sentences of the embedded sample a second, as a reader encodes them on this machine; None as above.
        own_speed: Sentences a second of `encode` here.
        alphabet: Number of characters that trigrams of the vocabulary hold; None without trigrams.
    """

    folder: Path
    format: str
    encoder: str
    dimension: int
    difference: float | None
    speed: float | None
    own_speed: float
    alphabet: int | None


def export_encoder(
    model: str | Path, out: str | Path, *, format: str = "static", revision: str | None = None
) -> Exported:
    """Write an encoder for another library, and check that this gives the same vectors.

    Args:
        model: Folder or Hub id of the encoder, or `embedded`.
        out: Folder to write; must not exist or be empty.
        format: `static` (WORD as a stock sentence-transformers model), `tokenizers` (TRIGRAM as one), `model2vec`
            (WORD or TRIGRAM), `onnx` (each of our encoders).
        revision: Branch, tag or commit on the Hub.

    Raises:
        InputError: The format is unknown or does not hold this encoder, a package is missing, or `out` is not free.
    """
    if format not in FORMATS:
        raise InputError(f"format must be one of {', '.join(FORMATS)}, was {format!r}")
    out = Path(out).expanduser()
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise InputError(f"{out} exists and is not an empty folder; name another one or delete it")
    if format == "onnx":
        require("onnx", "onnx")
    source = locate(str(model), revision)
    encoder = load(model, revision=revision, device="cpu")
    kinds, mode = _check(encoder, format, source.name)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=out.parent, prefix=".exporting-") as scratch:
            aside = Path(scratch) / "model"
            aside.mkdir()
            FORMATS[format].write(encoder, aside)
            (aside / "README.md").write_text(card(out.name, format, kinds, source), encoding="utf8")
            _make_readable(aside)
            checked = _measure(encoder, aside, format)
            if out.exists():
                out.rmdir()
            aside.rename(out)
    except OSError as error:
        raise InputError(f"cannot write the folder {out}: {error}") from error
    alphabet = {character for part in _trigrams(encoder) for character in alphabet_of(part.units)}
    name = _joined(kinds, mode)
    return Exported(out, format, name, encoder.get_embedding_dimension() or 0, *checked, len(alphabet) or None)


def _parts(encoder: SentenceEncoder) -> tuple[list[list[nn.Module]], str]:
    """Modules of each encoder that is combined, and how they are."""
    if encoder.averages is not None:
        averages, mode = encoder.averages
        return [[part] for part in averages], mode
    modules = list(encoder)
    if len(modules) == 1 and isinstance(modules[0], Combination):
        return [list(part) for part in modules[0].parts], modules[0].mode  # type: ignore[call-overload]
    return [modules], "concatenate"


def _kind(modules: Sequence[nn.Module]) -> str | None:
    """Name one encoder as the paper does; None for what is not one of ours."""
    if isinstance(modules[0], AverageEmbedding):
        return "TRIGRAM" if isinstance(modules[0], TrigramEmbedding) else "WORD"
    if len(modules) < 3 or not isinstance(modules[0], WordEmbeddings) or not isinstance(modules[1], LSTM):
        return None
    pooling = modules[-1]
    known = isinstance(pooling, Pooling) and pooling.pooling_mode in ("mean", "max")
    if not known or len(modules) > 4 or not all(isinstance(one, AverageDirections) for one in modules[2:-1]):
        return None
    if modules[1].num_layers != 1:
        return None
    return "BLSTM" if modules[1].bidirectional else "LSTM"


def _joined(kinds: Sequence[str], mode: str) -> str:
    return ("+" if mode == "add" else ",").join(kinds)


def _trigrams(encoder: SentenceEncoder) -> list[TrigramEmbedding]:
    return [modules[0] for modules in _parts(encoder)[0] if isinstance(modules[0], TrigramEmbedding)]


def _check(encoder: SentenceEncoder, format: str, name: str) -> tuple[list[str], str]:
    """Name the encoders that are combined; refuse what the format cannot hold."""
    parts, mode = _parts(encoder)
    kinds = [_kind(modules) for modules in parts]
    if None in kinds:
        raise InputError(
            f"{name} is no encoder of this package (WORD, TRIGRAM, LSTM, BLSTM and combinations), and only these "
            "can be exported"
        )
    named = [kind for kind in kinds if kind]
    allowed = FORMATS[format].parts
    if allowed and (len(named) > 1 or named[0] not in allowed):
        better = {"WORD": "static", "TRIGRAM": "tokenizers"}.get(_joined(named, mode), "onnx")
        raise InputError(
            f"format {format} holds {FORMATS[format].serves}, and {name} is {_joined(named, mode)}; "
            f"format {better} holds it"
        )
    if format in ("onnx", "model2vec") and (encoder.truncate_dim is not None or encoder.default_prompt_name):
        raise InputError(
            f"{name} has a default prompt or a truncate_dim, which format {format} cannot hold; remove them from its "
            "config_sentence_transformers.json"
        )
    if format == "model2vec" and bool(parts[0][0].weight[0].any()):  # type: ignore[index]
        raise InputError(
            f"{name} has a trained vector for unknown units, which model2vec leaves out; use format "
            f"{'tokenizers' if named == ['TRIGRAM'] else 'static'}"
        )
    return named, mode


def _single(encoder: SentenceEncoder) -> tuple[Tokenizer, torch.Tensor]:
    """Tokenizer and table [row, dimension], float32, of an encoder that is WORD or TRIGRAM."""
    assert encoder.averages is not None
    (part,), _ = encoder.averages
    make = trigram_tokenizer if isinstance(part, TrigramEmbedding) else word_tokenizer
    return make(part.units), part.weight.cpu()


def _write_static(encoder: SentenceEncoder, folder: Path) -> None:
    """Write a stock module; float32, because it would average narrower rows in their own precision."""
    tokenizer, weight = _single(encoder)
    settings = {name: getattr(encoder, name) for name in SETTINGS}
    save(SentenceTransformer(modules=[StaticEmbedding(tokenizer, weight)], device="cpu", **settings), folder)
    # Releases before 5 take a module without a folder of its own for a Transformer.
    (folder / STATIC_FOLDER).mkdir()
    for file in ("model.safetensors", "tokenizer.json"):
        (folder / file).rename(folder / STATIC_FOLDER / file)
    _write_modules(folder, STATIC_FOLDER)


def _write_modules(folder: Path, path: str) -> None:
    entry = {"idx": 0, "name": "0", "path": path, "type": STATIC_CLASS}
    (folder / "modules.json").write_text(json.dumps([entry], indent=2), encoding="utf8")


def _write_model2vec(encoder: SentenceEncoder, folder: Path) -> None:
    """Write what model2vec's `StaticModel` reads; by modules.json it is a sentence-transformers model too."""
    tokenizer, weight = _single(encoder)
    save_file({"embeddings": weight.numpy()}, folder / "model.safetensors")
    tokenizer.save(str(folder / "tokenizer.json"), pretty=False)
    config = {"normalize": False, "max_length": None, "embedding_dtype": "float32"}
    (folder / "config.json").write_text(json.dumps(config, indent=2), encoding="utf8")
    _write_modules(folder, ".")


def _write_onnx(encoder: SentenceEncoder, folder: Path) -> None:
    write_onnx(*_parts(encoder), folder)


def _read_static(folder: Path) -> Encode | None:
    return SentenceTransformer(str(folder), device="cpu").encode


def _read_model2vec(folder: Path) -> Encode | None:
    if not available("model2vec"):
        return None
    return require("model2vec", "model2vec").StaticModel.from_pretrained(folder).encode


FORMATS = {
    "static": Format("WORD alone", ("WORD",), _write_static, _read_static, 1e-6),
    "tokenizers": Format("TRIGRAM alone", ("TRIGRAM",), _write_static, _read_static, 1e-6),
    "model2vec": Format("WORD or TRIGRAM alone", ("WORD", "TRIGRAM"), _write_model2vec, _read_model2vec, 1e-6),
    "onnx": Format("all of our encoders", (), _write_onnx, read_onnx, 1e-5),
}


def _make_readable(folder: Path) -> None:
    """Give files the folder's permissions; some versions of safetensors let only their owner read them."""
    for path in folder.rglob("*"):
        if path.is_file():
            path.chmod(folder.stat().st_mode & 0o666)


def _measure(encoder: SentenceEncoder, folder: Path, format: str) -> tuple[float | None, float | None, float]:
    """Encode the embedded sample with the export and without.

    Returns:
        The largest difference, and the sentences a second of the export and of `encode`.
    """
    sample = (ASSETS / "sample" / "sample.en").read_text(encoding="utf8").splitlines()
    theirs, ours = FORMATS[format].read(folder), encoder.encode
    own_vectors, own_speed = _timed(ours, sample)
    if theirs is None:
        return None, None, own_speed
    vectors, speed = _timed(theirs, sample)
    distance = _turn if format == "model2vec" else _difference
    difference = max(distance(vectors, own_vectors), distance(theirs(list(CHECKS)), ours(list(CHECKS))))
    if not difference <= FORMATS[format].tolerance:
        raise RuntimeError(
            f"the {format} export gives other vectors than the encoder, by {difference:.1e}; not written"
        )
    return difference, speed, own_speed


def _timed(encode: Encode, sample: list[str]) -> tuple[np.ndarray, float]:
    """Encode sentences, and tell how many in a second at the best of some times."""
    seconds = []
    for _ in range(TIMES):
        start = time.perf_counter()
        vectors = encode(sample)
        seconds.append(time.perf_counter() - start)
    return vectors, len(sample) / min(seconds)


def _difference(theirs: np.ndarray, ours: np.ndarray) -> float:
    """Largest difference of a value, in parts of the largest value where that is above 1."""
    return float(np.abs(theirs - ours).max() / max(1, np.abs(ours).max()))


def _turn(theirs: np.ndarray, ours: np.ndarray) -> float:
    """Largest difference of a cosine from 1; infinite where only one vector is zeros."""
    lengths = np.linalg.norm(theirs.astype(np.float64), axis=1), np.linalg.norm(ours.astype(np.float64), axis=1)
    if ((lengths[0] == 0) != (lengths[1] == 0)).any():
        return float("inf")
    some = lengths[1] > 0
    dots = (theirs.astype(np.float64) * ours).sum(axis=1)[some]
    return float(np.abs(1 - dots / (lengths[0] * lengths[1])[some]).max(initial=0))
