"""Upload files to a repository on the Hub: only changed ones, in one commit with a version."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from paranmt_hf.errors import InputError
from paranmt_hf.hub.client import explain, is_id
from paranmt_hf.util.files import checksum
from paranmt_hf.util.typed import Json

if TYPE_CHECKING:
    from huggingface_hub import HfApi

RepositoryKind = Literal["dataset", "model"]
# What a file is in a repository: a path to read it from, or its content.
Content = Path | bytes


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
            form = r"[A-Za-z0-9_][A-Za-z0-9_.-]*(/[A-Za-z0-9_][A-Za-z0-9_.-]*)*"
            if value is not None and (
                not re.fullmatch(form, value) or ".." in value or value.endswith((".lock", "."))
            ):
                raise InputError(
                    f"{option} {value!r} is not a valid git name; use letters, digits, '.', '-' and '_'", option=option
                )


@dataclass(frozen=True)
class RepositoryFiles:
    """Files to upload."""

    files: Mapping[str, Content]  # Path in the repository and content of each file
    # Whether a path in the repository belongs to such files: those there that are not uploaded are removed, all others
    # are left alone
    owns: Callable[[str], bool] = lambda path: False
    message: str = "Upload"  # Message of the commit

    def holds(self, path: str, entry: Json) -> bool:
        """Whether a file of a repository is equal to the local one, by its checksum in the repository."""
        content = self.files[path]
        if entry.lfs is not None:
            digest = hashlib.sha256(content).hexdigest() if isinstance(content, bytes) else checksum(content)
            return bool(digest == entry.lfs.sha256)
        data = content if isinstance(content, bytes) else content.read_bytes()
        # Git's own checksum of a file; it protects nothing here.
        return bool(hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest() == entry.blob_id)

    @property
    def sizes(self) -> dict[str, int]:
        """Size of each file in bytes."""
        found = {}
        for path, content in self.files.items():
            found[path] = len(content) if isinstance(content, bytes) else content.stat().st_size
        return found


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


def upload(files: RepositoryFiles, target: Target, token: str | bool | None = None) -> Published:
    """Upload files; after an interruption, only those that are missing.

    The `token`, or else that of the login or of HF_TOKEN, is used by the client only.
    """
    from huggingface_hub import HfApi, get_token

    if token is False or not (isinstance(token, str) or get_token()):
        raise InputError("publishing needs a login: run `hf auth login`, or set HF_TOKEN to a token that may write")
    client = HfApi(library_name="paranmt-hf", token=token)
    try:
        _ensure_branch(client, target)
        return _upload(client, files, target)
    except InputError:
        raise
    # The client passes on errors of several libraries.
    except Exception as error:
        given = token if isinstance(token, str) else None
        reason = explain(error, target.name, target.kind, target.revision, writing=True, token=given)
        raise InputError(reason) from error


def _ensure_branch(client: HfApi, target: Target) -> None:
    """Create the repository and the branch if they are missing."""
    # None leaves it to an organisation whether its new repositories are private.
    client.create_repo(target.name, repo_type=target.kind, private=target.private or None, exist_ok=True)
    if target.private and not client.repo_info(target.name, repo_type=target.kind).private:
        raise InputError(
            f"{target.kind} {target.name!r} is public already; `private` is for new ones, change its visibility in "
            "its settings on the Hub first",
            option="private",
        )
    refs = client.list_repo_refs(target.name, repo_type=target.kind)
    if target.revision in {tag.name for tag in refs.tags}:
        raise InputError(
            f"{target.revision!r} is a version of {target.name!r}, which stays as it is; name a branch",
            option="revision",
        )
    if target.revision != "main":
        client.create_branch(target.name, repo_type=target.kind, branch=target.revision, exist_ok=True)


def _upload(client: HfApi, files: RepositoryFiles, target: Target) -> Published:
    refs = client.list_repo_refs(target.name, repo_type=target.kind)
    tags = {tag.name: tag.target_commit for tag in refs.tags}
    head = client.repo_info(target.name, repo_type=target.kind, revision=target.revision).sha
    changed = changed_paths(client, files, target)
    if target.tag is not None and target.tag in tags and (changed or tags[target.tag] != head):
        if not changed_paths(client, files, replace(target, revision=target.tag)):
            # The version holds these files, and the branch has gone on.
            return Published(target, tags[target.tag], target.tag)
        raise InputError(
            f"{target.kind} {target.name!r} has a version {target.tag!r} already, with other files; give this one "
            "another `tag`",
            option="tag",
        )
    commit = str(head)
    if changed:
        commit = _commit(client, files, target, changed, commit)
    tag = version_of(target, tags, commit)
    if tag is not None and tag not in tags:
        client.create_tag(target.name, repo_type=target.kind, tag=tag, revision=commit)
    return Published(target, commit, tag, changed)


def changed_paths(client: HfApi, files: RepositoryFiles, target: Target) -> list[str]:
    """Paths to add, change or remove."""
    tree = client.list_repo_tree(target.name, repo_type=target.kind, revision=target.revision, recursive=True)
    remote: dict[str, Json] = {entry.path: entry for entry in tree if hasattr(entry, "blob_id")}
    changed = [path for path in files.files if path not in remote or not files.holds(path, remote[path])]
    gone = [path for path in remote if path not in files.files and files.owns(path)]
    return sorted(changed + gone)


def _commit(client: HfApi, files: RepositoryFiles, target: Target, changed: list[str], head: str) -> str:
    """Add, change and remove files in one commit after `head`, so that nobody else's is mixed in; returns its hash."""
    from huggingface_hub import CommitOperationAdd, CommitOperationDelete

    operations: list[CommitOperationAdd | CommitOperationDelete] = []
    for path in changed:
        if path in files.files:
            operations.append(CommitOperationAdd(path, files.files[path]))
        else:
            operations.append(CommitOperationDelete(path))
    made = client.create_commit(
        target.name,
        operations,
        commit_message=files.message,
        repo_type=target.kind,
        revision=target.revision,
        parent_commit=head,
    )
    return str(made.oid)


def version_of(target: Target, tags: Mapping[str, str], commit: str) -> str | None:
    """The version of a commit: the given one, the last that it has, or on the main branch the next number."""
    known = sorted((name for name, tagged in tags.items() if tagged == commit), key=_version_number)
    if target.tag is not None:
        return target.tag
    if known:
        return known[-1]
    if target.revision != "main":
        return None
    return f"v{max(map(_version_number, tags), default=0) + 1}"


def _version_number(tag: str) -> int:
    match = re.fullmatch(r"v(\d+)", tag)
    return int(match[1]) if match else 0
