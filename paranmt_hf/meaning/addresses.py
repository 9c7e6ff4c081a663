"""Addresses in sentences: of web pages and of e-mail.

Two addresses are equal if they lead to the same place: case, `http://` and `https://`, `www.`, a slash at the end, and
brackets and punctuation around them do not matter. Digits in an address are no number, and its words no names.
"""

from __future__ import annotations

import re

from paranmt_hf.meaning.items import Statement

# Text without `http://` or `www.` is an address only if it ends like most sites: `no.They` and `U.S.` are none.
_DOMAINS = "com|org|net|edu|gov|info|biz|io|eu|uk|de|fr|es|pl|cz|sk|nl|ru|ua|cn|jp|br|ca|au|ch|se|dk|fi|hu|ro|gr|tr"
ADDRESS = re.compile(
    rf"""(?:mailto:)?[\w.+%-]{{1,64}}@[\w-]+(?:\.[\w-]+)+
    |(?:https?|ftps?)://[^\s<>"]+|www\.[^\s<>"]+
    |(?<![\w.@-])[a-z0-9-]+(?:\.[a-z0-9-]+)*\.(?:{_DOMAINS})(?![\w-])(?:/[^\s<>"]*)?""",
    re.VERBOSE | re.IGNORECASE,
)
_SCHEME = re.compile(r"(?:mailto:|\w+://)?(?:www\.)?", re.IGNORECASE)


def has_address(chunk: str) -> bool:
    """Whether a chunk, the text between two blanks, contains an address."""
    return ("." in chunk[1:-1] or "://" in chunk) and ADDRESS.search(chunk) is not None


def addresses_in(chunk: str) -> Statement:
    """Read the addresses in a chunk, the text between two blanks.

    >>> addresses_in("(see:https://www.Example.com/a/).").claims
    (('example.com/a',),)
    """
    plain = [_SCHEME.sub("", address.group(), count=1) for address in ADDRESS.finditer(chunk)]
    keys = tuple(dict.fromkeys(text.rstrip(".,;:!?'\"()[]{}*_/").lower() for text in plain))
    return Statement(tuple((key,) for key in keys), keys)
