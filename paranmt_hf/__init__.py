"""Paraphrase corpora by back-translation, and sentence encoders trained on them, in the Hugging Face ecosystem."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

# Public names and where they live; loaded when first used, so that importing the package stays cheap.
_NAMES = {
    "AboutModel": "paranmt_hf.model_record",
    "EncoderConfig": "paranmt_hf.encoders.config",
    "EngineConfig": "paranmt_hf.corpus.engine",
    "InputError": "paranmt_hf.errors",
    "ParaNMT": "paranmt_hf.corpus.builder",
    "ReleaseConfig": "paranmt_hf.pipeline",
    "ScorerConfig": "paranmt_hf.scorers",
    "SelectionConfig": "paranmt_hf.corpus.reading",
    "TrainConfig": "paranmt_hf.training.config",
    "TranslatorConfig": "paranmt_hf.corpus.backtranslation",
    "average_encoders": "paranmt_hf.mixing",
    "build": "paranmt_hf.pipeline",
    "distill_vectors": "paranmt_hf.distilling",
    "evaluate_sts": "paranmt_hf.evaluation.sts",
    "export_encoder": "paranmt_hf.encoders.exporting",
    "import_pairs": "paranmt_hf.pipeline",
    "load": "paranmt_hf.encoders.loading",
    "mined_negatives": "paranmt_hf.negatives",
    "publish_dataset": "paranmt_hf.publishing",
    "publish_model": "paranmt_hf.publishing",
    "rescore": "paranmt_hf.pipeline",
    "train": "paranmt_hf.fitting",
}

__all__ = [
    "AboutModel",
    "EncoderConfig",
    "EngineConfig",
    "InputError",
    "ParaNMT",
    "ReleaseConfig",
    "ScorerConfig",
    "SelectionConfig",
    "TrainConfig",
    "TranslatorConfig",
    "__version__",
    "average_encoders",
    "build",
    "distill_vectors",
    "evaluate_sts",
    "export_encoder",
    "import_pairs",
    "load",
    "mined_negatives",
    "publish_dataset",
    "publish_model",
    "rescore",
    "train",
]

if TYPE_CHECKING:
    from paranmt_hf.corpus.backtranslation import TranslatorConfig
    from paranmt_hf.corpus.builder import ParaNMT
    from paranmt_hf.corpus.engine import EngineConfig
    from paranmt_hf.corpus.reading import SelectionConfig
    from paranmt_hf.distilling import distill_vectors
    from paranmt_hf.encoders.config import EncoderConfig
    from paranmt_hf.encoders.exporting import export_encoder
    from paranmt_hf.encoders.loading import load
    from paranmt_hf.errors import InputError
    from paranmt_hf.evaluation.sts import evaluate_sts
    from paranmt_hf.fitting import train
    from paranmt_hf.mixing import average_encoders
    from paranmt_hf.model_record import AboutModel
    from paranmt_hf.negatives import mined_negatives
    from paranmt_hf.pipeline import ReleaseConfig, build, import_pairs, rescore
    from paranmt_hf.publishing import publish_dataset, publish_model
    from paranmt_hf.scorers import ScorerConfig
    from paranmt_hf.training.config import TrainConfig


def __getattr__(name: str) -> Any:  # noqa: ANN401
    if name in _NAMES:
        return getattr(import_module(_NAMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
