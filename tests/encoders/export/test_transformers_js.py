"""The export for transformers.js: equal vectors as its pipeline makes them in Python, in node and in Chromium."""

import json
import os
import re
import shutil
import subprocess
import threading
import time
from functools import cache, partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paranmt_hf import export_encoder, load
from paranmt_hf.encoders.composition import take_apart
from paranmt_hf.encoders.export.formats import FORMATS
from paranmt_hf.encoders.export.tokenizers import portable_tokenizer, tokenizer_of
from paranmt_hf.encoders.saving import save
from paranmt_hf.text.definitions import character_ngrams
from tests.chromium import open_browser
from tests.encoders.toys import REAL, SENTENCES, cosines, encoder, needs_onnx, real

pytestmark = needs_onnx
PACKAGE = "@huggingface/transformers"
SOME = [
    "word", "word-int8", "trigram-float16", "lstm", "blstm-average-max", "projection", "dan-two-layers",
    "plstm-without", "word,trigram", "word+lstm",
]  # fmt: skip
HARD = [
    "İstanbul'da ΟΔΟΣ Σ isn't [UNK] \ufeffx\x85y\u2028z\u200b \u180ew",
    "“Ça va?” — l'été, zyxqj \u4e2d_\u0130 n't ’s ., .5 ½ ² ① 😀",
    "\U0001d7d8.5 \U00010400a x\U0001f601y",
    "New\nline\ttab  It's 1,000.5; can't",
]


@pytest.mark.parametrize("name", SOME)
def test_pooling_gives_the_vectors_of_the_encoder(tmp_path, name):
    save(encoder(name), tmp_path / "in")
    model = load(tmp_path / "in")
    FORMATS["transformers.js"].write(model, tmp_path)
    run, expected = FORMATS["transformers.js"].read(tmp_path), model.encode(SENTENCES)
    np.testing.assert_allclose(run(SENTENCES), expected, atol=1e-5)
    np.testing.assert_allclose(np.concatenate([run([text]) for text in SENTENCES]), expected, atol=1e-5)


def test_every_place_holds_the_vector(tmp_path):
    """So that pooling by the first place is the same."""
    import onnxruntime

    FORMATS["transformers.js"].write(encoder("lstm"), tmp_path)
    session = onnxruntime.InferenceSession(str(tmp_path / "onnx" / "model.onnx"))
    assert [value.name for value in session.get_inputs()] == ["input_ids", "attention_mask"]
    assert [value.name for value in session.get_outputs()] == ["last_hidden_state", "sentence_embedding"]
    ids, mask = np.array([[0, 2, 3, 0]]), np.array([[1, 1, 1, 0]])
    states, vectors = session.run(None, {"input_ids": ids, "attention_mask": mask})
    assert states.shape == (1, 4, 4)
    np.testing.assert_array_equal(states, np.repeat(vectors[:, None], 4, axis=1))
    np.testing.assert_allclose(vectors, encoder("lstm").encode(["cat sat"]), atol=1e-6)


@pytest.mark.slow
def test_tokenizers_give_the_same_rows(real_sentences):
    for part in take_apart(list(load())).parts:
        texts = [*real_sentences, *SENTENCES, *(text.replace("Σ", "σ") for text in HARD)]
        if part.family.units == "trigram":
            texts = [text for text in texts if max(text, default="") <= "\uffff"]
        ours, portable = tokenizer_of(part), portable_tokenizer(part)
        portable.no_padding()
        expected = [[0, *each.ids] for each in ours.encode_batch(texts)]
        assert [each.ids for each in portable.encode_batch(texts)] == expected
        assert sum(map(len, expected)) > 2000


UNITS = ["[UNK]", " \U0001f600 ", "\U00010428ab", "ab ", " ab", "\ua000ab", ", a"]


@given(st.text(alphabet="ab1 .,\ua000\ua001\uf000Σ", max_size=12))
def test_trigrams_of_any_text_up_to_the_largest_character(text):
    rows = {unit: row for row, unit in enumerate(UNITS) if row}
    assert _trigrams().encode(text).ids == [0, *(rows.get(unit, 0) for unit in character_ngrams(text))]


def test_characters_beyond_the_largest_are_unknown_marks():
    known, row = _trigrams().encode("ab \U0001f600 ab").ids, UNITS.index
    assert known == [0, row(" ab"), row("ab "), 0, 0, 0, row(" ab"), row("ab ")]
    assert known == _trigrams().encode("ab \U00010428 ab").ids == _trigrams().encode("ab ? ab").ids


@cache
def _trigrams():
    part = SimpleNamespace(vocabulary=SimpleNamespace(units=UNITS), family=SimpleNamespace(units="trigram"))
    return portable_tokenizer(part)


@pytest.fixture(scope="module")
def node_modules():
    """The folder of packages of node that has transformers.js in it."""
    folder = os.environ.get("PARANMT_TEST_NODE_MODULES")
    if folder is None and shutil.which("npm"):
        folder = subprocess.run(["npm", "root", "-g"], capture_output=True, text=True, check=False).stdout.strip()
    if not folder or not (Path(folder) / PACKAGE).is_dir():
        pytest.skip(f"needs npm install {PACKAGE}; PARANMT_TEST_NODE_MODULES can name its node_modules")
    return Path(folder)


def in_node(folder, program):
    """What a program prints, in a folder with `node_modules`."""
    if not shutil.which("node"):
        pytest.skip("needs node")
    (folder / "program.mjs").write_text(program)
    ran = subprocess.run(["node", "program.mjs"], cwd=folder, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


class _Files(SimpleHTTPRequestHandler):
    extensions_map = {".html": "text/html", ".mjs": "text/javascript", ".js": "text/javascript", "": "text/plain"}
    extensions_map[".wasm"] = "application/wasm"

    def log_message(self, *_):
        pass


PAGE = """<!doctype html><meta charset="utf-8">
<script type="importmap">{"imports": {
"@huggingface/transformers": "/node_modules/@huggingface/transformers/dist/transformers.web.js",
"onnxruntime-web/webgpu": "/node_modules/onnxruntime-web/dist/ort.webgpu.min.mjs",
"onnxruntime-common": "/node_modules/onnxruntime-common/dist/esm/index.js"}}</script>
<script type="module">
const print = (text) => { document.title = text; };
try {
  const { env } = await import("@huggingface/transformers");
  env.allowRemoteModels = false;
  env.allowLocalModels = true;
  env.backends.onnx.wasm.wasmPaths = "/node_modules/onnxruntime-web/dist/";
  PROGRAM
} catch (error) {
  print(`${error} ${error.stack}`);
}
</script>"""


def in_chromium(folder, program):
    """What a program prints as a page, served from a folder with `node_modules`."""
    # A page has no file system, and imports of a block are calls.
    program = re.sub(r"import (\{[^}]+\}) from (.*);", r"const \1 = await import(\2);", program)
    program = program.replace('const { readFileSync } = await import("node:fs");', "")
    program = re.sub(
        r"const read = .*", "const read = async (file) => (await fetch(`${folder}/${file}`)).json();", program
    )
    program = re.sub(r"\bread\(", "await read(", program)
    (folder / "page.html").write_text(PAGE.replace("PROGRAM", program.replace("console.log(", "print(")))
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Files, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    browser = open_browser(folder / "profile")
    try:
        browser.get(f"http://127.0.0.1:{server.server_port}/page.html")
        until = time.monotonic() + 120
        while not browser.title and time.monotonic() < until:
            time.sleep(0.1)
        return browser.title
    finally:
        browser.quit()
        server.shutdown()
        server.server_close()


@pytest.mark.slow
@pytest.mark.parametrize("run", [in_node, in_chromium])
@pytest.mark.parametrize("name", ["lstm", "real-word", "real-trigram", "real-word,trigram"])
def test_javascript_gives_the_vectors_of_the_encoder(tmp_path, node_modules, real_sentences, name, run):
    """The program of the README, on other texts; and the cosine of two sentences, computed there."""
    texts = [*SENTENCES, *HARD, *real_sentences[:20]]
    if "trigram" in name:
        # There, characters beyond U+FFFF are unknown.
        texts = [text for text in texts if not text or max(text) <= "\uffff"]
    save(real(name) if name in REAL else encoder(name), tmp_path / "in")
    made = export_encoder(tmp_path / "in", tmp_path / "out", format="transformers.js")
    program = re.search(r"```javascript\n(.*?)```", (made.folder / "README.md").read_text(), re.DOTALL)[1]
    (tmp_path / "node_modules").symlink_to(node_modules)
    program = program.replace('["A dog runs.", "It rains."]', json.dumps(texts))
    program = program.replace(
        "console.log(vectors.tolist());",
        """const rows = vectors.tolist();
const dot = (a, b) => a.reduce((sum, value, place) => sum + value * b[place], 0);
const cosine = dot(rows[0], rows[2]) / Math.sqrt(dot(rows[0], rows[0]) * dot(rows[2], rows[2]));
console.log(JSON.stringify({ rows, cosine }));""",
    )
    printed = run(tmp_path, program)
    assert printed.startswith("{"), printed
    found = json.loads(printed)
    expected = load(tmp_path / "in").encode(texts)
    np.testing.assert_allclose(found["rows"], expected, atol=1e-5)
    assert found["cosine"] == pytest.approx(cosines(expected)[0, 2], abs=1e-5)
