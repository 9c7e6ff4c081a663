"""`paranmt explore`: look at a release on a local page."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paranmt_hf.apps.explore.explorer import PAGE_ROWS, Explorer
from paranmt_hf.apps.explore.view import View
from paranmt_hf.corpus.release_card import described_columns
from paranmt_hf.errors import InputError
from paranmt_hf.util.local_page import address, listen, new_token, serve
from paranmt_hf.util.optional import require

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request

FILES = {
    "page.html": "text/html",
    "page.css": "text/css",
    "source.js": "text/javascript",
    "charts.js": "text/javascript",
    "pieces.js": "text/javascript",
    "page.js": "text/javascript",
}
NEIGHBOURS = 20
HINT = (
    "Neighbours need an index: `paranmt search index RELEASE --out INDEX` makes one, and `paranmt explore RELEASE "
    "--index INDEX` takes it."
)
# Pages beyond this one are reached by a narrower filter.
MAX_PAGE = 1_000_000
# The nearest sentences to a sentence, best first, with their cosines.
Neighbours = Callable[[str, int], list[tuple[str, float]]]


def explore(
    folder: str | Path,
    *,
    config: str = "default",
    port: int = 0,
    index: str | Path | None = None,
    opened: Callable[[str], None] = print,
) -> None:
    """Serve a page over a release until Ctrl-C, on loopback, to those who know its address.

    Args:
        folder: The release.
        config: Which config of it.
        port: Where; 0 takes any port that is free.
        index: Index that finds the nearest sentences, see `build_index`; without one the page has none.
        opened: Called with the address when the page can be opened.

    Raises:
        InputError: It is no release, the port is taken, or a package of the extra `explore` is missing.
    """
    require("starlette", "explore")
    require("uvicorn", "explore")
    neighbours = _neighbours(index) if index is not None else None
    with listen(port) as listening, Explorer(Path(folder), config=config) as explorer:
        token = new_token()
        opened(address(listening, token))
        serve(explore_app(explorer, folder=folder, neighbours=neighbours), listening, token)


def _neighbours(folder: str | Path) -> Neighbours:
    # Without an index there is no need of an encoder, nor of torch.
    from paranmt_hf.search.index import SentenceIndex

    index = SentenceIndex(folder)

    def nearest(sentence: str, count: int) -> list[tuple[str, float]]:
        return [(hit.sentence, hit.cosine) for hit in index.search([sentence], top=count)[0]]

    return nearest


def page_file(name: str) -> str:
    """Read a file of the page."""
    return (resources.files("paranmt_hf") / "assets" / "explore" / name).read_text(encoding="utf8")


def summary_of(explorer: Explorer, folder: str | Path) -> dict[str, Any]:
    """What the page shows of a release before anything is asked."""
    columns = described_columns(explorer.record)
    command = f"paranmt select {shlex.quote(str(folder))} --out selected" if explorer.config == "default" else None
    return {**explorer.summary(), "columns": columns, "command": command}


def explore_app(explorer: Explorer, *, folder: str | Path, neighbours: Neighbours | None = None) -> Starlette:
    """Make the application behind the page.

    Args:
        explorer: Answers what is asked of the release.
        folder: The release, as the page names it in a command.
        neighbours: Finds the nearest sentences.
    """
    from starlette.applications import Starlette
    from starlette.responses import JSONResponse, Response
    from starlette.routing import Route

    def file(name: str) -> Response:
        return Response(page_file(name), media_type=f"{FILES[name]}; charset=utf-8")

    def answers(ask: Callable[[Any], dict[str, Any]]) -> Callable[[Request], JSONResponse]:
        def answer(request: Request) -> JSONResponse:
            try:
                return JSONResponse(ask(request.query_params))
            except InputError as error:
                return JSONResponse({"error": str(error)}, status_code=400)

        return answer

    def view(query: Any) -> View:  # noqa: ANN401 - parameters of an address, of Starlette
        return View.parse(query.multi_items(), explorer.columns)

    def summary(query: Mapping[str, str]) -> dict[str, Any]:
        found = summary_of(explorer, folder)
        if neighbours is None:
            return {**found, "neighbours_hint": HINT}
        return {
            **found,
            "neighbours": "The nearest sentences of the index, by the encoder that made it.",
            "ask_any": True,
        }

    def rows(query: Mapping[str, str]) -> dict[str, Any]:
        chosen, page = view(query), _whole(query, "page", MAX_PAGE)
        found = explorer.rows(
            chosen, sort=query.get("sort") or "id", descending=bool(query.get("descending")), page=page
        )
        return {"total": explorer.count(chosen), "page_rows": PAGE_ROWS, "rows": found}

    def histograms(query: Mapping[str, str]) -> dict[str, Any]:
        chosen = view(query)
        return {"total": explorer.count(chosen), "counts": explorer.histograms(chosen)}

    def examples(query: Mapping[str, str]) -> dict[str, Any]:
        return {"ranges": explorer.examples(view(query), seed=_whole(query, "seed", MAX_PAGE))}

    def near(query: Mapping[str, str]) -> dict[str, Any]:
        if neighbours is None or not query.get("sentence"):
            raise InputError("neighbours need an index and a sentence")
        found = neighbours(query["sentence"], NEIGHBOURS)
        return {"neighbours": [{"sentence": sentence, "similarity": cosine} for sentence, cosine in found]}

    asked = {"summary": summary, "rows": rows, "histograms": histograms, "examples": examples, "neighbours": near}
    routes = [Route(f"/api/{name}", answers(ask)) for name, ask in asked.items()]
    routes += [Route(f"/{name}", lambda request, name=name: file(name)) for name in FILES]
    return Starlette(routes=[Route("/", lambda request: file("page.html")), *routes])


def _whole(query: Mapping[str, str], name: str, largest: int) -> int:
    text = query.get(name) or "0"
    if not text.isascii() or not text.isdigit() or len(text) > len(str(largest)) or int(text) > largest:
        raise InputError(f"{name} must be a whole number from 0 to {largest:,}, was {text!r}")
    return int(text)
