"""The method `push_to_hub` of models in memory, which publishes the folder that they were read from."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict, Unpack

from paranmt_hf.errors import InputError
from paranmt_hf.hub.publish import kind_of, publish
from paranmt_hf.hub.repository import Model
from paranmt_hf.util.files import checksum
from paranmt_hf.util.yaml_files import read_yaml


class CardOptions(TypedDict, total=False):
    """Options of `push_to_hub` about the card and the version.

    Attributes:
        license: Licence id of the Hub, or a name with a link; by default that of the record, if it states one.
        about: Your own words for the card, as for `publish`.
        results: Results for the card, as for `publish`.
        tag: Name of this version; by default, on the main branch, the next of v1, v2, ...
    """

    license: str | None
    about: Mapping[str, Any] | str | Path | None
    results: str | Path | Sequence[Any]
    tag: str | None


class PushOptions(CardOptions, total=False):
    """All options of `push_to_hub`.

    Attributes:
        token: Token that may write; by default that of the login or of HF_TOKEN.
        private: Make the repository private if it is new.
        commit_message: Message of the commit.
        revision: Branch that gets the files.
        create_pr: Not supported; `revision` names a branch instead.
    """

    token: str | bool | None
    private: bool | None
    commit_message: str | None
    revision: str | None
    create_pr: bool


class PushedFromFolder:
    """Base class that gives the method `push_to_hub` to models that are read from a folder.

    Attributes:
        files: The model that this one was read from; None if it was made otherwise.
    """

    files: Model | None = None

    def push_to_hub(self, repo_id: str, **options: Unpack[PushOptions]) -> str:
        """Publish the model on the Hub, as `paranmt publish` does with its folder.

        A model that was changed after it was read is refused, because its record would no longer describe it.

        Args:
            repo_id: Name of the repository on the Hub: ORGANISATION/NAME or USER/NAME.
            options: See `PushOptions`.

        Returns:
            The address of the commit on the Hub.
        """
        if self.files is None:
            raise InputError(
                f"this {type(self).__name__} was not read from a folder, so there is no record to make its card of; "
                "save it and upload the folder with `hf upload`"
            )
        kind = kind_of(self.files.folder)
        if kind is not None and kind.copy is not None:
            with tempfile.TemporaryDirectory() as saved:
                self.save_pretrained(saved)  # type: ignore[attr-defined]
                if not is_copy(Path(saved), self.files.folder, kind.loader):
                    raise InputError(
                        f"this {type(self).__name__} is no longer the one that was read from {self.files.folder}, "
                        "whose record and figures its card would show; save it and upload the folder with `hf upload`"
                    )
        return push_folder(self.files.folder, repo_id, **options)


def push_folder(folder: Path, repo_id: str, **options: Unpack[PushOptions]) -> str:
    """Publish the folder of a model with the options of `push_to_hub`, and return the address of the commit."""
    if options.get("create_pr"):
        raise InputError(
            "`create_pr` is not supported, because what was sent gets a version; give a `revision`, which names a "
            "branch, and open the pull request on the Hub",
            option="create_pr",
        )
    publication = publish(
        folder,
        repo_id,
        license=options.get("license"),
        about=options.get("about"),
        results=options.get("results", ()),
        private=bool(options.get("private")),
        revision=options.get("revision") or "main",
        tag=options.get("tag"),
        message=options.get("commit_message"),
        token=options.get("token"),
    )
    assert publication.sent is not None
    return publication.sent.url


def with_datasets(about: Mapping[str, Any] | str | Path | None, datasets: Sequence[str]) -> dict[str, Any]:
    """Return the words for a card, `about` of `publish`, with ids of datasets on the Hub added."""
    values = dict(read_yaml(Path(about), "words for a card") if isinstance(about, str | Path) else about or {})
    return {**values, "datasets": [*values.get("datasets", ()), *datasets]}


def is_copy(saved: Path, folder: Path, loader: str) -> bool:
    """Return whether a model in memory, which was just saved, is equal to the one in the folder that it was read from.

    The model of that folder is loaded and saved again, so that both have the file formats of this version.

    Args:
        saved: Folder into which the model in memory was saved.
        folder: Folder that it was read from.
        loader: Name of the function that loads models of its class, such as `paranmt_hf.load`. A folder whose models
            another function loads is never equal.
    """
    kind = kind_of(folder)
    if kind is None or kind.copy is None or kind.loader != loader:
        return False
    with tempfile.TemporaryDirectory() as again:
        kind.copy(folder, Path(again))
        return _contents(saved) == _contents(Path(again))


def _contents(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of each file in a folder by its relative path."""
    return {path.relative_to(folder).as_posix(): checksum(path) for path in folder.rglob("*") if path.is_file()}
