"""Where models come from, and what is refused."""

import json

import pytest
import torch
from safetensors.torch import save_file

from paranmt_hf.errors import InputError
from paranmt_hf.hub import repository
from paranmt_hf.hub.repository import locate, plain_name, usual_score
from paranmt_hf.util.optional import require


def make(folder, *names):
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(name.encode())
    return folder


def test_folder_is_named_by_its_content(tmp_path):
    one = locate(str(make(tmp_path / "one", "config.json", "model.safetensors")))
    two = locate(str(make(tmp_path / "two", "config.json", "model.safetensors", "README.md")))
    assert (one.name, two.name) == ("one", "two")
    assert one.revision == two.revision, "what does not determine the output does not count"
    assert len(one.revision) == len("sha256:") + 64
    (tmp_path / "two" / "config.json").write_text("other")
    assert locate(str(tmp_path / "two")).revision != two.revision


def test_a_located_model_is_not_read_again(tmp_path):
    folder = make(tmp_path / "model", "model.safetensors")
    model = locate(folder)
    (folder / "model.safetensors").write_bytes(b"changed since")
    assert locate(model) is model and locate(model, model.revision) is model
    assert locate(str(folder)).revision != model.revision
    with pytest.raises(InputError, match="^model is located at the revision sha256:.*, not 'v1'$"):
        locate(model, "v1")


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (["config.json", "pytorch_model.bin"], "holds weights in pytorch_model.bin, which is not read"),
        (["model.safetensors", "2_Dense/pytorch_model.bin"], "holds weights in 2_Dense/pytorch_model.bin"),
        (["config.json"], "holds no weights; expected the folder of a model"),
    ],
)
def test_pickles_are_refused(tmp_path, files, message):
    with pytest.raises(InputError, match=message):
        locate(str(make(tmp_path / "model", *files)))


def test_pickle_beside_safetensors_is_ignored(tmp_path):
    assert locate(str(make(tmp_path / "model", "model.safetensors", "pytorch_model.bin"))).name == "model"


def test_a_linked_folder_has_the_name_of_the_link(tmp_path, monkeypatch):
    """The card of an encoder would name its teacher after a folder that the person has never seen."""
    make(tmp_path / "model", "model.safetensors")
    (tmp_path / "all-MiniLM-L6-v2").symlink_to("model")
    assert locate(str(tmp_path / "all-MiniLM-L6-v2")).name == plain_name(str(tmp_path / "all-MiniLM-L6-v2"))
    assert locate(str(tmp_path / "all-MiniLM-L6-v2")).name == "all-MiniLM-L6-v2"
    monkeypatch.chdir(tmp_path / "model")
    assert locate(".").name == locate("../model/").name == "model"


@pytest.mark.parametrize("name", ["no such folder", "./missing", "a/b/c", "../up"])
def test_neither_folder_nor_id(name):
    with pytest.raises(InputError, match="no model .*expected a folder that exists or a Hub id"):
        locate(name)


def test_folder_has_no_revision(tmp_path):
    with pytest.raises(InputError, match="is a folder, which has no revision 'main'"):
        locate(str(make(tmp_path / "model", "model.safetensors")), "main")


def test_hub_out_of_reach_is_one_sentence(monkeypatch):
    import huggingface_hub

    def refuse(*_, **__):
        raise OSError("cannot connect\nand a long story")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", refuse)
    with pytest.raises(InputError, match="no folder 'a/b', and model 'a/b' on the Hub: cannot connect$"):
        locate("a/b")


def test_usual_score(tmp_path):
    assert usual_score(str(tmp_path)) is None
    (tmp_path / "about.json").write_text('{"mean_translation_score": -0.6}')
    assert usual_score(str(tmp_path)) == -0.6
    for text in (
        "{",
        "[" * 100_000,
        "[]",
        '{"mean_translation_score": NaN}',
        f'{{"mean_translation_score": -1{"0" * 400}}}',
    ):
        (tmp_path / "about.json").write_text(text)
        assert usual_score(str(tmp_path)) is None


def test_missing_extra_is_named():
    with pytest.raises(InputError, match=r"pip install 'paranmt-hf\[plots\]'"):
        require("no_such_package", "plots")
    assert require("json", "plots").dumps(1) == "1"


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("config.json", {"encoder_layers": 100_000}, "'encoder_layers' is 100,000, which does not fit the weights in"),
        (
            "config.json",
            {"text_config": {"num_hidden_layers": 3000}},
            "'num_hidden_layers' is 3,000.*.2 tensors, no",
        ),
        ("config.json", {"n_layer": 1001}, "'n_layer' is 1,001"),
        ("config.json", {"num_labels": 10**9}, "'num_labels' is 1,000,000,000"),
        ("config.json", {"max_position_embeddings": 10**9}, "'max_position_embeddings' is 1,000,000,000"),
        ("config.json", json.loads('{"a": [' * 400 + '{"n_layer": 1001}' + "]}" * 400), "'n_layer' is 1,001"),
        ("1_LSTM/lstm_config.json", {"num_layers": 10**6}, "lstm_config.json says 'num_layers' is 1,000,000"),
        ("1_LSTM/lstm_config.json", {"hidden_dim": 6}, "lstm_config.json says 'hidden_dim' is 6.* above 5"),
        ("2_Dense/config.json", {"out_features": 10**6}, "config.json says 'out_features' is 1,000,000"),
    ],
)
def test_configurations_of_more_than_there_are_weights_for(tmp_path, file, content, message):
    """They would take for ever, or all memory, before a missing weight is noticed."""
    folder = make(tmp_path / "model", file)
    save_file({"a": torch.zeros(2, 5), "b": torch.zeros(1)}, folder / "model.safetensors")
    (folder / file).write_text(json.dumps(content))
    with pytest.raises(InputError, match=message):
        locate(folder)
    fits = {"encoder_layers": 24, "num_labels": 3, "hidden_dim": 5, "layers": [9], "max_position_embeddings": 512}
    (folder / file).write_text(json.dumps(fits))
    assert locate(folder).name == "model"


def test_a_layer_is_no_wider_than_its_own_weights(tmp_path):
    """Behind a table of a million words a layer of that width would take all memory."""
    folder = make(tmp_path / "model", "1_IdentityRNN/recurrent_config.json")
    save_file({"table": torch.zeros(1000, 1)}, folder / "model.safetensors")
    save_file({"input.weight": torch.zeros(4, 4)}, folder / "1_IdentityRNN" / "model.safetensors")
    config = folder / "1_IdentityRNN" / "recurrent_config.json"
    config.write_text('{"out_features": 1000}')
    with pytest.raises(InputError, match="'out_features' is 1,000, which does not fit .*no dimension above 4"):
        locate(folder)
    config.write_text('{"out_features": 4}')
    assert locate(folder).name == "model"


def test_the_models_of_the_package_may_be_links(tmp_path, monkeypatch):
    """Some installers make links of all its files."""
    carried = make(tmp_path / "cache", "model.safetensors")
    (tmp_path / "assets" / "word-trigram-small").mkdir(parents=True)
    link = tmp_path / "assets" / "word-trigram-small" / "model.safetensors"
    link.symlink_to(carried / "model.safetensors")
    with pytest.raises(InputError, match="is a link that leads out of"):
        locate(link.parent)
    monkeypatch.setattr(repository, "ASSETS", tmp_path / "assets")
    assert locate("embedded").folder == link.parent
