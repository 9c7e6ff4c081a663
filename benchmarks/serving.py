"""Compare how fast `paranmt serve` answers with the same encoder in a plain server; Linux only.

The peers are stock sentence-transformers and model2vec, with the encoder exported for them, each in a starlette
application of a few lines that answers `/embed`. Every server is a process on the last core; the client runs on any.

    python benchmarks/serving.py --text train.en
    python benchmarks/serving.py --text train.en --fastembed

`--fastembed` compares the vectors of the ONNX export in fastembed with those of the encoder instead.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPConnection
from pathlib import Path

from commands import PROJECT, environment, heading, spread

PACKAGES = ("numpy", "starlette", "uvicorn", "httptools", "uvloop", "orjson", "sentence-transformers", "model2vec")
OURS = [sys.executable, "-m", "paranmt_hf.cli", "serve", "small", "--port", "{port}"]
PEER = """
import uvicorn
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route
{load}
async def embed(request):
    inputs = (await request.json())["inputs"]
    return JSONResponse(encode([inputs] if isinstance(inputs, str) else inputs).tolist())
uvicorn.run(Starlette(routes=[Route("/embed", embed, methods=["POST"])]), port={port}, log_level="warning")
"""
PEERS = {
    "sentence-transformers, static": (
        "from sentence_transformers import SentenceTransformer\n"
        "model = SentenceTransformer({folder!r}, device='cpu')\n"
        "encode = lambda texts: model.encode(texts, normalize_embeddings=True, batch_size=1024)"
    ),
    "model2vec, model2vec": (
        "import numpy as np\nfrom model2vec import StaticModel\nmodel = StaticModel.from_pretrained({folder!r})\n"
        "model.normalize = True\nencode = model.encode"
    ),
}
ROUTES = {
    "/embed": ("/embed", "inputs", {}),
    "/v1/embeddings, float": ("/v1/embeddings", "input", {}),
    "/v1/embeddings, base64": ("/v1/embeddings", "input", {"encoding_format": "base64"}),
}


class Server:
    """A running server.

    Attributes:
        first: Seconds from the start of its process to the first answer.
    """

    def __init__(self, process: subprocess.Popen[bytes], port: int, started: float) -> None:
        self._process, self._port = process, port
        self.first = 0.0
        while not self.first:
            # The server refuses connections until it listens.
            with suppress(ConnectionError):
                self._connection = HTTPConnection("127.0.0.1", port)
                self.ask("/embed", {"inputs": "a cat"})
                self.first = time.perf_counter() - started
            if process.poll() is not None:
                raise SystemExit("the server ended before it answered")
            if not self.first:
                time.sleep(0.005)

    def ask(self, path: str, values: object) -> bytes:
        """Send a request on a connection that stays open, and return the body of the answer."""
        self._connection.request("POST", path, json.dumps(values), {"Content-Type": "application/json"})
        answer = self._connection.getresponse()
        body = answer.read()
        if answer.status != 200:
            raise SystemExit(f"{path}: {answer.status} {body.decode()[:200]}")
        return body

    def cpu(self) -> float:
        """Return the CPU seconds of the process so far."""
        values = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(values[11]) + int(values[12])) / os.sysconf("SC_CLK_TCK")

    def memory(self) -> float:
        """Return the peak resident memory of the process so far, in megabytes."""
        found = re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{self._process.pid}/status").read_text())
        return int(found[1]) / 1024 if found else 0.0


@contextmanager
def running(command: list[str], port: int) -> Iterator[Server]:
    """Run a server on the last core in a `with` block, and end it with Ctrl-C."""
    cores = sorted(os.sched_getaffinity(0))
    started = time.perf_counter()
    process = subprocess.Popen(
        [word.replace("{port}", str(port)) for word in command],
        env=environment(),
        cwd=PROJECT,
        stderr=subprocess.DEVNULL,
        preexec_fn=lambda: os.sched_setaffinity(0, cores[-1:]),
    )
    try:
        yield Server(process, port, started)
    finally:
        process.send_signal(signal.SIGINT)
        process.wait()


def measure(name: str, command: list[str], routes: list[str], lines: list[str], arguments: argparse.Namespace) -> None:
    """Print one line of each table for a server."""
    firsts = []
    for repeat in range(arguments.repeats):
        with running(command, arguments.port) as server:
            firsts.append(server.first)
            if repeat < arguments.repeats - 1:
                continue
            times, before = [], server.cpu()
            for line in lines[: arguments.single]:
                started = time.perf_counter()
                server.ask("/embed", {"inputs": line})
                times.append((time.perf_counter() - started) * 1e3)
            cpu = (server.cpu() - before) / len(times) * 1e6
            p50, p99 = statistics.median(times), statistics.quantiles(times, n=100)[98]
            print(f"| {name}: first answer, seconds | {spread(firsts, '.2f')} |")
            print(f"| {name}: one sentence, milliseconds | p50 {p50:.2f}, p99 {p99:.2f}; CPU {cpu:.0f} microseconds |")
            for route in routes:
                path, field, options = ROUTES[route]
                rates, cpu_rates = [], []
                # The first round does not count, because it loads what many sentences need.
                for round_ in range(arguments.repeats + 1):
                    started, before = time.perf_counter(), server.cpu()
                    for begin in range(0, len(lines), arguments.batch):
                        server.ask(path, {field: lines[begin : begin + arguments.batch], **options})
                    if round_:
                        rates.append(len(lines) / (time.perf_counter() - started))
                        cpu_rates.append(len(lines) / (server.cpu() - before))
                print(
                    f"| {name}: {route}, sentences per second | {spread(rates)}; per CPU second {spread(cpu_rates)} |"
                )
            print(f"| {name}: peak memory, MB | {server.memory():.0f} |", flush=True)


def measure_batching(lines: list[str]) -> None:
    """Print how much time encoding the sentences of several requests together would save."""
    from paranmt_hf import StaticEncoder

    encoder = StaticEncoder.from_pretrained()
    # Encoding many lines loads what many sentences need.
    encoder.encode(lines * (1 + 20_000 // len(lines)))
    found = {}
    for count in (1, 32):
        started = time.process_time()
        for begin in range(0, len(lines), count):
            encoder.encode(lines[begin : begin + count])
        found[count] = (time.process_time() - started) / len(lines) * 1e6
    print(f"\nA sentence in `encode`: {found[1]:.1f} microseconds by itself, {found[32]:.1f} with 31 others.")


def compare_fastembed(lines: list[str], folder: Path) -> None:
    """Print the largest difference of vectors in fastembed from those of the encoder."""
    import numpy as np
    from fastembed import TextEmbedding
    from fastembed.common.model_description import ModelSource, PoolingType

    from paranmt_hf import StaticEncoder, export_encoder

    encoder = StaticEncoder.from_pretrained()
    export_encoder("small", folder / "onnx", format="onnx")
    settings = {"pad_token": "[UNK]", "model_max_length": 1_000_000_000}
    (folder / "onnx" / "tokenizer_config.json").write_text(json.dumps(settings))
    TextEmbedding.add_custom_model(
        model="paranmt/small",
        pooling=PoolingType.DISABLED,
        normalization=False,
        sources=ModelSource(hf="paranmt/small"),
        dim=encoder.dimension,
        model_file="model.onnx",
        output_name="sentence_embedding",
    )
    model = TextEmbedding("paranmt/small", specific_model_path=str(folder / "onnx"), threads=1)
    odd = ["", "zwölf Boxkämpfer \U0001f600", "ΟΔΥΣΣΕΥΣ", "It’s 3.14, isn't it?"]
    for name, sentences in (("lines of the text", lines), ("odd texts", odd)):
        vectors = np.array(list(model.embed(sentences)))
        difference = np.abs(vectors - encoder.encode(sentences)).max()
        print(f"{len(sentences):,} {name}: largest difference {difference:.0e}")


def main() -> None:
    """Parse the command line, measure, print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--text", type=Path, required=True, help="English text, a sentence a line")
    parser.add_argument("--sentences", type=int, default=20_000, help="of a round (default: %(default)s)")
    parser.add_argument("--batch", type=int, default=1000, help="sentences of a request (default: %(default)s)")
    parser.add_argument("--single", type=int, default=2000, help="requests of one sentence (default: %(default)s)")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--port", type=int, default=8765)
    parser.add_argument("--fastembed", action="store_true", help="compare vectors in fastembed instead")
    arguments = parser.parse_args()
    lines = arguments.text.read_text(encoding="utf8").splitlines()[: arguments.sentences]
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        if arguments.fastembed:
            print(heading("fastembed", "onnxruntime"))
            return compare_fastembed(lines, folder)
        # New processes do this, so that this one stays small.
        programs = {}
        for name, load in PEERS.items():
            target, kind = folder / name.split()[0].strip(","), name.split()[-1]
            export = [sys.executable, "-m", "paranmt_hf.cli", "encoder", "export", "small", "--format", kind]
            subprocess.run([*export, "--out", str(target)], env=environment(), check=True, stdout=subprocess.DEVNULL)
            programs[name] = PEER.replace("{load}", load.format(folder=str(target)))
        print(f"{heading(*PACKAGES)}; load {os.getloadavg()[0]:.1f}; {arguments.repeats} runs\n")
        print("| | median (min to max) |\n|---|---|")
        measure("paranmt serve", OURS, list(ROUTES), lines, arguments)
        for name, program in programs.items():
            measure(name.split(",")[0], [sys.executable, "-c", program], ["/embed"], lines, arguments)
    measure_batching(lines)


if __name__ == "__main__":
    main()
