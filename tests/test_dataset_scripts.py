"""The recipes run, on data of the shape that they are for."""

import gzip
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paranmt_hf.hub.repository import ASSETS
from paranmt_hf.vectors import read_vectors

SCRIPTS = Path(__file__).parent.parent / "dataset_scripts"
SAMPLE = [(ASSETS / "sample" / f"sample.{side}").read_text(encoding="utf8").split("\n")[:20] for side in ("cs", "en")]


def run(script, *arguments, folder):
    command = [sys.executable, str(SCRIPTS / script), *map(str, arguments)]
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return result


def test_czeng(tmp_path):
    lines = [f"id{n}\t0.5\t0.6\t0.7\t{cs}\t{en}\n" for n, (cs, en) in enumerate(zip(*SAMPLE, strict=True))]
    (tmp_path / "czeng.gz").write_bytes(gzip.compress("".join(lines).encode()))
    run("paranmt50m_czeng.py", "czeng.gz", "--translator", "embedded", "--workers", 1, folder=tmp_path)
    table = pq.read_table(tmp_path / "paranmt50m" / "data")
    assert table["reference"].to_pylist() == SAMPLE[1]
    assert "source" not in table.column_names


def test_open(tmp_path):
    pairs = [{"cs": cs, "en": en} for cs, en in zip(*SAMPLE, strict=True)]
    (tmp_path / "tatoeba").mkdir()
    pq.write_table(pa.table({"translation": pairs}), tmp_path / "tatoeba" / "train.parquet")
    arguments = ["--dataset", "tatoeba", "--translator", "embedded", "--keep-source", "--workers", 1]
    run("paranmt50m_open.py", "tatoeba", "--out", "open", *arguments, folder=tmp_path)
    table = pq.read_table(tmp_path / "open" / "data")
    assert table["source"].to_pylist() == SAMPLE[0]
    assert "license: cc-by-2.0" in (tmp_path / "open" / "README.md").read_text()


@pytest.mark.slow
def test_recipe_of_the_embedded_translator(tmp_path):
    pytest.importorskip("sacrebleu")
    for part in ("train", "val"):
        for side, name in zip(SAMPLE, ("cs", "en"), strict=True):
            (tmp_path / f"{part}.{name}").write_text("\n".join(side) + "\n", encoding="utf8")
    settings = {
        "steps": 4,
        "pieces": 200,
        "width": 16,
        "heads": 2,
        "feed-forward": 32,
        "evaluate-every": 2,
        "warmup": 2,
    }
    options = [part for name, value in settings.items() for part in (f"--{name}", value)]
    run("train_captions_translator.py", "--data", ".", "--out", "one", *options, folder=tmp_path)
    run("train_captions_translator.py", "--data", ".", "--out", "two", *options, folder=tmp_path)
    one, two = ((tmp_path / name / "model.safetensors").read_bytes() for name in ("one", "two"))
    assert one == two, "the same seed gives the same weights"
    from paranmt_hf.corpus.translation.engines import load_translator
    from paranmt_hf.corpus.translation.translator import TranslatorConfig

    # No sense is to be expected of four steps; the model must load and search.
    result = load_translator(TranslatorConfig(name=str(tmp_path / "one"), beam=2, max_target_tokens=8)).translate(
        SAMPLE[0][:2]
    )
    assert len(result.texts) == 2


def test_vectors_with_wordllama(tmp_path):
    pytest.importorskip("wordllama")
    (tmp_path / "own.txt").write_text("a 0 0 1\ndog 1 1 1\ncat 2 2 1\nruns 3 0 1\n")
    run("vectors_with_wordllama.py", "own.txt", "--dimension", 3, "--out", "joined.txt", folder=tmp_path)
    vectors = read_vectors(tmp_path / "joined.txt")
    assert vectors.words == ["a", "dog", "cat", "runs"]
    assert vectors.matrix.shape == (4, 3)
    # Lengths of 1, as the root of their mean square; centred.
    assert np.square(vectors.matrix).sum(axis=1).mean() == pytest.approx(1, abs=1e-3)
    np.testing.assert_allclose(vectors.matrix.mean(axis=0), 0, atol=1e-3)
