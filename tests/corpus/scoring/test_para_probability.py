"""The column para_probability: its values, its prior, and what a new scorer does to it."""

import json

import numpy as np
import pyarrow.parquet as pq
import pytest

from paranmt_hf.corpus.import_pairs import import_pairs
from paranmt_hf.corpus.release.release_run import ReleaseConfig
from paranmt_hf.corpus.score import rescore
from paranmt_hf.corpus.selection.release_filter import ReleaseFilter
from paranmt_hf.corpus.selection.select import select
from paranmt_hf.encoders.loading import load
from paranmt_hf.errors import InputError
from tests.toys import LOCAL

PAIRS = [("A man plays the guitar.", "A man is playing a guitar."), ("It rains.", "I have a red car."), ("a", "b")]


@pytest.fixture
def imported(tmp_path):
    (tmp_path / "pairs.tsv").write_text("".join(f"{one}\t{two}\n" for one, two in PAIRS))

    def make(name, **options):
        config = ReleaseConfig(license="mit")
        return import_pairs([tmp_path / "pairs.tsv"], tmp_path / name, release=config, engine=LOCAL, **options).folder

    return make


def column(folder):
    return pq.read_table(folder / "data")["para_probability"].to_numpy()


@pytest.mark.slow
def test_values_are_those_of_the_encoder(imported):
    encoder = load("small")
    wanted = encoder.probability(*map(list, zip(*PAIRS, strict=True)))
    made, added = imported("made", add=["para_probability"]), imported("added")
    rescore(added, add=["para_probability"], engine=LOCAL)
    np.testing.assert_allclose(column(made), wanted, atol=1e-3)
    np.testing.assert_array_equal(column(made), column(added))
    assert json.loads((made / "build.json").read_text())["settings"]["columns"]["para_probability"]["prior"] == 0.5
    assert not rescore(added, add=["para_probability"], engine=LOCAL).fresh
    rescore(added, add=["para_probability"], prior=0.1, engine=LOCAL)
    np.testing.assert_allclose(
        column(added), encoder.probability(*map(list, zip(*PAIRS, strict=True)), prior=0.1), atol=1e-3
    )


@pytest.mark.slow
def test_another_prior_leaves_the_score(imported):
    release = imported("one", add=["para_probability"], scorer="base")
    scores = pq.read_table(release / "data")["para_score"]
    rescore(release, prior=0.1, engine=LOCAL)
    assert pq.read_table(release / "data")["para_score"] == scores
    pairs = map(list, zip(*PAIRS, strict=True))
    np.testing.assert_allclose(column(release), load("base").probability(*pairs, prior=0.1), atol=1e-3)


@pytest.mark.slow
def test_new_score_has_new_probabilities(imported, tmp_path):
    release = imported("one", add=["para_probability"])
    rescore(release, scorer="base", engine=LOCAL)
    np.testing.assert_allclose(
        column(release), load("base").probability(*map(list, zip(*PAIRS, strict=True))), atol=1e-3
    )
    (tmp_path / "vectors.txt").write_text("a 1 0\nit 0 1\n")
    with pytest.raises(InputError):
        rescore(release, scorer=tmp_path / "vectors.txt", engine=LOCAL)
    with pytest.raises(InputError):
        imported("two", add=["para_probability"], scorer=tmp_path / "vectors.txt")
    other = imported("three", scorer=tmp_path / "vectors.txt")
    with pytest.raises(InputError) as error:
        rescore(other, add=["para_probability"], engine=LOCAL)
    assert error.value.option == "scorer"


@pytest.mark.slow
def test_prior_stays_with_another_encoder(imported):
    release, sides = imported("one", add=["para_probability"]), list(map(list, zip(*PAIRS, strict=True)))
    for options, name, prior in (
        ({"prior": 0.1}, "small", 0.1),
        ({"scorer": "base"}, "base", 0.1),
        ({"scorer": "base", "prior": 0.7}, "base", 0.7),
    ):
        assert rescore(release, **options, engine=LOCAL).fresh
        np.testing.assert_allclose(column(release), load(name).probability(*sides, prior=prior), atol=1e-3)
    assert not rescore(release, add=["para_probability"], scorer="base", engine=LOCAL).fresh
    with pytest.raises(InputError) as error:
        rescore(imported("two"), prior=0.1, engine=LOCAL)
    assert error.value.option == "prior"


def test_selection_by_probability(imported, tmp_path):
    release = imported("one", add=["para_probability"])
    select(release, tmp_path / "chosen", ReleaseFilter(min={"para_probability": 0.5}))
    assert pq.read_table(tmp_path / "chosen" / "data")["reference"].to_pylist() == [PAIRS[0][0]]
