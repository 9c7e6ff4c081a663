"""Publishing of a folder on the Hub, after checking it and rendering its card from its record.

Each feature whose results can be published describes them by a `Kind`; the steps of publishing are the same for all.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

from paranmt_hf.errors import InputError, refuse
from paranmt_hf.hub.client import is_id
from paranmt_hf.hub.licenses import License
from paranmt_hf.hub.repository import PICKLES, is_inside, link_or_copy
from paranmt_hf.hub.upload import Content, Published, RepositoryFiles, RepositoryKind, Target, upload
from paranmt_hf.util.files import listed, record_values
from paranmt_hf.util.markers import PythonOnly
from paranmt_hf.util.records import as_bytes, from_json
from paranmt_hf.util.wording import counted
from paranmt_hf.util.yaml_files import read_yaml

# The kind of a folder by the file name of its record: a module and a name in it, which are imported when needed.
KINDS = {
    "build.json": "paranmt_hf.corpus.release.publish:RELEASE",
    "paraphraser.json": "paranmt_hf.paraphrase.publish:PARAPHRASER",
    "supervised.json": "paranmt_hf.supervised.publish:SUPERVISED",
    "conversion.json": "paranmt_hf.sent2vec.publish:CONVERTED",
    "sent2vec.json": "paranmt_hf.sent2vec.publish:SENT2VEC",
    "training.json": "paranmt_hf.training.publish:ENCODER",
    "made.json": "paranmt_hf.training.publish:MADE",
}


@dataclass(frozen=True)
class About:
    """What the publisher of a folder adds to its card, because the record cannot know it."""

    # Licence of the model, or another licence for a corpus; None for the licence in the record
    license: str | None = None
    notes: str | None = None  # A section for the card, in Markdown
    license_text: str | None = None  # A sentence that explains the licence
    summary: str | None = None  # A sentence that says what the model is; None for one made from its settings
    data: str | None = None  # What the model was trained on; None for a text made from its settings
    # Commands that made the model; if empty, the last one is made from its settings
    commands: list[str] = field(default_factory=list)
    datasets: list[str] = field(default_factory=list)  # Ids of datasets on the Hub that the model was trained on

    def __post_init__(self) -> None:
        if self.license is not None:
            License.parse(self.license)
        if wrong := [name for name in self.datasets if not is_id(name)]:
            raise InputError(f"datasets names {wrong[0]!r}, which is not an id on the Hub: expected ORGANISATION/NAME")

    @property
    def values(self) -> dict[str, Any]:
        """All fields that are given, except the notes."""
        return {name: value for name, value in vars(self).items() if value and name != "notes"}

    def required(self, recorded: str | None = None) -> About:
        """Return this with a licence: its own, or `recorded`, that of the record; reject it if there is neither."""
        return replace(self, license=str(License.parse(self.license or recorded)))


def read_about(about: Mapping[str, Any] | str | Path | None, license: str | None = None) -> About:
    """Build an `About` from a licence and, for the other fields, a YAML file or a mapping."""
    known = [name for name in About.__dataclass_fields__ if name != "license"]
    path = None
    if isinstance(about, str | Path):
        path = Path(about).expanduser()
        about = read_yaml(path, f"{', '.join(known[:-1])} or {known[-1]}")
    where, values = path or "about", dict(about or {})
    if unknown := [str(name) for name in values if name not in known]:
        raise InputError(f"{where} holds {unknown[0]!r}; it may hold {', '.join(known)}", option="about", path=path)
    return replace(from_json(About, values, where), license=license)


@dataclass(frozen=True)
class PublishPlan:
    """What is published of a folder: its files and its card."""

    files: Mapping[str, Content]  # Content of each file by its path in the repository, without the card
    # Renders the card, given the id of the repository; it names no version, so that a version may get another tag
    card: Callable[[str], str]
    own_card: str  # The card that this package wrote into the folder
    message: str  # Message of the commit
    missing: list[str] = field(default_factory=list)  # Sentences about what a reader of the card would miss
    # Checks that a folder with exactly the published files is equal to the original one; raises an error if it is not
    verify: Callable[[Path], None] | None = None
    # Returns the values that the card is rendered from, given the id; None for corpora, whose record holds them
    values: Callable[[str], Mapping[str, Any]] | None = None


@dataclass(frozen=True)
class Kind:
    """A kind of folder that can be published, such as a corpus or an encoder."""

    title: str  # Its name in sentences: `a corpus`
    repository: RepositoryKind  # What kind of repository it goes into
    loader: str  # Name of the function that loads it from the Hub
    # Returns whether a path in a repository can belong to this kind; such files that are not published are removed
    owns: Callable[[str], bool]
    # Checks a folder against its record, and returns what is published: from the folder, what the publisher adds, and
    # results of evaluations
    plan: Callable[[Path, About, Sequence[Any]], PublishPlan]
    takes_results: bool = False  # Whether its card shows results of evaluations
    # Returns the paths of code files that this package puts into such a folder; any other code is rejected
    code: Callable[[], Collection[str]] = tuple
    # Loads the model of a folder and saves it into another one, to compare it with a model in memory; None if models
    # of this kind cannot change in memory
    copy: Callable[[Path, Path], None] | None = None
    # Writes the card of a folder again, with the name of the model; None if that is not possible
    rewrite_card: Callable[[Path, str], None] | None = None


@dataclass(frozen=True)
class Publication:
    """A version of a folder that was published, or that a dry run would publish."""

    target: Target  # Repository, branch and version
    repository: RepositoryFiles  # The files of the version
    card: str  # The card
    values: Mapping[str, Any] | None  # JSON values that the card of a model is rendered from; None for a corpus
    missing: list[str]  # Sentences about what a reader of the card would miss
    left_here: list[str]  # Paths of files in the folder that are not published
    loader: str  # Name of the function that loads the version from the Hub
    sent: Published | None = None  # The version on the Hub; None if nothing was sent

    def send(self, token: str | bool | None = None) -> Publication:
        """Upload the version, and return it with `sent`; if a part of it is on the Hub already, upload the rest.

        Args:
            token: Token that may write; by default that of the login or of HF_TOKEN.
        """
        return replace(self, sent=upload(self.repository, self.target, token))

    def summary(self) -> str:
        """Return the list of files and what is missing, and after a dry run also the card."""
        sizes = self.repository.sizes
        target = self.target
        visibility = ", private" if target.private else ""
        lines = [
            f"{target.kind} {target.name}{visibility}: {counted(len(sizes), 'file')}, {sum(sizes.values()):,} bytes"
        ]
        lines += [f"  {size:>15,}  {path}" for path, size in sorted(sizes.items())]
        lines += [f"  {'not sent':>15}  {path}" for path in self.left_here]
        lines += [f"  missing: {sentence}" for sentence in self.missing]
        if self.sent is None:
            return "\n".join([f"{self.card}\n", *lines, "dry run: nothing was sent"])
        version = f", version {self.sent.tag}" if self.sent.tag else ""
        changed = len(self.sent.changed)
        state = f"{counted(changed, 'file')} changed" if changed else "unchanged, everything was there already"
        revision = self.sent.tag or (None if target.revision == "main" else target.revision)
        where = f", revision={revision!r}" if revision else ""
        lines.append(f"{target.kind} {target.name}: {state}{version}, commit {self.sent.commit[:12]}")
        return "\n".join([*lines, f"load it: {self.loader}({target.name!r}{where})"])


def kind_of(folder: str | Path) -> Kind | None:
    """Find the kind of a folder by its record; None if it has none of the records of `KINDS`."""
    found = next((kind for file, kind in KINDS.items() if (Path(folder) / file).is_file()), None)
    if found is None:
        return None
    module, name = found.split(":")
    kind: Kind = getattr(import_module(module), name)
    return kind


def publish(
    folder: str | Path,
    name: str,
    *,
    license: str | None = None,
    about: Mapping[str, Any] | str | Path | None = None,
    results: str | Path | Sequence[str | Path | Any] = (),
    private: bool = False,
    revision: str = "main",
    tag: str | None = None,
    dry_run: bool = False,
    message: Annotated[str | None, PythonOnly] = None,
    token: Annotated[str | bool | None, PythonOnly] = None,
) -> Publication:
    """Check a corpus, an encoder, a model for a task or a paraphraser, and publish it on the Hub.

    If the command is run again, it sends only what is missing on the Hub. The folder is not changed.

    Args:
        folder: Folder of a corpus, an encoder, a model for a task or a paraphraser.
        name: Name of the repository on the Hub: ORGANISATION/NAME or USER/NAME.
        license: Licence id of the Hub, or a name with a link; by default that of the record, if it states one.
        about: YAML file (in Python also a mapping) with your own words for the card: `notes` in Markdown, and for a
            model also license_text, summary, data, commands and datasets.
        results: For a model: files that `paranmt evaluate sts --json`, or for a paraphraser `paranmt paraphrase
            evaluate --json`, wrote for its weights; in Python also the results themselves.
        private: Make the repository private if it is new.
        revision: Branch that gets the files.
        tag: Name of this version; by default, on the main branch, the next of v1, v2, ...
        dry_run: Check the folder and show the files, the card and what is missing; change nothing on the Hub.
        message: Message of the commit.
        token: Token that may write; by default that of the login or of HF_TOKEN.
    """
    folder = Path(folder).expanduser()
    found = "is a file" if folder.is_file() else "does not exist"
    expected = f"{folder} {found}; expected the folder of a corpus or a model"
    refuse(not folder.is_dir(), expected, option="folder", path=folder)
    kind = kind_of(folder)
    if kind is None:
        raise InputError(
            f"{folder} holds no record of this package ({', '.join(KINDS)}), so nothing is known about it; publish it "
            "with `hf upload`",
            option="folder",
            path=folder,
        )
    target = Target(name, kind.repository, private, revision, tag)
    given = listed(results)
    unshown = given and not kind.takes_results
    refuse(unshown, f"the card of {kind.title} shows no `results`; leave them out", option="results")
    refuse_unsafe(folder, kind.code())
    plan = kind.plan(folder, read_about(about, license), given)
    card = plan.card(name)
    files = {path: without_options(content) for path, content in plan.files.items()}
    files["README.md"] = card.encode()
    if plan.verify is not None:
        with tempfile.TemporaryDirectory() as copy:
            for path, content in files.items():
                place = Path(copy) / path
                place.parent.mkdir(parents=True, exist_ok=True)
                if isinstance(content, bytes):
                    place.write_bytes(content)
                else:
                    link_or_copy(content, place)
            plan.verify(Path(copy))
    publication = Publication(
        target,
        RepositoryFiles(files, kind.owns, message or plan.message),
        card,
        None if plan.values is None else plan.values(name),
        plan.missing,
        left_here(folder, plan.files, plan.own_card),
        kind.loader,
    )
    return publication if dry_run else publication.send(token)


def without_options(content: Content) -> Content:
    """Return the content of a file, from a record without the options of commands, because they name local paths."""
    values = record_values(content)
    if not values.pop("options", None):
        return content
    return as_bytes(values)


def refuse_unsafe(folder: Path, own: Collection[str] = ()) -> None:
    """Reject a folder that holds pickles, links that lead out of it, or code other than at relative paths in `own`."""
    for path in sorted(folder.rglob("*")):
        if path.is_symlink() and not is_inside(folder, path):
            raise InputError(f"{path} is a link that leads out of {folder}; put what it leads to there", path=path)
        if path.suffix == ".py" and path.relative_to(folder).as_posix() not in own:
            raise InputError(
                f"{path} is code that is not this package's and is not published; move it away", path=path
            )
        if any(path.match(pattern) for pattern in PICKLES):
            raise InputError(f"{path} can hold a pickle, which runs code when it is read; move it away", path=path)


def files_of(folder: Path) -> list[str]:
    """Return the relative paths of all files in a folder, without hidden files and folders."""
    found = []
    for path in sorted(folder.rglob("*")):
        relative = path.relative_to(folder)
        if path.is_file() and not any(name.startswith(".") for name in relative.parts):
            found.append(relative.as_posix())
    return found


def left_here(folder: Path, published: Collection[str], own_card: str) -> list[str]:
    """List the files of a folder that are not published, and the card if it was edited.

    Args:
        folder: The folder.
        published: Paths of the files that are published.
        own_card: The card that this package wrote into the folder.
    """
    paths = [path for path in files_of(folder) if path not in published and path != "README.md"]
    card = folder / "README.md"
    if card.exists() and card.read_text(encoding="utf8", errors="replace") != own_card:
        paths.append("README.md (the card is rendered from records; `notes` of `about` adds to it)")
    return paths
