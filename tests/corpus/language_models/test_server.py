"""One request to a real server on loopback, whatever it does."""

import math

import pytest

from paranmt_hf import LanguageModelConfig
from paranmt_hf.corpus.language_models.kept_answers import Answer
from paranmt_hf.corpus.language_models.server import Server
from tests.corpus.language_models.chat_server import KEY, Reply, failure, serving
from tests.refused import refused


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch):
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


def server_of(server, **settings):
    return Server(LanguageModelConfig("small", **{"base_url": server.url, "max_retries": 0, **settings}))


def ask(reply, prompt="Say it.\n\nMuž.", **settings):
    with serving(lambda *_: reply) as server:
        return server_of(server, **settings).ask(prompt)


class TestAnswers:
    @pytest.mark.slow
    def test_what_is_asked(self):
        with serving(lambda *_: "A man.") as server:
            answer = server_of(server, temperature=0.5, seed=7, max_answer_tokens=9).ask("Say it.\n\nMuž.")
        assert answer == Answer("A man.", "stop")
        assert server.requests == [
            {
                "model": "small",
                "messages": [{"role": "user", "content": "Say it.\n\nMuž."}],
                "temperature": 0.5,
                "max_tokens": 9,
                "seed": 7,
                "logprobs": True,
            }
        ]

    @pytest.mark.parametrize(
        ("logprobs", "score"),
        [([-0.5, -1.0, -0.75], -0.75), ([-9999.0, -1.0], -5000.0), ([1e-9], 0.0), ([], None), (None, None)],
    )
    def test_the_score_is_the_mean_log_probability(self, logprobs, score):
        assert ask(Reply("A man.", logprobs=logprobs)).score == score

    def test_a_score_that_is_no_number_is_none(self):
        assert ask(Reply("A man.", logprobs=[-0.5, -math.inf])).score is None

    def test_thoughts_leave_no_score(self):
        assert ask(Reply("<think>\nHm.\n</think>\nA man.", logprobs=[-0.5, -1.0])).score is None

    @pytest.mark.parametrize(
        "reply",
        [
            # vLLM 0.31 with --reasoning-parser; SGLang 0.5, llama.cpp and DeepSeek; Mistral's server for Magistral.
            Reply("A man.", fields={"reasoning": "Hm."}),
            Reply("A man.", fields={"reasoning_content": "Hm."}),
            Reply(
                [
                    {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]},
                    {"type": "text", "text": "A man."},
                ]
            ),
        ],
    )
    def test_reasoning_apart_from_the_answer(self, reply):
        reply.logprobs = [-0.5]
        assert ask(reply) == Answer("A man.", "stop")

    def test_reasoning_without_an_answer(self):
        assert ask(Reply(None, fields={"reasoning": "Hm."})).finish == "reasoning"
        assert ask(Reply(None, fields={"reasoning": "Hm."}, finish="length")).finish == "length"

    def test_an_empty_field_of_reasoning_is_none(self):
        assert ask(Reply("A man.", fields={"reasoning": ""}, logprobs=[-0.5])).score == -0.5

    def test_refusals_and_cut_answers_are_told(self):
        assert ask(Reply(None, refusal="No.")) == Answer("No.", "refusal")
        assert ask(Reply("A ma", finish="length", usage=None)) == Answer("A ma", "length")
        assert ask(Reply(None)) == Answer("", "stop")


class TestAServerThatTakesLess:
    @pytest.mark.parametrize(("refused", "status"), [("logprobs", 400), ("seed", 422), ("temperature", 400)])
    def test_what_it_does_not_take_is_left_out(self, refused, status, caplog):
        def answer(sentence, request, attempt):
            return failure(status, f"Unsupported parameter: '{refused}'") if refused in request else "A man."

        with serving(answer) as server:
            asks = server_of(server)
            assert [asks.ask("x").text, asks.ask("y").text] == ["A man."] * 2
        assert [refused in request for request in server.requests] == [True, False, False]
        assert caplog.text.count(f"takes no {refused}") == 1

    @pytest.mark.parametrize(
        "message",
        [
            # As the server of OpenAI answers for gpt-5-mini and for o3-mini.
            "Unsupported value: 'temperature' does not support 0 with this model. Only the default (1) is supported.",
            "Unsupported parameter: 'temperature' is not supported with this model.",
        ],
    )
    def test_a_model_without_a_choice_of_temperature(self, message):
        def answer(sentence, request, attempt):
            return failure(400, message, param="temperature") if "temperature" in request else "A man."

        with serving(answer) as server:
            asks = server_of(server)
            assert asks.ask("x").text == "A man."
        assert asks.left_out == {"temperature"}

    def test_no_temperature_is_sent_if_none_is_set(self):
        with serving(lambda *_: "A man.") as server:
            server_of(server, temperature=None).ask("x")
        assert "temperature" not in server.requests[0]

    def test_the_limit_of_an_answer_has_two_names(self):
        message = "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."
        with serving(lambda _, request, __: failure(400, message) if "max_tokens" in request else "A.") as server:
            assert server_of(server).ask("x").text == "A."
        assert server.requests[-1]["max_completion_tokens"] == 1024

    def test_a_filter_refuses_one_sentence_and_not_all(self):
        said = ask(failure(400, "the prompt was filtered", code="content_filter"))
        assert said.finish == "content_filter" and "the prompt was filtered" in said.text

    def test_halves_of_characters(self):
        assert ask("\ud83d hello").text == "? hello"


class TestFailures:
    @pytest.mark.parametrize(
        "reply",
        [
            failure(503, "busy"),
            failure(400, "bad words"),
            Reply("A man.", half=True),
            Reply("A man.", stall=0.3),
            Reply(body=b"<html>hello</html>"),
            Reply(body=b'{"choices": ['),
            Reply(body={"object": "chat.completion", "choices": []}),
            Reply(body=[1]),
        ],
    )
    def test_failures(self, reply):
        with refused():
            ask(reply, timeout=0.1 if reply.stall else 9)

    @pytest.mark.parametrize(
        "trouble",
        [
            failure(503, "busy", Retry_After="0.01"),
            failure(429, "busy", Retry_After="0.01"),
            # Some routers answer with status 200 and an error in place of the choices.
            Reply(body={"error": {"message": "Provider returned error"}}),
        ],
    )
    def test_what_passes_is_tried_again(self, trouble):
        with serving(lambda _, __, attempt: trouble if attempt < 2 else "A man.") as server:
            assert server_of(server, max_retries=2).ask("x").text == "A man."
            assert sum(server.asked.values()) == 3
        with serving(lambda *_: trouble) as server, refused():
            server_of(server, max_retries=2).ask("x")
        assert sum(server.asked.values()) == 3

    @pytest.mark.parametrize("reply", [failure(429, "exceeded", code="insufficient_quota"), failure(402, "none left")])
    def test_without_credit_nothing_is_tried_again(self, reply):
        with serving(lambda *_: reply) as server, refused() as caught:
            server_of(server, max_retries=9).ask("x")
        assert sum(server.asked.values()) == 1 and "no credit left" in str(caught.value)

    @pytest.mark.parametrize(
        "error",
        [
            failure(400, "This model's maximum context length is 10 tokens", code="context_length_exceeded"),
            failure(400, "the request exceeds the available context size, try increasing it"),
            failure(400, "'max_tokens' is too large: 1024. This model's maximum context length is 512 tokens"),
            failure(413, "too large"),
        ],
    )
    def test_a_context_that_is_too_long_is_an_answer(self, error):
        assert ask(error).finish == "context"

    @pytest.mark.parametrize(("models", "named"), [(("b", "a"), "it has a, b"), (None, "/v1")])
    def test_an_unknown_model(self, models, named):
        with serving(lambda *_: failure(404, "no such model"), models=models) as server, refused() as caught:
            server_of(server).ask("x")
        assert "'small'" in str(caught.value) and str(caught.value).endswith(named)


class TestTheKey:
    def test_the_right_one(self, monkeypatch):
        monkeypatch.setenv("OPENAI_API_KEY", f" {KEY}\n")
        with serving(lambda *_: "A.", key=KEY) as server:
            asks = server_of(server)
            asks.check()
            assert asks.ask("x").text == "A."

    @pytest.mark.parametrize("key", ["sk-mine-987654", ""])
    def test_a_wrong_one_is_never_shown(self, key, monkeypatch):
        monkeypatch.setenv("OPENAI_API_KEY", key)
        with serving(lambda *_: "A.", key=KEY) as server:
            asks = server_of(server)
            for call in (asks.check, lambda: asks.ask("x")):
                with refused() as caught:
                    call()
                assert "OPENAI_API_KEY" in str(caught.value) and "sk-mine" not in str(caught.value)
                assert caught.value.__suppress_context__

    def test_an_odd_one_that_a_server_repeats(self, monkeypatch):
        monkeypatch.setenv("OPENAI_API_KEY", "openSesame")
        with refused() as caught:
            ask(failure(500, "openSesame is a fine key"))
        assert "***" in str(caught.value) and "openSesame" not in str(caught.value)

    def test_one_with_a_line_break_inside(self, monkeypatch):
        monkeypatch.setenv("OPENAI_API_KEY", "sk-a\nb")
        with refused() as caught:
            Server(LanguageModelConfig("small", base_url="http://127.0.0.1:9"))
        assert "sk-a" not in str(caught.value)


def test_no_server_is_there():
    with serving(lambda *_: "A.") as server:
        pass
    with refused():
        server_of(server, max_retries=9).check()


def test_a_server_without_a_list_of_models_is_one():
    with serving(lambda *_: "A.", models=None) as server:
        server_of(server).check()
