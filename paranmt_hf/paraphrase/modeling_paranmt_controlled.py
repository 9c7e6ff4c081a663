"""The syntactically controlled encoder-decoder as a model of transformers.

Iyyer, Wieting, Gimpel & Zettlemoyer 2018 (arXiv:1804.06059), section 3: a paraphrase is generated from a sentence and
the linearised parse that the paraphrase is to have. This parse is generated before, from the parse of the sentence and
a template. Both steps use this model, which reads two sequences, a source and a control, and writes a third one. It
can copy pieces of the source through a pointer (See, Liu & Manning 2017, arXiv:1704.04368, section 2.2).

A copy of this file is released with the weights, next to a copy of `modeling_paranmt_lstm.py`. It therefore imports
nothing but that file, torch and transformers, and its names are part of the format.
"""

from dataclasses import dataclass
from typing import Any

import torch
from huggingface_hub.dataclasses import strict
from torch import nn
from torch.nn import functional
from transformers.modeling_outputs import BaseModelOutput, Seq2SeqLMOutput

from .modeling_paranmt_lstm import (
    DecoderState,
    ParaNMTLstmConfig,
    ParaNMTLstmEncoder,
    ParaNMTLstmForConditionalGeneration,
    attend,
    whole_sentences,
)


@strict
class ParaNMTControlledConfig(ParaNMTLstmConfig):
    """The sizes of the controlled encoder-decoder; see `ParaNMTLstmConfig` for the other attributes.

    Attributes:
        control_vocab_size: Number of tokens of controls, such as trees; `pad_token_id` is their padding too.
        control_embedding_size: Dimension of the vector of a control token.
        copying: Whether pieces of the source can be copied through a pointer.
    """

    model_type = "paranmt-controlled"

    control_vocab_size: int = 200
    control_embedding_size: int = 100
    copying: bool = True

    def __post_init__(self, **kwargs: Any) -> None:
        super().__post_init__(**kwargs)
        if self.decoder_layers < 2:
            raise ValueError(
                "decoder_layers must be at least 2, because the first layer looks at the control and the others read "
                f"what it saw, was {self.decoder_layers}"
            )


@dataclass
class ControlledEncoded(BaseModelOutput):
    """The output of both encoders.

    `last_hidden_state` are the states of the source [sentence, source position, hidden].
    """

    source_ids: torch.Tensor | None = None  # Ids of the source, for copying [sentence, source position]
    control_states: torch.Tensor | None = None  # States of the control [sentence, control position, hidden]
    control_mask: torch.Tensor | None = None  # False at padding of the control [sentence, control position]


class ControlledState(DecoderState):
    """The state of the controlled decoder between two steps.

    `control_keys` are the states of the control, multiplied by the bilinear matrix of the first layer, and by that of
    the last layer, side by side [sentence, control position, 2 x hidden].
    """

    def __init__(
        self, hidden: torch.Tensor, cell: torch.Tensor, keys: torch.Tensor, control_keys: torch.Tensor
    ) -> None:
        super().__init__(hidden, cell, keys)
        self.control_keys = control_keys

    def select(self, rows: torch.Tensor) -> None:
        """Select the states and all keys of some sentences or beams, in the order of `rows`."""
        super().select(rows)
        self.control_keys = self.control_keys.index_select(0, rows.to(self.control_keys.device))


class ParaNMTControlledEncoder(ParaNMTLstmEncoder):
    """The encoder: a bidirectional LSTM over the source, and another one over the control."""

    def __init__(self, config: ParaNMTControlledConfig) -> None:
        super().__init__(config)
        shape = {"vocab_size": config.control_vocab_size, "embedding_size": config.control_embedding_size}
        self.control = ParaNMTLstmEncoder(
            ParaNMTLstmConfig(hidden_size=config.hidden_size, encoder_layers=1, dropout=config.dropout, **shape)
        )
        self.pad = int(config.pad_token_id or 0)

    def forward(
        self,
        input_ids: torch.Tensor | None = None,
        attention_mask: torch.Tensor | None = None,
        inputs_embeds: torch.Tensor | None = None,
        control_ids: torch.Tensor | None = None,
        **_: Any,
    ) -> ControlledEncoded:
        """Encode sources, as the parent does, and controls.

        The ids of the source are needed even with `inputs_embeds`, for copying. `control_ids` are the ids of the
        controls, with padding [sentence, control position].
        """
        if input_ids is None or control_ids is None:
            raise ValueError("expected input_ids and control_ids, the source and the tree it is to be written after")
        mask = control_ids.ne(self.pad)
        return ControlledEncoded(
            last_hidden_state=super().forward(input_ids, attention_mask, inputs_embeds).last_hidden_state,
            source_ids=input_ids,
            control_states=self.control(control_ids, mask).last_hidden_state,
            control_mask=mask,
        )


class ParaNMTControlledDecoder(nn.Module):
    """The decoder: an LSTM whose first layer attends to the control, and whose other layers read the result.

    In the paper, the result of attention is an input of the next step of the whole decoder. Here it is only an input
    of the layers above, so that in training each layer computes all positions at once. The states of the last layer
    attend to the source and to the control.
    """

    def __init__(self, config: ParaNMTControlledConfig) -> None:
        super().__init__()
        layers, width, embedding = config.decoder_layers, config.hidden_size, config.embedding_size
        self.layers, self.width = layers, width
        self.bridge = nn.Linear(2 * width, 2 * layers * width)
        self.first = nn.LSTM(embedding, width, batch_first=True)
        self.others = nn.LSTM(
            2 * width, width, layers - 1, batch_first=True, dropout=config.dropout if layers > 2 else 0.0
        )
        self.bilinear = nn.Linear(width, width, bias=False)
        self.control_bilinear = nn.Linear(width, 2 * width, bias=False)
        self.combine = nn.Linear(3 * width, embedding)
        self.gate = nn.Linear(3 * width + embedding, 1) if config.copying else None
        self.dropout = nn.Dropout(config.dropout)

    def start(self, encoded: ControlledEncoded, mask: torch.Tensor) -> ControlledState:
        """Return the state before the first piece; `mask` is False at padding [sentence, source position]."""
        source, control = encoded.last_hidden_state, encoded.control_states
        assert source is not None and control is not None and encoded.control_mask is not None
        both = [whole_sentences(source, mask), whole_sentences(control, encoded.control_mask)]
        begun = self.bridge(torch.cat(both, dim=1)).view(len(mask), 2, self.layers, self.width).permute(1, 2, 0, 3)
        keys, control_keys = self.bilinear(source), self.control_bilinear(control)
        return ControlledState(begun[0].tanh().contiguous(), begun[1].contiguous(), keys, control_keys)

    def forward(
        self, embedded: torch.Tensor, encoded: ControlledEncoded, mask: torch.Tensor, state: ControlledState
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor | None]:
        """Read pieces, and advance the state.

        Args:
            embedded: Vectors of the pieces [sentence, position, embedding].
            encoded: Output of the encoders.
            mask: False at padding of the source [sentence, source position].
            state: State before these pieces, which is changed in place.

        Returns:
            The input of the output layer [sentence, position, embedding]; the weights of the attention to the source
            [sentence, position, source position] and to the control [sentence, position, control position]; and the
            logit that a piece is generated and not copied [sentence, position, 1], or None without copying.
        """
        source, control, control_mask = encoded.last_hidden_state, encoded.control_states, encoded.control_mask
        assert source is not None and control is not None and control_mask is not None
        embedded = self.dropout(embedded)
        hidden, cell = state.hidden, state.cell
        low, (low_hidden, low_cell) = self.first(embedded, (hidden[:1].contiguous(), cell[:1].contiguous()))
        near, far = state.control_keys.chunk(2, dim=2)
        place, _ = attend(low, near, control, control_mask)
        found, (high_hidden, high_cell) = self.others(
            self.dropout(torch.cat([low, place.to(low.dtype)], dim=2)),
            (hidden[1:].contiguous(), cell[1:].contiguous()),
        )
        state.hidden, state.cell = torch.cat([low_hidden, high_hidden]), torch.cat([low_cell, high_cell])
        state.length += embedded.shape[1]
        seen, weights = attend(found, state.keys, source, mask)
        wanted, control_weights = attend(found, far, control, control_mask)
        whole = torch.cat([found, seen.to(found.dtype), wanted.to(found.dtype)], dim=2)
        gate = self.gate(torch.cat([whole, embedded], dim=2)) if self.gate is not None else None
        return self.dropout(self.combine(whole).tanh()), weights, control_weights, gate


def mixed(logits: torch.Tensor, weights: torch.Tensor, gate: torch.Tensor, source_ids: torch.Tensor) -> torch.Tensor:
    """Combine generating and copying of pieces (See et al. 2017, equation 9).

    The probability of a piece is the sum of two products: the probability of generating times that of the piece by its
    logit, and the probability of copying times the attention to all positions of the piece in the source.

    Args:
        logits: Logits of the pieces [sentence, position, piece].
        weights: Weights of the attention to the source [sentence, position, source position].
        gate: Logit that a piece is generated [sentence, position, 1].
        source_ids: Ids of the source [sentence, source position].

    Returns:
        Logarithms of the probabilities [sentence, position, piece].
    """
    generated = logits.log_softmax(dim=-1, dtype=torch.float32) + functional.logsigmoid(gate.float())
    # `same` marks pairs of source positions with the same piece [sentence, position, position]. `first` marks the
    # first position of each piece [sentence, position].
    same = source_ids[:, :, None] == source_ids[:, None, :]
    first = same.long().argmax(dim=2) == torch.arange(same.shape[1], device=same.device)
    copied = (weights.float() @ same.float()).clamp_min(torch.finfo(torch.float32).tiny).log()
    copied = copied + functional.logsigmoid(-gate.float())
    # log(a + b) = log a + softplus(log b - log a) is only computed for the few pieces that can be copied.
    places = source_ids[:, None].expand_as(copied)
    more = functional.softplus(copied - generated.gather(2, places)) * first[:, None]
    return generated.scatter_add(2, places, more)


class ParaNMTControlledForConditionalGeneration(ParaNMTLstmForConditionalGeneration):
    """The controlled encoder-decoder with its output layer, for `AutoModelForSeq2SeqLM` and `generate`."""

    config_class = ParaNMTControlledConfig
    _no_split_modules = ["ParaNMTControlledEncoder", "ParaNMTControlledDecoder"]  # noqa: RUF012 - as transformers has it

    _encoder_class = ParaNMTControlledEncoder
    _decoder_class = ParaNMTControlledDecoder

    def _start(self, encoded: ControlledEncoded, mask: torch.Tensor) -> ControlledState:
        """Return the state of the decoder before the first piece, given the output of the encoders."""
        state: ControlledState = self.decoder.start(encoded, mask)
        return state

    def _decode(
        self, embedded: torch.Tensor, encoded: ControlledEncoded, mask: torch.Tensor, state: DecoderState
    ) -> tuple[torch.Tensor, tuple[torch.Tensor, ...]]:
        """Return the logits of the next pieces, copying included, and the weights of both attentions."""
        found, weights, control_weights, gate = self.decoder(embedded, encoded, mask, state)
        logits = self.lm_head(found)
        if gate is not None:
            assert encoded.source_ids is not None
            logits = mixed(logits, weights, gate, encoded.source_ids)
        return logits, (weights, control_weights)

    def forward(  # type: ignore[override]  # the rest is passed on
        self,
        input_ids: torch.Tensor | None = None,
        attention_mask: torch.Tensor | None = None,
        control_ids: torch.Tensor | None = None,
        encoder_outputs: ControlledEncoded | None = None,
        **given: Any,
    ) -> Seq2SeqLMOutput | tuple[torch.Tensor, ...]:
        """Compute logits, and the loss if there are labels.

        Arguments and result are those of the parent, except that `control_ids` are the ids of the controls, with
        padding [sentence, control position]. With copying, logits are logarithms of probabilities. There are two
        tensors of attention weights, to the source and to the control [sentence, position, control position].
        """
        if encoder_outputs is None:
            encoder_outputs = self.encoder(input_ids, attention_mask, control_ids=control_ids)
        return super().forward(attention_mask=attention_mask, encoder_outputs=encoder_outputs, **given)
