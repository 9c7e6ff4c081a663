"""How long the page of `paranmt explore page` waits for its answers.

    python benchmarks/exploring.py RELEASE

Each question is asked of the application as the browser asks it, texts that were not searched for before.
"""

from __future__ import annotations

import argparse
import platform
import resource
import statistics
import time
from importlib.metadata import version
from pathlib import Path

from starlette.testclient import TestClient

from paranmt_hf.apps.explore.explore import explore_app
from paranmt_hf.apps.explore.explorer import Explorer

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


def main() -> None:
    """Ask each question five times and print medians."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("release", type=Path)
    folder = parser.parse_args().release
    started = time.perf_counter()
    with Explorer(folder) as explorer:
        opened = time.perf_counter() - started
        client = TestClient(explore_app(explorer, folder=folder))
        print(f"{explorer.rows_in_all:,} pairs, opened in {opened:.2f} s\n")
        print("| question | seconds: median | min | max |\n|---|---:|---:|---:|")
        for name, question in QUESTIONS.items():
            times = []
            for number, text in enumerate(TEXTS):
                started = time.perf_counter()
                answer = client.get(f"/api/{question.format(n=5 + number % 5, text=text)}")
                times.append(time.perf_counter() - started)
                assert answer.status_code == 200, answer.text
            print(f"| {name} | {statistics.median(times):.2f} | {min(times):.2f} | {max(times):.2f} |")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(f"\npeak memory {peak:.2f} GB; duckdb {version('duckdb')}, Python {platform.python_version()}")


if __name__ == "__main__":
    main()
