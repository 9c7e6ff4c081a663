"""The builder of `datasets` for corpora: it loads any Parquet files with the schema as the configs of a corpus."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from datasets.builder import Key

from paranmt_hf.corpus.release.release import FOLDERS, read_tables, release_files
from paranmt_hf.corpus.release.schema import SCHEMA_VERSION, key_columns, row_numbers
from paranmt_hf.corpus.statistics.draws import SAMPLE_ROWS, SAMPLE_SEED, filtered_ranges, in_ranges, sample_ids
from paranmt_hf.errors import InputError


@dataclass
class ParaNMTConfig(datasets.BuilderConfig):
    """A config of the builder: `default` (all rows), `filtered` or `sample`.

    Attributes:
        checksum: Checksum of what identifies the files. It is part of the name under which `datasets` caches the
            result, so that a corpus that was scored again, or another one of the same name, is not taken for this one.
    """

    checksum: str | None = None


class ParaNMTBuilder(datasets.ArrowBasedBuilder):
    """Builds a paraphrase corpus from Parquet files with the columns of the schema.

    The files are those of a corpus (`data_dir`) or any Parquet files (`data_files`). The builder chooses the rows of a
    config itself: `filtered` holds the best two tenths of the paraphrase score with at most 30 tokens on both sides
    (after ParaNMT-50M, table 5), `sample` a thousand rows sampled at random.

    >>> builder = ParaNMTBuilder(config_name="filtered", data_dir="paranmt50m")        # doctest: +SKIP
    >>> builder.download_and_prepare(num_proc=2); builder.as_dataset(split="train")  # doctest: +SKIP
    >>> builder.as_streaming_dataset(split="train")                             # doctest: +SKIP
    """

    BUILDER_CONFIG_CLASS = ParaNMTConfig
    VERSION = datasets.Version(SCHEMA_VERSION)
    DEFAULT_CONFIG_NAME = "default"
    BUILDER_CONFIGS = [
        ParaNMTConfig(name="default", version=VERSION, description="every pair"),
        ParaNMTConfig(name="filtered", version=VERSION, description="top two tenths of para_score, at most 30 tokens"),
        ParaNMTConfig(name="sample", version=VERSION, description=f"{SAMPLE_ROWS} pairs sampled at random"),
    ]

    def __init__(self, *args: Any, data_dir: str | None = None, **options: Any) -> None:  # noqa: ANN401
        if data_dir is not None:
            options["checksum"] = _checksum(release_files(Path(data_dir)))
        super().__init__(*args, data_dir=data_dir, **options)

    def _files(self) -> list[Path]:
        """Return the Parquet files to load."""
        if self.config.data_files is not None:
            return [Path(path) for paths in self.config.data_files.values() for path in paths]
        if self.config.data_dir is None:
            raise InputError(f"ParaNMTBuilder needs data_dir, a corpus folder ({', '.join(FOLDERS)}), or data_files")
        return release_files(Path(self.config.data_dir))

    def _info(self) -> datasets.DatasetInfo:
        schema = pq.read_schema(self._files()[0])
        return datasets.DatasetInfo(
            description="Sentence pairs by back-translation, with score columns.",
            features=datasets.Features.from_arrow_schema(schema),
            version=self.config.version,
        )

    def _split_generators(self, dl_manager: Any) -> list[datasets.SplitGenerator]:  # noqa: ANN401
        files = self._files()
        # `datasets` shares lists among its processes, so one file is one shard.
        arguments: dict[str, Any] = {"files": [str(path) for path in files]}
        if self.config.name == "filtered":
            scores = [table["para_score"].to_numpy() for table in read_tables(files, ["para_score"])]
            arguments["ranges"] = filtered_ranges(np.concatenate(scores))
        if self.config.name == "sample":
            keys = key_columns(pq.read_schema(files[0]).names)
            numbers = [row_numbers(table) for table in read_tables(files, keys)]
            arguments["numbers"] = sample_ids(np.concatenate(numbers), SAMPLE_ROWS, SAMPLE_SEED)
        return [datasets.SplitGenerator(datasets.Split.TRAIN, gen_kwargs=arguments)]

    def _generate_tables(
        self,
        files: list[str],
        ranges: dict[str, Any] | None = None,
        numbers: np.ndarray | None = None,
    ) -> Iterator[tuple[Key, pa.Table]]:
        for index, path in enumerate(files):
            for group, table in enumerate(read_tables([Path(path)])):
                if ranges is not None:
                    table = table.filter(in_ranges(table, ranges))
                if numbers is not None:
                    table = table.filter(pa.array(np.isin(row_numbers(table), numbers)))
                yield Key(index, group), table


def _checksum(files: list[Path]) -> str:
    """Return a checksum of files by their paths, sizes, times and last bytes, without reading them as a whole.

    The footer of a Parquet file, at its end, has sizes and statistics of every column.
    """
    digest = hashlib.sha256()
    for path in files:
        with path.open("rb") as file:
            # The last 64 KiB hold the whole footer of any file that this package writes.
            file.seek(max(0, path.stat().st_size - (1 << 16)))
            digest.update(f"{path.resolve()} {path.stat().st_size} {path.stat().st_mtime_ns}".encode() + file.read())
    return digest.hexdigest()[:16]
