"""Translation models in the transformers format: reading them, and translating with torch.

Named after Marian, the family of the OPUS-MT models; NLLB, M2M100 and other encoder-decoders go the same way.
"""

from __future__ import annotations

import contextlib
import logging
import math
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from safetensors import SafetensorError
from transformers import AutoConfig, AutoModelForSeq2SeqLM, AutoTokenizer
from transformers import logging as transformers_logging
from transformers.cache_utils import DynamicCache, EncoderDecoderCache
from transformers.modeling_outputs import BaseModelOutput

from paranmt_hf.corpus.translation.translator import LENGTH_PENALTY, BatchTranslator, TranslatorConfig
from paranmt_hf.errors import InputError
from paranmt_hf.hub.repository import Model, locate

logger = logging.getLogger(__name__)

# What transformers, safetensors and the tokenizers raise for folders that are not, or no longer, a model.
_UNREADABLE = (OSError, ValueError, TypeError, KeyError, AssertionError, ImportError, RuntimeError, SafetensorError)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Silence progress bars, load reports and the advice to install sacremoses, which Marian does not use."""
    level, bars = transformers_logging.get_verbosity(), transformers_logging.is_progress_bar_enabled()
    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*sacremoses")
            yield
    finally:
        transformers_logging.set_verbosity(level)
        if bars:
            transformers_logging.enable_progress_bar()


def resolve_device(device: str | None) -> str:
    """Name the device to use.

    Raises:
        InputError: A GPU is asked for and there is none.
    """
    if device is not None and device.startswith("cuda"):
        number = int(device.partition(":")[2] or 0)
        if number >= torch.cuda.device_count():
            raise InputError(f"device {device!r} is not there: torch sees {torch.cuda.device_count()} GPUs; use cpu")
    return device or ("cuda" if torch.cuda.is_available() else "cpu")


def resolve_dtype(config: TranslatorConfig) -> str:
    """Name the number format to use."""
    if config.dtype != "auto":
        return config.dtype
    return "float32" if resolve_device(config.device) == "cpu" else "float16"


def default_batch_tokens(device: str) -> int:
    """Size of a batch where none is asked for: enough work for the device, moderate memory."""
    return 800 if device == "cpu" else 8192


def read_weights(files: Model, dtype: torch.dtype) -> Any:  # noqa: ANN401 - transformers has no common type
    """Read the weights of an encoder-decoder in the given number format, whatever the folder's own.

    Raises:
        InputError: The files are damaged, incomplete, or not those of an encoder-decoder.
    """
    try:
        with _quiet():
            model, report = AutoModelForSeq2SeqLM.from_pretrained(
                files.folder,
                dtype=dtype,
                use_safetensors=True,
                trust_remote_code=False,
                local_files_only=True,
                output_loading_info=True,
            )
    except _UNREADABLE as error:
        reason = " ".join(str(error).split())[:200]
        raise InputError(f"{str(files.folder)!r} cannot be read as a translation model: {reason}") from error
    absent = sorted(report["missing_keys"])
    if absent:
        # transformers would fill these in at random and go on.
        raise InputError(f"{str(files.folder)!r} lacks {len(absent)} weights of the model, such as {absent[0]!r}")
    return model.eval()


class Checkpoint:
    """Everything of a model but its weights: text to pieces and back, and the ids that steer the search.

    Args:
        config: Names the model, the languages and the limits.

    Attributes:
        files: Where the model is, and what names it for good.
        config: Configuration of the model as transformers reads it.
        tokenizer: Tokenizer of the model.
        start: Ids that every target begins with: the start token and, for a multilingual model, the target language.
        end: Id of the end token.
        pad: Id of the padding token.
        max_source_tokens: Longest source in pieces, end token included.
        max_target_tokens: Longest target in pieces, end token included, `start` not.
    """

    def __init__(self, config: TranslatorConfig) -> None:
        self.files = locate(config.name, config.revision, kind="translator")
        try:
            with _quiet():
                self.config = AutoConfig.from_pretrained(self.files.folder, trust_remote_code=False)
                self.tokenizer = AutoTokenizer.from_pretrained(
                    self.files.folder, trust_remote_code=False, local_files_only=True
                )
        except _UNREADABLE as error:
            reason = " ".join(str(error).split())[:200]
            raise InputError(
                f"{str(self.files.folder)!r} has no readable configuration and tokenizer: {reason}"
            ) from error
        if not getattr(self.config, "is_encoder_decoder", False):
            raise InputError(f"{config.name!r} is a {self.config.model_type} model, not an encoder-decoder")
        # A sentence that happens to contain "</s>" is text all the same.
        self.tokenizer.split_special_tokens = True
        self.end = self._token("eos_token_id")
        self.pad = self._token("pad_token_id")
        self._prefix = ""
        language = self._set_languages(config.source_language, config.target_language)
        self.start = [self._token("decoder_start_token_id"), *language]
        positions = getattr(self.config, "max_position_embeddings", None) or math.inf
        self.max_source_tokens = int(min(config.max_source_tokens, positions))
        self.max_target_tokens = int(min(config.max_target_tokens, positions - len(language)))

    def _token(self, name: str) -> int:
        value = getattr(self.config, name, None)
        if not isinstance(value, int):
            raise InputError(f"the configuration of {self.files.name!r} must hold one {name}; it holds {value!r}")
        return value

    def _set_languages(self, source: str | None, target: str | None) -> list[int]:
        """Set the languages; return the ids that a target begins with because of them."""
        if self.config.model_type == "marian":
            self._set_marian_target(source, target)
            return []
        if not hasattr(self.tokenizer, "src_lang"):
            if source or target:
                raise InputError(f"{self.files.name!r} takes no language codes; got {source or target!r}")
            return []
        known = getattr(self.tokenizer, "lang_code_to_id", None) or {
            token: number
            for token, number in self.tokenizer.get_added_vocab().items()
            if re.fullmatch(r"[a-z]{2,3}_[A-Za-z]{2,4}", token)
        }
        for name, code in (("source_language", source), ("target_language", target)):
            if code not in known:
                raise InputError(
                    f"{self.files.name!r} needs {name} to be one of its {len(known)} codes, such as "
                    f"{', '.join(sorted(known)[:3])}; got {code!r}"
                )
        self.tokenizer.src_lang = source
        return [known[str(target)]]

    def _set_marian_target(self, source: str | None, target: str | None) -> None:
        if source:
            raise InputError(f"source_language has no use with a Marian model; got {source!r}")
        codes = self.tokenizer.supported_language_codes
        if codes and not target:
            logger.warning("%s knows several target languages and target_language is not set", self.files.name)
        if target:
            if f">>{target}<<" not in codes:
                known = ", ".join(code.strip("<>") for code in codes[:5]) or "none"
                raise InputError(
                    f"target_language must be a code that {self.files.name!r} has ({known}); got {target!r}"
                )
            self._prefix = f">>{target}<< "

    def encode(self, sentences: list[str]) -> list[list[int]]:
        """Cut sentences into piece ids, language and end token included; nothing is cut off."""
        if self.config.model_type == "marian":
            # Without the blank the tokenizer takes text that begins with ">>...<<" for a language code.
            sentences = [self._prefix + (f" {text}" if text.startswith(">>") else text) for text in sentences]
        with _quiet():
            return self.tokenizer(sentences, return_attention_mask=False)["input_ids"]

    def decode(self, hypotheses: list[list[int]]) -> list[str]:
        """Turn target ids into text, special tokens left out."""
        return [
            self.tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False).strip()
            for ids in hypotheses
        ]

    def identity(self, config: TranslatorConfig, backend: str) -> dict[str, object]:
        """Collect everything that determines the output, as JSON-able values."""
        return {
            "model": self.files.name,
            "revision": self.files.revision,
            "backend": backend,
            "dtype": resolve_dtype(config),
            "beam": config.beam,
            "length_penalty": LENGTH_PENALTY,
            "early_stopping": True,
            "max_source_tokens": self.max_source_tokens,
            "max_target_tokens": self.max_target_tokens,
            "source_language": config.source_language,
            "target_language": config.target_language,
        }


@dataclass
class _Best:
    """Best finished hypothesis of every sentence of a batch."""

    tokens: torch.Tensor  # [sentence, position]
    lengths: torch.Tensor  # [sentence]
    scores: torch.Tensor  # [sentence]
    finished: torch.Tensor  # [sentence], hypotheses finished so far

    @classmethod
    def empty(cls, sentences: int, longest: int, device: torch.device) -> _Best:
        zeros = torch.zeros(sentences, dtype=torch.int64, device=device)
        tokens = zeros[:, None].repeat(1, longest)
        return cls(tokens, zeros, torch.full((sentences,), -math.inf, device=device), zeros.clone())

    def add(self, rows: torch.Tensor, tokens: torch.Tensor, scores: torch.Tensor) -> None:
        """Take finished hypotheses [row, beam, position] with scores [row, beam], -inf where not finished."""
        self.finished[rows] += (scores > -math.inf).sum(dim=1)
        score, beam = scores.max(dim=1)
        better = score > self.scores[rows]
        rows, tokens = rows[better], tokens[better, beam[better]]
        self.scores[rows] = score[better]
        self.lengths[rows] = tokens.shape[1]
        self.tokens[rows, : tokens.shape[1]] = tokens

    def results(self, prefix: int) -> tuple[list[list[int]], list[float]]:
        """Give the hypotheses and their scores, the prefix taken out of the length."""
        if not self.lengths.all():
            raise InputError("the model gives no finite probabilities in this dtype; take bfloat16 or float32")
        found = zip(self.tokens.tolist(), self.lengths.tolist(), strict=True)
        scores = self.scores * (self.lengths + prefix) / self.lengths
        return [ids[:length] for ids, length in found], scores.tolist()


@torch.inference_mode()
def beam_search(
    model: Any,  # noqa: ANN401
    source: torch.Tensor,
    mask: torch.Tensor,
    *,
    start: list[int],
    end: int,
    beam: int,
    longest: int,
) -> tuple[list[list[int]], list[float]]:
    """Find the best hypothesis of each sentence.

    The search is that of transformers with `early_stopping=True` and of CTranslate2: a sentence is finished with its
    first `beam` complete hypotheses, and the best is the one with the highest sum of log-probabilities over length, a
    language token counted in that length. Unlike `generate` it drops a finished sentence from the batch and moves the
    encoder's keys and values only then, which makes it faster, and the sums are at hand when it ends.

    Args:
        model: An encoder-decoder of transformers.
        source: Shape [sentence, position], ids filled up on the right.
        mask: Shape [sentence, position], 0 at the filling.
        start: Ids that every target begins with.
        end: Id of the end token.
        beam: Number of beams.
        longest: Most target tokens, the end token included.

    Returns:
        The ids of each hypothesis, without `start`, and the mean log-probability of its tokens.
    """
    prefix = len(start) - 1
    best = _Best.empty(len(source), longest, source.device)
    rows = torch.arange(len(source), device=source.device)
    encoded = model.get_encoder()(input_ids=source, attention_mask=mask).last_hidden_state
    cache = EncoderDecoderCache(DynamicCache(), DynamicCache())
    inputs = torch.tensor([start], device=source.device).repeat(len(source), 1)
    tokens = inputs.new_empty(len(source), 1, 0)
    totals = torch.zeros(len(source), 1, device=source.device)
    for step in range(1, longest + 1):
        logits = model(
            encoder_outputs=BaseModelOutput(last_hidden_state=encoded),
            attention_mask=mask,
            decoder_input_ids=inputs,
            past_key_values=cache,
            use_cache=True,
        ).logits[:, -1]
        values, parents, extended = _extend(logits, totals, tokens, 2 * beam)
        ended = extended[:, :, -1] == end
        # Only a hypothesis among the best `beam` may finish; at the limit all of them do.
        finishing = ended[:, :beam] | (step == longest)
        best.add(rows, extended[:, :beam], (values[:, :beam] / (step + prefix)).masked_fill(~finishing, -math.inf))
        going = (best.finished[rows] < beam).nonzero().flatten()
        if step == longest or not len(going):
            break
        values, order = values.masked_fill(ended, -math.inf).topk(min(beam, values.shape[1]), dim=1)
        origin = (going[:, None] * tokens.shape[1] + parents.gather(1, order)[going]).flatten()
        cache.self_attention_cache.reorder_cache(origin)
        if step == 1 or len(going) < len(rows):
            # Beams of one sentence share what the encoder says, so only a change of the batch moves it.
            cache.cross_attention_cache.reorder_cache(origin)
            encoded, mask = encoded[origin], mask[origin]
        tokens = extended.gather(1, order[:, :, None].expand(-1, -1, step))[going]
        rows, totals = rows[going], values[going]
        inputs = tokens[:, :, -1].reshape(-1, 1)
    return best.results(prefix)


def _extend(
    logits: torch.Tensor, totals: torch.Tensor, tokens: torch.Tensor, count: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Find the best continuations of the beams of each sentence.

    Args:
        logits: Shape [sentence * beam, word].
        totals: Shape [sentence, beam], sum of log-probabilities so far.
        tokens: Shape [sentence, beam, position].
        count: How many to find.

    Returns:
        Sums, beams they continue, and tokens [sentence, count, position + 1].
    """
    scores = logits.log_softmax(dim=-1, dtype=torch.float32).add_(totals.view(-1, 1)).view(len(totals), -1)
    values, places = scores.topk(min(count, scores.shape[1]), dim=1)
    words = logits.shape[-1]
    parents = places // words
    history = tokens.gather(1, parents[:, :, None].expand(-1, -1, tokens.shape[2]))
    return values, parents, torch.cat([history, (places % words)[:, :, None]], dim=2)


class MarianTranslator(BatchTranslator):
    """Translates with transformers and torch (ParaNMT-50M, section 3).

    Deviations from `generate`: nothing in the checkpoint's `generation_config.json` has a say, and Marian's padding
    symbol, which only stands in for an empty start, takes no share of the probability.

    Args:
        config: The settings.
        checkpoint: The model without its weights, where it has been read already.

    Raises:
        InputError: The model cannot be found, read or used with these settings.
    """

    def __init__(self, config: TranslatorConfig, checkpoint: Checkpoint | None = None) -> None:
        if config.dtype == "int8":
            raise InputError("dtype 'int8' needs backend ctranslate2; got backend 'transformers'")
        device = resolve_device(config.device)
        self._checkpoint = checkpoint = checkpoint or Checkpoint(config)
        super().__init__(checkpoint, batch_tokens=config.batch_tokens or default_batch_tokens(device))
        if config.threads is not None:
            torch.set_num_threads(config.threads)
        self._beam = config.beam
        self._model = read_weights(checkpoint.files, getattr(torch, resolve_dtype(config))).to(device)
        if checkpoint.config.model_type == "marian":
            self._model.final_logits_bias[:, checkpoint.pad] = -1e4
        self.identity = checkpoint.identity(config, "transformers")

    def search(self, sources: list[list[int]]) -> tuple[list[list[int]], list[float]]:
        """Find the best hypothesis and its score for each source of one batch."""
        longest = max(map(len, sources))
        ids = torch.tensor([source + [self._checkpoint.pad] * (longest - len(source)) for source in sources])
        lengths = torch.tensor([len(source) for source in sources])
        mask = (torch.arange(longest) < lengths[:, None]).long()
        return beam_search(
            self._model,
            ids.to(self._model.device),
            mask.to(self._model.device),
            start=self._checkpoint.start,
            end=self._checkpoint.end,
            beam=self._beam,
            longest=self._checkpoint.max_target_tokens,
        )
