"""A result inside the folder that it is made from would change it, and is refused before anything is done."""

import pytest

from paranmt_hf.encoders.saving import save
from paranmt_hf.errors import InputError
from paranmt_hf.util.run import result_folder
from tests.cli.commands import fails
from tests.toys import bytes_of
from tests.training.toys import encoder_of, random_text


@pytest.fixture
def model(tmp_path, monkeypatch):
    save(encoder_of(random_text(20), model="word", dimension=4), tmp_path / "word")
    (tmp_path / "text.txt").write_text("one of these\nand another\n")
    (tmp_path / "link").symlink_to(tmp_path / "word", target_is_directory=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "word"


@pytest.mark.parametrize(
    "command",
    [
        ["encoder", "rotate", "word", "--out", "word/new"],
        ["encoder", "rotate", "word", "--out", "link/deeper/new"],
        ["encoder", "average", "word", "word", "--out", "word/new"],
        ["encoder", "average", "embedded", "word", "--out", "word/new"],
        ["encoder", "export", "word", "--format", "static", "--out", "word/new"],
        ["supervise", "none", "--task", "SICK-R", "--init-from", "word", "--out", "word/new"],
        ["train", "--text", "text.txt", "--teacher", "word", "--out", "word/new"],
        ["train", "--data", "word", "--init-from", "word", "--out", "word/new"],
        ["encoder", "distill", "word", "--text", "text.txt", "--out", "word/vectors.txt"],
    ],
)
def test_it_is_refused_in_one_sentence(model, capsys, command):
    before = bytes_of(model)
    fails(capsys, command, " is inside ", "word, which it is made from", "choose another path")
    assert bytes_of(model) == before
    assert sorted(path.name for path in model.parent.iterdir()) == ["link", "text.txt", "word"]


def test_what_is_beside_it_is_not_inside(model):
    for name in ("word2", "word/../other", "wor"):
        result_folder(model.parent / name, sources=[model, model.parent / "text.txt", model.parent / "none"])
    with pytest.raises(InputError, match=r"/word/a/b is inside .*/link, which it is made from"):
        result_folder(model / "a" / "b", sources=[model.parent / "link"])
