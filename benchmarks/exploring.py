"""Measure how long the page of `paranmt explore page` waits for its answers.

    python benchmarks/exploring.py RELEASE

The command runs as a process of its own, and each question is asked as the browser asks it, texts that were not
searched for before.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote
from urllib.request import urlopen

from commands import PROJECT, heading

TEXTS = ["guitar", "the house", "parliament", "zebra", "a"]
QUESTIONS = {
    "page of all, as in the corpus": "rows",
    "page of a range, best first": "rows?min.para_score=0.4&max.para_score=0.{n}5&sort=para_score&descending=1",
    "page that contains a text": "rows?text={text}",
    "histograms of all": "histograms",
    "histograms of a range": "histograms?min.para_score=0.4&max.para_score=0.{n}5",
    "histograms of a text": "histograms?text={text} x&max.para_score=0.95",
    "examples of each range": "examples?seed={n}",
}


class Page:
    """A page that a running command serves.

    Attributes:
        address: Its address without the token.
        memory: Peak resident memory of the command in GB, once it has ended.
    """

    def __init__(self, address: str, token: str) -> None:
        self.address, self.memory, self._token = address, 0.0, token

    def ask(self, question: str) -> dict[str, Any]:
        """Send a request for `question` and return the answer."""
        mark = "&" if "?" in question else "?"
        query = quote(question, safe="?&=._")
        with urlopen(f"{self.address}api/{query}{mark}token={self._token}") as answer:
            return json.load(answer)


@contextmanager
def served(release: Path) -> Iterator[Page]:
    """Serve the page of a release in a `with` block, and end the server with Ctrl-C."""
    command = [sys.executable, "-m", "paranmt_hf.cli", "explore", "page", str(release.resolve())]
    environment = {**os.environ, "PYTHONPATH": str(PROJECT)}
    child = subprocess.Popen(command, env=environment, cwd=PROJECT, stderr=subprocess.PIPE, text=True)
    assert child.stderr is not None
    lines = iter(child.stderr.readline, "")
    found = next(filter(None, (re.search(r"(http://\S+/)\?token=(\S+)", line) for line in lines)), None)
    if found is None:
        raise SystemExit("the page was not served; see `paranmt explore page`")
    page = Page(found[1], found[2])
    try:
        yield page
    finally:
        child.send_signal(signal.SIGINT)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        page.memory = usage.ru_maxrss / 1e6


def main() -> None:
    """Send each request five times, and print the median times."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("release", type=Path)
    started = time.perf_counter()
    with served(parser.parse_args().release) as page:
        opened = time.perf_counter() - started
        print(f"{page.ask('summary')['rows']:,} pairs; {opened:.2f} s from the start of Python to the page\n")
        print("| question | seconds: median | min | max |\n|---|---:|---:|---:|")
        for name, question in QUESTIONS.items():
            times = []
            for number, text in enumerate(TEXTS):
                started = time.perf_counter()
                page.ask(question.format(n=5 + number % 5, text=text))
                times.append(time.perf_counter() - started)
            print(f"| {name} | {statistics.median(times):.2f} | {min(times):.2f} | {max(times):.2f} |")
    print(f"\npeak memory {page.memory:.2f} GB; {heading('duckdb')}")


if __name__ == "__main__":
    main()
