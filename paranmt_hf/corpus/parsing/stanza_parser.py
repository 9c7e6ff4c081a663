"""Stanza's constituency parser, where its English models lie on this machine; nothing is ever downloaded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from paranmt_hf.corpus.parsing.trees import Tree
from paranmt_hf.errors import InputError
from paranmt_hf.util.optional import require

PROCESSORS = "tokenize,pos,constituency"
GET_MODELS = f"python -c \"import stanza; stanza.download('en', processors='{PROCESSORS}')\""


class StanzaParser:
    """The English constituency parser of stanza, with the categories of the Penn Treebank, parts of speech included.

    Raises:
        InputError: The package or its models are missing.
    """

    at_once: int | None = 100

    def __init__(self) -> None:
        stanza: Any = require("stanza", "parse")
        try:
            self._pipeline = stanza.Pipeline(
                "en", processors=PROCESSORS, download_method=None, tokenize_no_ssplit=True, verbose=False
            )
        # Stanza has an error of its own for each thing that may be missing, most but not all of them OSErrors.
        except Exception as error:
            reason = " ".join(str(error).split())
            raise InputError(
                f"stanza's English models cannot be loaded ({reason}); fetch them once, where there is a network: "
                f"{GET_MODELS}, or take trees from a file"
            ) from None
        self.name = f"stanza {stanza.__version__}"

    def trees(self, sentences: Sequence[str]) -> list[Tree | None]:
        """Parse sentences; see `Parser`. One that stanza takes for several has the tree of the first."""
        present = [index for index, sentence in enumerate(sentences) if sentence.strip()]
        documents = self._pipeline.bulk_process([sentences[index] for index in present])
        found: list[Tree | None] = [None] * len(sentences)
        for index, document in zip(present, documents, strict=True):
            parsed = [sentence.constituency for sentence in document.sentences]
            if parsed and parsed[0] is not None:
                found[index] = _plain(parsed[0])
        return found


def _plain(tree: Any) -> Tree:  # noqa: ANN401 - a tree of stanza
    """Turn a tree of stanza, whose words are nodes without children, into ours."""
    return Tree(tree.label, tuple(_plain(child) if child.children else child.label for child in tree.children))
