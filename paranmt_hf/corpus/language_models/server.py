"""Requests to an OpenAI-compatible server, with errors in one sentence.

The protocol is that of chat completions, which vLLM, SGLang, llama.cpp, `transformers serve` and hosted models speak.
"""

from __future__ import annotations

import logging
import math
import os
import re
import time
from typing import Any

from paranmt_hf.corpus.language_models.config import LanguageModelConfig
from paranmt_hf.corpus.language_models.kept_answers import Answer
from paranmt_hf.corpus.language_models.reasoning import split_reasoning
from paranmt_hf.errors import InputError
from paranmt_hf.util.optional import require

logger = logging.getLogger(__name__)

KEY = "OPENAI_API_KEY"
CONTEXT = re.compile(
    r"context[ _-]?(length|window|size)|maximum context|exceed\w*\W.{0,60}context|prompt is too long|too many tokens"
    r"|input\W.{0,30}too long",
    re.I,
)
# Code of an error, and reason for the end of an answer, if a filter of the server stopped it.
FILTERED = "content_filter"
# Parameters that requests can leave out, and what that changes.
OPTIONAL = {
    "logprobs": "translation_score is null",
    "seed": "answers may differ from run to run",
    "temperature": "answers are sampled as the server does by default",
}
WITHOUT_CREDIT = "insufficient_quota"  # Code of the error if the credit of an account is used up


class Server:
    """A model behind a server.

    Attributes:
        address: Address of the server.
        left_out: Parameters of `OPTIONAL` that requests leave out, because the server refused them.
    """

    def __init__(self, config: LanguageModelConfig) -> None:
        self._openai: Any = require("openai", "llm")
        self._key = os.environ.get(KEY, "").strip()
        if re.search(r"[^\x21-\x7e]", self._key):
            raise InputError(f"{KEY} holds characters that no key has, such as blanks; set it again")
        self._config = config
        self.address = config.address
        # The hook sees each response before the client decides whether to repeat the request.
        http = self._openai.DefaultHttpxClient(event_hooks={"response": [_stop_without_credit]})
        self._client = self._openai.OpenAI(
            # The client requires a key; servers that need none ignore it.
            api_key=self._key or "none",
            base_url=self.address,
            max_retries=config.max_retries,
            timeout=config.timeout,
            http_client=http,
        )
        self.left_out: set[str] = set()
        # Name of the parameter for the largest length of an answer.
        self._limit = "max_tokens"

    def check(self) -> None:
        """Request the list of models, which is free, so that a wrong address or key shows at once.

        Raises:
            InputError: If the server does not answer, or refuses the key.
        """
        openai = self._openai
        try:
            self._client.with_options(max_retries=0).models.list()
        except openai.APIStatusError as error:
            # Servers without such a list answer with other errors.
            if error.status_code in (401, 403):
                raise self._failure(error) from None
        except openai.APIConnectionError as error:
            raise self._failure(error) from None
        except (openai.OpenAIError, ValueError, TypeError, AttributeError):
            logger.debug("no list of models at %s", self.address)

    def ask(self, prompt: str) -> Answer:
        """Send a request, and return the answer.

        The request is repeated if its failure may be temporary, or without parameters that the server refuses.

        Raises:
            InputError: If there is no answer.
        """
        openai = self._openai
        malformed = 0
        while True:
            request = self._request(prompt)
            try:
                return self._read(self._client.chat.completions.create(**request))
            except openai.APIStatusError as error:
                if error.status_code in (400, 422) and self._adapted(error, request):
                    continue
                if _over_context(error):
                    return Answer(self._message(error), "context")
                if error.code == FILTERED:
                    return Answer(self._message(error), FILTERED)
                raise self._failure(error) from None
            except openai.APIConnectionError as error:
                raise self._failure(error) from None
            except (openai.OpenAIError, ValueError, TypeError, AttributeError, LookupError) as error:
                # The response is half an answer or, for example, a page of a proxy. The client does not repeat such a
                # request itself.
                malformed += 1
                if malformed > self._config.max_retries:
                    raise self._failure(error) from None
                # Wait as long as the client does between its tries.
                time.sleep(min(8.0, 2.0 ** (malformed - 1) / 2))

    def _request(self, prompt: str) -> dict[str, Any]:
        """Return the parameters of a request."""
        request = {
            "model": self._config.name,
            "messages": [{"role": "user", "content": prompt}],
            self._limit: self._config.max_answer_tokens,
        }
        optional = {"temperature": self._config.temperature, "seed": self._config.seed, "logprobs": True}
        for name, value in optional.items():
            if name not in self.left_out and value is not None:
                request[name] = value
        return request

    def _adapted(self, error: Any, request: dict[str, Any]) -> bool:  # noqa: ANN401 - an error of openai
        """Leave out or rename parameters that the server refuses; return whether the request can be tried again."""
        message = f"{error.param or ''} {error.message}"
        if "max_tokens" in request and "max_completion_tokens" in message and not _over_context(error):
            self._limit = "max_completion_tokens"
            return True
        refused = {name for name in OPTIONAL if name in request and re.search(rf"\b{name}\b", message)}
        for name in sorted(refused - self.left_out):
            logger.warning(f"warning: {self.address} takes no {name}, so {OPTIONAL[name]}")
        self.left_out |= refused
        return bool(refused)

    def _read(self, completion: Any) -> Answer:  # noqa: ANN401 - a completion of openai
        """Read the answer and its score from a completion."""
        choice = completion.choices[0]
        message = choice.message
        refusal = getattr(message, "refusal", None)
        separated, text = _parts(message)
        reasoned = separated or split_reasoning(text, self._config.marks)[0]
        finish = "refusal" if refusal else str(choice.finish_reason or "stop")
        if separated and not text and finish == "stop":
            finish = "reasoning"
        score = None
        tokens = getattr(choice.logprobs, "content", None) or ()
        values: list[Any] = [getattr(token, "logprob", None) for token in tokens]
        if values and not reasoned and all(isinstance(one, int | float) and math.isfinite(one) for one in values):
            score = min(0.0, math.fsum(values) / len(values))
        # JSON may hold half a surrogate pair, which cannot be written in UTF-8.
        text = (text or str(refusal or "")).encode("utf8", "replace").decode("utf8")
        return Answer(text, finish, score)

    def _failure(self, error: Any) -> InputError:  # noqa: ANN401 - an error of openai, or of reading what it gave
        """Make the error that says why there is no answer, and what to do."""
        openai = self._openai
        message = self._message(error)
        if isinstance(error, openai.APITimeoutError):
            return InputError(f"{self.address} gave no answer in {self._config.timeout:g} seconds; run this again")
        if isinstance(error, openai.APIConnectionError):
            return InputError(f"no server answers at {self.address} ({message}): start it, or correct `base_url`")
        if not isinstance(error, openai.APIStatusError):
            # The response was half an answer, or something else.
            return InputError(f"{self.address} answered with no chat completion ({message}); run this again")
        advice = "what was answered is kept, the same command continues"
        if error.status_code in (401, 403):
            advice = f"set {KEY} to a key of this server"
        elif error.status_code == 402 or error.code == WITHOUT_CREDIT:
            advice = f"the account of this key has no credit left: add some, and then {advice}"
        elif error.status_code == 404:
            advice = self._known_models()
        return InputError(
            f"{self.address} refused a request for {self._config.name!r} with status {error.status_code}: {message}; "
            f"{advice}"
        )

    def _known_models(self) -> str:
        """Return advice for an unknown model: the models that the server has, if it lists them."""
        try:
            models = sorted(model.id for model in self._client.models.list().data)
        except Exception:
            # Servers without such a list may answer anything.
            models = []
        if not models:
            return "correct the name, or `base_url`, which usually ends in /v1"
        return f"it has {', '.join(models[:8])}{' and more' if len(models) > 8 else ''}"

    def _message(self, error: Any) -> str:  # noqa: ANN401 - an error of openai, or of reading what it gave
        """Return the message of an error, on one line and without the key."""
        cause = error.__cause__ if isinstance(error, self._openai.APIConnectionError) else None
        body = getattr(error, "body", None)
        text = body.get("message") if isinstance(body, dict) else None
        plain = " ".join(str(text or cause or error).split()) or type(cause or error).__name__
        if self._key:
            plain = plain.replace(self._key, "***")
        # Servers may repeat a part of the key in their messages.
        return re.sub(r"\b(?:sk|hf)[-_][\w*.-]{4,}|\bBearer\s+\S+", "***", plain)[:300]


def _stop_without_credit(response: Any) -> None:  # noqa: ANN401 - of httpx
    """Keep the client from repeating a request of an account without credit, unlike one that merely came too soon."""
    if response.status_code == 429 and WITHOUT_CREDIT.encode() in response.read():
        response.headers["x-should-retry"] = "false"


def _over_context(error: Any) -> bool:  # noqa: ANN401 - an error of openai
    """Whether an error says that the request was too long for the model."""
    message = f"{error.code or ''} {error.type or ''} {error.message}"
    return error.status_code == 413 or (error.status_code in (400, 422) and bool(CONTEXT.search(message)))


def _parts(message: Any) -> tuple[bool, str]:  # noqa: ANN401 - a message of openai
    """Return whether a message has reasoning apart from its text, and the text.

    Mistral's own server sends a list of chunks, of the type `thinking` or `text`.
    """
    content = message.content or ""
    # vLLM, OpenRouter and Ollama use the first name; DeepSeek, SGLang, llama.cpp and vLLM before 0.12 the second.
    separated = any(getattr(message, name, None) for name in ("reasoning", "reasoning_content"))
    if isinstance(content, list):
        separated = separated or any(chunk["type"] == "thinking" for chunk in content)
        content = "".join(chunk["text"] for chunk in content if chunk["type"] == "text")
    if not isinstance(content, str):
        raise ValueError(f"text was expected, {type(content).__name__} came")
    return separated, content
