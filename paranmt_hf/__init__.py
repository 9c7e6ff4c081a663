"""Paraphrase corpora by back-translation, and sentence encoders trained on them, in the Hugging Face ecosystem."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from paranmt_hf.util.imports import uncollected
from paranmt_hf.version import __version__ as __version__

if TYPE_CHECKING:
    from paranmt_hf.calibration.calibrate import calibrate as calibrate
    from paranmt_hf.corpus.build import build as build
    from paranmt_hf.corpus.import_pairs import import_pairs as import_pairs
    from paranmt_hf.corpus.jobs.engine import EngineConfig as EngineConfig
    from paranmt_hf.corpus.language_models.config import LanguageModelConfig as LanguageModelConfig
    from paranmt_hf.corpus.parsing.parse import parse_pairs as parse_pairs
    from paranmt_hf.corpus.reading.bitext import TextInput as TextInput
    from paranmt_hf.corpus.reading.pairs import PairSelection as PairSelection
    from paranmt_hf.corpus.release.builder import ParaNMTBuilder as ParaNMTBuilder
    from paranmt_hf.corpus.release.release_run import ReleaseConfig as ReleaseConfig
    from paranmt_hf.corpus.release.stream import stream as stream
    from paranmt_hf.corpus.selection.release_filter import ReleaseFilter as ReleaseFilter
    from paranmt_hf.corpus.selection.select import select as select
    from paranmt_hf.corpus.statistics.describe import StatsConfig as StatsConfig
    from paranmt_hf.corpus.statistics.describe import describe_corpora as describe_corpora
    from paranmt_hf.corpus.translation.translator import TranslatorConfig as TranslatorConfig
    from paranmt_hf.distillation.config import DistillConfig as DistillConfig
    from paranmt_hf.distillation.distill import distill as distill
    from paranmt_hf.distillation.listwise import ListwiseLoss as ListwiseLoss
    from paranmt_hf.distillation.reduction import VectorsConfig as VectorsConfig
    from paranmt_hf.distillation.vectors import distill_vectors as distill_vectors
    from paranmt_hf.encoders.calibration import Calibration as Calibration
    from paranmt_hf.encoders.config import EncoderConfig as EncoderConfig
    from paranmt_hf.encoders.export.export import export_encoder as export_encoder
    from paranmt_hf.encoders.loading import load as load
    from paranmt_hf.encoders.same_meaning import same_meaning as same_meaning
    from paranmt_hf.encoders.sentence_encoder import SentenceEncoder as SentenceEncoder
    from paranmt_hf.encoders.static_encoder import StaticEncoder as StaticEncoder
    from paranmt_hf.errors import InputError as InputError
    from paranmt_hf.evaluation.evaluate import evaluate as evaluate
    from paranmt_hf.evaluation.evaluator import StsEvaluator as StsEvaluator
    from paranmt_hf.evaluation.results import Results as Results
    from paranmt_hf.evaluation.transfer import evaluate_transfer as evaluate_transfer
    from paranmt_hf.hub.publish import publish as publish
    from paranmt_hf.lexicon.lexicon import Lexicon as Lexicon
    from paranmt_hf.meaning.judgement import Meaning as Meaning
    from paranmt_hf.paraphrase.config import ParaphraseConfig as ParaphraseConfig
    from paranmt_hf.paraphrase.config import ParaphraserConfig as ParaphraserConfig
    from paranmt_hf.paraphrase.config import ParaphraserTraining as ParaphraserTraining
    from paranmt_hf.paraphrase.paraphraser import Paraphraser as Paraphraser
    from paranmt_hf.paraphrase.train import train_paraphraser as train_paraphraser
    from paranmt_hf.search.dedup import dedup as dedup
    from paranmt_hf.search.dedup_config import DedupConfig as DedupConfig
    from paranmt_hf.search.hard_negatives import hard_negatives as hard_negatives
    from paranmt_hf.search.index import SentenceIndex as SentenceIndex
    from paranmt_hf.search.mine import MineConfig as MineConfig
    from paranmt_hf.search.mine import mine_pairs as mine_pairs
    from paranmt_hf.search.ranked_negatives import HardNegativesConfig as HardNegativesConfig
    from paranmt_hf.search.text_memory import TextMemory as TextMemory
    from paranmt_hf.sent2vec.config import Sent2VecConfig as Sent2VecConfig
    from paranmt_hf.sent2vec.train import train_sent2vec as train_sent2vec
    from paranmt_hf.supervised.config import SuperviseConfig as SuperviseConfig
    from paranmt_hf.supervised.model import SupervisedModel as SupervisedModel
    from paranmt_hf.supervised.supervise import supervise as supervise
    from paranmt_hf.text.normal_form import normal_form as normal_form
    from paranmt_hf.training.average import average_encoders as average_encoders
    from paranmt_hf.training.config import TrainConfig as TrainConfig
    from paranmt_hf.training.mega_batch_miner import MarginLoss as MarginLoss
    from paranmt_hf.training.mega_batch_miner import MegaBatchMiner as MegaBatchMiner
    from paranmt_hf.training.train import train as train

# The module of each public name. It is imported when the name is first used, so that importing the package is fast.
_MODULES = {
    "Calibration": "paranmt_hf.encoders.calibration",
    "DedupConfig": "paranmt_hf.search.dedup_config",
    "DistillConfig": "paranmt_hf.distillation.config",
    "EncoderConfig": "paranmt_hf.encoders.config",
    "EngineConfig": "paranmt_hf.corpus.jobs.engine",
    "HardNegativesConfig": "paranmt_hf.search.ranked_negatives",
    "InputError": "paranmt_hf.errors",
    "Lexicon": "paranmt_hf.lexicon.lexicon",
    "MarginLoss": "paranmt_hf.training.mega_batch_miner",
    "MegaBatchMiner": "paranmt_hf.training.mega_batch_miner",
    "MineConfig": "paranmt_hf.search.mine",
    "PairSelection": "paranmt_hf.corpus.reading.pairs",
    "Paraphraser": "paranmt_hf.paraphrase.paraphraser",
    "ParaphraserConfig": "paranmt_hf.paraphrase.config",
    "ParaphraserTraining": "paranmt_hf.paraphrase.config",
    "ReleaseConfig": "paranmt_hf.corpus.release.release_run",
    "ReleaseFilter": "paranmt_hf.corpus.selection.release_filter",
    "Results": "paranmt_hf.evaluation.results",
    "SentenceEncoder": "paranmt_hf.encoders.sentence_encoder",
    "SentenceIndex": "paranmt_hf.search.index",
    "StaticEncoder": "paranmt_hf.encoders.static_encoder",
    "StsEvaluator": "paranmt_hf.evaluation.evaluator",
    "SupervisedModel": "paranmt_hf.supervised.model",
    "TextInput": "paranmt_hf.corpus.reading.bitext",
    "TextMemory": "paranmt_hf.search.text_memory",
    "TrainConfig": "paranmt_hf.training.config",
    "TranslatorConfig": "paranmt_hf.corpus.translation.translator",
    "average_encoders": "paranmt_hf.training.average",
    "build": "paranmt_hf.corpus.build",
    "calibrate": "paranmt_hf.calibration.calibrate",
    "dedup": "paranmt_hf.search.dedup",
    "distill": "paranmt_hf.distillation.distill",
    "distill_vectors": "paranmt_hf.distillation.vectors",
    "evaluate": "paranmt_hf.evaluation.evaluate",
    "export_encoder": "paranmt_hf.encoders.export.export",
    "hard_negatives": "paranmt_hf.search.hard_negatives",
    "import_pairs": "paranmt_hf.corpus.import_pairs",
    "load": "paranmt_hf.encoders.loading",
    "mine_pairs": "paranmt_hf.search.mine",
    "publish": "paranmt_hf.hub.publish",
    "same_meaning": "paranmt_hf.encoders.same_meaning",
    "select": "paranmt_hf.corpus.selection.select",
    "stream": "paranmt_hf.corpus.release.stream",
    "supervise": "paranmt_hf.supervised.supervise",
    "train": "paranmt_hf.training.train",
    "train_paraphraser": "paranmt_hf.paraphrase.train",
    "train_sent2vec": "paranmt_hf.sent2vec.train",
}
# Less common names, which can be imported from the package too but are not in `__all__`.
_FURTHER = {
    "Meaning": "paranmt_hf.meaning.judgement",
    "LanguageModelConfig": "paranmt_hf.corpus.language_models.config",
    "ListwiseLoss": "paranmt_hf.distillation.listwise",
    "ParaNMTBuilder": "paranmt_hf.corpus.release.builder",
    "ParaphraseConfig": "paranmt_hf.paraphrase.config",
    "Sent2VecConfig": "paranmt_hf.sent2vec.config",
    "StatsConfig": "paranmt_hf.corpus.statistics.describe",
    "SuperviseConfig": "paranmt_hf.supervised.config",
    "VectorsConfig": "paranmt_hf.distillation.reduction",
    "describe_corpora": "paranmt_hf.corpus.statistics.describe",
    "evaluate_transfer": "paranmt_hf.evaluation.transfer",
    "normal_form": "paranmt_hf.text.normal_form",
    "parse_pairs": "paranmt_hf.corpus.parsing.parse",
}

__all__ = [*_MODULES]  # noqa: PLE0604


def __getattr__(name: str) -> Any:  # noqa: ANN401
    if module := _MODULES.get(name) or _FURTHER.get(name):
        with uncollected():
            return getattr(import_module(module), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
