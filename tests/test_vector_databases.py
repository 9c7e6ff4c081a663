"""The blocks of docs/vector-databases.md, run as they stand; those of a database that is not installed are skipped."""

import contextlib
import importlib.util
import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[1] / "docs" / "vector-databases.md"
FIRST, *BLOCKS = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf8"), re.DOTALL)


def package_of(block):
    return re.search(r"(?:import|from) (\w+)", block)[1]


@pytest.mark.slow
@pytest.mark.parametrize("block", [pytest.param(block, id=package_of(block)) for block in BLOCKS])
def test_a_query_finds_its_sentence(block, tmp_path, monkeypatch, capsys):
    if importlib.util.find_spec(package_of(block)) is None:
        pytest.skip(f"needs {package_of(block)}, which is no part of this package")
    monkeypatch.chdir(tmp_path)
    names = {}
    exec(FIRST, names)
    exec(block, names)
    text, _, cosine = capsys.readouterr().out.strip().rpartition(" ")
    assert text == "It rains." and float(cosine) == pytest.approx(0.7277, abs=1e-3)
    with contextlib.suppress(KeyError, AttributeError):
        names["client"].close()


def test_all_databases_have_a_block():
    assert [package_of(block) for block in BLOCKS] == ["chromadb", "faiss", "lancedb", "qdrant_client"]
