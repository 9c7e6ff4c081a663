import gc
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import BinaryIO

import pytest
from hypothesis import settings

from paranmt_hf.hub.repository import ASSETS

# The tests import the package from the tree that they lie in; the processes that they start must use the same one,
# whatever else is installed.
os.environ["PYTHONPATH"] = os.pathsep.join(
    filter(None, [str(Path(__file__).resolve().parents[1]), os.environ.get("PYTHONPATH")])
)
if os.name != "posix":
    # They kill groups of forks.
    collect_ignore = ["interruption"]
if "PYTEST_XDIST_WORKER" in os.environ:
    # There is a worker for each processor; more threads would only wait for each other.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
# What a machine does beside the tests is nothing that they are about; the same examples each time make a failure one
# of the change that is tested. `--hypothesis-profile=search` looks for new ones.
settings.register_profile("quick", deadline=None, max_examples=40, derandomize=True)
settings.register_profile("search", deadline=None, max_examples=2000)
settings.load_profile("quick")


# What differs between machines, versions of libraries and runs: checksums, versions, seconds and bytes of files.
VOLATILE = {
    r"\b[0-9a-f]{64}\b": "CHECKSUM",
    r"\b\d+\.\d+\.\d+[\w.+]*\b": "VERSION",
    r"[\d,.]+(?= s of training)": "N",
    r"(?<=_size: )\d+|(?<=bytes `)\d+": "N",
    r"(\| `\w+` \| [\d,]+ \|) [\d,]+ \|": r"\1 N |",
}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write the cards that tests compare with")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[Path | str, str], None]:
    """Compares a card with a file, or writes the file (`--update-golden`).

    The file is a path, or a name in `tests/golden`, where what no card can promise is left out.
    """

    def compare(file: Path | str, card: str) -> None:
        if isinstance(file, str):
            file = Path(__file__).parent / "golden" / file
            for pattern, word in VOLATILE.items():
                card = re.sub(pattern, word, card)
        if request.config.getoption("--update-golden"):
            file.parent.mkdir(exist_ok=True)
            file.write_text(card, encoding="utf8", newline="\n")
        assert card == file.read_text(encoding="utf8"), f"if the card is right, write {file} by --update-golden"

    return compare


class Undrawn:
    """Axes of matplotlib, and all that they have, on which nothing is drawn."""

    def __getattr__(self, name: str) -> "Undrawn":
        return self

    __call__ = __getitem__ = lambda self, *arguments, **options: self


def write_picture(figure: object, path: str | Path | BinaryIO, **options: object) -> None:
    """Write the first bytes of a PNG."""
    path.write(b"\x89PNG") if hasattr(path, "write") else Path(path).write_bytes(b"\x89PNG")


UNDRAWN = {name: lambda *arguments, **options: Undrawn() for name in ("add_subplot", "legend")}


@pytest.fixture(autouse=True, scope="session")
def _quick() -> Iterator[dict[str, object]]:
    """Pictures are written without being drawn, and nothing waits for a disk: both take longer than most tests."""
    drawn: dict[str, object] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda file: None)
        if find_spec("matplotlib"):
            from matplotlib.figure import Figure

            for name, undrawn in {**UNDRAWN, "savefig": write_picture}.items():
                drawn[name] = getattr(Figure, name)
                patch.setattr(Figure, name, undrawn)
        yield drawn


@pytest.fixture
def drawing(monkeypatch: pytest.MonkeyPatch, _quick: dict[str, object]) -> None:
    """Pictures are drawn."""
    figure = pytest.importorskip("matplotlib.figure").Figure
    for name, original in _quick.items():
        monkeypatch.setattr(figure, name, original)


@pytest.fixture(autouse=True, scope="module")
def _freeze() -> None:
    """What the tests of a file import stays; no garbage collection, and Accelerate asks for many, looks through it."""
    gc.freeze()


@pytest.fixture
def checkpoint_always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Long work writes a checkpoint after every step that can have one."""
    for name in ("training.checkpoint", "search.mine", "search.ranked_negatives", "corpus.selection.run_filters"):
        monkeypatch.setattr(f"paranmt_hf.{name}.CHECKPOINT_SECONDS", 0)


@pytest.fixture
def killed_after(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Call a function, which is killed after some calls of a method (training on a mega-batch) or of a function."""

    def run(
        count: int,
        function: Callable,
        *arguments: object,
        kind: object = None,
        name: str = "train_on",
        **options: object,
    ) -> None:
        if kind is None:
            from paranmt_hf.training.cpu_engine import CpuEngine as kind
        left, original = iter(range(count)), getattr(kind, name)

        def stopping(*given: object, **named: object) -> object:
            if next(left, None) is None:
                raise KeyboardInterrupt
            return original(*given, **named)

        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(kind, name, stopping)
            function(*arguments, **options)

    return run


@pytest.fixture
def counting(monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[object, int]]:
    """Call a function, and return its result and how often it called a method or another function."""

    def run(kind: object, name: str, function: Callable, *arguments: object, **options: object) -> tuple[object, int]:
        calls, original = [], getattr(kind, name)

        def counted(*given: object, **named: object) -> object:
            calls.append(name)
            return original(*given, **named)

        with monkeypatch.context() as patch:
            patch.setattr(kind, name, counted)
            return function(*arguments, **options), len(calls)

    return run


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Call it with the bytes of memory that the machine has."""
    return lambda size: monkeypatch.setattr("paranmt_hf.util.machine.total_memory", lambda: size)


@pytest.fixture
def without(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Call it with the name of an optional package, which is then as if it were not installed."""

    return lambda package: monkeypatch.setitem(sys.modules, package, None)


@pytest.fixture
def any_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """Settings may be out of their ranges, as by an `object.__setattr__`: what then diverges must still be told."""
    monkeypatch.setattr("paranmt_hf.util.markers.Range.__contains__", lambda self, value: True)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real data, which is not part of the project."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = Path(os.environ.get("PARANMT_SHARED_DATA", beside))
    if not folder.is_dir():
        pytest.skip(f"needs the real data, but there is no folder {folder}; PARANMT_SHARED_DATA can name it")
    return folder


@pytest.fixture(scope="session")
def real_sentences(request: pytest.FixtureRequest) -> list[str]:
    """Some hundred sentences of news where the real data is there, and of the sample of the package otherwise."""
    try:
        path = request.getfixturevalue("shared_data") / "bitext" / "news" / "news.en"
    except pytest.skip.Exception:
        path = ASSETS / "sample" / "sample.en"
    with path.open(encoding="utf8") as file:
        return [line.rstrip("\n") for line in islice(file, 400)]


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    from tests.hub.releases import make_release

    return make_release(tmp_path_factory.mktemp("release") / "corpus", 60)


@pytest.fixture
def release(made, tmp_path):
    return shutil.copytree(made, tmp_path / "corpus")


@pytest.fixture
def releases_on_hub(monkeypatch):
    """Folders of corpora by their names on the Hub, where nothing else is; `asked` has what was asked for."""
    import paranmt_hf.corpus.reading.sentences as sentences
    import paranmt_hf.corpus.release.release as release

    found = SimpleNamespace(folders={}, asked=[])

    def fetch(name, *version):
        found.asked.append((name, *version))
        return replace(release.find_release(found.folders[name]), name=name) if name in found.folders else None

    for module in (sentences, release):
        monkeypatch.setattr(module, "fetch_release", fetch)
    return found


@pytest.fixture(scope="session")
def whole(tmp_path_factory):
    """A release of 400 rows in row groups of 64, with copies, identical sides, short sides and three origins."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    from paranmt_hf.corpus.release import release as release_module
    from paranmt_hf.corpus.release.release import release_files
    from paranmt_hf.corpus.release.release_run import ReleaseConfig
    from tests.toys import scored_release

    random, rows = np.random.default_rng(3), 400
    words = [f"w{number}" for number in range(30)]

    def sentence():
        return " ".join(words[number] for number in random.integers(0, 30, random.integers(1, 12)))

    references = [sentence() for _ in range(rows)]
    translations = [sentence() for _ in range(rows)]
    for row in range(0, rows, 9):
        translations[row] = f"{references[row].upper()} ."
    for row in range(20, rows, 11):
        references[row] = references[row - 20]
    for row in range(30, rows, 17):
        references[row], translations[row] = references[row - 30], translations[row - 30]
    table = {
        "reference": references,
        "translation": translations,
        "para_score": pa.array(random.integers(-3, 20, rows) / 20, pa.float32()),
        "origin": pa.array([[None, "web", "news", "law"][number] for number in random.integers(0, 4, rows)]),
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(release_module, "ROW_GROUP_ROWS", 64)
        config = ReleaseConfig(license="cc-by-4.0", title="All of it", description="Words.")
        folder = scored_release(tmp_path_factory.mktemp("whole") / "whole", table, config, made_by="machine")
    assert pq.ParquetFile(release_files(folder)[0]).num_row_groups > 5
    return folder
