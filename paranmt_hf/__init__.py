"""Paraphrase corpora by back-translation, and sentence encoders trained on them, in the Hugging Face ecosystem."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from paranmt_hf.version import __version__

# Public names and where they live; loaded when first used, so that importing the package stays cheap.
_NAMES = {
    "About": "paranmt_hf.hub.publish",
    "AnnotationConfig": "paranmt_hf.apps.annotate.sample",
    "AugmentConfig": "paranmt_hf.paraphrase.augment",
    "WordWeighting": "paranmt_hf.evaluation.word_weights",
    "ConvertConfig": "paranmt_hf.training.convert",
    "EncoderConfig": "paranmt_hf.encoders.config",
    "EngineConfig": "paranmt_hf.corpus.jobs.engine",
    "InputError": "paranmt_hf.errors",
    "LanguageModelConfig": "paranmt_hf.corpus.language_models.config",
    "Lexicon": "paranmt_hf.lexicon.lexicon",
    "LexiconConfig": "paranmt_hf.lexicon.lexicon",
    "MarginLoss": "paranmt_hf.training.mega_batch_miner",
    "MegaBatchMiner": "paranmt_hf.training.mega_batch_miner",
    "MineConfig": "paranmt_hf.search.mine",
    "NegativesConfig": "paranmt_hf.training.negatives",
    "ParaNMTBuilder": "paranmt_hf.corpus.builder",
    "ParaphraseConfig": "paranmt_hf.paraphrase.config",
    "ParaphraseEvaluationData": "paranmt_hf.paraphrase.config",
    "Paraphraser": "paranmt_hf.paraphrase.paraphraser",
    "ParaphraserConfig": "paranmt_hf.paraphrase.config",
    "ParaphraserTraining": "paranmt_hf.paraphrase.config",
    "ReleaseConfig": "paranmt_hf.corpus.release_run",
    "EvaluationText": "paranmt_hf.corpus.selection.decontamination",
    "TextInput": "paranmt_hf.corpus.bitext.inputs",
    "RotateConfig": "paranmt_hf.training.derived",
    "ReleaseFilter": "paranmt_hf.corpus.selection.release_filter",
    "PairSelection": "paranmt_hf.corpus.pairs",
    "Sent2VecConfig": "paranmt_hf.training.sent2vec.config",
    "SentenceIndex": "paranmt_hf.search.index",
    "IndexConfig": "paranmt_hf.search.indexed_vectors",
    "StaticEncoder": "paranmt_hf.encoders.static_encoder",
    "StatsConfig": "paranmt_hf.corpus.stats",
    "SuperviseConfig": "paranmt_hf.training.supervised.config",
    "SupervisedModel": "paranmt_hf.training.supervised.model",
    "TrainConfig": "paranmt_hf.training.config",
    "TranslatorConfig": "paranmt_hf.corpus.translation.translator",
    "TuneConfig": "paranmt_hf.training.tuning.grid",
    "augment": "paranmt_hf.paraphrase.augment",
    "average_encoders": "paranmt_hf.training.derived",
    "build": "paranmt_hf.corpus.build",
    "convert_model": "paranmt_hf.training.convert",
    "describe_corpora": "paranmt_hf.corpus.stats",
    "distill_vectors": "paranmt_hf.training.vectors",
    "evaluate": "paranmt_hf.evaluation.evaluate",
    "evaluate_canonical": "paranmt_hf.paraphrase.evaluate",
    "evaluate_contrast": "paranmt_hf.evaluation.contrast",
    "evaluate_lexicon": "paranmt_hf.lexicon.word_similarity",
    "evaluate_overfitting": "paranmt_hf.training.overfitting",
    "evaluate_paraphrases": "paranmt_hf.paraphrase.evaluate",
    "evaluate_sts": "paranmt_hf.evaluation.sts",
    "evaluate_transfer": "paranmt_hf.evaluation.transfer",
    "export_annotation": "paranmt_hf.apps.annotate.annotate",
    "export_encoder": "paranmt_hf.encoders.export.export",
    "frequent_templates": "paranmt_hf.corpus.parsing.template_counts",
    "find_adversarial": "paranmt_hf.paraphrase.adversarial",
    "import_annotation": "paranmt_hf.apps.annotate.annotate",
    "import_pairs": "paranmt_hf.corpus.import_pairs",
    "load": "paranmt_hf.encoders.loading",
    "mine_pairs": "paranmt_hf.search.mine",
    "mined_negatives": "paranmt_hf.training.negatives",
    "paraphrase_file": "paranmt_hf.paraphrase.paraphrase_file",
    "parse_pairs": "paranmt_hf.corpus.parsing.parse",
    "publish": "paranmt_hf.hub.publish",
    "rescore": "paranmt_hf.corpus.score",
    "rotate_encoder": "paranmt_hf.training.derived",
    "sample_for_annotation": "paranmt_hf.apps.annotate.annotate",
    "select": "paranmt_hf.corpus.selection.select",
    "serve_annotation": "paranmt_hf.apps.annotate.annotate",
    "stream": "paranmt_hf.corpus.stream",
    "summarise_annotation": "paranmt_hf.apps.annotate.annotate",
    "supervise": "paranmt_hf.training.supervised.supervise",
    "train": "paranmt_hf.training.train",
    "tune": "paranmt_hf.training.tuning.tune",
    "train_paraphraser": "paranmt_hf.paraphrase.train",
    "train_sent2vec": "paranmt_hf.training.sent2vec.train_sent2vec",
    "write_report": "paranmt_hf.apps.explore.explore",
    "write_results": "paranmt_hf.evaluation.results",
}

__all__ = [
    "About",
    "AnnotationConfig",
    "AugmentConfig",
    "WordWeighting",
    "ConvertConfig",
    "EncoderConfig",
    "EngineConfig",
    "InputError",
    "LanguageModelConfig",
    "Lexicon",
    "LexiconConfig",
    "MarginLoss",
    "MegaBatchMiner",
    "MineConfig",
    "NegativesConfig",
    "ParaNMTBuilder",
    "ParaphraseConfig",
    "ParaphraseEvaluationData",
    "Paraphraser",
    "ParaphraserConfig",
    "ParaphraserTraining",
    "ReleaseConfig",
    "EvaluationText",
    "TextInput",
    "RotateConfig",
    "ReleaseFilter",
    "PairSelection",
    "Sent2VecConfig",
    "SentenceIndex",
    "IndexConfig",
    "StaticEncoder",
    "StatsConfig",
    "SuperviseConfig",
    "SupervisedModel",
    "TrainConfig",
    "TranslatorConfig",
    "TuneConfig",
    "__version__",
    "augment",
    "average_encoders",
    "build",
    "convert_model",
    "describe_corpora",
    "distill_vectors",
    "evaluate",
    "evaluate_canonical",
    "evaluate_contrast",
    "evaluate_lexicon",
    "evaluate_overfitting",
    "evaluate_paraphrases",
    "evaluate_sts",
    "evaluate_transfer",
    "export_annotation",
    "export_encoder",
    "frequent_templates",
    "find_adversarial",
    "import_annotation",
    "import_pairs",
    "load",
    "mine_pairs",
    "mined_negatives",
    "paraphrase_file",
    "parse_pairs",
    "publish",
    "rescore",
    "rotate_encoder",
    "sample_for_annotation",
    "select",
    "serve_annotation",
    "stream",
    "summarise_annotation",
    "supervise",
    "train",
    "tune",
    "train_paraphraser",
    "train_sent2vec",
    "write_report",
    "write_results",
]

if TYPE_CHECKING:
    from paranmt_hf.apps.annotate.annotate import (
        export_annotation,
        import_annotation,
        sample_for_annotation,
        serve_annotation,
        summarise_annotation,
    )
    from paranmt_hf.apps.annotate.sample import AnnotationConfig
    from paranmt_hf.apps.explore.explore import write_report
    from paranmt_hf.corpus.bitext.inputs import TextInput
    from paranmt_hf.corpus.build import build
    from paranmt_hf.corpus.builder import ParaNMTBuilder
    from paranmt_hf.corpus.import_pairs import import_pairs
    from paranmt_hf.corpus.jobs.engine import EngineConfig
    from paranmt_hf.corpus.language_models.config import LanguageModelConfig
    from paranmt_hf.corpus.pairs import PairSelection
    from paranmt_hf.corpus.release_run import ReleaseConfig
    from paranmt_hf.corpus.score import rescore
    from paranmt_hf.corpus.selection.decontamination import EvaluationText
    from paranmt_hf.corpus.selection.release_filter import ReleaseFilter
    from paranmt_hf.corpus.selection.select import select
    from paranmt_hf.corpus.stats import StatsConfig, describe_corpora
    from paranmt_hf.corpus.stream import stream
    from paranmt_hf.corpus.translation.translator import TranslatorConfig
    from paranmt_hf.encoders.config import EncoderConfig
    from paranmt_hf.encoders.export.export import export_encoder
    from paranmt_hf.encoders.loading import load
    from paranmt_hf.encoders.static_encoder import StaticEncoder
    from paranmt_hf.errors import InputError
    from paranmt_hf.evaluation.contrast import evaluate_contrast
    from paranmt_hf.evaluation.evaluate import evaluate
    from paranmt_hf.evaluation.results import write_results
    from paranmt_hf.evaluation.sts import evaluate_sts
    from paranmt_hf.evaluation.transfer import evaluate_transfer
    from paranmt_hf.evaluation.word_weights import WordWeighting
    from paranmt_hf.hub.publish import About, publish
    from paranmt_hf.lexicon.lexicon import Lexicon, LexiconConfig
    from paranmt_hf.lexicon.word_similarity import evaluate_lexicon
    from paranmt_hf.paraphrase.adversarial import find_adversarial
    from paranmt_hf.paraphrase.augment import AugmentConfig, augment
    from paranmt_hf.paraphrase.config import (
        ParaphraseConfig,
        ParaphraseEvaluationData,
        ParaphraserConfig,
        ParaphraserTraining,
    )
    from paranmt_hf.paraphrase.evaluate import evaluate_canonical, evaluate_paraphrases
    from paranmt_hf.paraphrase.paraphrase_file import paraphrase_file
    from paranmt_hf.paraphrase.paraphraser import Paraphraser
    from paranmt_hf.paraphrase.train import train_paraphraser
    from paranmt_hf.search.index import SentenceIndex
    from paranmt_hf.search.indexed_vectors import IndexConfig
    from paranmt_hf.search.mine import MineConfig, mine_pairs
    from paranmt_hf.training.config import TrainConfig
    from paranmt_hf.training.convert import ConvertConfig, convert_model
    from paranmt_hf.training.derived import RotateConfig, average_encoders, rotate_encoder
    from paranmt_hf.training.mega_batch_miner import MarginLoss, MegaBatchMiner
    from paranmt_hf.training.negatives import NegativesConfig, mined_negatives
    from paranmt_hf.training.overfitting import evaluate_overfitting
    from paranmt_hf.training.sent2vec.config import Sent2VecConfig
    from paranmt_hf.training.sent2vec.train_sent2vec import train_sent2vec
    from paranmt_hf.training.supervised.config import SuperviseConfig
    from paranmt_hf.training.supervised.model import SupervisedModel
    from paranmt_hf.training.supervised.supervise import supervise
    from paranmt_hf.training.train import train
    from paranmt_hf.training.tuning.grid import TuneConfig
    from paranmt_hf.training.tuning.tune import tune
    from paranmt_hf.training.vectors import distill_vectors


def __getattr__(name: str) -> Any:  # noqa: ANN401
    if name in _NAMES:
        return getattr(import_module(_NAMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
