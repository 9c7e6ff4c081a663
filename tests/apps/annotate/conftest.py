import pytest

from tests.apps.annotate.toys import toy_sample


@pytest.fixture(scope="session")
def sample(tmp_path_factory):
    """A sample of two pairs from each of two ranges."""
    return toy_sample(tmp_path_factory.mktemp("toys"))
