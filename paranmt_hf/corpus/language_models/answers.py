"""Which answers of a language model are the sentence that was asked for, and nothing else."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from paranmt_hf.corpus.bitext.normalisation import normalise
from paranmt_hf.corpus.language import LanguageConfig, build_model, in_language
from paranmt_hf.corpus.language_models.config import LanguageModelConfig
from paranmt_hf.corpus.language_models.kept_answers import Answer
from paranmt_hf.corpus.language_models.prompts import Task
from paranmt_hf.corpus.language_models.server import THOUGHT
from paranmt_hf.util.optional import require, versions

# Characters that an answer may be longer than the ratio allows: short sentences vary.
ALLOWANCE = 20
DEFINITION = "1"
NOUNS: dict[Task, str] = {"translate": "translation", "paraphrase": "paraphrase"}
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
# What comes before or behind an answer; each holds a colon or a bracket that the sentence has not.
PREAMBLE = re.compile(
    r"^\W*((sure|certainly|of course|okay|ok|absolutely)\b\W*)?((here|this)('s| is| are)\b[^:]{0,80}"
    r"|(the |my |a |an? )?(\w+ ){0,2}(translation|paraphrase|rephrasing|answer|output|sentence|version)\b[^:]{0,40}):",
    re.I,
)
REMARK = re.compile(
    r"(^|\W)(note|notes|explanation|literally|alternatively|alternative|alternative translation|or)\W{0,3}:", re.I
)
BRACKET = re.compile(r"[(\[](translator's )?(note|literal|lit\.|or[,:]|alternative|i\.e\.)", re.I)
MARKUP = ("```", "**", "\\boxed")


class Judge:
    """Takes sentences out of answers, or says why there is none.

    Args:
        config: The language of the answers, and how long they may be.
        task: What was asked for.

    Raises:
        InputError: The package that tells languages is missing, or does not know the language.
    """

    def __init__(self, config: LanguageModelConfig, task: Task) -> None:
        require("py3langid", "llm")
        self._config, self._noun = config, NOUNS[task]
        self._language = LanguageConfig(language=config.language)
        self._model = build_model(self._language)

    @staticmethod
    def identity(config: LanguageModelConfig) -> dict[str, Any]:
        """What determines the verdicts, as JSON values."""
        package = versions(["py3langid"]).get("py3langid", "missing")
        return {
            "checks": DEFINITION,
            "language": config.language,
            "language_detector": f"py3langid {package}",
            "max_length_ratio": config.max_length_ratio,
        }

    def judge(
        self, sentences: Sequence[str], references: Sequence[str], answers: Sequence[Answer]
    ) -> tuple[list[str | None], list[str | None]]:
        """Judge answers.

        Args:
            sentences: What was to be translated or paraphrased.
            references: The sentence in the language of the answers that means the same; the same list for paraphrases.
            answers: The answers.

        Returns:
            For each the text, None where it is no good, and the reason, None where it is good.
        """
        tidy = normalise(pa.array([THOUGHT.sub("", answer.text) for answer in answers], pa.string())).to_pylist()
        texts: list[str | None] = []
        reasons: list[str | None] = []
        for sentence, reference, answer, whole in zip(sentences, references, answers, tidy, strict=True):
            text = unquoted(whole, sentence)
            reason = self._reason(sentence, reference, answer, text)
            texts.append(None if reason else text)
            reasons.append(reason)
        good = [index for index, text in enumerate(texts) if text is not None]
        same, _ = in_language(pa.array([texts[index] for index in good], pa.string()), self._model, self._language)
        for place in np.flatnonzero(~same):
            texts[good[place]] = None
            reasons[good[place]] = f"answer in another language than {self._config.language}"
        return texts, reasons

    def _reason(self, sentence: str, reference: str, answer: Answer, text: str) -> str | None:
        """Why an answer is no good, but for its language; the first reason counts."""
        if answer.finish == "context":
            return "sentence too long for the model"
        if answer.finish in ("refusal", "content_filter"):
            return "refused by the model"
        if answer.finish == "length":
            return f"answer cut at {self._config.max_answer_tokens} tokens"
        if not text:
            return "empty answer"
        if REFUSAL.search(text.replace("’", "'")) and not REFUSAL.search(reference.replace("’", "'")):
            return "refused by the model"
        if says_more(answer.text, text, (sentence, reference)):
            return f"answer with more than the {self._noun}"
        if text == sentence and text != reference:
            return "answer that repeats the source"
        short, long = sorted((len(reference), len(text)))
        if long > short * self._config.max_length_ratio + ALLOWANCE:
            return "answer of absurd length"
        return None


def unquoted(text: str, sentence: str) -> str:
    """Take quotes from around an answer where the sentence has none around it."""
    if len(text) > 2 and QUOTES.get(text[0]) == text[-1] and (not sentence or sentence[0] not in QUOTES):
        inner = text[1:-1]
        if text[0] not in inner and text[-1] not in inner:
            return inner.strip()
    return text


def says_more(raw: str, text: str, sentences: Sequence[str]) -> bool:
    """Tell whether an answer holds more than one sentence that was asked for.

    Args:
        raw: The answer as it came; several lines are several answers, for each sentence was one line.
        text: The same on one line, without what the model thought.
        sentences: The sentence and its reference: what they have too, such as a colon, tells nothing.
    """
    if len([line for line in THOUGHT.sub("", raw).splitlines() if line.strip()]) > 1:
        return True
    if any(mark in text and not any(mark in sentence for sentence in sentences) for mark in MARKUP):
        return True
    colon = any(mark in sentence for sentence in sentences for mark in ":：")
    bracket = any(mark in sentence for sentence in sentences for mark in "([（")
    if not colon and (PREAMBLE.search(text) or REMARK.search(text)):
        return True
    return not bracket and bool(BRACKET.search(text))
