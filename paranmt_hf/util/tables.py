"""Tables of figures for people: in Markdown, or in columns for a terminal."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
