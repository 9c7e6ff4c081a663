"""The measure of overfitting of trained models: the table, and what it tells."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paranmt_hf.cli import main
from paranmt_hf.encoders.config import EncoderConfig
from paranmt_hf.errors import InputError
from paranmt_hf.evaluation.results import read_results
from paranmt_hf.training.config import TrainConfig
from paranmt_hf.training.overfitting import OverfittingConfig, evaluate_overfitting, mean_margin
from paranmt_hf.training.train import train
from tests.training.toys import synonyms


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("overfitting")
    references, translations = synonyms(60)
    pq.write_table(pa.table({"reference": references, "translation": translations}), root / "pairs.parquet")
    left, right = synonyms(30, seed=7)
    lines = [f"{index}\t{a}\t{b}" for index, (a, b) in enumerate(zip(left, right, strict=True))]
    (root / "other.tsv").write_text("\n".join(lines) + "\n")
    for name, epochs in (("little", 1), ("long", 30)):
        config = TrainConfig(batch_size=10, mega_batch=1, epochs=epochs, learning_rate=0.02)
        train(root / "pairs.parquet", root / name, encoder=EncoderConfig(dimension=8), config=config)
    return root


def test_a_long_training_sets_its_pairs_apart(root):
    config = OverfittingConfig(pool=20)
    models = [root / "little", root / "long"]
    data = root / "pairs.parquet"
    little, long = evaluate_overfitting(models, data=data, development=root / "other.tsv", config=config)
    assert long.value("train") > little.value("train") and long.model == str(root / "long")
    assert [row.items for row in long.tables["Pairs"]] == [60, 30, None]
    assert long.value("difference") == long.value("train") - long.value("development")
    from paranmt_hf.encoders.loading import load

    expected = mean_margin(load(root / "long"), *synonyms(60), pool=20)
    assert long.value("train") == pytest.approx(expected, abs=1e-6)
    (alone,) = evaluate_overfitting(root / "long", data=data, config=OverfittingConfig(pairs=30))
    assert [(row.name, row.items) for row in alone.rows] == [("train", 30)]
    with pytest.raises(InputError, match="name a model to evaluate"):
        evaluate_overfitting([], data=data)


def test_the_command(root, capsys):
    words = [
        "evaluate",
        "overfitting",
        str(root / "little"),
        str(root / "long"),
        "--data",
        str(root / "pairs.parquet"),
    ]
    words += ["--development", str(root / "other.tsv"), "--json", str(root / "result.json")]
    assert main(words) == 0
    out = capsys.readouterr().out
    results = read_results(root / "result.json")
    assert [row.name for row in results[0].rows] == ["train", "development", "difference"]
    assert all(f"{each.value('train'):+.3f}" in out for each in results)
