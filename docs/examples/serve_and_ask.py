"""Serve an encoder, and find the sentences nearest to a query with the `openai` client.

Run:   python docs/examples/serve_and_ask.py [SENTENCES.txt [QUERY]]
Needs: pip install 'paranmt-hf[serve]' openai. Without arguments it searches the sample of the package.
"""

import re
import signal
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import numpy as np
import orjson  # noqa: F401 - the server needs it
import uvicorn  # noqa: F401
from openai import OpenAI

SAMPLE = files("paranmt_hf") / "assets" / "sample"  # Sentences of the package

file = sys.argv[1] if len(sys.argv) > 1 else SAMPLE / "sample.en"
query = sys.argv[2] if len(sys.argv) > 2 else "Kids playing with a ball."
sentences = [line for line in Path(file).read_text(encoding="utf8").splitlines() if line][:2048]

command = [sys.executable, "-m", "paranmt_hf.cli", "serve", "small", "--port", "0"]
server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
try:
    address = re.search(r"http://\S+", server.stderr.readline())[0]
    client = OpenAI(base_url=f"{address}/v1", api_key="none")
    answer = client.embeddings.create(model="small", input=[query, *sentences])
    vectors = np.array([each.embedding for each in answer.data])
    cosines = vectors[1:] @ vectors[0]
    print(query)
    for index in np.argsort(-cosines)[:3]:
        print(f"  {cosines[index]:.2f}  {sentences[index]}")
finally:
    server.send_signal(signal.SIGINT)
    server.wait()
