"""Other people's data sets become releases, and what is no paraphrase is no pair to train on."""

import gzip

import pyarrow.parquet as pq
import pytest
import yaml

from paranmt_hf import PairSelection, TranslatorConfig
from paranmt_hf.cli import main
from paranmt_hf.corpus.build import pivot_of
from paranmt_hf.corpus.reading.pairs import Pairs
from paranmt_hf.corpus.reading.readers import LineFiles
from paranmt_hf.corpus.release.record import ReleaseRecord
from tests.refused import refused
from tests.toys import FakeTranslatorConfig, make, rows_of

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
    # The same call finds it; what is trained on are the paraphrases alone.
    assert main([*words, "--preset", "paws", "--label", "any"]) == 0
    pairs = Pairs([tmp_path / "out"], PairSelection())
    assert [row for batch in pairs.batches() for row in batch["translation"].to_pylist()] == ["clever ."]
    assert pairs.left_out_by == {"pairs labelled as no paraphrases": 1, "pairs without a label": 1}


def test_what_is_said_of_the_authors_holds_against_the_preset(words, tmp_path):
    assert main([*words, "--preset", "paws", "--made-by", "unknown"]) == 0
    assert ReleaseRecord.read(tmp_path / "out", "out").made_by == "unknown"


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
    assert "--columns" in error("--label", "1")
    assert "give either --preset" in error("--preset", "paws", "--format", "phrases")
    (tmp_path / "train.tsv").write_text("de-D1\tGeh !\tLos !\t4.0\n")
    assert "train.tsv is in the language de, and the corpus in en: give --language de" in error(
        "--preset", "opusparcus", "--label", "1"
    )
    (tmp_path / "train.tsv").write_text(PAWS)
    assert "the preset paws has no features" in error("--preset", "paws", "--ppdb-score", "X")
    (tmp_path / "train.tsv").write_text("id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n0\t1\t2\ta\tb\t1\n")
    assert "Quora Question Pairs has no stated licence (Quora's terms" in error("--preset", "qqp")


LINE = "[JJ] ||| {} ||| {} ||| PPDB2.0Score={} ||| 0-0 ||| Equivalence\n"


def test_ppdb_becomes_a_release(tmp_path, capsys, caplog):
    (tmp_path / "vectors.txt").write_text("smart 1 0\nclever 1 0.1\nhard 0 1\n")
    lines = [LINE.format("smart", "clever", 1.5), LINE.format("the [NN,1]", "[NN,1]", 1)]
    lines.append(LINE.format("hard", "clever", "NA"))
    (tmp_path / "ppdb.gz").write_bytes(gzip.compress("".join(lines).encode()))
    words = ["import", str(tmp_path / "ppdb.gz"), "--format", "phrases", "--out", str(tmp_path / "out")]
    words += ["--scorer", str(tmp_path / "vectors.txt"), "--engine", "workers=1,threads=1"]
    words += ["--ppdb-score", "PPDB2.0Score"]
    assert main(words) == 1
    assert "a license is needed" in capsys.readouterr().err
    assert main([*words, "--license", "cc-by-4.0"]) == 0
    assert "dropped: 1 syntactic rules" in caplog.text
    table = pq.read_table(tmp_path / "out" / "data")
    assert table["reference"].to_pylist() == ["smart", "hard"] and table["id"].to_pylist() == [0, 2]
    assert table["ppdb_score"].to_pylist() == [1.5, None]
    assert "the feature PPDB2.0Score of PPDB (null where that is NA)" in (tmp_path / "out" / "README.md").read_text()
    # Cosines of (1, 0) with (1, 0.1), and of (0, 1) with (1, 0.1).
    assert [round(score, 3) for score in table["para_score"].to_pylist()] == [0.995, 0.1]
    assert main([*words, "--license", "cc-by-4.0", "--columns", "reference=1,translation=2"]) == 1
    assert "--columns is for files with columns" in capsys.readouterr().err
    assert main(["import", str(tmp_path / "ppdb.gz"), "--out", str(tmp_path / "x"), "--license", "mit"]) == 1
    assert "has lines of PPDB and no tabs; give --format phrases" in capsys.readouterr().err
    assert (
        main(["import", str(tmp_path / "x"), "--ppdb-score", "X", "--out", str(tmp_path / "x"), "--license", "mit"])
        == 1
    )
    assert "--ppdb-score is for files of PPDB; give --format phrases" in capsys.readouterr().err


@pytest.fixture
def text(tmp_path):
    lines = [f"word {number} a b" for number in range(25)] + ["a b a b a b a", "stumm"]
    (tmp_path / "text.en").write_text("".join(f"{line}\n" for line in lines))
    words = ["word", "a", "b", *map(str, range(25))]
    (tmp_path / "vectors.txt").write_text("".join(f"{w} {n} {n * n % 7} 1\n" for n, w in enumerate(words)))
    return LineFiles({"reference": tmp_path / "text.en"})


def pivoted(text, tmp_path, name="corpus", **changes):
    return make(text, tmp_path / name, tmp_path / "vectors.txt", pivot=FakeTranslatorConfig(name="there"), **changes)


def test_there_and_back(text, tmp_path, monkeypatch):
    made = pivoted(text, tmp_path)
    rows = rows_of(tmp_path / "corpus")
    # Each model turns the words round.
    assert rows[3]["source"] == "b a 3 word"
    assert rows[3]["translation"] == rows[3]["reference"] == "word 3 a b"
    assert [row["id"] for row in rows] == list(range(25))
    assert made.record.dropped == {
        "source over 6 pieces on the way to the pivot language": 1,
        "empty translation on the way to the pivot language": 1,
    }
    assert list(made.record.settings)[:3] == ["text", "pivot", "translator"]
    card = (tmp_path / "corpus" / "README.md").read_text()
    assert "- **pivot**: model `fake`" in card
    assert "translated into another language by the model `fake`, and back by the model `fake`" in card
    assert "the sentence in the language between" in card
    assert "bitext:" not in card
    assert yaml.safe_load(card.split("---\n")[1])["tags"] == ["paraphrase", "back-translation", "paranmt"]
    with refused("out", path=tmp_path / "corpus"):
        make(text, tmp_path / "corpus", tmp_path / "vectors.txt", pivot=FakeTranslatorConfig(beam=4))


def test_text_without_a_foreign_side_needs_a_pivot(text, tmp_path):
    with refused():
        make(text, tmp_path / "corpus", tmp_path / "vectors.txt")
    assert not (tmp_path / "corpus").exists()


def test_settings_of_the_way_there():
    back = TranslatorConfig("back", source_language="deu_Latn", target_language="eng_Latn", beam=4, hypotheses=3)
    there = pivot_of("there", back)
    assert (there.name, there.source_language, there.target_language) == ("there", "eng_Latn", "deu_Latn")
    assert (there.beam, there.hypotheses) == (4, 1)
    assert pivot_of("there", TranslatorConfig("back", target_language="eng")).target_language is None
