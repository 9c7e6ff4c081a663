"""A Hub in memory with the methods of the client that uploads use."""

import hashlib
from dataclasses import dataclass, field
from types import SimpleNamespace


@dataclass
class Repository:
    """Commits, branches and tags; a commit is the content of each path."""

    private: bool
    kind: str
    commits: list[dict[str, bytes]] = field(default_factory=lambda: [{}])
    branches: dict[str, int] = field(default_factory=lambda: {"main": 0})
    tags: dict[str, int] = field(default_factory=dict)
    messages: list[str] = field(default_factory=list)

    def files(self, revision="main"):
        return self.commits[{**self.branches, **self.tags}[revision]]


class FakeHub:
    """Repositories by name; stands in for `huggingface_hub.HfApi`."""

    def __init__(self):
        self.repositories = {}
        self.tokens = []

    def __call__(self, library_name=None, token=None):
        self.tokens.append(token)
        return self

    def create_repo(self, name, *, repo_type, private, exist_ok):
        if not (name in self.repositories and exist_ok):
            self.repositories[name] = Repository(bool(private), repo_type)

    def create_branch(self, name, *, repo_type, branch, exist_ok):
        repository = self.repositories[name]
        repository.branches.setdefault(branch, repository.branches["main"])

    def repo_info(self, name, *, repo_type, revision="main"):
        repository = self.repositories[name]
        commit = {**repository.branches, **repository.tags}[revision]
        return SimpleNamespace(private=repository.private, sha=f"{commit:040}")

    def list_repo_refs(self, name, *, repo_type):
        tags = self.repositories[name].tags
        return SimpleNamespace(tags=[SimpleNamespace(name=tag, target_commit=f"{c:040}") for tag, c in tags.items()])

    def list_repo_tree(self, name, *, repo_type, revision, recursive):
        yield SimpleNamespace(path="data")  # A folder
        for path, content in self.repositories[name].files(revision).items():
            lfs = SimpleNamespace(sha256=hashlib.sha256(content).hexdigest()) if len(content) > 1000 else None
            blob = hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
            yield SimpleNamespace(path=path, blob_id="of the pointer" if lfs else blob, lfs=lfs)

    def create_commit(self, name, operations, *, commit_message, repo_type, revision, parent_commit):
        repository = self.repositories[name]
        assert parent_commit == f"{repository.branches[revision]:040}"
        files = dict(repository.files(revision))
        for operation in operations:
            if hasattr(operation, "path_or_fileobj"):
                with operation.as_file() as file:
                    files[operation.path_in_repo] = file.read()
            else:
                del files[operation.path_in_repo]
        repository.commits.append(files)
        repository.messages.append(commit_message)
        repository.branches[revision] = len(repository.commits) - 1
        return SimpleNamespace(oid=f"{len(repository.commits) - 1:040}")

    def create_tag(self, name, *, repo_type, tag, revision):
        self.repositories[name].tags[tag] = int(revision)
