"""Paraphrases of evaluation items, against a loop over all pairs of a text and an item."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paranmt_hf import InputError, ReleaseFilter, select
from paranmt_hf.corpus.reading.evaluation_sets import EvaluationSentences, read_sentences
from paranmt_hf.corpus.selection.paraphrased_items import COUNTED, ItemMeanings
from paranmt_hf.encoders.named_encoder import NamedEncoder
from paranmt_hf.hub.repository import ASSETS
from paranmt_hf.meaning.mismatch_columns import MismatchReader
from tests.corpus.selection.toys import chosen


def sample():
    lines = (ASSETS / "sample" / "similarity.tsv").read_text(encoding="utf8").splitlines()
    return [line.split("\t")[1:3] for line in lines]


def evaluation(items):
    return EvaluationSentences(list(items), [f"set{place % 3}" for place in range(len(items))], {}, {})


def oracle(texts, items, similarity):
    """Best score and item of each text, one pair at a time."""
    encoder, reader = NamedEncoder().load(), MismatchReader(COUNTED)
    vectors = [encoder.encode([text])[0] for text in [*texts, *items]]
    found = []
    for text, vector in zip(texts, vectors, strict=False):
        best = (-np.inf, -1)
        for place, (item, other) in enumerate(zip(items, vectors[len(texts) :], strict=True)):
            score = vector @ other / np.linalg.norm(vector) / np.linalg.norm(other)
            counts = reader.columns(pa.array([item]), pa.array([text]))
            score -= 0.04 * sum(count[0].as_py() > 0 for count in counts.values())
            score -= 0.1 * (1 - min(len(text), len(item)) / max(len(text), len(item)))
            if score >= similarity and score > best[0]:
                best = score, place
        found.append(best)
    return found


@pytest.mark.slow
def test_scores_and_items_equal_brute_force():
    pairs = sample()
    items = sorted({first for first, _ in pairs[:60]})
    texts = [second for _, second in pairs[:60]] + ["there are 3 dogs in Paris .", "there are 4 dogs in Paris ."]
    items.append("there are 3 dogs in Paris .")
    meanings = ItemMeanings(evaluation(items), NamedEncoder(), 0.6)
    assert meanings.items == items
    scores, found = meanings.nearest(pa.array(texts), at_once=7)
    expected = oracle(texts, items, 0.6)
    assert found.tolist() == [item for _, item in expected] and 10 < (found >= 0).sum() < len(texts)
    np.testing.assert_allclose(scores, [score for score, _ in expected], atol=1e-5)
    # A number that differs costs 0.04 and no more.
    assert scores[-2] == pytest.approx(1, abs=1e-5) and scores[-1] < 0.97


def test_the_better_side_decides_in_tables_of_any_size(tmp_path):
    items = ["a man is playing a guitar on stage .", "two dogs run over the green grass ."]
    for name, item in zip("ab", items, strict=True):
        (tmp_path / f"{name}.txt").write_text(f"{item}\n")
    one = chosen(decontaminate=(str(tmp_path),), decontaminate_by=("meaning",), item_similarity=0.6)
    table = pa.table(
        {
            "reference": ["the parliament rejected the law .", "a man plays a guitar on a stage .", "hello there"],
            "translation": ["two dogs are running over green grass .", "he is a musician .", "good day to you"],
        }
    )
    verdict = one.judge(table)
    assert verdict.kept.tolist() == [False, False, True]
    assert one.explain(table.slice(0, 2)) == [
        (items[1], f"{tmp_path.name}/b.txt"),
        (items[0], f"{tmp_path.name}/a.txt"),
    ]
    pieces = [one.judge(table.slice(row, 1)).number[0] for row in range(3)]
    np.testing.assert_allclose(pieces, verdict.number, atol=1e-5)


def test_short_items_are_not_looked_for():
    assert ItemMeanings(evaluation(["thank you .", "what is it now ?"]), NamedEncoder(), 0.6).items == [
        "what is it now ?"
    ]
    with pytest.raises(InputError):
        ItemMeanings(evaluation(["thank you ."]), NamedEncoder(), 0.6)


def test_sets_are_named_by_their_files(tmp_path):
    (tmp_path / "sts" / "2012").mkdir(parents=True)
    (tmp_path / "sts" / "2012" / "a.tsv").write_text("one item here\tanother item there\n")
    (tmp_path / "sts" / "b.tsv").write_text("one item here\n")
    found = read_sentences(tmp_path / "sts")
    assert dict(zip(found.texts, found.sets, strict=True)) == dict.fromkeys(found.texts, "sts/2012/a.tsv")
    assert read_sentences(tmp_path / "sts" / "b.tsv").sets == ["b.tsv"]


def test_select_reports_items_and_sets(made, tmp_path):
    rows = pa.concat_tables(map(pq.read_table, sorted((made / "data").glob("*.parquet")))).to_pylist()
    (tmp_path / "sets").mkdir()
    item = max((row["reference"] for row in rows), key=len)
    (tmp_path / "sets" / "items.txt").write_text(f"{item}\n")
    config = ReleaseFilter(decontaminate=(str(tmp_path / "sets"),), decontaminate_by=("meaning",), item_similarity=0.9)
    selected = select(made, tmp_path / "clean", config, keep_dropped=tmp_path / "dropped.parquet")
    dropped = pq.read_table(tmp_path / "dropped.parquet").to_pylist()
    assert 0 < len(dropped) < len(rows) and selected.rows == len(rows) - len(dropped)
    assert {row["item"] for row in dropped} == {item} and {row["item_set"] for row in dropped} == {"sets/items.txt"}
    assert all(0.9 <= row["number"] <= 1.0001 for row in dropped)
    assert item in {row["reference"] for row in dropped}
    # N-grams name the sentence too.
    config = ReleaseFilter(decontaminate=(str(tmp_path / "sets"),))
    select(made, tmp_path / "other", config, keep_dropped=tmp_path / "others.parquet")
    others = pq.read_table(tmp_path / "others.parquet").to_pylist()
    assert {(row["item"], row["item_set"]) for row in others} == {(item, "sets/items.txt")}


def test_an_encoder_of_another_language(tmp_path):
    (tmp_path / "a.txt").write_text("wir fahren nach Bremen\n")
    with pytest.raises(InputError):
        chosen("de", decontaminate=(str(tmp_path),), decontaminate_by=("meaning",), item_encoder="small")
    # By default it is the encoder of the language.
    chosen("de", decontaminate=(str(tmp_path),), decontaminate_by=("meaning",))
