"""Where models come from, and what is refused."""

import pytest

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
