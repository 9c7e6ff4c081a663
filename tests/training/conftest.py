"""What tests of training share: checkpoints at every moment, kills, full disks."""

import pytest

from paranmt_hf.training.cpu_engine import CpuEngine
from tests.training.toys import synonyms, write_data


@pytest.fixture
def data(tmp_path):
    return write_data(tmp_path / "pairs.parquet", synonyms(200))


@pytest.fixture
def killed_after(monkeypatch):
    """Call a function, which is killed before a mega-batch."""

    def run(count, function, *arguments, kind=CpuEngine, name="train_on", **options):
        left, original = iter(range(count)), getattr(kind, name)

        def stopping(self, *rest, **named):
            if next(left, None) is None:
                raise KeyboardInterrupt
            return original(self, *rest, **named)

        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(kind, name, stopping)
            function(*arguments, **options)

    return run
