"""The teachers of a training: models, or functions of Python files and installed modules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from paranmt_hf.encoders.loading import load
from paranmt_hf.errors import InputError, refuse
from paranmt_hf.hub.repository import Model, check_name, locate, plain_name
from paranmt_hf.util.files import checksum
from paranmt_hf.util.functions import explained, file_of, is_function, load_function
from paranmt_hf.util.machine import torch_threads
from paranmt_hf.util.wording import counted

Encode = Callable[[list[str]], np.ndarray]
MOST_TEXTS = 1_000  # Maximum number of texts that a function gets at once


@dataclass(frozen=True)
class Teacher:
    """A teacher whose files were found.

    Attributes:
        name: Name in records and on cards: the name of a folder, a Hub id, or `FILE.py:NAME` without folders.
        revision: What determines its vectors, besides the prompt: the revision of a model; of a function the checksum
            of the file that defines it, and its name.
        source: The files of a model, or the path of a function, `FILE.py:NAME` or `MODULE:NAME`.
        prompt: Text in front of each sentence; None for the default prompt of a model.
    """

    name: str
    revision: str
    source: Model | str
    prompt: str | None = None

    @property
    def identity(self) -> str:
        """What determines its vectors, as text."""
        return self.revision if self.prompt is None else f"{self.revision} after {self.prompt!r}"

    def open(self, device: str | None, precision: str) -> tuple[Encode, str]:
        """Load the teacher.

        Args:
            device: Device of a model; None for the best one.
            precision: `bf16` for bfloat16, if it is fast on the device; otherwise float32.

        Returns:
            A function that encodes texts into vectors [text, dimension], and the precision that it computes in.
        """
        if isinstance(self.source, str):
            function = load_function(self.source, "teacher")
            return _checked(function, self.source, self.prompt or ""), "its own precision"
        return _encode_with(self.source, self.prompt, device, precision)


def check_teacher(name: str) -> None:
    """Reject the name of a teacher that could not be found, without downloading or loading it."""
    if is_function(name):
        file_of(name, "teacher")
        return
    refuse(
        name.endswith(".py") and Path(name).expanduser().is_file(),
        f"{name} is a file of Python; name the function in it that teaches, as {name}:NAME",
        option="teacher",
    )
    check_name(name)


def find_teachers(names: Sequence[str], prompts: Sequence[str] | None) -> list[Teacher]:
    """Find teachers, and download those of the Hub that are missing.

    Args:
        names: Folders, Hub ids, and functions as `FILE.py:NAME` or `MODULE:NAME`.
        prompts: The prompt of each; None for their default prompts.
    """
    refuse(
        prompts is not None and len(prompts) != len(names),
        f"given are {counted(len(names), 'teacher')} and {counted(len(prompts or ()), 'prompt')}; give each a prompt, "
        "'' for none",
        option="teacher_prompt",
    )
    given: Sequence[str | None] = prompts or [None] * len(names)
    return [_find(name, prompt) for name, prompt in zip(names, given, strict=True)]


def fast_in_bf16(device: str) -> bool:
    """Whether bfloat16 is faster than float32 on this kind of device, such as `cpu`."""
    import torch

    known = torch.cpu.get_capabilities()
    return device != "cpu" or bool(known.get("avx512_bf16") or known.get("amx_bf16"))


def _find(name: str, prompt: str | None) -> Teacher:
    if not is_function(name):
        model = locate(name)
        return Teacher(plain_name(name), model.revision, model, prompt)
    file, function = file_of(name, "teacher"), name.rpartition(":")[2]
    return Teacher(_plain(name), f"sha256:{checksum(file)}:{function}", name, prompt or None)


def _plain(name: str) -> str:
    """Return the name of a function without the folders of its file."""
    place, _, function = name.rpartition(":")
    return f"{Path(place).name}:{function}"


def _checked(function: Callable[[list[str]], object], name: str, prompt: str) -> Encode:
    """Wrap a function: it gets the prompt in front of each text, and what it returns is checked."""
    widths: set[int] = set()

    def encode_batch(texts: list[str]) -> np.ndarray:
        with explained(f"the teacher {name}", "teacher"):
            vectors = np.asarray(function([prompt + text for text in texts]))
        if vectors.ndim != 2 or len(vectors) != len(texts) or vectors.dtype.kind != "f":
            raise InputError(
                f"the teacher {name} must return vectors [text, dimension] of floats, a row for each of "
                f"{len(texts):,} texts; it returned {vectors.dtype} {list(vectors.shape)}",
                option="teacher",
            )
        refuse(
            not np.isfinite(vectors).all(),
            f"the teacher {name} returned numbers that are not finite",
            option="teacher",
        )
        widths.add(vectors.shape[1])
        found = " and ".join(map(str, sorted(widths)))
        refuse(len(widths) > 1, f"the teacher {name} returned vectors of {found} dimensions", option="teacher")
        return vectors.astype(np.float32)

    def encode(texts: list[str]) -> np.ndarray:
        starts = range(0, len(texts), MOST_TEXTS)
        return np.concatenate([encode_batch(texts[start : start + MOST_TEXTS]) for start in starts])

    return encode


def _encode_with(model: Model, prompt: str | None, device: str | None, precision: str) -> tuple[Encode, str]:
    """Load a model as a teacher; arguments and result as of `Teacher.open`."""
    import torch

    teacher = load(model, device=device)
    in_bf16 = precision == "bf16" and fast_in_bf16(teacher.device.type)
    # On a CPU small batches are faster, because their states stay in its cache.
    size = 32 if teacher.device.type == "cpu" else 512

    def encode_batch(sentences: list[str]) -> np.ndarray:
        # Rounding to bfloat16 changes a teacher's cosines far less than the student can follow.
        with torch.autocast(teacher.device.type, torch.bfloat16, enabled=in_bf16):
            vectors = teacher.encode(
                sentences, prompt=prompt, batch_size=size, show_progress_bar=False, convert_to_tensor=True
            )
        return np.asarray(vectors.float().cpu().numpy())

    # The first call changes settings of the tokenizer. After it, several threads can use the tokenizer.
    encode_batch([""])

    def encode(sentences: list[str]) -> np.ndarray:
        with torch_threads(teacher.device.type) as pool:
            batches = (sentences[start : start + size] for start in range(0, len(sentences), size))
            return np.concatenate(list(pool.map(encode_batch, batches)))

    return encode, "bfloat16" if in_bf16 else "float32"
