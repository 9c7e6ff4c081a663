"""Searching targets: beams, diverse beams, sampling, for any encoder-decoder of transformers."""

from __future__ import annotations

import copy
from typing import Any

import torch
from transformers import GenerationConfig as Settings
from transformers import LogitsProcessor, LogitsProcessorList

from paranmt_hf.paraphrase.beams import beam_search
from paranmt_hf.paraphrase.config import ParaphraseConfig
from paranmt_hf.paraphrase.loading import EncoderDecoder
from paranmt_hf.paraphrase.modeling_paranmt_lstm import ParaNMTLstmConfig


class OtherGroups(LogitsProcessor):
    """Keeps a group of beams from the pieces of the groups before it (Vijayakumar et al. 2016, Hamming diversity).

    What counts of a group is what it found in the end, not the beams that it followed on the way. So groups are
    searched one after the other, and the result of a sentence does not depend on the other sentences of its batch.

    Args:
        rate: What a piece loses for each target of the groups before that has it at the same place.
        beams: Beams of a group.
    """

    def __init__(self, rate: float, beams: int) -> None:
        self._rate, self._beams = rate, beams
        # What was found for each sentence [sentence][target][place].
        self._found: list[list[list[int]]] = []

    def add(self, found: list[list[list[int]]]) -> None:
        """Take what a group found for each sentence."""
        self._found = [[*a, *b] for a, b in zip(self._found, found, strict=True)] if self._found else found

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Lower the scores [beam, piece] of what others have behind `input_ids` [beam, place]."""
        return self.lower(scores, input_ids.shape[1] - 1, torch.arange(len(scores)) // self._beams)

    def lower(self, scores: torch.Tensor, place: int, rows: torch.Tensor) -> torch.Tensor:
        """Lower the scores [beam, piece] of what others have at a place; `rows` [beam] are the beams' sentences."""
        taken = [
            (beam, target[place])
            for beam, row in enumerate(rows.tolist() if self._found else [])
            for target in self._found[row]
            if place < len(target)
        ]
        if not taken:
            return scores
        beams, pieces = torch.tensor(taken, device=scores.device).T
        lost = torch.full_like(beams, -self._rate, dtype=scores.dtype)
        return scores.index_put((beams, pieces), lost, accumulate=True)


@torch.inference_mode()
def search(
    own: EncoderDecoder,
    sources: list[list[int]],
    config: ParaphraseConfig,
    controls: list[list[int]] | None = None,
) -> list[list[list[int]]]:
    """Search targets for one batch.

    Args:
        own: The model.
        sources: Ids of each sentence, the end included.
        config: How it searches.
        controls: Ids of what each target is written after beside its source, for a model that has such.

    Returns:
        Candidates of each sentence, ids without start and end, the most probable first (those of groups in turn; drawn
        ones in the order of drawing). At least `config.n`, of which some may be alike.
    """
    device = own.model.device
    ids, lengths = _filled(sources, own.pad).to(device), torch.tensor([len(source) for source in sources])
    mask = (torch.arange(ids.shape[1]) < lengths[:, None]).long().to(device)
    given = {"control_ids": _filled(controls, own.pad).to(device)} if controls is not None else {}
    encoded = own.model.get_encoder()(input_ids=ids, attention_mask=mask, return_dict=True, **given)

    def generated(others: OtherGroups | None = None, **options: Any) -> list[list[list[int]]]:  # noqa: ANN401
        # generate() takes what is not asked for from here.
        kept, own.model.generation_config = own.model.generation_config, Settings()
        try:
            found = own.model.generate(
                # It widens what it is given.
                encoder_outputs=copy.copy(encoded),
                attention_mask=mask,
                generation_config=_settings(own, kept, max_new_tokens=config.max_length, **options),
                logits_processor=LogitsProcessorList([others] if others is not None else []),
            ).tolist()
        finally:
            own.model.generation_config = kept
        count = len(found) // len(sources)
        rows = [_target(row, own) for row in found]
        return [rows[first : first + count] for first in range(0, len(rows), count)]

    if config.sample:
        return generated(
            do_sample=True,
            top_k=0,
            temperature=float(config.temperature),
            top_p=float(config.top_p),
            num_return_sequences=max(config.n, config.beams) if config.chooses else config.n,
        )
    each = config.width // config.groups

    def best(others: OtherGroups | None = None) -> list[list[list[int]]]:
        if not _has_own_search(own):
            early = {"early_stopping": True} if each > 1 else {}
            return generated(others, num_beams=each, num_return_sequences=each, **early)
        found = beam_search(
            own.model,
            encoded.last_hidden_state,
            mask,
            start=own.start,
            ends=own.ends,
            beams=each,
            longest=config.max_length,
            change=others.lower if others is not None else None,
        )
        return [[_cut(ids, own) for ids in candidates] for candidates in found]

    if config.groups == 1:
        return best()
    others, groups = OtherGroups(config.diversity, each), []
    for _ in range(config.groups):
        groups.append(best(others))
        others.add(groups[-1])
    # The best of each group first, then the second best.
    return [[own[rank] for rank in range(each) for own in found] for found in zip(*groups, strict=True)]


def _filled(rows: list[list[int]], pad: int) -> torch.Tensor:
    longest = max(map(len, rows))
    return torch.tensor([row + [pad] * (longest - len(row)) for row in rows])


def _has_own_search(own: EncoderDecoder) -> bool:
    """Whether our beam search knows the model, and its folder asks for nothing that only `generate` does."""
    asked = own.model.generation_config
    plain = getattr(asked, "forced_bos_token_id", None) is None and not getattr(asked, "bad_words_ids", None)
    return plain and own.model.config.model_type == ParaNMTLstmConfig.model_type


def _settings(own: EncoderDecoder, kept: Settings, **options: Any) -> Settings:  # noqa: ANN401
    """What steers `generate`: of what a folder says of generation only what belongs to the model itself."""
    return Settings(
        decoder_start_token_id=own.start,
        pad_token_id=own.pad,
        eos_token_id=own.ends,
        bos_token_id=getattr(own.model.config, "bos_token_id", None),
        forced_bos_token_id=getattr(kept, "forced_bos_token_id", None),
        bad_words_ids=getattr(kept, "bad_words_ids", None),
        use_cache=True,
        **options,
    )


def _target(row: list[int], own: EncoderDecoder) -> list[int]:
    """Ids of a target without its start, and what follows its end."""
    return _cut(row[1:], own)


def _cut(ids: list[int], own: EncoderDecoder) -> list[int]:
    """Ids before the first end."""
    ends = set(own.ends)
    return ids[: next((place for place, piece in enumerate(ids) if piece in ends), len(ids))]
