"""What decides a training run is known by content: other data under the same names is another run."""

from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paranmt_hf import EncoderConfig, PairSelection, ReleaseConfig, TrainConfig, import_pairs, train
from paranmt_hf.corpus.reading.readers import TableFiles
from paranmt_hf.encoders.saving import save
from paranmt_hf.training.inputs import find_inputs
from paranmt_hf.util.records import as_json
from paranmt_hf.util.run import result_folder
from tests.cli.commands import fails
from tests.evaluation.toys import write_benchmark
from tests.refused import refused
from tests.toys import bytes_of
from tests.training.toys import encoder_of, random_text, small, synonyms, write_data

OTHER = "out was made with other settings"


@pytest.fixture
def data(tmp_path):
    return write_data(tmp_path / "pairs.parquet", synonyms(60))


def exclude(folder, sentence):
    """A folder of STS sets with one pair."""
    folder.mkdir(exist_ok=True)
    (folder / "sts.tsv").write_text(f"5.0\t{sentence}\tand another\n")
    return folder / "sts.tsv"


def test_another_exclusion_of_the_same_size(tmp_path, data):
    references, _ = synonyms(60)
    settings = small(epochs=1)
    train(data, tmp_path / "out", exclude=exclude(tmp_path / "sts", references[0]), **settings)
    assert not train(data, tmp_path / "out", exclude=exclude(tmp_path / "sts", references[0]), **settings).fresh
    with refused("out", path=tmp_path / "out"):
        train(data, tmp_path / "out", exclude=exclude(tmp_path / "sts", references[1]), **settings)


def test_number_of_processes_and_where_to_report(data, monkeypatch):
    def settings(processes=1, **given):
        monkeypatch.setenv("WORLD_SIZE", str(processes))
        return find_inputs(data, EncoderConfig(), TrainConfig(**given), PairSelection()).settings

    alone = settings()
    assert as_json(alone) == as_json(settings(report_to="tensorboard"))
    assert settings(processes=2) == replace(alone, processes=2)


def test_other_gold_scores_of_the_development_set(tmp_path):
    write_benchmark(tmp_path / "STSBenchmark")
    data = write_data(tmp_path / "pairs.parquet", (["x d", "y", "x y"] * 30, ["x", "d y", "d"] * 30))
    settings = small(epochs=1)
    train(data, tmp_path / "out", development=tmp_path, **settings)
    path = tmp_path / "STSBenchmark" / "sts-dev.csv"
    path.write_text(path.read_text().replace("\t2\tx\tx", "\t1\tx\tx"))
    with refused("out", path=tmp_path / "out"):
        train(data, tmp_path / "out", development=tmp_path, **settings)


def test_an_edited_release_is_refused(tmp_path):
    """All scores set to 1, and then the best of them chosen: the record has other checksums."""
    data = write_data(tmp_path / "pairs.parquet", synonyms(60))
    columns = {name: name for name in ("reference", "translation")}
    pairs = TableFiles([data], columns)
    folder = import_pairs(pairs, tmp_path / "corpus", release=ReleaseConfig(license="mit")).folder
    train(folder, tmp_path / "out", **small(epochs=1))
    (path,) = (folder / "data").glob("*.parquet")
    table = pq.read_table(path)
    ones = pa.array([1.0] * table.num_rows, pa.float32())
    pq.write_table(table.set_column(table.column_names.index("para_score"), "para_score", ones), path)
    with refused():
        train(folder, tmp_path / "out", **small(epochs=1))


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
        ["encoder", "average", "word", "small", "--out", "link/deeper/new"],
        ["encoder", "average", "small", "word", "--out", "word/new"],
        ["encoder", "export", "word", "--format", "static", "--out", "word/new"],
        ["supervise", "none", "--task", "SICK-R", "--init-from", "word", "--out", "word/new"],
        ["train", "--text", "text.txt", "--teacher", "word", "--out", "word/new"],
        ["encoder", "vectors", "word", "--text", "text.txt", "--out", "word/vectors.txt"],
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
    with refused("out", path=model / "a/b"):
        result_folder(model / "a" / "b", sources=[model.parent / "link"])
