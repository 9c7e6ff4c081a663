"""PO files, the catalogues of GNU gettext, and POT files, which have no translations."""

from __future__ import annotations

import gettext
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from paranmt_hf.corpus.reading.language_tables import LanguageTable, Unit, plain_code
from paranmt_hf.corpus.reading.lines import unpacked
from paranmt_hf.errors import InputError
from paranmt_hf.text.languages import ENGLISH
from paranmt_hf.util.optional import require

if TYPE_CHECKING:
    from polib import POFile


class PoTable(LanguageTable):
    """Messages and their translations; the messages are English unless the header has X-Source-Language.

    The header and obsolete messages are not rows. A translation that is missing or fuzzy is null. A message with
    plurals is a row for each form: the singular with the translation for the number 1, the plural with each other one.
    """

    format: ClassVar[str] = "PO"

    @classmethod
    def matches(cls, name: str, head: bytes) -> bool:
        return name.endswith((".po", ".pot"))

    def find_languages(self) -> tuple[Sequence[str], str | None]:
        self._file = _parsed(self.path)
        header = self._file.metadata
        source = header.get("X-Source-Language") or ENGLISH
        target = header.get("Language") or "msgstr"
        if plain_code(source) == plain_code(target):
            # The messages are then keys rather than text in a language.
            source = "msgid"
        return [source, target], source

    def units(self) -> Iterator[Unit]:
        source, target = self.names
        # Find the plural form for the number 1 by a header such as `nplurals=2; plural=(n != 1);`.
        stated = re.search(r"plural\s*=\s*([^;]+)", self._file.metadata.get("Plural-Forms", ""))
        try:
            one = int(gettext.c2py(stated[1])(1)) if stated else 0
        except (ValueError, TypeError, ZeroDivisionError):
            one = 0
        for entry in self._file:
            if entry.obsolete:
                continue
            forms = [(entry.msgid, entry.msgstr)]
            if entry.msgid_plural:
                forms = []
                for form, translation in sorted(entry.msgstr_plural.items()):
                    is_one = len(entry.msgstr_plural) > 1 and form == one
                    forms.append((entry.msgid if is_one else entry.msgid_plural, translation))
            for message, translation in forms:
                usable = translation and not entry.fuzzy
                yield {source: [message], target: [translation] if usable else []}


def _parsed(path: Path) -> POFile:
    """Parse a PO file in the character set that its header names, UTF-8 if it names none."""
    polib = require("polib", "po")
    content = b"".join(unpacked(path))
    stated = re.search(rb"charset=([\w.:-]+)", content, re.IGNORECASE)
    # Templates have the placeholder CHARSET.
    charset = stated[1].decode("ascii") if stated and stated[1] != b"CHARSET" else "utf-8"
    try:
        text = content.decode(charset).removeprefix("\ufeff")
        for number, line in enumerate(map(str.strip, text.splitlines()), 1):
            # polib would silently cut off a string that does not end on its line.
            if '"' in line and not line.startswith("#") and not line.endswith('"'):
                raise InputError(
                    f"{path}:{number}: expected a string in quotes, its end is missing; add it", path=path
                )
        return polib.pofile(text)
    except (LookupError, UnicodeDecodeError):
        raise InputError(
            f"{path}: expected text in {charset}, which its header names; correct the header or convert the file",
            path=path,
        ) from None
    except OSError as error:
        found = re.search(r"line (\d+)", str(error))
        where = f"{path}:{found[1]}" if found else str(path)
        raise InputError(
            f"{where}: expected a PO file; `msgfmt --check` says what is wrong with it", path=path
        ) from None
