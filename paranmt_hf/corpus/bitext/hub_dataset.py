"""A dataset on the Hub, or in a local folder, as aligned text."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Unpack

from paranmt_hf.corpus.bitext.columns import stream_batches
from paranmt_hf.corpus.bitext.lines import file_identity
from paranmt_hf.corpus.bitext.readers import BLOCK_ROWS, Piece, TableReader, TextOptions
from paranmt_hf.errors import InputError
from paranmt_hf.hub.client import explain, explain_absence
from paranmt_hf.hub.repository import check_remote, own_files


class HubDataset(TableReader):
    """A dataset on the Hub, or in a local folder, read as a stream.

    The revision is resolved once, at the first use, so that all uses of this object read the same rows.

    Args:
        id: Id on the Hub, or a folder.
        columns: Where each column is: a name, or a path such as `translation.cs` (the layout of OPUS and WMT).
        config: Config of the dataset.
        split: Its split.
        revision: Branch, tag or commit on the Hub; None is the main branch.
        options: See `TextOptions`.
    """

    def __init__(
        self,
        id: str,
        columns: Mapping[str, str],
        *,
        config: str | None = None,
        split: str = "train",
        revision: str | None = None,
        **options: Unpack[TextOptions],
    ) -> None:
        super().__init__(columns, **options)
        self.id, self.config, self.split, self.revision = str(id), config, split, revision
        self.label = f"dataset {self.id!r}, split {split!r}"
        self._local = Path(self.id).is_dir()
        self._resolved: str | None = None

    def source(self) -> dict[str, object]:
        """Name the commit on the Hub, or hash the files of a folder."""
        chosen = {"config": self.config, "split": self.split, "columns": self.paths}
        if self._local:
            return {"kind": "folder", "files": [file_identity(path) for path in self._local_files()], **chosen}
        return {"kind": "hub", "dataset": self.id, "revision": self._commit(), **chosen}

    def pieces(self) -> Iterator[Piece]:
        """Read the stream batch by batch."""
        from datasets import load_dataset, load_dataset_builder

        options = {} if self._local else {"revision": self._commit()}
        if self._local:
            self._local_files()
        else:
            check_remote(self.id, lambda: self._load(load_dataset_builder, **options))
        stream = self._load(load_dataset, split=self.split, streaming=True, **options)
        rows = 0
        with contextlib.closing(stream_batches(stream, self.label, BLOCK_ROWS)) as batches:
            for batch in batches:
                yield self.piece(batch, self.label, (rows := rows + batch.num_rows) - batch.num_rows)

    def _load(self, load: Callable[..., Any], **options: object) -> Any:  # noqa: ANN401
        try:
            return load(self.id, self.config, **options)
        # What a wrong name, config, split or layout raises.
        except (OSError, ValueError, RuntimeError) as error:
            why = error if self._local else explain(error, self.id, "dataset", self.revision)
            raise InputError(f"{self.label}: cannot be read: {why}") from error

    def _local_files(self) -> list[Path]:
        from datasets import load_dataset_builder

        files = own_files(Path(self.id), lambda: self._load(load_dataset_builder))
        # A slice such as `train[:10%]` is not a key: then all files count.
        chosen = [files[self.split]] if self.split in files else files.values()
        return sorted(path for group in chosen for path in group)

    def _commit(self) -> str:
        from huggingface_hub import HfApi

        if self._resolved is None:
            try:
                self._resolved = HfApi().dataset_info(self.id, revision=self.revision).sha
            # The client passes on errors of several libraries; all mean that there is no such dataset to be had.
            except Exception as error:
                raise InputError(explain_absence(error, self.id, "dataset", self.revision)) from error
        return self._resolved
