"""Translation of the foreign side of a bitext into English (back-translation).

The method is that of ParaNMT-50M (Wieting & Gimpel 2018), section 3: beam search with 12 beams, of which the best
hypothesis is kept. This module has what is independent of the engine, transformers or CTranslate2: settings, devices,
the interface of translators, and the step from a table of pairs to a table with translations. `engines.py` chooses the
engine.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, Protocol

import numpy as np
import pyarrow as pa

from paranmt_hf.corpus.translation.unusual_lines import in_sentence_case
from paranmt_hf.errors import InputError
from paranmt_hf.util.markers import Advanced, Range, Seed
from paranmt_hf.util.optional import available
from paranmt_hf.util.settings import Settings
from paranmt_hf.util.wording import counted

Engine = Literal["ctranslate2", "transformers"]
Dtype = Literal["auto", "float32", "float16", "bfloat16", "int8"]

LENGTH_PENALTY = 1.0
# The upper limits of these settings: larger values cost memory and time, and improve no translation or paraphrase.
MAX_TOKENS = 10_000
Beams = Annotated[int, Range(at_least=1, at_most=200)]


@dataclass(frozen=True)
class TranslatorConfig(Settings):
    """Which model translates, and how it searches.

    Attributes:
        name: Translation model: folder, Hub id, or `captions-cs-en`, the small one of the package, for captions.
        revision: Branch, tag or commit of a model on the Hub.
        backend: Engine; auto is ctranslate2 on a CPU if it is installed and supports the model.
        beam: Number of beams (section 3: 12).
        hypotheses: Number of translations of each sentence. Each of them is a row, with its rank.
        beam_groups: Number of groups in diverse beam search (arXiv:1610.02424).
        diversity: What a word loses of its log-probability for each hypothesis of an earlier group with the same word
            at the same position.
        sample: Sample hypotheses at random instead of searching for the best.
        temperature: For samples: values below 1 make probable words more frequent.
        top_p: For samples: words are drawn from the most probable ones that together reach this probability.
        draw_seed: Seed of the samples.
        batch_tokens: Batch size: sentences times pieces of the longest (default: 800 on a CPU, 8192 on a GPU).
        max_source_tokens: Maximum length of a source in pieces with the end token; longer ones are dropped.
        max_target_tokens: Maximum length of a translation in pieces with the end token.
        device: cpu, cuda or cuda:N (default: cuda if there is one).
        dtype: Number format; auto is float32 on a CPU and float16 on a GPU; int8 needs ctranslate2.
        source_language: Code of the source language, for NLLB and M2M100.
        target_language: Code of the target language, for NLLB, M2M100 and multi-target OPUS-MT.
    """

    name: str
    revision: Annotated[str | None, Advanced] = None
    backend: Annotated[Literal["auto", "transformers", "ctranslate2"], Advanced] = "auto"
    beam: Beams = 12
    hypotheses: Beams = 1
    beam_groups: Annotated[Beams, Advanced] = 1
    diversity: Annotated[float, Range(above=0), Advanced] = 1.0
    sample: Annotated[bool, Advanced] = False
    temperature: Annotated[float, Range(above=0), Advanced] = 1.0
    top_p: Annotated[float, Range(above=0, at_most=1), Advanced] = 1.0
    draw_seed: Annotated[Seed, Advanced] = 0
    batch_tokens: Annotated[int | None, Range(at_least=1, at_most=10_000_000), Advanced] = None
    max_source_tokens: Annotated[int, Range(at_least=2, at_most=MAX_TOKENS), Advanced] = 256
    max_target_tokens: Annotated[int, Range(at_least=2, at_most=MAX_TOKENS), Advanced] = 256
    device: Annotated[str | None, Advanced] = None
    dtype: Annotated[Dtype, Advanced] = "auto"
    source_language: Annotated[str | None, Advanced] = None
    target_language: Annotated[str | None, Advanced] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.name.strip():
            raise InputError(f"the translation model must be a folder or a Hub id, was {self.name!r}", option="name")
        check_device(self.device)
        if self.dtype == "int8" and self.backend == "transformers":
            raise InputError("dtype int8 needs `backend` ctranslate2, was transformers", option="backend")
        if self.sample and self.beam_groups > 1:
            raise InputError("give either `sample` or `beam_groups`: hypotheses are sampled or searched")
        if not self.sample and self.hypotheses > self.beam:
            raise InputError(
                f"{self.hypotheses} hypotheses need as many beams, and `beam` is {self.beam}; raise it, or lower "
                "`hypotheses`",
                option="hypotheses",
            )
        if self.beam % self.beam_groups:
            raise InputError(
                f"`beam` must be a multiple of `beam_groups`, {self.beam_groups}, was {self.beam}",
                option="beam_groups",
            )

    @property
    def resolved_dtype(self) -> str:
        """Number format of the weights; `auto` is replaced by the format for the device."""
        if self.dtype != "auto":
            return self.dtype
        return "float32" if resolve_device(self.device) == "cpu" else "float16"

    def preferred_engine(self) -> tuple[Engine, bool]:
        """Return the engine by settings and machine, and whether the choice is final.

        If it is not, CTranslate2 translates if it supports the model, and otherwise transformers does.
        """
        if self.backend != "auto":
            return self.backend, True
        if self.dtype == "int8":
            return "ctranslate2", True
        if resolve_device(self.device) != "cpu" or not available("ctranslate2"):
            return "transformers", True
        return "ctranslate2", False

    @property
    def search_identity(self) -> dict[str, object]:
        """Everything that determines the search, except the model and the limits of length, as JSON values."""
        several: dict[str, object] = {"hypotheses": self.hypotheses} if self.hypotheses > 1 else {}
        if self.sample:
            several |= {"temperature": self.temperature, "top_p": self.top_p, "seed": self.draw_seed}
            return {"sample": True} | several
        if self.beam_groups > 1:
            several |= {"beam_groups": self.beam_groups, "diversity": self.diversity}
        return {"beam": self.beam, "length_penalty": LENGTH_PENALTY, "early_stopping": True} | several


def check_device(device: str | None) -> None:
    """Raise an error if a text is not the name of a device."""
    if device is not None and not re.fullmatch(r"cpu|cuda(:\d+)?", device):
        raise InputError(f"device must be cpu, cuda or cuda:N, was {device!r}", option="device")


def resolve_device(device: str | None) -> str:
    """Return the name of the device to use; None means a GPU if there is one, else the CPU.

    Raises:
        InputError: If torch does not see the GPU.
    """
    import torch

    if device is not None and device.startswith("cuda"):
        index = int(device.partition(":")[2] or 0)
        if index >= torch.cuda.device_count():
            found = torch.cuda.device_count()
            raise InputError(
                f"there is no device {device!r}: torch sees {counted(found, 'GPU')}; use cpu", option="device"
            )
    return device or ("cuda" if torch.cuda.is_available() else "cpu")


def default_batch_tokens(device: str) -> int:
    """Return the default batch size for a device, which gives it enough work in moderate memory."""
    return 800 if device == "cpu" else 8192


@dataclass(frozen=True)
class Translations:
    """Translations of sentences, in the order of these."""

    # The hypotheses [hypothesis], one for each sentence if there are no `owners`; None if a source has too many pieces
    texts: list[str | None]
    # Score of each hypothesis [hypothesis], float32, at most 0, NaN without a hypothesis: the mean of the natural
    # logarithms of the probabilities of its target tokens, the end included. A forced language token does not count.
    # A hypothesis that was cut at the largest length has no end token.
    scores: np.ndarray
    # Index of the sentence of each hypothesis [hypothesis], int64, ascending; None if each sentence has exactly one.
    # The hypotheses of a sentence are all different, and the best comes first
    owners: np.ndarray | None = None


class Translator(Protocol):
    """Anything that translates sentences.

    Attributes:
        identity: Everything that determines the translations, as JSON values, `max_source_tokens` among them. Batch
            size, device and threads do not belong to it.
    """

    identity: dict[str, object]

    def translate(self, sentences: Sequence[str]) -> Translations:
        """Translate sentences; white space of translations is normalised."""


def translate_table(batch: pa.Table | pa.RecordBatch, translator: Translator) -> tuple[pa.Table, dict[str, int]]:
    """Translate the column `source` of aligned pairs; lines in capitals are translated in sentence case.

    Args:
        batch: Pairs with `id`, `source` and `reference`, white space normalised. Sentences are sorted by length over
            the whole table, so a larger table makes fuller batches.
        translator: Translates the sentences.

    Returns:
        The pairs with a translation, in the order of the input, and the number of sentences left out, by reason. The
        table has also `translation`, `translation_score` (float32) and, if sentences have several hypotheses, `rank`
        (int32, from 1); other columns are unchanged.
    """
    result = translator.translate(in_sentence_case(batch.column("source")).to_pylist())
    limit = translator.identity.get("max_source_tokens", "the permitted number of")
    reasons = {
        f"source over {limit} pieces": sum(text is None for text in result.texts),
        "empty translation": sum(text == "" for text in result.texts),
    }
    rank = {}
    if result.owners is not None:
        batch = batch.take(pa.array(result.owners))
        # Index of each hypothesis, less the index of the first one of its sentence.
        index_in_sentence = np.arange(len(result.owners)) - np.searchsorted(result.owners, result.owners)
        rank = {"rank": pa.array(index_in_sentence + 1, pa.int32())}
    table = pa.table(
        {
            "id": batch.column("id"),
            **rank,
            "reference": batch.column("reference"),
            "translation": pa.array(result.texts, pa.string()),
            "source": batch.column("source"),
            "translation_score": pa.array(result.scores, pa.float32()),
            **{name: batch.column(name) for name in batch.schema.names if name not in ("id", "reference", "source")},
        }
    )
    kept = table.filter(pa.array([bool(text) for text in result.texts], pa.bool_()))
    return kept, {reason: count for reason, count in reasons.items() if count}
