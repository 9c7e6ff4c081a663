"""What a language model is asked, and the names of languages in English."""

from __future__ import annotations

import re
from typing import Literal

from paranmt_hf.errors import InputError

Task = Literal["translate", "paraphrase"]

LANGUAGE_NAMES = {
    "ar": "Arabic", "bg": "Bulgarian", "bn": "Bengali", "ca": "Catalan", "cs": "Czech", "da": "Danish",
    "de": "German", "el": "Greek", "en": "English", "es": "Spanish", "et": "Estonian", "eu": "Basque",
    "fa": "Persian", "fi": "Finnish", "fr": "French", "ga": "Irish", "he": "Hebrew", "hi": "Hindi",
    "hr": "Croatian", "hu": "Hungarian", "id": "Indonesian", "is": "Icelandic", "it": "Italian", "ja": "Japanese",
    "ko": "Korean", "lt": "Lithuanian", "lv": "Latvian", "mk": "Macedonian", "ms": "Malay", "nl": "Dutch",
    "no": "Norwegian", "pl": "Polish", "pt": "Portuguese", "ro": "Romanian", "ru": "Russian", "sk": "Slovak",
    "sl": "Slovenian", "sq": "Albanian", "sr": "Serbian", "sv": "Swedish", "ta": "Tamil", "th": "Thai",
    "tr": "Turkish", "uk": "Ukrainian", "ur": "Urdu", "vi": "Vietnamese", "zh": "Chinese",
}  # fmt: skip
PROMPTS: dict[Task, str] = {
    "translate": "Translate this sentence{source_language} into {target_language}. Answer with the translation and "
    "nothing else.\n\n{sentence}",
    "paraphrase": "Say this sentence in {target_language} in other words and with another structure, without changing "
    "what it means. Answer with the new sentence and nothing else.\n\n{sentence}",
}
PLACES = ("sentence", "source_language", "target_language")


def language_name(code: str) -> str:
    """Give the English name of a language.

    Args:
        code: ISO 639-1 code.

    Raises:
        InputError: It is none that can be told from others.
    """
    if code not in LANGUAGE_NAMES:
        raise InputError(
            f"a language model takes languages by their two-letter codes ({', '.join(LANGUAGE_NAMES)}), not {code!r}"
        )
    return LANGUAGE_NAMES[code]


def make_template(prompt: str | None, task: Task, source: str | None, target: str) -> str:
    """Fill everything into a prompt but the sentence.

    Args:
        prompt: Text with `{sentence}`, and `{source_language}` and `{target_language}` where it wants them; None takes
            that of the task.
        task: What the model does.
        source: Code of the language of the sentences; None where it is not said.
        target: Code of the language of the answers.

    Raises:
        InputError: The prompt has no place for the sentence, or a place for something else, or a source language is
            said and has no place.
    """
    named = language_name(source) if source else ""
    if prompt is None and "{source_language}" in PROMPTS[task]:
        return _filled(PROMPTS[task], f" from {named}" if named else "", language_name(target))
    prompt = PROMPTS[task] if prompt is None else prompt
    names = re.findall(r"\{([a-z_]+)\}", prompt)
    if names.count("sentence") != 1 or set(names) - set(PLACES):
        raise InputError(
            f"--prompt must hold {{sentence}} once, and may hold {{source_language}} and {{target_language}}; it "
            f"holds {', '.join(f'{{{name}}}' for name in names) or 'none of them'}"
        )
    if "source_language" in names and not named:
        raise InputError("--prompt holds {source_language}, so --source-language must say which one it is")
    if named and "source_language" not in names:
        raise InputError(
            f"--source-language {source} would change nothing: the prompt has no place for it; leave it out, or give "
            "a --prompt with {source_language} in it"
        )
    return _filled(prompt, named, language_name(target))


def _filled(prompt: str, source: str, target: str) -> str:
    return prompt.replace("{source_language}", source).replace("{target_language}", target)


def fill(template: str, sentence: str) -> str:
    """Put a sentence into a template; braces in it are text."""
    return template.replace("{sentence}", sentence)
