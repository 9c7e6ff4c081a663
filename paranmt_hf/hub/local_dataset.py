"""Which files are a dataset's own, whatever its card names: of one in a folder, and of one on the Hub."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from paranmt_hf.errors import InputError
from paranmt_hf.util.files import check_regular

REMOTE = ("hf://", "https://", "http://")


def own_files(folder: Path, build: Callable[[], Any]) -> dict[str, list[Path]]:
    """List the data files of a dataset in a folder, and refuse one that lies elsewhere.

    The card may name any path, and a link may lead anywhere; a folder from elsewhere must not make this machine read
    its owner's files, or fetch others.

    Args:
        folder: The dataset.
        build: Makes the builder of `datasets`, which resolves names and patterns and reads no data.

    Returns:
        The files of each split.
    """
    found: Mapping[Any, Any] = build().config.data_files or {}
    files = {str(split): [_own(folder, str(name)) for name in names] for split, names in found.items()}
    return {split: sorted(paths) for split, paths in files.items()}


def check_remote(id: str, build: Callable[[], Any]) -> None:
    """Refuse a dataset on the Hub that names files of this machine, which its card may do.

    Args:
        id: The dataset.
        build: As of `own_files`.
    """
    found: Mapping[Any, Any] = build().config.data_files or {}
    for name in (str(name) for names in found.values() for name in names):
        # What a file is unpacked from stands last.
        if not name.split("::")[-1].startswith(REMOTE):
            raise InputError(
                f"the dataset {id} names the data file {name} of this machine, which is not read; take another dataset"
            )


def check_inside(folder: Path, files: Iterable[Path]) -> None:
    """Refuse files in a folder that are links to elsewhere."""
    for path in files:
        if not _is_inside(folder, path):
            raise InputError(
                f"{path} is a link that leads out of {folder} and is not read; name {path.resolve()} itself"
            )


def _is_inside(folder: Path, path: Path) -> bool:
    inside = [folder.resolve()]
    if inside[0].parent.name == "snapshots":
        # The client's cache keeps the files of a snapshot as links to this folder beside it.
        inside.append(inside[0].parent.parent / "blobs")
    return any(path.resolve().is_relative_to(place) for place in inside)


def _own(folder: Path, name: str) -> Path:
    if "://" in name or not _is_inside(folder, Path(name)):
        raise InputError(
            f"{folder} names the data file {name}, which lies outside of that folder and is not read; put it there, "
            "and mend data_files in its README.md"
        )
    check_regular(Path(name))
    return Path(name)
