"""A sample of the moments at which a command can be killed, or its disk be full; `all` tries every one by hand."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from paranmt_hf.cli.table import COMMANDS
from paranmt_hf.util.optional import available
from tests.interruption.cases import CASES

# Half of them would do for most faults that there ever were; each costs a second or two.
SAMPLE = ["--every", "40", "--full", "60", "--twice", "1", "--seed", "7"]


# `quickstart` runs commands that are stopped; what `annotate export` reads is answered in a browser.
OTHERS = {"quickstart", "annotate export"}


def test_each_command_that_makes_something_is_stopped(tmp_path):
    made = {name for name, command in COMMANDS.items() if any(option.name == "out" for option in command.options)}
    stopped = set()
    for case in CASES:
        words = case.command(tmp_path)
        stopped.update((words[0], " ".join(words[:2])))
    # Its cases need the package.
    absent = set() if available("mteb") else {"evaluate mteb"}
    assert made - stopped == OTHERS | absent


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc, /dev/full and fork")
def test_the_same_command_ends_with_the_same_bytes():
    # A process of its own, because only one that has run nothing yet can be forked safely.
    done = subprocess.run(
        [sys.executable, "-m", "tests.interruption.all", *SAMPLE],
        cwd=Path(__file__).parents[2],
        env=dict(os.environ),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr[-3000:]}"
    assert done.stdout.count(" same bytes ") == len(CASES), done.stdout
