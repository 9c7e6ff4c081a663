"""What the client of the Hub raises becomes one sentence."""

import hashlib
import importlib

import pytest
from huggingface_hub import errors

from paranmt_hf.errors import InputError
from paranmt_hf.hub.client import absent_here, check_download, explain, explain_absence, is_id, split_revision

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
        (answer(errors.HfHubHTTPError, 401), "the Hub does not accept the token that is stored on this machine"),
        (answer(errors.GatedRepoError, 403), "model 'a/b' is only for those who accepted its terms"),
        (answer(errors.HfHubHTTPError, 403), "the Hub answered 403 for model 'a/b': something"),
        (answer(errors.HfHubHTTPError, 412), "was changed by somebody else meanwhile"),
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
            r"the Hub answered 400 for model 'a/b': Network error: .*https://h/x",
        ),
        (errors.OfflineModeIsEnabled("offline"), "is not in the cache and HF_HUB_OFFLINE forbids"),
        (ValueError("odd\nthing"), "model 'a/b' on the Hub: odd$"),
        (ValueError("  "), "model 'a/b' on the Hub: no reason was given$"),
    ],
)
def test_errors_in_one_sentence(error, sentence, monkeypatch):
    monkeypatch.setattr("huggingface_hub.get_token", lambda: None)
    monkeypatch.delenv("HF_TOKEN", raising=False)
    with pytest.raises(InputError, match=sentence):
        raise InputError(explain(error, "a/b", "model", "v9"))
    assert "\n" not in explain(error, "a/b", "model", "v9")


def test_names_that_seem_to_be_paths(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("word", "trigram"):
        (tmp_path / "models" / name).mkdir(parents=True)
    assert "'models/word'" in absent_here("models/wort")
    assert "'" not in absent_here("models/xyz").replace("'xyz'", "")
    # There, no folder above it, or no name of a path at all.
    assert [absent_here(name) for name in ("models/word", "org/word", "wort")] == [None, None, None]
    error = ValueError("odd")
    told = explain_absence(error, "models/wort", "model")
    assert told.startswith(absent_here("models/wort")) and explain(error, "models/wort", "model") in told
    assert explain_absence(error, "a/b", "dataset") == "there is no folder 'a/b', and dataset 'a/b' on the Hub: odd"


def test_the_cause_of_another_error_counts():
    error = FileNotFoundError("not found")
    error.__cause__ = answer(errors.HfHubHTTPError, 503)
    assert explain(error, "a/b", "dataset").startswith("the Hub answered 503 for dataset 'a/b'")


def test_what_was_being_dealt_with_does_not_count():
    error = answer(errors.HfHubHTTPError, 403)
    error.__context__ = answer(errors.RepositoryNotFoundError, 404)
    assert "refuses to let this login write" in explain(error, "a/b", "dataset", writing=True)


def test_refused_tokens(monkeypatch):
    monkeypatch.setattr("huggingface_hub.get_token", lambda: "my-own-kind-of-token")
    monkeypatch.setenv("HF_TOKEN", "my-own-kind-of-token")
    # A token that is not known gets 401 for everything, one that is gets 404 for what it may not see.
    refused = answer(errors.RepositoryNotFoundError, 401, "Invalid username or password.")
    assert explain(refused, "a/b", "model").startswith("the Hub does not accept the token that HF_TOKEN holds")
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
    with pytest.raises(
        InputError, match=f"model.safetensors of 'a/b' is damaged.* delete .*{blob.name} and run again"
    ):
        check_download(link, "a/b")
    # Small files are kept under another checksum, of git.
    (tmp_path / "config.json").write_text("{}")
    check_download(tmp_path / "config.json", "a/b")
