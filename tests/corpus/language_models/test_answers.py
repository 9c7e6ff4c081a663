"""Which answers are taken, and why others are not; read by hand."""

import pytest

from paranmt_hf.corpus.language_models.answers import Answer, Judge, unquoted
from paranmt_hf.corpus.language_models.config import LanguageModelConfig

SOURCE, REFERENCE = "Muž jede na kole po mokré ulici.", "A man is riding a bicycle on a wet street."


@pytest.fixture(scope="module")
def judge():
    return Judge(LanguageModelConfig("m"), "translate")


def judged(judge, text, finish="stop", source=SOURCE, reference=REFERENCE):
    texts, reasons = judge.judge([source], [reference], [Answer(text, finish)])
    return texts[0], reasons[0]


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("A man rides a bike along a wet street.", None),
        ("  A man rides\ta bike.\n", "A man rides a bike."),
        ('"A man rides a bike."', "A man rides a bike."),
        ("“A man rides a bike.”", "A man rides a bike."),
        ("<think>\nHow?\n\nSo.\n</think>\n\nA man rides a bike.", "A man rides a bike."),
        ("I cannot come to the party tonight, I am sorry.", None),
        ("The translation of the book was his life's work.", None),
        ("A bike (or a scooter) was ridden.", None),
        ("Of course, a man rides a bike.", None),
        ("Note the man on the bike.", None),
    ],
)
def test_what_is_taken(judge, text, kept):
    assert judged(judge, text) == (kept or text, None)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "empty answer"),
        (" \n", "empty answer"),
        ("<think>Hm.</think>", "empty answer"),
        ("I'm sorry, but I can't assist with that.", "refused by the model"),
        ("I’m sorry, but I cannot translate this text.", "refused by the model"),
        ("As an AI language model, I have no opinion.", "refused by the model"),
        ("I am unable to help with this request.", "refused by the model"),
        ("Sure! Here is the translation: A man rides a bike.", "answer with more than the translation"),
        ("Translation: A man rides a bike.", "answer with more than the translation"),
        ("The English translation is: A man rides a bike.", "answer with more than the translation"),
        ("A man rides a bike.\n\nNote: kolo is a bike.", "answer with more than the translation"),
        ("A man rides a bike. Alternatively: a man cycles.", "answer with more than the translation"),
        ("A man rides a bike. (Note: kolo means bike.)", "answer with more than the translation"),
        ("1. A man rides a bike.\n2. A man cycles.", "answer with more than the translation"),
        ("**A man rides a bike.**", "answer with more than the translation"),
        ("```\nA man rides a bike.\n```", "answer with more than the translation"),
        (SOURCE, "answer that repeats the source"),
        ("Der Mann fährt mit dem Fahrrad auf der nassen Straße.", "answer in another language than en"),
        ("Muž jel na kole po ulici, která byla mokrá.", "answer in another language than en"),
        ("A man is riding. " * 10, "answer of absurd length"),
    ],
)
def test_what_is_not(judge, text, reason):
    assert judged(judge, text) == (None, reason)


@pytest.mark.parametrize(
    ("finish", "reason"),
    [
        ("length", "answer cut at 1024 tokens"),
        ("content_filter", "refused by the model"),
        ("refusal", "refused by the model"),
        ("context", "sentence too long for the model"),
    ],
)
def test_how_an_answer_ends(judge, finish, reason):
    assert judged(judge, "A man rides a bike.", finish) == (None, reason)


@pytest.mark.parametrize(
    ("source", "reference", "text"),
    [
        (
            "Promiňte, s tím vám nemohu pomoci.",
            "Sorry, I can't help you with that.",
            "I'm sorry, I can't help with that.",
        ),
        ("Odpověď: ano.", "The answer: yes.", "The answer is: yes."),
        ("„Jdi,“ řekl.", '"Go," he said.', '"Go," he said.'),
        ("(Poznámka: viz níže)", "(Note: see below)", "(Note: see below)"),
        ("Praha 2", "Praha 2", "Praha 2"),
        ("Ne.", "No.", "No, not at all."),
    ],
)
def test_what_the_sentence_itself_has_is_no_fault(judge, source, reference, text):
    assert judged(judge, text, source=source, reference=reference)[1] is None


def test_length_by_hand():
    """30 characters may become 30 * 2 + 20."""
    judge = Judge(LanguageModelConfig("m", max_length_ratio=2.0), "paraphrase")
    sentence = "A man is riding on wet ground."
    assert len(sentence) == 30
    for length, reason in ((80, None), (81, "answer of absurd length"), (5, None), (4, "answer of absurd length")):
        text = ("The man rides and " * 6)[: length - 1] + "."
        assert judged(judge, text, source=sentence, reference=sentence)[1] == reason


def test_other_languages():
    judge = Judge(LanguageModelConfig("m", target_language="de"), "translate")
    german = "Ein Mann fährt mit dem Fahrrad auf einer nassen Straße."
    assert judged(judge, german, reference=german)[1] is None
    assert judged(judge, REFERENCE, reference=german)[1] == "answer in another language than de"


def test_paraphrases_may_repeat_the_sentence():
    """A copy is a pair that the overlap tells of, as everywhere else."""
    judge = Judge(LanguageModelConfig("m"), "paraphrase")
    assert judged(judge, REFERENCE, source=REFERENCE) == (REFERENCE, None)
    assert judged(judge, f"Paraphrase: {REFERENCE}", source=REFERENCE)[1] == "answer with more than the paraphrase"


def test_quotes():
    assert unquoted('"Go," he said. "Now"', "x") == '"Go," he said. "Now"'
    assert unquoted("'", "x") == "'"
    assert unquoted('"Go."', '"Jdi."') == '"Go."'


def test_many_at_once_keep_their_places(judge):
    answers = [Answer("A man rides a bike in the rain.", "stop"), Answer("", "stop"), Answer("Yes, he does.", "stop")]
    texts, reasons = judge.judge([SOURCE] * 3, [REFERENCE] * 3, answers)
    assert (texts, reasons) == (
        ["A man rides a bike in the rain.", None, "Yes, he does."],
        [None, "empty answer", None],
    )
