"""`paranmt templates`: which templates the references of parsed pairs have, and how often.

Iyyer et al. (2018), section 3.3: a template is the top two levels of a linearised parse, and the most frequent ones
serve as targets.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from paranmt_hf.corpus.parsing.record import check_templates, read_parsed
from paranmt_hf.corpus.parsing.template_counts import TemplateCount, read_template_counts
from paranmt_hf.errors import InputError
from paranmt_hf.util.tables import percent, text_table


@dataclass(frozen=True)
class Templates:
    """The most frequent templates of a corpus.

    Attributes:
        counts: Templates, the most frequent first.
        total: References with a tree, whatever its template.
        different: Different templates among them.
        parser: What gave the trees.
    """

    counts: list[TemplateCount]
    total: int
    different: int
    parser: str

    @property
    def shares(self) -> list[float]:
        """Share of each template in all trees, in [0, 1]."""
        return [each.count / self.total for each in self.counts]

    @property
    def cumulative_shares(self) -> list[float]:
        """Share of each template and those before it, in [0, 1]."""
        sums, done = [], 0
        for each in self.counts:
            done += each.count
            sums.append(done / self.total)
        return sums

    def text(self) -> str:
        """Write a table for a terminal, the examples at its end."""
        head = ["template", "count", "share %", "cumulative %"]
        figures = zip(self.counts, self.shares, self.cumulative_shares, strict=True)
        rows = [[each.template, f"{each.count:,}", percent(share), percent(total)] for each, share, total in figures]
        lines = text_table(head, rows).split("\n")
        examples = ["example", *(each.example for each in self.counts)]
        return "\n".join(f"{line}  {example}" for line, example in zip(lines, examples, strict=True))

    def to_json(self) -> dict[str, Any]:
        """Give the table as JSON values."""
        figures = zip(self.counts, self.shares, self.cumulative_shares, strict=True)
        return {
            "parser": self.parser,
            "references_with_a_tree": self.total,
            "different_templates": self.different,
            "templates": [
                {**asdict(each), "share": share, "cumulative_share": total} for each, share, total in figures
            ],
        }


def frequent_templates(parsed: str | Path, *, top: int | None = 20) -> Templates:
    """Read the most frequent templates of the references of parsed pairs.

    Args:
        parsed: The folder that `paranmt parse` made.
        top: So many of them; None for all.

    Raises:
        InputError: The folder holds no parsed pairs, they are damaged, or `top` is below 1.
    """
    if top is not None and top < 1:
        raise InputError(f"top must be at least 1, got {top}")
    folder = Path(parsed).expanduser()
    record = read_parsed(folder)
    check_templates(folder, record)
    counts = read_template_counts(folder, top)
    if not counts or record.trees["reference"] < 1:
        raise InputError(f"no reference of {folder} has a tree, so there are no templates; use another parser")
    return Templates(counts, record.trees["reference"], record.templates, record.inputs["parser"])
