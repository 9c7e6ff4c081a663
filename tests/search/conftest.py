import pytest

from tests.search.toys import WORDS, sentences
from tests.toys import write_vectors


@pytest.fixture
def corpus(tmp_path):
    """A folder with vectors of some words, and 200 sentences of them."""
    write_vectors(tmp_path / "vectors.txt", WORDS)
    (tmp_path / "text.txt").write_text("\n".join(sentences(200)) + "\n\n")
    return tmp_path
