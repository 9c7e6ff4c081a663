# /// script
# requires-python = ">=3.11"
# dependencies = [
#     "numpy>=2.0.0",
#     "safetensors>=0.8.0",
#     "tokenizers>=0.22.2",
#     "wordllama==0.4.0.post1",
# ]
# ///
"""Join word vectors with WordLlama's token vectors, and reduce both together.

The words are those of a file of vectors. The second vector of a word is the sum of WordLlama's vectors of its pieces.
Both kinds are scaled to lengths of 1 (root mean square), centred, concatenated and reduced by principal components.
Needs `pip install wordllama==0.4.0.post1`.

    python dataset_scripts/vectors_with_wordllama.py minilm.384d.txt.gz --dimension 400 --out joined.400d.txt.gz
"""

from __future__ import annotations

import argparse
import gzip
from pathlib import Path

import numpy as np

# Number of frequent words on whose mean vectors are centred; a mean over all words would be that of rare ones.
FREQUENT = 20_000


def read(path: Path) -> tuple[list[str], np.ndarray]:
    """Read a word and its numbers from each line; return the words, and their vectors [word, dimension]."""
    with gzip.open(path, "rt", encoding="utf8") if path.suffix == ".gz" else path.open(encoding="utf8") as lines:
        rows = [(word, np.array(numbers, np.float32)) for word, *numbers in map(str.split, lines)]
    return [word for word, _ in rows], np.stack([vector for _, vector in rows])


def write(path: Path, words: list[str], matrix: np.ndarray) -> None:
    """Write a word and its numbers on each line."""
    lines = (f"{word} {' '.join(f'{value:.5g}' for value in row)}\n" for word, row in zip(words, matrix, strict=True))
    content = "".join(lines).encode()
    path.write_bytes(gzip.compress(content, mtime=0) if path.suffix == ".gz" else content)


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
    """Concatenate two kinds of vectors and reduce them to `dimension` principal components [word, dimension]."""
    matrix = np.hstack([unit(left), unit(right)])
    matrix -= matrix[:FREQUENT].mean(axis=0)
    # The columns are in the order of ascending variance.
    _, components = np.linalg.eigh((matrix.T @ matrix).astype(np.float64))
    return unit(matrix @ components[:, ::-1][:, :dimension].astype(np.float32))


def main() -> None:
    """Parse the command line, join both kinds of vectors, and write the result."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("vectors", type=Path)
    parser.add_argument("--dimension", type=int, default=400)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    words, own = read(arguments.vectors)
    write(arguments.out, words, join(own, pieces(words), arguments.dimension))
    print(f"{arguments.out}: {len(words):,} words, {arguments.dimension} dimensions")


if __name__ == "__main__":
    main()
