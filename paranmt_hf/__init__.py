"""Paraphrase corpora by back-translation, and sentence encoders trained on them, in the Hugging Face ecosystem."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from paranmt_hf.version import __version__

# Public names and where they live; loaded when first used, so that importing the package stays cheap.
_NAMES = {
    "AboutModel": "paranmt_hf.workflows.support.model_record",
    "EncoderConfig": "paranmt_hf.encoders.config",
    "EngineConfig": "paranmt_hf.corpus.jobs.engine",
    "InputError": "paranmt_hf.errors",
    "License": "paranmt_hf.hub.licenses",
    "MarginLoss": "paranmt_hf.training.mining",
    "MegaBatchMiner": "paranmt_hf.training.mining",
    "MineConfig": "paranmt_hf.workflows.mine",
    "Mining": "paranmt_hf.workflows.mine",
    "NegativesConfig": "paranmt_hf.workflows.negatives",
    "ParaNMT": "paranmt_hf.corpus.builder",
    "ReleaseConfig": "paranmt_hf.workflows.support.release_run",
    "ScorerConfig": "paranmt_hf.encoders.scorer",
    "SelectionConfig": "paranmt_hf.corpus.pairs",
    "SentenceIndex": "paranmt_hf.workflows.search",
    "SpaceConfig": "paranmt_hf.search.space",
    "TrainConfig": "paranmt_hf.training.config",
    "TranslatorConfig": "paranmt_hf.corpus.translation.translator",
    "average_encoders": "paranmt_hf.workflows.average",
    "build": "paranmt_hf.workflows.build",
    "build_index": "paranmt_hf.workflows.search",
    "distill_vectors": "paranmt_hf.workflows.vectors",
    "evaluate": "paranmt_hf.workflows.evaluate",
    "evaluate_sts": "paranmt_hf.evaluation.sts",
    "export_encoder": "paranmt_hf.workflows.export",
    "import_pairs": "paranmt_hf.workflows.import_pairs",
    "load": "paranmt_hf.encoders.loading",
    "mine": "paranmt_hf.workflows.mine",
    "mine_pairs": "paranmt_hf.workflows.mine",
    "mined_negatives": "paranmt_hf.workflows.negatives",
    "plan_dataset": "paranmt_hf.workflows.publish",
    "plan_model": "paranmt_hf.workflows.publish",
    "publish_dataset": "paranmt_hf.workflows.publish",
    "publish_model": "paranmt_hf.workflows.publish",
    "rescore": "paranmt_hf.workflows.score",
    "stream": "paranmt_hf.corpus.stream",
    "train": "paranmt_hf.workflows.train",
    "write_results": "paranmt_hf.workflows.evaluate",
}

__all__ = [
    "AboutModel",
    "EncoderConfig",
    "EngineConfig",
    "InputError",
    "License",
    "MarginLoss",
    "MegaBatchMiner",
    "MineConfig",
    "Mining",
    "NegativesConfig",
    "ParaNMT",
    "ReleaseConfig",
    "ScorerConfig",
    "SelectionConfig",
    "SentenceIndex",
    "SpaceConfig",
    "TrainConfig",
    "TranslatorConfig",
    "__version__",
    "average_encoders",
    "build",
    "build_index",
    "distill_vectors",
    "evaluate",
    "evaluate_sts",
    "export_encoder",
    "import_pairs",
    "load",
    "mine",
    "mine_pairs",
    "mined_negatives",
    "plan_dataset",
    "plan_model",
    "publish_dataset",
    "publish_model",
    "rescore",
    "stream",
    "train",
    "write_results",
]

if TYPE_CHECKING:
    from paranmt_hf.corpus.builder import ParaNMT
    from paranmt_hf.corpus.jobs.engine import EngineConfig
    from paranmt_hf.corpus.pairs import SelectionConfig
    from paranmt_hf.corpus.stream import stream
    from paranmt_hf.corpus.translation.translator import TranslatorConfig
    from paranmt_hf.encoders.config import EncoderConfig
    from paranmt_hf.encoders.loading import load
    from paranmt_hf.encoders.scorer import ScorerConfig
    from paranmt_hf.errors import InputError
    from paranmt_hf.evaluation.sts import evaluate_sts
    from paranmt_hf.hub.licenses import License
    from paranmt_hf.search.space import SpaceConfig
    from paranmt_hf.training.config import TrainConfig
    from paranmt_hf.training.mining import MarginLoss, MegaBatchMiner
    from paranmt_hf.workflows.average import average_encoders
    from paranmt_hf.workflows.build import build
    from paranmt_hf.workflows.evaluate import evaluate, write_results
    from paranmt_hf.workflows.export import export_encoder
    from paranmt_hf.workflows.import_pairs import import_pairs
    from paranmt_hf.workflows.mine import MineConfig, Mining, mine, mine_pairs
    from paranmt_hf.workflows.negatives import NegativesConfig, mined_negatives
    from paranmt_hf.workflows.publish import plan_dataset, plan_model, publish_dataset, publish_model
    from paranmt_hf.workflows.score import rescore
    from paranmt_hf.workflows.search import SentenceIndex, build_index
    from paranmt_hf.workflows.support.model_record import AboutModel
    from paranmt_hf.workflows.support.release_run import ReleaseConfig
    from paranmt_hf.workflows.train import train
    from paranmt_hf.workflows.vectors import distill_vectors


def __getattr__(name: str) -> Any:  # noqa: ANN401
    if name in _NAMES:
        return getattr(import_module(_NAMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
