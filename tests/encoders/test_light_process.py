"""The first vector of a new process."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np

from paranmt_hf.encoders import light
from paranmt_hf.encoders.loading import load
from paranmt_hf.encoders.saving import save
from paranmt_hf.encoders.sentence_encoder import SentenceEncoder
from tests.encoders.test_sent2vec import module as sent2vec
from tests.encoders.toys import SENTENCES, encoder

COLD = """
import sys
import paranmt_hf

heavy = {"torch", "sentence_transformers", "transformers", "datasets", "pandas", "scipy", "sklearn", "numba"}
assert not {"numpy", "pyarrow", *heavy} & set(sys.modules), "importing the package is cheap"
import numpy as np
out, sentences, folders = sys.argv[1], eval(sys.argv[2]), sys.argv[3:]
models = [paranmt_hf.load(folder) for folder in folders]
found = [model.encode(sentences) for model in models]
assert not any(isinstance(model, (str, int, list)) for model in models)
assert not heavy & set(sys.modules), heavy & set(sys.modules)
np.savez(out, *found)
"""


COPIES = """
import copy, pickle, sys
import numpy as np
import paranmt_hf

for folder in sys.argv[1:]:
    model = paranmt_hf.load(folder)
    wanted = model.encode(["the cat", "sat ."])
    copies = [copy.copy(model), copy.deepcopy(model), pickle.loads(pickle.dumps(model)), copy.deepcopy([model])[0]]
    for made in copies:
        assert made is not model and type(made) is type(model) and made._light.source == model._light.source
        np.testing.assert_array_equal(made.encode(["the cat", "sat ."]), wanted)
    first = model._light.tables.parts[0].rows
    assert copies[0]._light.tables.parts[0].rows is first
    assert not np.shares_memory(copies[1]._light.tables.parts[0].rows, first)
assert not {"torch", "sentence_transformers", "transformers"} & set(sys.modules)
"""


def test_copies_stay_light(tmp_path: Path) -> None:
    models = {name: encoder(name) for name in ("word", "trigram-int8", "word,trigram")}
    models["sent2vec"] = SentenceEncoder(modules=[sent2vec(3, "blanks", "float16")], device="cpu")
    for name, model in models.items():
        save(model, tmp_path / name)
    command = [sys.executable, "-c", COPIES, *(str(tmp_path / name) for name in models), "embedded"]
    environment = {**os.environ, "PYTHONPATH": str(Path(light.__file__).parents[2])}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]


def test_a_new_process_gives_vectors_without_torch(tmp_path: Path) -> None:
    models = {name: encoder(name) for name in ("word", "trigram-int8", "word,trigram")}
    models["sent2vec-blanks"] = SentenceEncoder(modules=[sent2vec(3, "blanks", "float16")], device="cpu")
    for name, model in models.items():
        save(model, tmp_path / name)
    folders = [str(tmp_path / name) for name in models]
    command = [sys.executable, "-c", COLD, str(tmp_path / "out.npz"), repr(SENTENCES), *folders, "embedded"]
    environment = {**os.environ, "PYTHONPATH": str(Path(light.__file__).parents[2])}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    found = np.load(tmp_path / "out.npz")
    assert len(found.files) == 5
    for name, folder in zip(found.files, [*folders, "embedded"], strict=True):
        np.testing.assert_allclose(found[name], load(folder).encode(SENTENCES), atol=1e-6)
