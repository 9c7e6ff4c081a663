"""Load encoders without a flag and without running code of the model's."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, cast

from paranmt_hf.encoders.contents import module_list
from paranmt_hf.encoders.light import LightEncoder
from paranmt_hf.encoders.tables import read_tables
from paranmt_hf.hub.repository import EMBEDDED, Model, locate

if TYPE_CHECKING:
    import torch

    from paranmt_hf.encoders.sentence_encoder import SentenceEncoder


def load(
    name: str | Path | Model | None = EMBEDDED,
    *,
    revision: str | None = None,
    device: str | None = None,
    dtype: torch.dtype | None = None,
) -> SentenceEncoder:
    """Load any of our encoders, or another model of stock sentence-transformers modules.

    No code from the model runs: a module class outside `sentence_transformers` and this package is refused.

    WORD, TRIGRAM, their combinations and Sent2Vec begin to encode without torch and sentence-transformers; these are
    imported when more is asked of the encoder than vectors. See `LightEncoder`.

    Args:
        name: Folder, Hub id, or what `locate` found; `embedded`, or None, is the small encoder that the package
            carries.
        revision: Branch, tag or commit on the Hub.
        device: Torch device; the best one at hand if left out, the CPU for averaging encoders.
        dtype: torch.float16 reads the rows of averaging encoders in half precision, which is faster; torch.float32
            if left out.

    Raises:
        InputError: There is no such model, or it would need code or pickles from outside.
    """
    if dtype is not None:
        from paranmt_hf.encoders.module_loading import check_dtype

        check_dtype(dtype)
    model = locate(EMBEDDED if name is None else name, revision)
    entries = module_list(model.folder, model.name)
    tables = read_tables(model.folder, entries)
    if tables is not None and dtype is None and device in (None, "cpu") and "sentence_transformers" not in sys.modules:
        return cast("SentenceEncoder", LightEncoder(tables, model))
    from paranmt_hf.encoders.module_loading import encoder_of, load_modules

    if tables is None:
        return load_modules(model, entries, device=device, dtype=dtype)
    return encoder_of(tables, model, device=device, dtype=dtype)
