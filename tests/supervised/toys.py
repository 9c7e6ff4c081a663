"""Small items and encoders that tests of supervised training share."""

import numpy as np
import torch

from paranmt_hf.encoders.composition import take_apart
from paranmt_hf.encoders.units import lookup
from paranmt_hf.supervised.fitting import Items
from paranmt_hf.supervised.model import HeadConfig, new_head
from paranmt_hf.text.tokens import WordTokenizer
from tests.training.toys import encoder_of, random_text

TEXTS = [*random_text(12, words=20)[0], "nothing known here"]


def head_of(seed=1, **changes):
    values = {"task": "SICK-E", "classes": ["a", "b", "c"], "values": None, "sides": 2, "dimension": 4}
    return new_head(HeadConfig(**{**values, "projection": None, "hidden": 3, **changes}), seed)


def items_of(count=10, sides=2, classes=3, seed=1):
    """Items over `TEXTS` with distributions over classes, some of them of one class alone."""
    generator = np.random.default_rng(seed)
    targets = generator.dirichlet(np.ones(classes), count).astype(np.float32)
    targets[::2] = np.eye(classes, dtype=np.float32)[generator.integers(0, classes, len(targets[::2]))]
    return Items(generator.integers(0, len(TEXTS), (sides, count)), torch.from_numpy(targets))


def encoder(model="word", **settings):
    """An encoder that knows more words than occur in `TEXTS`, and not all of these."""
    return encoder_of((TEXTS[:-1], ["elsewhere alone", "unseen"]), model=model, dimension=4, **settings)


def cut(model):
    """`TEXTS` as rows of an encoder's tables."""
    (table,) = WordTokenizer().tables(TEXTS)
    parts = take_apart(model).parts
    return {part.unit_kind: lookup(part.vocabulary).bags(table) for part in parts}
