#!/usr/bin/env bash
# wordllama 0.4.0.post1: WordLlama.load(disable_download=True) should load the tokenizer and the weights that the wheel
# carries. It looks for the tokenizer in "tokenizer", where its docstring and the wheel say "tokenizers", and does not find
# it. With the package's own folder as cache_dir the same call works.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv --without-pip "$folder/venv"
python3 -m pip --python "$folder/venv/bin/python" install --no-compile --quiet --disable-pip-version-check wordllama==0.4.0.post1 numpy==2.3.5

HOME="$folder" "$folder/venv/bin/python" - <<'PYTHON'
import sys
from importlib.metadata import version
from pathlib import Path

import wordllama

package = Path(wordllama.__file__).parent
carried = [str(path.relative_to(package)) for path in sorted(package.glob("[tw]*/*.[js]*"))]


def outcome(**options):
    try:
        return f"vectors {wordllama.WordLlama.load(disable_download=True, **options).embed(['a red bus']).shape}"
    except FileNotFoundError as error:
        return f"{type(error).__name__}: {error}"


default, named = outcome(), outcome(cache_dir=package)
print(f"wordllama {version('wordllama')} carries {carried}")
print(f"  load(disable_download=True): {default}")
print(f"  with cache_dir=<folder of the package>: {named}")
sys.exit(0 if default.startswith("FileNotFoundError: Tokenizer") and named.startswith("vectors") else 1)
PYTHON
