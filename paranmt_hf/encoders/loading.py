"""Load encoders without `trust_remote_code`, and without running code of the model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from paranmt_hf.hub.repository import Model, locate

if TYPE_CHECKING:
    from paranmt_hf.encoders.sentence_encoder import SentenceEncoder


def load(
    name: str | Path | Model | None = None, *, revision: str | None = None, device: str | None = None
) -> SentenceEncoder:
    """Load any of our encoders, or another model of stock sentence-transformers modules.

    No code of the model runs: a module class that is neither of `sentence_transformers` nor of this package is
    rejected, and so are weights that are not finite. `StaticEncoder` reads averaging encoders without torch.

    Args:
        name: Folder, Hub id, or what `locate` found; `small`, or None, is the small encoder of the package, `base`
            the larger one.
        revision: Branch, tag or commit on the Hub.
        device: Torch device; if left out the best one that is available, the CPU for averaging encoders.
    """
    from paranmt_hf.encoders.module_loading import load_modules

    return load_modules(locate(name, revision), device)
