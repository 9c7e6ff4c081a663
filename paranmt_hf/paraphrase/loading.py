"""Reading an encoder-decoder and its tokenizer from a folder or the Hub."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import torch
from transformers import AutoTokenizer

from paranmt_hf.errors import InputError
from paranmt_hf.hub.pretrained import UNREADABLE, quiet, read_encoder_decoder
from paranmt_hf.hub.repository import Model, readable
from paranmt_hf.paraphrase import registration

EXPECTED = "expected what `paranmt train-paraphraser` writes, or another encoder-decoder of transformers"
registration.register()


@dataclass
class EncoderDecoder:
    """A model with what cuts text into pieces.

    Attributes:
        model: Model of transformers.
        tokenizer: Its tokenizer.
        controls: The tokenizer of what a target is written after beside its source; None where that is nothing.
    """

    model: Any
    tokenizer: Any
    controls: Any = None

    @property
    def start(self) -> int:
        """Id of the piece that every target begins with."""
        return int(self.model.config.decoder_start_token_id)

    @property
    def pad(self) -> int:
        """Id that fills up."""
        return int(self.model.config.pad_token_id)

    @property
    def ends(self) -> list[int]:
        """Ids that end a target."""
        ends = self.model.config.eos_token_id
        return list(ends) if isinstance(ends, list | tuple) else [int(ends)]

    @property
    def places(self) -> int | None:
        """Most pieces of a sentence that the model has positions for; None where it counts none."""
        places = getattr(self.model.config, "max_position_embeddings", None)
        return places if isinstance(places, int) else None

    def cut(self, sentences: list[str]) -> list[list[int]]:
        """Cut sources into ids, the end included; nothing is cut off."""
        found: list[list[int]] = self.tokenizer(sentences, add_special_tokens=True, truncation=False).input_ids
        return found

    def cut_targets(self, sentences: list[str]) -> list[list[int]]:
        """Cut targets into ids, the end included."""
        found: list[list[int]] = self.tokenizer(text_target=sentences, truncation=False).input_ids
        return found

    def cut_controls(self, trees: list[str]) -> list[list[int]]:
        """Cut controls into ids, the end included."""
        found: list[list[int]] = self.controls(trees, truncation=False).input_ids
        return found

    def join(self, targets: list[list[int]]) -> list[str]:
        """Make text of ids, without special pieces and with single blanks."""
        texts = self.tokenizer.batch_decode(targets, skip_special_tokens=True)
        return [" ".join(text.split()) for text in texts]


def read_model(files: Model, dtype: torch.dtype = torch.float32) -> EncoderDecoder:
    """Read an encoder-decoder.

    Args:
        files: Where it is.
        dtype: Number format of its weights.

    Raises:
        InputError: It is a model of another kind, or damaged.
    """
    _check_kind(files)
    try:
        with quiet(), readable(files) as folder:
            tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=False, local_files_only=True)
    except UNREADABLE as error:
        reason = " ".join(str(error).split())[:200]
        raise InputError(f"{files.folder} has no readable configuration and tokenizer: {reason}; {EXPECTED}") from None
    # A sentence that happens to contain "</s>" is text all the same.
    tokenizer.split_special_tokens = True
    # What is trained takes longer sentences than a tokenizer warns of.
    tokenizer.model_max_length = int(1e9)
    model = read_encoder_decoder(files, dtype, "model of paraphrases")
    config = model.config
    for name in ("decoder_start_token_id", "pad_token_id", "eos_token_id"):
        if getattr(config, name, None) is None:
            raise InputError(f"{files.folder / 'config.json'} has no {name!r}, without which nothing can be generated")
    if len(tokenizer) > config.vocab_size:
        raise InputError(
            f"the tokenizer in {files.folder} has {len(tokenizer):,} pieces and its model {config.vocab_size:,}, so "
            "they do not belong together; put a whole copy in its place"
        )
    return EncoderDecoder(model, tokenizer)


def _check_kind(files: Model) -> None:
    """Say what a folder holds in place of an encoder-decoder."""
    path = files.folder / "config.json"
    if not path.is_file():
        found = "an encoder of sentences" if (files.folder / "modules.json").is_file() else "no config.json"
        raise InputError(f"{files.folder} holds {found}; {EXPECTED}")
    try:
        values = json.loads(path.read_text(encoding="utf8"))
        kind = values["model_type"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise InputError(f"{path} cannot be read ({type(error).__name__}: {error}); {EXPECTED}") from None
    from transformers import AutoConfig

    known = values.get("is_encoder_decoder")
    if known is None:
        try:
            known = AutoConfig.for_model(kind).is_encoder_decoder
        except UNREADABLE:
            raise InputError(f"{path} names the model type {kind!r}, which is not known here; {EXPECTED}") from None
    if not known:
        raise InputError(f"{files.folder} is a {kind} model, no encoder-decoder; {EXPECTED}")
