"""Reasoning that language models write before their answer: the marks around it, and how it is removed.

Servers remove it themselves if they know the model (`--reasoning-parser` of vLLM and SGLang, `--reasoning-format` of
llama.cpp). Otherwise it comes with the answer.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from paranmt_hf.errors import InputError

Mark = tuple[str, str]  # The mark that begins reasoning, "" if there is none, and the mark that ends it

# Marks of the models that vLLM 0.31 and SGLang 0.5 know. If a chat template ends with the first mark, the answer has
# only the second.
REASONING_MARKS: tuple[Mark, ...] = (
    ("<think>", "</think>"),  # DeepSeek, Qwen, GLM, MiniMax M2, Kimi K2.5, Step, Olmo, Nemotron, Granite 3.3
    ("<thinking>", "</thinking>"),
    ("<thought>", "</thought>"),  # Gemini behind its OpenAI-compatible address
    ("<reasoning>", "</reasoning>"),
    ("<seed:think>", "</seed:think>"),  # Seed-OSS
    ("<mm:think>", "</mm:think>"),  # MiniMax M3
    ("<longcat_think>", "</longcat_think>"),  # LongCat
    ("[THINK]", "[/THINK]"),  # Mistral's Magistral and Ministral
    ("◁think▷", "◁/think▷"),  # Kimi-VL, Kimi K2 Thinking
    ("<|START_THINKING|>", "<|END_THINKING|>"),  # Cohere's Command A
    ("<|inner_prefix|>", "<|inner_suffix|>"),  # Apertus
    ("<|think:start|>", "<|think:end|>"),  # Solar Open 2
    ("<|channel>", "<channel|>"),  # Gemma 4
    ("<|channel|>analysis", "<|channel|>final<|message|>"),  # gpt-oss
    ("", "assistantfinal"),  # gpt-oss, from a server that drops special tokens
    ("Here is my thought process:", "Here is my response:"),  # Granite 3.2
    ("Here's my thought process:", "Here's my response:"),
)
ANSWER_MARKS: tuple[Mark, ...] = (
    ("<answer>", "</answer>"),  # Hunyuan A13B
    ("<response>", "</response>"),  # Granite 3.3
    ("<|START_RESPONSE|>", "<|END_RESPONSE|>"),  # Cohere's Command A
)
END_OF_TEXT = re.compile(
    r"(<\|(return|end|call|im_end|eot_id|eom_id|end_of_text|endoftext|end_of_turn)\|>|<end_of_turn>|<turn\|>|</s>)\s*$"
)


def parse_mark(text: str) -> Mark:
    """Read a pair of marks from settings, such as `<cot> ... </cot>`.

    Raises:
        InputError: If there is no `...` between two marks, or the second is empty.
    """
    begin, between, end = (part.strip() for part in text.partition("..."))
    if not between or not end:
        raise InputError(
            f"reasoning_marks must be two marks with ... between them, such as '<cot> ... </cot>', not {text!r}",
            option="reasoning_marks",
        )
    return begin, end


def split_reasoning(text: str, marks: Sequence[Mark], sentences: Sequence[str] = ()) -> tuple[bool, str]:
    """Split an answer into reasoning and the rest.

    Everything before the last mark that ends reasoning is reasoning, whether or not a mark begins it, because that may
    be in the chat template.

    Args:
        text: The answer.
        marks: The marks.
        sentences: Texts that were sent; marks that are in one of them are ignored.

    Returns:
        Whether there is reasoning, and the rest, which is empty if the reasoning has no end.
    """
    used = [mark for mark in marks if not _contains(sentences, mark[1])]
    found = False
    for _, end in used:
        parts = re.split(re.escape(end), text, flags=re.I)
        if len(parts) > 1:
            found, text = True, parts[-1]
    if found:
        return True, text
    for begin, _ in used:
        if begin and text.lstrip().lower().startswith(begin.lower()):
            return True, ""
    return False, text


def without_answer_marks(text: str, sentences: Sequence[str] = ()) -> str:
    """Remove the marks around an answer and the special tokens at its end, unless one of `sentences` has them too."""
    while (token := END_OF_TEXT.search(text)) and not _contains(sentences, token[1]):
        text = text[: token.start()]
    for begin, end in ANSWER_MARKS:
        if not _contains(sentences, begin):
            text = text.strip().removeprefix(begin).removesuffix(end)
    return text


def holds_marks(text: str, marks: Sequence[Mark], sentences: Sequence[str] = ()) -> bool:
    """Whether a text has a mark, or a special token such as `<|channel|>`, that none of `sentences` has."""
    special = re.findall(r"<\|[^<>|\s]{1,40}\|?>|<[a-z_]{1,40}\|>", text)
    known = [mark for pair in marks for mark in pair if mark and _contains([text], mark)]
    return any(not _contains(sentences, mark) for mark in [*special, *known])


def _contains(texts: Sequence[str], mark: str) -> bool:
    """Whether any of some texts contains a mark, in any case."""
    return any(mark.lower() in text.lower() for text in texts)
