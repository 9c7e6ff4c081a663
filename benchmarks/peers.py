"""Static encoders of other projects under our evaluation, beside ours, in one run.

WordLlama's token vectors (pip install wordllama) as a stock StaticEmbedding, and what model2vec distils from a teacher
with our number of words (pip install 'model2vec[distill]'); needs neither for the other:

    python benchmarks/static_peers.py --sts STS --teacher all-MiniLM-L6-v2 --words glove.txt.gz --ours models/word
"""

from __future__ import annotations

import argparse
import gzip
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from commands import heading
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import StaticEmbedding

from paranmt_hf import evaluate


def wordllama(folder: Path) -> Path:
    """Save WordLlama's table and tokenizer as a SentenceTransformer."""
    from safetensors.torch import load_file
    from tokenizers import Tokenizer

    found = find_spec("wordllama")
    assert found is not None
    # The files alone: the package would bring more.
    package = Path(next(iter(found.submodule_search_locations or [])))
    (table,) = load_file(package / "weights" / "l2_supercat_256.safetensors").values()
    tokenizer = Tokenizer.from_file(str(package / "tokenizers" / "l2_supercat_tokenizer_config.json"))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    embedding = StaticEmbedding(tokenizer, embedding_weights=table.float().numpy())
    SentenceTransformer(modules=[embedding], device="cpu").save(str(folder / "wordllama-256"))
    return folder / "wordllama-256"


def model2vec(folder: Path, teacher: str, words: list[str] | None, dimension: int) -> Path:
    """Distil a teacher with model2vec: its own tokens, and some words."""
    from model2vec.distill import distill

    out = folder / f"model2vec-{Path(teacher).name}-{dimension}-{len(words) if words else 'tokens'}"
    if out.exists():
        return out
    model = distill(teacher, vocabulary=words, pca_dims=dimension, device="cpu")
    model.save_pretrained(str(out))
    return out


def first_words(path: Path, count: int) -> Iterator[str]:
    """Words in front of the lines of a file."""
    with gzip.open(path, "rt", encoding="utf8") if path.suffix == ".gz" else path.open(encoding="utf8") as lines:
        for _, line in zip(range(count), lines, strict=False):
            if word := line.split(" ", 1)[0]:
                yield word


def main() -> None:
    """Parse the command line, make the peers, print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sts", type=Path, required=True, help="folder with the STS sets")
    parser.add_argument("--ours", nargs="+", default=["embedded"])
    parser.add_argument("--teacher", help="folder or id of a SentenceTransformer that model2vec distils")
    parser.add_argument("--words", type=Path, help="file whose lines begin with words, most frequent first")
    parser.add_argument("--count", type=int, default=100_000, help="so many of them (default: %(default)s)")
    parser.add_argument("--dimension", type=int, default=256, help="of model2vec (default: %(default)s, its own)")
    parser.add_argument("--keep", type=Path, help="folder for the peers, used again by the next run")
    arguments = parser.parse_args()
    print(f"{heading('torch', 'sentence-transformers', 'model2vec', 'wordllama')}\n")
    with tempfile.TemporaryDirectory() as name:
        folder = arguments.keep or Path(name)
        models: dict[str, str | Path] = {model: model for model in arguments.ours}
        if find_spec("wordllama"):
            models["WordLlama, 256"] = wordllama(folder)
        if arguments.teacher:
            found = [model2vec(folder, arguments.teacher, None, arguments.dimension)]
            if arguments.words:
                words = list(dict.fromkeys(first_words(arguments.words, arguments.count)))
                found.append(model2vec(folder, arguments.teacher, words, arguments.dimension))
            models |= {path.name: path for path in found} | {"the teacher": arguments.teacher}
        print(evaluate(models, data=arguments.sts, bootstrap=0).summary())


if __name__ == "__main__":
    main()
