"""The column para_probability: its values, its prior, and what a new scorer does to it."""

import json

import numpy as np
import pyarrow.parquet as pq
import pytest

from paranmt_hf import InputError, ReleaseConfig, ReleaseFilter, import_pairs, load, select
from paranmt_hf.corpus.score import rescore
from tests.refused import refused
from tests.toys import LOCAL

PAIRS = [("A man plays the guitar.", "A man is playing a guitar."), ("It rains.", "I have a red car."), ("a", "b")]


@pytest.fixture
def imported(tmp_path):
    (tmp_path / "pairs.tsv").write_text("".join(f"{one}\t{two}\n" for one, two in PAIRS))

    def make(name, **options):
        config = ReleaseConfig(license="mit")
        return import_pairs([tmp_path / "pairs.tsv"], tmp_path / name, release=config, engine=LOCAL, **options).folder

    return make


def column(folder, name="para_probability"):
    return pq.read_table(folder / "data")[name].to_numpy()


def prior_of(folder):
    return json.loads((folder / "build.json").read_text())["settings"]["columns"]["para_probability"]["prior"]


@pytest.mark.slow
def test_each_scoring_gives_the_values_of_its_encoder(imported):
    """A prior leaves the score, and stays with another encoder."""
    release, sides = imported("added"), list(map(list, zip(*PAIRS, strict=True)))
    for options, name, prior in (
        ({}, "small", 0.5),
        ({"prior": 0.1}, "small", 0.1),
        ({"scorer": "base"}, "base", 0.1),
        ({"scorer": "base", "prior": 0.7}, "base", 0.7),
    ):
        before = column(release, "para_score").tolist()
        assert rescore(release, add=["para_probability"], engine=LOCAL, **options).fresh
        np.testing.assert_allclose(column(release), load(name).probability(*sides, prior=prior), atol=1e-3)
        assert prior_of(release) == prior
        assert (column(release, "para_score").tolist() == before) == (options != {"scorer": "base"})
        assert not rescore(release, add=["para_probability"], engine=LOCAL, **options).fresh
    made = imported("made", add=["para_probability"], scorer="base")
    np.testing.assert_array_equal(rescored(made, prior=0.7), column(release))


def rescored(folder, **options):
    rescore(folder, engine=LOCAL, **options)
    return column(folder)


@pytest.mark.slow
def test_what_has_no_probability_is_refused(imported, tmp_path):
    vectors = tmp_path / "vectors.txt"
    vectors.write_text("a 1 0\nit 0 1\n")
    release, other = imported("one", add=["para_probability"]), imported("three", scorer=vectors)
    with pytest.raises(InputError):
        rescore(release, scorer=vectors, engine=LOCAL)
    with pytest.raises(InputError):
        imported("two", add=["para_probability"], scorer=vectors)
    with refused("scorer"):
        rescore(other, add=["para_probability"], engine=LOCAL)
    with refused("prior"):
        rescore(imported("four"), prior=0.1, engine=LOCAL)


def test_selection_by_probability(imported, tmp_path):
    release = imported("one", add=["para_probability"])
    select(release, tmp_path / "chosen", ReleaseFilter(min={"para_probability": 0.5}))
    assert pq.read_table(tmp_path / "chosen" / "data")["reference"].to_pylist() == [PAIRS[0][0]]
