"""How much memory the fast path of `encode` takes beside its result."""

import subprocess
import sys

import pytest

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
