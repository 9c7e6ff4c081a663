"""Reasoning that language models write before their answer: its marks, and how it is removed.

Servers remove it themselves if they know the model (vLLM's and SGLang's `--reasoning-parser`, llama.cpp's
`--reasoning-format`). If they do not, it arrives with the answer.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from paranmt_hf.errors import InputError

Mark = tuple[str, str]  # What begins reasoning, empty if nothing does, and what ends it

# As vLLM 0.31 and SGLang 0.5 list them. Chat templates that end in the first mark leave the answer without it.
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
    """Read marks from settings, such as `<cot> ... </cot>`."""
    begin, between, end = (part.strip() for part in text.partition("..."))
    if not between or not end:
        raise InputError(
            f"reasoning_marks must be two marks with ... between them, such as '<cot> ... </cot>', not {text!r}",
            option="reasoning_marks",
        )
    return begin, end


def split_reasoning(text: str, marks: Sequence[Mark], sentences: Sequence[str] = ()) -> tuple[bool, str]:
    """Return whether an answer contains reasoning, and the rest, which is empty if the reasoning has no end.

    Everything before the last mark that ends reasoning is reasoning, because chat templates may contain the mark that
    begins it. Marks that one of `sentences` contains too are ignored.
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
    """Remove the marks around an answer, and the special token that ends it, unless one of `sentences` has them."""
    while (token := END_OF_TEXT.search(text)) and not _contains(sentences, token[1]):
        text = text[: token.start()]
    for begin, end in ANSWER_MARKS:
        if not _contains(sentences, begin):
            text = text.strip().removeprefix(begin).removesuffix(end)
    return text


def holds_marks(text: str, marks: Sequence[Mark], sentences: Sequence[str] = ()) -> bool:
    """Whether a text contains a mark, or a special token such as `<|channel|>`, that no sentence contains."""
    special = re.findall(r"<\|[^<>|\s]{1,40}\|?>|<[a-z_]{1,40}\|>", text)
    known = [mark for pair in marks for mark in pair if mark and _contains([text], mark)]
    return any(not _contains(sentences, mark) for mark in [*special, *known])


def _contains(texts: Sequence[str], mark: str) -> bool:
    return any(mark.lower() in text.lower() for text in texts)
