"""Other people's data sets become releases, and what is no paraphrase is no pair to train on."""

import pyarrow.parquet as pq
import pytest

from paranmt_hf.cli import main
from paranmt_hf.corpus.pairs import Pairs, PairSelection
from paranmt_hf.corpus.record import ReleaseRecord

PAWS = "id\tsentence1\tsentence2\tlabel\n1\tsmart .\tclever .\t1\n2\tsmart .\thard .\t0\n3\thard .\tclever .\t-1\n"


@pytest.fixture
def words(tmp_path):
    (tmp_path / "vectors.txt").write_text("smart 1 0\nclever 1 0.1\nhard 0 1\n")
    (tmp_path / "train.tsv").write_text(PAWS)
    ending = ["--scorer", str(tmp_path / "vectors.txt"), "--engine", "workers=1,threads=1"]
    return ["import", str(tmp_path / "train.tsv"), *ending, "--out", str(tmp_path / "out")]


def test_a_release_says_what_the_authors_say(words, tmp_path, capsys):
    assert main([*words, "--preset", "paws", "--label", "any"]) == 0
    table = pq.read_table(tmp_path / "out" / "data")
    assert table["label"].to_pylist() == [1, 0, None]
    assert [round(score, 3) for score in table["para_score"].to_pylist()] == [0.995, 0, 0.1]
    card = (tmp_path / "out" / "README.md").read_text()
    assert "license: other\nlicense_name: paws\nlicense_link: https://github.com/google-research" in card
    assert "The pairs are from PAWS" in card and "an acknowledgement of Google LLC is appreciated" in card
    assert "1 where the authors' label says paraphrase" in card
    assert "sentences of which those that mean about the same have a `label` of 1" in card
    assert "no person judged" not in card
    # The same call finds it; what is trained on leaves the pair out that is none.
    assert main([*words, "--preset", "paws", "--label", "any"]) == 0
    pairs = Pairs([tmp_path / "out"], PairSelection())
    assert [row for batch in pairs.batches() for row in batch["translation"].to_pylist()] == ["clever .", "clever ."]
    assert pairs.left_out_by == {"pairs labelled as no paraphrases": 1}


def test_what_is_said_of_the_authors_holds_against_the_preset(words, tmp_path):
    assert main([*words, "--preset", "paws", "--made-by", "unknown"]) == 0
    assert ReleaseRecord.parse(tmp_path / "out", "out").made_by == "unknown"


def test_errors_apart_are_also_the_pairs_that_are_labelled_as_none(words, tmp_path):
    adding = ["--add", "number_mismatch", "negation_mismatch"]
    assert main([*words, "--preset", "paws", "--label", "any", *adding]) == 0
    pairs = Pairs([tmp_path / "out"], PairSelection(), errors_apart=True)
    assert [batch["translation"].to_pylist() for batch in pairs.batches()] == [["clever .", "clever ."]]
    assert pairs.left_out_by == {"pairs labelled as no paraphrases": 1}
    assert [batch["translation"].to_pylist() for batch in pairs.errors()] == [["hard ."]]


def test_what_is_refused(words, tmp_path, capsys):
    def error(*more):
        assert main([*words, *more]) == 1
        assert not (tmp_path / "out").exists()
        return capsys.readouterr().err

    assert "fits no layout of the preset qqp: expected a first line with the names id, qid1" in error(
        "--preset", "qqp", "--license", "other"
    )
    assert "--preset must be one of opusparcus, paws" in error("--preset", "pAws")
    assert "give either --preset" in error("--preset", "paws", "--columns", "reference=2,translation=3")
    assert "--label is for datasets whose labels are known; give their --preset" in error("--label", "1")
    assert "give either --preset" in error("--preset", "paws", "--format", "phrases")
    (tmp_path / "train.tsv").write_text("de-D1\tGeh !\tLos !\t4.0\n")
    assert "train.tsv is in the language de, and the corpus in en: give --language de" in error(
        "--preset", "opusparcus", "--label", "1"
    )
    (tmp_path / "train.tsv").write_text(PAWS)
    assert "the preset paws has no features" in error("--preset", "paws", "--ppdb-score", "X")
    (tmp_path / "train.tsv").write_text("id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n0\t1\t2\ta\tb\t1\n")
    assert "Quora Question Pairs has no stated licence (Quora's terms" in error("--preset", "qqp")
