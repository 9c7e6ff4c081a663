"""Paraphrase corpora by back-translation, and sentence encoders trained on them, in the Hugging Face ecosystem."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

# Public names and where they live; loaded when first used, so that importing the package stays cheap.
_NAMES = {
    "EngineConfig": "paranmt_hf.corpus.engine",
    "InputError": "paranmt_hf.errors",
    "ParaNMT": "paranmt_hf.corpus.builder",
    "ReleaseConfig": "paranmt_hf.pipeline",
    "ScorerConfig": "paranmt_hf.corpus.scorers",
    "TranslatorConfig": "paranmt_hf.corpus.backtranslation",
    "build": "paranmt_hf.pipeline",
    "import_pairs": "paranmt_hf.pipeline",
    "rescore": "paranmt_hf.pipeline",
}

__all__ = [
    "EngineConfig",
    "InputError",
    "ParaNMT",
    "ReleaseConfig",
    "ScorerConfig",
    "TranslatorConfig",
    "__version__",
    "build",
    "import_pairs",
    "rescore",
]

if TYPE_CHECKING:
    from paranmt_hf.corpus.backtranslation import TranslatorConfig
    from paranmt_hf.corpus.builder import ParaNMT
    from paranmt_hf.corpus.engine import EngineConfig
    from paranmt_hf.corpus.scorers import ScorerConfig
    from paranmt_hf.errors import InputError
    from paranmt_hf.pipeline import ReleaseConfig, build, import_pairs, rescore


def __getattr__(name: str) -> Any:  # noqa: ANN401
    if name in _NAMES:
        return getattr(import_module(_NAMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
