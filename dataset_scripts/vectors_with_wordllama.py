# /// script
# requires-python = ">=3.11"
# dependencies = [
#     "numpy>=2.0.0",
#     "paranmt-hf",
#     "safetensors>=0.5.3",
#     "tokenizers>=0.22.2",
#     "wordllama==0.4.0.post1",
# ]
# ///
"""Word vectors joined with WordLlama's token vectors and reduced together.

The words are those of a file of vectors. A word gets beside its own vector the sum of WordLlama's vectors of its
pieces, for in a sentence each piece would count; both kinds are given lengths of 1 (root mean square), centred, put
beside each other and reduced by principal components. Needs `pip install wordllama==0.4.0.post1`.

    python dataset_scripts/vectors_with_wordllama.py minilm.384d.txt.gz --dimension 400 --out joined.400d.txt.gz
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from paranmt_hf.encoders.distillation import components
from paranmt_hf.text.word_vectors import WordVectors, read_vectors, write_vectors

# What all words share is what the frequent ones share: rare words are many, and the mean would be theirs.
FREQUENT = 20_000


def unit(matrix: np.ndarray) -> np.ndarray:
    """Scale rows [word, dimension] so that the root mean square of their lengths is 1."""
    return np.asarray(matrix / np.sqrt(np.square(matrix).sum(axis=1).mean()), np.float32)


def pieces(words: list[str]) -> np.ndarray:
    """Add up WordLlama's vectors of the pieces of each word: [word, 256]."""
    import wordllama
    from safetensors.numpy import load_file
    from tokenizers import Tokenizer

    folder = Path(wordllama.__file__).parent
    tokenizer = Tokenizer.from_file(str(folder / "tokenizers" / "l2_supercat_tokenizer_config.json"))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    (table,) = load_file(folder / "weights" / "l2_supercat_256.safetensors").values()
    found = tokenizer.encode_batch(words, add_special_tokens=False)
    return np.stack([table[word.ids].astype(np.float32).sum(axis=0) for word in found])


def join(left: np.ndarray, right: np.ndarray, dimension: int) -> np.ndarray:
    """Put two kinds of vectors beside each other and reduce them: [word, dimension]."""
    matrix = np.hstack([unit(left), unit(right)])
    matrix -= matrix[:FREQUENT].mean(axis=0)
    return unit(matrix @ components(matrix, dimension))


def main() -> None:
    """Read, join, write."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("vectors", type=Path)
    parser.add_argument("--dimension", type=int, default=400)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    own = read_vectors(arguments.vectors)
    joined = WordVectors(own.words, join(own.matrix, pieces(own.words), arguments.dimension))
    write_vectors(arguments.out, joined)
    print(f"{arguments.out}: {len(joined.words):,} words, {arguments.dimension} dimensions")


if __name__ == "__main__":
    main()
