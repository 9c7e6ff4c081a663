"""Settings of a language model behind a server, and its prompts."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from paranmt_hf.corpus.language_models.reasoning import REASONING_MARKS, Mark, parse_mark
from paranmt_hf.corpus.scoring.language import LANGUAGES as DETECTABLE
from paranmt_hf.errors import InputError
from paranmt_hf.text.languages import LANGUAGES
from paranmt_hf.util.markers import Range, Seed
from paranmt_hf.util.settings import Settings

ModelTask = Literal["translate", "paraphrase"]

PROMPTS: dict[ModelTask, str] = {
    "translate": "Translate this sentence{source_language} into {target_language}. Answer with the translation and "
    "nothing else.\n\n{sentence}",
    "paraphrase": "Say this sentence in {target_language} in other words and with another structure, without changing "
    "what it means. Answer with the new sentence and nothing else.\n\n{sentence}",
}
PREFIX = "openai:"  # Stands before the names of language models in records


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
        temperature: 0 takes the most probable answer; higher values sample more freely; null leaves it to the server.
        seed: Seed of each request, if the server takes one.
        max_answer_tokens: Maximum length of an answer in tokens of the model, its reasoning included.
        reasoning_marks: More marks around reasoning, such as `<cot> ... </cot>`; those of most models are known.
        concurrency: Number of requests at the same time.
        max_retries: How often a failed request is repeated, with longer and longer waits.
        timeout: Seconds after which a request has failed.
    """

    name: str
    base_url: str | None = None
    prompt: str | None = None
    source_language: str | None = None
    target_language: str | None = None
    temperature: Annotated[float | None, Range(at_least=0, at_most=2)] = 0.0
    seed: Seed = 0
    max_answer_tokens: Annotated[int, Range(at_least=1, at_most=1_000_000)] = 1024
    reasoning_marks: Sequence[str] = ()
    concurrency: Annotated[int, Range(at_least=1, at_most=1000)] = 8
    max_retries: Annotated[int, Range(at_least=0, at_most=100)] = 12
    timeout: Annotated[float, Range(above=0, at_most=86_400)] = 120.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.base_url is not None:
            _check_address(self.base_url)
        self.template("translate")
        _ = self.marks

    @property
    def marks(self) -> list[Mark]:
        """The marks around reasoning: those of the settings, then the known ones."""
        return [*map(parse_mark, self.reasoning_marks), *REASONING_MARKS]

    @property
    def language(self) -> str:
        """Two-letter code of the language of the answers."""
        return self.target_language or "en"

    @property
    def address(self) -> str:
        """Address of the server; `/v1` is added if it has no path."""
        address = self.base_url or os.environ.get("OPENAI_BASE_URL") or "https://api.openai.com/v1"
        _check_address(address)
        address = address.rstrip("/")
        return address if urlsplit(address).path else f"{address}/v1"

    def answering_in(self, language: str) -> LanguageModelConfig:
        """Return these settings with answers in the language of a corpus (ISO 639-1).

        Raises:
            InputError: If they name another language.
        """
        if self.target_language not in (None, language):
            raise InputError(
                f"target_language {self.target_language} is not the `language` of the corpus, {language}; leave it out"
            )
        return replace(self, target_language=language)

    def template(self, task: ModelTask) -> str:
        """Return the prompt of a task, in which only `{sentence}` is not filled in.

        Raises:
            InputError: If the prompt of the settings lacks `{sentence}` or has an unknown name in braces.
        """
        source = _language_name(self.source_language) if self.source_language else ""
        if self.prompt is None:
            prompt = PROMPTS[task]
            source = f" from {source}" if source else ""
        else:
            prompt = self.prompt
            names = re.findall(r"\{([a-z_]+)\}", prompt)
            if names.count("sentence") != 1 or not set(names) <= {"sentence", "source_language", "target_language"}:
                raise InputError(
                    "prompt must hold {sentence} once, and may hold {source_language} and {target_language}, but no "
                    f"other name in braces; was {prompt!r}",
                    option="prompt",
                )
            if "source_language" in names and not source:
                raise InputError("prompt holds {source_language}, so `source_language` must be given", option="prompt")
        prompt = prompt.replace("{source_language}", source)
        return prompt.replace("{target_language}", _language_name(self.language))

    def request_identity(self, task: ModelTask) -> dict[str, Any]:
        """Return everything that determines an answer, as JSON values; the address of the server is not part of it."""
        return {
            "model": f"{PREFIX}{self.name}",
            "prompt": self.template(task),
            "temperature": self.temperature,
            "seed": self.seed,
            "max_answer_tokens": self.max_answer_tokens,
        }


def _language_name(code: str) -> str:
    """Return the English name of a language (ISO 639-1).

    Raises:
        InputError: If answers in it could not be recognised.
    """
    if code not in DETECTABLE:
        raise InputError(f"languages of a language model are two-letter codes ({', '.join(DETECTABLE)}), was {code!r}")
    return LANGUAGES[code]


def _check_address(address: str) -> None:
    """Reject an address that is malformed or has a user, a password or parameters."""
    try:
        parts = urlsplit(address)
        known = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        known = False
    if not known:
        raise InputError(
            f"base_url must be an address such as http://localhost:8000/v1, not {address!r}", option="base_url"
        )
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise InputError(
            "base_url must be an address alone, without user, password or anything behind `?`, because it is "
            "written into files; a key goes into the environment, OPENAI_API_KEY",
            option="base_url",
        )
