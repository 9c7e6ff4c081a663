"""One request to an OpenAI-compatible server, with errors in one sentence.

The protocol is that of chat completions, which vLLM, SGLang, llama.cpp, `transformers serve` and hosted models speak.
"""

from __future__ import annotations

import logging
import math
import os
import re
import time
from email.utils import parsedate_to_datetime
from typing import Any

from paranmt_hf.corpus.language_models.answers import Answer
from paranmt_hf.corpus.language_models.config import KEY, LanguageModelConfig
from paranmt_hf.corpus.language_models.reasoning import split_reasoning
from paranmt_hf.errors import InputError
from paranmt_hf.util.optional import require

logger = logging.getLogger(__name__)

CONTEXT = re.compile(
    r"context[ _-]?(length|window|size)|maximum context|exceed\w*\W.{0,60}context|prompt is too long|too many tokens"
    r"|input\W.{0,30}too long",
    re.I,
)
FILTERED = "content_filter"  # Code of an error, and reason of an end, for what a filter of the server stopped
# Status codes of failures that pass: time-out, conflict, too early, too many requests, and those of the server.
PASSING = {408, 409, 425, 429}
BRIEF = 300  # Characters of a server's message that are shown
# Parameters that an answer can be asked for without, and what that changes.
OPTIONAL = {
    "logprobs": "translation_score is null",
    "seed": "answers may differ from run to run",
    "temperature": "answers are sampled as the server does by default",
}
# Fields of a message for reasoning that the server separated: of vLLM, OpenRouter and Ollama, and of DeepSeek, SGLang,
# llama.cpp and vLLM before 0.12.
REASONING_FIELDS = ("reasoning", "reasoning_content")
LISTED = 8  # Maximum number of models that an error lists


class PassingError(Exception):
    """A request failed for a reason that may be temporary.

    `wait` are the seconds that the server asks to wait for, if it does; `crowded` says that there were too many
    requests.
    """

    def __init__(self, reason: str, wait: float | None = None, *, crowded: bool = False) -> None:
        super().__init__(reason)
        self.reason, self.wait, self.crowded = reason, wait, crowded


class Server:
    """One model of a server.

    Attributes:
        left_out: Parameters of `OPTIONAL` that requests leave out, because the server refused them.
    """

    def __init__(self, config: LanguageModelConfig) -> None:
        self._openai: Any = require("openai", "llm")
        self.address = config.address
        self._config, self._key = config, _key()
        self._client = self._openai.OpenAI(
            # The client wants some key; a server that needs none looks at none.
            api_key=self._key or "none",
            base_url=self.address,
            max_retries=0,
            timeout=config.timeout,
        )
        self.left_out: set[str] = set()
        # The server's name for the maximum length of an answer.
        self._limit = "max_tokens"

    def check(self) -> None:
        """Request the list of models, which is free, so that a wrong address or key shows at once."""
        openai = self._openai
        try:
            self._client.models.list()
        except openai.APIStatusError as error:
            # Not every server has such a list.
            if error.status_code in (401, 403):
                raise InputError(self._refused(error)) from None
        except openai.APIConnectionError as error:
            raise InputError(
                f"no server answers at {self.address} ({self._said(error)}): start it, or correct `base_url`"
            ) from None
        except (openai.OpenAIError, ValueError, TypeError, AttributeError):
            logger.debug("no list of models at %s", self.address)

    def ask(self, prompt: str) -> Answer:
        """Send one request; raises `PassingError` if the failure may be temporary."""
        openai = self._openai
        while True:
            request = self._request(prompt)
            try:
                return self._read(self._client.chat.completions.create(**request))
            except openai.APIStatusError as error:
                if error.status_code in (400, 422) and self._adapted(error, request):
                    continue
                if _over_context(error):
                    return Answer(self._said(error), "context")
                if error.code == FILTERED:
                    return Answer(self._said(error), FILTERED)
                raise self._failure(error) from None
            except openai.APITimeoutError:
                reason = f"{self.address} gave no answer in {self._config.timeout:g} seconds"
                raise PassingError(reason) from None
            except openai.APIConnectionError as error:
                reason = f"the connection to {self.address} broke ({self._said(error)})"
                raise PassingError(reason) from None
            except (openai.OpenAIError, ValueError, TypeError, AttributeError, LookupError) as error:
                # Half an answer, or a page of something else.
                reason = f"{self.address} answered with no chat completion ({self._said(error)})"
                raise PassingError(reason) from None

    def _request(self, prompt: str) -> dict[str, Any]:
        optional = {
            "temperature": self._config.request_temperature,
            "seed": self._config.request_seed,
            "logprobs": True,
        }
        return {
            "model": self._config.name,
            "messages": [{"role": "user", "content": prompt}],
            self._limit: self._config.max_answer_tokens,
            **{name: value for name, value in optional.items() if name not in self.left_out and value is not None},
        }

    def _adapted(self, error: Any, request: dict[str, Any]) -> bool:  # noqa: ANN401 - an error of openai
        """Drop parameters that the server rejects, if the request works without them."""
        said = f"{error.param or ''} {error.message}"
        if "max_tokens" in request and "max_completion_tokens" in said and not _over_context(error):
            self._limit = "max_completion_tokens"
            return True
        refused = {name for name in OPTIONAL if name in request and re.search(rf"\b{name}\b", said)}
        for name in sorted(refused - self.left_out):
            logger.warning(f"warning: {self.address} takes no {name}, so {OPTIONAL[name]}")
        self.left_out |= refused
        return bool(refused)

    def _read(self, completion: Any) -> Answer:  # noqa: ANN401 - a completion of openai
        choice = completion.choices[0]
        message, usage = choice.message, completion.usage
        finish = "refusal" if getattr(message, "refusal", None) else str(choice.finish_reason or "stop")
        counts = (getattr(usage, "prompt_tokens", None), getattr(usage, "completion_tokens", None))
        input_tokens, output_tokens = (count if isinstance(count, int) else None for count in counts)
        separated, text = _parts(message)
        reasoned = separated or split_reasoning(text, self._config.marks)[0]
        if separated and not text and finish == "stop":
            finish = "reasoning"
        score = None if reasoned else _mean(choice.logprobs)
        said = text or str(getattr(message, "refusal", None) or "")
        # JSON may hold halves of characters, which no file can.
        said = said.encode("utf8", "replace").decode("utf8")
        return Answer(said, finish, score, input_tokens, output_tokens)

    def _failure(self, error: Any) -> Exception:  # noqa: ANN401 - an error of openai
        """Convert an HTTP status to an error: temporary or final."""
        status, said = error.status_code, self._said(error)
        if status in (401, 403):
            return InputError(self._refused(error))
        if status == 404:
            return InputError(self._absent(said))
        if status == 429 and error.code == "insufficient_quota":
            return InputError(f"{self.address} has no credit left for this key: {said}; add some, then run this again")
        if status in PASSING or status >= 500:
            reason = f"{self.address} answered with status {status}: {said}"
            return PassingError(reason, _wait(error.response.headers), crowded=status == 429)
        return InputError(f"{self.address} does not take the request for {self._config.name!r} ({status}): {said}")

    def _refused(self, error: Any) -> str:  # noqa: ANN401 - an error of openai
        key = f"the key in {KEY}" if self._key else f"a request without a key; set {KEY}"
        advice = "; set it to a key of this server" if self._key else ""
        return f"{self.address} refused {key} ({error.status_code}: {self._said(error)}){advice}"

    def _absent(self, said: str) -> str:
        name = self._config.name
        try:
            models = sorted(model.id for model in self._client.models.list().data)
        except Exception:
            # Whatever a server without such a list answers, it has none.
            models = []
        if models:
            more = f" and {len(models) - LISTED} more" if len(models) > LISTED else ""
            return f"{self.address} has no model {name!r}; it has {', '.join(models[:LISTED])}{more}"
        return (
            f"{self.address} has no model {name!r}, or no chat completions at that address (404: {said}); correct the "
            "name, or `base_url`, which usually ends in /v1"
        )

    def _said(self, error: BaseException) -> str:
        """Message of an error, on one line and without the key."""
        cause = error.__cause__ if type(error).__name__ == "APIConnectionError" else None
        body = getattr(error, "body", None)
        text = body.get("message") if isinstance(body, dict) else None
        plain = " ".join(str(text or cause or error).split()) or type(cause or error).__name__
        if self._key:
            plain = plain.replace(self._key, "***")
        # Servers repeat a part of what they take for a key.
        plain = re.sub(r"\b(?:sk|hf)[-_][\w*.-]{4,}|\bBearer\s+\S+", "***", plain)
        return plain if len(plain) <= BRIEF else f"{plain[:BRIEF]}..."


def _key() -> str | None:
    key = os.environ.get(KEY, "").strip()
    if key and not re.fullmatch(r"[\x21-\x7e]+", key):
        raise InputError(f"{KEY} holds characters that no key has, such as blanks; set it again")
    return key or None


def _over_context(error: Any) -> bool:  # noqa: ANN401 - an error of openai
    said = f"{error.code or ''} {error.type or ''} {error.message}"
    return error.status_code == 413 or (error.status_code in (400, 422) and bool(CONTEXT.search(said)))


def _parts(message: Any) -> tuple[bool, str]:  # noqa: ANN401 - a message of openai
    """Whether a message holds reasoning apart from its text, and the text.

    Mistral's own server sends a list: chunks of the type `thinking`, and chunks of the type `text`.
    """
    content = message.content or ""
    separated = any(getattr(message, name, None) for name in REASONING_FIELDS)
    if isinstance(content, list):
        separated = separated or any(chunk["type"] == "thinking" for chunk in content)
        content = "".join(chunk["text"] for chunk in content if chunk["type"] == "text")
    if not isinstance(content, str):
        raise ValueError(f"text was expected, {type(content).__name__} came")
    return separated, content


def _mean(logprobs: Any) -> float | None:  # noqa: ANN401 - of openai
    """Mean log-probability of the tokens of an answer; None if the server gave none."""
    tokens = getattr(logprobs, "content", None) or []
    values: list[Any] = [getattr(token, "logprob", None) for token in tokens]
    if not values or not all(isinstance(value, int | float) and math.isfinite(value) for value in values):
        return None
    return min(0.0, math.fsum(values) / len(values))


def _wait(headers: Any) -> float | None:  # noqa: ANN401 - of httpx
    """Seconds that a server asks to wait for: `Retry-After` in seconds or as a date (RFC 9110, section 10.2.3)."""
    text = headers.get("retry-after", "")
    try:
        if milliseconds := headers.get("retry-after-ms"):
            return max(0.0, float(milliseconds) / 1000)
        return max(0.0, float(text)) if math.isfinite(float(text)) else None
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - time.time())
    except (TypeError, ValueError):
        return None
