"""Translation with CTranslate2, which searches as transformers does, several times as fast on a CPU."""

from __future__ import annotations

import hashlib
import json
import logging
import math
import os
from pathlib import Path
from typing import Any

import torch

from paranmt_hf.corpus.translation.batches import BatchTranslator, Hypotheses
from paranmt_hf.corpus.translation.checkpoint import Checkpoint
from paranmt_hf.corpus.translation.translator import (
    LENGTH_PENALTY,
    TranslatorConfig,
    default_batch_tokens,
    resolve_device,
)
from paranmt_hf.errors import InputError
from paranmt_hf.hub.pretrained import read_encoder_decoder
from paranmt_hf.util.files import make_once
from paranmt_hf.util.optional import require

logger = logging.getLogger(__name__)


def cache_folder() -> Path:
    """Return the folder of converted models: in the folder that `PARANMT_CACHE` names, else in the user's cache."""
    root = os.environ.get("PARANMT_CACHE")
    return (Path(root).expanduser() if root else Path.home() / ".cache" / "paranmt_hf") / "ctranslate2"


def converted(checkpoint: Checkpoint) -> Path:
    """Convert a model to the format of CTranslate2, in float32, unless it is in the cache; return the folder.

    The folder is named after the checksum of the model and the version of CTranslate2.
    """
    version = require("ctranslate2", "ctranslate2").__version__
    files = checkpoint.files
    # Raise the last number if the conversion changes, so that folders made before are not used.
    key = hashlib.sha256(f"{files.name}\n{files.revision}\n{version}\n1".encode()).hexdigest()

    def make(folder: Path) -> None:
        logger.info("converting %s for CTranslate2 into %s", files.name, folder)
        _convert(checkpoint, folder)

    return make_once(cache_folder() / key, make, advice="make room, or name another folder in PARANMT_CACHE")


def unsuitable(config: TranslatorConfig, checkpoint: Checkpoint) -> str | None:
    """Return why CTranslate2 cannot run a model with some settings, or None if it can; no weights are read."""
    if config.sample or config.beam_groups > 1:
        # CTranslate2 has one stream of random numbers per thread, so a sample would depend on earlier sentences.
        return (
            "backend ctranslate2 has no diverse beams, and its samples depend on the batch; use backend transformers"
        )
    device, dtype = resolve_device(config.device).partition(":")[0], config.resolved_dtype
    ctranslate2 = require("ctranslate2", "ctranslate2")
    # A build without GPU support raises instead of answering.
    usable = device == "cpu" or ctranslate2.get_cuda_device_count() > 0
    supported = ctranslate2.get_supported_compute_types(device) if usable else ["nothing: it sees no GPU"]
    if dtype not in supported:
        return f"dtype {dtype!r} is not one that CTranslate2 can use on this {device}: {', '.join(sorted(supported))}"
    model, name = checkpoint.config, checkpoint.files.name
    if model.model_type not in ("marian", "m2m_100"):
        return (
            f"backend ctranslate2 takes marian and m2m_100 models, and {name!r} is a {model.model_type} model; use "
            "backend transformers"
        )
    # The converter drops the last row of the embeddings, and decoding starts from zeros. That is right only for models
    # whose last row is the padding symbol and also the start symbol.
    if model.model_type == "marian" and not (
        model.share_encoder_decoder_embeddings and checkpoint.pad == checkpoint.start[0] == model.vocab_size - 1
    ):
        return (
            f"backend ctranslate2 needs one vocabulary for both sides with the padding symbol last, which {name!r} "
            "has not; use backend transformers"
        )
    return None


class _Rows:
    """Stands in for the tokenizer in the converter, and has one name for every row of the embeddings, in order.

    Some tokenizers leave language codes out of their vocabulary, and the converter would then count the rows wrongly.
    """

    def __init__(self, checkpoint: Checkpoint) -> None:
        tokenizer, size = checkpoint.tokenizer, checkpoint.config.vocab_size
        self.bos_token, self.eos_token, self.unk_token = tokenizer.bos_token, tokenizer.eos_token, tokenizer.unk_token
        self.special_tokens_map: dict[str, str] = {}
        self.num_madeup_words = 0
        known = {index: token for token, index in tokenizer.get_vocab().items()}
        self._names = [known.get(index, f"<row {index}>") for index in range(size)]

    def get_vocab(self) -> dict[str, int]:
        """Return the index of the row of each name."""
        return {name: index for index, name in enumerate(self._names)}

    def convert_ids_to_tokens(self, index: int) -> str:
        """Return the name of a row."""
        return self._names[index]


def _convert(checkpoint: Checkpoint, target: Path) -> None:
    """Convert a model into an empty folder.

    Raises:
        InputError: If CTranslate2 does not support the model.
    """
    from ctranslate2.converters import TransformersConverter

    model = read_encoder_decoder(checkpoint.files, torch.float32, "translation model")
    if checkpoint.config.model_type == "marian" and model.get_input_embeddings().weight[checkpoint.pad].any():
        raise InputError(
            f"backend ctranslate2 starts from zeros and {checkpoint.files.name!r} from a trained start symbol; "
            "use backend transformers"
        )
    converter = TransformersConverter(str(checkpoint.files.folder))
    # The model is loaded here, because the converter would accept pickled weights and keep their number format.
    converter.load_model = lambda *_, **__: model
    converter.load_tokenizer = lambda *_, **__: _Rows(checkpoint)
    try:
        # The converter creates the folder itself.
        target.rmdir()
        converter.convert(str(target))
    except (ValueError, NotImplementedError, KeyError, AttributeError) as error:
        reason = " ".join(str(error).split())[:200]
        raise InputError(f"CTranslate2 cannot convert {checkpoint.files.name!r}: {reason}") from error


class CTranslate2Translator(BatchTranslator):
    """Translates with CTranslate2 (ParaNMT-50M, section 3).

    It finds the same hypotheses as `TransformersTranslator`, with one exception: right after a language token it
    accepts the end only if that is the most probable token, so an empty hypothesis is not among the first `beam`
    complete ones.

    Args:
        config: Settings of the translation.
        checkpoint: The model without its weights, if it is loaded already.
        threads: Number of CPU threads; None for as many as torch uses.

    Raises:
        InputError: If CTranslate2 does not support the model or the settings.
    """

    def __init__(
        self, config: TranslatorConfig, checkpoint: Checkpoint | None = None, threads: int | None = None
    ) -> None:
        checkpoint = checkpoint or Checkpoint(config)
        if reason := unsuitable(config, checkpoint):
            raise InputError(reason)
        device, _, index = resolve_device(config.device).partition(":")
        # On a CPU, several batches at once with a thread each are faster than all threads on one batch. A GPU takes
        # one batch at a time.
        workers = (threads or torch.get_num_threads()) if device == "cpu" else 1
        batch_tokens = config.batch_tokens or default_batch_tokens(device)
        super().__init__(checkpoint, batch_tokens=batch_tokens, workers=workers, count=config.hypotheses)
        self._beam = config.beam
        folder = converted(checkpoint)
        self._tokens = json.loads((folder / "shared_vocabulary.json").read_text(encoding="utf8"))
        self._ids = {token: index for index, token in enumerate(self._tokens)}
        self._engine = _open(folder, device, int(index or 0), config.resolved_dtype, workers)
        self.identity = checkpoint.identity("ctranslate2")

    def search(self, sources: list[list[int]]) -> Hypotheses:
        prefix = [self._tokens[index] for index in self._checkpoint.start[1:]]
        results = self._engine.translate_batch(
            [[self._tokens[index] for index in source] for source in sources],
            target_prefix=[prefix] * len(sources) if prefix else None,
            beam_size=self._beam,
            num_hypotheses=self._count,
            length_penalty=LENGTH_PENALTY,
            max_input_length=0,
            max_decoding_length=self._checkpoint.max_target_tokens + len(prefix),
            min_decoding_length=0,
            return_scores=True,
            return_end_token=True,
        )
        hypotheses, scores = [], []
        for result in results:
            ids_found = [[self._ids[token] for token in tokens[len(prefix) :]] for tokens in result.hypotheses]
            missing = self._count - len(ids_found)
            hypotheses += ids_found + ids_found[:1] * missing
            scores += list(result.scores) + list(result.scores[:1]) * missing
        # CTranslate2 divides by a length that counts the prefix; here it does not count.
        means = [
            # A hypothesis without any token, not even the end, has no score.
            score * (len(ids) + len(prefix)) / len(ids) if ids else math.nan
            for score, ids in zip(scores, hypotheses, strict=True)
        ]
        return hypotheses, means


def _open(folder: Path, device: str, index: int, dtype: str, workers: int) -> Any:  # noqa: ANN401
    """Open a converted model on a device."""
    import ctranslate2

    try:
        return ctranslate2.Translator(
            str(folder),
            device=device,
            device_index=index,
            compute_type=dtype,
            inter_threads=workers,
            intra_threads=1 if device == "cpu" else 0,
        )
    except RuntimeError as error:
        raise InputError(
            f"CTranslate2 cannot open the converted model {str(folder)!r} ({error}); if it is damaged, remove it"
        ) from error
