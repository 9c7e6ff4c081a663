"""Uploading of files to a repository on the Hub: only changed ones, in one commit, which is named as a version."""

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
# The content of a file in a repository: the path of a local file, or its bytes.
Content = Path | bytes


@dataclass(frozen=True)
class Target:
    """The target of an upload: a branch of a repository, and the name of the version."""

    name: str  # Id of the repository, `organisation/name`
    kind: RepositoryKind  # What the repository holds
    private: bool = False  # Make a new repository private; an existing one is not changed
    revision: str = "main"  # The branch that gets the files
    # Name of the version. None stands for the version that the commit already has, else on the main branch for the
    # next of `v1`, `v2`, ..., and on others for none
    tag: str | None = None

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
    """The files of an upload."""

    files: Mapping[str, Content]  # Content of each file by its path in the repository
    # Returns whether a path in the repository belongs to an upload like this. Files at such paths that are not in
    # `files` are removed; all others are left alone.
    owns: Callable[[str], bool] = lambda path: False
    message: str = "Upload"  # Message of the commit

    def holds(self, path: str, entry: Json) -> bool:
        """Return whether a file of the repository is equal to the file of this upload, by its checksum there.

        Args:
            path: Path in the repository.
            entry: Description of the file there, a `RepoFile` of huggingface_hub.
        """
        content = self.files[path]
        if entry.lfs is not None:
            digest = hashlib.sha256(content).hexdigest() if isinstance(content, bytes) else checksum(content)
            return bool(digest == entry.lfs.sha256)
        data = content if isinstance(content, bytes) else content.read_bytes()
        # Git names a file by this checksum; here it is for comparison, not for security.
        return bool(hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest() == entry.blob_id)

    @property
    def sizes(self) -> dict[str, int]:
        """The size of each file in bytes, by its path in the repository."""
        found = {}
        for path, content in self.files.items():
            found[path] = len(content) if isinstance(content, bytes) else content.stat().st_size
        return found


@dataclass(frozen=True)
class Published:
    """A version on the Hub."""

    target: Target  # Repository and branch
    commit: str  # Hash of the commit
    tag: str | None  # Name of the version; None if it has none
    # Paths that this upload added, changed or removed; empty if everything was on the Hub already
    changed: list[str] = field(default_factory=list)

    @property
    def url(self) -> str:
        """The address of the commit on the Hub."""
        from huggingface_hub import constants

        place = "datasets/" if self.target.kind == "dataset" else ""
        return f"{constants.ENDPOINT}/{place}{self.target.name}/commit/{self.commit}"


def upload(files: RepositoryFiles, target: Target, token: str | bool | None = None) -> Published:
    """Upload the files that are missing or different on the Hub, and name the version.

    Args:
        files: The files.
        target: The repository, its branch, and the name of the version.
        token: Token that may write; None or True for that of the login or of HF_TOKEN. Only the Hub's client uses it.
    """
    from huggingface_hub import HfApi, get_token

    if token is False or not (isinstance(token, str) or get_token()):
        raise InputError("publishing needs a login: run `hf auth login`, or set HF_TOKEN to a token that may write")
    client = HfApi(library_name="paranmt-hf", token=token)
    try:
        return _upload(client, files, target, _ensure_branch(client, target))
    except InputError:
        raise
    # The client passes on errors of several libraries.
    except Exception as error:
        reason = explain(error, target.name, target.kind, target.revision, writing=True)
        raise InputError(reason.replace(token, "(token)") if isinstance(token, str) else reason) from error


def _ensure_branch(client: HfApi, target: Target) -> dict[str, str]:
    """Create the repository and the branch if they do not exist, and return the commit of each tag by its name.

    A public repository that should be private is rejected.
    """
    # With None, the settings of an organisation decide whether its new repositories are private.
    client.create_repo(target.name, repo_type=target.kind, private=target.private or None, exist_ok=True)
    if target.private and not client.repo_info(target.name, repo_type=target.kind).private:
        raise InputError(
            f"{target.kind} {target.name!r} is public already; `private` is for new ones, change its visibility in "
            "its settings on the Hub first",
            option="private",
        )
    refs = client.list_repo_refs(target.name, repo_type=target.kind)
    tags = {tag.name: tag.target_commit for tag in refs.tags}
    if target.revision in tags:
        raise InputError(
            f"{target.revision!r} is a version of {target.name!r}, which stays as it is; name a branch",
            option="revision",
        )
    if target.revision != "main":
        client.create_branch(target.name, repo_type=target.kind, branch=target.revision, exist_ok=True)
    return tags


def _upload(client: HfApi, files: RepositoryFiles, target: Target, tags: Mapping[str, str]) -> Published:
    """Commit changed files to an existing branch, and create the tag; a tag of `tags` with other files is refused."""
    head = client.repo_info(target.name, repo_type=target.kind, revision=target.revision).sha
    changed = changed_paths(client, files, target)
    if target.tag is not None and target.tag in tags and (changed or tags[target.tag] != head):
        if not changed_paths(client, files, replace(target, revision=target.tag)):
            # The version was published before with these files; the branch has other commits since.
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
    """Return the paths of files that an upload must add to, change in or remove from the branch, in order."""
    tree = client.list_repo_tree(target.name, repo_type=target.kind, revision=target.revision, recursive=True)
    remote: dict[str, Json] = {entry.path: entry for entry in tree if hasattr(entry, "blob_id")}
    changed = [path for path in files.files if path not in remote or not files.holds(path, remote[path])]
    removed = [path for path in remote if path not in files.files and files.owns(path)]
    return sorted(changed + removed)


def _commit(client: HfApi, files: RepositoryFiles, target: Target, changed: list[str], head: str) -> str:
    """Add, change and remove the files `changed` in one commit, and return its hash.

    The commit must follow directly on the commit `head`, so that changes of somebody else are not mixed in.
    """
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
    """Return the name of the version of a commit; None if it gets none.

    It is the one that the target names, or else the highest that the commit has already, or else on the main branch
    `v` and the next number.

    Args:
        target: The target of the upload.
        tags: Commit of each tag of the repository, by its name.
        commit: Hash of the commit.
    """
    known = sorted((name for name, tagged in tags.items() if tagged == commit), key=_version_number)
    if target.tag is not None:
        return target.tag
    if known:
        return known[-1]
    if target.revision != "main":
        return None
    return f"v{max(map(_version_number, tags), default=0) + 1}"


def _version_number(tag: str) -> int:
    """Return the number of a tag such as `v3`; 0 for other tags."""
    match = re.fullmatch(r"v(\d+)", tag)
    return int(match[1]) if match else 0
