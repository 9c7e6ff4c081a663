"""Files of known datasets read as pairs; if they hold sets of paraphrases, every two sentences of a set are a pair."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paranmt_hf.corpus.reading.labels import LABEL, Wanted
from paranmt_hf.corpus.reading.normalisation import decode
from paranmt_hf.corpus.reading.phrases import BAR, PhraseFiles, features_of, first_line, is_rule
from paranmt_hf.corpus.reading.presets import Preset, find_layout, language_of_file, read_fields
from paranmt_hf.corpus.reading.readers import Reader
from paranmt_hf.corpus.reading.tables import Piece, file_identity
from paranmt_hf.corpus.release.schema import SIDES
from paranmt_hf.errors import InputError
from paranmt_hf.util.files import existing

# Largest number of sentences in a set, because the number of pairs grows with its square. The sets of TaPaCo have far
# fewer.
MOST_SENTENCES = 2000


class Sentences(NamedTuple):
    """Consecutive sentences [sentence] and the names of the sets they belong to [sentence], both binary."""

    sets: pa.Array
    text: pa.Array


def pairs_of_sets(blocks: Iterable[Sentences], label: str) -> Iterator[tuple[pa.Array, pa.Array]]:
    """Pair every two sentences of a set, the earlier one first.

    One set and one block are in memory at a time.

    Args:
        blocks: Sentences in order, those of a set one after the other; a set may go on in the next block.
        label: Description of the source, for errors.

    Yields:
        First and second sentences [pair], binary.
    """
    held = Sentences(pa.array([], pa.binary()), pa.array([], pa.binary()))
    for block in blocks:
        sets = pa.concat_arrays([held.sets, block.sets])
        text = pa.concat_arrays([held.text, block.text])
        if not len(sets):
            continue
        # The index at which each set begins.
        codes = sets.dictionary_encode().indices.to_numpy(zero_copy_only=False)
        starts = np.append(0, np.flatnonzero(codes[1:] != codes[:-1]) + 1)
        # The last set may continue in the next block.
        last_start = int(starts[-1])
        yield _pairs(text.slice(0, last_start), starts[:-1], last_start, label)
        held = Sentences(sets.slice(last_start), text.slice(last_start))
        _check_sizes([len(held.text)], label)
    if len(held.text):
        yield _pairs(held.text, np.zeros(1, np.int64), len(held.text), label)


def _pairs(text: pa.Array, starts: np.ndarray, end: int, label: str) -> tuple[pa.Array, pa.Array]:
    """Pair every two sentences of each set in a block.

    Args:
        text: Sentences [sentence], binary; sets one after the other.
        starts: Index [set] of the first sentence of each set.
        end: Number of sentences.
        label: Description of the source, for errors.

    Returns:
        First and second sentences [pair], binary.
    """
    sizes = np.diff(np.append(starts, end))
    _check_sizes(sizes, label)
    rows = np.arange(end)
    # The number of sentences that follow each one in its set, which is the number of pairs it comes first in.
    following = np.repeat(starts + sizes, sizes) - rows - 1
    first = np.repeat(rows, following)
    before = np.cumsum(following) - following
    second = first + 1 + np.arange(first.size) - np.repeat(before, following)
    return text.take(pa.array(first)), text.take(pa.array(second))


def _check_sizes(sizes: np.ndarray | Sequence[int], label: str) -> None:
    """Reject sets with more than `MOST_SENTENCES` sentences, given the sizes of sets."""
    if np.max(sizes, initial=0) > MOST_SENTENCES:
        raise InputError(
            f"{label}: a set has more than {MOST_SENTENCES:,} sentences, which no set of paraphrases has; look at the "
            "column that names the sets"
        )


class PresetFiles(Reader):
    """Files of a known dataset, all of one layout, read one after the other.

    The columns are `reference`, `translation` and, if the layout has labels, `label`: 1 for a paraphrase, 0 for other
    pairs, null if unknown. `id` is the number of the pair in the files, from 0.

    Args:
        preset: The dataset.
        files: Its files.
        label: Which labelled pairs are kept: paraphrases (`1`, the default), others (`0`) or `any`. Files whose labels
            are hidden need `any`.
    """

    def __init__(self, preset: Preset, files: Sequence[Path], *, label: Wanted | None = None) -> None:
        self.files, self.preset = existing(files), preset
        self.layout, *others = [find_layout(preset, path) for path in self.files]
        for path, layout in zip(self.files[1:], others, strict=True):
            if layout is not self.layout:
                raise InputError(
                    f"{self.files[0]} and {path} have different layouts of the preset {preset.name} "
                    f"({self.layout.files}; {layout.files}); import them one by one"
                )
        if not self.layout.labelled and label != ("any" if self.layout.hidden_labels else None):
            advice = "leave `label` out"
            if self.layout.hidden_labels:
                advice = "paraphrases cannot be distinguished from other pairs, and `label` any reads all of them"
            raise InputError(
                f"{self.files[0]} of the preset {preset.name} has no labels ({self.layout.files}); {advice}",
                option="label",
                path=self.files[0],
            )
        super().__init__((*SIDES, LABEL) if self.layout.labelled else SIDES, wanted=label or "1")
        self.label = ", ".join(map(str, self.files))

    def source(self) -> dict[str, object]:
        found: dict[str, object] = {
            "kind": "preset",
            "preset": self.preset.name,
            "layout": self.layout.files,
            "files": [file_identity(path) for path in self.files],
        }
        if self.layout.labelled:
            labels = {str(label): meaning for label, meaning in self.preset.labels.items()}
            found |= {"labels": labels, "label_meaning": self.preset.label_meaning}
        return found

    def pieces(self) -> Iterator[Piece]:
        for path in self.files:
            first = 1
            for columns in self._columns(path):
                yield Piece(columns, f"{path}, pair ", first)
                first += len(columns[0])

    def _columns(self, path: Path) -> Iterator[list[pa.Array]]:
        """Read the columns of pairs from one file, block by block.

        Raises:
            InputError: If the preset knows none of the labels in the file, and labels decide which pairs are kept.
        """
        blocks = read_fields(self.layout, path)
        if self.layout.in_sets:
            sentences = (Sentences(block["set"], block["sentence"]) for block in blocks)
            yield from map(list, pairs_of_sets(sentences, str(path)))
            return
        known = not self.layout.labelled
        seen = pa.array([], pa.binary())
        for block in blocks:
            columns = [block[side] for side in SIDES]
            if self.preset.bytes_literals:
                columns = list(map(without_literals, columns))
            if self.layout.labelled:
                labels = read_labels(block[LABEL], self.preset.labels)
                known = known or labels.null_count < len(labels)
                seen = block[LABEL] if len(block[LABEL]) else seen
                columns.append(labels)
            yield columns
        if not known and len(seen) and self.wanted != "any":
            shown = [
                value.decode("utf8", "replace") if isinstance(value, bytes) else value
                for value in seen.unique().to_pylist()[:5]
            ]
            raise InputError(
                f"{path}: expected labels {', '.join(f'{label:g}' for label in self.preset.labels)} in the column "
                f"{self.layout.columns[LABEL]!r}, found {', '.join(map(repr, shown))} alone; `label` any reads the "
                "pairs without their labels"
            )

    def _checked(self, piece: Piece) -> tuple[list[pa.Array], dict[str, np.ndarray]]:
        columns, wrong = super()._checked(piece)
        if self.preset.placeholder is not None:
            absent = [pc.fill_null(pc.equal(text, self.preset.placeholder), False) for text in columns[: len(SIDES)]]
            wrong = {"not translated": np.asarray(pc.or_(*absent)), **wrong}
        return columns, wrong


def read_labels(column: pa.Array, labels: Mapping[float, int]) -> pa.Array:
    """Map the labels [pair] of a file to 1 (paraphrase), 0 (no paraphrase) or null (undecided), float32.

    Args:
        column: Labels as numbers, or as text in bytes.
        labels: What each label means, 1 or 0.
    """
    if pa.types.is_binary(column.type):
        text = pc.utf8_trim_whitespace(decode(column))
        number = pc.match_substring_regex(text, r"^-?[0-9]{1,9}(\.[0-9]{1,9})?$")
        column = pc.if_else(pc.fill_null(number, False), text, pa.scalar(None, pa.string()))
    values = column.cast(pa.float64())
    index = pc.index_in(values, pa.array(list(map(float, labels)), pa.float64()), skip_nulls=True)
    return pa.array(list(labels.values()), pa.float32()).take(index)


def without_literals(texts: pa.Array) -> pa.Array:
    r"""Return texts [pair], binary, with literals such as `b'caf\xc3\xa9'` replaced by the bytes they stand for.

    Texts that are no literals of Python bytes stay as they are.
    """
    if not pc.any(pc.match_substring_regex(texts, rb"""^b('.*'|".*")$""")).as_py():
        return texts
    found = []
    for text in texts.to_pylist():
        with suppress(ValueError, SyntaxError):
            if text is not None and re.fullmatch(rb"""b('.*'|".*")""", text):
                text = ast.literal_eval(text.decode("latin-1"))
        found.append(text)
    return pa.array(found, pa.binary())


def open_preset(
    preset: Preset,
    files: Sequence[Path],
    *,
    label: Wanted | None = None,
    score: str | None = None,
    language: str | None = None,
) -> Reader:
    """Open files of a known dataset.

    Args:
        preset: The dataset.
        files: Its files.
        label: Which labelled pairs are kept; see `PresetFiles` and `PhraseFiles`.
        score: Feature of PPDB for the column `ppdb_score`; None for the one of the preset if the first file has it.
        language: Language of the corpus (ISO 639-1); None if any is fine.

    Raises:
        InputError: If a file fits no layout of the preset, or names a language other than `language`.
    """
    if not preset.of_phrases:
        if score:
            raise InputError(f"`ppdb_score` is for files of PPDB; the preset {preset.name} has no features")
        pairs = PresetFiles(preset, files, label=label)
        for path in pairs.files:
            if language and (found := language_of_file(pairs.layout, path)) not in (None, language):
                raise InputError(
                    f"{path} is in the language {found}, and the corpus in {language}: give `language` {found}"
                )
        return pairs
    for path in existing(files):
        if not is_rule(first_line(path)):
            raise InputError(
                f"{path} fits no layout of the preset {preset.name}: expected lines with {BAR.strip()} between the "
                f"fields {', '.join(preset.layouts[0].fields)}; `format` phrases reads lists of words and their "
                f"paraphrases, and {preset.homepage} has the files of PPDB"
            )
    if score is None and preset.score in features_of(existing(files)[0]):
        score = preset.score
    return PhraseFiles(files, score=score, label=label)
