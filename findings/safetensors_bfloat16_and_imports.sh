#!/usr/bin/env bash
# safetensors 0.8.0 reads a file of bfloat16 with its numpy functions in two ways: it raises TypeError, or it gives an array
# of ml_dtypes.bfloat16. Which one it is depends on whether any part of the program has imported ml_dtypes 0.6.0 (as onnx and
# JAX do): safetensors neither needs that package nor imports it. One would expect the same of the same file in both.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv --without-pip "$folder/venv"
install=(python3 -m pip --python "$folder/venv/bin/python" install --no-compile --quiet --disable-pip-version-check)
"${install[@]}" safetensors==0.8.0 numpy==2.4.6 ml_dtypes==0.6.0

"$folder/venv/bin/python" - "$folder/model.safetensors" <<'PYTHON'
import json
import struct
import subprocess
import sys
from importlib.metadata import version

# 1.0 and -2.0 in bfloat16, the upper halves of their float32.
numbers = b"\x80\x3f\x00\xc0"
header = json.dumps({"rows": {"dtype": "BF16", "shape": [1, 2], "data_offsets": [0, 4]}}).encode()
with open(sys.argv[1], "wb") as file:
    file.write(struct.pack("<Q", len(header)) + header + numbers)
read = f"""
from safetensors.numpy import load_file
try:
    rows = load_file({sys.argv[1]!r})["rows"]
    print(rows.dtype.name, rows.astype("float32").tolist())
except TypeError as error:
    print("TypeError", error)
"""
print(*(f"{name} {version(name)}" for name in ("safetensors", "numpy", "ml_dtypes")), sep=", ")
found = []
for imports in ("", "import ml_dtypes"):
    run = subprocess.run([sys.executable, "-c", imports + read], capture_output=True, text=True, check=True)
    found.append(run.stdout.strip())
    print(f"  {imports or 'without'}: {found[-1]}")
sys.exit(0 if found[0].startswith("TypeError") and found[1] == "bfloat16 [[1.0, -2.0]]" else 1)
PYTHON
