"""The English constituency parser of stanza."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from paranmt_hf.corpus.parsing.trees import Tree
from paranmt_hf.errors import InputError
from paranmt_hf.util.optional import require


class StanzaParser:
    """The English constituency parser of stanza, with categories of the Penn Treebank for phrases and words."""

    at_once: int | None = 100

    def __init__(self) -> None:
        stanza: Any = require("stanza", "parse")
        processors = "tokenize,pos,constituency"
        try:
            self._pipeline = stanza.Pipeline(
                "en", processors=processors, download_method=None, tokenize_no_ssplit=True, verbose=False
            )
        # Stanza raises errors of several types for missing files, and not all of them are `OSError`.
        except Exception as error:
            raise InputError(
                f"stanza's English models cannot be loaded ({' '.join(str(error).split())}); download them: "
                f"python -c \"import stanza; stanza.download('en', processors='{processors}')\", or take trees from a "
                "file"
            ) from None
        self.name = f"stanza {stanza.__version__}"

    def trees(self, sentences: Sequence[str]) -> list[Tree | None]:
        """Parse sentences; None for a blank one.

        A text that stanza cuts into several sentences has the tree of the first.
        """
        present = [index for index, sentence in enumerate(sentences) if sentence.strip()]
        documents = self._pipeline.bulk_process([sentences[index] for index in present])
        found: list[Tree | None] = [None] * len(sentences)
        for index, document in zip(present, documents, strict=True):
            for sentence in document.sentences[:1]:
                if sentence.constituency is not None:
                    found[index] = _converted(sentence.constituency)
        return found


def _converted(tree: Any) -> Tree:  # noqa: ANN401 - a tree of stanza
    """Convert a tree of stanza, in which words are nodes without children."""
    return Tree(tree.label, tuple(_converted(child) if child.children else child.label for child in tree.children))
