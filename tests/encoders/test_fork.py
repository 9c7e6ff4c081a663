"""Encoding after a fork: OpenMP's threads are gone in the new process, and nobody may wait for them."""

import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest

from paranmt_hf.encoders.saving import save
from tests.encoders.toys import encoder

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
