#!/usr/bin/env bash
# pandas 3.0.0 over Python's lzma: an .xz file of two streams with padding between them, which the format allows
# (The .xz File Format 1.2, section 2.2) and `xz` reads whole, is read to the end of the first stream, without an error.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv --without-pip "$folder/venv"
python3 -m pip --python "$folder/venv/bin/python" install --no-compile --quiet --disable-pip-version-check pandas==3.0.0

"$folder/venv/bin/python" - "$folder" <<'PYTHON'
import lzma
import subprocess
import sys
from pathlib import Path

import pandas

path = Path(sys.argv[1]) / "rows.csv.xz"
path.write_bytes(lzma.compress(b"number\n1\n2\n") + bytes(4) + lzma.compress(b"3\n4\n"))
rows = pandas.read_csv(path)["number"].tolist()
print(f"pandas {pandas.__version__}, Python {sys.version.split()[0]}: read_csv gives {rows}")
whole = subprocess.run(["xz", "--decompress", "--stdout", path], capture_output=True, text=True, check=True).stdout
print(f"  xz gives {whole.split()[1:]}, and `xz --test` ends with {subprocess.run(['xz', '--test', path]).returncode}")
sys.exit(0 if rows == [1, 2] and whole.split() == ["number", "1", "2", "3", "4"] else 1)
PYTHON
