"""`paranmt run`: run the commands of a YAML file one after the other; results that exist are not made again.

If a command returns a `Result`, the command itself finds a finished result, or rejects one of other settings. If a
command writes a plain file, such as the figures of an evaluation, the record next to the file says what the file was
made from.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import chdir, contextmanager, suppress
from dataclasses import MISSING, dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from paranmt_hf.cli import PRINTED, expanded, perform
from paranmt_hf.cli.command import Command, reworded
from paranmt_hf.cli.permissions import SERVERS, Act, Permission, acts_of, written_options
from paranmt_hf.cli.table import COMMANDS
from paranmt_hf.cli.written_files import WrittenFileRecord
from paranmt_hf.errors import InputError, NotMadeError
from paranmt_hf.util.files import checksum, resolved, shown_path, writing
from paranmt_hf.util.markers import PythonOnly
from paranmt_hf.util.records import Identity, as_json
from paranmt_hf.util.run import find
from paranmt_hf.util.wording import perhaps
from paranmt_hf.util.work import only_finding
from paranmt_hf.util.yaml_files import read_yaml
from paranmt_hf.version import __version__

THERE, RUN = "there", "to run"  # States of a step: its result exists, or must be made


@dataclass(frozen=True)
class Step:
    """A step of a pipeline: a command with the values of its options."""

    name: str
    command: Command
    values: Mapping[str, Any]  # Value of each option by its name, and of `json`
    where: str  # The file of the pipeline and the name of the step, for errors
    written: tuple[Path, ...]  # Files and folders that it writes; the first one is its result
    after: tuple[str, ...]  # Names of the earlier steps whose files it reads
    acts: tuple[Act, ...] = ()  # What it does besides reading and computing


def run_pipeline(
    file: str | Path,
    *,
    out: str | Path | None = None,
    allow: Sequence[Permission] = (),
    dry_run: bool = False,
    changes: Annotated[Mapping[str, Mapping[str, str]] | None, PythonOnly] = None,
) -> Iterator[str]:
    """Run the commands that a YAML file lists, each unless its result is there.

    All steps are checked before the first one runs. After an interruption the same command continues.

    Args:
        file: YAML file that lists the steps: under `steps` a name for each, with its `command` and options. {NAME} in
            a value is the path of the result of an earlier step. Paths are relative to the folder of the file.
        out: Folder of the results; by default that of the file.
        allow: What steps may do. `publish`: publish on the Hub; without it, such steps are dry runs. Steps that do
            something else without permission are refused: `outside`: write outside of the folder of the file and of
            `out`; `addresses`: send text to a server that OPENAI_BASE_URL does not name, or report to a service;
            `servers`: start a server; `code`: run Python code that `teacher` names.
        dry_run: Make nothing; list the steps, which results exist, what steps write and where they send text.
        changes: Options by the names of steps, which replace those of the file.
    """
    path = resolved(file)
    given = read_yaml(path, "`steps:` with a name and options for each", as_text=True)
    folder = path.parent if out is None else resolved(out)
    with chdir(path.parent):
        steps = _parse_steps(given, Path(file), folder, "publish" in allow, changes or {})
        for step in [] if dry_run else steps:
            for act in step.acts:
                if act.needs is not None and act.needs not in allow:
                    raise InputError(
                        f"{step.where} {act.description}; if that is what you want, add `allow` {act.needs}",
                        option="allow",
                        path=act.path,
                    )
    lines = _run_steps(steps, dry_run)
    while True:
        # The current folder is changed only while a step runs, not while the caller handles the line.
        with chdir(path.parent):
            line = next(lines, None)
        if line is None:
            return
        yield line


def _parse_steps(
    given: Mapping[str, Any], file: Path, out: Path, publish: bool, changes: Mapping[str, Mapping[str, str]]
) -> list[Step]:
    """Parse the steps of a pipeline file and check them, in the order of the file.

    Args:
        given: Content of the file.
        file: Its path, for errors. Its folder is the current folder.
        out: Folder of the results.
        publish: Whether `publish` may send; otherwise it becomes a dry run.
        changes: Options by the names of steps, which replace those of the file.
    """
    if unknown := [name for name in given if name != "steps"]:
        raise InputError(f"{file} holds {unknown[0]!r}; expected `steps:` alone", path=file)
    if not isinstance(steps := given.get("steps"), dict) or not steps:
        raise InputError(f"{file} holds no steps; expected `steps:` with a name and options for each", path=file)
    found: dict[str, Step | None] = dict.fromkeys(steps)
    for name, options in steps.items():
        where = f"{file}, step {str(name)!r}"
        with _naming(where):
            if not isinstance(name, str) or not re.fullmatch(r"\w[\w.-]*", name):
                raise InputError("the name of a step has letters and digits, and after the first of them also _ . -")
            if not isinstance(options, dict) or not isinstance(options.get("command"), str):
                raise InputError("expected `command: NAME` and options, such as {command: select, tenths: 7-10}")
            found[name] = _step(name, {**options, **changes.get(name, {})}, where, found, out, publish)
    return [step for step in found.values() if step is not None]


@contextmanager
def _naming(where: str) -> Iterator[None]:
    """Put the name of a step, `where`, before the errors of a `with` block, unless they begin with it."""
    try:
        yield
    except InputError as error:
        text = str(error) if str(error).startswith(where) else f"{where}: {error}"
        raise type(error)(text, option=error.option, path=error.path) from error.__cause__


def _step(
    name: str, given: Mapping[Any, Any], where: str, earlier: Mapping[str, Step | None], out: Path, publish: bool
) -> Step:
    """Parse a step of a pipeline, and check its options.

    Args:
        name: Name of the step.
        given: Its command and options, as in the file.
        where: The file and the name of the step, for errors.
        earlier: The steps by their names in the order of the file; None for this step and those that come after it.
        out: Folder of the results.
        publish: Whether `publish` may send; otherwise it becomes a dry run.
    """
    command = COMMANDS.get(given["command"])
    if command is None or command.function is run_pipeline:
        raise InputError(f"{given['command']!r} is no command of a step{perhaps(given['command'], list(COMMANDS))}")
    options = {str(key).replace("-", "_"): value for key, value in given.items() if key != "command"}
    options = {key: _filled(value, key, earlier) for key, value in options.items()}
    writes = written_options(command)
    if writes[:1] in (["out"], ["json"]):
        # A result without a given path has the name of the step.
        options[writes[0]] = options.get(writes[0]) or (name if writes[0] == "out" else f"{name}.json")
    options |= {key: _placed(options[key], out) for key in writes if key in options}
    if command.name == "publish" and not publish:
        options["dry_run"] = "true"
    values = _values(command, options, where)
    written = [_path(text) for key in writes for text in _texts(values[key]) if text != str(PRINTED)]
    if command.changes_folder:
        # The first option is the folder that the command changes, which is then the result.
        written.insert(0, _path(values[command.options[0].name]))
    result = writes[0] if writes else command.options[0].name
    acts = acts_of(command, values, [(result, path) for path in written], [Path.cwd(), out])
    if command.name in SERVERS:
        acts.append(Act("starts a server", "command", "servers"))
    read = [_path(text) for option in command.options for text in _texts(values[option.name])]
    before = [step for step in earlier.values() if step is not None]
    for other in before:
        if any(_is_in(file, other.written) or _is_in(each, [file]) for file in written for each in other.written):
            advice = "give its options to that step" if command.changes_folder else "choose another path"
            raise InputError(f"it changes what step {other.name!r} writes; {advice}", path=written[0])
    after = [other.name for other in before if any(_is_in(path, other.written) for path in read)]
    return Step(name, command, values, where, tuple(written), tuple(after), tuple(acts))


def _filled(value: Any, key: str, earlier: Mapping[str, Step | None]) -> Any:  # noqa: ANN401
    """Replace each name of a step in braces, `{NAME}`, by the path of its result, also inside lists and mappings.

    Args:
        value: Value of an option.
        key: Name of the option, for errors.
        earlier: The earlier steps by name; None for those that are not earlier.
    """

    def result(found: re.Match[str]) -> str:
        if found[1] is None:
            return found[0][0]
        if found[1] not in earlier:
            near = perhaps(found[1], list(earlier))
            raise InputError(f"{key} names {found[0]}, and there is no such step{near}", option=key)
        if (step := earlier[found[1]]) is None:
            raise InputError(f"{key} names {found[0]}, which does not come before it", option=key)
        if not step.written:
            raise InputError(f"{key} names {found[0]}, which has no result", option=key)
        return shown_path(step.written[0])

    if isinstance(value, list):
        return [_filled(part, key, earlier) for part in value]
    if isinstance(value, dict):
        if len(value) == 1 and (only := next(iter(value))) in earlier and value[only] is None:
            raise InputError(f'{key} needs quotation marks: "{{{only}}}"', option=key)
        return {name: _filled(part, key, earlier) for name, part in value.items()}
    # A name in braces, or doubled braces, which stand for single ones.
    return re.sub(r"\{\{|\}\}|\{([^{}]*)\}", result, value) if isinstance(value, str) else value


def _placed(given: Any, out: Path) -> Any:  # noqa: ANN401
    """Return the path of what a step writes, relative paths in the folder `out`; `-` for printing stays as it is."""
    if isinstance(given, list):
        return [_placed(each, out) for each in given]
    is_path = isinstance(given, str) and given != str(PRINTED)
    return shown_path(out / Path(given).expanduser()) if is_path else given


def _values(command: Command, options: dict[str, Any], where: str) -> dict[str, Any]:
    """Return the value of each option of a command, and of `json`, converted to its type.

    The settings classes are created from them, only to reject settings that do not fit each other.
    """
    json = options.pop("json", None) if command.writes_json else None
    if not isinstance(json, str | None):
        raise InputError("json must be one path", option="json")
    given = expanded(command, command.values_of(options, where))
    values = {option.name: given.get(option.name, option.default) for option in command.options}
    try:
        if missing := next((name for name, value in values.items() if value is MISSING), None):
            raise InputError(f"`paranmt {command.name}` needs {missing}", option=missing)
        command.arguments(values)
    except InputError as error:
        raise reworded(error, command.flags) from error.__cause__
    return {**values, "json": None if json is None else Path(json)}


def _is_in(path: Path, folders: Sequence[Path]) -> bool:
    """Return whether a path is one of several, or inside one."""
    return any(folder in (path, *path.parents) for folder in folders)


def _path(text: str) -> Path:
    """Make a path absolute without looking at the disk, because the text of an option need not be a path."""
    return Path(os.path.abspath(os.path.expanduser(text)))  # noqa: PTH100, PTH111


def _texts(value: Any) -> Iterator[str]:  # noqa: ANN401
    """Yield every text and path in a value, also those inside lists and mappings."""
    if isinstance(value, str | Path):
        yield str(value)
    elif isinstance(value, Mapping | list | tuple):
        for inner in value.values() if isinstance(value, Mapping) else value:
            yield from _texts(inner)


def _run_steps(steps: Sequence[Step], dry_run: bool) -> Iterator[str]:
    """Run each step whose result does not exist, or in a dry run say what would be done; yield lines to print."""
    pending: set[str] = set()  # Names of steps that would run, in a dry run
    for step in steps:
        with _naming(step.where):
            state = _state(step, pending)
            if dry_run or state == THERE:
                yield f"{step.name}: {step.command.name}, {state}"
                for act in step.acts if dry_run else ():
                    needs = f"; only with --allow {act.needs}" if act.needs else ""
                    yield f"  {act.description}{needs}"
                if state != THERE:
                    pending.add(step.name)
            else:
                # A result of other settings is refused by the command itself.
                yield f"{step.name}: {step.command.name}"
                yield from _run(step)


def _state(step: Step, pending: set[str]) -> str | InputError:
    """Return whether the result of a step exists.

    Args:
        step: The step.
        pending: Names of earlier steps that would run, so that what this step reads may change.

    Returns:
        `THERE`, `RUN`, or `THERE` with a remark; or an error, if a result of other settings exists.
    """
    if not step.written or not all(file.exists() for file in step.written):
        return RUN
    if waits := next((name for name in step.after if name in pending), None):
        return f"{THERE}, to be compared when {waits} has run"
    try:
        if not step.command.finds_result:
            return THERE if find(step.written[0], _identity(step), WrittenFileRecord) else RUN
        with only_finding():
            step.command.call(step.values)
    except NotMadeError:
        return RUN
    except InputError as error:
        return reworded(error, step.command.flags) if step.command.finds_result else RUN
    return THERE


def _run(step: Step) -> Iterator[str]:
    """Run a step, and record what determines its result if that is a plain file; yield lines to print."""
    for file in step.written:
        with writing(file):
            file.parent.mkdir(parents=True, exist_ok=True)
    # Checksums are computed before the work: an input that changes during it is then noticed by the next run.
    identity = None if step.command.finds_result else _identity(step)
    yield from perform(step.command, step.values)
    if identity is not None and step.written and step.written[0].is_file():
        record = WrittenFileRecord.read(step.written[0])
        replace(record, settings=identity).write(step.written[0])


def _identity(step: Step) -> Identity:
    """Return what determines the file of a step: its options, and checksums of the files and folders they name."""
    options = step.command.kept_values(step.values)
    inputs: dict[str, str] = {}
    for path in map(_path, _texts(options)):
        with suppress(OSError):
            files = sorted(each for each in path.rglob("*") if each.is_file()) if path.is_dir() else [path]
            inputs |= {shown_path(file): checksum(file) for file in files if file.is_file()}
    return as_json({"command": step.command.name, "version": __version__, "options": options, "inputs": inputs})
