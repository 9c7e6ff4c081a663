"""Judges which answers of language models are usable."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from paranmt_hf.corpus.language_models.config import LanguageModelConfig, ModelTask
from paranmt_hf.corpus.language_models.kept_answers import Answer
from paranmt_hf.corpus.language_models.reasoning import Mark, holds_marks, split_reasoning, without_answer_marks
from paranmt_hf.corpus.reading.normalisation import normalise
from paranmt_hf.corpus.scoring.language import LanguageConfig, build_model, in_language
from paranmt_hf.util.optional import require, versions

QUOTES = {'"': '"', "'": "'", "`": "`", "“": "”", "„": "“", "‘": "’", "«": "»", "「": "」"}
REFUSAL = re.compile(
    r"^\W*((i'?m|i am|we'?re) (very )?(sorry|afraid)|(my )?apologies|i apologi[sz]e|sorry|unfortunately)?\W*"
    r"(but )?(i|we)\W?('m| am)? ?(can ?not|can'?t|won'?t|will not|(am )?not able to|unable to|must decline)( to)? "
    r"(assist|comply|translate|paraphrase|rephrase|rewrite|provide|fulfil|generate|create|engage|process|"
    r"(help|continue)( you)? with (this|that|the|your))\b"
    r"|\bas an? (ai|artificial intelligence|(large )?language model)\b"
    r"|^\W*i('m| am) (just )?an? (ai|(large )?language model)\b",
    re.I,
)
# Text before an answer (`PREAMBLE`) or after it (`REMARK`, `BRACKET`); it counts only if the sentence has no colon or
# bracket of its own.
PREAMBLE = re.compile(
    r"^\W*((sure|certainly|of course|okay|ok|absolutely)\b\W*)?((here|this)('s| is| are| you (go|are))\b[^:]{0,80}"
    r"|(the |my |a |an? )?(\w+ ){0,2}(translation|paraphrase|rephrasing|answer|output|sentence|version)\b[^:]{0,40}):",
    re.I,
)
# Beginnings that make an answer unusable, unless the sentence or its reference begins so too.
BEGINNING = re.compile(
    r"^\W*(?P<assent>(sure( thing)?|certainly|absolutely|of course|okay|ok)(?=[!.:]\s+\S))"
    r"|^\W*(?P<number>\d{1,2}[.)]\s)"
    r"|^(?P<bullet>[-–—*•#]+\s)"
    r"|^(?P<tag><\|?[a-z][\w:-]*\|?>)",  # Reasoning, with marks that nobody listed
    re.I,
)
REMARK = re.compile(
    r"(^|\W)(note|notes|explanation|literally|alternatively|alternative|alternative translation|or)\W{0,3}:", re.I
)
BRACKET = re.compile(r"[(\[](translator's )?(note|literal|lit\.|or[,:]|alternative|i\.e\.)", re.I)


@dataclass
class JudgedAnswer:
    """The sentence in an answer, and the reason why it is not usable."""

    text: str  # The sentence, without reasoning, marks and quotes around it
    reason: str | None  # Why it is not usable; None if it is


class Judge:
    """Takes the sentence out of each answer, and finds the reason if it is not usable."""

    def __init__(self, config: LanguageModelConfig, task: ModelTask) -> None:
        require("py3langid", "llm")
        self._config, self._task = config, task
        self._language = LanguageConfig(language=config.language)
        self._model = build_model(self._language)

    @staticmethod
    def identity(config: LanguageModelConfig) -> dict[str, Any]:
        """Return everything that determines the verdicts, as JSON values."""
        identity: dict[str, Any] = {
            # Raise this number if the checks change.
            "checks": "4",
            "language": config.language,
            "language_detector": f"py3langid {versions(['py3langid']).get('py3langid', 'missing')}",
        }
        if config.reasoning_marks:
            identity["reasoning_marks"] = list(config.reasoning_marks)
        return identity

    def judge(
        self, sentences: Sequence[str], references: Sequence[str], answers: Sequence[Answer]
    ) -> list[JudgedAnswer]:
        """Judge answers.

        Args:
            sentences: Sentences [sentence] that were to be translated or paraphrased.
            references: For each sentence one with the same meaning in the language of the answers; for paraphrases the
                sentences themselves.
            answers: The answer for each sentence.

        Returns:
            The judged answers [sentence].
        """
        reasoned: list[bool] = []
        bare: list[str] = []
        for sentence, reference, answer in zip(sentences, references, answers, strict=True):
            found, rest = split_reasoning(answer.text, self._config.marks, (sentence, reference))
            reasoned.append(found or answer.finish == "reasoning")
            bare.append(without_answer_marks(rest, (sentence, reference)))
        tidy = normalise(pa.array(bare, pa.string())).to_pylist()
        judged: list[JudgedAnswer] = []
        for index, answer in enumerate(answers):
            sentence, reference = sentences[index], references[index]
            text = unquoted(tidy[index], sentence)
            reason = self._ending(answer, reasoned[index], text)
            judged.append(JudgedAnswer(text, reason or self._content(sentence, reference, bare[index], text)))
        usable = [one for one in judged if one.reason is None]
        for one, same in zip(usable, self._in_language([one.text for one in usable]), strict=True):
            if not same:
                one.reason = f"answer in another language than {self._config.language}"
        return judged

    def _in_language(self, texts: Sequence[str]) -> np.ndarray:
        """Mark the texts [text] that are in the wanted language, and whose second half is too.

        The half is looked at by itself, because a preface in the right language hides that what follows is in another.
        """
        halves = []
        for text in texts:
            words = text.split()
            halves.append(" ".join(words[len(words) // 2 :]))
        whole, _ = in_language(pa.array(texts, pa.string()), self._model, self._language)
        half, _ = in_language(pa.array(halves, pa.string()), self._model, self._language)
        return whole & half

    def _ending(self, answer: Answer, reasoned: bool, text: str) -> str | None:
        """Return why an answer is not usable because of how it ends; None if it ends well."""
        if answer.finish == "context":
            return "sentence too long for the model"
        if answer.finish in ("refusal", "content_filter"):
            return "refused by the model"
        if answer.finish == "length":
            return f"answer cut at {self._config.max_answer_tokens} tokens"
        if not text:
            return "reasoning without an answer" if reasoned else "empty answer"
        return None

    def _content(self, sentence: str, reference: str, lines: str, text: str) -> str | None:
        """Return why an answer is not usable because of what it says, apart from its language; None if it is usable.

        Args:
            sentence: The sentence that was to be translated or paraphrased.
            reference: A sentence with the same meaning in the language of the answer.
            lines: The answer with its line breaks.
            text: The answer in one line.
        """
        if REFUSAL.search(text.replace("’", "'")) and not REFUSAL.search(reference.replace("’", "'")):
            return "refused by the model"
        if says_more(lines, text, (sentence, reference), self._config.marks):
            return f"answer with more than the {'translation' if self._task == 'translate' else 'paraphrase'}"
        if text == sentence and text != reference:
            return "answer that repeats the source"
        short, long = sorted((len(reference), len(text)))
        # Twenty characters are allowed besides, because the lengths of short sentences vary more.
        if long > short * 3 + 20:
            return "answer of absurd length"
        return None


def unquoted(text: str, sentence: str) -> str:
    """Remove the quotes around an answer, unless its sentence begins with a quote too."""
    if len(text) > 2 and QUOTES.get(text[0]) == text[-1] and (not sentence or sentence[0] not in QUOTES):
        inner = text[1:-1]
        if text[0] not in inner and text[-1] not in inner:
            return inner.strip()
    return text


def says_more(lines: str, text: str, sentences: Sequence[str], marks: Sequence[Mark]) -> bool:
    """Whether an answer, after its reasoning was removed, holds more than the translation of one sentence.

    Several lines are several answers, because each sentence was one line. A sign such as a colon does not count if
    `sentences` have it too.

    Args:
        lines: The answer with its line breaks.
        text: The answer in one line, without quotes around it.
        sentences: The sentence that was asked about, and its reference.
        marks: Marks around reasoning; one that is left in the answer counts.
    """
    asked = "\n".join(sentences)
    if sum(bool(line.strip()) for line in lines.splitlines()) > 1:
        return True
    if holds_marks(text, marks, sentences):
        return True
    if any(mark in text and mark not in asked for mark in ("```", "**", "\\boxed")):
        return True
    begins = BEGINNING.search(text)
    if begins:
        known = [BEGINNING.search(sentence) for sentence in sentences]
        if begins.lastgroup not in [one.lastgroup for one in known if one]:
            return True
    if not re.search("[:：]", asked) and (PREAMBLE.search(text) or REMARK.search(text)):
        return True
    return not re.search(r"[(\[（]", asked) and bool(BRACKET.search(text))
