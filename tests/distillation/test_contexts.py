"""Word vectors in context against one sentence and one word at a time."""

from functools import partial

import numpy as np
import pyarrow as pa
import pytest
import torch
from sentence_transformers import SentenceTransformer
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from paranmt_hf import VectorsConfig, distill_vectors
from paranmt_hf.distillation import contexts
from paranmt_hf.distillation.contexts import first_holders, mean_states
from paranmt_hf.distillation.reduction import reduce_in_context
from paranmt_hf.encoders.units import lookup
from paranmt_hf.encoders.vocabulary import Vocabulary
from paranmt_hf.text.tokens import Bags
from tests.encoders.toys import tiny_bert
from tests.refused import refused
from tests.training.toys import encoder_of

PIECES = ["a", "b", "c", "##d", "##e", "the", "'", "s", "."]
SENTENCES = ["The ade a.", "b ade ade c", "cd b's", "a c.", "Ade cde a"]


@pytest.fixture(scope="module")
def transformer(tmp_path_factory):
    return tiny_bert(tmp_path_factory.mktemp("bert"), PIECES, longest=16)


def slow(model, word, sentences, limit):
    """Mean state of a word: over its sentences the mean over all its pieces there."""
    found = []
    for sentence in sentences:
        tokens = contexts.word_pre_tokenizer().pre_tokenize_str(sentence.lower())
        spans = [span for token, span in tokens if token == word]
        if not spans or len(found) == limit:
            continue
        features = model.tokenizer(sentence, return_offsets_mapping=True, return_tensors="pt")
        bounds = features.pop("offset_mapping")[0].tolist()
        states = model[0](dict(features))["token_embeddings"][0].detach().numpy()
        inside = [any(low <= begin < high for low, high in spans) and end > begin for begin, end in bounds]
        found.append(states[inside].mean(axis=0))
    return np.mean(found, axis=0)


@pytest.mark.parametrize("limit", [1, 2, 100])
def test_mean_states_equal_a_plain_program(transformer, limit):
    model = SentenceTransformer(str(transformer), device="cpu")
    words = ["ade", "a", "'s", "cde", "b", "bd"]
    known = lookup(Vocabulary("word", ["[UNK]", *words]))
    columns = [pa.array(SENTENCES[:2]), pa.array(SENTENCES[2:])]
    found = mean_states(model, known, columns, len(SENTENCES), limit, cpu_batch=2, block_size=3)
    assert found.shape == (7, 8)
    assert not found[0].any()
    for row, word in enumerate(words, start=1):
        # No sentence holds the last one, which is read alone.
        sentences = SENTENCES if word != "bd" else ["bd"]
        np.testing.assert_allclose(found[row], slow(model, word, sentences, limit), atol=1e-5, err_msg=word)


def test_threads_change_nothing(transformer):
    model, found = SentenceTransformer(str(transformer), device="cpu"), []
    known = lookup(Vocabulary("word", ["[UNK]", "the", "cde", "a"]))
    before = torch.get_num_threads()
    for threads in (1, 3):
        torch.set_num_threads(threads)
        column = pa.array(SENTENCES * 5)
        found.append(mean_states(model, known, [column], len(column), 20, cpu_batch=2))
    torch.set_num_threads(before)
    assert np.array_equal(*found) and found[0][1:].any()


def test_blanks_that_belong_to_pieces(transformer):
    """Tokenizers that count the blank before a word as its first character give the same as those that do not."""
    units, found = ["the", "ade", "cde", "a"], []
    for blank in ("", "▁"):
        model = SentenceTransformer(str(transformer), device="cpu")
        tokenizer = Tokenizer(
            models.WordLevel({"[UNK]": 0, **{f"{blank}{unit}": at for at, unit in enumerate(units, 1)}}, "[UNK]")
        )
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace() if blank else pre_tokenizers.WhitespaceSplit()
        model[0].processor = PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="[UNK]", pad_token="[UNK]")
        known = lookup(Vocabulary("word", ["[UNK]", *units]))
        found.append(mean_states(model, known, [pa.array(["the ade a", "cde ade", "a cde the cde"])], 3, 9))
    np.testing.assert_array_equal(*found)
    assert np.abs(found[0][1:]).min() > 0


def test_pieces_that_begin_with_a_blank(transformer):
    """As those of SentencePiece do: they belong to the word behind the blank, and a blank alone to none."""
    model = SentenceTransformer(str(transformer), device="cpu")
    means = contexts.StateMeans(model, lookup(Vocabulary("word", ["[UNK]", "ade", "b"])))
    text = "ade  b ade"
    # The last word in two pieces.
    bounds = np.array([[0, 3], [3, 4], [4, 6], [6, 8], [8, 10]])
    assert [text[low:high] for low, high in bounds] == ["ade", " ", " b", " a", "de"]
    assert means._word_rows(text, bounds).tolist() == [1, 0, 2, 1, 1]


def test_first_holders_by_hand():
    seen = np.array([0, 1, 0, 0])
    # Sentences: 1 1 2, 3, 0 1, 2.
    bags = Bags(np.array([1, 1, 2, 3, 0, 1, 2], np.int32), np.array([0, 3, 4, 6, 7]))
    sentences, rows = first_holders(bags, seen, 2)
    # Word 1 was held once before, so that its sentence 0 is the second one and sentence 2 one too many.
    assert list(zip(sentences.tolist(), rows.tolist(), strict=True)) == [(0, 1), (0, 2), (1, 3), (3, 2)]
    assert seen.tolist() == [1, 3, 2, 1]


def test_weighed_by_frequency_and_reduced_by_sentences():
    generator = np.random.default_rng(1)
    states = [generator.standard_normal((5, 4)).astype(np.float32) + 2 for _ in range(2)]
    counts = np.array([100.0, 10, 5, 1, 0])
    mixing = generator.random((20, 5)).astype(np.float32)
    whole = reduce_in_context(list("abcde"), states, counts, lambda matrix: mixing @ matrix, None)
    parts = [state - state.mean(axis=0) for state in states]
    parts = [part / np.sqrt(np.square(part).sum(axis=1).mean()) for part in parts]
    wanted = np.hstack(parts) * (1e-3 / (1e-3 + counts / 116))[:, None]
    wanted /= np.sqrt(np.square(wanted).sum(axis=1).mean())
    np.testing.assert_allclose(whole.matrix, wanted, atol=1e-5)
    cut = reduce_in_context(list("abcde"), states, counts, lambda matrix: mixing @ matrix, 2).matrix
    sentences = mixing @ wanted
    _, _, directions = np.linalg.svd(sentences - sentences.mean(axis=0))
    wanted = wanted @ directions[:2].T
    wanted /= np.sqrt(np.square(wanted).sum(axis=1).mean())
    signs = np.sign((cut * wanted).sum(axis=0))
    np.testing.assert_allclose(cut, wanted * signs, atol=1e-4)


def test_command_in_python(transformer, tmp_path):
    (tmp_path / "text.txt").write_text("\n".join(SENTENCES))
    config = VectorsConfig(contexts=3, dimension=3)
    vectors = distill_vectors(
        [transformer, transformer], tmp_path / "v", text=[tmp_path / "text.txt"], config=config
    ).vectors
    # ade three times in three sentences; a as well; then b, and c.
    assert vectors.words[:2] == ["ade", "a"]
    assert vectors.matrix.shape == (len(vectors.words), 3)
    first = (tmp_path / "v").read_bytes()
    distill_vectors([transformer, transformer], tmp_path / "v", text=[tmp_path / "text.txt"], config=config)
    assert (tmp_path / "v").read_bytes() == first


@pytest.mark.parametrize(
    "after", [pytest.param(1, marks=pytest.mark.slow), 6, pytest.param(13, marks=pytest.mark.slow)]
)
def test_killed_and_resumed(transformer, tmp_path, monkeypatch, checkpoint_always, killed_after, counting, after):
    monkeypatch.setattr(contexts, "mean_states", partial(mean_states, block_size=3))
    (tmp_path / "text.txt").write_text("\n".join([*SENTENCES, *SENTENCES[::-1], "a b c", "b a", "the ade"]))
    (tmp_path / "words").write_text("Cde\nade's\nade\nxa\nxb\n")

    def distilled(name, contexts=9):
        config = VectorsConfig(contexts=contexts, dimension=3)
        given = {"text": [tmp_path / "text.txt"], "vocabulary": tmp_path / "words"}
        distill_vectors([transformer, transformer], tmp_path / name, config=config, **given)
        return (tmp_path / name).read_bytes()

    whole, steps = counting(contexts.StateMeans, "add", distilled, "whole")
    # Five blocks of sentences under each of two encoders, and two of words that are read alone.
    assert steps == 2 * 7
    killed_after(after, distilled, "cut", kind=contexts.StateMeans, name="add")
    assert not (tmp_path / "cut").exists() and (tmp_path / "cut.work").exists()
    with refused(path=tmp_path / "cut.work"):
        distilled("cut", contexts=8)
    assert counting(contexts.StateMeans, "add", distilled, "cut") == (whole, steps - after)
    assert not (tmp_path / "cut.work").exists()


def test_words_of_a_vocabulary_that_text_is_not_cut_into(transformer, tmp_path):
    """Words in capitals and of several tokens stand in no sentence, and are read alone as they are."""
    (tmp_path / "words").write_text("Cde\nade's\n[UNK]\n")
    (tmp_path / "text.txt").write_text("\n".join(SENTENCES))
    given = {"text": [tmp_path / "text.txt"], "vocabulary": tmp_path / "words"}
    config = VectorsConfig(contexts=3)
    vectors = distill_vectors(transformer, tmp_path / "v", **given, config=config).vectors
    assert vectors.words[-2:] == ["Cde", "ade's"]
    known = lookup(Vocabulary("word", ["[UNK]", "Cde", "ade's"]))
    model = SentenceTransformer(str(transformer), device="cpu")
    states = mean_states(model, known, [pa.array(SENTENCES)], len(SENTENCES), 3)
    for row, word in enumerate(("Cde", "ade's"), 1):
        alone = model.encode(word, output_value="token_embeddings")[1:-1].mean(dim=0).numpy()
        np.testing.assert_allclose(states[row], alone, atol=1e-6)


@pytest.mark.parametrize(
    ("model", "given", "config", "option"),
    [
        ("transformer", {"vocabulary": "words"}, {"contexts": 1}, None),
        ("word", {"text": "text"}, {"contexts": 1}, None),
        ("transformer", {"text": "blank"}, {}, None),
        ("transformer", {"text": "blank"}, {"contexts": 1}, None),
        ("transformer", {"text": "blank", "vocabulary": "words"}, {"contexts": 1}, None),
        ("transformer", {"text": "text"}, {"contexts": 1, "dimension": 9}, "dimension"),
    ],
)
def test_what_cannot_be_done(transformer, tmp_path, model, given, config, option):
    encoder_of((["a b"], ["b c"]), dimension=4).save(str(tmp_path / "word"))
    for name, content in {"words": "a\nb\n", "text": "a b\n", "blank": "\u2003\n \n"}.items():
        (tmp_path / name).write_text(content)
    options = {name: tmp_path / value for name, value in given.items()}
    if "text" in options:
        options["text"] = [options["text"]]
    with refused(option):
        model = transformer if model == "transformer" else tmp_path / "word"
        distill_vectors(model, tmp_path / "v", **options, config=VectorsConfig(**config))
    assert not (tmp_path / "v").exists() and not (tmp_path / "v.work").exists()


def test_sentences_of_test_sets_are_left_out(transformer, tmp_path):
    tested = "the ade cde a b c ade cde the a"
    (tmp_path / "sts" / "STS12-en-test").mkdir(parents=True)
    (tmp_path / "sts" / "STS12-en-test" / "STS.input.MSRpar.txt").write_text(f"{tested}\ta b\n")
    (tmp_path / "sts" / "STS12-en-test" / "STS.gs.MSRpar.txt").write_text("3\n")
    (tmp_path / "text.txt").write_text("\n".join([tested, *SENTENCES]))
    (tmp_path / "rest.txt").write_text("\n".join(SENTENCES))
    config = VectorsConfig(contexts=3, dimension=3)
    distill_vectors(transformer, tmp_path / "a", text=[tmp_path / "text.txt"], exclude=tmp_path / "sts", config=config)
    distill_vectors(transformer, tmp_path / "b", text=[tmp_path / "rest.txt"], config=config)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_bfloat16_changes_states_by_its_rounding(transformer):
    model, known = (
        SentenceTransformer(str(transformer), device="cpu"),
        lookup(Vocabulary("word", ["[UNK]", "a", "ade"])),
    )
    full, halved = (
        mean_states(model, known, [pa.array(SENTENCES)], len(SENTENCES), 3, in_bf16=in_bf16)
        for in_bf16 in (False, True)
    )
    assert not np.array_equal(full, halved)
    # Eight bits of a number, over few layers.
    np.testing.assert_allclose(halved, full, atol=0.05)
