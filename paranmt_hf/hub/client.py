"""Explanation of the Hub's errors in one sentence, names on the Hub, and verification of downloads."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from paranmt_hf.errors import InputError
from paranmt_hf.util.files import checksum
from paranmt_hf.util.wording import perhaps

if TYPE_CHECKING:
    from huggingface_hub.errors import HfHubHTTPError


def is_id(name: str) -> bool:
    """Return whether a name has the form of a Hub id, `organisation/name`."""
    has_form = re.fullmatch(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*", name) is not None
    return has_form and ".." not in name and "--" not in name


def split_revision(name: str) -> tuple[str, str | None]:
    """Split `organisation/name@revision` into id and revision; the revision is None if the name has none."""
    plain, _, revision = name.partition("@")
    return (plain, revision) if revision and is_id(plain) else (name, None)


def absent_here(name: str) -> str | None:
    """Explain that a path does not exist: `the folder models holds no 'wort'`.

    Return None if the path exists, or if it may be a Hub id because its parent folder does not exist.
    """
    path = Path(name).expanduser()
    if len(path.parts) < 2 or path.exists() or not path.parent.is_dir():
        return None
    return f"the folder {path.parent} holds no {path.name!r}{perhaps_path(name)}"


def perhaps_path(name: str, *known: str) -> str:
    """Suggest a name for a missing path, as `perhaps` does: one of `known`, or of a file or folder next to it."""
    path = Path(name)
    names: dict[str, str] = {}
    with suppress(OSError):
        names = {other.name: str(path.with_name(other.name)) for other in sorted(path.expanduser().parent.iterdir())}
    return perhaps(path.name, names | {each: each for each in known})


@contextmanager
def fetching(name: str, kind: str, revision: str | None = None) -> Iterator[None]:
    """Convert errors of a `with` block that reads a repository of the Hub to an `InputError` with an explanation.

    Args:
        name: Id of the repository; no folder of this name exists.
        kind: `model` or `dataset`.
        revision: The revision that is read; None for the default one.
    """
    try:
        yield
    except InputError:
        raise
    # The client passes on errors of several libraries; all of them mean that the repository cannot be read.
    except Exception as error:
        reason, absence = explain(error, name, kind, revision), absent_here(name)
        missing = f"{absence}; taken for an id on the Hub: " if absence else f"there is no folder {name!r}, and "
        raise InputError(missing + reason) from error


def explain(error: BaseException, name: str, kind: str, revision: str | None = None, *, writing: bool = False) -> str:
    """Explain an error of the Hub's client in one sentence: what happened, and what to do, without the login's token.

    Args:
        error: What the client raised.
        name: Id of the repository.
        kind: `model` or `dataset`.
        revision: The revision that was asked for; None for the default one.
        writing: Whether the repository was to be changed, not read.
    """
    from huggingface_hub import constants, errors, get_token

    causes: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and cause not in causes:
        causes.append(cause)
        cause = cause.__cause__ or cause.__context__
    # The first answer of the Hub counts; later ones may be errors that were being handled when it came.
    answer = next((cause for cause in causes if isinstance(cause, errors.HfHubHTTPError)), None)
    if any(isinstance(cause, errors.OfflineModeIsEnabled) for cause in causes):
        if writing:
            return f"HF_HUB_OFFLINE forbids sending {kind} {name!r} to the Hub; unset it"
        return f"{kind} {name!r} is not in the cache, and HF_HUB_OFFLINE forbids asking the Hub for it; unset it"
    if answer is not None:
        return _answered(answer, name, kind, revision, writing)
    if type(error).__name__ == "DatasetNotFoundError":
        return _absent(name, kind, logged_in=writing or bool(get_token()))
    # Modules of the client's libraries for HTTP: a broken connection raises errors of many classes from them.
    network = ("httpx", "httpx2", "httpcore", "httpcore2", "requests", "urllib3", "socket", "ssl", "hf_xet")
    of_network = any(type(cause).__module__.split(".")[0] in network for cause in causes)
    if of_network or any(isinstance(cause, ConnectionError | TimeoutError) for cause in causes):
        return (
            f"the connection to the Hub, {constants.ENDPOINT}, failed at {kind} {name!r} ({type(error).__name__}: "
            f"{_first_line(str(error))}); run the same command again"
        )
    return f"{kind} {name!r} on the Hub: {_first_line(str(error))}"


def _answered(answer: HfHubHTTPError, name: str, kind: str, revision: str | None, writing: bool) -> str:
    """Explain an answer of the Hub with an HTTP error status; for the other arguments see `explain`."""
    from huggingface_hub import errors, get_token

    status = answer.response.status_code
    # Nobody writes without a token, which may be another than that of the login.
    logged_in = writing or bool(get_token())
    if isinstance(answer, errors.RevisionNotFoundError):
        return f"{kind} {name!r} on the Hub has no revision {revision!r}; its page lists its branches and tags"
    if isinstance(answer, errors.GatedRepoError):
        return (
            f"{kind} {name!r} is only for those who accepted its terms; accept them on its page on the Hub, logged in"
        )
    # With a valid token the Hub answers 404 if the repository is hidden from it; 401 means that the token is invalid.
    if isinstance(answer, errors.RepositoryNotFoundError) and not (status == 401 and logged_in):
        return _absent(name, kind, logged_in=logged_in)
    if status == 401:
        return (
            "the Hub does not accept the token; log in again with `hf auth login`, or give a valid one (`token`, or "
            "HF_TOKEN)"
        )
    if status == 403 and writing:
        return (
            f"the Hub refuses to let this login write to {kind} {name!r}; use a token with write permission for "
            f"{name.split('/')[0]!r}"
        )
    if status == 429 or status >= 500:
        return f"the Hub answered {status} for {kind} {name!r}; run the same command again later"
    return f"the Hub answered {status} for {kind} {name!r}: {_first_line(answer.server_message or str(answer))}"


def _absent(name: str, kind: str, *, logged_in: bool) -> str:
    """Explain that the Hub has no such repository, or hides it from this login."""
    who = "your login may see" if logged_in else "can be seen without a login"
    return (
        f"the Hub has no {kind} {name!r} that {who}; check the name, and if it is private log in as somebody who may "
        "read it (`hf auth login`, or HF_TOKEN)"
    )


def _first_line(text: str) -> str:
    """Return the first line of an error message, without tokens and signatures."""
    from huggingface_hub import get_token

    if token := get_token():
        text = text.replace(token, "(token)")
    text = re.sub(r"\b(?:hf|api_org)_\w{8,}|\bBearer\s+\S+", "(token)", text)
    # The query of an address may be a signature that gives access to everyone who has it.
    text = re.sub(r"(https?://[^\s?]+)\?\S+", r"\1", text).strip()
    if not text:
        return "no reason was given"
    return textwrap.shorten(text.splitlines()[0].rstrip("."), 300, placeholder=" ...")


def check_download(path: Path, name: str) -> None:
    """Reject a damaged download: one whose SHA-256 is not its name in the cache of the Hub's client.

    Files that the client names otherwise are not checked. `name` is the id of the repository, for the error.
    """
    blob = path.resolve()
    if not re.fullmatch(r"[0-9a-f]{64}", blob.name):
        return
    if checksum(blob) != blob.name:
        raise InputError(
            f"{path.name} of {name!r} is damaged: its checksum is not the one that the Hub names; delete {blob} and "
            "run again, and if that does not help tell the owner of the repository"
        )
