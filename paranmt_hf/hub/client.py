"""Hub errors in one sentence, and verification of downloads."""

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
    """Whether a name is valid as a Hub id, `organisation/name`."""
    has_form = re.fullmatch(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*", name) is not None
    return has_form and ".." not in name and "--" not in name


def split_revision(name: str) -> tuple[str, str | None]:
    """Split `organisation/name@revision`; the revision is None if missing."""
    plain, _, revision = name.partition("@")
    return (plain, revision) if revision and is_id(plain) else (name, None)


def absent_here(name: str) -> str | None:
    """Explain that a path is missing: `the folder models holds no 'wort'`; None if it may be an id."""
    path = Path(name).expanduser()
    if len(path.parts) < 2 or path.exists() or not path.parent.is_dir():
        return None
    return f"the folder {path.parent} holds no {path.name!r}{perhaps_path(name)}"


def perhaps_path(name: str, *known: str) -> str:
    """Suggest a known name, or a file or folder next to a missing one; see `perhaps`."""
    path = Path(name)
    names: dict[str, str] = {}
    with suppress(OSError):
        names = {other.name: str(path.with_name(other.name)) for other in sorted(path.expanduser().parent.iterdir())}
    return perhaps(path.name, names | {each: each for each in known})


@contextmanager
def fetching(name: str, kind: str, revision: str | None = None) -> Iterator[None]:
    """Explain errors of a `with` block that reads a name of the Hub, which is no local path; see `explain`."""
    try:
        yield
    except InputError:
        raise
    # The client passes on errors of several libraries; all mean that it cannot be loaded.
    except Exception as error:
        reason, here = explain(error, name, kind, revision), absent_here(name)
        missing = f"{here}; taken for an id on the Hub: " if here else f"there is no folder {name!r}, and "
        raise InputError(missing + reason) from error


def explain(
    error: BaseException,
    name: str,
    kind: str,
    revision: str | None = None,
    *,
    writing: bool = False,
    token: str | None = None,
) -> str:
    """Explain what the client raised in one sentence: what happened, and what to do; a token is never part of it.

    `name` and `revision` are those of the repository, and `kind` is `model` or `dataset`; when `writing`, something
    was to be changed. `token` is the one that the caller gave, if it was not that of the login.
    """
    reason = _reason(error, name, kind, revision, writing)
    return reason if token is None else reason.replace(token, "(token)")


def _reason(error: BaseException, name: str, kind: str, revision: str | None, writing: bool) -> str:
    from huggingface_hub import constants, errors

    causes: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and cause not in causes:
        causes.append(cause)
        cause = cause.__cause__ or cause.__context__
    # The first one is what happened; further ones may be what was being dealt with when it did.
    answer = next((cause for cause in causes if isinstance(cause, errors.HfHubHTTPError)), None)
    if any(isinstance(cause, errors.OfflineModeIsEnabled) for cause in causes):
        if writing:
            return f"HF_HUB_OFFLINE forbids sending {kind} {name!r} to the Hub; unset it"
        return f"{kind} {name!r} is not in the cache, and HF_HUB_OFFLINE forbids asking the Hub for it; unset it"
    if answer is not None:
        return _answered(answer, name, kind, revision, writing)
    if type(error).__name__ == "DatasetNotFoundError":
        return _absent(name, kind)
    # The client's libraries for HTTP, of which a broken connection raises errors of many classes.
    network = ("httpx", "httpx2", "httpcore", "httpcore2", "requests", "urllib3", "socket", "ssl", "hf_xet")
    of_network = any(type(cause).__module__.split(".")[0] in network for cause in causes)
    if of_network or any(isinstance(cause, ConnectionError | TimeoutError) for cause in causes):
        return (
            f"the connection to the Hub, {constants.ENDPOINT}, failed at {kind} {name!r} ({type(error).__name__}: "
            f"{_first_line(str(error))}); run the same command again"
        )
    return f"{kind} {name!r} on the Hub: {_first_line(str(error))}"


def _answered(answer: HfHubHTTPError, name: str, kind: str, revision: str | None, writing: bool) -> str:
    """Explain an HTTP error response."""
    from huggingface_hub import errors, get_token

    status = answer.response.status_code
    if isinstance(answer, errors.RevisionNotFoundError):
        return f"{kind} {name!r} on the Hub has no revision {revision!r}; its page lists its branches and tags"
    if isinstance(answer, errors.GatedRepoError):
        return (
            f"{kind} {name!r} is only for those who accepted its terms; accept them on its page on the Hub, logged in"
        )
    # With a known token the Hub answers 404 for a repository that it may not see.
    if isinstance(answer, errors.RepositoryNotFoundError) and not (status == 401 and get_token()):
        return _absent(name, kind)
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


def _absent(name: str, kind: str) -> str:
    from huggingface_hub import get_token

    who = "your login may see" if get_token() else "can be seen without a login"
    return (
        f"the Hub has no {kind} {name!r} that {who}; check the name, and if it is private log in as somebody who may "
        "read it (`hf auth login`, or HF_TOKEN)"
    )


def _first_line(text: str) -> str:
    """The first line that is not empty, without tokens."""
    from huggingface_hub import get_token

    if token := get_token():
        text = text.replace(token, "(token)")
    text = re.sub(r"\b(?:hf|api_org)_\w{8,}|\bBearer\s+\S+", "(token)", text)
    # What follows the path of an address may be a signature that lets its bearer in.
    text = re.sub(r"(https?://[^\s?]+)\?\S+", r"\1", text).strip()
    if not text:
        return "no reason was given"
    return textwrap.shorten(text.splitlines()[0].rstrip("."), 300, placeholder=" ...")


def check_download(path: Path, name: str) -> None:
    """Compare a downloaded file with its SHA-256, which is the name that the client gives it in its cache."""
    blob = path.resolve()
    if not re.fullmatch(r"[0-9a-f]{64}", blob.name):
        return
    if checksum(blob) != blob.name:
        raise InputError(
            f"{path.name} of {name!r} is damaged: its checksum is not the one that the Hub names; delete {blob} and "
            "run again, and if that does not help tell the owner of the repository"
        )
