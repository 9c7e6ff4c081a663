#!/usr/bin/env bash
# mteb 2.26.24: OpenAIAPIEncodeWrapper posts plain text to /v1/embeddings as chat `messages`, which vLLM has and the OpenAI
# API has not. One would expect `input` for text. It comes only with use_chat_template=False: the text about the class
# says so, the examples of its module, for the OpenAI API too, do not pass it. The server here answers both.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv --without-pip "$folder/venv"
install=(python3 -m pip --python "$folder/venv/bin/python" install --no-compile --quiet --disable-pip-version-check)
"${install[@]}" torch==2.13.0
"${install[@]}" mteb==2.26.24 sentence-transformers==6.2.0 transformers==5.24.0 datasets==5.2.0

HF_HOME="$folder/cache" HF_HUB_OFFLINE=1 "$folder/venv/bin/python" - <<'PYTHON'
import json
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from importlib.metadata import version
from threading import Thread

import mteb
from mteb.models import OpenAIAPIEncodeWrapper

posted = []


class Server(BaseHTTPRequestHandler):
    def do_GET(self):
        self.answer({"data": [{"id": "small"}]})

    def do_POST(self):
        posted.append((self.path, json.loads(self.rfile.read(int(self.headers["Content-Length"])))))
        self.answer({"data": [{"index": 0, "embedding": [1.0, 0.0]}]})

    def answer(self, content):
        body = json.dumps(content).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments):
        pass


task = mteb.get_task("STSBenchmark").metadata
print(f"mteb {version('mteb')}, one text")
with HTTPServer(("127.0.0.1", 0), Server) as server:
    Thread(target=server.serve_forever, daemon=True).start()
    for options in ({}, {"use_chat_template": False}):
        model = OpenAIAPIEncodeWrapper(f"http://127.0.0.1:{server.server_port}", "small", **options)
        model.encode([{"text": ["a red bus"]}], task_metadata=task, hf_split="test", hf_subset="default")
        print(f"  options {options}: POST {posted[-1][0]} {json.dumps(posted[-1][1])}")
    server.shutdown()
sys.exit(0 if ["messages" in body for _, body in posted] == [True, False] and "input" in posted[1][1] else 1)
PYTHON
