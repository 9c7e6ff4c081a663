"""Pairs that are mined."""

import json

import numpy as np
import pyarrow.parquet as pq
import pytest

from paranmt_hf import InputError, MineConfig, ReleaseConfig, mine_pairs
from paranmt_hf.cli import main
from paranmt_hf.corpus.reading.sentences import open_sentences
from paranmt_hf.corpus.release.record import ReleaseRecord
from paranmt_hf.search.mine import Mining
from paranmt_hf.search.neighbours import Neighbours
from tests.cli.commands import fails, recorded_options
from tests.refused import refused
from tests.search.toys import scorer, sentences


def mined(folder, out="pairs.parquet", first="text.txt", second=None, **settings):
    """Mine the pairs of a file, or between two."""
    options = {name: settings.pop(name) for name in ("release", "made_by", "column") if name in settings}
    config = MineConfig(**{"min_score": 0.0, **settings})
    options["second"] = None if second is None else folder / second
    return mine_pairs(folder / first, folder / out, encoder=folder / "vectors.txt", config=config, **options)


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


@pytest.mark.parametrize("settings", [{}, {"lists": 6, "probes": 6}])
def test_the_pairs_are_those_of_sentence_transformers(corpus, settings):
    made = mined(corpus, "pairs.parquet", min_score=-1.0, top=5, **settings)
    rows, wanted = rows_of(made.folder), peers(corpus, 5)
    found = {(row["first_line"], row["second_line"]): row["cosine"] for row in rows}
    # Sentences of the same words have the same vector, so some neighbours may change places with equal ones.
    least = np.array(sorted(wanted.values(), reverse=True))
    assert abs(len(found) - len(wanted)) <= 0.02 * len(wanted) and len(wanted) > 400
    np.testing.assert_allclose([row["cosine"] for row in rows][:300], least[:300], atol=1e-6)
    common = found.keys() & wanted.keys()
    assert len(common) > 0.97 * len(wanted)
    assert max(abs(found[pair] - min(1, wanted[pair])) for pair in common) < 1e-6
    assert all(row["first_line"] < row["second_line"] and row["first"] != row["second"] for row in rows)


def test_the_best_of_them_and_mutual_ones(corpus):
    every = rows_of(mined(corpus, "a.parquet", top=3).folder)
    best = rows_of(mined(corpus, "b.parquet", top=3, max_pairs=20).folder)
    assert best == every[:20] and [row["cosine"] for row in every] == sorted(
        (r["cosine"] for r in every), reverse=True
    )
    mutual = rows_of(mined(corpus, "c.parquet", top=3, pairing="mutual").folder)
    keys = [{(row["first"], row["second"]) for row in rows} for rows in (every, mutual)]
    assert keys[1] < keys[0]


def test_margins_are_those_of_the_paper(corpus):
    made = mined(corpus, "pairs.parquet", top=5, margin="ratio", margin_neighbours=3)
    texts = list(dict.fromkeys(sentences(200)))
    vectors = scorer(corpus).load().encode(texts)
    vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    found = vectors @ vectors.T
    np.fill_diagonal(found, -np.inf)
    means = np.sort(found, axis=1)[:, -3:].mean(axis=1)
    rows = rows_of(made.folder)
    assert [row["margin"] for row in rows] == sorted((row["margin"] for row in rows), reverse=True)
    for row in rows:
        i, j = texts.index(row["first"]), texts.index(row["second"])
        assert row["margin"] == pytest.approx(found[i, j] / (means[i] / 2 + means[j] / 2), abs=1e-5)
    least = rows[len(rows) // 2]["margin"]
    wide = mined(corpus, "wide.parquet", top=5, margin="ratio", margin_neighbours=3, min_margin=least)
    assert all(row["margin"] >= least for row in rows_of(wide.folder))


@pytest.mark.parametrize("settings", [{}, {"lists": 4, "probes": 4}])
def test_between_two_files(corpus, settings):
    other = [*sentences(40, seed=1), *sentences(3)]
    (corpus / "other.txt").write_text("\n".join(other) + "\n")
    made = mined(corpus, "pairs.parquet", second="other.txt", top=2, **settings)
    rows, texts = rows_of(made.folder), sentences(200)
    for row in rows:
        assert texts.index(row["first"]) == row["first_line"] - 1
        assert other.index(row["second"]) == row["second_line"] - 1
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


def test_copies(corpus):
    (corpus / "twice.txt").write_text("red sun\nblue bird\nred sun\n")
    made = mined(corpus, "pairs.parquet", first="twice.txt", copies=True, min_score=0.9)
    assert [(row["first_line"], row["second_line"]) for row in rows_of(made.folder)] == [(1, 3)]
    with refused("min_score"):
        mined(corpus, "none.parquet", first="twice.txt", min_score=0.9)


def test_it_continues_at_a_checkpoint(corpus, checkpoint_always, killed_after, counting):
    lists = {"top": 3, "lists": 20, "probes": 20}
    whole, offers = counting(Neighbours, "offer", mined, corpus, "whole.parquet", **lists)
    for _ in range(3):
        killed_after(8, mined, corpus, "pairs.parquet", kind=Neighbours, name="offer", **lists)
    made, left = counting(Neighbours, "offer", mined, corpus, "pairs.parquet", **lists)
    assert rows_of(made.folder) == rows_of(whole.folder) and left <= offers - 3 * 4
    assert not list(corpus.glob("*.work"))


def test_a_lower_threshold_continues_with_the_vectors(corpus, monkeypatch):
    with refused("min_margin"):
        mined(corpus, "p.parquet", margin="distance", min_margin=2.0)
    assert (corpus / "p.parquet.work").exists()
    monkeypatch.setattr("paranmt_hf.search.indexed_vectors.encoded", None)
    assert mined(corpus, "p.parquet", min_score=0.5).record.pairs > 10
    assert not (corpus / "p.parquet.work").exists()


def test_a_file_that_is_there(corpus):
    made = mined(corpus, "pairs.parquet")
    again = mined(corpus, "pairs.parquet")
    assert made.fresh and not again.fresh and again.record.pairs == made.record.pairs
    with refused("out", path=corpus / "pairs.parquet"):
        mined(corpus, "pairs.parquet", top=4)
    with refused("out"):
        mined(corpus, "pairs.tsv")
    (corpus / "mine.parquet").write_text("my own")
    with refused("out", path=corpus / "mine.parquet"):
        mined(corpus, "mine.parquet")
    assert (corpus / "mine.parquet").read_text() == "my own"


def test_a_release(corpus):
    pairs = rows_of(mined(corpus, "pairs.parquet", top=3).folder)
    options = {"release": ReleaseConfig(license="cc-by-4.0"), "made_by": "people"}
    built = mined(corpus, "mined", top=3, **options)
    rows = pq.read_table(corpus / "mined" / "data").to_pylist()
    assert [(row["reference"], row["translation"]) for row in rows] == [(row["first"], row["second"]) for row in pairs]
    assert [row["id"] for row in rows] == list(range(len(rows))) and {row["origin"] for row in rows} == {"mined"}
    np.testing.assert_allclose([row["para_score"] for row in rows], [row["cosine"] for row in pairs], atol=1e-6)
    assert built.record.settings["scorer"] == scorer(corpus).identity
    assert built.record.settings["pairs"]["kind"] == "mined" and built.record.made_by == "people"
    card = (corpus / "mined" / "README.md").read_text()
    assert "an encoder found them near to each other" in card and "`id` is the rank of the pair, best first" in card
    assert not mined(corpus, "mined", top=3, **options).fresh
    assert not list(corpus.glob("*.work"))
    with refused("out", path=corpus / "mined"):
        mined(corpus, "mined", top=2, **options)


def test_bad_inputs(corpus, monkeypatch, capsys):
    monkeypatch.chdir(corpus)
    words = ["search", "mine", "text.txt", "--encoder", "vectors.txt", "--out", "out"]
    for options, part in (
        ([], "a license is needed"),
        (["--license", "mit", "--min-margin", "1"], "min_margin needs the margin ratio or distance"),
        (["--margin", "ratio", "--search", "top=3"], "margin_neighbours 4 is above top 3"),
    ):
        fails(capsys, [*words, *options], part)
    fails(capsys, ["search", "mine", "none.txt", *words[3:], "--license", "mit"], "none.txt: there is no such file")
    assert not list(corpus.glob("out*"))
    assert main([*words[:-1], "pairs.parquet", "--min-score", "0.9"]) == 0
    out = capsys.readouterr().out
    first, *best, _ = out.splitlines()
    assert first == f"{corpus / 'pairs.parquet'}: {pq.read_metadata(corpus / 'pairs.parquet').num_rows:,} pairs"
    assert len(best) == 3
    assert recorded_options(corpus / "pairs.parquet.json")["min-score"] == 0.9


def test_the_state_is_of_one_search(corpus):
    """What was compared for other neighbours is compared again."""
    sources = [open_sentences(corpus / "text.txt")]
    first, other = (Mining(sources, scorer(corpus), MineConfig(top=top, min_score=0.0)) for top in (2, 4))
    (corpus / "work").mkdir()
    first.pairs(corpus / "work")
    assert rows_of(other.pairs(corpus / "work")) == rows_of(mined(corpus, top=4).folder)
    # The vectors serve pairs of other settings.
    assert len([*corpus.glob("work/*/first/vectors.npy")]) == 1


@pytest.mark.slow
def test_what_the_translator_of_the_package_wrote_keeps_its_terms(corpus):
    release = ReleaseConfig(license="cc-by-4.0")
    mined(corpus, "written", top=3, release=release)
    record = corpus / "written" / "build.json"
    values = json.loads(record.read_text())
    values["settings"]["translator"] = {"model": "captions-cs-en"}
    record.write_text(json.dumps(values))
    with pytest.raises(InputError) as caught:
        mined(corpus, "again", "written", column="translation", release=release)
    assert caught.value.option == "license" and not (corpus / "again").exists()
    assert mined(corpus, "again", "written", column="reference", release=release).fresh
    # A release of mined pairs keeps them, too, and what is mined from it.
    nc = ReleaseConfig(license="cc-by-nc-sa-4.0")
    mined(corpus, "mined", "written", column="translation", release=nc)
    mined(corpus, "twice", "mined", column="reference", release=nc)
    for name in ("mined", "twice"):
        with refused("license"):
            ReleaseRecord.read(corpus / name).check_terms("cc-by-4.0")
