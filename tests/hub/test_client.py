"""Models by folder or id, what is refused, and what the client of the Hub raises as one sentence."""

import hashlib
import importlib
import re

import pytest
from huggingface_hub import errors

from paranmt_hf.hub import repository
from paranmt_hf.hub.client import absent_here, check_download, explain, fetching, is_id, split_revision
from paranmt_hf.hub.repository import locate, usual_score
from paranmt_hf.util.optional import require
from tests.refused import refused

# The client's library for HTTP, which has had several names.
httpx = importlib.import_module(errors.HTTPError.__module__.split(".")[0])


def answer(kind, status, message="something"):
    request = httpx.Request("GET", "https://hub.example/api")
    return kind(message, response=httpx.Response(status, request=request), server_message=None)


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (answer(errors.RepositoryNotFoundError, 404), "the Hub has no model 'a/b' that can be seen without a login"),
        (answer(errors.RepositoryNotFoundError, 401), "the Hub has no model 'a/b' that can be seen without a login"),
        (answer(errors.RevisionNotFoundError, 404), "model 'a/b' on the Hub has no revision 'v9'"),
        (answer(errors.HfHubHTTPError, 401), "the Hub does not accept the token"),
        (answer(errors.GatedRepoError, 403), "model 'a/b' is only for those who accepted its terms"),
        (answer(errors.HfHubHTTPError, 403), "the Hub answered 403 for model 'a/b': something"),
        (answer(errors.HfHubHTTPError, 412), "the Hub answered 412"),
        (answer(errors.HfHubHTTPError, 429), "the Hub answered 429 for model 'a/b'; run the same command again later"),
        (answer(errors.HfHubHTTPError, 503), "the Hub answered 503"),
        (answer(errors.HfHubHTTPError, 400, "bad card\nmore"), "the Hub answered 400 for model 'a/b': bad card"),
        (
            httpx.ReadError("peer closed"),
            r"the connection to the Hub, http.*, failed at model 'a/b' \(ReadError: peer closed\); run the same comm",
        ),
        (ConnectionResetError("reset"), "the connection to the Hub, http"),
        (TimeoutError("slow"), "the connection to the Hub, http"),
        (
            ConnectionError("Network error: HTTP status client error (400 Bad Request) for url (https://h/x?sig=abc)"),
            "the connection to the Hub, http",
        ),
        (errors.OfflineModeIsEnabled("offline"), "HF_HUB_OFFLINE forbids"),
        (ValueError("odd\nthing"), "model 'a/b' on the Hub: odd$"),
        (ValueError("  "), "model 'a/b' on the Hub: no reason was given$"),
    ],
)
def test_errors_in_one_sentence(error, sentence, monkeypatch, login):
    login(None)
    monkeypatch.delenv("HF_TOKEN", raising=False)
    told = explain(error, "a/b", "model", "v9")
    assert re.search(sentence, told) and "\n" not in told


def test_names_that_seem_to_be_paths(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("word", "trigram"):
        (tmp_path / "models" / name).mkdir(parents=True)
    assert "'models/word'" in absent_here("models/wort")
    assert "'" not in absent_here("models/xyz").replace("'xyz'", "")
    # There, no folder above it, or no name of a path at all.
    assert [absent_here(name) for name in ("models/word", "org/word", "wort")] == [None, None, None]
    error = ValueError("odd")
    with refused() as told, fetching("models/wort", "model"):
        raise error
    assert str(told.value).startswith(absent_here("models/wort")) and str(told.value).endswith(": odd")


def test_the_cause_of_another_error_counts():
    error = FileNotFoundError("not found")
    error.__cause__ = answer(errors.HfHubHTTPError, 503)
    assert explain(error, "a/b", "dataset").startswith("the Hub answered 503 for dataset 'a/b'")


def test_what_was_being_dealt_with_does_not_count():
    error = answer(errors.HfHubHTTPError, 403)
    error.__context__ = answer(errors.RepositoryNotFoundError, 404)
    assert "refuses to let this login write" in explain(error, "a/b", "dataset", writing=True)


def test_refused_tokens(monkeypatch, login):
    login("my-own-kind-of-token")
    monkeypatch.setenv("HF_TOKEN", "my-own-kind-of-token")
    # A token that is not known gets 401 for everything, one that is gets 404 for what it may not see.
    refused = answer(errors.RepositoryNotFoundError, 401, "Invalid username or password.")
    assert explain(refused, "a/b", "model").startswith("the Hub does not accept the token")
    absent = answer(errors.RepositoryNotFoundError, 404)
    assert explain(absent, "a/b", "model").startswith("the Hub has no model 'a/b' that your login may see")
    told = explain(ValueError("the token my-own-kind-of-token is bad"), "a/b", "model")
    assert told == "model 'a/b' on the Hub: the token (token) is bad"


@pytest.mark.parametrize("text", ["hf_abcdefghijkl is bad", "sent Bearer hf_abcdefghijkl", "Bearer abc.def"])
def test_no_token_is_told(text):
    sentence = explain(ValueError(text), "a/b", "model")
    assert "(token)" in sentence and "abc" not in sentence


@pytest.mark.parametrize("name", ["org/name", "some-user/para.nmt_50m", "a/b"])
def test_ids(name):
    assert is_id(name)
    assert split_revision(f"{name}@v1.0") == (name, "v1.0")
    assert split_revision(name) == (name, None)


@pytest.mark.parametrize("name", ["name", "../name", "a/../b", "a/b/c", "/a/b", ".a/b", "a/b ", "", "a/.b"])
def test_what_is_no_id(name):
    assert not is_id(name)
    assert split_revision(f"{name}@v1") == (f"{name}@v1", None)


def test_download_is_compared_with_its_name_in_the_cache(tmp_path):
    blob = tmp_path / hashlib.sha256(b"weights").hexdigest()
    blob.write_bytes(b"weights")
    link = tmp_path / "model.safetensors"
    link.symlink_to(blob)
    check_download(link, "a/b")
    blob.write_bytes(b"weightz")
    with refused() as told:
        check_download(link, "a/b")
    assert str(blob) in str(told.value)
    # Small files are kept under another checksum, of git.
    (tmp_path / "config.json").write_text("{}")
    check_download(tmp_path / "config.json", "a/b")


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
    with refused():
        locate(model, "v1")


@pytest.mark.parametrize(
    ("files", "named"),
    [
        (["config.json", "pytorch_model.bin"], "pytorch_model.bin"),
        (["model.safetensors", "2_Dense/pytorch_model.bin"], "2_Dense/pytorch_model.bin"),
        (["config.json"], "no weights"),
    ],
)
def test_pickles_are_refused(tmp_path, files, named):
    with refused() as told:
        locate(str(make(tmp_path / "model", *files)))
    assert named in str(told.value)


def test_pickle_beside_safetensors_is_ignored(tmp_path):
    assert locate(str(make(tmp_path / "model", "model.safetensors", "pytorch_model.bin"))).name == "model"


def test_a_linked_folder_has_the_name_of_the_link(tmp_path, monkeypatch):
    """The card of an encoder would name its teacher after a folder that the person has never seen."""
    make(tmp_path / "model", "model.safetensors")
    (tmp_path / "all-MiniLM-L6-v2").symlink_to("model")
    assert locate(str(tmp_path / "all-MiniLM-L6-v2")).name == "all-MiniLM-L6-v2"
    monkeypatch.chdir(tmp_path / "model")
    assert locate(".").name == locate("../model/").name == "model"


@pytest.mark.parametrize("name", ["no such folder", "./missing", "a/b/c", "../up"])
def test_neither_folder_nor_id(name):
    with refused():
        locate(name)


def test_folder_has_no_revision(tmp_path):
    with refused():
        locate(str(make(tmp_path / "model", "model.safetensors")), "main")


def test_hub_out_of_reach_is_one_sentence(monkeypatch):
    import huggingface_hub

    def refuse(*_, **__):
        raise OSError("cannot connect\nand a long story")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", refuse)
    with refused() as told:
        locate("a/b")
    assert str(told.value).endswith("cannot connect")


def test_usual_score(tmp_path):
    assert usual_score(str(tmp_path)) is None
    (tmp_path / "about.json").write_text('{"mean_translation_score": -0.6}')
    assert usual_score(str(tmp_path)) == -0.6
    for text in ("{", "[]", '{"mean_translation_score": NaN}', f'{{"mean_translation_score": -1{"0" * 400}}}'):
        (tmp_path / "about.json").write_text(text)
        assert usual_score(str(tmp_path)) is None


def test_missing_extra_is_named():
    with refused() as told:
        require("no_such_package", "plots")
    assert "paranmt-hf[plots]" in str(told.value)
    assert require("json", "plots").dumps(1) == "1"


def test_the_models_of_the_package_may_be_links(tmp_path, monkeypatch):
    """Some installers make links of all its files."""
    carried = make(tmp_path / "cache", "model.safetensors")
    (tmp_path / "assets" / "small").mkdir(parents=True)
    link = tmp_path / "assets" / "small" / "model.safetensors"
    link.symlink_to(carried / "model.safetensors")
    with refused():
        locate(link.parent)
    monkeypatch.setattr(repository, "ASSETS", tmp_path / "assets")
    assert locate("small").folder == link.parent
