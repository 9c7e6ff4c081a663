"""Pairs that are mined."""

import json

import numpy as np
import pyarrow.parquet as pq
import pytest

from paranmt_hf.cli import main
from paranmt_hf.corpus.release_run import ReleaseConfig
from paranmt_hf.errors import InputError
from paranmt_hf.search import mine as module
from paranmt_hf.search import neighbours
from paranmt_hf.search.mine import MineConfig, Mining, mine, mine_pairs
from tests.cli.commands import fails
from tests.search.test_index import corpus, scorer, sentences  # noqa: F401 - a fixture


def mining(folder, *files, **settings):
    names = files or ("text.txt",)
    config = MineConfig(**{"min_score": 0.0, **settings})
    return Mining(*(folder / name for name in names), encoder=scorer(folder), config=config)


def rows_of(path):
    return pq.read_table(path).to_pylist()


def peers(folder, top):
    """Pairs of sentence-transformers over the distinct sentences: lines from 1 to score."""
    import torch
    from sentence_transformers.util import paraphrase_mining_embeddings

    texts = sentences(200)
    distinct = list(dict.fromkeys(texts))
    vectors = torch.from_numpy(scorer(folder).load().encode(distinct))
    found = paraphrase_mining_embeddings(vectors, top_k=top, query_chunk_size=17, corpus_chunk_size=31)
    return {(texts.index(distinct[i]) + 1, texts.index(distinct[j]) + 1): score for score, i, j in found}


@pytest.mark.parametrize("settings", [{}, {"method": "lists", "lists": 6, "probes": 6}])
def test_the_pairs_are_those_of_sentence_transformers(corpus, settings, monkeypatch):  # noqa: F811
    monkeypatch.setattr(neighbours, "BLOCK", 37)
    made = mine_pairs(mining(corpus, min_score=-1.0, top=5, **settings), corpus / "pairs.parquet")
    rows, wanted = rows_of(made.path), peers(corpus, 5)
    found = {(row["first_line"], row["second_line"]): row["cosine"] for row in rows}
    # Sentences of the same words have the same vector, so some neighbours may change places with equal ones.
    least = np.array(sorted(wanted.values(), reverse=True))
    assert abs(len(found) - len(wanted)) <= 0.02 * len(wanted) and len(wanted) > 400
    np.testing.assert_allclose([row["cosine"] for row in rows][:300], least[:300], atol=1e-6)
    common = found.keys() & wanted.keys()
    assert len(common) > 0.97 * len(wanted)
    assert max(abs(found[pair] - min(1, wanted[pair])) for pair in common) < 1e-6
    assert all(row["first_line"] < row["second_line"] and row["first"] != row["second"] for row in rows)


def test_the_best_of_them_and_mutual_ones(corpus):  # noqa: F811
    every = rows_of(mine_pairs(mining(corpus, top=3), corpus / "a.parquet").path)
    best = rows_of(mine_pairs(mining(corpus, top=3, max_pairs=20), corpus / "b.parquet").path)
    assert best == every[:20] and [row["cosine"] for row in every] == sorted(
        (r["cosine"] for r in every), reverse=True
    )
    mutual = rows_of(mine_pairs(mining(corpus, top=3, pairing="mutual"), corpus / "c.parquet").path)
    keys = [{(row["first"], row["second"]) for row in rows} for rows in (every, mutual)]
    assert keys[1] < keys[0]


def test_margins_are_those_of_the_paper(corpus):  # noqa: F811
    made = mine_pairs(mining(corpus, top=5, margin="ratio", margin_neighbours=3), corpus / "pairs.parquet")
    texts = list(dict.fromkeys(sentences(200)))
    vectors = scorer(corpus).load().encode(texts)
    vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    found = vectors @ vectors.T
    np.fill_diagonal(found, -np.inf)
    means = np.sort(found, axis=1)[:, -3:].mean(axis=1)
    rows = rows_of(made.path)
    assert [row["margin"] for row in rows] == sorted((row["margin"] for row in rows), reverse=True)
    for row in rows:
        i, j = texts.index(row["first"]), texts.index(row["second"])
        assert row["margin"] == pytest.approx(found[i, j] / (means[i] / 2 + means[j] / 2), abs=1e-5)
    least = rows[len(rows) // 2]["margin"]
    wide = mining(corpus, top=5, margin="ratio", margin_neighbours=3, min_margin=least)
    assert all(row["margin"] >= least for row in rows_of(mine_pairs(wide, corpus / "wide.parquet").path))


@pytest.mark.parametrize("settings", [{}, {"method": "lists", "lists": 4, "probes": 4}])
def test_between_two_files(corpus, settings):  # noqa: F811
    other = [*sentences(40, seed=1), *sentences(3)]
    (corpus / "other.txt").write_text("\n".join(other) + "\n")
    made = mine_pairs(mining(corpus, "text.txt", "other.txt", top=2, **settings), corpus / "pairs.parquet")
    rows, texts = rows_of(made.path), sentences(200)
    for row in rows:
        assert (
            texts.index(row["first"]) == row["first_line"] - 1 and other.index(row["second"]) == row["second_line"] - 1
        )
        # The copies in both files are no pairs.
        assert row["first"] != row["second"]
    left, right = (scorer(corpus).load().encode(some) for some in (list(dict.fromkeys(texts)), other))
    best = (left / np.linalg.norm(left, axis=1, keepdims=True)) @ (
        right / np.linalg.norm(right, axis=1, keepdims=True)
    ).T
    pairs = {(row["first"], row["second"]): row["cosine"] for row in rows}
    for index, text in enumerate(other[:40]):
        if text not in texts:
            near = max(cosine for (_, second), cosine in pairs.items() if second == text)
            assert near == pytest.approx(best[:, index].max(), abs=1e-6)


def test_copies(corpus):  # noqa: F811
    (corpus / "twice.txt").write_text("red sun\nblue bird\nred sun\n")
    made = mine_pairs(mining(corpus, "twice.txt", copies=True, min_score=0.9), corpus / "pairs.parquet")
    assert [(row["first_line"], row["second_line"]) for row in rows_of(made.path)] == [(1, 3)]
    with pytest.raises(InputError, match="no two sentences have a cosine of at least 0.9; lower it, or take another"):
        mine_pairs(mining(corpus, "twice.txt", min_score=0.9), corpus / "none.parquet")


def test_it_goes_on_at_a_checkpoint(corpus, monkeypatch):  # noqa: F811
    monkeypatch.setattr(neighbours, "BLOCK", 37)
    whole = rows_of(mine_pairs(mining(corpus, top=3), corpus / "whole.parquet").path)
    real, steps = neighbours.within, []

    def stopped(vectors, found, *, done=0):
        steps.append(done)
        for number, part in enumerate(real(vectors, found, done=done), 1):
            if number == 4:
                raise KeyboardInterrupt
            yield part

    monkeypatch.setattr(neighbours, "within", stopped)
    settings = {"top": 3, "checkpoint_seconds": 0.0}
    for _ in range(9):
        try:
            made = mine_pairs(mining(corpus, **settings), corpus / "pairs.parquet")
        except KeyboardInterrupt:
            continue
        break
    assert steps == [0, 3, 6, 9, 12, 15, 18][: len(steps)] and len(steps) > 3
    assert rows_of(made.path) == whole
    assert not list(corpus.glob("*.work"))


def test_a_lower_threshold_goes_on_with_the_vectors(corpus, monkeypatch):  # noqa: F811
    wide = mining(corpus, margin="distance", min_margin=2.0)
    with pytest.raises(InputError, match="at least 0 and a margin of at least 2; lower it, or take another encoder"):
        mine_pairs(wide, corpus / "p.parquet")
    assert (corpus / "p.parquet.work").exists()
    monkeypatch.setattr("paranmt_hf.search.index.encoded", None)
    assert mine_pairs(mining(corpus, min_score=0.5), corpus / "p.parquet").pairs > 10
    assert not (corpus / "p.parquet.work").exists()


def test_a_file_that_is_there(corpus):  # noqa: F811
    made = mine_pairs(mining(corpus), corpus / "pairs.parquet")
    again = mine_pairs(mining(corpus), corpus / "pairs.parquet")
    assert made.fresh and not again.fresh and again.pairs == made.pairs
    with pytest.raises(InputError, match="was mined with other settings: pairs.mining.top: was 10, now 4"):
        mine_pairs(mining(corpus, top=4), corpus / "pairs.parquet")
    (corpus / "mine.parquet").write_text("my own")
    with pytest.raises(InputError, match=r"mine.parquet is no file of mined pairs; choose another --out or move it"):
        mine_pairs(mining(corpus), corpus / "mine.parquet")
    assert (corpus / "mine.parquet").read_text() == "my own"


def test_a_release(corpus):  # noqa: F811
    pairs = rows_of(mine_pairs(mining(corpus, top=3), corpus / "pairs.parquet").path)
    options = {"release": ReleaseConfig(license="cc-by-4.0"), "made_by": "people"}
    built = mine(mining(corpus, top=3), corpus / "mined", **options)
    rows = pq.read_table(corpus / "mined" / "data").to_pylist()
    assert [(row["reference"], row["translation"]) for row in rows] == [(row["first"], row["second"]) for row in pairs]
    assert [row["id"] for row in rows] == list(range(len(rows))) and {row["origin"] for row in rows} == {"mined"}
    np.testing.assert_allclose([row["para_score"] for row in rows], [row["cosine"] for row in pairs], atol=1e-6)
    assert built.record.settings["scorer"] == scorer(corpus).identity
    assert built.record.settings["pairs"]["kind"] == "mined" and built.record.made_by == "people"
    card = (corpus / "mined" / "README.md").read_text()
    assert "an encoder found them near to each other" in card and "`id` is the rank of the pair, best first" in card
    assert not mine(mining(corpus, top=3), corpus / "mined", **options).fresh
    assert not list(corpus.glob("*.work"))
    with pytest.raises(InputError, match="was built with other settings: pairs.mining.top: was 3, now 2"):
        mine(mining(corpus, top=2), corpus / "mined", **options)


def test_bad_inputs(corpus, monkeypatch, capsys):  # noqa: F811
    monkeypatch.chdir(corpus)
    words = ["mine", "text.txt", "--vectors", "vectors.txt", "--out", "out"]
    fails(capsys, words, "a corpus needs a licence")
    fails(capsys, [*words, "--license", "mit", "--min-margin", "1"], "min_margin is for --margin ratio or distance")
    fails(
        capsys, [*words, "--margin", "ratio", "--top", "3"], "margin_neighbours 4 is above top 3, the neighbours kept"
    )
    fails(
        capsys,
        [*words, "--second-column", "x"],
        "--second-column is the column of a second file, and there is one file",
    )
    fails(capsys, [*words, "--min-score", "2"], "min_score must be from -1 to 1, was 2.0")
    fails(capsys, ["mine", "none.txt", *words[2:], "--license", "mit"], "none.txt: there is no such file")
    assert not list(corpus.glob("out*"))
    assert main([*words[:-1], "pairs.parquet", "--min-score", "0.9"]) == 0
    out = capsys.readouterr().out
    assert out == f"{corpus / 'pairs.parquet'}: {pq.read_metadata(corpus / 'pairs.parquet').num_rows:,} pairs\n"
    assert "min-score: 0.9" in (corpus / "pairs.parquet.paranmt.yaml").read_text()


def test_the_state_is_of_one_search(corpus, monkeypatch):  # noqa: F811
    """What was compared for other neighbours is compared again."""
    first = mining(corpus, top=2)
    first.run(corpus / "work")
    found = Mining(corpus / "text.txt", encoder=scorer(corpus), config=MineConfig(top=4, min_score=0.0)).run(
        corpus / "work"
    )
    assert json.loads(pq.read_metadata(found).metadata[module.IDENTITY_KEY])["pairs"]["mining"]["top"] == 4
    assert rows_of(found) == rows_of(mine_pairs(mining(corpus, top=4), corpus / "pairs.parquet").path)
