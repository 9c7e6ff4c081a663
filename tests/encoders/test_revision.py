"""What names an encoder: a checksum of what decides its vectors, which other libraries keep results by."""

import copy
import json
import shutil

import pytest
from sentence_transformers.util import mine_hard_negatives

from paranmt_hf import SentenceEncoder, load
from paranmt_hf.encoders.saving import save
from paranmt_hf.hub.repository import ASSETS, locate
from tests.encoders.toys import encoder, word


def test_the_revision_is_that_of_the_files(saved):
    loaded = load(saved / "word")
    assert loaded.revision == locate(saved / "word").revision.removeprefix("sha256:")[:40]
    data = loaded.model_card_data
    assert (data.model_name, data.base_model_revision) == ("ORGANISATION/word", loaded.revision)


@pytest.mark.parametrize("change", ["weights", "dimensions", "prompt"])
def test_a_changed_encoder_has_another_revision(saved, change):
    loaded = load(saved / "word")
    before = loaded.revision
    if change == "weights":
        loaded[0].weight[3] += 1
    elif change == "dimensions":
        loaded.truncate_dim = 2
    else:
        loaded.prompts, loaded.default_prompt_name = {"query": "the "}, "query"
    assert loaded.revision != before
    assert loaded.model_card_data.base_model_revision == loaded.revision
    assert copy.deepcopy(loaded).revision == loaded.revision


def test_encoders_without_files_are_told_apart():
    made = [encoder("word"), encoder("trigram"), encoder("lstm"), SentenceEncoder(modules=[word(width=6)])]
    assert len({each.revision for each in made}) == 4
    assert encoder("word").revision == made[0].revision


def test_a_record_and_versions_do_not_change_the_checksum(tmp_path):
    """The same training twice gives other seconds, and another machine or release of a library other versions."""
    folder = shutil.copytree(ASSETS / "small", tmp_path / "model")
    before = locate(folder).revision
    record = folder / "training.json"
    record.write_text(json.dumps({**json.loads(record.read_text()), "history": {"seconds": 1.5}}))
    settings = folder / "config_sentence_transformers.json"
    values = json.loads(settings.read_text())
    settings.write_text(json.dumps({**values, "__version__": {"pytorch": "9.0"}}))
    assert locate(folder).revision == before
    settings.write_text(json.dumps({**values, "truncate_dim": 64}))
    assert locate(folder).revision != before


def test_a_card_has_no_name_but_that_which_was_given(saved, tmp_path):
    loaded = load(saved / "word")
    loaded.save(str(tmp_path / "saved"))
    card = (tmp_path / "saved" / "README.md").read_text()
    assert "ORGANISATION" not in card and loaded.revision not in card
    assert loaded.model_card_data.model_name == "ORGANISATION/word"
    loaded.model_card_data.model_name = "you/mine"
    assert loaded.model_card_data.model_name == "you/mine"


@pytest.mark.slow
def test_vectors_kept_by_sentence_transformers_are_those_of_the_encoder(saved, tmp_path):
    """Its `mine_hard_negatives` 6.2 names the files of vectors by the base model of the card data and the texts."""
    from datasets import Dataset

    pairs = Dataset.from_dict({"anchor": ["the cat", "it is"], "positive": ["cat", "is it n't"]})
    kept = []
    for name in ("word", "trigram"):
        mine_hard_negatives(pairs, load(saved / name), num_negatives=1, cache_folder=str(tmp_path), verbose=False)
        kept.append({path.name for path in tmp_path.iterdir()})
    assert len(kept[1]) == 2 * len(kept[0]) == 4


def test_a_saved_encoder_has_one_revision(tmp_path):
    for name in ("first", "second"):
        save(encoder("word,trigram"), tmp_path / name)
    assert load(tmp_path / "first").revision == load(tmp_path / "second").revision
