"""Which language a sentence is in, by the models of `py3langid` or `lingua`, over whole columns.

`py3langid` (Lui & Baldwin 2012, langid.py) walks an automaton over the bytes of a text, counts the features that it
meets, and gives the counts to a naive Bayes classifier. Its own loop takes one text at a time; here all sentences of a
batch are walked together, which is thirteen times as fast. Labels and probabilities are the same.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cache
from importlib.metadata import version
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paranmt_hf.corpus.reading.normalisation import composed
from paranmt_hf.corpus.selection.filters import Filter, Verdict
from paranmt_hf.errors import InputError
from paranmt_hf.text.tokens import text_bytes
from paranmt_hf.util.optional import require

Detector = Literal["langid", "lingua"]
PACKAGES: dict[Detector, str] = {"langid": "py3langid", "lingua": "lingua-language-detector"}
TOGETHER = 4_096  # Number of sentences that are walked together
# Languages with many speakers or much text for translation. Most others are left out because English fragments and
# names are mistaken for them (Nigerian Pidgin, Walloon, Swazi).
LANGUAGES = (
    "ar", "bg", "bn", "ca", "cs", "da", "de", "el", "en", "es", "et", "eu", "fa", "fi", "fr", "ga", "he", "hi", "hr",
    "hu", "id", "is", "it", "ja", "ko", "lt", "lv", "mk", "ms", "nl", "no", "pl", "pt", "ro", "ru", "sk", "sl", "sq",
    "sr", "sv", "ta", "th", "tr", "uk", "ur", "vi", "zh",
)  # fmt: skip


@dataclass(frozen=True)
class LanguageConfig:
    """What counts as a sentence of the wanted language."""

    language: str = "en"  # ISO 639-1 code
    detector: Detector = "langid"  # Package that identifies languages
    # Codes of the languages to choose from; the wanted one is always added
    candidates: tuple[str, ...] = LANGUAGES
    probability: float = 0.02  # A sentence with a smaller probability of the wanted language is in another one
    letters: int = 20  # A sentence with fewer letters is too short to identify, and counts as in the wanted language


def build_model(config: LanguageConfig) -> Langid | Lingua:
    """Load the detector of the settings."""
    if config.detector == "langid":
        return Langid(config.language, config.candidates)
    return Lingua(config.language, config.candidates)


def in_language(sentences: pa.Array, model: Langid | Lingua, config: LanguageConfig) -> tuple[np.ndarray, np.ndarray]:
    """Find the sentences that are in the wanted language, or too short to tell; each distinct one is looked at once.

    Args:
        sentences: The sentences [sentence], string, none null.
        model: The detector.
        config: What counts as a sentence of the language.

    Returns:
        A mask [sentence], and the probability of the language [sentence], NaN for a sentence that is too short.
    """
    encoded = sentences.dictionary_encode()
    distinct = encoded.dictionary
    letters = pc.utf8_length(pc.replace_substring_regex(distinct, r"[^\pL]+", "")).to_numpy()
    long = np.flatnonzero(letters >= max(config.letters, 1))
    probabilities = np.full(len(distinct), np.nan)
    probabilities[long] = model.probabilities(distinct.take(pa.array(long)))
    chosen = probabilities[encoded.indices.to_numpy()]
    return ~(chosen < config.probability), chosen


class InLanguage(Filter):
    """Drops rows with a side that is in another language.

    The number of a verdict is the smaller of the probabilities of the language for the two sides.
    """

    def __init__(self, config: LanguageConfig) -> None:
        self.config, self._model = config, build_model(config)
        package = PACKAGES[config.detector]
        super().__init__(
            "language",
            f"with a side in another language than {config.language}",
            ["reference", "translation"],
            "probability of the language",
            **asdict(config),
            package=f"{package} {version(package)}",
        )

    def judge(self, table: pa.Table) -> Verdict:
        kept, numbers = np.ones(table.num_rows, bool), np.full(table.num_rows, np.inf)
        for name in self.columns:
            good, probabilities = in_language(table[name].combine_chunks(), self._model, self.config)
            kept &= good
            numbers = np.fmin(numbers, probabilities)
        return Verdict(kept, numbers)


class Langid:
    """The model of `py3langid`, over columns.

    Args:
        language: Code of the wanted language.
        candidates: Codes of the languages to choose from; empty for all that the model knows.

    Attributes:
        labels: Codes of the languages, in the order of `distribution`.

    Raises:
        InputError: If the model does not know a language.
    """

    def __init__(self, language: str, candidates: Sequence[str] = ()) -> None:
        model = _langid()
        model.set_languages(None)
        if unknown := sorted({language, *candidates} - set(model.nb_classes)):
            raise InputError(
                f"py3langid does not know the language {', '.join(unknown)}; it knows {', '.join(model.labels)}"
            )
        model.set_languages({language, *candidates} if candidates else None)
        self.labels: list[str] = model.labels
        # The model may have several columns with the same label: one language in several scripts.
        self._label_of = np.array([self.labels.index(label) for label in model.nb_classes])
        self._weights, self._prior = np.asarray(model.nb_ptc, np.float32), np.asarray(model.nb_pc, np.float32)
        self._row_of = np.asarray(model.tk_row, np.int32) << 8
        self._next = np.asarray(model.tk_nextmove, np.int32)
        self._feature_of = np.asarray(model.tk_output, np.int32)
        self._wanted = self.labels.index(language)

    def probabilities(self, sentences: pa.Array) -> np.ndarray:
        """Return the probability of the wanted language [sentence], float32."""
        return self.distribution(sentences)[:, self._wanted]

    def distribution(self, sentences: pa.Array) -> np.ndarray:
        """Return the probability of each language in `labels` [sentence, language], float32.

        The sentences must not be null.
        """
        found = np.zeros((len(sentences), len(self.labels)), np.float32)
        for start in range(0, len(sentences), TOGETHER):
            text, offsets = text_bytes(_prepared(sentences.slice(start, TOGETHER)))
            scores = self._scores(text, offsets)
            powers = np.exp(scores - scores.max(axis=1, keepdims=True))
            rows = found[start : start + TOGETHER]
            for column, label in enumerate(self._label_of):
                rows[:, label] += powers[:, column]
            rows /= rows.sum(axis=1, keepdims=True)
        return found

    def _scores(self, text: np.ndarray, offsets: np.ndarray) -> np.ndarray:
        """Return the scores of the naive Bayes classifier [sentence, column]."""
        from scipy.sparse import coo_array

        lengths = np.diff(offsets)
        owners, features = self._walk(text, offsets[:-1], lengths)
        ones = np.ones(len(owners), np.float32)
        # Several matches of a feature in a sentence are added up here.
        counts = coo_array((ones, (owners, features)), shape=(len(lengths), len(self._weights))).tocsr()
        counts.data = np.log1p(counts.data)
        scores = counts @ self._weights + self._prior
        # A text without features has the score 0 for all languages, without the prior.
        scores[np.diff(counts.indptr) == 0] = 0
        # Dividing by the root of the length makes probabilities comparable for short and long texts.
        return scores / np.sqrt(np.maximum(lengths, 1)).astype(np.float32)[:, None]

    def _walk(self, text: np.ndarray, starts: np.ndarray, lengths: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Run the automaton over all sentences at once.

        Args:
            text: Bytes of all sentences.
            starts: Where each sentence begins in `text` [sentence].
            lengths: Number of bytes of each sentence [sentence].

        Returns:
            For each match [match] the index of the sentence, and the feature.
        """
        # The longest sentences come first, so those that still have bytes are always at the front.
        order = np.argsort(-lengths, kind="stable")
        active = np.searchsorted(-lengths[order], -np.arange(int(lengths.max(initial=0))), side="left")
        positions = starts[order]
        states = np.zeros(len(order), np.int32)
        owners: list[np.ndarray] = [np.empty(0, np.int64)]
        features: list[np.ndarray] = [np.empty(0, np.int32)]
        for step, count in enumerate(active.tolist()):
            letters = text[positions[:count] + step]
            states = self._next[self._row_of[states[:count]] + letters]
            found = self._feature_of[states]
            hits = np.flatnonzero(found >= 0)
            owners.append(order[hits])
            features.append(found[hits])
        return np.concatenate(owners), np.concatenate(features)


@cache
def _langid() -> Any:  # noqa: ANN401 - py3langid's LanguageIdentifier, which takes a second to load
    """Load the model of py3langid, which takes a second; only once."""
    require("py3langid", "select")
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE)


def _prepared(sentences: pa.Array) -> pa.Array:
    """Prepare sentences as py3langid does: those all in capitals become lower case, and all are converted to NFC."""
    capitals = pc.utf8_is_upper(sentences)
    plain = composed(sentences)
    if not pc.any(capitals).as_py():
        return plain
    lowered = [unicodedata.normalize("NFC", text.lower()) for text in sentences.filter(capitals).to_pylist()]
    return pc.replace_with_mask(plain, capitals, pa.array(lowered, plain.type))


class Lingua:
    """The model of `lingua`, which reads sentences one by one; it is better on short text, and much slower.

    Args:
        language: Code of the wanted language.
        candidates: Codes of the languages to choose from; empty for all that the model knows.

    Raises:
        InputError: If the model does not know a language, or there is only one to choose from.
    """

    def __init__(self, language: str, candidates: Sequence[str] = ()) -> None:
        lingua: Any = require("lingua", "lingua")
        # lingua knows the two written forms of Norwegian, not the code `no` for both.
        known = {item.iso_code_639_1.name.lower(): item for item in lingua.Language.all()}
        wanted = {"nb" if code == "no" else code for code in (language, *(candidates or known))}
        if unknown := sorted(wanted - set(known)):
            raise InputError(f"lingua does not know the language {', '.join(unknown)}; it knows {', '.join(known)}")
        if len(wanted) < 2:
            raise InputError(f"lingua chooses between at least two languages; give others besides {language}")
        builder = lingua.LanguageDetectorBuilder.from_languages(*(known[code] for code in sorted(wanted)))
        self._detector = builder.build()
        self._language = known["nb" if language == "no" else language]

    def probabilities(self, sentences: pa.Array) -> np.ndarray:
        """Return the probability of the wanted language [sentence], float32."""
        values = self._detector.compute_language_confidence_in_parallel(sentences.to_pylist(), self._language)
        return np.asarray(values, np.float32)
