"""Licences: an identifier that the Hub lists, or a name and a link for other terms."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from paranmt_hf.errors import InputError
from paranmt_hf.hub.repository import CARRIED, folder_of

# The identifiers of https://huggingface.co/docs/hub/repositories-licenses. An error below names the date of the list.
IDS = frozenset(
    """
    apache-2.0 mit openrail bigscience-openrail-m creativeml-openrail-m bigscience-bloom-rail-1.0 bigcode-openrail-m
    afl-3.0 artistic-2.0 bsl-1.0 bsd bsd-2-clause bsd-3-clause bsd-3-clause-clear c-uda cc cc0-1.0 cc-by-2.0 cc-by-2.5
    cc-by-3.0 cc-by-4.0 cc-by-sa-3.0 cc-by-sa-4.0 cc-by-nc-2.0 cc-by-nc-3.0 cc-by-nc-4.0 cc-by-nd-4.0 cc-by-nc-nd-3.0
    cc-by-nc-nd-4.0 cc-by-nc-sa-2.0 cc-by-nc-sa-3.0 cc-by-nc-sa-4.0 cdla-sharing-1.0 cdla-permissive-1.0
    cdla-permissive-2.0 wtfpl ecl-2.0 epl-1.0 epl-2.0 etalab-2.0 eupl-1.1 eupl-1.2 agpl-3.0 gfdl gpl gpl-2.0 gpl-3.0
    lgpl lgpl-2.1 lgpl-3.0 isc h-research intel-research lppl-1.3c ms-pl apple-ascl apple-amlr mpl-2.0 odc-by odbl
    openmdw-1.0 openmdw-1.1 openrail++ osl-3.0 postgresql ofl-1.1 ncsa unlicense zlib pddl lgpl-lr deepfloyd-if-license
    fair-noncommercial-research-license llama2 llama3 llama3.1 llama3.2 llama3.3 llama4 grok2-community gemma unknown
    other
    """.split()
)
OTHER = "other"
ID = re.compile(r"[a-z0-9][a-z0-9.+-]*")
LINK = re.compile(r"https?://[^\s<>()\"'`|\\]+")
# The licence of the text that the carried translator was trained on (Multi30k), and so of what the translator writes.
CARRIED_TERMS = "cc-by-nc-sa-4.0"
EXPECTED = "for other terms give a name with a link, such as `My Terms <https://example.org/terms>`"


@dataclass(frozen=True)
class License:
    """A licence as the header of a card states it."""

    id: str  # Identifier that the Hub lists, such as `cc-by-4.0`; `other` for a licence that it does not list
    name: str | None = None  # Name of an `other` licence, in lower case with hyphens: `czeng-2.0`
    link: str | None = None  # Address of the text of an `other` licence

    @classmethod
    def parse(cls, text: str | None, *, listed: bool = True) -> License:
        """Read a licence: `cc-by-4.0`, or `My Terms <https://example.org/terms>`.

        Args:
            text: The licence; None is rejected, with an error that a licence is needed.
            listed: Whether the identifier must be in the list of the Hub. This is not required for a licence from a
                record, because the record may be newer than the list here.
        """
        name, bracket, rest = (text or "").partition("<")
        if bracket:
            license = cls(OTHER, "-".join(name.lower().replace("_", " ").split()), rest.strip().removesuffix(">"))
            if not ID.fullmatch(license.name or "") or not LINK.fullmatch(license.link or ""):
                raise InputError(
                    f"{text!r} is not a licence: a name must have letters, digits, '.' and '-', and a link must begin "
                    f"with https://; {EXPECTED}",
                    option="license",
                )
            return license
        if text is not None and (text in IDS - {OTHER} if listed else ID.fullmatch(text)):
            return cls(text)
        if not text:
            raise InputError(
                "a license is needed, so that users know what they may do: give a licence id of the Hub, such as "
                f"cc-by-4.0; {EXPECTED}",
                option="license",
            )
        plain = text.lower().replace(" ", "-").replace("_", "-")
        near = difflib.get_close_matches(plain, sorted(IDS - {OTHER}), 3, 0.6)
        meant = f"did you mean {' or '.join(near)}? If not, " if near else ""
        raise InputError(
            f"{text!r} is not a licence id of the Hub (its list of August 2026): {meant}{EXPECTED}", option="license"
        )

    @classmethod
    def of_header(cls, header: Mapping[str, Any]) -> License | None:
        """Read the licence that the header of a card states; None if it states none."""
        id, name, link = (header.get(key) for key in ("license", "license_name", "license_link"))
        return cls(str(id), name and str(name), link and str(link)) if id else None

    def __str__(self) -> str:
        """Return the licence in the form that `parse` reads."""
        return f"{self.name} <{self.link}>" if self.link else self.id

    @property
    def header(self) -> dict[str, str]:
        """The entries about the licence in the header of a card."""
        entries = {"license": self.id, "license_name": self.name, "license_link": self.link}
        return {key: value for key, value in entries.items() if value}


def check_terms(translator: str | None, license: str | None) -> None:
    """Reject a licence for a corpus if the carried translator wrote it and its terms (`CARRIED_TERMS`) forbid others.

    Args:
        translator: Name or folder of the translator; None if there is none.
        license: The licence of the corpus, as `License.parse` reads it.
    """
    if translator is None or folder_of(translator, "translator").name not in CARRIED["translator"]:
        return
    if str(License.parse(license)) != CARRIED_TERMS:
        raise InputError(
            f"`license` must be {CARRIED_TERMS}, was {license!r}: the translator that the package carries was trained "
            "on text under these terms, which hold for what it writes too; for other terms use another translator",
            option="license",
        )
