"""Publishing encoders of Sent2Vec, trained here or converted."""

from __future__ import annotations

from paranmt_hf.sent2vec.convert import ConversionRecord, converted_values
from paranmt_hf.sent2vec.record import Sent2VecRecord, sent2vec_values
from paranmt_hf.training.publish import encoder_kind

SENT2VEC = encoder_kind("an encoder trained on sentences", Sent2VecRecord, sent2vec_values)
CONVERTED = encoder_kind("a converted encoder", ConversionRecord, converted_values, ("data",))
