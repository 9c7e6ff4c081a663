"""What a command does if its options come from a file, and which of it needs the consent of the user.

The file may be from somebody else. If it has a command write outside of its folder, send text somewhere, or start a
server, the person who runs it must consent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass
from pathlib import Path
from typing import Any, Literal

from paranmt_hf.cli.command import Command
from paranmt_hf.corpus.language_models.config import LanguageModelConfig
from paranmt_hf.util.files import resolved, shown_path
from paranmt_hf.util.functions import is_function
from paranmt_hf.util.markers import AlsoWrites, Writes
from paranmt_hf.util.yaml_files import settings_of

Permission = Literal["publish", "outside", "addresses", "servers", "code"]
TYPED_ONLY = ("host", "allow")  # Options that no file of options may set
SERVERS = ("annotate serve", "explore page", "serve")  # Commands that start a server


@dataclass(frozen=True)
class Act:
    """Something that a command does besides reading and computing."""

    description: str  # The act in words, such as `writes corpus`
    option: str  # Name of the option that causes the act; `command` if the command itself does
    needs: Permission | None = None  # The permission that the act needs; None if it is harmless
    path: Path | None = None  # The path that is written; None if the act is another one


def written_options(command: Command) -> list[str]:
    """Return the names of the options and arguments that are paths which a command writes; its result is first.

    If `out` may be left out, it comes after `json`, because then it does not name the result.
    """
    known = {option.name: option for option in command.options}
    names: list[str] = [name for name in ("out", "json") if name in known or (name == "json" and command.writes_json)]
    names.sort(key=lambda name: name in known and known[name].default is not MISSING)
    names += [name for name, option in known.items() if name != "out" and Writes in option.expected.markers]
    return names


def other_places(command: Command, values: Mapping[str, Any]) -> list[tuple[str, Path]]:
    """Return what a command writes besides its results: names of options, and their paths."""
    changed = [option.name for option in command.options if AlsoWrites in option.expected.markers]
    # These commands write into the folder that is their first argument.
    if command.name in ("annotate import", "annotate serve"):
        changed.append(command.options[0].name)
    return [(name, Path(values[name]).expanduser()) for name in changed if values.get(name) is not None]


def acts_of(
    command: Command, values: Mapping[str, Any], written: Sequence[tuple[str, Path]], folders: Sequence[Path]
) -> list[Act]:
    """List what a command does besides reading and computing, given the values of its options.

    Args:
        command: The command.
        values: Values by the names of options.
        written: Name of the option and path of each result.
        folders: Folders inside which writing needs no permission.
    """
    acts = []
    for option, path in [*written, *other_places(command, values)]:
        target = resolved(path)
        inside = any(target.is_relative_to(folder) for folder in folders)
        # A path outside is shown with links resolved, so that the user sees where it is.
        shown = shown_path(path) if inside else target
        acts.append(Act(f"writes {shown}", option, None if inside else "outside", path))
    if values.get("language_model") is not None:
        model = settings_of(LanguageModelConfig, values["language_model"], "a language model")
        # The default address, or the one that the environment names, is trusted.
        is_usual = model.address == LanguageModelConfig(name=model.name).address
        sends = f"sends text, and the key of OPENAI_API_KEY, to {model.address}"
        acts.append(Act(sends, "language_model", None if is_usual else "addresses"))
    teachers = values.get("teacher") or ()
    for name in map(str, [teachers] if isinstance(teachers, str) else teachers):
        if is_function(name):
            acts.append(Act(f"runs the Python code of {name}", "teacher", "code"))
    service = values.get("report_to")
    if service is not None:
        acts.append(
            Act(f"reports to {service}", "report_to", None if service in ("none", "tensorboard") else "addresses")
        )
    return acts
