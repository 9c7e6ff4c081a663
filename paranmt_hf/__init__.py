"""Paraphrase corpora by back-translation, and sentence encoders trained on them, in the Hugging Face ecosystem."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from paranmt_hf.version import __version__

# Public names and where they live; loaded when first used, so that importing the package stays cheap.
_NAMES = {
    "AboutModel": "paranmt_hf.workflows.support.model_record",
    "AdversarialConfig": "paranmt_hf.workflows.adversarial",
    "AnnotationConfig": "paranmt_hf.corpus.annotation.sample",
    "AugmentConfig": "paranmt_hf.workflows.augment",
    "AverageConfig": "paranmt_hf.evaluation.word_weights",
    "ControlledParaphraser": "paranmt_hf.paraphrase.syntax.paraphraser",
    "ConvertConfig": "paranmt_hf.workflows.convert",
    "EncoderConfig": "paranmt_hf.encoders.config",
    "EngineConfig": "paranmt_hf.corpus.jobs.engine",
    "InputError": "paranmt_hf.errors",
    "ItemsConfig": "paranmt_hf.workflows.support.data_configs",
    "LanguageModelConfig": "paranmt_hf.corpus.language_models.config",
    "Lexicon": "paranmt_hf.lexicon.lexicon",
    "LexiconConfig": "paranmt_hf.lexicon.config",
    "License": "paranmt_hf.hub.licenses",
    "MarginLoss": "paranmt_hf.training.mining",
    "MegaBatchMiner": "paranmt_hf.training.mining",
    "MineConfig": "paranmt_hf.workflows.mine",
    "Mining": "paranmt_hf.workflows.mine",
    "NegativesConfig": "paranmt_hf.workflows.negatives",
    "ParaNMT": "paranmt_hf.corpus.builder",
    "ParaphraseConfig": "paranmt_hf.paraphrase.config",
    "Paraphraser": "paranmt_hf.paraphrase.paraphraser",
    "ParaphraserConfig": "paranmt_hf.paraphrase.config",
    "ParaphraserTraining": "paranmt_hf.paraphrase.config",
    "ParseConfig": "paranmt_hf.workflows.parse",
    "ReleaseConfig": "paranmt_hf.workflows.support.release_run",
    "ScorerConfig": "paranmt_hf.encoders.scorer",
    "RotateConfig": "paranmt_hf.workflows.rotate",
    "SelectConfig": "paranmt_hf.workflows.support.select_config",
    "SelectionConfig": "paranmt_hf.corpus.pairs",
    "Sent2VecConfig": "paranmt_hf.training.sent2vec.config",
    "SentenceIndex": "paranmt_hf.workflows.search",
    "SpaceConfig": "paranmt_hf.search.space",
    "StaticEncoder": "paranmt_hf.encoders.static_encoder",
    "StatsConfig": "paranmt_hf.workflows.stats",
    "SuperviseConfig": "paranmt_hf.supervised.config",
    "SyntaxConfig": "paranmt_hf.paraphrase.syntax.config",
    "TrainConfig": "paranmt_hf.training.config",
    "TranslatorConfig": "paranmt_hf.corpus.translation.translator",
    "TuneConfig": "paranmt_hf.workflows.support.grid_order",
    "analyse_lengths": "paranmt_hf.workflows.analyse",
    "analyse_neighbours": "paranmt_hf.workflows.analyse",
    "analyse_norms": "paranmt_hf.workflows.analyse",
    "analyse_under_trained": "paranmt_hf.workflows.analyse",
    "augment": "paranmt_hf.workflows.augment",
    "average_encoders": "paranmt_hf.workflows.average",
    "build": "paranmt_hf.workflows.build",
    "build_index": "paranmt_hf.workflows.search",
    "build_lexicon": "paranmt_hf.workflows.lexicon",
    "compare_folds": "paranmt_hf.workflows.folds",
    "compare_sizes": "paranmt_hf.workflows.sizes",
    "compare_sources": "paranmt_hf.workflows.sources",
    "convert_model": "paranmt_hf.workflows.convert",
    "describe_corpora": "paranmt_hf.workflows.stats",
    "distill_vectors": "paranmt_hf.workflows.vectors",
    "evaluate": "paranmt_hf.workflows.evaluate",
    "evaluate_canonical": "paranmt_hf.workflows.support.paraphrase_evaluation",
    "evaluate_contrast": "paranmt_hf.workflows.evaluate",
    "evaluate_lexicon": "paranmt_hf.workflows.lexicon",
    "evaluate_overfitting": "paranmt_hf.workflows.evaluate",
    "evaluate_paraphrases": "paranmt_hf.workflows.support.paraphrase_evaluation",
    "evaluate_sts": "paranmt_hf.evaluation.sts",
    "evaluate_transfer": "paranmt_hf.evaluation.transfer.tasks",
    "export_annotation": "paranmt_hf.workflows.annotate",
    "export_encoder": "paranmt_hf.workflows.export",
    "frequent_templates": "paranmt_hf.workflows.templates",
    "find_adversarial": "paranmt_hf.workflows.adversarial",
    "import_annotation": "paranmt_hf.workflows.annotate",
    "import_pairs": "paranmt_hf.workflows.import_pairs",
    "load": "paranmt_hf.encoders.loading",
    "load_paraphraser": "paranmt_hf.workflows.support.loaded_paraphraser",
    "load_supervised": "paranmt_hf.supervised.model",
    "mine": "paranmt_hf.workflows.mine",
    "mine_pairs": "paranmt_hf.workflows.mine",
    "mined_negatives": "paranmt_hf.workflows.negatives",
    "paraphrase_corpus": "paranmt_hf.workflows.paraphrase_corpus",
    "paraphrase_file": "paranmt_hf.workflows.paraphrase",
    "parse_pairs": "paranmt_hf.workflows.parse",
    "plan_dataset": "paranmt_hf.workflows.publish",
    "plan_model": "paranmt_hf.workflows.publish",
    "publish_dataset": "paranmt_hf.workflows.publish",
    "publish_model": "paranmt_hf.workflows.publish",
    "rescore": "paranmt_hf.workflows.score",
    "rotate_encoder": "paranmt_hf.workflows.rotate",
    "sample_for_annotation": "paranmt_hf.workflows.annotate",
    "select": "paranmt_hf.workflows.select",
    "serve_annotation": "paranmt_hf.workflows.annotate",
    "stream": "paranmt_hf.corpus.stream",
    "summarise_annotation": "paranmt_hf.workflows.annotate",
    "supervise": "paranmt_hf.workflows.supervise",
    "train": "paranmt_hf.workflows.train",
    "tune": "paranmt_hf.workflows.tune",
    "train_controlled": "paranmt_hf.workflows.train_controlled",
    "train_paraphraser": "paranmt_hf.workflows.train_paraphraser",
    "train_sent2vec": "paranmt_hf.workflows.train_sent2vec",
    "write_report": "paranmt_hf.workflows.report",
    "write_results": "paranmt_hf.workflows.evaluate",
}

__all__ = [
    "AboutModel",
    "AdversarialConfig",
    "AnnotationConfig",
    "AugmentConfig",
    "AverageConfig",
    "ControlledParaphraser",
    "ConvertConfig",
    "EncoderConfig",
    "EngineConfig",
    "InputError",
    "ItemsConfig",
    "LanguageModelConfig",
    "Lexicon",
    "LexiconConfig",
    "License",
    "MarginLoss",
    "MegaBatchMiner",
    "MineConfig",
    "Mining",
    "NegativesConfig",
    "ParaNMT",
    "ParaphraseConfig",
    "Paraphraser",
    "ParaphraserConfig",
    "ParaphraserTraining",
    "ParseConfig",
    "ReleaseConfig",
    "ScorerConfig",
    "RotateConfig",
    "SelectConfig",
    "SelectionConfig",
    "Sent2VecConfig",
    "SentenceIndex",
    "SpaceConfig",
    "StaticEncoder",
    "StatsConfig",
    "SuperviseConfig",
    "SyntaxConfig",
    "TrainConfig",
    "TranslatorConfig",
    "TuneConfig",
    "__version__",
    "analyse_lengths",
    "analyse_neighbours",
    "analyse_norms",
    "analyse_under_trained",
    "augment",
    "average_encoders",
    "build",
    "build_index",
    "build_lexicon",
    "compare_folds",
    "compare_sizes",
    "compare_sources",
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
    "load_paraphraser",
    "load_supervised",
    "mine",
    "mine_pairs",
    "mined_negatives",
    "paraphrase_corpus",
    "paraphrase_file",
    "parse_pairs",
    "plan_dataset",
    "plan_model",
    "publish_dataset",
    "publish_model",
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
    "train_controlled",
    "train_paraphraser",
    "train_sent2vec",
    "write_report",
    "write_results",
]

if TYPE_CHECKING:
    from paranmt_hf.corpus.annotation.sample import AnnotationConfig
    from paranmt_hf.corpus.builder import ParaNMT
    from paranmt_hf.corpus.jobs.engine import EngineConfig
    from paranmt_hf.corpus.language_models.config import LanguageModelConfig
    from paranmt_hf.corpus.pairs import SelectionConfig
    from paranmt_hf.corpus.stream import stream
    from paranmt_hf.corpus.translation.translator import TranslatorConfig
    from paranmt_hf.encoders.config import EncoderConfig
    from paranmt_hf.encoders.loading import load
    from paranmt_hf.encoders.scorer import ScorerConfig
    from paranmt_hf.encoders.static_encoder import StaticEncoder
    from paranmt_hf.errors import InputError
    from paranmt_hf.evaluation.sts import evaluate_sts
    from paranmt_hf.evaluation.transfer.tasks import evaluate_transfer
    from paranmt_hf.evaluation.word_weights import AverageConfig
    from paranmt_hf.hub.licenses import License
    from paranmt_hf.lexicon.config import LexiconConfig
    from paranmt_hf.lexicon.lexicon import Lexicon
    from paranmt_hf.paraphrase.config import ParaphraseConfig, ParaphraserConfig, ParaphraserTraining
    from paranmt_hf.paraphrase.paraphraser import Paraphraser
    from paranmt_hf.paraphrase.syntax.config import SyntaxConfig
    from paranmt_hf.paraphrase.syntax.paraphraser import ControlledParaphraser
    from paranmt_hf.search.space import SpaceConfig
    from paranmt_hf.supervised.config import SuperviseConfig
    from paranmt_hf.supervised.model import load_supervised
    from paranmt_hf.training.config import TrainConfig
    from paranmt_hf.training.mining import MarginLoss, MegaBatchMiner
    from paranmt_hf.training.sent2vec.config import Sent2VecConfig
    from paranmt_hf.workflows.adversarial import AdversarialConfig, find_adversarial
    from paranmt_hf.workflows.analyse import analyse_lengths, analyse_neighbours, analyse_norms, analyse_under_trained
    from paranmt_hf.workflows.annotate import (
        export_annotation,
        import_annotation,
        sample_for_annotation,
        serve_annotation,
        summarise_annotation,
    )
    from paranmt_hf.workflows.augment import AugmentConfig, augment
    from paranmt_hf.workflows.average import average_encoders
    from paranmt_hf.workflows.build import build
    from paranmt_hf.workflows.convert import ConvertConfig, convert_model
    from paranmt_hf.workflows.evaluate import evaluate, evaluate_contrast, evaluate_overfitting, write_results
    from paranmt_hf.workflows.export import export_encoder
    from paranmt_hf.workflows.folds import compare_folds
    from paranmt_hf.workflows.import_pairs import import_pairs
    from paranmt_hf.workflows.lexicon import build_lexicon, evaluate_lexicon
    from paranmt_hf.workflows.mine import MineConfig, Mining, mine, mine_pairs
    from paranmt_hf.workflows.negatives import NegativesConfig, mined_negatives
    from paranmt_hf.workflows.paraphrase import paraphrase_file
    from paranmt_hf.workflows.paraphrase_corpus import paraphrase_corpus
    from paranmt_hf.workflows.publish import plan_dataset, plan_model, publish_dataset, publish_model
    from paranmt_hf.workflows.report import write_report
    from paranmt_hf.workflows.rotate import RotateConfig, rotate_encoder
    from paranmt_hf.workflows.score import rescore
    from paranmt_hf.workflows.search import SentenceIndex, build_index
    from paranmt_hf.workflows.select import select
    from paranmt_hf.workflows.sizes import compare_sizes
    from paranmt_hf.workflows.sources import compare_sources
    from paranmt_hf.workflows.stats import StatsConfig, describe_corpora
    from paranmt_hf.workflows.supervise import supervise
    from paranmt_hf.workflows.support.data_configs import ItemsConfig
    from paranmt_hf.workflows.support.grid_order import TuneConfig
    from paranmt_hf.workflows.support.loaded_paraphraser import load_paraphraser
    from paranmt_hf.workflows.support.model_record import AboutModel
    from paranmt_hf.workflows.support.paraphrase_evaluation import evaluate_canonical, evaluate_paraphrases
    from paranmt_hf.workflows.support.release_run import ReleaseConfig
    from paranmt_hf.workflows.support.select_config import SelectConfig
    from paranmt_hf.workflows.train import train
    from paranmt_hf.workflows.train_controlled import train_controlled
    from paranmt_hf.workflows.train_paraphraser import train_paraphraser
    from paranmt_hf.workflows.train_sent2vec import train_sent2vec
    from paranmt_hf.workflows.tune import tune
    from paranmt_hf.workflows.vectors import distill_vectors


def __getattr__(name: str) -> Any:  # noqa: ANN401
    if name in _NAMES:
        return getattr(import_module(_NAMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
