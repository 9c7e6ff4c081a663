"""Encoding in processes of their own: memory beside the result, and after a fork, where OpenMP's threads are gone."""

import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest

from paranmt_hf.encoders.saving import save
from tests.encoders.toys import encoder

MEASURE = """
import ctypes, gc, sys, threading, time
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
torch.set_num_threads(int(sys.argv[2]))
from paranmt_hf.encoders.modules.paranmt_combination import Combination
from paranmt_hf.encoders.sentence_encoder import SentenceEncoder
from paranmt_hf.encoders.units import count_units
from paranmt_hf.encoders.vocabulary import most_frequent
from paranmt_hf.encoders.modules.paranmt_averages import TrigramEmbedding
from paranmt_hf.encoders.modules.paranmt_averages import WordEmbedding

def resident():
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS"))

texts = pq.read_table(sys.argv[1], columns=["translation"])["translation"][:200_000]
counts = count_units(texts.chunks, ["word", "trigram"])
parts = []
for kind, make in (("word", WordEmbedding), ("trigram", TrigramEmbedding)):
    units = most_frequent(kind, counts[kind], 50_000).units
    parts.append([make(units, np.random.default_rng(1).standard_normal((len(units), 150), np.float32))])
model = SentenceEncoder(modules=[Combination(parts)], device="cpu")
sentences = texts.to_pylist()
assert len(set(sentences)) > 150_000
del counts, texts
# So many characters that the compiled loops are there.
model.encode(sentences[:10] * 1000)
# What was freed must not count as there before.
gc.collect()
pa.default_memory_pool().release_unused()
ctypes.CDLL(None).malloc_trim(0)
before, peak, done = resident(), 0, False

def watch():
    global peak
    while not done:
        peak = max(peak, resident())
        time.sleep(0.005)

watcher = threading.Thread(target=watch)
watcher.start()
vectors = model.encode(sentences, normalize_embeddings=True)
done = True
watcher.join()
print((peak - before - vectors.nbytes) / 1e6)
"""


@pytest.mark.slow
@pytest.mark.parametrize(("number", "most"), [(1, 100), (2, 180)])
def test_memory_beside_the_result_is_bounded(shared_data, number, most):
    """Each thread remembers chunks and has arrays of its own: about 60 MB with 120,000 chunks."""
    pairs = shared_data / "pairs" / "machine-translations.parquet"
    command = [sys.executable, "-c", MEASURE, str(pairs), str(number)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert 10 < float(done.stdout.split()[-1]) < most


PROGRAM = """
    import multiprocessing, os, sys
    import numpy as np, torch
    from paranmt_hf.encoders.loading import load

    torch.set_num_threads(4)
    models = [load(folder, device="cpu") for folder in sys.argv[1:]]
    sentences = [f"the cat sat. it is {number}" for number in range(3_000)]
    expected = [model.encode(sentences, show_progress_bar=False) for model in models]

    def encode(number):
        vectors = [model.encode(sentences, show_progress_bar=False) for model in models]
        return max(np.abs(own - other).max() for own, other in zip(vectors, expected, strict=True))

    child = os.fork()
    if child == 0:
        os._exit(0 if encode(0) < 1e-6 else 3)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert max(pool.map(encode, range(2))) < 1e-6
    assert torch.get_num_threads() == 4, "the parent keeps its threads"
    assert encode(0) < 1e-6
    print("equal")
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_forked_processes_encode(tmp_path):
    folders = []
    for name in ("word,trigram", "lstm"):
        folders.append(str(tmp_path / name))
        model = encoder(name)
        assert np.abs(model.encode(["the cat sat. it is 3.5"])).sum() > 0
        save(model, folders[-1])
    command = [sys.executable, "-c", textwrap.dedent(PROGRAM), *folders]
    # In a process of its own: one that hangs is stopped, with its children.
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
    try:
        assert process.communicate(timeout=90)[0] == "equal\n"
    finally:
        if process.poll() is None:
            os.killpg(process.pid, 9)
            process.wait()
