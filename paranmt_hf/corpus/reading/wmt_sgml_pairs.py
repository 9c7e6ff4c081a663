"""The two sides of a test set of WMT in SGML, aligned by their documents and segments."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from paranmt_hf.corpus.reading.readers import Reader
from paranmt_hf.corpus.reading.tables import Piece, file_identity
from paranmt_hf.corpus.reading.wmt_sgml import WmtSgmlTable
from paranmt_hf.errors import InputError


class WmtSgmlPairs(Reader):
    """Source and reference of each segment; several references of a segment are rows each."""

    def __init__(self, source: Path, reference: Path) -> None:
        super().__init__(["source", "reference"])
        self._source, self._reference = WmtSgmlTable(source), WmtSgmlTable(reference)
        self.label = f"{source} and {reference}"

    def source(self) -> dict[str, object]:
        sides = {"source": self._source, "reference": self._reference}
        return {"kind": "sgml", "files": {name: file_identity(table.path) for name, table in sides.items()}}

    def pieces(self) -> Iterator[Piece]:
        sources = {(one.document, one.number): one.text for one in self._source.segments()}
        missing = dict.fromkeys(sources)
        rows = []
        for one in self._reference.segments():
            key = (one.document, one.number)
            if key not in sources:
                raise _unaligned(*key, self._reference.path, self._source.path)
            missing.pop(key, None)
            rows.append((sources[key], one.text))
        if missing:
            raise _unaligned(*next(iter(missing)), self._source.path, self._reference.path)
        columns = [pa.array(side, pa.string()).cast(pa.binary()) for side in zip(*rows, strict=True)]
        yield Piece(columns, f"{self._reference.path}, segment ", 1)


def _unaligned(document: str, number: str, has: Path, lacks: Path) -> InputError:
    return InputError(
        f"{lacks} has no segment {number!r} in document {document!r}, which {has} has; get both files from the same "
        "test set",
        path=lacks,
    )
