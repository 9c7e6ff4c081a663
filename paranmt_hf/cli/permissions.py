"""What a file of options or steps has a command do on this computer and elsewhere.

The file may be somebody else's: what it writes outside its folder, where it sends text, and which servers it starts
need the consent of the person who runs it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass
from pathlib import Path
from typing import Any, Literal

from paranmt_hf.cli.command import Command
from paranmt_hf.corpus.language_models.config import LanguageModelConfig
from paranmt_hf.util.files import resolved, shown_path
from paranmt_hf.util.markers import AlsoWrites, Writes
from paranmt_hf.util.yaml_files import settings_of

Permission = Literal["publish", "outside", "addresses", "servers"]
TYPED_ONLY = ("host", "allow")  # Options that no file of options may set
SERVERS = ("annotate serve", "explore page", "serve")


@dataclass(frozen=True)
class Act:
    """Something that a command does besides reading and computing."""

    description: str  # Such as `writes corpus`
    option: str  # The option that has it done; empty for the command itself
    needs: Permission | None = None  # What must be allowed; None if it is harmless
    path: Path | None = None  # What is written


def written_options(command: Command) -> list[str]:
    """Names of the options, and arguments, that name what a command writes; that of its result first.

    An `out` that may be left out comes after `json`, because it does not name the result.
    """
    known = {option.name: option for option in command.options}
    names: list[str] = [name for name in ("out", "json") if name in known or (name == "json" and command.writes_json)]
    names.sort(key=lambda name: name in known and known[name].default is not MISSING)
    names += [name for name, option in known.items() if name != "out" and Writes in option.expected.markers]
    return names


def other_places(command: Command, values: Mapping[str, Any]) -> list[tuple[str, Path]]:
    """The options and paths of what a command writes besides its results."""
    changed = [option.name for option in command.options if AlsoWrites in option.expected.markers]
    # And `score`, whose folder is its result.
    if command.name in ("annotate import", "annotate serve"):
        changed.append(command.options[0].name)
    return [(name, Path(values[name]).expanduser()) for name in changed if values.get(name) is not None]


def acts_of(
    command: Command, values: Mapping[str, Any], written: Sequence[tuple[str, Path]], folders: Sequence[Path]
) -> list[Act]:
    """List what a command does with the values of its options.

    Args:
        command: The command.
        values: Values by the names of options.
        written: The option and the path of each result.
        folders: What is written below them needs no permission.
    """
    acts = []
    for option, path in [*written, *other_places(command, values)]:
        end = resolved(path)
        inside = any(end.is_relative_to(folder) for folder in folders)
        # What is outside is shown where it is, which a link does not say.
        shown = shown_path(path) if inside else end
        acts.append(Act(f"writes {shown}", option, None if inside else "outside", path))
    if values.get("language_model") is not None:
        model = settings_of(LanguageModelConfig, values["language_model"], "a language model")
        # A server that the environment names, or the usual one, is trusted.
        is_usual = model.address == LanguageModelConfig(name=model.name).address
        sends = f"sends text, and the key of OPENAI_API_KEY, to {model.address}"
        acts.append(Act(sends, "language_model", None if is_usual else "addresses"))
    service = values.get("report_to")
    if service is not None:
        acts.append(
            Act(f"reports to {service}", "report_to", None if service in ("none", "tensorboard") else "addresses")
        )
    return acts
