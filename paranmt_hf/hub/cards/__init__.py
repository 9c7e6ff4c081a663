"""Rendering of cards from Jinja templates and values of records; values are escaped unless a filter changes that."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

import yaml

from paranmt_hf.text.languages import LANGUAGES
from paranmt_hf.util.tables import code, escape, percent, quoted
from paranmt_hf.util.wording import counted

if TYPE_CHECKING:
    from jinja2 import Environment


class _Plain(yaml.SafeDumper):
    """A writer of YAML that repeats equal values instead of writing references, so that people can read it."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ANN401
        return True


def render(template: str, header: Mapping[str, Any], values: Mapping[str, Any]) -> str:
    """Render a card: a YAML header and Markdown.

    Args:
        template: Name of a template in this folder, without `.md`.
        header: Entries of the YAML header.
        values: Values for the template; one that it uses and that is missing is an error.
    """
    head = yaml.dump(dict(header), Dumper=_Plain, sort_keys=False, allow_unicode=True, width=1000)
    return f"---\n{head}---\n\n{_environment().get_template(f'{template}.md').render(values)}"


@cache
def _environment() -> Environment:
    """Create the environment of Jinja, with escaping for Markdown and the filters of the templates."""
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    def escaped(value: object) -> object:
        return value if hasattr(value, "__html__") else Markup(escape(value))

    environment = Environment(
        loader=PackageLoader("paranmt_hf.hub", "cards"),
        # Jinja's own escaping is for HTML. It changes nothing, because `finalize` marks every value as escaped.
        autoescape=True,
        finalize=escaped,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {
        "code": lambda value: Markup(code(value)),
        "python": lambda value: Markup(quoted(value)),
        "markdown": lambda value: Markup(str(value).strip()),
        "thousands": lambda value: f"{value:,}",
        "counted": counted,
        "rounded": lambda value, digits: "none" if value is None else f"{value:.{digits}f}",
        "percent": percent,
        "plain": _plain,
        "settings": lambda value: Markup(_settings(value)),
        "digest": _digest,
        "language": lambda code: LANGUAGES.get(code, "English"),
        "fenced": lambda value: Markup(str(value).replace("```", "'''")),
    }
    return environment


def _plain(value: Any) -> str:  # noqa: ANN401
    """Format a value as text, and the values of nested lists with blanks between them."""
    return " ".join(map(_plain, value)) if isinstance(value, list | tuple) else str(value)


def _settings(value: Any) -> str:  # noqa: ANN401
    """Format a setting, which may be nested, on one line of Markdown with each value as inline code."""
    if isinstance(value, Mapping):
        return "(" + ", ".join(f"{escape(name)} {_settings(entry)}" for name, entry in value.items()) + ")"
    if isinstance(value, list | tuple):
        return ", ".join(map(_settings, value))
    return code(value)


def _digest(value: object) -> str:
    """Return 16 hexadecimal digits of the SHA-256 of a JSON value."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]
