"""Reading a model: text to pieces, languages, and folders that must be refused."""

import json

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import BertConfig, BertModel

from paranmt_hf.corpus.translation.checkpoint import Checkpoint
from paranmt_hf.corpus.translation.engines import load_translator
from paranmt_hf.corpus.translation.translator import TranslatorConfig
from paranmt_hf.errors import InputError
from tests.corpus.translation.tiny_models import FAMILIES, SENTENCES, make_marian

LIMIT = 12
pytestmark = pytest.mark.filterwarnings("ignore:Recommended. pip install sacremoses")


def load(folder, family="marian", **settings):
    settings = {"max_target_tokens": LIMIT, **FAMILIES[family][1], **settings}
    return load_translator(TranslatorConfig(str(folder), backend="transformers", device="cpu", **settings))


def search(translator, sentences=SENTENCES):
    """Pieces, hypotheses and scores of sentences, translated as one batch."""
    pieces = translator._codec.encode(sentences)
    return pieces, *translator.search(pieces)


class TestText:
    def test_symbols_in_the_text_are_text(self, folders):
        codec = load(folders / "marian")._codec
        for text in ("Muž </s> vidí", "<pad> dům", ">>Ne!<< strom"):
            inner = codec.encode([text])[0][:-1]
            assert 0 not in inner
            assert codec.pad not in inner
            assert len(inner) > 3

    def test_a_quotation_at_the_start_is_no_language_code(self, tmp_path):
        make_marian(tmp_path, codes=("fra",))
        codec = Checkpoint(TranslatorConfig(str(tmp_path)))
        code = codec.tokenizer.get_vocab()[">>fra<<"]
        assert code not in codec.encode([">>fra<< strom"])[0]


class TestLanguages:
    def test_marian_takes_a_code_before_the_text(self, tmp_path):
        make_marian(tmp_path, codes=("fra", "ita"))
        codec = Checkpoint(TranslatorConfig(str(tmp_path), target_language="ita"))
        assert codec.tokenizer.convert_ids_to_tokens(codec.encode(["dům", ">>fra<<"])[0][:2]) == [">>ita<<", "▁dům"]
        assert codec.start == [codec.pad]

    def test_a_code_that_marian_lacks(self, tmp_path):
        make_marian(tmp_path, codes=("fra", "ita"))
        with pytest.raises(InputError, match=r"\(fra, ita\); got 'deu'"):
            Checkpoint(TranslatorConfig(str(tmp_path), target_language="deu"))
        with pytest.raises(InputError, match="source_language has no use with a Marian model; got 'ces'"):
            Checkpoint(TranslatorConfig(str(tmp_path), source_language="ces"))

    @pytest.mark.parametrize(
        ("settings", "message"),
        [
            ({}, "needs source_language to be one of its 202 codes, such as ace_Arab.*got None"),
            ({"source_language": "ces_Latn"}, "needs target_language .*got None"),
            ({"source_language": "cs", "target_language": "eng_Latn"}, "source_language .*got 'cs'"),
        ],
    )
    def test_nllb_wants_both(self, folders, settings, message):
        with pytest.raises(InputError, match=message):
            Checkpoint(TranslatorConfig(str(folders / "nllb"), **settings))

    @pytest.mark.parametrize(("family", "code"), [("m2m100", "__cs__"), ("nllb", "ces_Latn")])
    def test_the_source_begins_with_its_language(self, folders, family, code):
        codec = load(folders / family, family)._codec
        ids = codec.encode(["Muž vidí dům."])[0]
        assert codec.tokenizer.convert_ids_to_tokens(ids)[0] == code
        assert ids[-1] == codec.end

    def test_the_target_language_steers_the_search(self, folders):
        english = search(load(folders / "nllb", "nllb"))[1]
        german = search(load(folders / "nllb", "nllb", target_language="deu_Latn"))[1]
        assert english != german


class TestRefusals:
    def refused(self, folder, message):
        with pytest.raises(InputError, match=message) as caught:
            load(folder)
        assert "\n" not in str(caught.value)

    def test_pickled_weights(self, marian):
        weights = load_file(marian / "model.safetensors")
        torch.save(weights, marian / "pytorch_model.bin")
        (marian / "model.safetensors").unlink()
        self.refused(marian, "pytorch_model.bin.*save_pretrained")

    def test_a_truncated_file(self, marian):
        whole = (marian / "model.safetensors").read_bytes()
        (marian / "model.safetensors").write_bytes(whole[: len(whole) // 2])
        self.refused(marian, "cannot be read as a translation model")

    def test_weights_that_are_missing(self, marian):
        """transformers would fill them in at random."""
        weights = load_file(marian / "model.safetensors")
        del weights["model.decoder.layers.1.fc1.weight"]
        save_file(weights, marian / "model.safetensors", {"format": "pt"})
        self.refused(marian, r"lacks 1 weights of the model, such as 'model.decoder.layers.1.fc1.weight'")

    def test_weights_of_another_shape(self, marian):
        values = json.loads((marian / "config.json").read_text()) | {"encoder_ffn_dim": 96}
        (marian / "config.json").write_text(json.dumps(values))
        self.refused(marian, "cannot be read as a translation model")

    def test_a_broken_configuration(self, marian):
        (marian / "config.json").write_text("{")
        self.refused(marian, "no readable configuration and tokenizer")

    @pytest.mark.parametrize("name", ["config.json", "source.spm", "vocab.json"])
    def test_a_missing_file(self, marian, name):
        (marian / name).unlink()
        self.refused(marian, "no readable configuration and tokenizer")

    def test_a_folder_that_is_not_there(self, tmp_path):
        self.refused(tmp_path / "nothing", "no model .*expected a folder that exists")

    def test_a_model_that_only_encodes(self, marian):
        config = BertConfig(hidden_size=8, num_hidden_layers=1, num_attention_heads=1, intermediate_size=8)
        BertModel(config).save_pretrained(marian)
        self.refused(marian, "is a bert model, not an encoder-decoder")
