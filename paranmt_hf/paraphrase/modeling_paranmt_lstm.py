"""The encoder-decoder of ParaNMT-50M as a model of transformers.

Wieting & Gimpel 2018 (arXiv:1711.05732), section 6: a bidirectional LSTM encoder, a two-layer LSTM decoder, and soft
attention with a bilinear product. A copy of this file is released with the weights. It therefore imports nothing but
torch and transformers, and its names are part of the format.
"""

from dataclasses import fields
from typing import Any

import torch
from huggingface_hub.dataclasses import strict
from torch import nn
from torch.nn import functional
from transformers import GenerationMixin, PreTrainedModel
from transformers.configuration_utils import PreTrainedConfig
from transformers.modeling_outputs import BaseModelOutput, Seq2SeqLMOutput

IGNORED = -100  # Label of a position where there is nothing to predict
# The state of a decoder is named `cache` since transformers 5.24.
CACHE = "cache" if "cache" in {field.name for field in fields(Seq2SeqLMOutput)} else "past_key_values"


@strict
class ParaNMTLstmConfig(PreTrainedConfig):
    """The sizes of the encoder-decoder.

    Attributes:
        vocab_size: Number of pieces, which sources and targets share.
        embedding_size: Dimension of the vector of a piece, and of the input of the output layer.
        hidden_size: Dimension of the states of decoder and encoder; half of the latter are of each direction.
        encoder_layers: Number of layers of the encoder, each of which reads in both directions.
        decoder_layers: Number of layers of the decoder; the paper has two.
        dropout: Dropout probability in training, between layers and before the output layer.
        label_smoothing: Probability that a training target spreads evenly over all pieces.
        init_scale: Factor of the initial weights.
        tie_word_embeddings: Whether the output layer and the embeddings share their weights.
    """

    model_type = "paranmt-lstm"
    keys_to_ignore_at_inference = [CACHE]  # noqa: RUF012 - as transformers has it
    attribute_map = {"num_hidden_layers": "decoder_layers", "d_model": "hidden_size"}  # noqa: RUF012

    vocab_size: int = 16_000
    embedding_size: int = 300
    hidden_size: int = 512
    encoder_layers: int = 1
    decoder_layers: int = 2
    dropout: float | int = 0.2
    label_smoothing: float | int = 0.0
    init_scale: float | int = 1.0
    is_encoder_decoder: bool = True
    tie_word_embeddings: bool = True
    use_cache: bool = True
    pad_token_id: int | None = 0
    bos_token_id: int | None = 1
    eos_token_id: int | list[int] | None = 2
    decoder_start_token_id: int | None = 1

    def __post_init__(self, **kwargs: Any) -> None:
        super().__post_init__(**kwargs)
        if self.hidden_size % 2:
            raise ValueError(f"hidden_size is shared by two directions, so it must be even, was {self.hidden_size}")


class DecoderState:
    """The state of a decoder between two steps, with which no piece is read twice.

    Attributes:
        hidden: Hidden states [layer, sentence, hidden].
        cell: Cell states [layer, sentence, hidden].
        keys: States of the encoder, multiplied by the bilinear matrix [sentence, source position, hidden].
        length: Number of pieces read so far.
    """

    def __init__(self, hidden: torch.Tensor, cell: torch.Tensor, keys: torch.Tensor, length: int = 0) -> None:
        self.hidden, self.cell, self.keys, self.length = hidden, cell, keys, length

    def get_seq_length(self, layer_idx: int = 0) -> int:
        """Return the number of pieces read so far."""
        return self.length

    def reorder_cache(self, beam_idx: torch.Tensor) -> None:
        """Give each beam the state of the beam that it continues, by its index in `beam_idx` [beam].

        Keys stay, because both beams are of the same sentence.
        """
        index = beam_idx.to(self.hidden.device)
        self.hidden, self.cell = self.hidden.index_select(1, index), self.cell.index_select(1, index)

    def select(self, rows: torch.Tensor) -> None:
        """Select the states and keys of some sentences or beams, in the order of `rows`."""
        self.reorder_cache(rows)
        self.keys = self.keys.index_select(0, rows.to(self.keys.device))


def token_loss(logits: torch.Tensor, labels: torch.Tensor, smoothing: float = 0.0) -> torch.Tensor:
    """Compute the mean cross-entropy of the target pieces.

    Args:
        logits: Logits [sentence, position, piece].
        labels: Ids of the target pieces [sentence, position]; -100 where there is nothing to predict.
        smoothing: Probability that a target spreads evenly over all pieces.
    """
    return functional.cross_entropy(
        logits.flatten(0, 1).float(), labels.flatten(), ignore_index=IGNORED, label_smoothing=smoothing
    )


def shifted(labels: torch.Tensor, start: int, pad: int) -> torch.Tensor:
    """Return the input of the decoder for targets [sentence, position]: the start piece and all but the last piece.

    Positions to ignore get the id of padding.
    """
    inputs = labels.new_full(labels.shape, start)
    inputs[:, 1:] = labels[:, :-1]
    return inputs.masked_fill(inputs == IGNORED, pad)


class ParaNMTLstmEncoder(nn.Module):
    """The encoder: a bidirectional LSTM, whose result does not depend on padding, whether left or right.

    For each direction, the positions of a sentence are put into the order of reading, with padding at the end. An LSTM
    then reads all positions in one call, without packed sequences. In it, cuDNN and oneDNN multiply all inputs in one
    matrix product.
    """

    main_input_name = "input_ids"

    def __init__(self, config: ParaNMTLstmConfig) -> None:
        super().__init__()
        self.embed_tokens = nn.Embedding(config.vocab_size, config.embedding_size)
        # The output layer may share these weights but needs small ones, so they are scaled as input (Vaswani et al.
        # 2017).
        self.scale = config.embedding_size**0.5
        widths = [config.embedding_size] + [config.hidden_size] * (config.encoder_layers - 1)
        half = config.hidden_size // 2
        self.forwards = nn.ModuleList(nn.LSTM(width, half, batch_first=True) for width in widths)
        self.backwards = nn.ModuleList(nn.LSTM(width, half, batch_first=True) for width in widths)
        self.dropout = nn.Dropout(config.dropout)

    def embed(self, ids: torch.Tensor) -> torch.Tensor:
        """Return the vectors of pieces for an LSTM [sentence, position, embedding]."""
        return self.embed_tokens(ids) * self.scale

    def forward(
        self,
        input_ids: torch.Tensor | None = None,
        attention_mask: torch.Tensor | None = None,
        inputs_embeds: torch.Tensor | None = None,
        **_: Any,
    ) -> BaseModelOutput:
        """Read sentences.

        Args:
            input_ids: Ids of the pieces [sentence, position].
            attention_mask: 0 at padding [sentence, position]; without it, nothing is padding.
            inputs_embeds: Vectors of the pieces [sentence, position, embedding], in place of the ids.

        Returns:
            States [sentence, position, hidden], of both directions side by side; zero at padding.
        """
        if inputs_embeds is None:
            if input_ids is None:
                raise ValueError("expected input_ids or inputs_embeds, got neither")
            inputs_embeds = self.embed(input_ids)
        states = inputs_embeds
        if attention_mask is None:
            attention_mask = torch.ones(states.shape[:2], dtype=torch.long, device=states.device)
        mask = attention_mask.bool()
        ahead = mask.long().argsort(dim=1, descending=True, stable=True)
        positions, lengths = torch.arange(mask.shape[1], device=mask.device), mask.sum(dim=1, keepdim=True)
        back = ahead.gather(1, torch.where(positions < lengths, lengths - 1 - positions, positions))
        for one, other in zip(self.forwards, self.backwards, strict=True):
            states = self.dropout(states)
            sides = [_read(lstm, states, order) for lstm, order in ((one, ahead), (other, back))]
            states = torch.cat(sides, dim=2) * mask[:, :, None]
        return BaseModelOutput(last_hidden_state=states)


def _read(lstm: nn.Module, states: torch.Tensor, order: torch.Tensor) -> torch.Tensor:
    """Run an LSTM over states [sentence, position, width], in the order that `order` [sentence, position] gives.

    Returns the outputs at the original positions.
    """
    found, _ = lstm(states.gather(1, order[:, :, None].expand(-1, -1, states.shape[2])))
    return torch.zeros_like(found).scatter(1, order[:, :, None].expand(-1, -1, found.shape[2]), found)


def whole_sentences(encoded: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Return the states of both directions of an encoder after reading the whole sentence [sentence, hidden].

    `encoded` are all states [sentence, position, hidden]; `mask` is False at padding [sentence, position].
    """
    half, positions = encoded.shape[2] // 2, torch.arange(mask.shape[1], device=mask.device)
    last = (positions * mask).amax(dim=1)
    first = mask.long().argmax(dim=1)
    rows = torch.arange(len(mask), device=mask.device)
    return torch.cat([encoded[rows, last, :half], encoded[rows, first, half:]], dim=1)


def attend(
    queries: torch.Tensor, keys: torch.Tensor, encoded: torch.Tensor, mask: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Attend to the states of an encoder by the softmax of dot products.

    Args:
        queries: States of the decoder [sentence, position, hidden].
        keys: A key for each state of the encoder [sentence, source position, hidden].
        encoded: States of the encoder [sentence, source position, hidden].
        mask: False at padding [sentence, source position].

    Returns:
        Weighted means of the encoder's states [sentence, position, hidden]; and the weights [sentence, position,
        source position].
    """
    scores = queries @ keys.transpose(1, 2)
    scores = scores.masked_fill(~mask[:, None], torch.finfo(scores.dtype).min)
    weights = scores.softmax(dim=-1, dtype=torch.float32).to(encoded.dtype)
    return weights @ encoded, weights


class ParaNMTLstmDecoder(nn.Module):
    """The decoder: an LSTM whose states attend to those of the encoder by a bilinear product.

    The attention is computed from the states of the last layer, and is no input of the next step (Luong et al. 2015,
    "general"), so that in training all positions are computed at once.
    """

    def __init__(self, config: ParaNMTLstmConfig) -> None:
        super().__init__()
        layers, width = config.decoder_layers, config.hidden_size
        self.layers, self.width = layers, width
        self.bridge = nn.Linear(width, 2 * layers * width)
        self.lstm = nn.LSTM(
            config.embedding_size, width, layers, batch_first=True, dropout=config.dropout if layers > 1 else 0.0
        )
        self.bilinear = nn.Linear(width, width, bias=False)
        self.combine = nn.Linear(2 * width, config.embedding_size)
        self.dropout = nn.Dropout(config.dropout)

    def start(self, encoded: torch.Tensor, mask: torch.Tensor) -> DecoderState:
        """Return the state before the first piece, given the states of the encoder [sentence, position, hidden]."""
        begun = (
            self.bridge(whole_sentences(encoded, mask)).view(len(mask), 2, self.layers, self.width).permute(1, 2, 0, 3)
        )
        return DecoderState(begun[0].tanh().contiguous(), begun[1].contiguous(), self.bilinear(encoded))

    def forward(
        self, embedded: torch.Tensor, encoded: torch.Tensor, mask: torch.Tensor, state: DecoderState
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Read pieces, given by their vectors [sentence, position, embedding], and advance the state in place.

        `encoded` are the encoder's states [sentence, source position, hidden], and `mask` is False at padding.

        Returns:
            The input of the output layer [sentence, position, embedding]; and the weights of the attention [sentence,
            position, source position].
        """
        found, (state.hidden, state.cell) = self.lstm(self.dropout(embedded), (state.hidden, state.cell))
        state.length += embedded.shape[1]
        seen, weights = attend(found, state.keys, encoded, mask)
        return self.dropout(self.combine(torch.cat([seen, found.to(seen.dtype)], dim=2)).tanh()), weights


class ParaNMTLstmForConditionalGeneration(PreTrainedModel, GenerationMixin):
    """The encoder-decoder with its output layer, for `AutoModelForSeq2SeqLM` and `generate`."""

    config_class = ParaNMTLstmConfig
    base_model_prefix = "model"
    main_input_name = "input_ids"
    _tied_weights_keys = {"lm_head.weight": "encoder.embed_tokens.weight"}  # noqa: RUF012 - as transformers has it
    _no_split_modules = ["ParaNMTLstmEncoder", "ParaNMTLstmDecoder"]  # noqa: RUF012
    # The state of an LSTM cannot be cut back to an earlier piece.
    _is_stateful = True
    # Subclasses have other encoders and decoders.
    _encoder_class: Any = ParaNMTLstmEncoder
    _decoder_class: Any = ParaNMTLstmDecoder

    def __init__(self, config: ParaNMTLstmConfig) -> None:
        super().__init__(config)
        self.encoder = self._encoder_class(config)
        self.decoder = self._decoder_class(config)
        self.lm_head = nn.Linear(config.embedding_size, config.vocab_size)
        self.post_init()

    def _init_weights(self, module: nn.Module) -> None:
        """Initialise weights in a range that depends on the size of the layer, and open the forget gates.

        Activations then keep their scale. With one small range for all weights, narrow models would learn nothing but
        the frequencies of pieces.
        """
        scale = self.config.init_scale
        for name, weight in module.named_parameters(recurse=False):
            if getattr(weight, "_is_hf_initialized", False):
                continue
            if name.startswith("bias"):
                nn.init.zeros_(weight)
                if name.startswith("bias_ih"):
                    # Gates in the order of torch: input, forget, cell, output.
                    size = len(weight) // 4
                    nn.init.ones_(weight.data[size : 2 * size])
            else:
                bound = scale * (3 / weight.shape[1]) ** 0.5
                nn.init.uniform_(weight, -bound, bound)

    @classmethod
    def _supports_default_dynamic_cache(cls) -> bool:
        """Declare to `generate` that the model creates its own cache."""
        return False

    def get_input_embeddings(self) -> nn.Module:
        """Return the embeddings, which encoder and decoder share."""
        return self.encoder.embed_tokens

    def set_input_embeddings(self, value: nn.Embedding) -> None:
        """Replace the embeddings."""
        self.encoder.embed_tokens = value

    def get_output_embeddings(self) -> nn.Module:
        """Return the output layer."""
        return self.lm_head

    def set_output_embeddings(self, new_embeddings: nn.Linear) -> None:
        """Replace the output layer."""
        self.lm_head = new_embeddings

    def get_encoder(self, modality: str | None = None) -> nn.Module:
        """Return the encoder."""
        return self.encoder

    def prepare_decoder_input_ids_from_labels(self, labels: torch.Tensor) -> torch.Tensor:
        """Return the inputs of the decoder for labels [sentence, position]."""
        return shifted(labels, self.config.decoder_start_token_id, self.config.pad_token_id)

    def _start(self, encoded: Any, mask: torch.Tensor) -> DecoderState:  # noqa: ANN401
        """Return the state of the decoder before the first piece, given the output of the encoder."""
        state: DecoderState = self.decoder.start(encoded[0], mask)
        return state

    def _decode(
        self,
        embedded: torch.Tensor,
        encoded: Any,  # noqa: ANN401
        mask: torch.Tensor,
        state: DecoderState,
    ) -> tuple[torch.Tensor, tuple[torch.Tensor, ...]]:
        """Return the logits of the next pieces [sentence, position, piece], and the weights of each attention."""
        found, weights = self.decoder(embedded, encoded[0], mask, state)
        return self.lm_head(found), (weights,)

    def forward(
        self,
        input_ids: torch.Tensor | None = None,
        attention_mask: torch.Tensor | None = None,
        decoder_input_ids: torch.Tensor | None = None,
        encoder_outputs: Any = None,  # noqa: ANN401
        cache: DecoderState | None = None,
        inputs_embeds: torch.Tensor | None = None,
        labels: torch.Tensor | None = None,
        use_cache: bool | None = None,
        output_attentions: bool | None = None,
        return_dict: bool | None = None,
        past_key_values: DecoderState | None = None,
        **_: Any,
    ) -> Seq2SeqLMOutput | tuple[torch.Tensor, ...]:
        """Compute logits [sentence, position, piece], and the loss if there are labels, as models of transformers do.

        With a state (`cache`, or `past_key_values` in older releases of transformers), `decoder_input_ids` are only
        the pieces that it has not read. Labels of -100 are not predicted. The weights of the attention are [sentence,
        position, source position].
        """
        if encoder_outputs is None:
            encoder_outputs = self.encoder(input_ids, attention_mask, inputs_embeds)
        encoded = encoder_outputs[0]
        mask = torch.ones(encoded.shape[:2], dtype=torch.bool, device=encoded.device)
        if attention_mask is not None:
            mask = attention_mask.bool()
        if decoder_input_ids is None:
            if labels is None:
                raise ValueError("expected decoder_input_ids or labels, got neither")
            decoder_input_ids = self.prepare_decoder_input_ids_from_labels(labels)
        state = cache if cache is not None else past_key_values
        if state is None:
            state = self._start(encoder_outputs, mask)
        logits, weights = self._decode(self.encoder.embed(decoder_input_ids), encoder_outputs, mask, state)
        smoothing = self.config.label_smoothing if self.training else 0.0
        keep = self.config.use_cache if use_cache is None else use_cache
        output = Seq2SeqLMOutput(
            loss=token_loss(logits, labels, smoothing) if labels is not None else None,
            logits=logits,
            **{CACHE: state if keep and labels is None else None},
            cross_attentions=weights if output_attentions else None,
            encoder_last_hidden_state=encoded,
        )
        return output if return_dict is not False else output.to_tuple()
