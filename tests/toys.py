"""A translator without a model, and releases made with it; tests of the pipeline share these."""

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paranmt_hf import EngineConfig, ReleaseConfig, build, import_pairs
from paranmt_hf.corpus.reading.readers import TableFiles
from paranmt_hf.corpus.release.release import read_tables, release_files
from paranmt_hf.corpus.translation import engines
from paranmt_hf.corpus.translation.translator import Translations

RELEASE = ReleaseConfig(license="cc-by-4.0", keep_source=True)
LOCAL = EngineConfig("local", 1, 1, shard_rows=10)


@dataclass(frozen=True)
class FakeTranslatorConfig:
    """Stands in for `TranslatorConfig`: writes the source backwards, word by word."""

    name: str = "fake"
    beam: int = 12
    seconds: float = 0.0
    log: str = ""
    hypotheses: int = 1
    backend: str = "fake"
    dtype: str = "float32"


def identity_of(config: FakeTranslatorConfig) -> dict:
    return {"model": "fake", "revision": "1", "beam": config.beam, "max_source_tokens": 6}


class FakeTranslator:
    def __init__(self, config):
        self.config = config
        self.identity = identity_of(config)

    def translate(self, sentences):
        time.sleep(self.config.seconds)
        if self.config.log:
            with Path(self.config.log).open("a") as log:
                log.writelines(f"{sentence}\n" for sentence in sentences)
        texts = [None if len(s.split()) > 6 else "" if s == "stumm" else " ".join(s.split()[::-1]) for s in sentences]
        return Translations(texts, np.array([-len(s) / 100 for s in sentences], np.float32))


def rows_of(folder: Path) -> list[dict]:
    return pa.concat_tables(read_tables(release_files(folder))).to_pylist()


def bytes_of(folder: Path) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def write_vectors(path: Path, words: Iterable[str], dimension: int = 8) -> Path:
    """Write random vectors of words."""
    generator = np.random.default_rng(0)
    lines = (f"{word} {' '.join(f'{x:.3f}' for x in generator.normal(size=dimension))}\n" for word in words)
    path.write_text("".join(lines), encoding="utf8")
    return path


@contextmanager
def full_disk(room: int) -> Iterator[None]:
    """Let no file get longer than some bytes; not longer than needed, because pytest itself may write into a file."""
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def scored_release(folder: Path, columns: dict, release: ReleaseConfig, **options) -> Path:
    """Release pairs without a model: `columns` have their scores."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    path = folder.with_suffix(".parquet")
    pq.write_table(pa.table(columns), path)
    names = {name: name for name in columns}
    pairs = TableFiles([path], names, numbers={"para_score"}, optional={"origin"} & names.keys())
    import_pairs(pairs, folder, release=release, engine=EngineConfig("local", 1, 1), **options)
    return folder


def make(bitext, out, vectors, **changes):
    arguments = {
        "translator": FakeTranslatorConfig(),
        "scorer": vectors,
        "release": RELEASE,
        "engine": LOCAL,
        **changes,
    }
    # In place of the engines; all is done in this process.
    with mock.patch.multiple(
        engines, load_translator=lambda config, threads: FakeTranslator(config), translator_identity=identity_of
    ):
        return build(bitext, out, **arguments)
