"""Tables that model2vec and sentence-transformers write: vectors equal to their own, and whole numbers refused."""

import shutil

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Normalize, StaticEmbedding
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

from paranmt_hf import InputError, StaticEncoder, load
from paranmt_hf.hub.repository import locate
from paranmt_hf.util.optional import available

TOKENS = ["[PAD]", "[UNK]", "the", "cat", "dog", "sat", "##s", "on", "a", "mat"]
SENTENCES = ["the cat sat on a mat", "The dogs", "", "a"]
ROWS = np.random.default_rng(1).standard_normal((len(TOKENS), 8)).astype(np.float32)


def tokenizer():
    """Word pieces as BERT and the models of model2vec have them."""
    found = Tokenizer(models.WordPiece({token: row for row, token in enumerate(TOKENS)}, unk_token="[UNK]"))
    found.normalizer = normalizers.BertNormalizer()
    found.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return found


@pytest.mark.skipif(not available("model2vec"), reason="needs paranmt-hf[model2vec]")
@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("kind", ["float32", "float64", "float16", "int8", "clusters"])
def test_vectors_of_model2vec(tmp_path, kind, normalize):
    """As model2vec 0.10 writes and reads them."""
    from model2vec import StaticModel
    from model2vec.model import quantize_model

    model = StaticModel(ROWS, tokenizer(), normalize=normalize)
    clusters = 4 if kind == "clusters" else None
    quantize_model(model, vocabulary_quantization=clusters, quantize_to="int8" if clusters else kind).save_pretrained(
        tmp_path / "model"
    )
    theirs = StaticModel.from_pretrained(tmp_path / "model")
    encoder = load(tmp_path / "model")
    found = encoder.encode(SENTENCES)
    assert found.dtype == np.float32 and not found[2].any()
    tolerance = 1e-3 if kind == "float16" else 1e-5
    np.testing.assert_allclose(found, theirs.encode(SENTENCES), atol=tolerance)
    # It leaves out a token that is unknown.
    with_unknown = encoder.encode(["the \u20ac cat", "\u20ac"], normalize_embeddings=True)
    known = encoder.encode("the cat", normalize_embeddings=True)
    np.testing.assert_allclose(with_unknown[0], known, atol=1e-6)
    assert not with_unknown[1].any()
    encoder.save_pretrained(str(tmp_path / "saved"))
    np.testing.assert_array_equal(load(tmp_path / "saved").encode(SENTENCES), found)


def test_a_text_without_tokens_is_zeros_in_float16(tmp_path):
    """sentence-transformers 6.2 gives NaN here, because the smallest length it divides by is 0 in float16."""
    table = StaticEmbedding(tokenizer(), ROWS.astype(np.float16))
    SentenceTransformer(modules=[table, Normalize()], device="cpu").save(str(tmp_path / "model"))
    found = load(tmp_path / "model").encode(["", "the cat"])
    assert not found[0].any()
    assert np.linalg.norm(found[1]) == pytest.approx(1, abs=1e-6)


def rewritten(source, target, change):
    """Copy a model, and change each tensor of its files."""
    shutil.copytree(source, target)
    for path in target.rglob("*.safetensors"):
        save_file({name: change(name, tensor) for name, tensor in load_file(path).items()}, path)
    return target


@pytest.mark.parametrize("is_known", [False, True])
@pytest.mark.parametrize("name", ["word", "trigram", "word,trigram"])
def test_rows_of_bfloat16(saved, tmp_path, name, is_known):
    """As `model.bfloat16()` is saved; numpy has such numbers only with ml_dtypes, which onnx and JAX import."""
    if is_known:
        pytest.importorskip("ml_dtypes")
    load(saved / name).bfloat16().save_pretrained(str(tmp_path / "model"))
    found = StaticEncoder.from_pretrained(tmp_path / "model").encode(SENTENCES)
    assert found.dtype == np.float32 and found.any()
    np.testing.assert_array_equal(found, load(tmp_path / "model").encode(SENTENCES))


@pytest.mark.parametrize("kind", ["int64", "int32", "int8", "bool"])
@pytest.mark.parametrize("name", ["word", "trigram", "lstm", "word,trigram", "plstm"])
def test_whole_numbers_are_no_weights(saved, tmp_path, name, kind):
    folder = rewritten(saved / name, tmp_path / "model", lambda _, tensor: (100 * tensor).astype(kind))
    with pytest.raises(InputError) as caught:
        load(folder)
    assert caught.value.path in folder.rglob("*.safetensors")


def test_the_mask_of_attention_is_no_weight(saved, tmp_path):
    """GPT-Neo calls it `bias`."""
    folder = tmp_path / "model"
    shutil.copytree(saved / "trigram", folder)
    [path] = folder.rglob("*.safetensors")
    tensors = load_file(path)
    for kind in ("bool", "uint8"):
        save_file({**tensors, "h.0.attn.bias": np.tril(np.ones((1, 1, 4, 4))).astype(kind)}, path)
        assert locate(folder).folder == folder
    save_file({**tensors, "h.0.attn.bias": np.ones(4, np.int64)}, path)
    with pytest.raises(InputError) as caught:
        locate(folder)
    assert caught.value.path == path
