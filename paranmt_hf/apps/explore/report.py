"""`paranmt report`: what `paranmt explore` shows, as one HTML file that needs no program."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from paranmt_hf.apps.explore.explore import FILES, page_file, summary_of
from paranmt_hf.apps.explore.explorer import PAGE_ROWS, Explorer
from paranmt_hf.apps.explore.view import View
from paranmt_hf.corpus.release import read_tables, release_files
from paranmt_hf.errors import InputError
from paranmt_hf.text.protocols import Encoder
from paranmt_hf.util.files import check_result_path, check_suffix, replacing
from paranmt_hf.util.settings import LARGEST_SEED

EXAMPLES = 10
NEIGHBOURS = 5


def write_report(folder: str | Path, out: str | Path, *, encoder: Encoder | None = None, seed: int = 0) -> int:
    """Write one HTML file about a release, with the rows of its config `sample`.

    Histograms, ranges and counts are of all rows; filters and search work on the rows that the file carries.

    Args:
        folder: The release.
        out: The file.
        encoder: Finds the neighbours among the references of the file; without it there are none.
        seed: Decides the examples of each range.

    Returns:
        The number of rows that the file carries.

    Raises:
        InputError: It is no release, or the file cannot be written.
    """
    if not 0 <= seed <= LARGEST_SEED:
        raise InputError(f"--seed must be from 0 to {LARGEST_SEED:,}, was {seed}")
    out = Path(out).expanduser()
    check_result_path(out, "--out")
    check_suffix(out, "--out", [".html", ".htm"])
    folder = Path(folder)
    with Explorer(folder) as explorer:
        sample = [
            row
            for table in read_tables(release_files(folder, "sample"), explorer.record.columns)
            for row in table.to_pylist()
        ]
        found: dict[str, Any] = {
            "summary": summary_of(explorer, folder.name),
            "page": PAGE_ROWS,
            "sample": sample,
            "examples": explorer.examples(View(), each=EXAMPLES, seed=seed),
            "all": explorer.histograms(View()),
            "neighbours": {},
        }
    if encoder is not None:
        found["neighbours"] = _neighbours([row["reference"] for row in sample], encoder)
        found["summary"]["neighbours"] = "The nearest of the references that this report carries."
    with replacing(out.resolve()) as aside:
        aside.write_text(_page(found), encoding="utf8")
    return len(sample)


def _neighbours(sentences: Sequence[str], encoder: Encoder) -> dict[str, list[tuple[int, float]]]:
    """For each sentence the indices of the nearest other ones, with their cosines."""
    distinct = list(dict.fromkeys(sentences))
    index_of = {sentence: index for index, sentence in reversed(list(enumerate(sentences)))}
    vectors = np.asarray(encoder.encode(distinct), np.float32)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    vectors = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths != 0)
    cosines = vectors @ vectors.T
    np.fill_diagonal(cosines, -np.inf)
    count = min(NEIGHBOURS, len(distinct) - 1)
    best = np.argsort(-cosines, axis=1, kind="stable")[:, :count]
    return {
        sentence: [(index_of[distinct[other]], round(float(cosines[row, other]), 4)) for other in best[row]]
        for row, sentence in enumerate(distinct)
    }


def _page(found: dict[str, Any]) -> str:
    """Put the page's files and the rows into one file."""
    # A sentence must not end the element that holds it, whatever it contains.
    values = json.dumps(found, ensure_ascii=False, separators=(",", ":"), sort_keys=False).replace("<", "\\u003c")
    page = page_file("page.html").replace(
        '<link rel="stylesheet" href="page.css">', f"<style>\n{page_file('page.css')}</style>"
    )
    page = page.replace("<body>", f'<body>\n<script type="application/json" id="report">{values}</script>')
    for name in FILES:
        if name.endswith(".js"):
            page = page.replace(f'<script src="{name}"></script>', f"<script>\n{page_file(name)}</script>")
    return page
