"""Phrase pairs: both versions of PPDB, lists of words, what is dropped, and what is said of bad lines."""

import gzip

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paranmt_hf import InputError, PairSelection
from paranmt_hf.corpus.reading.pairs import Pairs
from paranmt_hf.corpus.reading.phrases import PhraseFiles, features_of, read_word_scores
from paranmt_hf.corpus.reading.readers import Report
from tests.corpus.reading.bitexts import in_blocks
from tests.refused import refused

FEATURES = "PPDB2.0Score={} PPDB1.0Score=9.5 p(e|f)=0.25 Abstract=0 AGigaSim=NA"
RELATED = "[JJ] ||| {} ||| {} ||| " + FEATURES + " ||| 0-0 ||| {}\n"
TWO = RELATED[:-3] + "Equivalence\n"
ONE = "[VP/NP] ||| {} ||| {} ||| Abstract=0 Adjacent=1 p(e|f)=2.5 ||| 0-0 1-1\n"
GAP = "[NP] ||| {} ||| {} ||| PPDB2.0Score=1 ||| ||| Independent\n"


def read(path, **settings):
    report = Report()
    reader = PhraseFiles([path], **settings)
    rows = [tuple(row.values()) for batch in reader.batches(report) for row in batch.to_pylist()]
    return rows, report


def write(path, *lines):
    content = "".join(lines).encode()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


@pytest.mark.parametrize("name", ["ppdb", "ppdb.gz"])
def test_lines_of_ppdb_2(tmp_path, name):
    path = write(tmp_path / name, TWO.format("smart", "very clever", "3.25"), TWO.format("a  b", "c", "-1e-2"))
    assert read(path)[0] == [(0, "smart", "very clever", 1), (1, "a b", "c", 1)]
    assert read(path, score="PPDB2.0Score")[0] == [
        (0, "smart", "very clever", 3.25, 1),
        (1, "a b", "c", pytest.approx(-0.01), 1),
    ]
    # A name is no expression, and NA is no number.
    assert [row[3] for row in read(path, score="p(e|f)")[0]] == [0.25, 0.25]
    assert [row[3] for row in read(path, score="AGigaSim")[0]] == [None, None]
    assert features_of(path) == ["PPDB2.0Score", "PPDB1.0Score", "p(e|f)", "Abstract", "AGigaSim"]


RELATIONS = ("Equivalence", "ForwardEntailment", "ReverseEntailment", "OtherRelated", "Independent", "Exclusion")


@pytest.mark.parametrize(
    ("label", "kept", "dropped"),
    [
        (None, "abcd", {"labelled as no paraphrases": 2}),
        ("1", "abc", {"labelled as no paraphrases": 2, "without a label": 1}),
        ("0", "ef", {"labelled as paraphrases": 3, "without a label": 1}),
        ("any", "abcdef", {}),
    ],
)
def test_entailment_of_ppdb_2_is_a_label(tmp_path, label, kept, dropped):
    lines = [RELATED.format(word, f"{word}s", 1, relation) for word, relation in zip("abcdef", RELATIONS, strict=True)]
    rows, report = read(write(tmp_path / "ppdb", *lines), label=label)
    labels = dict(zip("abcdef", (1, 1, 1, None, 0, 0), strict=True))
    assert [(row[1], row[3]) for row in rows] == [(word, labels[word]) for word in kept]
    assert report.dropped == dropped


def test_lines_without_a_relation_have_no_label(tmp_path):
    one, two = write(tmp_path / "one", ONE.format("a", "b")), write(tmp_path / "two", TWO.format("a", "b", 1))
    list_ = write(tmp_path / "list", "c d\n")
    rows = [row for batch in PhraseFiles([two, one, list_]).batches(Report()) for row in batch["label"].to_pylist()]
    assert rows == [1, None, None]
    with refused("label"):
        PhraseFiles([one], label="0")


def test_training_pairs_leave_out_exclusions(tmp_path):
    lines = [RELATED.format(word, f"{word}s", 1, relation) for word, relation in zip("abcdef", RELATIONS, strict=True)]
    pairs = Pairs([write(tmp_path / "ppdb", *lines)], PairSelection())
    assert [word for table in pairs.batches() for word in table["reference"].to_pylist()] == list("abcd")
    assert pairs.left_out_by == {"pairs labelled as no paraphrases": 2}


def test_lines_of_ppdb_1(tmp_path):
    path = write(tmp_path / "ppdb", ONE.format("get rid of", "remove").replace("\n", "\r\n"), ONE.format("a", "b"))
    assert read(path)[0] == [(0, "get rid of", "remove"), (1, "a", "b")]


def test_rules_with_gaps_are_dropped_and_counted(tmp_path):
    texts = [("[NP,1] of the [NN,2]", "the [NN,2] 's [NP,1]"), ("a", "b"), ("not", "[VP,1]"), ("[nn]", "n [1] ,2]")]
    path = write(tmp_path / "ppdb", *(GAP.format(*pair) for pair in texts))
    rows, report = read(path)
    assert rows == [(1, "a", "b"), (3, "[nn]", "n [1] ,2]")]
    assert (report.read, report.kept, report.dropped) == (4, 2, {"syntactic rules": 2})


def test_a_list_of_words(tmp_path):
    path = write(tmp_path / "list.gz", "smart bright  clever \n", "hard tough\n", "\x1d \x16\n", "old new")
    rows, report = read(path)
    # Control characters are white space, of which nothing is left; blanks alone separate.
    assert rows == [(0, "smart", "bright"), (1, "smart", "clever"), (2, "hard", "tough"), (4, "old", "new")]
    assert report.dropped == {"empty": 1}


def test_blocks_and_files_change_nothing(tmp_path):
    lines = [TWO.format(f"w{n}", f"v{n}", n) for n in range(50)]
    one = write(tmp_path / "one", *lines)
    whole = read(one, score="PPDB2.0Score")[0]
    with in_blocks(100):
        assert read(one, score="PPDB2.0Score")[0] == whole
    halves = [write(tmp_path / f"{n}.gz", *lines[25 * n : 25 * n + 25]) for n in range(2)]
    batches = list(PhraseFiles(halves, score="PPDB2.0Score").batches(Report(), rows=7))
    assert [row for batch in batches for row in batch["reference"].to_pylist()] == [row[1] for row in whole]
    assert np.concatenate([batch["id"] for batch in batches]).tolist() == list(range(50))


@pytest.mark.parametrize(
    ("lines", "score"),
    [
        (["[JJ] ||| a ||| b\n"], None),
        ([ONE.format("a", "b"), ONE.format("a ||| b ||| c", "d")], None),
        ([ONE.format("a", "b"), ONE.format("", "b")], None),
        (["a b\n", "c\n"], None),
        (["a\tb c\n"], None),
        (["a b\n"], "PPDB2.0Score"),
        ([ONE.format("a", "b")], "PPDB2.0Score"),
        ([TWO.format("a", "b", 1), TWO.format("a", "b", "much")], "PPDB2.0Score"),
        ([], None),
    ],
)
def test_malformed_files(tmp_path, lines, score):
    with refused():
        read(write(tmp_path / "ppdb", *lines), score=score)


def test_files_that_cannot_be_read(tmp_path):
    with refused(path=tmp_path / "none"):
        PhraseFiles([tmp_path / "none"])
    (tmp_path / "x").write_bytes(b"a b\nc \xff\n")
    with refused():
        read(tmp_path / "x")
    # Random words, so that the file has more than one compressed block.
    words = np.random.default_rng(1).integers(0, 10**9, (20_000, 2)).tolist()
    content = gzip.compress("".join(TWO.format(*pair, 1) for pair in words).encode())
    (tmp_path / "x.gz").write_bytes(content[: len(content) // 2])
    with refused(path=tmp_path / "x.gz"):
        read(tmp_path / "x.gz")
    (tmp_path / "y.gz").write_bytes(b"a b\n")
    with refused(path=tmp_path / "y.gz"):
        read(tmp_path / "y.gz")


@given(st.text(alphabet=st.characters(exclude_characters="\n", exclude_categories=("Cs",)), max_size=60))
def test_any_line_is_read_or_refused(tmp_path_factory, line):
    path = tmp_path_factory.getbasetemp() / "line"
    path.write_text(f"{line}\n", encoding="utf8", newline="")
    try:
        rows, _ = read(path)
    except InputError as error:
        assert "line 1" in str(error)
    else:
        # A byte order mark at the start of a file is none of its text.
        words = [word for word in line.removeprefix("\ufeff").rstrip("\r").split(" ") if word]
        assert "|||" in line or len(rows) <= len(words) - 1


@given(st.lists(st.lists(st.text("ab'.é", min_size=1, max_size=5), min_size=2, max_size=5), min_size=1, max_size=9))
def test_a_list_equals_plain_python(tmp_path_factory, listed):
    path = tmp_path_factory.getbasetemp() / "list"
    path.write_text("".join(f"{' '.join(words)}\n" for words in listed), encoding="utf8")
    expected = [(words[0], paraphrase) for words in listed for paraphrase in words[1:]]
    assert [row[1:] for row in read(path)[0]] == expected


def test_scores_of_word_pairs(tmp_path):
    wanted = {("smart", "clever"), ("old", "new")}
    path, pair = tmp_path / "ppdb", ("Smart", "clever")
    # The first line of a pair counts.
    write(path, TWO.format(*pair, 3.25), TWO.format(*pair, 1), TWO.format("x", "clever", 7))
    assert read_word_scores(path, wanted) == ({("smart", "clever"): 3.25}, "PPDB (ppdb)")
    write(path, TWO.format(*pair, 3).replace("PPDB2.0Score=3 ", ""))
    assert read_word_scores(path, wanted) == ({("smart", "clever"): 9.5}, "PPDB (ppdb)")
    write(path, ONE.format(*pair))
    assert read_word_scores(path, wanted) == ({("smart", "clever"): 1.0}, "PPDB, listed or not (ppdb)")
    path = write(tmp_path / "list.gz", "smart bright Clever\nhard tough\nold new\n\x1d \x16\n")
    found = {("smart", "clever"): 1.0, ("old", "new"): 1.0}
    assert read_word_scores(path, wanted) == (found, "PPDB, listed or not (list.gz)")


@pytest.mark.slow
def test_the_real_list(shared_data):
    path = shared_data / "lexical" / "ppdb-xl-lexical.txt"
    report = Report()
    rows = sum(batch.num_rows for batch in PhraseFiles([path]).batches(report))
    assert (report.read, report.dropped) == (374_555, {"empty": 50}) and rows == report.kept
