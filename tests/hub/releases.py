"""A small release, made without any model, and the header of a card."""

import numpy as np
import pyarrow as pa
import yaml

from paranmt_hf import ReleaseConfig
from paranmt_hf.hub.repository import ASSETS
from tests.toys import scored_release


def header(card):
    return yaml.safe_load(card.split("---\n")[1])


def make_release(folder, rows=400, license="cc-by-4.0", seed=0):
    """Write a release of pairs, mostly of random words, so that its files do not compress to nothing."""
    generator = np.random.default_rng([rows, seed])
    # Words of the sample are among them, so that an encoder of these pairs knows some of its sentences.
    known = (ASSETS / "sample" / "similarity.tsv").read_text(encoding="utf8").lower().replace(".", "").split()
    words = ["".join(chr(97 + letter) for letter in word) for word in generator.integers(0, 26, (5000, 6))]
    words[::10] = (known * 2)[:500]
    sides = [[" ".join(words[n] for n in generator.integers(0, 5000, 9)) for _ in range(rows)] for _ in range(2)]
    scores = pa.array(generator.random(rows), pa.float32())
    columns = {"reference": sides[0], "translation": sides[1], "para_score": scores}
    return scored_release(folder, columns, ReleaseConfig(license=license))
