"""Which answers are taken, and why others are not; read by hand."""

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from paranmt_hf import InputError, LanguageModelConfig
from paranmt_hf.corpus.language_models.answers import Judge
from paranmt_hf.corpus.language_models.kept_answers import Answer, KeptAnswers
from paranmt_hf.corpus.language_models.stage import ask_all
from paranmt_hf.corpus.scoring.language import LANGUAGES
from paranmt_hf.errors import WriteError
from tests.refused import refused

SOURCE, REFERENCE = "Muž jede na kole po mokré ulici.", "A man is riding a bicycle on a wet street."


@pytest.fixture(scope="module")
def judge():
    return Judge(LanguageModelConfig("m"), "translate")


def judged(judge, text, finish="stop", source=SOURCE, reference=REFERENCE):
    (one,) = judge.judge([source], [reference], [Answer(text, finish)])
    return one.text if one.reason is None else None, one.reason


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
        ("1. A man rides a bike.", "answer with more than the translation"),
        ("- A man rides a bike.", "answer with more than the translation"),
        ("Sure! A man rides a bike.", "answer with more than the translation"),
        ("Sure, here you go: A man rides a bike.", "answer with more than the translation"),
        (
            "Here is the sentence you want Muž jel na kole po ulici, která byla mokrá.",
            "answer in another language than en",
        ),
        ("**A man rides a bike.**", "answer with more than the translation"),
        ("```\nA man rides a bike.\n```", "answer with more than the translation"),
        ("<analysis>It says bike.</analysis>A man rides a bike.", "answer with more than the translation"),
        ("<|plan|>bike A man rides a bike.", "answer with more than the translation"),
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
        ("Jistě! Přijdu.", "Sure! I will come.", "Of course! I'll be there."),
        ("2. Otevřete okno.", "2) Open the window.", "2. Open a window."),
        ("- Jdi!", "- Go!", "- Go away!"),
        ("Ne.", "No.", "No, not at all."),
        ("<b>Ne</b>, nikdy.", "<b>No</b>, never.", "<b>No</b>, never ever."),
    ],
)
def test_what_the_sentence_itself_has_is_no_fault(judge, source, reference, text):
    assert judged(judge, text, source=source, reference=reference)[1] is None


def test_length_by_hand():
    """30 characters may become 30 * 3 + 20."""
    judge = Judge(LanguageModelConfig("m"), "paraphrase")
    sentence = "A man is riding on wet ground."
    assert len(sentence) == 30
    for length, reason in ((110, None), (111, "answer of absurd length"), (4, None), (3, "answer of absurd length")):
        text = ("The man rides and " * 9)[: length - 1] + "."
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


@pytest.mark.parametrize("text", ['"Go," he said. "Now"', "'"])
def test_quotes_inside_an_answer_stay(judge, text):
    assert judged(judge, text, reference=text)[0] == text


def test_many_at_once_keep_their_places(judge):
    answers = [Answer("A man rides a bike in the rain.", "stop"), Answer("", "stop"), Answer("Yes, he does.", "stop")]
    found = [(one.text, one.reason) for one in judge.judge([SOURCE] * 3, [REFERENCE] * 3, answers)]
    assert found == [("A man rides a bike in the rain.", None), ("", "empty answer"), ("Yes, he does.", None)]


class TestSettings:
    def test_prompts(self):
        plain = LanguageModelConfig("m")
        assert plain.template("translate").startswith("Translate this sentence into English. ")
        assert "from Czech into German." in LanguageModelConfig(
            "m", source_language="cs", target_language="de"
        ).template("translate")
        assert plain.template("paraphrase").startswith("Say this sentence in English in other words ")
        own = LanguageModelConfig("m", prompt="{target_language} of {sentence} {json: 1}")
        assert own.template("translate") == own.template("paraphrase") == "English of {sentence} {json: 1}"

    def test_answers_are_in_the_language_of_the_corpus(self):
        assert LanguageModelConfig("m").answering_in("de").language == "de"
        assert LanguageModelConfig("m", target_language="de").answering_in("de").language == "de"
        with refused():
            LanguageModelConfig("m", target_language="de").answering_in("en")

    def test_every_language_that_can_be_told_has_a_name(self):
        for code in LANGUAGES:
            assert "into " in LanguageModelConfig("m", target_language=code).template("translate")

    @pytest.mark.parametrize(
        "values",
        [
            *({"prompt": "Translate."}, {"prompt": "{sentence} {text}"}),
            *({"prompt": "{sentence} {sentence}"}, {"prompt": "{source_language}: {sentence}"}),
            {"target_language": "ces_Latn"},
            *({"base_url": "localhost:8000"}, {"base_url": "http://[x"}, {"base_url": "http://localhost:abc/v1"}),
            *({"base_url": "http://me:secret@host/v1"}, {"base_url": "http://host/v1?key=secret"}),
            *({"temperature": 3.0}, {"concurrency": 0}),
        ],
    )
    def test_bad_values_are_refused(self, values):
        with pytest.raises(InputError) as caught:
            LanguageModelConfig(**{"name": "m", **values})
        assert "secret" not in str(caught.value)

    def test_the_source_language_is_named_where_the_prompt_asks_for_it(self):
        config = LanguageModelConfig("m", source_language="cs")
        assert "from Czech into English" in config.template("translate")
        asked = LanguageModelConfig(
            "m", source_language="cs", prompt="{source_language} to {target_language}: {sentence}"
        )
        assert asked.template("paraphrase") == "Czech to English: {sentence}"

    def test_the_address(self, monkeypatch):
        monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
        assert LanguageModelConfig("m").address == "https://api.openai.com/v1"
        assert LanguageModelConfig("m", base_url="http://a:1").address == "http://a:1/v1"
        assert LanguageModelConfig("m", base_url="http://a:1/api/").address == "http://a:1/api"
        monkeypatch.setenv("OPENAI_BASE_URL", "http://b/v2")
        assert LanguageModelConfig("m").address == "http://b/v2"


class Upper:
    """Answers in capitals after some time, and counts the requests."""

    def __init__(self):
        self.calls, self.lock, self.running, self.most = 0, threading.Lock(), 0, 0

    def ask(self, prompt):
        with self.lock:
            self.calls += 1
            self.running += 1
            self.most = max(self.most, self.running)
        time.sleep(0.005)
        with self.lock:
            self.running -= 1
        return Answer(prompt.upper(), "stop")


class TestAsking:
    @pytest.mark.parametrize("count", [0, 40])
    def test_every_prompt_gets_its_answer(self, count):
        server = Upper()
        prompts = [f"a{index}" for index in range(count)]
        found = dict(ask_all(server, prompts, 3))
        assert [found[index].text for index in range(count)] == [prompt.upper() for prompt in prompts]
        assert server.calls == count and (not count or 1 < server.most <= 3)

    @pytest.mark.slow
    def test_no_more_are_asked_than_can_be_lost(self):
        server, kept = Upper(), 0
        for _ in ask_all(server, [f"a{index}" for index in range(20)], 2):
            # Time enough for the threads to ask for more.
            time.sleep(0.03)
            assert server.calls <= kept + 2
            kept += 1
        assert kept == server.calls == 20

    def test_what_is_under_way_is_kept_when_one_request_fails_for_good(self):
        together = threading.Barrier(4)

        class One:
            def ask(self, prompt):
                together.wait(60)
                if prompt == "a0":
                    raise InputError("no such model")
                time.sleep(0.05)
                return Answer(prompt.upper(), "stop")

        found = []
        with refused():
            for index, answer in ask_all(One(), [f"a{i}" for i in range(20)], 4):
                found.append((index, answer.text))
        assert sorted(found) == [(1, "A1"), (2, "A2"), (3, "A3")]


class TestKeptAnswers:
    def test_round_trip(self, tmp_path):
        kept = KeptAnswers(tmp_path / "a.db", {"model": "m"})
        full, bare = Answer("Jó.\n", "stop", -0.123456789), Answer("", "context")
        kept.add("one", full)
        kept.add("two", bare)
        assert kept.find(["two", "three", "one"]) == {"two": bare, "one": full}
        assert len(kept) == 2
        kept.close()
        for request, found in (({"model": "m"}, {"one": full}), ({"model": "other"}, {})):
            kept = KeptAnswers(tmp_path / "a.db", request)
            assert kept.find(["one"]) == found
            kept.close()
        assert [path.name for path in tmp_path.iterdir()] == ["a.db"]

    @pytest.mark.slow
    def test_a_kill_loses_nothing(self, tmp_path):
        program = (
            "import os, signal, sys; from pathlib import Path\n"
            "from paranmt_hf.corpus.language_models.kept_answers import *\n"
            "kept = KeptAnswers(Path(sys.argv[1]), {})\n"
            "for number in range(100): kept.add(str(number), Answer('x', 'stop'))\n"
            "os.kill(os.getpid(), signal.SIGKILL)"
        )
        done = subprocess.run([sys.executable, "-c", program, str(tmp_path / "a.db")], env=dict(os.environ))
        assert done.returncode == -signal.SIGKILL
        kept = KeptAnswers(tmp_path / "a.db", {})
        assert len(kept.find([str(number) for number in range(100)])) == 100
        kept.close()

    def test_damage_and_places_that_cannot_be_written(self, tmp_path):
        (tmp_path / "a.db").write_bytes(b"no database at all" * 100)
        with refused():
            KeptAnswers(tmp_path / "a.db", {})
        with pytest.raises(WriteError):
            KeptAnswers(tmp_path / "missing" / "a.db", {})
