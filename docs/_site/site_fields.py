"""An extension of griffe: settings with meaning, type and default of each field; signatures without metadata."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import MISSING, fields
from importlib import import_module
from typing import Any

import griffe
from site_words import type_of

from paranmt_hf.cli.command import explained_parameters
from paranmt_hf.util.settings import Settings
from paranmt_hf.util.typed import default_of, expected_fields


class SettingsFields(griffe.Extension):
    """Replaces "Attributes:" of settings by what the command line derives its options from."""

    def on_package(self, *, pkg: griffe.Module, **kwargs: Any) -> None:
        """Change all classes and functions when the whole package is known."""
        for member in _members(pkg):
            if isinstance(member, griffe.Function):
                for parameter in member.parameters:
                    parameter.annotation = without_metadata(parameter.annotation)
            elif any(base.path == "paranmt_hf.util.settings.Settings" for base in member.mro()):
                _document_fields(member)


def _members(owner: griffe.Module | griffe.Class) -> Iterator[griffe.Class | griffe.Function]:
    for member in owner.members.values():
        if isinstance(member, griffe.Class | griffe.Function):
            yield member
        if isinstance(member, griffe.Module | griffe.Class):
            yield from _members(member)


def without_metadata(annotation: Any) -> Any:  # noqa: ANN401 - any expression of griffe
    """An annotation without `Annotated`."""
    if isinstance(annotation, griffe.ExprSubscript) and annotation.canonical_path == "typing.Annotated":
        return annotation.slice.elements[0]
    return annotation


def _document_fields(settings: griffe.Class) -> None:
    kind = getattr(import_module(settings.module.path), settings.name)
    if settings.docstring is None or not issubclass(kind, Settings):
        return
    explained = explained_parameters(kind)
    rows = [
        griffe.DocstringParameter(
            entry.name,
            description=explained.get(entry.name, ""),
            annotation=_type(kind, entry.name),
            value="required" if (default := default_of(entry)) is MISSING else repr(default),
        )
        for entry in fields(kind)
    ]
    kept = [
        part for part in settings.docstring.parse("google") if part.kind is not griffe.DocstringSectionKind.attributes
    ]
    # The signature that griffe makes of the fields says less than their table.
    settings.members.pop("__init__", None)
    settings.docstring.parsed = [*kept, griffe.DocstringSectionParameters(rows, "Fields:")]


def _type(kind: type, name: str) -> str:
    expected = expected_fields(kind)[name]
    return f"{type_of(expected)}{' or None' if expected.optional else ''}"
