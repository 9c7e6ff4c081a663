"""What tests of the command share: small settings, a command that fails, and options."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from paranmt_hf.cli import file_values, find_command, main
from paranmt_hf.cli.command import flag_of
from paranmt_hf.cli.parsing import parse

# A training that takes no time.
SMALL = ["--dimension", "4", "--batch-size", "2", "--mega-batch", "2", "--epochs", "2"]


def write_pairs(path, words="abcdefghij"):
    """Write a pair for each letter."""
    table = {"reference": [f"{word} x" for word in words], "translation": [f"{word} y {word}" for word in words]}
    pq.write_table(pa.table(table), path)


def fails(capsys, arguments, *messages):
    assert main([str(argument) for argument in arguments]) == 1
    error = capsys.readouterr().err
    last = error.strip().split("\n")[-1]
    assert last.startswith("paranmt: ")
    assert "Traceback" not in error
    for message in messages:
        assert message in last
    return last


def recorded_options(record):
    """The options in a record, which are those of one command."""
    (options,) = json.loads(Path(record).read_text())["options"].values()
    return options


def kept_options(words):
    """The options that a command line would write into the record of its result."""
    command, others = find_command(words)
    return command.kept_values(parse(command, others, file_values(command, others)))


def flags(words):
    """The options that a command has."""
    command, _ = find_command(words)
    if command is None:
        return set()
    own = [option for option in command.options if not option.positional and option.group is None]
    general = {"--help", "--help-all", "--config", "--debug"} | ({"--json"} if command.writes_json else set())
    switches = {f"--no-{option.flag[2:]}" for option in own if option.expected.kind is bool}
    return {option.flag for option in own} | switches | general | {flag_of(group) for group in command.groups}
