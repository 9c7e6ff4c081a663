"""Archives as OPUS and GloVe give them are refused; the error names the useful members and how to unpack them."""

import io
import tarfile
import zipfile

import pytest

from paranmt_hf.corpus.reading.unreadable import archive_error

# As cs-en.txt.zip of OPUS (Books, v1).
OPUS = ["README", "LICENSE", "Books.cs-en.cs", "Books.cs-en.en", "Books.cs-en.ids"]


def zipped(path, names):
    with zipfile.ZipFile(path, "w") as archive:
        for name in names:
            archive.writestr(name, "text\n")
    return path


def tarred(path, names, mode):
    with tarfile.open(path, mode) as archive:
        for name in names:
            member = tarfile.TarInfo(name)
            member.size = 5
            archive.addfile(member, io.BytesIO(b"text\n"))
    return path


def test_a_bitext_of_opus(tmp_path):
    error = archive_error(zipped(tmp_path / "cs-en.txt.zip", OPUS))
    assert error.path == tmp_path / "cs-en.txt.zip"
    assert "--source Books.cs-en.cs --reference Books.cs-en.en" in str(error)
    assert "unzip cs-en.txt.zip" in str(error)
    assert "README" not in str(error)
    assert ".ids" not in str(error)


def test_vectors(tmp_path):
    error = archive_error(zipped(tmp_path / "glove.6B.zip", [f"glove.6B.{size}d.txt" for size in (50, 100, 200, 300)]))
    assert "glove.6B.300d.txt" in str(error)


@pytest.mark.parametrize("suffix", ["", ".gz", ".bz2", ".xz"])
def test_tar(tmp_path, suffix):
    names = ["training/readme.txt", *[f"training/news.cs-en.{side}" for side in ("en", "cs")]]
    error = archive_error(tarred(tmp_path / f"training.tar{suffix}", names, f"w:{suffix[1:]}"))
    assert "--source training/news.cs-en.cs --reference training/news.cs-en.en" in str(error)
    assert f"tar -xf training.tar{suffix}" in str(error)


def test_many_members_and_none(tmp_path):
    assert "..." in str(archive_error(zipped(tmp_path / "a.zip", [f"{number}.txt" for number in range(50)])))
    assert archive_error(zipped(tmp_path / "b.zip", [])).path == tmp_path / "b.zip"
