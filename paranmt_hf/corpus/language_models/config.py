"""Settings of a language model behind a server, and its prompts."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from paranmt_hf.corpus.language_models.reasoning import REASONING_MARKS, Mark, parse_mark
from paranmt_hf.corpus.scoring.language import LANGUAGES as DETECTABLE
from paranmt_hf.errors import InputError
from paranmt_hf.hub.languages import LANGUAGES
from paranmt_hf.util.markers import Count, Range, Seed
from paranmt_hf.util.optional import check_installed
from paranmt_hf.util.settings import Settings

ModelTask = Literal["translate", "paraphrase"]

PROMPTS: dict[ModelTask, str] = {
    "translate": "Translate this sentence{source_language} into {target_language}. Answer with the translation and "
    "nothing else.\n\n{sentence}",
    "paraphrase": "Say this sentence in {target_language} in other words and with another structure, without changing "
    "what it means. Answer with the new sentence and nothing else.\n\n{sentence}",
}
PLACES = ("sentence", "source_language", "target_language")


def language_name(code: str) -> str:
    """English name of a language by its ISO 639-1 code; answers in it must be detectable."""
    if code not in DETECTABLE:
        raise InputError(f"languages of a language model are two-letter codes ({', '.join(DETECTABLE)}), was {code!r}")
    return LANGUAGES[code]


PREFIX = "openai:"  # Prefix of the names of language models in records
KEY = "OPENAI_API_KEY"
ADDRESS = "OPENAI_BASE_URL"
HOSTED = "https://api.openai.com/v1"


@dataclass(frozen=True)
class LanguageModelConfig(Settings):
    """Which language model answers, with which prompt, and how fast.

    The key of the server is not a setting: it is read from the environment, `OPENAI_API_KEY`, and written nowhere.

    Attributes:
        name: Name of the model on the server.
        base_url: Address of an OpenAI-compatible server, such as http://localhost:8000/v1 (default: OPENAI_BASE_URL,
            else https://api.openai.com/v1).
        prompt: The request, with {sentence} in the place of the sentence (default: see docs/language-models.md).
        source_language: Two-letter code of the language of the sentences, for the prompt.
        target_language: Two-letter code of the language of the answers (default: en).
        request_temperature: 0 takes the most probable answer; higher values sample more freely; null leaves it to the
            server.
        request_seed: Seed of a request, if the server takes one.
        max_answer_tokens: Maximum length of an answer in tokens of the model, its reasoning included.
        reasoning_marks: More marks around reasoning, such as `<cot> ... </cot>`; those of most models are known.
        max_length_ratio: Maximum ratio of the lengths of an answer and its sentence in characters, 20 more allowed.
        concurrency: Number of requests at the same time.
        retries: Number of tries after a failed one, with longer and longer waits.
        timeout: Seconds after which a request has failed.
        requests_per_minute: Maximum number of requests in any minute.
        tokens_per_minute: Maximum number of tokens in any minute, of requests and answers.
        price_input: Price of a million tokens of requests, for the estimate.
        price_output: Price of a million tokens of answers, for the estimate.
    """

    name: str
    base_url: str | None = None
    prompt: str | None = None
    source_language: str | None = None
    target_language: str | None = None
    request_temperature: Annotated[float | None, Range(at_least=0, at_most=2)] = 0.0
    request_seed: Seed = 0
    max_answer_tokens: Annotated[int, Range(at_least=1, at_most=1_000_000)] = 1024
    reasoning_marks: tuple[str, ...] | None = None
    max_length_ratio: Annotated[float, Range(at_least=1, at_most=1000)] = 3.0
    concurrency: Annotated[int, Range(at_least=1, at_most=1000)] = 8
    retries: Annotated[int, Range(at_least=0, at_most=100)] = 6
    timeout: Annotated[float, Range(above=0, at_most=86_400)] = 120.0
    requests_per_minute: Count | None = None
    tokens_per_minute: Count | None = None
    price_input: Annotated[float | None, Range(at_least=0)] = None
    price_output: Annotated[float | None, Range(at_least=0)] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.name.strip() or self.name.startswith(PREFIX):
            raise InputError(f"a language model needs the name that the server has for it; got {self.name!r}")
        if self.base_url is not None:
            _checked_address(self.base_url)
        for code in (self.source_language, self.target_language):
            if code is not None:
                language_name(code)
        self.template("translate")
        _ = self.marks

    @property
    def marks(self) -> list[Mark]:
        """The marks around reasoning, those of the settings first."""
        return [*map(parse_mark, self.reasoning_marks or ()), *REASONING_MARKS]

    @property
    def language(self) -> str:
        """Code of the language of the answers."""
        return self.target_language or "en"

    @property
    def address(self) -> str:
        """Address of the server, with `/v1` if it has no path."""
        return _checked_address(self.base_url or os.environ.get(ADDRESS) or HOSTED)

    def answering_in(self, language: str) -> LanguageModelConfig:
        """The same settings for answers in the language of a corpus, by its code."""
        if self.target_language not in (None, language):
            raise InputError(
                f"target_language {self.target_language} is not the `language` of the corpus, {language}; leave it out"
            )
        return replace(self, target_language=language)

    def check_installed(self) -> None:
        """Raise an error if a package is missing."""
        for package in ("openai", "py3langid"):
            check_installed(package, "llm")

    def template(self, task: ModelTask) -> str:
        """The prompt of a task, filled in except for `{sentence}`."""
        prompt, named = self.prompt, language_name(self.source_language) if self.source_language else ""
        if prompt is None:
            # The default prompts may leave the language out.
            prompt, named = PROMPTS[task], f" from {named}" if named else ""
        else:
            names = re.findall(r"\{([a-z_]+)\}", prompt)
            if names.count("sentence") != 1 or set(names) - set(PLACES):
                raise InputError(
                    f"prompt must hold {{sentence}} once, and may hold {{source_language}} and {{target_language}}; "
                    f"it holds {', '.join(f'{{{name}}}' for name in names) or 'none of them'}",
                    option="prompt",
                )
            if "source_language" in names and not named:
                raise InputError("prompt holds {source_language}, so `source_language` must be given", option="prompt")
        return prompt.replace("{source_language}", named).replace("{target_language}", language_name(self.language))

    def request_identity(self, task: ModelTask) -> dict[str, Any]:
        """Everything that determines an answer, as JSON values; the server's address is not part of it."""
        return {
            "model": f"{PREFIX}{self.name}",
            "prompt": self.template(task),
            "temperature": self.request_temperature,
            "seed": self.request_seed,
            "max_answer_tokens": self.max_answer_tokens,
        }


def _checked_address(address: str) -> str:
    try:
        parts = urlsplit(address)
        known = parts.scheme in ("http", "https") and parts.hostname and (parts.port is None or parts.port > 0)
    except ValueError:
        known = False
    if not known:
        raise InputError(f"base_url must be an address such as http://localhost:8000/v1, not {address!r}")
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise InputError(
            f"base_url must be an address alone, without user, password or anything behind `?`, because it is "
            f"written into files; a key goes into the environment, {KEY}"
        )
    return address.rstrip("/") + ("" if parts.path.strip("/") else "/v1")
