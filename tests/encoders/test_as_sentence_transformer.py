"""Our encoders answer like any SentenceTransformer: compared with the stock module over the same table."""

import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer

from paranmt_hf import load
from paranmt_hf.encoders.saving import save
from tests.encoders.toys import SENTENCES, encoder

PROMPTS = {"query": "the ", "document": "cat ", "plain": ""}
# What averages (a table, reduced tables, layers), what reads in order, and both.
SOME = ["word", "trigram", "word,trigram", "trigram,word-int8", "projection", "lstm", "word,lstm", "irnn+plstm"]


@pytest.fixture
def ours(saved):
    made = load(saved / "word")
    made.prompts = dict(PROMPTS)
    return made


@pytest.fixture
def stock(saved):
    made = SentenceTransformer(str(saved / "word"), device="cpu")
    made.prompts = dict(PROMPTS)
    assert type(made[0]).__name__ == "StaticEmbedding"
    return made


CALLS = {
    "encode": lambda model: model.encode(SENTENCES),
    "one": lambda model: model.encode(SENTENCES[0]),
    "query": lambda model: model.encode_query(SENTENCES),
    "one query": lambda model: model.encode_query(SENTENCES[2]),
    "document": lambda model: model.encode_document(SENTENCES),
    "query with a prompt": lambda model: model.encode_query(SENTENCES, prompt="sat "),
    "query with the name of a prompt": lambda model: model.encode_query(SENTENCES, prompt_name="document"),
    "name of a prompt": lambda model: model.encode(SENTENCES, prompt_name="query"),
    "by position": lambda model: model.encode(SENTENCES, "query"),
    "truncated": lambda model: model.encode(SENTENCES, truncate_dim=2),
    "truncated query": lambda model: model.encode_query(SENTENCES, truncate_dim=3, normalize_embeddings=True),
    "truncated at more than there is": lambda model: model.encode(SENTENCES, truncate_dim=99),
    "int8": lambda model: model.encode(SENTENCES, precision="int8"),
    "uint8": lambda model: model.encode(SENTENCES, precision="uint8"),
    "binary": lambda model: model.encode(SENTENCES, precision="binary"),
    "ubinary": lambda model: model.encode(SENTENCES, precision="ubinary"),
    "one in binary": lambda model: model.encode(SENTENCES[0], precision="binary"),
    "int8 tensor": lambda model: model.encode(SENTENCES, precision="int8", convert_to_tensor=True),
    "truncated query in int8": lambda model: model.encode_query(SENTENCES, precision="int8", truncate_dim=2),
    "tensor": lambda model: model.encode(SENTENCES, convert_to_tensor=True),
    "tensors": lambda model: torch.stack(model.encode(SENTENCES, convert_to_numpy=False)),
    "forward": lambda model: model(model.preprocess(SENTENCES))["sentence_embedding"].detach(),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_calls(call, ours, stock):
    mine, theirs = call(ours), call(stock)
    assert type(mine) is type(theirs)
    assert (mine.dtype, mine.shape) == (theirs.dtype, theirs.shape)
    np.testing.assert_allclose(np.asarray(mine, np.float64), np.asarray(theirs, np.float64), atol=1e-6)
    assert np.abs(np.asarray(mine, np.float64)).sum() > 0


WRONG = {
    "prompt": lambda model: model.encode(SENTENCES, prompt_name="nope"),
    "precision": lambda model: model.encode(SENTENCES, precision="int4"),
    "one in int8": lambda model: model.encode(SENTENCES[0], precision="int8"),
    "batch size": lambda model: model.encode(SENTENCES, batch_size=0),
    "option": lambda model: model.encode(SENTENCES, colour="red"),
    "similarity": lambda model: setattr(model, "similarity_fn_name", "nearness"),
}


@pytest.mark.parametrize("call", WRONG.values(), ids=WRONG)
def test_errors(call, ours, stock):
    with pytest.raises(ValueError) as theirs:
        call(stock)
    with pytest.raises(ValueError) as mine:
        call(ours)
    # The names of precisions are a set, which has no order; and errors name the class.
    told = [
        str(error.value).split("{")[0].replace("SentenceEncoder", "SentenceTransformer") for error in (mine, theirs)
    ]
    assert told[0] == told[1]


@pytest.mark.parametrize("name", ["cosine", "dot", "euclidean", "manhattan"])
def test_similarity(name, ours, stock, tmp_path):
    figures = []
    for model in (ours, stock):
        model.similarity_fn_name = name
        vectors = model.encode(SENTENCES)
        pairwise = model.similarity_pairwise(vectors, vectors[::-1].copy())
        figures.append(np.concatenate([model.similarity(vectors, vectors).numpy(), pairwise.numpy()[None]]))
    np.testing.assert_allclose(*figures, atol=1e-6)
    save(ours, tmp_path / "saved")
    assert load(tmp_path / "saved").similarity_fn_name == name
    assert SentenceTransformer(str(tmp_path / "saved"), device="cpu").similarity_fn_name == name


def test_settings_of_the_model(ours, stock):
    """Default prompt and dimensions count in every call that says nothing else."""
    for model in (ours, stock):
        model.truncate_dim, model.default_prompt_name = 3, "query"
    assert ours.get_embedding_dimension() == stock.get_embedding_dimension() == 3
    assert ours.max_seq_length == stock.max_seq_length
    for options in ({}, {"truncate_dim": 2}, {"prompt_name": "plain"}, {"prompt": "sat "}):
        np.testing.assert_allclose(ours.encode(SENTENCES, **options), stock.encode(SENTENCES, **options), atol=1e-6)
    with ours.truncate_embeddings(1), stock.truncate_embeddings(1):
        np.testing.assert_allclose(ours.encode(SENTENCES), stock.encode(SENTENCES), atol=1e-6)
        assert ours.encode(SENTENCES).shape == (len(SENTENCES), 1)
    assert ours.encode(SENTENCES).shape == (len(SENTENCES), 3)


@pytest.mark.parametrize("name", SOME)
def test_every_kind_of_encoder(saved, name):
    """What averages takes a path of its own and what reads in order the library's; their answers are alike."""
    model = load(saved / name)
    model.prompts = dict(PROMPTS)
    plain = model.encode(SENTENCES)
    queries = model.encode([PROMPTS["query"] + text for text in SENTENCES])
    np.testing.assert_allclose(model.encode_query(SENTENCES), queries, atol=1e-6)
    np.testing.assert_allclose(model.encode_document(SENTENCES, prompt_name="plain"), plain, atol=1e-6)
    np.testing.assert_allclose(
        model.encode_document(SENTENCES, prompt="the ", truncate_dim=2), queries[:, :2], atol=1e-6
    )
    lengths = np.maximum(np.linalg.norm(queries[:, :3], axis=1, keepdims=True), 1e-12)
    cut = model.encode_query(SENTENCES, truncate_dim=3, normalize_embeddings=True)
    np.testing.assert_allclose(cut, queries[:, :3] / lengths, atol=1e-6)
    # A bit for each dimension: is the value above zero?
    bits = np.unpackbits(model.encode(SENTENCES, precision="ubinary"), axis=1)[:, : plain.shape[1]]
    np.testing.assert_array_equal(bits, plain > 0)
    steps = model.encode(SENTENCES, precision="int8").astype(np.float64)
    low, high = plain.min(axis=0), plain.max(axis=0)
    np.testing.assert_allclose((steps + 128) / 255 * (high - low) + low, plain, atol=float((high - low).max()) / 200)


@pytest.mark.slow
def test_several_processes(saved):
    model = load(saved / "word,trigram")
    model.prompts = dict(PROMPTS)
    pool = model.start_multi_process_pool(["cpu", "cpu"])
    try:
        several = model.encode_query(SENTENCES * 3, pool=pool, chunk_size=5)
        np.testing.assert_allclose(several, model.encode_query(SENTENCES * 3), atol=1e-6)
        cut = model.encode(SENTENCES, pool=pool, truncate_dim=2, precision="binary")
        np.testing.assert_array_equal(cut, model.encode(SENTENCES, truncate_dim=2, precision="binary"))
    finally:
        model.stop_multi_process_pool(pool)


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
        assert process.communicate(timeout=300)[0] == "equal\n"
    finally:
        if process.poll() is None:
            os.killpg(process.pid, 9)
            process.wait()
