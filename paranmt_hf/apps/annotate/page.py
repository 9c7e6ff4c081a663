"""The page on which people rate a sample.

Each annotator sees the pairs, and the two sentences of each pair, in another random order. The page does not show the
score of a pair, its range, or its number in the corpus.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from paranmt_hf.apps.annotate.answers import AnswerStore, Outdated, Rating
from paranmt_hf.apps.annotate.sample import AnnotationSample
from paranmt_hf.apps.annotate.table import progress_of
from paranmt_hf.corpus.statistics.draws import lottery
from paranmt_hf.errors import InputError, WriteError
from paranmt_hf.util.files import parse_json
from paranmt_hf.util.records import from_json

PAGE = Path(__file__).parents[2] / "assets" / "annotate"
FILES = {
    "/": ("annotate.html", "text/html"),
    "/annotate.css": ("annotate.css", "text/css"),
    "/annotate.js": ("annotate.js", "text/javascript"),
}


def presented(sample: AnnotationSample, annotator: str) -> list[tuple[int, bool]]:
    """Return the order in which an annotator sees the pairs of a sample; it depends on the name, ignoring case.

    Returns:
        For each pair its index in the sample, and whether its translation is shown before its reference.
    """
    digest = hashlib.sha256(f"{sample.checksum}\0{annotator.casefold()}".encode()).digest()
    numbers = np.arange(len(sample.items))
    order = np.argsort(lottery(numbers, int.from_bytes(digest[:8])), kind="stable")
    sides = lottery(numbers, int.from_bytes(digest[8:16])) >> np.uint64(63)
    return [(int(item), bool(sides[item])) for item in order]


def annotation_app(sample: AnnotationSample, store: AnswerStore, names: Sequence[str] = ()) -> Starlette:
    """Create the web application of the page on which people rate a sample.

    Args:
        sample: The sample.
        store: The answers to it.
        names: Names of the people who may rate; empty to allow anybody.
    """
    pages = _Pages(sample, store, [store.name(name) for name in names])
    return Starlette(
        routes=[
            *(Route(address, pages.file) for address in FILES),
            Route("/annotators", pages.annotators),
            Route("/items", pages.items),
            Route("/answers/{item:int}", pages.answer, methods=["PUT"]),
        ],
        exception_handlers={InputError: _refuse, WriteError: _refuse},
    )


class _Pages:
    """The handlers of the page's requests; for the arguments see `annotation_app`."""

    def __init__(self, sample: AnnotationSample, store: AnswerStore, names: Sequence[str]) -> None:
        self.sample = sample
        self.store = store
        self.names = names

    async def file(self, request: Request) -> Response:
        """Answer with a file of the page."""
        name, media_type = FILES[request.url.path]
        return Response((PAGE / name).read_bytes(), media_type=media_type)

    async def annotators(self, request: Request) -> Response:
        """Answer with the annotators and their progress, whether anybody may rate, and the number of pairs."""
        answers = self.store.answers()
        pairs = len(self.sample.items)
        found = []
        for name in self.names or list(answers):
            found.append({"name": name, **asdict(progress_of(answers.get(name, {}), pairs))})
        return JSONResponse({"annotators": found, "open": not self.names, "pairs": pairs})

    async def items(self, request: Request) -> Response:
        """Answer with the pairs for an annotator in their order, each with the rating so far."""
        name = self._name(request.query_params.get("annotator"))
        answers = self.store.answers().get(name, {})
        shown = []
        for number, turned in presented(self.sample, name):
            item = self.sample.items[number]
            sentences = [item.reference, item.translation]
            if turned:
                sentences.reverse()
            answer = _shown(answers.get(number, Rating()))
            shown.append({"item": number, "sentences": sentences, "translation": int(not turned), "answer": answer})
        return JSONResponse({"annotator": name, "items": shown})

    async def answer(self, request: Request) -> Response:
        """Store a rating, and answer with it; if it is outdated, answer with the stored one and the status 409."""
        try:
            values = parse_json(await request.body())
        except ValueError:
            raise InputError("an answer must be JSON") from None
        rating = from_json(Rating, values, "an answer")
        name = self._name(values.get("annotator"))
        try:
            stored = self.store.put(name, request.path_params["item"], rating)
        except Outdated as error:
            return JSONResponse({"error": str(error), "answer": _shown(error.stored)}, 409)
        return JSONResponse({"answer": _shown(stored)})

    def _name(self, name: object) -> str:
        """Return the name of an annotator as it was first stored; reject people who may not rate here."""
        known = self.store.name(name)
        if not self.names:
            return known
        for allowed in self.names:
            if allowed.casefold() == known.casefold():
                return allowed
        raise InputError(f"this page is for {', '.join(self.names)}, not for {known}")


def _shown(answer: Rating) -> dict[str, Any]:
    """Return the JSON values of a rating for the page, without its time."""
    values = asdict(answer)
    del values["changed"]
    return values


async def _refuse(request: Request, error: Exception) -> Response:
    # Errors of writing are faults of the server, all others of the request.
    return JSONResponse({"error": str(error)}, 503 if isinstance(error, WriteError) else 400)
