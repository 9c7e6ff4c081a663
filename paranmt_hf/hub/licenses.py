"""Licences by the identifiers that the Hub takes in the header of a card."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass

from paranmt_hf.errors import InputError

# When the table below was last compared with https://huggingface.co/docs/hub/repositories-licenses.
AS_OF = "August 2026"
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
NAMED_OTHERWISE = "for a licence that the Hub does not list give `other` with `license_name` and `license_link`"


def similar(id: str) -> list[str]:
    """List the identifiers that are spelt nearly like another text, at most three, the nearest first."""
    return difflib.get_close_matches(id.lower().replace(" ", "-").replace("_", "-"), sorted(IDS), 3, 0.6)


@dataclass(frozen=True)
class License:
    """A licence, as the header of a card states it.

    Attributes:
        id: Identifier that the Hub lists, such as `cc-by-4.0`.
        name: Name of a licence that it does not list, whose id is `other`: lower case with hyphens, as `czeng-2.0`.
        link: Address of its text.
    """

    id: str
    name: str | None = None
    link: str | None = None

    @property
    def header(self) -> dict[str, str]:
        """The entries of a card's header."""
        entries = {"license": self.id, "license_name": self.name, "license_link": self.link}
        return {key: value for key, value in entries.items() if value}

    def check(self) -> None:
        """Check it against what the Hub takes, so that a mistake shows before the work and not after it."""
        if self.id not in IDS:
            near = similar(self.id)
            meant = f"did you mean {' or '.join(near)}? If not, " if near else ""
            raise InputError(
                f"{self.id!r} is not a licence id of the Hub (its list of {AS_OF}): {meant}{NAMED_OTHERWISE}",
                option="license",
            )
        if self.id != OTHER:
            if self.name or self.link:
                raise InputError(
                    f"license_name and license_link are for the license 'other', not for {self.id!r}; leave them out",
                    option="license_name",
                )
            return
        if not (self.name and self.link):
            raise InputError(
                "license other needs `license_name` (such as my-license-1.0) and `license_link` (the address of its "
                "text), so that its users know what they may do",
                option="license",
            )
        if not re.fullmatch(r"[a-z0-9][a-z0-9.+-]*", self.name):
            raise InputError(
                f"license_name must be lower-case letters, digits, '.' and '-', such as my-license-1.0, was "
                f"{self.name!r}",
                option="license_name",
            )
        if not re.fullmatch(r"https?://[^\s<>()\"'`|\\]+", self.link):
            raise InputError(
                f"license_link must be an address that begins with https://, was {self.link!r}", option="license_link"
            )
