"""What is refused: the kind of the error, the option and the path that it names, never its wording."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from paranmt_hf import InputError


@contextmanager
def refused(
    option: str | None = None, *, path: Path | None = None, kind: type[InputError] = InputError
) -> Iterator[pytest.ExceptionInfo[InputError]]:
    """Expect an error about an option (None: about no option), and about a path if one is given."""
    with pytest.raises(kind) as caught:
        yield caught
    error = caught.value
    assert error.option == option, f"about {error.option}: {error}"
    if path is not None:
        assert error.path == path, f"about {error.path}: {error}"
