"""`push_to_hub` of models in memory sends what `paranmt publish` sends: the full card, or one of what is known."""

import json
import shutil

import pytest
import torch
from sentence_transformers.sentence_transformer.modules import StaticEmbedding
from tokenizers import Tokenizer, models

import paranmt_hf
from paranmt_hf import InputError, SentenceEncoder, StaticEncoder, SupervisedModel, evaluate, publish
from paranmt_hf.encoders.pushing import MadeRecord
from paranmt_hf.hub.publish import kind_of
from paranmt_hf.hub.push import PushedFromFolder
from paranmt_hf.hub.repository import ASSETS
from paranmt_hf.supervised.config import HEAD_FOLDER
from paranmt_hf.supervised.model import HeadConfig, new_head
from tests.hub.releases import header
from tests.refused import refused

NAME, SIMILARITY = "org/word", ASSETS / "sample" / "similarity.tsv"


@pytest.fixture
def sent(fake_hub):
    """The repository that models are pushed to."""
    fake_hub.create_repo(NAME, repo_type="model", private=True, exist_ok=True)
    return fake_hub.repositories[NAME]


def card_of(repository, revision="main"):
    return repository.files(revision)["README.md"].decode()


def test_loaded_encoder_is_what_publish_sends(model, sent, fake_hub):
    results = evaluate(model, data=SIMILARITY)
    address = paranmt_hf.load(model).push_to_hub(
        NAME, "secret", True, revision="trial", commit_message="Mine", license="mit", results=results, tag="t"
    )
    assert address.endswith(f"/org/word/commit/{sent.tags['t']:040}") and fake_hub.tokens == ["secret"]
    plan = publish(model, NAME, license="mit", results=results, dry_run=True)
    assert card_of(sent, "t") == plan.card and set(sent.files("trial")) == set(plan.repository.files)
    assert "training.json" in sent.files("t") and "model-index" in header(plan.card)
    assert sent.messages == ["Mine"] and not sent.files("main")


def test_options_of_sentence_transformers(model, sent, tmp_path):
    encoder = paranmt_hf.load(model)
    encoder.push_to_hub(NAME, train_datasets=["org/corpus"], exist_ok=True, replace_model_card=True, license="mit")
    (tmp_path / "about.yaml").write_text("datasets: [org/first]\nsummary: Ours.\n")
    encoder.push_to_hub(NAME, train_datasets=["org/corpus"], about=tmp_path / "about.yaml", license="mit")
    datasets = [header(card_of(sent, version))["datasets"] for version in ("v1", "v2")]
    assert datasets == [["org/corpus"], ["org/corpus", "org/first"]] and "Ours." in card_of(sent)
    for option, value in (("create_pr", True), ("safe_serialization", False), ("local_model_path", str(model))):
        with refused(option):
            encoder.push_to_hub(NAME, license="mit", **{option: value})
    with refused("license"):
        encoder.push_to_hub(NAME)
    assert list(sent.tags) == ["v1", "v2"]


def test_changed_encoder_does_not_get_the_card_of_another(model, sent, tmp_path):
    encoder = paranmt_hf.load(model)
    results = evaluate(model, data=SIMILARITY)
    with torch.no_grad():
        encoder[0].embedding.weight.mul_(2)
    with pytest.raises(InputError) as error:
        encoder.push_to_hub(NAME, license="mit", results=results)
    assert error.value.option == "results" and "FOLDER" in str(error.value) and not sent.files()
    encoder.push_to_hub(NAME, license="mit")
    files = sent.files()
    assert "training.json" not in files
    record = json.loads(files[MadeRecord.FILE])
    assert record["settings"]["origin"] == {"name": "word", "revision": encoder.source.revision}
    card = card_of(sent)
    assert "the encoder `word`" in card and "paranmt train" not in card and "WORD sentence encoder of 4" in card
    # What others load from the Hub keeps this card.
    for path, content in files.items():
        (tmp_path / "fetched" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "fetched" / path).write_bytes(content)
    assert kind_of(tmp_path / "fetched").loader == "paranmt_hf.load"
    shutil.rmtree(model)
    fetched = StaticEncoder.from_pretrained(tmp_path / "fetched")
    (tmp_path / "fetched" / "paranmt_averages.py").unlink(missing_ok=True)
    fetched.push_to_hub(NAME, license="mit")
    assert card_of(sent) == card and sent.files() == files


def test_encoder_made_by_hand(model, sent, tmp_path):
    made = SentenceEncoder(modules=list(paranmt_hf.load(model)), device="cpu")
    assert made.source is None
    made.push_to_hub(NAME, license="mit", about={"summary": "By hand."})
    card = card_of(sent)
    assert "How it was made is not recorded." in card and "By hand." in card and "language" not in header(card)
    # Saved and measured, it is pushed with its results.
    made.save_pretrained(str(tmp_path / "saved"), create_model_card=False)
    results = evaluate(tmp_path / "saved", data=SIMILARITY)
    paranmt_hf.load(tmp_path / "saved").push_to_hub(NAME, license="mit", results=results)
    assert "model-index" in header(card_of(sent))


def test_settings_count_as_changes(model, sent):
    encoder = paranmt_hf.load(model)
    encoder.truncate_dim = 2
    encoder.push_to_hub(NAME, license="mit")
    assert json.loads(sent.files()[MadeRecord.FILE])["dimension"] == 2


def test_encoders_of_others_are_pushed_by_their_library(sent, monkeypatch):
    tokenizer = Tokenizer(models.WordLevel({"[UNK]": 0, "dog": 1}, unk_token="[UNK]"))
    other = SentenceEncoder(modules=[StaticEmbedding(tokenizer, embedding_dim=2)], device="cpu")
    assert other.composition is None
    given = []
    monkeypatch.setattr(
        "sentence_transformers.SentenceTransformer.push_to_hub", lambda self, *args, **kwargs: given.append(kwargs)
    )
    other.push_to_hub(NAME, create_pr=True)
    assert given[0]["create_pr"] and not sent.files()
    with pytest.raises(InputError):
        other.push_to_hub(NAME, license="mit")


def test_models_without_a_folder(model):
    tables = StaticEncoder.from_pretrained(model)._average.tables
    with pytest.raises(InputError):
        StaticEncoder(tables).push_to_hub(NAME, license="mit")
    with pytest.raises(InputError):
        PushedFromFolder().push_to_hub(NAME, license="mit")


def test_model_for_a_task(model, monkeypatch):
    head = HeadConfig("SST", ["0", "1"], None, 1, 4, None, 2)
    SupervisedModel(paranmt_hf.load(model), new_head(head, seed=1)).head.save(model)
    # Its record is of no consequence here.
    (model / "supervised.json").write_text("{}")
    pushed = []
    monkeypatch.setattr(
        "paranmt_hf.hub.push.push_folder", lambda folder, name, **options: pushed.append((folder, name, options))
    )
    loaded = SupervisedModel.from_pretrained(model)
    loaded.push_to_hub(NAME, license="mit")
    assert pushed == [(model, NAME, {"license": "mit"})] and loaded.files == loaded.encoder.source
    with torch.no_grad():
        loaded.head.output.bias.add_(1)
    with pytest.raises(InputError):
        loaded.push_to_hub(NAME, license="mit")
    by_hand = SupervisedModel(loaded.encoder, loaded.head)
    with pytest.raises(InputError):
        by_hand.push_to_hub(NAME, license="mit")
    assert len(pushed) == 1 and (model / HEAD_FOLDER).is_dir()


PUSH = """
import sys
import paranmt_hf

folder, name, changed, token = sys.argv[1:]
encoder = paranmt_hf.load(folder)
if changed == "yes":
    encoder.truncate_dim = 2
print(encoder.push_to_hub(name, token or None, private=True, license="mit"))
"""


@pytest.mark.slow
@pytest.mark.parametrize("changed", ["no", "yes"])
def test_push_and_load(hub, model, changed):
    name = hub.name("pushed")
    # By a token that is given alone.
    pushed = hub.python(PUSH, model, name, changed, hub.token, token=None)
    assert pushed.returncode == 0, pushed.stderr
    address = pushed.stdout.splitlines()[-1]
    assert address.startswith(f"{hub.endpoint}/{name}/commit/")
    program = "import sys, paranmt_hf; print(paranmt_hf.load(sys.argv[1], revision='v1').encode('dogs').shape)"
    loaded = hub.python(program, name)
    assert loaded.returncode == 0, loaded.stderr
    assert loaded.stdout.splitlines()[-1] == ("(2,)" if changed == "yes" else "(4,)")
    from huggingface_hub import HfApi

    client = HfApi(hub.endpoint, token=hub.token)
    assert client.repo_info(name).private and client.repo_info(name).sha == address.rpartition("/")[2]
    again = hub.python(PUSH, model, name, changed, "")
    assert again.stdout.splitlines()[-1] == address, "nothing has changed, so there is no commit"
    if changed == "no":
        assert (
            f"version v1, commit {address.rpartition('/')[2][:12]}"
            in hub.paranmt("publish", model, name, "--license", "mit").stdout
        )
        refused = hub.python(PUSH, model, name, changed, "hf_wrong", token=None)
        assert refused.returncode == 1 and "hf_wrong" not in refused.stderr
