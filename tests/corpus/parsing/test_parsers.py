"""Parsers: a tree of each sentence in its order, whatever goes wrong on the way."""

import gzip
import importlib.machinery
import shutil
import sys
import types
from collections import Counter

import numpy as np
import pytest

from paranmt_hf import InputError
from paranmt_hf.corpus.parsing.link_grammar import LinkGrammar
from paranmt_hf.corpus.parsing.parsers import open_parser, parse_sentences
from paranmt_hf.corpus.parsing.tree_file import TreeFile
from paranmt_hf.corpus.parsing.trees import Tree, read_tree, top_levels
from tests.refused import refused


class Words:
    """Gives a flat tree, none for a question, and notes what it was given."""

    name, at_once = "words 1", 2

    def __init__(self):
        self.given = []

    def trees(self, sentences):
        self.given.append(list(sentences))
        return [None if "?" in each else Tree("S", tuple(each.split())) for each in sentences]


SENTENCES = ["a b", "why ?", "c", "a b", "d e f"]
BRACKETS = ["(S a b)", None, "(S c)", "(S a b)", "(S d e f)"]
TREES = [Tree("S", ("a", "b")), None, Tree("S", ("c",)), Tree("S", ("a", "b")), Tree("S", ("d", "e", "f"))]


def test_each_sentence_is_parsed_once_in_blocks():
    parser = Words()
    assert parse_sentences(parser, SENTENCES) == BRACKETS
    assert parser.given == [["a b", "why ?"], ["c", "d e f"]]
    assert parse_sentences(parser, []) == []


def test_kept_trees_are_not_parsed_again(tmp_path):
    keep = tmp_path / "kept.tsv"
    assert parse_sentences(Words(), SENTENCES[:3], lambda tree: str(len(tree.children)), keep=keep) == ["2", None, "1"]
    assert keep.read_text() == "#parser\twords 1\na b\t(S a b)\nwhy ?\t\nc\t(S c)\n"
    again = Words()
    assert parse_sentences(again, SENTENCES, keep=keep) == BRACKETS
    assert again.given == [["d e f"]]
    # What is kept is a file of trees like any other.
    assert list(TreeFile(keep).trees(SENTENCES)) == TREES


@pytest.mark.parametrize("cut", [0, 5, 17, 20, 28, 29, 36, 40])
def test_a_kill_in_the_middle_of_writing(tmp_path, cut):
    keep = tmp_path / "kept.tsv"
    whole = "#parser\twords 1\na b\t(S a b)\nwhy ?\t\nc\t(S c)\n"
    keep.write_text(whole[:cut])
    parser = Words()
    assert parse_sentences(parser, SENTENCES[:3], keep=keep) == BRACKETS[:3]
    assert keep.read_text() == whole
    assert sum(map(len, parser.given)) == 3 - max(0, whole[:cut].count("\n") - 1)


@pytest.mark.parametrize("content", ["#parser\tothers 2\na\t(S a)\n", "my notes\n", b"\xff\xfe\n", "my notes"])
def test_trees_of_another_parser_are_refused_and_stay(tmp_path, content):
    keep = tmp_path / "kept.tsv"
    keep.write_bytes(content if isinstance(content, bytes) else content.encode())
    before = keep.read_bytes()
    with refused(path=keep):
        parse_sentences(Words(), SENTENCES, keep=keep)
    assert keep.read_bytes() == before


def test_a_kept_line_that_is_no_tree(tmp_path):
    keep = tmp_path / "kept.tsv"
    keep.write_text("#parser\twords 1\na b\t(S a b)\nc\t(S c\n")
    with refused():
        parse_sentences(Words(), SENTENCES, keep=keep)


def test_a_file_of_sentences_and_trees(tmp_path):
    path = tmp_path / "trees.tsv.gz"
    lines = [
        "  a   b\t(S a b)",
        "other\t(S",
        "why ?\t",
        "c\t(S c)",
        "c\t(X c)",
        "Übung é\t(NP Übung é)",
        "d e f\t(S d e f)",
    ]
    path.write_bytes(gzip.compress("\n".join(lines).encode()))
    found = TreeFile(path)
    # White space is normalised as that of corpora; of two trees the first counts; what is not asked for is not read.
    assert list(found.trees(SENTENCES)) == TREES
    assert list(found.trees(["c", "unknown", "Übung é"])) == [Tree("S", ("c",)), None, Tree("NP", ("Übung", "é"))]
    assert list(found.trees([])) == []
    with refused():
        list(found.trees(["other"]))
    with refused(path=path):
        parse_sentences(found, ["x", "y", "x"])


def test_a_file_of_trees_beside_its_text(tmp_path):
    text, trees = tmp_path / "text", tmp_path / "trees"
    text.write_text("\n".join(SENTENCES) + "\n")
    trees.write_text("(S a b)\n\n(S c)\n(S a b)\n(S d e f)\n")
    assert list(TreeFile(trees, text).trees(SENTENCES)) == TREES
    with refused(path=trees):
        TreeFile(trees)
    trees.write_text("(S a b)\n\n(S c)\n(S a b\n(S d e f)\n")
    assert list(TreeFile(trees, text).trees(["c"])) == [TREES[2]]
    trees.write_text("(S a b)\n(S c)\n")
    with refused():
        list(TreeFile(trees, text).trees(["c"]))
    with refused(path=tmp_path / "none"):
        TreeFile(tmp_path / "none")


def test_many_sentences_of_a_file(tmp_path):
    random = np.random.default_rng(0)
    sentences = [" ".join(map(str, random.integers(0, 9, 3))) for _ in range(3000)]
    path = tmp_path / "trees.tsv"
    path.write_text("".join(f"{sentence}\t(S {number})\n" for number, sentence in enumerate(sentences)))
    wanted = [*sentences[::7], "none of these"]
    expected = [f"(S {sentences.index(each)})" if each in sentences else None for each in wanted]
    parser, keep = TreeFile(path), tmp_path / "kept.tsv"
    assert parse_sentences(parser, wanted) == expected
    assert "_index" not in vars(parser), "the file is read as a stream, and not copied"
    assert list(map(str, parser.trees(wanted[:50]))) == expected[:50]
    assert parse_sentences(parser, wanted, keep=keep) == parse_sentences(parser, wanted, keep=keep) == expected


PROGRAM = r"""#!/bin/sh
if [ "$1" = --version ]; then echo "Version: link-grammar-9.8"; exit; fi
echo "$@" >> "$0.calls"
while read -r line; do
  case "$line" in
    !width=16381) echo "width set to 16381" ;;
    *hang*) exec sleep 60 ;;
    *die*) exit 3 ;;
    *odd*) echo "(S a" ;;
    *none*) echo ;;
    *) echo "Found"; echo "(S $line)"; echo ;;
  esac
done
"""


@pytest.fixture
def program(tmp_path, monkeypatch):
    """A program that answers as link-parser does, and hangs or dies when told to."""
    path = tmp_path / "bin" / "link-parser"
    path.parent.mkdir()
    path.write_text(PROGRAM)
    path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{path.parent}:/usr/bin:/bin")
    return path


@pytest.mark.slow
def test_a_program_that_hangs_and_dies(program):
    parser = LinkGrammar(seconds=1, processes=2, grace=1)
    assert parser.name == "link-grammar 9.8, at most 1 s for a sentence"
    given = ["a b", "none", "", " ", "hang", "c", "die", "odd", "!help", "d  e\nf"]
    # Each comes back in its place; what hangs, dies or is no tree has none, and the next one has its tree again.
    expected = [Tree("S", tuple(line.split())) if line in ("a b", "c", "!help", "d  e\nf") else None for line in given]
    assert parser.trees(given) == expected
    assert parser.trees([]) == []
    calls = program.with_name("link-parser.calls").read_text().split("\n")[:-1]
    assert 3 <= len(calls) <= 4
    assert all("-timeout=1" in call and "-null=0" in call for call in calls)


def test_one_process_serves_many_sentences(program):
    parser = LinkGrammar(seconds=1)
    for _ in range(3):
        assert len(parser.trees(["a"] * 40)) == 40
    assert len(program.with_name("link-parser.calls").read_text().split("\n")) == 2
    process = parser._processes[0]
    stop, process_stop = process._stop, process._stop.peek()[2][0]
    assert process_stop.poll() is None
    del parser, process
    assert not stop.alive and process_stop.poll() is not None, "gone with the parser"


def test_a_program_that_does_not_start(program):
    program.write_text("#!/bin/sh\nexit 1\n")
    with refused():
        LinkGrammar().trees(["a"])


@pytest.mark.parametrize("parser", ["link-grammar", "stanza", "stanford"])
def test_parsers_that_are_not_there(monkeypatch, without, tmp_path, parser):
    monkeypatch.setenv("PATH", str(tmp_path))
    without("stanza")
    with pytest.raises(InputError):
        open_parser(parser)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("link-parser") is None, reason="needs the program link-parser (Debian: link-grammar)")
def test_link_grammar_itself():
    given = [
        "A man is playing a guitar.",
        "!of the of % .",
        "% of (them) ran.",
        "The dog (a small one) barks.",
        "width",
    ]
    found = LinkGrammar(processes=2).trees(given)
    assert top_levels(found[0]) == "(S (NP) (VP))"
    assert found[1] is None
    assert top_levels(found[3])[:2] == "(S"
    assert LinkGrammar().trees(given) == found


class Node:
    def __init__(self, label, *children):
        self.label, self.children = label, children


class Sentence:
    def __init__(self, tree):
        self.constituency = tree


@pytest.fixture
def stanza(monkeypatch):
    """The part of stanza that is used; its models are not free to be fetched in a test."""
    module = types.ModuleType("stanza")
    module.__spec__ = importlib.machinery.ModuleSpec("stanza", None)
    module.__version__ = "1.15.0"
    asked = Counter()

    class Pipeline:
        def __init__(self, language, **options):
            asked.update([language, options["processors"]])
            assert options["download_method"] is None and options["tokenize_no_ssplit"] is True
            if getattr(module, "missing", False):
                raise FileNotFoundError("Resources file not found at:\n resources.json")

        def bulk_process(self, texts):
            labels = [["X", "Y"] if text == "two" else ["S"] for text in texts]
            return [
                types.SimpleNamespace(sentences=[Sentence(Node("ROOT", Node(label, Node(text)))) for label in each])
                for each, text in zip(labels, texts, strict=True)
            ]

    module.Pipeline = Pipeline
    monkeypatch.setitem(sys.modules, "stanza", module)
    return module


def test_stanza(stanza):
    parser = open_parser("stanza")
    assert parser.name == "stanza 1.15.0"
    expected = [Tree("ROOT", (Tree("S", ("(",)),)), None, read_tree("(ROOT (X two))")]
    assert parser.trees(["(", " ", "two"]) == expected


def test_stanza_without_models(stanza):
    stanza.missing = True
    with refused():
        open_parser("stanza")
