"""Who wrote a sentence: features by hand, folds, and a classifier that finds what is there to find."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paranmt_hf.corpus.jobs.shards import write_shard
from paranmt_hf.corpus.scoring import authorship
from paranmt_hf.corpus.scoring.authorship import Authorship, AuthorshipConfig, Features, HumanScorer, learn
from tests.refused import refused

CONFIG = AuthorshipConfig(folds=3, bits=12)


def write(folder, references, translations, rows=100):
    table = pa.table({"id": range(len(references)), "reference": references, "translation": translations})
    paths = []
    for start in range(0, len(references), rows):
        paths.append(folder / f"shard-{start:06d}.parquet")
        write_shard(table.slice(start, rows), paths[-1])
    return paths


@pytest.fixture(scope="module")
def texts():
    """References of random words; a machine writes 'of' for every fourth word. Three translations of each."""
    generator = np.random.default_rng(0)
    words = [f"w{number}" for number in range(300)]
    references = [" ".join(generator.choice(words, 8)) for _ in range(200) for _ in range(1)]
    references = [reference for reference in references for _ in range(3)]
    machine = [" ".join("of" if i % 4 == 3 else w for i, w in enumerate(r.split())) for r in references]
    return references, machine


def test_features_by_hand():
    (left, right), folds = Features(AuthorshipConfig(bits=20)).of(
        pa.array(["a b", "", "a a a"]), pa.array(["b a", "x", "A, a"])
    )
    assert left.shape == (3, 2**20)
    # a, b, START a, a b, b END; an empty sentence has START END alone; a and a a count twice and thrice.
    assert [len(set(row.indices)) for row in left] == [5, 1, 4]
    assert sorted(left[2].toarray()[left[2].toarray() > 0] * np.sqrt(7)) == pytest.approx([1, 1, 2, 3])
    np.testing.assert_allclose(left[0].multiply(left[0]).sum(), 1)
    # The same words in another order share the words and nothing else.
    assert (left[0].multiply(right[0]) > 0).sum() == 2
    assert len(folds) == 3


def test_a_reference_is_in_one_fold(texts):
    references = [*texts[0], *(text.upper() for text in texts[0])]
    _, folds = Features(CONFIG).of(pa.array(references), pa.array(references))
    by_text = {}
    for reference, fold in zip(references, folds.tolist(), strict=True):
        assert by_text.setdefault(reference.lower(), fold) == fold
    assert set(folds.tolist()) == {0, 1, 2}
    _, others = Features(AuthorshipConfig(folds=3, seed=1)).of(pa.array(references), pa.array(references))
    assert (others != folds).any()


def test_it_finds_what_tells_the_sides_apart(texts, tmp_path):
    found = learn(write(tmp_path, *texts), 600, CONFIG)
    assert found.held_out.pairs == 600
    assert found.held_out.accuracy > 0.95
    assert found.held_out.ordered > 0.99
    scores = HumanScorer(found).scores(pa.array(texts[0]), pa.array(texts[1])).to_numpy()
    swapped = HumanScorer(found).scores(pa.array(texts[0]), pa.array(texts[0])).to_numpy()
    assert scores.mean() < 0.4 < 0.6 < swapped.mean()
    assert ((scores >= 0) & (scores <= 1)).all()
    # What the record says is what the scores say.
    right = ((swapped > 0.5).sum() + (scores <= 0.5).sum()) / 1200
    assert right == pytest.approx(found.held_out.accuracy, abs=1e-4)


def test_nothing_to_find_is_chance(texts, tmp_path):
    """Both sides are drawn alike. A classifier that had seen a reference would know it again."""
    references = texts[0][::3]
    generator = np.random.default_rng(1)
    other = [" ".join(generator.permutation(reference.split())) for reference in references]
    found = learn(write(tmp_path, references * 3, other * 3), 600, CONFIG)
    assert 0.4 < found.held_out.accuracy < 0.6


def test_the_same_again_and_from_disk(texts, tmp_path):
    paths = write(tmp_path, *texts)
    first, second = (learn(paths, 600, CONFIG) for _ in range(2))
    first.save(tmp_path / "a.safetensors")
    second.save(tmp_path / "b.safetensors")
    assert (tmp_path / "a.safetensors").read_bytes() == (tmp_path / "b.safetensors").read_bytes()
    loaded = Authorship.load(tmp_path / "a.safetensors")
    np.testing.assert_array_equal(loaded.weights, first.weights)
    assert (loaded.config, loaded.held_out) == (first.config, first.held_out)


def test_models_that_do_not_fit_into_memory_are_refused():
    AuthorshipConfig(folds=16, bits=22)
    with refused():
        AuthorshipConfig(folds=17, bits=22)
    with refused("folds"):
        AuthorshipConfig(folds=100_000)


def test_too_few_references(tmp_path):
    with refused():
        learn(write(tmp_path, ["a b"] * 9, ["a c"] * 9), 9, AuthorshipConfig(bits=10))


@pytest.mark.slow
def test_how_rows_are_cut_into_files_changes_nothing(texts, tmp_path, monkeypatch):
    monkeypatch.setattr(authorship, "BATCH_ROWS", 64)
    table = pa.table({"id": range(600), "reference": texts[0], "translation": texts[1]})
    found = []
    for bounds in ([0, 600], [0, 1, 100, 357, 600]):
        paths = [tmp_path / f"{len(bounds)}-{start}.parquet" for start in bounds[:-1]]
        for path, start, stop in zip(paths, bounds, bounds[1:], strict=False):
            pq.write_table(table.slice(start, stop - start), path, row_group_size=37)
        found.append(learn(paths, 600, AuthorshipConfig(folds=3, bits=12, learn_pairs=500)))
    assert np.array_equal(found[0].weights, found[1].weights)
    assert found[0].held_out == found[1].held_out
    assert 400 < found[0].held_out.pairs < 600
