"""Reasoning that reaches the answer, as models write it that a server has no parser for."""

import pytest

from paranmt_hf import LanguageModelConfig
from paranmt_hf.corpus.language_models.answers import Judge
from paranmt_hf.corpus.language_models.kept_answers import Answer
from tests.refused import refused

SOURCE, REFERENCE = "Muž jede na kole po mokré ulici.", "A man is riding a bicycle on a wet street."
ANSWER = "A man rides a bike along a wet street."


def judged(text, *, finish="stop", source=SOURCE, reference=REFERENCE, **settings):
    judge = Judge(LanguageModelConfig("m", **settings), "translate")
    (one,) = judge.judge([source], [reference], [Answer(text, finish)])
    return one.text if one.reason is None else None, one.reason


# The marks of vLLM 0.31 (vllm/reasoning) and of SGLang 0.5 (parser/reasoning_parser.py).
@pytest.mark.parametrize(
    "text",
    [
        f"<think>\nHm.\n\nA man.\n</think>\n\n{ANSWER}",
        # DeepSeek R1, Qwen3-Thinking, MiniMax M2: the chat template ends in the first mark.
        f"Kolo is a bike.\nSo.\n</think>\n\n{ANSWER}",
        f"<think>Hm.</think>\n<think>Hm again.</think>\n{ANSWER}",
        f"<THINK>Hm.</THINK>{ANSWER}",
        f"<thinking>Hm.</thinking>{ANSWER}",
        f"<thought>\nHm.\n</thought>\n{ANSWER}",
        f"<reasoning>Hm.</reasoning>{ANSWER}",
        f"<seed:think>Hm.</seed:think>{ANSWER}",
        f"<mm:think>Hm.</mm:think>{ANSWER}",
        f"Hm.</longcat_think>{ANSWER}",
        f"[THINK]Hm.\nSo.[/THINK]{ANSWER}",
        f"◁think▷Hm.◁/think▷{ANSWER}",
        f"<|START_THINKING|>Hm.<|END_THINKING|><|START_RESPONSE|>{ANSWER}<|END_RESPONSE|>",
        f"<|inner_prefix|>Hm.<|inner_suffix|>{ANSWER}",
        f"Hm.<|think:end|>{ANSWER}",
        f"<|channel>thought\nHm.<channel|>{ANSWER}<turn|>",
        f"<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>{ANSWER}<|return|>",
        f"<|channel|>final<|message|>{ANSWER}",
        f"analysisWe translate. Fine.assistantfinal{ANSWER}",
        f"Here is my thought process: Hm. Here is my response: {ANSWER}",
        f"Here's my thought process:\nHm.\nHere's my response:\n{ANSWER}",
        f"<think>\nHm.\n</think>\n<answer>\n{ANSWER}\n</answer>",
        f"<think>Hm.</think><response>{ANSWER}</response>",
        f"{ANSWER}<|im_end|>",
        f"{ANSWER}</s>",
    ],
)
def test_the_answer_is_what_follows_the_reasoning(text):
    assert judged(text) == (ANSWER, None)


@pytest.mark.parametrize(
    ("text", "finish"),
    [
        ("<think>Hm.</think>", "stop"),
        ("<think>Kolo is a bike, so", "stop"),
        ("[THINK]Kolo is a bike, so", "stop"),
        ("<|channel|>analysis<|message|>Kolo is a bike.<|end|>", "stop"),
        # The server kept the reasoning, and no answer came.
        ("", "reasoning"),
    ],
)
def test_reasoning_without_an_answer(text, finish):
    assert judged(text, finish=finish) == (None, "reasoning without an answer")


@pytest.mark.parametrize(
    "text",
    [f"<|channel|>{ANSWER}", f"<|start|>assistant {ANSWER}", f"A man [THINK] rides. {ANSWER}", f"<think>{ANSWER}"],
)
def test_no_mark_gets_into_the_corpus(text):
    assert judged(text)[0] is None


def test_marks_of_the_sentence_itself():
    reference = "The mark </think> ends the reasoning of the model."
    answer = "The reasoning of the model ends with the mark </think>."
    assert judged(answer, source="Značka </think> končí.", reference=reference) == (answer, None)


def test_marks_of_the_settings():
    text = f"<cot>Hm.</cot>{ANSWER}"
    assert judged(text)[0] != ANSWER
    assert judged(text, reasoning_marks=("<cot> ... </cot>",)) == (ANSWER, None)
    assert judged(f"Hm. ANSWER: {ANSWER}", reasoning_marks=("... ANSWER:",)) == (ANSWER, None)


def test_marks_of_the_settings_belong_to_the_identity():
    plain, marked = (LanguageModelConfig("m", reasoning_marks=marks) for marks in ((), ("<cot> ... </cot>",)))
    assert Judge.identity(plain) != Judge.identity(marked)


@pytest.mark.parametrize("marks", [("<cot>",), ("<cot> ...",), ("",)])
def test_marks_that_are_none(marks):
    with refused("reasoning_marks"):
        LanguageModelConfig("m", reasoning_marks=marks)
