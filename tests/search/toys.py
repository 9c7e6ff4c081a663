"""Sentences and vectors to search in, and what a search finds that looks at everything."""

import numpy as np

from paranmt_hf.encoders.named_encoder import NamedEncoder
from paranmt_hf.search.storage import normalised, write_encoded

WORDS = "red green blue one two three sun moon star cat dog bird".split()


def sentences(count, seed=0):
    generator = np.random.default_rng(seed)
    return [" ".join(generator.choice(WORDS, size=4, replace=False)) for _ in range(count)]


def scorer(folder):
    return NamedEncoder(str(folder / "vectors.txt"))


def clustered(count, *, groups=20, dimension=16, spread=0.5, seed=0):
    """Vectors [vector, dimension] of length 1 around some centres."""
    generator = np.random.default_rng(seed)
    centres = generator.normal(size=(groups, dimension))
    vectors = centres[generator.integers(groups, size=count)] + spread * generator.normal(size=(count, dimension))
    return normalised(vectors)


def stored(vectors, folder):
    """The same in a file."""
    folder.mkdir(parents=True, exist_ok=True)
    return write_encoded(folder, len(vectors), lambda start, stop: vectors[start:stop], "float32")


def similarities(vectors, others=None):
    """All cosines [vector, other]; without others inside one set, where nothing is its own neighbour."""
    found = vectors @ (vectors if others is None else others).T
    if others is None:
        np.fill_diagonal(found, -np.inf)
    return found


def best(found, top):
    """Scores and items [row, rank] of the largest similarities."""
    order = np.argsort(-found, axis=1, kind="stable")[:, :top]
    return np.take_along_axis(found, order, axis=1), order


def assert_nearest(neighbours, found, top):
    """Check neighbours against all similarities [row, item]; no two of a row may be equal."""
    scores, items = best(found, top)
    np.testing.assert_allclose(neighbours.scores, scores, atol=1e-6)
    assert (neighbours.items == items).all()
