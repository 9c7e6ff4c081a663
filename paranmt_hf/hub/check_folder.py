"""What is checked of any folder before it is published, and what of it stays where it is."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from paranmt_hf.errors import InputError
from paranmt_hf.hub.repository import PICKLES
from paranmt_hf.util.files import read_text


def refuse_unsafe(folder: Path, own: Collection[str] = ()) -> None:
    """Refuse code, pickles, and links that lead out of the folder.

    Args:
        folder: What is to be published.
        own: Names of code files of this package, which are not sent as they lie there but written anew.
    """
    for path in sorted(folder.rglob("*")):
        if path.is_symlink() and not path.resolve().is_relative_to(folder.resolve()):
            raise InputError(f"{path} is a link that leads out of {folder}; put what it leads to there")
        if path.suffix == ".py" and path.relative_to(folder).as_posix() not in own:
            raise InputError(f"{path} is code that is not this package's, which is not published; move it away")
        if any(path.match(pattern) for pattern in PICKLES):
            raise InputError(f"{path} can hold a pickle, which runs code when it is read; move it away")


def files_of(folder: Path) -> list[str]:
    """Paths of the files in a folder, hidden ones left out."""
    paths = [path.relative_to(folder) for path in sorted(folder.rglob("*")) if path.is_file()]
    return [path.as_posix() for path in paths if not any(part.startswith(".") for part in path.parts)]


def left_here(folder: Path, published: Collection[str], rendered: str | None) -> list[str]:
    """Name the files that are not published.

    Args:
        folder: The folder.
        published: Paths of the files that are.
        rendered: The card that this package wrote into the folder; None if it wrote none.

    Returns:
        Their paths; with a reason where it is a card that somebody wrote or changed.
    """
    paths = [path for path in files_of(folder) if path not in published]
    card = folder / "README.md"
    if card.exists() and (rendered is None or card.read_text(encoding="utf8", errors="replace") != rendered):
        paths.append("README.md (the card is rendered from records; --notes FILE adds to it)")
    return paths


def read_notes(path: str | Path | None) -> str:
    """Read a publisher's own section of a card."""
    try:
        return "" if path is None else read_text(Path(path).expanduser())
    except InputError:
        raise
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise InputError(f"cannot read {path}: {reason}; expected a Markdown file in UTF-8") from None
