import pytest

from paranmt_hf.search import inverted_index, ranked_negatives
from tests.search.toys import WORDS, sentences
from tests.toys import write_vectors

SMALL = {
    inverted_index: {"STEP": 64, "AT_ONCE": 500, "SHARD": 70},
    ranked_negatives: {"BLOCK": 7, "LISTED_BLOCK": 11, "FEWEST": 1, "SLOTS": 300},
}


@pytest.fixture
def small_blocks(monkeypatch):
    """Blocks, which change no result, are small."""
    for module, sizes in SMALL.items():
        for name, size in sizes.items():
            monkeypatch.setattr(module, name, size)


@pytest.fixture
def corpus(tmp_path):
    """A folder with vectors of some words, and 200 sentences of them."""
    write_vectors(tmp_path / "vectors.txt", WORDS)
    (tmp_path / "text.txt").write_text("\n".join(sentences(200)) + "\n\n")
    return tmp_path
