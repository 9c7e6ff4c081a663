"""Corpora by a language model: a real server on loopback, from the files to the release, stopped and gone on with."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from dataclasses import replace

import pytest

from paranmt_hf import LanguageModelConfig, ReleaseConfig, build
from paranmt_hf.cli import main
from paranmt_hf.corpus.reading.readers import LineFiles
from paranmt_hf.corpus.release import release_run
from paranmt_hf.corpus.release.record import ReleaseRecord
from paranmt_hf.errors import OtherSettingsError
from tests.corpus.language_models.chat_server import KEY, Reply, failure, serving
from tests.refused import refused
from tests.toys import LOCAL, RELEASE, bytes_of, rows_of

ROWS = 30
ENGLISH = [f"A man with {number} red balls is walking along the street." for number in range(ROWS)]
CZECH = [f"Muž, který má {number} červených míčů, jde po ulici." for number in range(ROWS)]


def paraphrased(sentence, request=None, attempt=0):
    """Answers with the number of the sentence, in other words."""
    number = next(word for word in sentence.split() if word.isdigit())
    return Reply(f"Along the street walks a man who has {number} red balls.", logprobs=[-0.25, -0.75])


@pytest.fixture(autouse=True)
def plain(monkeypatch):
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def vectors(tmp_path):
    path = tmp_path / "vectors.txt"
    words = dict.fromkeys(" ".join([*ENGLISH, paraphrased("1").text]).lower().replace(".", "").split())
    path.write_text("".join(f"{word} {index % 7} {index % 5} 1\n" for index, word in enumerate(words)))
    return path


@pytest.fixture
def bitext(tmp_path):
    (tmp_path / "text.cs").write_text("".join(f"{line}\n" for line in CZECH), encoding="utf8")
    (tmp_path / "text.en").write_text("".join(f"{line}\n" for line in ENGLISH), encoding="utf8")
    return LineFiles({"source": tmp_path / "text.cs", "reference": tmp_path / "text.en"})


def make(bitext, out, vectors, server, **settings):
    engine = settings.pop("engine", LOCAL)
    config = LanguageModelConfig("small", base_url=server.url, source_language="cs", **settings)
    return build(bitext, out, language_model=config, scorer=vectors, release=RELEASE, engine=engine)


@pytest.mark.slow
def test_build_by_hand(bitext, vectors, tmp_path):
    two = threading.Barrier(2)

    def answer(sentence, request, attempt):
        if " 0 " in sentence or " 1 " in sentence:
            two.wait(60)
        return paraphrased(sentence)

    with serving(answer) as server:
        built = make(bitext, tmp_path / "corpus", vectors, server, concurrency=4)
    rows = rows_of(tmp_path / "corpus")
    assert [row["id"] for row in rows] == list(range(ROWS))
    assert rows[7]["source"] == CZECH[7] and rows[7]["reference"] == ENGLISH[7]
    assert rows[7]["translation"] == "Along the street walks a man who has 7 red balls."
    assert [row["translation_score"] for row in rows] == [-0.5] * ROWS
    assert len(server.requests) == ROWS and 1 < server.most <= 4
    translator = built.record.settings["translator"]
    assert translator["model"] == "openai:small" and translator["temperature"] == 0.0
    assert translator["prompt"].startswith("Translate this sentence from Czech into English.")
    assert built.record.statistics.mean_translation_score == -0.5
    assert not (tmp_path / "corpus.work").exists()
    card = (tmp_path / "corpus" / "README.md").read_text(encoding="utf8")
    for text in ("openai:small", "Translate this sentence from Czech into English.", "the language model", "Refusals"):
        assert text in card
    assert "mean log-probability (natural logarithm, at most 0) of the tokens of the language model's answer" in card
    assert "a language model's translation of the foreign side" in card


@pytest.mark.slow
def test_what_is_no_good_is_dropped_and_counted(bitext, vectors, tmp_path):
    odd = {
        0: "I'm sorry, but I can't assist with that.",
        1: Reply(None, refusal="No."),
        2: "Sure! Here is the translation: A man walks.",
        3: "Der Mann mit den roten Bällen geht auf der Straße entlang.",
        4: "A man walks. " * 30,
        5: "",
        6: Reply("A man", finish="length"),
        7: failure(400, "maximum context length is 3 tokens", code="context_length_exceeded"),
        8: CZECH[8],
        9: Reply("A man goes down the street.", logprobs=None),
    }

    def answer(sentence, request, attempt):
        return odd.get(CZECH.index(sentence)) if CZECH.index(sentence) in odd else paraphrased(sentence)

    with serving(answer) as server:
        built = make(bitext, tmp_path / "corpus", vectors, server)
    assert built.record.dropped == {
        "refused by the model": 2,
        "answer with more than the translation": 1,
        "answer in another language than en": 1,
        "answer of absurd length": 1,
        "empty answer": 1,
        "answer cut at 1024 tokens": 1,
        "sentence too long for the model": 1,
        "answer that repeats the source": 1,
    }
    rows = rows_of(tmp_path / "corpus")
    assert [row["id"] for row in rows] == list(range(9, ROWS))
    assert rows[0]["translation_score"] is None and rows[1]["translation_score"] == -0.5
    card = (tmp_path / "corpus" / "README.md").read_text(encoding="utf8")
    assert "1 answer with more than the translation" in card and "2 refused by the model" in card


@pytest.mark.slow
def test_failures_that_pass_change_no_byte(bitext, vectors, tmp_path):
    trouble = [
        failure(429, "slow down", Retry_After="0.05"),
        failure(500, "oops"),
        Reply("A man", half=True),
        failure(408, "late"),
        Reply("A man", stall=5),
    ]

    def answer(sentence, request, attempt):
        kind = CZECH.index(sentence) % 10
        return trouble[kind] if kind < len(trouble) and not attempt else paraphrased(sentence)

    with serving(paraphrased) as server:
        make(bitext, tmp_path / "a" / "corpus", vectors, server)
    with serving(answer) as server:
        make(bitext, tmp_path / "b" / "corpus", vectors, server, timeout=2.5)
    assert Counter(server.asked.values()) == {1: 15, 2: 15}
    assert bytes_of(tmp_path / "a") == bytes_of(tmp_path / "b")


@pytest.mark.slow
def test_what_was_answered_is_not_asked_again(bitext, vectors, tmp_path):
    """The server breaks for good after 17 answers; another one, at another place, goes on."""
    lock, count = threading.Lock(), 0

    def answer(sentence, request, attempt):
        nonlocal count
        with lock:
            count += 1
            return paraphrased(sentence) if count <= 17 else failure(503, "out of order")

    with serving(answer) as first, refused():
        make(bitext, tmp_path / "b" / "corpus", vectors, first, concurrency=1, max_retries=0)
    assert (tmp_path / "b" / "corpus.work" / "answers.db").exists()
    with serving(paraphrased) as second:
        make(bitext, tmp_path / "b" / "corpus", vectors, second)
    assert len(second.requests) == ROWS - 17
    assert not set(second.asked) & set([*first.asked][:17])
    with serving(paraphrased) as server:
        make(bitext, tmp_path / "a" / "corpus", vectors, server)
    assert bytes_of(tmp_path / "a") == bytes_of(tmp_path / "b")


@pytest.mark.slow
def test_equal_sentences_are_asked_for_once(vectors, tmp_path):
    (tmp_path / "text.en").write_text("".join(f"{ENGLISH[number % 3]}\n" for number in range(25)))
    with serving(paraphrased) as server:
        built = paraphrase(tmp_path / "text.en", tmp_path / "corpus", vectors, server)
    assert built.record.statistics.rows == 25 and sorted(server.asked.values()) == [1, 1, 1]


def paraphrase(text, out, vectors, server, **settings):
    return build(
        LineFiles({"reference": text}),
        out,
        language_model=LanguageModelConfig("small", base_url=server.url, **settings),
        scorer=vectors,
        release=ReleaseConfig(license="cc-by-4.0"),
        engine=LOCAL,
    )


@pytest.mark.slow
def test_pairs_from_text_alone(bitext, vectors, tmp_path):
    with serving(paraphrased) as server:
        built = paraphrase(tmp_path / "text.en", tmp_path / "corpus", vectors, server)
    rows = rows_of(tmp_path / "corpus")
    assert [row["reference"] for row in rows] == ENGLISH
    assert rows[3]["translation"] == "Along the street walks a man who has 3 red balls."
    assert list(rows[0])[:4] == ["id", "reference", "translation", "translation_score"]
    assert server.requests[0]["messages"][0]["content"].startswith("Say this sentence in English in other words")
    assert built.record.settings["paraphraser"]["model"] == "openai:small"
    card = (tmp_path / "corpus" / "README.md").read_text(encoding="utf8")
    assert "a paraphrase of it by a language model, made without a bitext" in card
    assert "a language model's paraphrase of it" in card and "`openai:small`" in card
    assert "imported" not in card and "back-translation\n" not in card


@pytest.mark.slow
def test_other_settings_do_not_go_on(bitext, vectors, tmp_path):
    with serving(paraphrased) as server:
        make(bitext, tmp_path / "corpus", vectors, server)
    # The server is not needed for what is finished.
    with refused("out", kind=OtherSettingsError):
        make(bitext, tmp_path / "corpus", vectors, server, temperature=0.5)
    assert not make(bitext, tmp_path / "corpus", vectors, server, concurrency=2, max_retries=0, timeout=9.0).fresh


@pytest.mark.slow
def test_answers_of_which_none_is_good_are_not_paid_for_to_the_end(bitext, vectors, tmp_path):
    lines = [f"{number} {line}" for number in range(10) for line in CZECH]
    for name in ("many.cs", "many.en"):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf8")
    many = LineFiles({"source": tmp_path / "many.cs", "reference": tmp_path / "many.en"})
    with serving(lambda *_: "I cannot assist with that.") as server:
        with refused():
            make(many, tmp_path / "corpus", vectors, server, engine=replace(LOCAL, shard_rows=1000))
    assert len(server.requests) == 50


def words(tmp_path, vectors, url, *more, **settings):
    lines = [f"{name}: {value}\n" for name, value in {"name": "small", "base-url": url, **settings}.items()]
    (tmp_path / "model.yaml").write_text("".join(lines))
    files = ["--source", str(tmp_path / "text.cs"), "--reference", str(tmp_path / "text.en")]
    model = ["--language-model", str(tmp_path / "model.yaml"), "--out", str(tmp_path / "corpus")]
    release = ["--scorer", str(vectors), "--license", "mit", "--engine", "shard_rows=10"]
    return ["build", *files, *model, *release, *more]


@pytest.mark.slow
def test_the_key_is_written_nowhere(bitext, vectors, tmp_path, monkeypatch, caplog, capfd):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    caplog.set_level("DEBUG")
    fine = threading.Event()

    def answer(sentence, request, attempt):
        return paraphrased(sentence) if fine.is_set() else failure(500, f"what a fine key, {KEY}")

    with serving(answer, key=KEY) as server:
        command = words(tmp_path, vectors, server.url, **{"max-retries": 0})
        assert main(command) == 1
        stopped = bytes_of(tmp_path)
        fine.set()
        with monkeypatch.context() as patch:
            patch.setattr(release_run, "write_card", interrupt)
            assert main(command) == 130
        stopped |= bytes_of(tmp_path)
        assert main(command) == 0
    assert {"corpus/build.json"} <= bytes_of(tmp_path).keys() and "corpus.work/answers.db" in stopped
    told = capfd.readouterr()
    assert "***" in told.err
    secrets = [KEY, "0123456789abcdef"]
    for content in [*stopped.values(), *bytes_of(tmp_path).values()]:
        assert not any(secret.encode() in content for secret in secrets)
    assert not any(secret in text for secret in secrets for text in (told.out, told.err, caplog.text))


def interrupt(*arguments):
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"prompt": "Go."}, "prompt must hold {sentence} once"),
        ({"beam": 4}, "a language model names 'beam', which"),
    ],
)
def test_settings_that_do_not_fit(bitext, vectors, tmp_path, capsys, settings, message):
    assert main(words(tmp_path, vectors, "http://127.0.0.1:9", **settings)) == 1
    assert message in capsys.readouterr().err
    assert not (tmp_path / "corpus.work").exists()


def test_a_server_that_is_not_there_leaves_nothing(bitext, vectors, tmp_path, capsys):
    with serving(paraphrased) as server:
        pass
    assert main(words(tmp_path, vectors, server.url)) == 1
    assert f"no server answers at {server.url}" in capsys.readouterr().err
    assert not (tmp_path / "corpus.work").exists() and not (tmp_path / "corpus").exists()


@pytest.mark.slow
def test_a_killed_command_goes_on(bitext, vectors, tmp_path):
    """Killed with -9 in the middle of the second shard; what had been answered is not asked again."""
    with serving(lambda sentence, *_: replace(paraphrased(sentence), stall=0.2)) as server:
        command = words(tmp_path, vectors, server.url, concurrency=2)
        process = subprocess.Popen([sys.executable, "-m", "paranmt_hf.cli", *command], env=dict(os.environ))
        deadline = time.monotonic() + 120
        while len(server.requests) < 14 and time.monotonic() < deadline:
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.wait()
        before = Counter(server.asked)
        assert 14 <= sum(before.values()) < ROWS
        assert not (tmp_path / "corpus").exists()
        assert main(command) == 0
    # Those that were under way when it was killed had no answer yet.
    assert sum(server.asked.values()) <= ROWS + 2
    killed = bytes_of(tmp_path / "corpus")
    (tmp_path / "corpus").rename(tmp_path / "former")
    with serving(paraphrased) as again:
        assert main(words(tmp_path, vectors, again.url, concurrency=2)) == 0
    # The address of the server is an option.
    plainly = {name: content for name, content in bytes_of(tmp_path / "corpus").items() if "build.json" not in name}
    assert plainly == {name: content for name, content in killed.items() if "build.json" not in name}
    records = [ReleaseRecord.read(tmp_path / name) for name in ("corpus", "former")]
    assert replace(records[0], options={}) == replace(records[1], options={})


@pytest.mark.slow
def test_a_refused_temperature_is_in_the_record(bitext, vectors, tmp_path):
    def answer(sentence, request, attempt):
        return (
            failure(400, "temperature is not supported", param="temperature")
            if "temperature" in request
            else (paraphrased(sentence))
        )

    with serving(answer) as server:
        built = make(bitext, tmp_path / "corpus", vectors, server)
    assert built.record.statistics.rows == ROWS
    assert built.record.settings["translator"]["temperature"] == 0.0
    assert [warning for warning in built.record.warnings if "temperature" in warning]


@pytest.mark.slow
def test_answers_with_and_without_a_temperature_are_not_mixed(bitext, vectors, tmp_path):
    def stopped(sentence, request, attempt):
        return failure(400, "full", param="x") if CZECH.index(sentence) == 20 else paraphrased(sentence)

    def refusing(sentence, request, attempt):
        return failure(400, "no temperature") if "temperature" in request else paraphrased(sentence)

    with serving(stopped) as server, refused():
        make(bitext, tmp_path / "corpus", vectors, server, concurrency=1)
    kept = bytes_of(tmp_path / "corpus.work")
    with serving(refusing) as server, refused():
        make(bitext, tmp_path / "corpus", vectors, server)
    assert kept.keys() <= bytes_of(tmp_path / "corpus.work").keys()
    with serving(paraphrased) as server:
        built = make(bitext, tmp_path / "corpus", vectors, server)
    assert built.record.statistics.rows == ROWS and not built.record.warnings
