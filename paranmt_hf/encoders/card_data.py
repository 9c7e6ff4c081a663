"""Card data with the name and the revision of an encoder, by which other libraries store results and vectors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sentence_transformers.sentence_transformer.model_card import SentenceTransformerModelCardData

from paranmt_hf.hub.client import is_id

REVISION_DIGITS = 40  # As many as a commit on the Hub has


def _named(field: str, form: str) -> Any:  # noqa: ANN401 - a property in place of a field
    """Make a property for the value of a card field.

    It returns the value that was set; if none was, the name or revision of the encoder in the given form.

    Args:
        field: Name of the field.
        form: Format string with `{name}` and `{revision}` of the encoder.
    """

    def read(self: EncoderCardData) -> str | None:
        given = self.__dict__.get("_given", {}).get(field)
        encoder: Any = getattr(self, "model", None)
        if given is not None or encoder is None or not self._names_encoder:
            return given
        name = "unnamed" if encoder.source is None else "-".join(encoder.source.name.split()) or "model"
        # A folder has no id.
        name = name if is_id(name) else f"ORGANISATION/{name}"
        return form.format(name=name, revision=encoder.revision)

    def write(self: EncoderCardData, value: str | None) -> None:
        self.__dict__.setdefault("_given", {})[field] = value

    return property(read, write)


class EncoderCardData(SentenceTransformerModelCardData):
    """Card data whose name and revision are those of the encoder at the time they are read.

    Other libraries use these values as keys: mteb stores results by `model_name` and `base_model_revision`, and
    `mine_hard_negatives` of sentence-transformers stores vectors by `base_model`. If they were not filled in, all
    encoders would share one entry. Written cards contain only values that were set.
    """

    _names_encoder = True
    _given: dict[str, str | None]

    model_name = _named("model_name", "{name}")
    base_model = _named("base_model", "{name}@{revision}")
    base_model_revision = _named("base_model_revision", "{revision}")

    @contextmanager
    def _only_given(self) -> Iterator[None]:
        """Return only values that were set, not the name of the encoder, inside a `with` block."""
        self._names_encoder = False
        try:
            yield
        finally:
            self._names_encoder = True

    def register_model(self, model: Any) -> None:  # noqa: ANN401 - whatever the parent takes
        """Set the encoder that the card describes."""
        with self._only_given():
            super().register_model(model)

    def to_dict(self) -> dict[str, Any]:
        """Return the values for the template of the card."""
        title = self.__dict__.get("_given", {}).get("model_name")
        with self._only_given():
            values: dict[str, Any] = super().to_dict()
        # The parent sets `model_name` to a default title, which is not the name of the encoder.
        self.model_name = title
        return values
