"""The page on which people rate: a small ASGI application over a sample and its answers.

A person sees the pairs in an order of their own, and of each pair the two sentences in an order of their own; neither
score nor range nor number in the corpus leaves the program.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from paranmt_hf.apps.annotate.labels import Answer, check_name
from paranmt_hf.apps.annotate.sample import Sample
from paranmt_hf.apps.annotate.store import AnswerStore, Outdated
from paranmt_hf.apps.annotate.table import progress_of
from paranmt_hf.corpus.selection import lottery
from paranmt_hf.errors import InputError, WriteError
from paranmt_hf.util.optional import require

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

PAGE = Path(__file__).parents[2] / "assets" / "annotate"
FILES = {"/": "annotate.html", "/annotate.css": "annotate.css", "/annotate.js": "annotate.js"}
TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript"}
# Bytes of an answer; a note of 2,000 characters takes at most 24,000.
BODY_BYTES = 30_000
KEYS = {"annotator", "strength", "fluency", "skipped", "note", "revision"}


def presented(sample: Sample, annotator: str) -> list[tuple[int, bool]]:
    """Order the pairs for an annotator: the same whenever they come back, another for each.

    Args:
        sample: The sample.
        annotator: The name.

    Returns:
        Index of each item in the order in which they are shown, and whether its translation comes first.
    """
    digest = hashlib.sha256(f"{sample.checksum}\0{annotator.casefold()}".encode()).digest()
    numbers = np.arange(len(sample.items))
    order = np.argsort(lottery(numbers, int.from_bytes(digest[:8])), kind="stable")
    sides = lottery(numbers, int.from_bytes(digest[8:16])) >> np.uint64(63)
    return [(int(item), bool(sides[item])) for item in order]


def annotation_app(sample: Sample, store: AnswerStore, names: Sequence[str] = ()) -> Starlette:
    """Make the application.

    Args:
        sample: What is rated.
        store: Where answers go.
        names: Who may rate; empty for anybody, by a name that they choose on the page.

    Raises:
        InputError: starlette is not installed.
    """
    require("starlette", "annotate")
    from starlette.applications import Starlette
    from starlette.routing import Route

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
    """What the addresses answer."""

    def __init__(self, sample: Sample, store: AnswerStore, names: Sequence[str]) -> None:
        self.sample, self.store, self.names = sample, store, names
        self._files = {address: (PAGE / name).read_bytes() for address, name in FILES.items()}

    async def file(self, request: Request) -> Response:
        from starlette.responses import Response

        path = request.url.path
        return Response(self._files[path], media_type=TYPES[Path(FILES[path]).suffix])

    async def annotators(self, request: Request) -> Response:
        answers = self.store.answers()
        names = dict.fromkeys([*self.names, *answers]) if not self.names else self.names
        pairs = len(self.sample.items)
        found = [{"name": name, **asdict(progress_of(answers.get(name, {}), pairs))} for name in names]
        return _json({"annotators": found, "open": not self.names, "pairs": pairs})

    async def items(self, request: Request) -> Response:
        name = self._name(request.query_params.get("annotator"))
        answers = self.store.answers(name).get(name, {})
        shown = []
        for number, turned in presented(self.sample, name):
            item = self.sample.items[number]
            first, second = (item.translation, item.reference) if turned else (item.reference, item.translation)
            answer = answers.get(number, Answer())
            shown.append(
                {"item": number, "sentences": [first, second], "translation": int(not turned)} | _shown(answer)
            )
        return _json({"annotator": name, "items": shown})

    async def answer(self, request: Request) -> Response:
        values = await _body(request)
        name = self._name(values.pop("annotator"))
        try:
            stored = self.store.put(name, request.path_params["item"], Answer(**values))
        except Outdated as error:
            return _json({"error": str(error), **_shown(error.stored)}, status=409)
        return _json(_shown(stored))

    def _name(self, name: object) -> str:
        known = self.store.name(name)
        for allowed in self.names:
            if allowed.casefold() == known.casefold():
                return allowed
        if self.names:
            raise InputError(f"this page is for {', '.join(self.names)}, not for {known}")
        return check_name(known)


def _shown(answer: Answer) -> dict[str, Any]:
    values = asdict(answer)
    del values["changed"]
    return {"answer": values}


async def _body(request: Request) -> dict[str, Any]:
    """Read an answer: a JSON object with exactly its keys."""
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        raise InputError("an answer must be sent as application/json")
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > BODY_BYTES:
            raise InputError(f"an answer has at most {BODY_BYTES:,} bytes")
    try:
        values = json.loads(body)
    except (ValueError, RecursionError):
        raise InputError("an answer must be JSON") from None
    if not isinstance(values, dict) or values.keys() != KEYS:
        raise InputError(f"an answer must be an object with {', '.join(sorted(KEYS))}")
    return values


async def _refuse(request: Request, error: Exception) -> Response:
    # What is wrong with the disk is no fault of the one who asks.
    return _json({"error": str(error)}, status=503 if isinstance(error, WriteError) else 400)


def _json(values: object, status: int = 200) -> Response:
    from starlette.responses import JSONResponse

    return JSONResponse(values, status)
