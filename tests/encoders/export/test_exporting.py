"""Exports: equal vectors in each library, files without pickles, one sentence for what cannot be."""

import json
import re

import numpy as np
import pytest
import yaml
from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformer

from paranmt_hf import InputError, SentenceEncoder, export_encoder, load
from paranmt_hf.encoders.export.formats import FORMATS
from paranmt_hf.encoders.modules.paranmt_averages import WordEmbedding
from paranmt_hf.encoders.named_encoder import NamedEncoder
from paranmt_hf.encoders.saving import save
from paranmt_hf.util.optional import available
from tests.encoders.toys import BIASED, EVERY, REAL, SENTENCES, encoder, foreign_table, needs_onnx, real, rows, trigram
from tests.refused import refused
from tests.toys import bytes_of, full_disk

needs_model2vec = pytest.mark.skipif(not available("model2vec"), reason="needs paranmt-hf[model2vec]")


@pytest.fixture(scope="module")
def sources(saved):
    """Folders of encoders: the toys, and those over units of real text."""
    for name in REAL:
        save(real(name), saved / name)
    return saved


def check(sources, name, format, out, sentences):
    """Export, and read as the library does: its vectors and ours."""
    made = export_encoder(sources / name, out, format=format)
    assert made.record.difference <= FORMATS[format].tolerance
    return made.load()(sentences), load(sources / name).encode(sentences)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["word-stock", "word-int8", "real-word", "trigram", "trigram-float16", "real-trigram"]
)
def test_stock_module_gives_equal_vectors(sources, tmp_path, real_sentences, name):
    theirs, ours = check(sources, name, "static", tmp_path / "out", [*SENTENCES, *real_sentences[:200]])
    assert theirs.dtype == np.float32
    np.testing.assert_allclose(theirs, ours, atol=1e-6)
    assert np.abs(theirs).sum() > 1
    # The names that older releases of sentence-transformers read.
    assert json.loads((tmp_path / "out" / "modules.json").read_text()) == [
        {"idx": 0, "name": "0", "path": "0_StaticEmbedding", "type": "sentence_transformers.models.StaticEmbedding"}
    ]


@pytest.mark.slow
@needs_model2vec
@pytest.mark.parametrize("name", ["word-float16", "real-word", "real-trigram"])
def test_model2vec_gives_equal_cosines(sources, tmp_path, real_sentences, name):
    """Also of texts beyond the 512 units that the library keeps unless told otherwise."""
    sentences = [*SENTENCES, *real_sentences[:100], " ".join(real_sentences[:100])]
    theirs, ours = check(sources, name, "model2vec", tmp_path / "out", sentences)
    lengths = np.linalg.norm(theirs, axis=1), np.linalg.norm(ours, axis=1)
    assert ((lengths[0] == 0) == (lengths[1] == 0)).all()
    assert (lengths[0] > 0).sum() >= 4
    some = lengths[0] > 0
    cosines = (theirs * ours).sum(axis=1)[some] / (lengths[0] * lengths[1])[some]
    np.testing.assert_allclose(cosines, 1, atol=1e-6)
    # The same folder is a model of sentence-transformers, with equal lengths too.
    plain = SentenceTransformer(str(tmp_path / "out"), device="cpu")
    np.testing.assert_allclose(plain.encode(sentences), ours, atol=1e-6)
    # And an encoder of searches and scores here.
    np.testing.assert_allclose(NamedEncoder(str(tmp_path / "out")).load().encode(sentences), ours, atol=1e-6)


# One of each way through a graph; the others are slow tests.
QUICK = ["trigram-int8", "blstm-average-max", "plstm-without", "irnn+plstm", "trigram,dan,rnn", "real-word,trigram"]
OTHERS = sorted({*EVERY, "real-word", "real-trigram"} - {*QUICK})


@needs_onnx
@pytest.mark.parametrize("name", [*QUICK, *(pytest.param(name, marks=pytest.mark.slow) for name in OTHERS)])
def test_onnx_gives_equal_vectors(sources, tmp_path, real_sentences, name):
    sentences = [*SENTENCES, *real_sentences[:100]]
    theirs, ours = check(sources, name, "onnx", tmp_path / "out", sentences)
    np.testing.assert_allclose(theirs, ours, atol=1e-5)
    assert np.abs(theirs).sum() > 1
    run = FORMATS["onnx"].read(tmp_path / "out")
    # Padding changes nothing, and a batch may hold no unit at all.
    alone = np.concatenate([run([sentence]) for sentence in SENTENCES])
    np.testing.assert_allclose(alone, theirs[: len(SENTENCES)], atol=1e-6)
    assert run(["", " "]).any() == (name in BIASED)


@pytest.mark.slow
@needs_onnx
def test_onnx_rows_keep_their_precision(sources, tmp_path):
    sizes = {}
    for name in ("word", "trigram"):
        for precision in ("float32", "int8"):
            out = tmp_path / f"{name}-{precision}"
            big = {"word": WordEmbedding, "trigram": type(trigram())}[name]
            units = ["[UNK]", *(f"{number:03}" for number in range(999))]
            module = big(units, rows(units, 50)).stored_as(precision)
            save(SentenceEncoder(modules=[module], device="cpu"), tmp_path / "in")
            export_encoder(tmp_path / "in", out, format="onnx")
            sizes[name, precision] = (out / "model.onnx").stat().st_size
        assert sizes[name, "int8"] < 0.3 * sizes[name, "float32"]


@needs_onnx
@pytest.mark.parametrize(
    ("format", "file"), [("onnx", "model.onnx.data"), ("transformers.js", "onnx/model.onnx_data")]
)
def test_weights_beyond_the_limit_lie_beside_the_graph(tmp_path, format, file):
    units = [f"w{number}" for number in range(1000)]
    model = SentenceEncoder(modules=[WordEmbedding(["[UNK]", *units], rows(["[UNK]", *units], 8))], device="cpu")
    FORMATS[format].write(model, tmp_path, largest=100)
    text = " ".join(units[:20])
    np.testing.assert_allclose(FORMATS[format].read(tmp_path)([text]), model.encode([text]), atol=1e-5)
    assert (tmp_path / file).stat().st_size >= 4 * 8 * 1001
    assert (tmp_path / file).with_name("model.onnx").stat().st_size < 20_000
    if format == "transformers.js":
        config = json.loads((tmp_path / "config.json").read_text())
        assert config["transformers.js_config"] == {"dtype": "fp32", "use_external_data_format": True}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["real-word", "word-int8"])
def test_load_reads_an_export_and_is_fast_with_it(sources, tmp_path, name):
    export_encoder(sources / name, tmp_path / "out", format="static")
    again = load(tmp_path / "out")
    assert again.average is not None
    np.testing.assert_allclose(again.encode(SENTENCES), load(sources / name).encode(SENTENCES), atol=1e-6)


def test_trained_vector_of_unknown_words_is_kept(tmp_path):
    weight = rows(["[UNK]", "cat"], 4)
    weight[0] = 1
    save(SentenceEncoder(modules=[WordEmbedding(["[UNK]", "cat"], weight)], device="cpu"), tmp_path / "in")
    export_encoder(tmp_path / "in", tmp_path / "out", format="static")
    plain = SentenceTransformer(str(tmp_path / "out"), device="cpu")
    np.testing.assert_allclose(plain.encode(["a dog"]), [[1, 1, 1, 1]])
    with refused("format"):
        export_encoder(tmp_path / "in", tmp_path / "other", format="model2vec")


def test_settings_are_kept_or_refused(tmp_path):
    model = encoder("word")
    model.prompts["quiet"] = "the cat "
    model.default_prompt_name = "quiet"
    model.truncate_dim = 3
    save(model, tmp_path / "in")
    export_encoder(tmp_path / "in", tmp_path / "out", format="static")
    plain = SentenceTransformer(str(tmp_path / "out"), device="cpu")
    np.testing.assert_allclose(plain.encode(SENTENCES), load(tmp_path / "in").encode(SENTENCES), atol=1e-6)
    assert plain.encode("x").shape == (3,)
    with refused("format"):
        export_encoder(tmp_path / "in", tmp_path / "other", format="model2vec")


FORMAT_OF = {"static": "trigram", "model2vec": "word", "onnx": "word,trigram"}
HERE = [
    pytest.param(format, marks={"onnx": [needs_onnx], "model2vec": [needs_model2vec]}.get(format, []))
    for format in FORMAT_OF
]


@pytest.mark.parametrize("format", HERE)
def test_files_and_readme(sources, tmp_path, monkeypatch, format):
    export_encoder(sources / FORMAT_OF[format], tmp_path / "out", format=format)
    files = [path for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert {path.suffix for path in files} <= {".json", ".safetensors", ".onnx", ".md"}
    assert all(path.stat().st_mode & 0o666 == (tmp_path / "out").stat().st_mode & 0o666 for path in files)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    text = (tmp_path / "out" / "README.md").read_text(encoding="utf8")
    header = yaml.safe_load(text.split("---")[1])
    assert header["library_name"] in ("sentence-transformers", "model2vec", "onnx")
    assert "license" not in header
    assert "states no licence" in text
    monkeypatch.chdir(tmp_path)
    names = {}
    exec(re.search(r"```python\n(.*?)```", text, re.DOTALL)[1], names)  # what a reader would copy
    expected = load(sources / FORMAT_OF[format]).encode(["A dog runs.", "It rains."])
    np.testing.assert_allclose(
        names["vectors"], expected[: len(names["vectors"])], atol=1 if format == "model2vec" else 1e-5
    )


@pytest.mark.parametrize(
    ("content", "expected"),
    [("---\nlicense: cc-by-4.0\n---\n# x\n", {"license": "cc-by-4.0"}), ("---\nlicense: [a\n---\n", {})],
)
def test_licence_of_the_source_is_taken_over(tmp_path, content, expected):
    save(encoder("word"), tmp_path / "in")
    (tmp_path / "in" / "README.md").write_text(content)
    export_encoder(tmp_path / "in", tmp_path / "out")
    header = yaml.safe_load((tmp_path / "out" / "README.md").read_text().split("---")[1])
    assert {key: header[key] for key in header if key.startswith("license")} == expected


@pytest.mark.parametrize("name", ["a|b`a`](http:x)", '<script>"', "```\n---\nlicense: x"])
def test_a_name_stays_a_name(tmp_path, name):
    save(encoder("word"), tmp_path / name)
    export_encoder(tmp_path / name, tmp_path / "out" / name)
    text = (tmp_path / "out" / name / "README.md").read_text(encoding="utf8")
    header, body = text.removeprefix("---\n").split("\n---\n", 1)
    assert "license" not in yaml.safe_load(header)
    assert sum(line.startswith("```") for line in body.split("\n")) == 2
    prose = body.split("```python")[0]
    assert not re.search(r"(?<!\\)[|\[\]<>]", prose) and prose.count("`") - prose.count("\\`") == 2
    compile(re.search(r"```python\n(.*?)\n```", body, re.DOTALL)[1], "card", "exec")


@pytest.mark.parametrize("format", ["static", pytest.param("transformers.js", marks=needs_onnx)])
def test_card_of_words_is_not_about_trigrams(tmp_path, format):
    for number, name in enumerate(("word", "trigram")):
        save(encoder(name), tmp_path / f"in{number}")
        export_encoder(tmp_path / f"in{number}", tmp_path / f"out{number}", format=format)
        text = (tmp_path / f"out{number}" / "README.md").read_text(encoding="utf8")
        assert ("trigram" in text.lower()) == (name == "trigram")


@pytest.mark.slow
@needs_onnx
def test_licence_of_the_carried_encoder(tmp_path):
    made = export_encoder("small", tmp_path / "out", format="onnx")
    assert (made.record.encoder, made.record.dimension) == ("WORD", 256)
    assert "license: mit" in (tmp_path / "out" / "README.md").read_text()


@pytest.mark.parametrize(("name", "format"), [("word,trigram", "static"), ("lstm", "model2vec")])
def test_what_a_format_cannot_hold(sources, tmp_path, name, format):
    with refused("format"):
        export_encoder(sources / name, tmp_path / "out", format=format)
    assert not list(tmp_path.iterdir())


def test_encoders_of_others_are_refused(tmp_path):
    table = foreign_table(["[UNK]", "a"], np.ones((2, 3), np.float32))
    save(SentenceTransformer(modules=[table], device="cpu"), tmp_path / "in")
    with refused():
        export_encoder(tmp_path / "in", tmp_path / "out", format="static")


def test_a_place_that_is_taken(sources, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "file").touch()
    for out in (tmp_path / "out", tmp_path / "out" / "file"):
        with refused("out", path=out):
            export_encoder(sources / "word", out)


def test_wrong_vectors_are_not_written(sources, tmp_path, monkeypatch):
    wrong = lambda folder: lambda sentences: np.ones((len(sentences), 4))  # noqa: E731
    monkeypatch.setattr(FORMATS["static"], "read", wrong)
    with pytest.raises(RuntimeError):
        export_encoder(sources / "word", tmp_path / "out")
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
@pytest.mark.parametrize("format", ["static", pytest.param("onnx", marks=needs_onnx)])
def test_the_same_command_finds_what_it_made(sources, tmp_path, format):
    made = export_encoder(sources / FORMAT_OF[format], tmp_path / "out", format=format)
    before = bytes_of(tmp_path / "out")
    again = export_encoder(sources / FORMAT_OF[format], tmp_path / "out", format=format)
    assert bytes_of(tmp_path / "out") == before and made.fresh and not again.fresh and again.record == made.record
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    with refused("out", path=tmp_path / "out"):
        export_encoder(sources / "lstm", tmp_path / "out", format=format)


def test_weights_that_are_not_finite(tmp_path):
    save(encoder("word,trigram"), tmp_path / "in")
    path = tmp_path / "in" / "1_0_TrigramEmbedding" / "model.safetensors"
    stored = load_file(path)
    stored["embedding.weight"][2, 1] = float("nan")
    save_file(stored, path)
    with refused():
        export_encoder(tmp_path / "in", tmp_path / "out", format="static")
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


@pytest.mark.parametrize("format", HERE)
def test_a_full_disk_is_told_with_the_folder(sources, tmp_path, format):
    with full_disk(100), pytest.raises(InputError) as caught:
        export_encoder(sources / FORMAT_OF[format], tmp_path / "out", format=format)
    assert f"{tmp_path / 'out'}.work" in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_missing_packages(sources, tmp_path, without):
    without("onnx")
    without("model2vec")
    with refused():
        export_encoder(sources / "word", tmp_path / "out", format="onnx")
    made = export_encoder(sources / "trigram", tmp_path / "out", format="model2vec")
    assert "not compared" in made.summary()
    assert (tmp_path / "out" / "config.json").is_file()


def test_a_family_that_no_library_holds(sources, tmp_path):
    with refused("model"):
        export_encoder(sources / "sent2vec", tmp_path / "out", format="onnx")
