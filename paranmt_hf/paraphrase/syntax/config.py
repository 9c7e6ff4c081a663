"""What the syntactically controlled network has beside the settings of other paraphrasers."""

from __future__ import annotations

from dataclasses import dataclass

from paranmt_hf.paraphrase.config import MOST_PIECES
from paranmt_hf.util.settings import check, setting


@dataclass(frozen=True)
class SyntaxConfig:
    """Sizes of what reads and writes trees (Iyyer et al. 2018, section 3)."""

    tree_embedding: int = setting(64, "width of the vector of a tree's token", at_least=1, at_most=MOST_PIECES)
    tree_hidden: int = setting(
        256, "width of the parse generator's states, an even number", at_least=2, at_most=MOST_PIECES
    )
    max_tree: int = setting(
        150, "leave out pairs with a tree of more tokens (brackets and labels), end included", at_least=4, at_most=2000
    )
    no_copy: bool = setting(False, "generate every piece; else pieces of the sentence are copied through a pointer")

    def __post_init__(self) -> None:
        check(self)
