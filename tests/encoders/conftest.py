import pytest

from paranmt_hf import SentenceEncoder
from paranmt_hf.encoders.saving import save
from tests.encoders.test_sent2vec import module
from tests.encoders.toys import EVERY, encoder


@pytest.fixture(scope="session")
def saved(tmp_path_factory):
    """A folder for each kind of encoder; who changes one copies it."""
    top = tmp_path_factory.mktemp("encoders")
    for name in [*EVERY, "plstm"]:
        save(encoder(name), top / name)
    save(SentenceEncoder(modules=[module()], device="cpu"), top / "sent2vec")
    return top
