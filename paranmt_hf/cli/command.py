"""Commands: their options, derived from the signature, docstring and settings of a function, and the call of it."""

from __future__ import annotations

import builtins
import inspect
import os
import re
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass, replace
from functools import cached_property
from importlib import import_module
from operator import attrgetter
from pathlib import Path
from typing import Any

from paranmt_hf.errors import InputError
from paranmt_hf.util.imports import uncollected
from paranmt_hf.util.markers import Advanced, Group, Prefixed, PythonOnly, RunOnly, Without
from paranmt_hf.util.run import Result
from paranmt_hf.util.typed import Annotation, Expected, Json, default_of, expected_fields, expected_of, is_known, read
from paranmt_hf.util.wording import perhaps


@dataclass(frozen=True)
class Option:
    """An option or positional argument of a command."""

    name: str  # Name in Python, unique in the command: `batch_size` is typed as `--batch-size`
    field: str  # Name of the field of settings that it sets, or of the parameter
    parameter: str  # Name of the function's parameter that it sets, or whose settings it is a field of
    expected: Expected  # What values it accepts
    default: Any  # Default value; `MISSING` if the option is required
    help: str  # Help text
    positional: bool = False  # Whether it is a positional argument, typed without its name
    group: Group | None = None  # The option in which it is given together with other settings; None if it has its own

    @property
    def flag(self) -> str:
        """The option as messages show it: `--batch-size`, `FILE` if positional, `--decoding beams` in a group."""
        if self.group is not None:
            return f"{flag_of(self.group.name)} {self.field}"
        return self.name.upper() if self.positional else flag_of(self.name)

    @property
    def advanced(self) -> bool:
        """Whether only `--help-all` shows the option."""
        return Advanced in self.expected.markers

    def read(self, value: Json, where: str = "") -> Any:  # noqa: ANN401 - of its type
        """Convert a value to the type of the option; `where` is the file it is from, empty for the command line."""
        try:
            return read(self.expected.annotation, value, self.name, text=True)
        except InputError as error:
            raise InputError(f"{where}: {error}" if where else str(error), option=self.name) from None


def flag_of(name: str) -> str:
    """Return an option as it is typed: `--batch-size` for `batch_size`."""
    return f"--{name.replace('_', '-')}"


@dataclass(frozen=True)
class Command:
    """A command of `paranmt`, and the function behind it."""

    name: str  # What is typed after `paranmt`: `train`, `lexicon build`
    target: str  # Module and function: `paranmt_hf.training.train:train`
    summary: str  # What the command does, in one line, for the list of commands
    example: str  # A complete command line that uses it

    @cached_property
    def function(self) -> Callable[..., Any]:
        """The function or class method behind the command, whose module is imported by this."""
        module, name = self.target.split(":")
        with uncollected():
            function: Callable[..., Any] = attrgetter(name)(import_module(module))
        return function

    @cached_property
    def parameters(self) -> dict[str, Expected]:
        """What each parameter of the function accepts, by its name; those that only Python can give are left out."""
        found = {}
        for name, parameter in inspect.signature(self.function).parameters.items():
            expected = expected_of(_evaluated(parameter.annotation, self.function))
            if PythonOnly in expected.markers:
                continue
            if is_known(expected.kind):
                found[name] = expected
            elif parameter.default is parameter.empty or _Unknown in getattr(expected.kind, "__bases__", ()):
                raise TypeError(f"{name} of {self.target} has a type that is unknown or has no text form")
        return found

    @cached_property
    def settings(self) -> dict[str, Any]:
        """The settings class of each parameter that has one, by the name of the parameter."""
        return {name: expected.kind for name, expected in self.parameters.items() if is_dataclass(expected.kind)}

    @cached_property
    def options(self) -> list[Option]:
        """All options of the command, with positional arguments first."""
        found: list[Option] = []
        for name, expected in self.parameters.items():
            if name in self.settings:
                found += _options_of_settings(name, expected)
                continue
            parameter = inspect.signature(self.function).parameters[name]
            default = MISSING if parameter.default is parameter.empty else parameter.default
            if default is MISSING and expected.optional:
                default = None
            positional = name != "out" and default in (MISSING, ()) and parameter.kind is not parameter.KEYWORD_ONLY
            text = explained_parameters(self.function).get(name, "")
            found.append(Option(name, name, name, expected, default, text, positional))
        names = [option.name for option in found]
        names += {option.group.name for option in found if option.group}
        if twice := {name for name in names if names.count(name) > 1}:
            clash = ", ".join(sorted(twice))
            raise TypeError(f"{self.target} has two options {clash}; rename one, or mark a parameter as Prefixed")
        return sorted(found, key=lambda option: not option.positional)

    @cached_property
    def groups(self) -> dict[str, list[Option]]:
        """The settings of each group, by the name of its option."""
        found: dict[str, list[Option]] = {}
        for option in self.options:
            if option.group is not None:
                found.setdefault(option.group.name, []).append(option)
        return found

    def typed(self, *, advanced: bool = True) -> list[str]:
        """Return the names of everything that can be typed: of groups, and of options outside of groups.

        Without `advanced`, only those that `--help` shows.
        """
        names: dict[str, None] = {}
        for option in self.options:
            if advanced or not option.advanced:
                names[option.group.name if option.group else option.name] = None
        return list(names)

    @cached_property
    def writes_json(self) -> bool:
        """Whether the command has the option `--json`: its result has a method `to_json`."""
        return hasattr(self._returned, "to_json")

    @cached_property
    def finds_result(self) -> bool:
        """Whether the command finds a finished result instead of making it again: it returns a `Result`."""
        kinds = typing.get_args(self._returned) or [self._returned]
        if self._returned is typing.Self:
            kinds = [getattr(import_module(self.function.__module__), self.function.__qualname__.split(".")[0])]
        return any(isinstance(kind, type) and issubclass(kind, Result) for kind in kinds)

    @property
    def changes_folder(self) -> bool:
        """Whether the command changes the folder that it reads, its first argument, instead of writing a new one."""
        return self.finds_result and all(option.name != "out" for option in self.options)

    @property
    def _returned(self) -> Annotation:
        """The return type of the function."""
        return _evaluated(inspect.signature(self.function).return_annotation, self.function)

    @cached_property
    def flags(self) -> dict[str, str]:
        """How each parameter, field of settings and group is typed, by its name: `batch_size` as `--batch-size`."""
        names = {option.field: option.flag for option in self.options}
        names |= {option.name: option.flag for option in self.options}
        return names | {group: flag_of(group) for group in self.groups}

    def help_of(self, option: Option) -> str:
        """Return the help of an option, in which the names of parameters in backquotes are shown as they are typed.

        A name is first looked up among the settings that the option belongs to, then among all options.
        """
        neighbours = {each.field: each.flag for each in self.options if each.parameter == option.parameter}
        return with_flags(option.help, self.flags | neighbours)

    def values_of(self, given: Mapping[Any, Any], where: str) -> dict[str, Any]:
        """Convert values from a file to the types of their options, as the command line does.

        Args:
            given: Values by the names of options, written with `-` or `_`. A value of None counts as not given.
            where: Name of the file, for errors.
        """
        known = {option.name: option for option in self.options}
        found: dict[str, Any] = {}
        for key, value in given.items():
            name = str(key).replace("-", "_")
            if name in self.groups and isinstance(value, Mapping):
                found |= self.values_of_group(name, value, where)
            elif name not in known:
                near = perhaps(name, {each: each.replace("_", "-") for each in known})
                raise InputError(f"{where}: `paranmt {self.name}` has no option {key!r}{near or '; see --help-all'}")
            elif value is not None:
                found[name] = known[name].read(value, where)
        return found

    def values_of_group(self, group: str, given: Mapping[Any, Any], where: str) -> dict[str, Any]:
        """Convert the settings of a group as `values_of` does; names that are not in the group are rejected.

        Args:
            group: Name of the group.
            given: Values by the names of the fields in the group.
            where: Name of the file or option they are from, for errors.
        """
        known = {option.field: option for option in self.groups[group]}
        found = {}
        for key, value in given.items():
            name = str(key).replace("-", "_")
            if name not in known:
                raise InputError(
                    f"{where}: {name!r} is not one of {', '.join(known)}{perhaps(name, list(known))}", option=group
                )
            if value is not None:
                found[known[name].name] = known[name].read(value, where)
        return found

    def call(self, values: Mapping[str, Any]) -> Any:  # noqa: ANN401 - the result of the function
        """Call the function of the command with values by the names of options, and return its result."""
        return self.function(**self.arguments(values))

    def arguments(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments of the function, from values by the names of options; settings classes are created."""
        return {
            name: self._settings_from(name, values) if name in self.settings else values[name]
            for name in self.parameters
        }

    def _settings_from(self, parameter: str, values: Mapping[str, Any]) -> Any:  # noqa: ANN401 - settings
        """Create the settings of a parameter; None if no value is given and a required one is missing.

        If a required value is missing and others are given, that is an error.
        """
        kind = self.settings[parameter]
        options = [option for option in self.options if option.parameter == parameter]
        required = {field.name for field in fields(kind) if default_of(field) is MISSING}
        missing = [option.flag for option in options if option.field in required and values[option.name] is None]
        changed = [option.flag for option in options if values[option.name] != option.default]
        if missing and changed:
            raise InputError(f"{changed[0]} needs {missing[0]}; give it too, or leave out {changed[0]}")
        if missing:
            return None
        try:
            return kind(**{option.field: values[option.name] for option in options})
        except InputError as error:
            raise reworded(error, {option.field: option.flag for option in options}) from None

    @cached_property
    def recorded(self) -> list[Option]:
        """The options that determine the result: all but `out` and those that only change how the command runs."""
        return [option for option in self.options if option.name != "out" and RunOnly not in option.expected.markers]

    def kept_values(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the options that determine the result and their values, in the form of a `--config` file.

        Options without a value are left out.
        """
        found = {}
        for option in self.recorded:
            value = values[option.name]
            if value is None and option.default not in (None, MISSING):
                # The word `none` is what is typed for None; if the option were left out, its default would count.
                value = "none"
            if value not in (None, ()):
                found[option.name.replace("_", "-")] = as_written(value)
        return found


def _options_of_settings(parameter: str, settings: Expected) -> Iterator[Option]:
    """Yield an option for each field of the settings class of a parameter, except those that are marked otherwise."""
    explained = explained_parameters(settings.kind)
    together = _group_of(settings.markers)
    left_out = [name for marker in settings.markers if isinstance(marker, Without) for name in marker.fields]
    if together is not None:
        together = Group(parameter, documentation_of(settings.kind).short_description or "")
    for index, field in enumerate(fields(settings.kind)):
        expected = expected_fields(settings.kind)[field.name]
        if PythonOnly in expected.markers or field.name in left_out:
            continue
        if Advanced in settings.markers:
            expected = replace(expected, markers=(*expected.markers, Advanced))
        name = field.name
        if Prefixed in settings.markers:
            # The first field is named after the parameter, unless a group has that name already.
            named_alone = index == 0 and together is None
            name = parameter if named_alone else f"{parameter}_{name}"
        default = default_of(field)
        if default is MISSING and settings.optional:
            default = None
        text = explained.get(field.name, "")
        group = together or _group_of(expected.markers)
        yield Option(name, field.name, parameter, expected, default, text, group=group)


def _group_of(markers: Sequence[Any]) -> Group | None:
    """Return the group among some markers; None if there is none."""
    return next((marker for marker in markers if isinstance(marker, Group)), None)


def reworded(error: InputError, flags: Mapping[str, str]) -> InputError:
    """Return an error whose text shows parameters as they are typed.

    These are the names in backquotes and, at the start of the text, the parameter that the error is about.

    Args:
        error: The error.
        flags: How each parameter is typed, by its name.
    """
    text = with_flags(str(error), flags)
    if error.option is not None and error.option in flags:
        # The expression does not match the start of a file name such as `seed.yaml`.
        text = re.sub(rf"^{error.option}(?![\w.-])", flags[error.option], text)
    again = type(error)(text, option=error.option, path=error.path)
    again.__cause__ = error.__cause__
    return again


def with_flags(text: str, flags: Mapping[str, str]) -> str:
    """Replace the names of parameters in backquotes by how they are typed (`flags`); leave other names as they are."""
    return re.sub(r"`(\w+)`", lambda found: flags.get(found[1], found[0]), text)


class _Names(dict[str, Any]):
    """The names of a module for evaluating annotations; a name imported only for type checking gives a placeholder."""

    def __missing__(self, name: str) -> type:
        if hasattr(builtins, name):
            raise KeyError(name)
        return type(name, (_Unknown,), {})


class _Unknown:
    """Base of the placeholder classes for names that are imported only for type checking."""


def _evaluated(annotation: Annotation, function: Callable[..., Any]) -> Annotation:
    """Evaluate an annotation of a function, which may be text, with the names of the function's module."""
    names = _Names(vars(import_module(function.__module__)))
    return eval(annotation, {}, names) if isinstance(annotation, str) else annotation  # noqa: S307


def documentation_of(documented: Any) -> Any:  # noqa: ANN401
    """Parse the Google-style docstring of a function or class."""
    from docstring_parser import DocstringStyle, parse

    return parse(inspect.getdoc(documented) or "", style=DocstringStyle.GOOGLE)


def explained_parameters(documented: Any) -> dict[str, str]:  # noqa: ANN401
    """Return the description of each parameter or field in a docstring, on one line, by its name.

    For a class, the docstrings of its base classes count too.
    """
    kinds = reversed(documented.__mro__[:-1]) if isinstance(documented, type) else [documented]
    found: dict[str, str] = {}
    for kind in kinds:
        if kind.__doc__:
            found |= {one.arg_name: " ".join((one.description or "").split()) for one in documentation_of(kind).params}
    return found


def as_written(value: Json) -> Json:
    """Convert a value to what a person would write into a YAML file: paths as text, a mapping as `NAME=VALUE,...`."""
    if isinstance(value, list | tuple):
        return [as_written(part) for part in value]
    if isinstance(value, dict):
        return ",".join(f"{name}={part}" for name, part in value.items())
    return os.fspath(value) if isinstance(value, Path) else value


def as_typed(value: Json) -> str:
    """Format a value as it is typed on a command line: `true`, `none`, or the values of a sequence with blanks."""
    if isinstance(value, list | tuple):
        return " ".join(map(as_typed, value)) or "none"
    return str(value).lower() if isinstance(value, bool | None) else str(as_written(value))
