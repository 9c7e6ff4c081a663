"""`paranmt explore page` shows a corpus on a local page; `paranmt explore report` writes the page as one HTML file."""

from __future__ import annotations

import json
import logging
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np

from paranmt_hf.apps.explore.explorer import PAGE_ROWS, Explorer, View
from paranmt_hf.corpus.release.record import ReleaseRecord
from paranmt_hf.corpus.release.release import checked_files, read_tables
from paranmt_hf.corpus.release.release_card import described_columns
from paranmt_hf.corpus.selection.paraphrased_items import unit_vectors
from paranmt_hf.encoders.loading import load
from paranmt_hf.errors import InputError
from paranmt_hf.text.protocols import Encoder
from paranmt_hf.util.files import replacing, result_file, shown_path
from paranmt_hf.util.local_page import address, listen, new_token, serve
from paranmt_hf.util.markers import Writes
from paranmt_hf.util.optional import require

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

logger = logging.getLogger(__name__)
FILES = {
    "page.html": "text/html",
    "page.css": "text/css",
    "source.js": "text/javascript",
    "charts.js": "text/javascript",
    "pieces.js": "text/javascript",
    "page.js": "text/javascript",
}
Query = Mapping[str, str]  # URL parameters of a request
# A function from a sentence and a number to that number of nearest sentences with their cosines, best first.
Neighbours = Callable[[str, int], list[tuple[str, float]]]


def explore(
    folder: str | Path,
    *,
    subset: Literal["default", "filtered", "sample"] = "default",
    index: str | Path | None = None,
    port: int = 0,
    opened: Callable[[str], None] = logger.info,
) -> None:
    """Show a corpus on a local page until Ctrl-C: filters, search, histograms, examples.

    The page can be opened on this computer only, with the address that is printed.

    Args:
        folder: Folder of a corpus.
        subset: Config of the corpus that is shown.
        index: Index of the corpus (`paranmt search index`), for finding the nearest sentences of a sentence.
        port: Port on this computer; 0 for any free one.
        opened: Called with the address when the page can be opened.
    """
    require("starlette", "explore")
    require("uvicorn", "explore")
    neighbours = _index_neighbours(index, Path(folder)) if index is not None else None
    with listen(port) as listening, Explorer(Path(folder), config=subset) as explorer:
        token = new_token()
        opened(f"open {address(listening, token)}\nCtrl-C ends it")
        serve(explore_app(explorer, folder=folder, neighbours=neighbours), listening, token)


def _index_neighbours(folder: str | Path, release: Path) -> Neighbours:
    """Return a function that finds nearest sentences in the index `folder`; reject an index of other text."""
    # The import is here because without an index neither an encoder nor torch is needed.
    from paranmt_hf.search.index import SentenceIndex

    index = SentenceIndex.from_pretrained(folder)
    files = ReleaseRecord.read(release).configs["default"].files
    indexed = index.record.settings.corpus.get("files")
    # The index of a text file has one file here, not a list.
    found = [file.get("sha256") for file in indexed if isinstance(file, dict)] if isinstance(indexed, list) else None
    if found != list(files.values()):
        raise InputError(
            f"{folder} is an index of other text than {release}; make one of it with `paranmt search index`",
            option="index",
            path=Path(folder),
        )

    def nearest(sentence: str, count: int) -> list[tuple[str, float]]:
        return [(hit.sentence, hit.cosine) for hit in index.search([sentence], top=count)[0]]

    return nearest


def page_file(name: str) -> str:
    """Return the text of a file of the page, such as `page.css`, from the assets."""
    return (resources.files("paranmt_hf") / "assets" / "explore" / name).read_text(encoding="utf8")


def summary_of(explorer: Explorer, folder: str | Path) -> dict[str, Any]:
    """Return the JSON values that the page shows about a corpus before any query.

    `folder` is how the page names the corpus in commands.
    """
    columns = described_columns(explorer.record)
    command = f"paranmt select {shlex.quote(str(folder))} --out selected" if explorer.config == "default" else None
    return {**explorer.summary(), "columns": columns, "command": command}


def explore_app(explorer: Explorer, *, folder: str | Path, neighbours: Neighbours | None = None) -> Starlette:
    """Create the web application behind the page.

    Args:
        explorer: Queries of the corpus.
        folder: How the page names the corpus in commands.
        neighbours: Finds the nearest sentences of a sentence; None if there is no index.
    """
    from starlette.applications import Starlette
    from starlette.responses import JSONResponse, Response
    from starlette.routing import Route

    def ask(request: Request) -> Response:
        question = request.path_params["question"]
        try:
            if question not in questions:
                raise InputError(f"a question is one of {', '.join(questions)}, was {question!r}")
            return JSONResponse(questions[question](request.query_params))
        except InputError as error:
            return JSONResponse({"error": str(error)}, status_code=400)

    def file(request: Request) -> Response:
        name = request.url.path.removeprefix("/") or "page.html"
        return Response(page_file(name), media_type=f"{FILES[name]}; charset=utf-8")

    def view(query: Query) -> View:
        return View.parse(query.items(), explorer.columns)

    def summary(query: Query) -> dict[str, Any]:
        found = summary_of(explorer, folder)
        if neighbours is None:
            found["neighbours_hint"] = (
                "Neighbours need an index: `paranmt search index CORPUS --out INDEX` makes one, and `paranmt explore "
                "page CORPUS --index INDEX` takes it."
            )
        else:
            found["neighbours"] = "The nearest sentences of the index, by the encoder that made it."
            found["ask_any"] = True
        return found

    def rows(query: Query) -> dict[str, Any]:
        found = explorer.rows(
            view(query),
            sort=query.get("sort") or "id",
            descending=bool(query.get("descending")),
            page=_whole(query, "page"),
        )
        return {"total": explorer.count(view(query)), "page_rows": PAGE_ROWS, "rows": found}

    def histograms(query: Query) -> dict[str, Any]:
        return {"total": explorer.count(view(query)), "counts": explorer.histograms(view(query))}

    def examples(query: Query) -> dict[str, Any]:
        return {"ranges": explorer.examples(view(query), seed=_whole(query, "seed"))}

    def near(query: Query) -> dict[str, Any]:
        if neighbours is None or not query.get("sentence"):
            raise InputError("neighbours need an index and a sentence")
        found = neighbours(query["sentence"], 20)
        return {"neighbours": [{"sentence": sentence, "similarity": cosine} for sentence, cosine in found]}

    questions = {"summary": summary, "rows": rows, "histograms": histograms, "examples": examples, "neighbours": near}
    routes = [Route(f"/{name}", file) for name in ("", *FILES)]
    return Starlette(routes=[Route("/api/{question}", ask), *routes])


def _whole(query: Query, name: str) -> int:
    """Return a URL parameter as a whole number; 0 if it is missing."""
    text = query.get(name) or "0"
    if not re.fullmatch("[0-9]{1,6}", text):
        raise InputError(f"{name} must be a whole number from 0 to 999,999, was {text!r}")
    return int(text)


@dataclass(frozen=True)
class WrittenReport:
    """A written report about a corpus: its HTML file, and the number of pairs that the file carries."""

    file: Path
    rows: int

    def summary(self) -> str:
        return f"{shown_path(self.file)}: carries {self.rows:,} of the pairs"


def write_report(
    folder: str | Path,
    out: Annotated[str | Path, Writes],
    *,
    encoder: str | Path | Encoder | None = None,
) -> WrittenReport:
    """Write what `paranmt explore page` shows as one HTML file, with the rows of the config `sample`.

    Histograms, ranges and counts are those of all rows. Filters and search work on the rows in the file.

    Args:
        folder: Folder of a corpus.
        out: The HTML file.
        encoder: Encoder that finds the nearest references of a sentence: folder or Hub id; by default `small`, which
            the package carries; `none` for no neighbours.
    """
    out = result_file(out, [".html", ".htm"], sources=[folder])
    if encoder is None or isinstance(encoder, str | Path):
        encoder = None if encoder == "none" else load(encoder)
    folder = Path(folder)
    with Explorer(folder) as explorer:
        sample = []
        for table in read_tables(checked_files(folder, "sample"), explorer.record.columns):
            sample += table.to_pylist()
        found: dict[str, Any] = {
            "summary": summary_of(explorer, folder.name),
            "page": PAGE_ROWS,
            "sample": sample,
            "examples": explorer.examples(View(), each=10),
            "all": explorer.histograms(View()),
            "neighbours": {},
        }
        explorer.check_unchanged()
    if encoder is not None:
        found["neighbours"] = _report_neighbours([row["reference"] for row in sample], encoder)
        found["summary"]["neighbours"] = "The nearest of the references that this report carries."
    with replacing(out) as aside:
        aside.write_text(_page(found), encoding="utf8", newline="\n")
    return WrittenReport(out, len(sample))


def _report_neighbours(sentences: Sequence[str], encoder: Encoder) -> dict[str, list[tuple[int, float]]]:
    """Find the 5 nearest other sentences of each distinct sentence.

    Returns:
        For each sentence, the index in `sentences` and the cosine of its nearest ones, best first.
    """
    first: dict[str, int] = {}
    for index, sentence in enumerate(sentences):
        first.setdefault(sentence, index)
    distinct = list(first)
    vectors = unit_vectors(np.asarray(encoder.encode(distinct), np.float32))
    cosines = vectors @ vectors.T
    np.fill_diagonal(cosines, -np.inf)
    count = min(5, len(distinct) - 1)
    best = np.argsort(-cosines, axis=1, kind="stable")[:, :count]
    found = {}
    for row, sentence in enumerate(distinct):
        found[sentence] = [(first[distinct[other]], round(float(cosines[row, other]), 4)) for other in best[row]]
    return found


def _page(found: dict[str, Any]) -> str:
    """Return the text of one HTML file with the files of the page and the values `found` of a report."""
    # `<` is escaped so that a sentence cannot end the element that holds the values.
    values = json.dumps(found, ensure_ascii=False, separators=(",", ":"), sort_keys=False).replace("<", "\\u003c")
    page = page_file("page.html").replace(
        '<link rel="stylesheet" href="page.css">', f"<style>\n{page_file('page.css')}</style>"
    )
    page = page.replace("<body>", f'<body>\n<script type="application/json" id="report">{values}</script>')
    for name in FILES:
        if name.endswith(".js"):
            page = page.replace(f'<script src="{name}"></script>', f"<script>\n{page_file(name)}</script>")
    return page
