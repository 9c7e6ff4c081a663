"""Files of phrase pairs as columns, in bounded memory: PPDB of either version, and lists of words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from paranmt_hf.corpus.bitext.lines import existing, file_identity
from paranmt_hf.corpus.bitext.readers import MAX_CHARACTERS, Piece, Reader
from paranmt_hf.corpus.phrases.lines import Lines, read_text_lines
from paranmt_hf.corpus.phrases.ppdb import BAR, feature_names, has_gaps, parse_rules
from paranmt_hf.corpus.phrases.word_list import FIRST_LINES, looks_like_sentences, parse_listed
from paranmt_hf.errors import InputError

SIDES = ("reference", "translation")
SCORE = "ppdb_score"


class PhraseFiles(Reader):
    """Files of phrase pairs, read one after the other; plain, .gz, .xz or .zst.

    Each file is of one form, that of its first line: lines of PPDB, or a word and its paraphrases. In lines of PPDB
    that are syntactic rules, with gaps (`[NP,1] 's [NN,2]`), there is no phrase; they are dropped and counted.

    The columns are `reference`, the phrase, and `translation`, its paraphrase; with a score also `ppdb_score`, null
    where the feature is `NA`. `id` is the line of PPDB, or the pair of a list, from 0.

    Args:
        files: The files.
        score: A feature of PPDB that becomes the score, such as `PPDB2.0Score`.
        max_characters: Rows with a longer side are dropped.

    Raises:
        InputError: A file is missing, empty or a folder, its first line is malformed, or it has no such feature.
    """

    def __init__(
        self, files: Sequence[Path], *, score: str | None = None, max_characters: int = MAX_CHARACTERS
    ) -> None:
        scores = (SCORE,) if score else ()
        super().__init__((*SIDES, *scores), numbers=scores, optional=scores, max_characters=max_characters)
        self.files, self.score = existing(files), score
        self.label = ", ".join(map(str, self.files))
        for path in self.files:
            first = first_line(path)
            if score and not is_rule(first):
                raise InputError(
                    f"{path} is a list of words and their paraphrases, which has no feature {score}; leave out the "
                    "score"
                )
            _parse(Lines(pa.array([first]), path, 1), score, rules=is_rule(first))

    def source(self) -> dict[str, object]:
        """Name and hash the files."""
        return {"kind": "phrases", "files": [file_identity(path) for path in self.files], "score": self.score}

    def pieces(self) -> Iterator[Piece]:
        """Read the files in order, block by block."""
        for path in self.files:
            rules = None
            for lines in read_text_lines(path):
                rules = is_rule(lines.text[0].as_py()) if rules is None else rules
                columns = _parse(lines, self.score, rules=rules)
                yield Piece([_as_read(column) for column in columns], f"{path}, line ", lines.first)

    def _checked(self, piece: Piece) -> tuple[list[pa.Array], dict[str, np.ndarray]]:
        columns, wrong = super()._checked(piece)
        gaps = has_gaps(columns[0]) | has_gaps(columns[1])
        return columns, {"syntactic rules": gaps, **wrong}


def _parse(lines: Lines, score: str | None, *, rules: bool) -> list[pa.Array]:
    return parse_rules(lines, score) if rules else parse_listed(lines)


def _as_read(column: pa.Array) -> pa.Array:
    """Give text as the bytes it was, as every reader does."""
    return column.cast(pa.binary()) if pa.types.is_string(column.type) else column


def first_line(path: Path) -> str:
    """Read the first line of a text file.

    Raises:
        InputError: There is none, or it cannot be read.
    """
    return str(next(read_text_lines(path)).text[0].as_py())


def is_rule(line: str) -> bool:
    """Tell whether a line is one of PPDB, and not of a list of words."""
    return BAR in line


def holds_sentences(path: Path) -> bool:
    """Tell from its first lines whether a text file holds single sentences, and no list of words.

    Raises:
        InputError: There is no line, or it cannot be read.
    """
    lines = next(read_text_lines(path)).text[:FIRST_LINES].to_pylist()
    return not is_rule(lines[0]) and "\t" not in lines[0] and looks_like_sentences(lines)


def features_of(path: Path) -> list[str]:
    """Names of the features that the first line of a file of PPDB has.

    Raises:
        InputError: The file cannot be read.
    """
    return feature_names(first_line(path))
