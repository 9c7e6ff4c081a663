"""Files of PPDB, and lists of words and phrases with their paraphrases, read as pairs."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paranmt_hf.corpus.reading.labels import LABEL, UNLABELLED, Wanted
from paranmt_hf.corpus.reading.lines import read_blocks, split_lines
from paranmt_hf.corpus.reading.normalisation import decode
from paranmt_hf.corpus.reading.readers import Reader, Report
from paranmt_hf.corpus.reading.tables import Piece, file_identity, refuse_row
from paranmt_hf.corpus.release.schema import SIDES
from paranmt_hf.errors import InputError
from paranmt_hf.util.files import decode_line, existing


@dataclass(frozen=True)
class Lines:
    """Consecutive lines of a file.

    Attributes:
        text: The lines [line], string, without line ends.
        path: The file.
        first: Number of the first line, from 1.
    """

    text: pa.Array
    path: Path
    first: int

    def refuse(self, wrong: np.ndarray | pa.Array, expected: str, found: pa.Array | None = None) -> None:
        """Raise an error about the first line that `wrong`, booleans [line], marks, if there is one.

        The error says what is `expected`; it shows the line, or its value in `found` [line] if that is given.
        """
        column = self.text if found is None else found
        advice = "correct the line, or get the file again"
        refuse_row(wrong, column, f"{self.path}, line ", self.first, expected, advice, path=self.path)


def read_text_lines(path: Path) -> Iterator[Lines]:
    r"""Read a text file, plain or packed, about a megabyte at a time; `\n` and `\r\n` end a line.

    Raises:
        InputError: If a line is not UTF-8.
    """
    first = 1
    for block in read_blocks(path):
        raw = split_lines(block)
        text = decode(raw)
        if text.null_count:
            index = int(np.flatnonzero(np.asarray(text.is_null()))[0])
            decode_line(raw[index].as_py(), path, first + index)
        yield Lines(pc.utf8_rtrim(text, "\r"), path, first)
        first += len(raw)


SCORE = "ppdb_score"
BAR, SEPARATOR = "|||", " ||| "
FORM = "`LHS ||| phrase ||| paraphrase ||| features ||| alignment`"
# Positions of fields in a line of PPDB, from 0.
PHRASE, PARAPHRASE, FEATURES, ENTAILMENT = 1, 2, 3, 5
# Label for each entailment relation of PPDB 2.0 (Pavlick et al. 2015): 1 for a paraphrase, 0 for none. `OtherRelated`
# is neither.
ENTAILMENTS = {"Equivalence": 1, "ForwardEntailment": 1, "ReverseEntailment": 1, "Exclusion": 0, "Independent": 0}


def parse_rules(lines: Lines, score: str | None = None, *, labelled: bool = False) -> list[pa.Array]:
    """Split lines of PPDB into columns [line], string.

    Args:
        lines: The lines.
        score: Name of a feature to read, such as `PPDB2.0Score`; None for none.
        labelled: Whether the entailment relation is read.

    Returns:
        Phrases, paraphrases, then the values of the feature (null if `NA`) and the labels of the relations ("1", "0"
        or null), if they are asked for.

    Raises:
        InputError: If a line is not one of PPDB, or lacks the feature.
    """
    fields = pc.split_pattern(lines.text, SEPARATOR)
    counts = np.asarray(pc.list_value_length(fields))
    lines.refuse((counts < 4) | (counts > 6), f"4 to 6 fields with ` {BAR} ` between them, as in {FORM}")
    starts = np.cumsum(counts) - counts
    flat = fields.flatten()
    sides = [flat.take(pa.array(starts + field)) for field in (PHRASE, PARAPHRASE)]
    for side in sides:
        lines.refuse(pc.equal(pc.utf8_length(side), 0), f"a phrase and a paraphrase, as in {FORM}")
    if score is not None:
        features = flat.take(pa.array(starts + FEATURES))
        found = pc.extract_regex(features, pattern=rf"(?:^|\s){re.escape(score)}=(?P<value>\S*)")
        lines.refuse(found.is_null(), f"a feature {score}=... in the fourth field", features)
        values = pc.struct_field(found, "value")
        sides.append(pc.if_else(pc.equal(values, "NA"), pa.scalar(None, pa.string()), values))
    if labelled:
        index = pa.array(starts + ENTAILMENT, mask=counts <= ENTAILMENT)
        relation = pc.index_in(pc.utf8_trim_whitespace(flat.take(index)), pa.array(list(ENTAILMENTS)))
        sides.append(pa.array(map(str, ENTAILMENTS.values()), pa.string()).take(relation))
    return sides


def has_gaps(phrases: pa.Array) -> np.ndarray:
    """Return which phrases [phrase] are patterns of a syntactic rule, with gaps such as `[NN,1]`."""
    gap = r"(?:^|\s)\[[^\[\]\s]+,\d+\](?:\s|$)"
    return np.asarray(pc.fill_null(pc.match_substring_regex(phrases, gap), False))


LISTED = "a word and its paraphrases, with blanks between them"
_END = re.compile(r"""\w ?[.!?]["')\u2019\u201d]*$""")


def parse_listed(lines: Lines) -> list[pa.Array]:
    """Split lines with a word and its paraphrases, separated by blanks, into pairs.

    Returns:
        The word and the paraphrase of each pair [pair], both string.

    Raises:
        InputError: If a line has fewer than two words, or looks like PPDB or TSV.
    """
    lines.refuse(pc.match_substring(lines.text, BAR), f"{LISTED}, as on the first line, and not {FORM}")
    lines.refuse(pc.match_substring(lines.text, "\t"), f"{LISTED}, and no tab (`paranmt import` reads TSV files)")
    parts = pc.split_pattern(lines.text, " ")
    line_of, words = np.asarray(pc.list_parent_indices(parts)), parts.flatten()
    written = np.asarray(pc.greater(pc.utf8_length(words), 0))
    line_of, words = line_of[written], words.filter(pa.array(written))
    counts = np.bincount(line_of, minlength=len(lines.text))
    lines.refuse(counts < 2, LISTED)
    starts = np.cumsum(counts) - counts
    paraphrases = np.ones(len(words), bool)
    paraphrases[starts] = False
    return [words.take(pa.array(np.repeat(starts, counts - 1))), words.filter(pa.array(paraphrases))]


def looks_like_sentences(lines: Sequence[str]) -> bool:
    """Whether the first lines of a file are sentences rather than a list of words and their paraphrases.

    A line of three words or more looks like a sentence if a word is repeated, if it ends with a full stop, or if it
    begins with the same word as an earlier line other than the previous one. In a list, each word has its own line,
    and each paraphrase comes once.
    """
    starts: set[str] = set()
    found, before = 0, ""
    for line in lines:
        words = line.lower().split()
        if not words:
            continue
        begins_again = words[0] in starts and words[0] != before
        if len(words) > 2 and (begins_again or len(set(words)) < len(words) or _END.search(line.rstrip())):
            found += 1
        before = words[0]
        starts.add(before)
    # Among 1,000 lines of captions or news at least 75 % look like sentences, even in lower case and without
    # punctuation; among lexical paraphrases of PPDB XL at most 2 % do.
    return 3 * found > len(lines)


class PhraseFiles(Reader):
    """Files of phrase pairs, plain or packed, read one after the other.

    A file has the form of its first line: lines of PPDB, or words with their paraphrases. Lines of PPDB that are
    syntactic rules, with gaps (`[NP,1] 's [NN,2]`), are dropped and counted.

    The columns are:

    - `id`: number of the line of PPDB, or of the pair of a list, from 0
    - `reference`: the phrase
    - `translation`: its paraphrase
    - `ppdb_score`: the feature `score`, if one is given; null if it is `NA`
    - `label`: 1, 0 or null by `ENTAILMENTS`, if the first line of the first file has the entailment of PPDB 2.0

    Args:
        files: The files.
        score: Feature of PPDB to read, such as `PPDB2.0Score`.
        label: Which pairs are kept: `1` or `0` for only those with this label, `any` for all, with or without a label;
            None for all except those labelled 0.
    """

    def __init__(self, files: Sequence[Path], *, score: str | None = None, label: Wanted | None = None) -> None:
        self.files, self.score = existing(files), score
        self.labelled = has_entailment(self.files[0])
        if label is not None and not self.labelled:
            raise InputError(
                f"`label` {label}: {self.files[0]} has no entailment, the sixth field of PPDB 2.0; leave it out",
                option="label",
            )
        numbers = [SCORE] if score else []
        columns = (*SIDES, *numbers, *([LABEL] if self.labelled else []))
        super().__init__(columns, numbers=numbers, optional=numbers, wanted=label or "1")
        self._keeps_unlabelled = label is None
        self.label = ", ".join(map(str, self.files))
        for path in self.files:
            first = first_line(path)
            if score and not is_rule(first):
                raise InputError(
                    f"{path} is a list of words and their paraphrases, which has no feature {score}; leave out the "
                    "score"
                )
            self._parse(Lines(pa.array([first]), path, 1), rules=is_rule(first))

    def source(self) -> dict[str, object]:
        labels = {"labels": ENTAILMENTS, "keeps_unlabelled": self._keeps_unlabelled} if self.labelled else {}
        files = [file_identity(path) for path in self.files]
        return {"kind": "phrases", "files": files, "score": self.score, **labels}

    def pieces(self) -> Iterator[Piece]:
        for path in self.files:
            rules = None
            for lines in read_text_lines(path):
                rules = is_rule(lines.text[0].as_py()) if rules is None else rules
                # Readers give text as bytes; the base class decodes it.
                columns = [column.cast(pa.binary()) for column in self._parse(lines, rules=rules)]
                yield Piece(columns, f"{path}, line ", lines.first)

    def _checked(self, piece: Piece) -> tuple[list[pa.Array], dict[str, np.ndarray]]:
        columns, wrong = super()._checked(piece)
        gaps = has_gaps(columns[0]) | has_gaps(columns[1])
        if self._keeps_unlabelled:
            wrong.pop(UNLABELLED, None)
        return columns, {"syntactic rules": gaps, **wrong}

    def _parse(self, lines: Lines, *, rules: bool) -> list[pa.Array]:
        """Return the columns of some lines: lines of PPDB if `rules`, otherwise words with their paraphrases."""
        if rules:
            return parse_rules(lines, self.score, labelled=self.labelled)
        columns = parse_listed(lines)
        if self.labelled:
            columns.append(pa.nulls(len(columns[0]), pa.string()))
        return columns


def first_line(path: Path) -> str:
    """Return the first line of a text file."""
    return str(next(read_text_lines(path)).text[0].as_py())


def is_rule(line: str) -> bool:
    """Whether a line is one of PPDB rather than an entry of a word list."""
    return BAR in line


def is_list(path: Path) -> bool:
    """Whether the first line of a file is a word and its paraphrases rather than a line of PPDB."""
    return not is_rule(first_line(path))


def has_entailment(path: Path) -> bool:
    """Whether the first line of a file has the field for the entailment relation of PPDB 2.0."""
    return first_line(path).count(SEPARATOR) >= ENTAILMENT


def holds_sentences(path: Path) -> bool:
    """Whether a text file seems to hold single sentences rather than pairs of phrases, by its first 1,000 lines."""
    lines = next(read_text_lines(path)).text[:1000].to_pylist()
    return not is_rule(lines[0]) and "\t" not in lines[0] and looks_like_sentences(lines)


def features_of(path: Path) -> list[str]:
    """Return the names of the features in the first line of a file of PPDB; empty for a list."""
    fields = first_line(path).split(SEPARATOR)
    return [part.rpartition("=")[0] for part in "".join(fields[FEATURES : FEATURES + 1]).split() if "=" in part]


WordPairKey = tuple[str, str]


def read_word_scores(path: str | Path, wanted: Collection[WordPairKey]) -> tuple[dict[WordPairKey, float], str]:
    """Read the scores of word pairs from a file of PPDB or a list.

    The score is the feature `PPDB2.0Score` (Pavlick et al. 2015), else `PPDB1.0Score`. In a list, or a file without
    these features, each pair that is there has the score 1. If a pair has several lines, with different parts of
    speech, the first counts.

    Args:
        path: The file.
        wanted: The pairs, in lower case; other pairs are skipped.

    Returns:
        The scores of the pairs that are in the file, and a description of the scores for people.
    """
    path = Path(path).expanduser()
    features = features_of(path)
    score = next((name for name in ("PPDB2.0Score", "PPDB1.0Score") if name in features), None)
    keys = pa.array(["\t".join(pair) for pair in wanted], pa.string())
    scores: dict[WordPairKey, float] = {}
    for batch in PhraseFiles([path], score=score).batches(Report()):
        sides = [pc.utf8_lower(batch[side]) for side in SIDES]
        hits = batch.filter(pc.is_in(pc.binary_join_element_wise(*sides, "\t"), keys))
        values = hits[SCORE].to_pylist() if score else [1.0] * len(hits)
        for left, right, value in zip(*(hits[side].to_pylist() for side in SIDES), values, strict=True):
            if value is not None:
                scores.setdefault((left.lower(), right.lower()), value)
    return scores, f"PPDB{'' if score else ', listed or not'} ({path.name})"
