"""parse_pairs(): pairs with trees, whatever was killed on the way, and their templates."""

import hashlib
import shutil
from dataclasses import astuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paranmt_hf import EngineConfig, PairSelection, parse_pairs
from paranmt_hf.cli import main
from paranmt_hf.corpus.jobs.shards import cut_into_shards
from paranmt_hf.corpus.parsing.parse import join_shards
from paranmt_hf.corpus.parsing.trees import Tree
from paranmt_hf.corpus.reading.pairs import Pairs
from paranmt_hf.errors import OtherSettingsError
from tests.cli.commands import recorded_options
from tests.refused import refused

ONE = EngineConfig("local", 1, 1, shard_rows=3)
needs_link_parser = pytest.mark.skipif(shutil.which("link-parser") is None, reason="link-parser is not installed")


class Letters:
    """Gives a node for each word, by its first letter; none for a sentence with a question mark."""

    name, at_once = "letters 1", 2

    def __init__(self, most=None):
        self.given, self.most = [], most

    def trees(self, sentences):
        if self.most is not None and len(self.given) >= self.most:
            raise KeyboardInterrupt
        self.given += sentences
        return [None if "?" in each else tree_of(each) for each in sentences]


def tree_of(sentence):
    nodes = [Tree(word[0].upper(), (Tree("X", (word,)),)) for word in sentence.split()]
    return Tree("ROOT", (Tree("S", tuple(nodes)),))


REFERENCES = ["a b", "why ?", "a c", "a b", "d", "a  b", ""]
TRANSLATIONS = ["a b", "b a", "why ?", "c", "c", "e f g", "c"]
A_B = "(S(A(X))(B(X)))"
REFERENCE_PARSES = [A_B, None, "(S(A(X))(C(X)))", A_B, "(S(D(X)))", A_B, "(S)"]
TRANSLATION_PARSES = [A_B, "(S(B(X))(A(X)))", None, "(S(C(X)))", "(S(C(X)))", "(S(E(X))(F(X))(G(X)))", "(S(C(X)))"]


@pytest.fixture
def pairs(tmp_path):
    path = tmp_path / "pairs.parquet"
    system = pa.array(["x", "y", None, "x", "y", "x", "y"]).dictionary_encode()
    columns = {
        "number": np.arange(7),
        "reference": pa.array(REFERENCES),
        "translation": pa.array(TRANSLATIONS, pa.large_string()),
        "system": system,
        "para_score": pa.array(np.linspace(0, 0.6, 7), pa.float32()),
    }
    table = pa.table(columns).replace_schema_metadata({"huggingface": "{}"})
    pq.write_table(table, path, row_group_size=3)
    return path


def parsed_rows(folder):
    return pa.concat_tables(pq.read_table(file) for file in sorted(folder.glob("*.parquet")))


def everything(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def run(pairs, out, parser=None, *, engine=ONE, **selection):
    return parse_pairs(pairs, out, parser=parser or Letters(), selection=PairSelection(**selection), engine=engine)


def test_files_of_any_format_with_columns_of_other_names(tmp_path):
    path = tmp_path / "pairs.csv"
    path.write_text("sentence1,sentence2,same\na b,b a,1\nc,d,0\na c,c a,1\n")
    columns = {"reference": "sentence1", "translation": "sentence2", "label": "same"}
    done = parse_pairs(path, tmp_path / "out", parser=Letters(), columns=columns, engine=ONE)
    rows = parsed_rows(done.folder)
    assert rows["reference"].to_pylist() == ["a b", "a c"]
    assert rows["reference_parse"].null_count == 0
    with refused("columns", path=path):
        parse_pairs(path, tmp_path / "other", parser=Letters(), engine=ONE)


def test_pairs_get_trees_and_keep_their_columns(pairs, tmp_path):
    parser = Letters()
    done = run(pairs, tmp_path / "out", parser)
    table = parsed_rows(done.folder)
    assert table.column_names == ["number", "reference", "translation", "system", "para_score"] + [
        "reference_parse",
        "translation_parse",
    ]
    assert table.drop_columns(["reference_parse", "translation_parse"]).to_pylist() == pq.read_table(pairs).to_pylist()
    assert table["reference_parse"].to_pylist() == REFERENCE_PARSES
    assert table["translation_parse"].to_pylist() == TRANSLATION_PARSES
    assert table.schema.metadata is None or b"huggingface" not in table.schema.metadata
    # Shards of three pairs, each distinct sentence of one once, white space normalised.
    assert parser.given == ["a b", "why ?", "a c", "b a"] + ["a b", "d", "c", "e f g"] + ["", "c"]
    assert done.fresh
    assert done.record.rows == 7
    assert astuple(done.record.trees) == (6, 6, 5)
    assert (done.record.source, done.record.parser) == ("pairs.parquet", "letters 1")
    assert done.record.templates == 4
    assert not done.folder.with_name("out.work").exists()


def test_the_same_call_finds_what_is_there_and_another_one_refuses(pairs, tmp_path):
    run(pairs, tmp_path / "out")
    assert not run(pairs, tmp_path / "out", Letters(most=0)).fresh
    with refused("out", kind=OtherSettingsError):
        run(pairs, tmp_path / "out", max_pairs=2)
    other = Letters()
    other.name = "letters 2"
    with refused("out", kind=OtherSettingsError):
        run(pairs, tmp_path / "out", other)


@pytest.mark.parametrize(("most", "left"), [(0, 10), (3, 6), (7, 2)])
def test_a_stopped_call_goes_on_and_ends_with_the_same_bytes(pairs, tmp_path, most, left):
    whole = run(pairs, tmp_path / "whole" / "out").folder
    with pytest.raises(KeyboardInterrupt):
        run(pairs, tmp_path / "out", Letters(most))
    rest = Letters()
    done = run(pairs, tmp_path / "out", rest)
    assert everything(done.folder) == everything(whole)
    # Sentences of shards that were done are not parsed again.
    assert len(rest.given) == left
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "pairs.parquet", "whole"]


def test_the_choice_of_pairs_is_that_of_training(pairs, tmp_path):
    for selection in ({"min_score": 0.2, "max_score": 0.5}, {"max_pairs": 3}, {"first_pairs": 4}):
        wanted = pa.concat_tables(Pairs([pairs], PairSelection(**selection), seed=1).batches())
        out = tmp_path / "-".join(selection)
        done = run(pairs, out, **selection)
        assert parsed_rows(out).select(wanted.column_names).to_pylist() == wanted.to_pylist()
        left_out = 7 - wanted.num_rows if "min_score" in selection else 0
        assert sum(done.record.left_out.values()) == left_out
    # Trees of an earlier parser give way.
    again = run(sorted((tmp_path / "max_pairs").glob("*.parquet")), tmp_path / "again")
    assert parsed_rows(again.folder).to_pylist() == parsed_rows(tmp_path / "max_pairs").to_pylist()
    with refused():
        run(pairs, tmp_path / "none", min_score=0.9)
    assert not (tmp_path / "none.work").exists()


def test_several_files_of_a_result(pairs, tmp_path):
    cut = cut_into_shards([pq.read_table(pairs)], tmp_path / "shards", {}, 3)
    rows = [table.num_rows for table in join_shards(cut, tmp_path, file_pairs=6)]
    files = sorted(tmp_path.glob("pairs-*.parquet"))
    assert [path.name for path in files] == [f"pairs-0000{index}-of-00002.parquet" for index in (0, 1)]
    assert [pq.read_metadata(path).num_rows for path in files] == [6, 1] and rows == [3, 3, 1]


def test_trees_of_a_file(pairs, tmp_path):
    sentences = sorted({" ".join(each.split()) for each in [*REFERENCES, *TRANSLATIONS]} - {""})
    lines = [f"{each}\t{'' if '?' in each else tree_of(each)}\n" for each in sentences]
    (tmp_path / "trees.tsv").write_text("".join(lines))
    done = run(pairs, tmp_path / "out", tmp_path / "trees.tsv")
    assert parsed_rows(done.folder)["reference_parse"].to_pylist() == [*REFERENCE_PARSES[:-1], None]
    assert parsed_rows(done.folder)["translation_parse"].to_pylist() == TRANSLATION_PARSES
    digest = hashlib.sha256((tmp_path / "trees.tsv").read_bytes()).hexdigest()
    assert done.record.settings.parser == {"name": "the file trees.tsv", "sha256": digest}
    (tmp_path / "trees.tsv").write_text("z\t(S z)\n")
    with refused("out", kind=OtherSettingsError):
        run(pairs, tmp_path / "out", tmp_path / "trees.tsv")
    with refused():
        run(pairs, tmp_path / "other", tmp_path / "trees.tsv")
    (tmp_path / "trees.tsv").write_text("a b\t(S a b)\nc\t(S c\n")
    with refused():
        run(pairs, tmp_path / "broken", tmp_path / "trees.tsv")


def test_sources_with_other_columns(pairs, tmp_path):
    pq.write_table(pa.table({"reference": ["a"], "translation": ["b"], "source": ["c"]}), tmp_path / "more.parquet")
    with refused():
        run([pairs, tmp_path / "more.parquet"], tmp_path / "out")
    shutil.copy(pairs, tmp_path / "copy.parquet")
    assert run([pairs, tmp_path / "copy.parquet"], tmp_path / "out").record.rows == 14


@pytest.mark.slow
def test_several_workers_end_with_the_same_bytes(pairs, tmp_path):
    one = run(pairs, tmp_path / "one" / "out")
    two = run(pairs, tmp_path / "two" / "out", engine=EngineConfig("local", 2, 1, shard_rows=3))
    assert everything(two.folder) == everything(one.folder)


@needs_link_parser
def test_link_grammar(tmp_path):
    table = pa.table({"reference": ["A man plays a guitar.", "of the of"], "translation": ["The dog sleeps."] * 2})
    pq.write_table(table, tmp_path / "pairs.parquet")
    done = run(tmp_path / "pairs.parquet", tmp_path / "out", "link-grammar")
    rows = parsed_rows(done.folder)
    assert rows["reference_parse"].to_pylist() == ["(S(NP)(VP(NP)))", None]
    assert rows["translation_parse"].to_pylist() == ["(S(NP)(VP))"] * 2
    assert done.record.parser.startswith("link-grammar 5.")


def test_a_parser_that_knows_no_sentence(tmp_path):
    table = pa.table({"reference": ["of of of"], "translation": ["zz"]})
    pq.write_table(table, tmp_path / "pairs.parquet")
    (tmp_path / "trees").write_text("a dog .\t(S(NP)(VP))\n")
    with refused():
        run(tmp_path / "pairs.parquet", tmp_path / "out", parser=tmp_path / "trees")
    table = pa.table({"reference": ["why ?"], "translation": ["who ?"]})
    pq.write_table(table, tmp_path / "pairs.parquet")
    with refused():
        run(tmp_path / "pairs.parquet", tmp_path / "other", parser=Letters())


def test_a_result_inside_its_source(pairs, tmp_path):
    with refused("out"):
        run(tmp_path, tmp_path / "out")


def test_the_commands(pairs, tmp_path, capsys):
    (tmp_path / "trees.tsv").write_text("a b\t(S (NP a) (VP b))\na c\t(S (NP a) (VP c))\nd\t(NP d)\nc\t(S (NP c))\n")
    words = ["parse", str(pairs), "--parser", str(tmp_path / "trees.tsv"), "--out", str(tmp_path / "out")]
    assert main([*words, "--engine", "workers=1", "--selection", "min_score=0.15"]) == 0
    printed = capsys.readouterr().out
    assert "5 pairs, parsed by the file trees.tsv\n" in printed
    assert "  with a tree            4  80.0 % reference\n" in printed
    assert "  left out               2 pairs outside the chosen ranges\n" in printed
    head, first = printed.split("2 templates of 4 references, by the file trees.tsv\n")[1].splitlines()[:2]
    assert head.split() == ["template", "count", "share", "%", "cumulative", "%", "example"]
    assert first.split() == ["(S(NP)(VP))", "3", "75.0", "75.0", "a", "c"]
    assert main([*words, "--engine", "workers=1", "--selection", "min_score=0.15"]) == 0
    assert "(were parsed already)" in capsys.readouterr().out
    assert recorded_options(tmp_path / "out" / "parses.json")["parser"] == str(tmp_path / "trees.tsv")


def test_templates_of_parsed_pairs(pairs, tmp_path):
    done = run(pairs, tmp_path / "out")
    found = done.templates(top=None)
    assert [(each.template, each.count, each.example) for each in found.counts] == [
        ("(S(A)(B))", 3, "a b"),
        ("(S(A)(C))", 1, "a c"),
        ("(S(D))", 1, "d"),
        ("(S)", 1, ""),
    ]
    shares = [(each.share, each.cumulative_share) for each in found.counts]
    assert shares == [
        (3 / 6, 3 / 6),
        (1 / 6, 4 / 6),
        (1 / 6, 5 / 6),
        (1 / 6, 1),
    ]


def test_a_damaged_result(pairs, tmp_path):
    done = run(pairs, tmp_path / "out")
    lines = (done.folder / "templates.tsv").read_text()
    (done.folder / "templates.tsv").write_text(lines[:40])
    with refused(path=done.folder / "templates.tsv"):
        done.templates()
