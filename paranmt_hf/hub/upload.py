"""Upload files to a repository on the Hub: only changed ones, verified, and tagged with a version."""

from __future__ import annotations

import glob
import hashlib
import re
import sys
import tempfile
import textwrap
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from threading import Thread
from typing import Any, Literal

from paranmt_hf.errors import InputError
from paranmt_hf.hub.client import explain, is_id
from paranmt_hf.util.files import checksum, link

RepositoryKind = Literal["dataset", "model"]
# What a file is in a repository: a path to read it from, or its content.
Content = Path | bytes
VERSION = re.compile(r"v(\d+)")
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*(/[A-Za-z0-9_][A-Za-z0-9_.-]*)*")


@dataclass(frozen=True)
class Target:
    """A branch of a repository as the target of an upload."""

    name: str  # Id of the repository, `organisation/name`
    kind: RepositoryKind  # What the repository holds
    private: bool = False  # Make a new repository private; an existing one is not changed
    revision: str = "main"  # The branch that gets the files
    tag: str | None = None  # Name of the version. None on the main branch is the next of `v1`, `v2`, ...

    def __post_init__(self) -> None:
        if not is_id(self.name):
            raise InputError(
                f"{self.name!r} is not a name on the Hub: expected ORGANISATION/NAME or USER/NAME", option="name"
            )
        for option, value in (("revision", self.revision), ("tag", self.tag)):
            if value is not None and (not NAME.fullmatch(value) or ".." in value or value.endswith((".lock", "."))):
                raise InputError(
                    f"{option} {value!r} is not a valid git name; use letters, digits, '.', '-' and '_'", option=option
                )


@dataclass(frozen=True)
class RepositoryFiles:
    """Files to upload."""

    files: Mapping[str, Content]  # Path in the repository and content of each file
    # Whether a path in the repository belongs to such parcels: files there that this one lacks are removed, all others
    # are left alone
    owns: Callable[[str], bool] = lambda path: False
    message: str = "Upload"  # Message of the commit
    # SHA-256 of files that is known already; that of others is computed once
    known: Mapping[str, str] = field(default_factory=dict)

    def holds(self, path: str, entry: Any) -> bool:  # noqa: ANN401
        """Whether a file of a repository is equal to the local one, by its checksum in the repository."""
        content = self.files[path]
        if entry.lfs is not None:
            if path not in self._checksums:
                self._checksums[path] = (
                    hashlib.sha256(content).hexdigest() if isinstance(content, bytes) else checksum(content)
                )
            return bool(self._checksums[path] == entry.lfs.sha256)
        data = content if isinstance(content, bytes) else content.read_bytes()
        # Git's own checksum of a file; it protects nothing here.
        return bool(hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest() == entry.blob_id)

    @cached_property
    def _checksums(self) -> dict[str, str]:
        return dict(self.known)

    @property
    def sizes(self) -> dict[str, int]:
        return {
            path: len(content) if isinstance(content, bytes) else content.stat().st_size
            for path, content in self.files.items()
        }


@dataclass(frozen=True)
class Published:
    """An uploaded version."""

    target: Target  # Repository and branch
    commit: str  # Hash of the commit
    tag: str | None  # Name of the version, if it has one
    # Paths that this call added, changed or removed; none if all was there already
    changed: list[str] = field(default_factory=list)

    @property
    def url(self) -> str:
        """Address of the commit."""
        from huggingface_hub import constants

        place = "datasets/" if self.target.kind == "dataset" else ""
        return f"{constants.ENDPOINT}/{place}{self.target.name}/commit/{self.commit}"


def upload(parcel: RepositoryFiles, target: Target, token: str | bool | None = None) -> Published:
    """Upload files; after an interruption, only those that are missing.

    The `token`, or else that of the login or of HF_TOKEN, is used by the client only.
    """
    from huggingface_hub import HfApi, get_token

    if token is False or not (isinstance(token, str) or get_token()):
        raise InputError("publishing needs a login: run `hf auth login`, or set HF_TOKEN to a token that may write")
    client = HfApi(library_name="paranmt-hf", token=token)
    try:
        with _quiet_without_terminal():
            return _interruptible(lambda: _upload(client, parcel, target))
    except InputError:
        raise
    # The client passes on errors of several libraries.
    except Exception as error:
        given = token if isinstance(token, str) else None
        reason = explain(error, target.name, target.kind, target.revision, writing=True, token=given)
        raise InputError(reason) from error


def _interruptible(work: Callable[[], Published]) -> Published:
    """Run work in a thread, so that Ctrl-C ends it at once; the client would finish started files first."""
    done: Future[Published] = Future()

    def run() -> None:
        try:
            done.set_result(work())
        except BaseException as error:
            done.set_exception(error)

    Thread(target=run, daemon=True).start()
    return done.result()


def _upload(client: Any, parcel: RepositoryFiles, target: Target) -> Published:  # noqa: ANN401
    about = {"repo_id": target.name, "repo_type": target.kind}
    _check_card(client, parcel, target)
    _ensure_repository(client, target)
    changed = _differences(client, parcel, target)
    tags = {tag.name: tag.target_commit for tag in client.list_repo_refs(**about).tags}
    head = client.repo_info(**about, revision=target.revision).sha
    if target.tag is not None and target.tag in tags and (changed or tags[target.tag] != head):
        if not _differences(client, parcel, replace(target, revision=target.tag)):
            # The version holds these files, and the branch has gone on.
            return Published(target, tags[target.tag], target.tag)
        raise InputError(
            f"{target.kind} {target.name!r} has a version {target.tag!r} already, with other files; give this one "
            "another `tag`",
            option="tag",
        )
    if changed:
        with tempfile.TemporaryDirectory() as folder:
            stage(parcel, Path(folder))
            client.upload_folder(
                **about,
                folder_path=folder,
                revision=target.revision,
                commit_message=parcel.message,
                delete_patterns=[glob.escape(path) for path in changed if path not in parcel.files] or None,
            )
        if left := _differences(client, parcel, target):
            raise InputError(
                f"{target.kind} {target.name!r} does not hold what was sent ({', '.join(left[:3])}); run the same "
                "command again"
            )
        head = client.repo_info(**about, revision=target.revision).sha
    return Published(target, head, _ensure_tag(client, target, tags, head), changed)


def _check_card(client: Any, parcel: RepositoryFiles, target: Target) -> None:  # noqa: ANN401
    """Validate the card on the Hub before a repository is created."""
    from huggingface_hub.utils import get_session, hf_raise_for_status

    content = parcel.files.get("README.md")
    if not isinstance(content, bytes):
        return
    # The client has a method for this, but older releases of it ask the public Hub whatever the endpoint is.
    request = {"repoType": target.kind, "content": content.decode()}
    answer = get_session().post(f"{client.endpoint}/api/validate-yaml", json=request)
    if answer.status_code == 400:
        wrong = [str(error.get("message")) for error in answer.json().get("errors", [])]
        reason = textwrap.shorten("; ".join(wrong) or answer.text, 200, placeholder=" ...")
        raise InputError(f"the Hub does not take the card of {target.kind} {target.name!r}: {reason}")
    hf_raise_for_status(answer)


def _ensure_repository(client: Any, target: Target) -> None:  # noqa: ANN401
    from huggingface_hub.errors import RepositoryNotFoundError

    about = {"repo_id": target.name, "repo_type": target.kind}
    present = None
    with suppress(RepositoryNotFoundError):
        present = client.repo_info(**about)
    if present is None:
        # None leaves it to an organisation whether its new repositories are private.
        client.create_repo(**about, private=target.private or None, exist_ok=True)
    elif target.private and not present.private:
        raise InputError(
            f"{target.kind} {target.name!r} is public already; `private` is for new ones, change its visibility in "
            "its settings on the Hub first",
            option="private",
        )
    refs = client.list_repo_refs(**about)
    if target.revision in {tag.name for tag in refs.tags}:
        raise InputError(f"{target.revision!r} is a version of {target.name!r}, which stays as it is; name a branch")
    if target.revision not in {"main", *(branch.name for branch in refs.branches)}:
        client.create_branch(**about, branch=target.revision)


def _ensure_tag(client: Any, target: Target, tags: Mapping[str, str], head: str) -> str | None:  # noqa: ANN401
    """Tag the commit with a version, unless it is tagged."""
    known = sorted((name for name, commit in tags.items() if commit == head), key=_version_number)
    name = target.tag
    if name is None:
        if known or target.revision != "main":
            return known[-1] if known else None
        name = f"v{max(map(_version_number, tags), default=0) + 1}"
    if name in known:
        return name
    client.create_tag(target.name, repo_type=target.kind, tag=name, revision=head)
    return name


def _version_number(tag: str) -> int:
    match = VERSION.fullmatch(tag)
    return int(match[1]) if match else 0


def _differences(client: Any, parcel: RepositoryFiles, target: Target) -> list[str]:  # noqa: ANN401
    """Paths to add, change or remove."""
    entries = client.list_repo_tree(target.name, repo_type=target.kind, revision=target.revision, recursive=True)
    remote = {entry.path: entry for entry in entries if hasattr(entry, "blob_id")}
    changed = [path for path in parcel.files if path not in remote or not parcel.holds(path, remote[path])]
    gone = [path for path in remote if path not in parcel.files and parcel.owns(path)]
    return sorted(changed + gone)


def stage(parcel: RepositoryFiles, folder: Path) -> None:
    """Lay out the files as a folder of links, or copies if the system has no links."""
    for path, content in parcel.files.items():
        staged = folder / path
        staged.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, bytes):
            staged.write_bytes(content)
        else:
            link(content, staged)


@contextmanager
def _quiet_without_terminal() -> Iterator[None]:
    """Show the progress bars of the client only on a terminal."""
    from huggingface_hub.utils import are_progress_bars_disabled, disable_progress_bars, enable_progress_bars

    if sys.stderr.isatty() or are_progress_bars_disabled():
        yield
        return
    disable_progress_bars()
    try:
        yield
    finally:
        enable_progress_bars()
