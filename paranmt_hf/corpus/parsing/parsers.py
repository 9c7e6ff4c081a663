"""Parsers that give constituency trees: by name, from a file, or your own; how sentences are parsed."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from sys import intern
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from filelock import FileLock, Timeout

from paranmt_hf.corpus.parsing.link_grammar import LinkGrammar
from paranmt_hf.corpus.parsing.trees import Tree, linearised, read_at
from paranmt_hf.corpus.reading.heading import Heading
from paranmt_hf.corpus.reading.lines import read_blocks
from paranmt_hf.corpus.reading.readers import LineFiles, Report, TableFiles
from paranmt_hf.corpus.reading.tab_separated import TabSeparated
from paranmt_hf.errors import InputError
from paranmt_hf.hub.client import perhaps_path
from paranmt_hf.text.identity import hash_texts
from paranmt_hf.text.word_rules import ENGLISH
from paranmt_hf.util.files import check_regular, checksum, existing, new_folder, writing
from paranmt_hf.util.optional import require
from paranmt_hf.util.progress import Progress
from paranmt_hf.util.wording import brief

MAX_CHARACTERS = 1_000_000  # Maximum length of a tree; that of a sentence of 1,000 characters has about 10,000


class TreeFile:
    """A parser that looks up trees in a file, plain or packed.

    Its lines are `SENTENCE<tab>TREE` in any order, or trees alone, of which line n belongs to line n of `text`. The
    tree may be empty.
    """

    def __init__(self, path: Path, text: Path | None = None) -> None:
        existing([path])
        self.name = f"the file {path.name}"
        # The file is read once.
        self.at_once: int | None = None
        self.path = path
        self._reader: TableFiles | LineFiles
        if tabs := next(read_blocks(path)).partition(b"\n")[0].count(b"\t"):
            # Sentences may be words and have quotes: line 1 is a row, and quotes are text.
            table = TabSeparated(path, Heading(tabs + 1, (), ()))
            columns = {"sentence": "1", "tree": "2"}
            self._reader = TableFiles([table], columns, optional=["tree"], max_characters=MAX_CHARACTERS)
        elif text is not None:
            self._reader = LineFiles({"sentence": text, "tree": path}, max_characters=MAX_CHARACTERS)
        else:
            raise InputError(
                f"{path}: expected lines SENTENCE<tab>TREE, but the first line has no tab; trees alone can only "
                "belong to a text file with a sentence on each line"
            )

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Read the file: `id` (the line, from 0), `sentence` and `tree`, null or empty if missing."""
        return iter(self._reader.batches(Report()))

    def trees(self, sentences: Sequence[str]) -> Iterator[Tree | None]:
        """Look up the tree of each sentence; None if it is not in the file or has no tree."""
        wanted = pa.array(sentences, pa.string()).unique()
        # Text, with the number of its line, takes a tenth of the memory of trees.
        found: dict[str, tuple[str | None, int]] = {}
        for batch in self.batches():
            chosen = batch.filter(pc.is_in(batch["sentence"], value_set=wanted))
            for line, sentence, tree in zip(*(column.to_pylist() for column in chosen.columns), strict=True):
                found.setdefault(sentence, (tree, line + 1))
        if len(wanted) and not found:
            raise InputError(
                f"{self.path} has no tree of the {len(wanted):,} sentences, such as {wanted[0].as_py()!r}; parse the "
                "same sentences (`paranmt stats --write-samples` writes a sample)"
            )
        for sentence in sentences:
            text, line = found.get(sentence, (None, 0))
            yield read_at(text, f"{self.path}:{line}") if text else None


INDEX_SCHEMA = pa.schema({"sentence": pa.large_string(), "tree": pa.large_string(), "line": pa.int64()})
TREES, HASHES, TREE_ROWS = "trees.arrow", "hashes.npy", "rows.npy"


def write_index(file: TreeFile, folder: Path) -> None:
    """Write the index of a file of trees into a folder, atomically; takes 32 bytes of memory for each line."""
    with new_folder(folder) as aside:
        hashes = [np.empty(0, np.uint64)]
        with pa.OSFile(str(aside / TREES), "wb") as sink, pa.ipc.new_file(sink, INDEX_SCHEMA) as writer:
            for batch in file.batches():
                table = pa.table([batch["sentence"], batch["tree"], pc.add(batch["id"], 1)], names=INDEX_SCHEMA.names)
                writer.write_table(table.cast(INDEX_SCHEMA))
                hashes.append(hash_texts(batch["sentence"]))
        joined = np.concatenate(hashes)
        # The first tree of a sentence counts.
        order = np.argsort(joined, kind="stable")
        np.save(aside / HASHES, joined[order])
        np.save(aside / TREE_ROWS, order)


class TreeIndex:
    """A parser that looks up trees in an index; `name` is the file name of the trees."""

    at_once: int | None = 10_000
    _temporary: tempfile.TemporaryDirectory[str]

    def __init__(self, folder: Path, name: str) -> None:
        self.name = name
        self._trees = pa.ipc.open_file(pa.memory_map(str(folder / TREES))).read_all()
        self._hashes, self._rows = (np.load(folder / file, mmap_mode="r") for file in (HASHES, TREE_ROWS))

    @classmethod
    def of(cls, file: TreeFile) -> TreeIndex:
        """Index a file in a temporary folder, which goes with this object."""
        folder = tempfile.TemporaryDirectory(prefix="paranmt-trees-")
        write_index(file, Path(folder.name) / "index")
        index = cls(Path(folder.name) / "index", file.name)
        index._temporary = folder
        return index

    def trees(self, sentences: Sequence[str]) -> Iterator[Tree | None]:
        """Look up the tree of each sentence; None if it is not in the file or has no tree."""
        wanted = pa.array(sentences, pa.large_string())
        hashes = hash_texts(wanted)
        places = np.searchsorted(self._hashes, hashes)
        inside = np.flatnonzero(places < len(self._hashes))
        present = inside[self._hashes[places[inside]] == hashes[inside]]
        found = self._trees.take(pa.array(self._rows[places[present]]))
        entries = zip(*(found[name].to_pylist() for name in INDEX_SCHEMA.names), strict=True)
        texts = dict(zip(present.tolist(), entries, strict=True))
        for index, sentence in enumerate(sentences):
            own, text, line = texts.get(index, ("", None, 0))
            yield read_at(text, f"{self.name}:{line}") if text and own == sentence else None


NAMED_PARSERS = ("link-grammar", "stanza")
# The first field of the first line of a file of kept trees; the second is the name of the parser.
PARSER_LINE = "#parser"


class Parser(Protocol):
    """Gives the constituency trees of sentences.

    `name` has the version and everything else that determines the trees; `at_once` is the number of sentences of a
    call of `trees`, None for all of them.
    """

    name: str
    at_once: int | None

    def trees(self, sentences: Sequence[str]) -> Iterable[Tree | None]:
        """Parse sentences, each on one line, white space normalised; None for a sentence without a tree."""


def open_parser(
    parser: str | Path | Parser, *, text: Path | None = None, processes: int = 1, languages: Collection[str] = ()
) -> Parser:
    """Open a parser: `link-grammar` and `stanza`, which parse English, a file of trees, or a parser object.

    A file of trees may follow the lines of `text`, see `TreeFile`; `languages` are ISO 639-1 codes of the sentences.
    """
    if not isinstance(parser, str | Path):
        return parser
    if str(parser) in NAMED_PARSERS:
        if others := sorted(set(languages) - {ENGLISH}):
            raise InputError(
                f"{parser} parses English, and the sentences are in {', '.join(others)}; name a file of trees, or "
                "pass a parser in Python",
                option="parser",
            )
        return StanzaParser() if str(parser) == "stanza" else LinkGrammar(processes=processes)
    path = Path(parser).expanduser()
    if not path.exists():
        raise InputError(
            f"parser {parser}: there is no such file; expected {', '.join(NAMED_PARSERS)} or a file of trees"
            f"{perhaps_path(str(parser), *NAMED_PARSERS)}",
            option="parser",
        )
    return TreeFile(path, text)


def linearised_trees(parser: Parser, sentences: list[str]) -> list[str | None]:
    """Return the linearised tree of each sentence; None for a sentence without one."""
    step = parser.at_once or max(1, len(sentences))
    blocks = (parser.trees(sentences[start : start + step]) for start in range(0, len(sentences), step))
    return [None if tree is None else linearised(tree) for block in blocks for tree in block]


@dataclass(frozen=True)
class TreeSource:
    """What gives trees in worker processes."""

    # Name of a parser, the folder of an index of trees, or a parser, which workers receive pickled
    parser: str | Path | Parser
    name: str  # Name of the parser with its version
    checksum: str | None = None  # Checksum of the file of trees; None for other parsers

    @classmethod
    def of(cls, parser: str | Path | Parser, index: Path, *, languages: Collection[str] = ()) -> TreeSource:
        """Describe the source of a parser (see `open_parser`); a file of trees gets its index in `index`."""
        opened = open_parser(parser, languages=languages)
        if isinstance(opened, TreeFile):
            return cls(index, opened.name, checksum(opened.path))
        return cls(parser if not isinstance(parser, Path) else str(parser), opened.name)

    def write_index(self, parser: str | Path | Parser) -> None:
        """Write the index of a file of trees, unless it is there."""
        if self.checksum is not None and isinstance(self.parser, Path) and not self.parser.exists():
            write_index(TreeFile(Path(str(parser)).expanduser()), self.parser)

    @property
    def identity(self) -> dict[str, Any]:
        return {"name": self.name, **({"sha256": self.checksum} if self.checksum else {})}

    def load(self) -> Parser:
        parser: Parser
        parser = TreeIndex(self.parser, self.name) if isinstance(self.parser, Path) else open_parser(self.parser)
        if parser.name != self.name:
            raise InputError(f"this worker has {parser.name}, expected {self.name}; install the same version")
        return parser


def parse_sentences(
    parser: Parser,
    sentences: Sequence[str],
    cut: Callable[[Tree], str] = str,
    *,
    keep: Path | None = None,
    label: str = "parse",
) -> list[str | None]:
    """Parse sentences in blocks, each distinct one once, and return what was cut from the tree of each [sentence].

    Only what `cut` returns of a tree, such as its top levels, stays in memory; None is a sentence without a tree. The
    file `keep`, a line `SENTENCE<tab>TREE` for each sentence as `TreeFile` reads them, is written by one process at a
    time; sentences in it are not parsed again.
    """
    with nullcontext() if keep is None else _locked(keep):
        return _parse_sentences(parser, sentences, cut, keep, label)


@contextmanager
def _locked(keep: Path) -> Iterator[None]:
    """Lock a file of trees, because the lines of two processes would mix."""
    lock = FileLock(keep.with_name(f".{keep.name}.lock"))
    with writing(keep):
        try:
            lock.acquire(blocking=False)
        except Timeout:
            text = f"another process writes trees into {keep}; wait for it, or name another file"
            raise InputError(text, path=keep) from None
    try:
        yield
    finally:
        lock.release()


def _parse_sentences(
    parser: Parser, sentences: Sequence[str], cut: Callable[[Tree], str], keep: Path | None, label: str
) -> list[str | None]:
    distinct = list(dict.fromkeys(sentences))
    found = _read_kept(keep, parser.name, set(distinct), cut) if keep is not None else {}
    missing = [sentence for sentence in distinct if sentence not in found]
    step = parser.at_once or max(1, len(missing))
    with Progress(label, total=len(distinct), done=len(distinct) - len(missing)) as progress:
        for start in range(0, len(missing), step):
            block, lines = missing[start : start + step], []
            for sentence, tree in zip(block, parser.trees(block), strict=True):
                found[sentence] = None if tree is None else intern(cut(tree))
                if keep is not None:
                    lines.append(f"{sentence}\t{tree or ''}\n")
            if keep is not None:
                with writing(keep), keep.open("a", encoding="utf8", newline="\n") as file:
                    file.writelines(lines)
                    file.flush()
                    os.fsync(file.fileno())
            progress.advance_to(len(distinct) - len(missing) + start + len(block))
    return [found[sentence] for sentence in sentences]


def _read_kept(path: Path, parser: str, wanted: Collection[str], cut: Callable[[Tree], str]) -> dict[str, str | None]:
    """Read the trees of an earlier run; an incomplete last line is cut off."""
    check_regular(path)
    head = f"{PARSER_LINE}\t{parser}\n"
    found: dict[str, str | None] = {}
    with writing(path), path.open("a+b") as file:
        file.seek(0)
        whole = len(first := file.readline())
        if first != head.encode():
            if not head.encode().startswith(first):
                start = brief(first.decode(errors="replace").strip())
                raise InputError(f"{path} begins with {start}, expected trees of {parser}; name another file")
            file.truncate(0)
            file.write(head.encode())
            return found
        for number, line in enumerate(file, 2):
            if not line.endswith(b"\n"):
                break
            whole += len(line)
            sentence, _, tree = line.decode(errors="replace").rstrip("\n").partition("\t")
            if sentence in wanted:
                found[sentence] = intern(cut(read_at(tree, f"{path}:{number}"))) if tree else None
        file.truncate(whole)
    return found


PROCESSORS = "tokenize,pos,constituency"
GET_MODELS = f"python -c \"import stanza; stanza.download('en', processors='{PROCESSORS}')\""


class StanzaParser:
    """The English constituency parser of stanza: categories of the Penn Treebank, parts of speech included."""

    at_once: int | None = 100

    def __init__(self) -> None:
        stanza: Any = require("stanza", "parse")
        try:
            self._pipeline = stanza.Pipeline(
                "en", processors=PROCESSORS, download_method=None, tokenize_no_ssplit=True, verbose=False
            )
        # Stanza has several errors for missing files, not all of them OSErrors.
        except Exception as error:
            reason = " ".join(str(error).split())
            raise InputError(
                f"stanza's English models cannot be loaded ({reason}); download them: "
                f"{GET_MODELS}, or take trees from a file"
            ) from None
        self.name = f"stanza {stanza.__version__}"

    def trees(self, sentences: Sequence[str]) -> list[Tree | None]:
        """Parse sentences; a sentence that stanza splits has the tree of its first part."""
        present = [index for index, sentence in enumerate(sentences) if sentence.strip()]
        documents = self._pipeline.bulk_process([sentences[index] for index in present])
        found: list[Tree | None] = [None] * len(sentences)
        for index, document in zip(present, documents, strict=True):
            parsed = [sentence.constituency for sentence in document.sentences]
            if parsed and parsed[0] is not None:
                found[index] = _plain(parsed[0])
        return found


def _plain(tree: Any) -> Tree:  # noqa: ANN401 - a tree of stanza
    """Convert a tree of stanza, whose words are nodes without children."""
    return Tree(tree.label, tuple(_plain(child) if child.children else child.label for child in tree.children))
