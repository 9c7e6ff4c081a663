"""Experiments that train small encoders on samples of a corpus."""

import json
import re
import shutil
from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paranmt_hf.cli import main
from paranmt_hf.corpus.release.release_run import ReleaseConfig
from paranmt_hf.errors import InputError
from paranmt_hf.experiments import comparison, paranmt_table4, paranmt_table5
from paranmt_hf.experiments.comparison import ComparedModels, SampleConfig, SampledPart, Source
from paranmt_hf.experiments.paragram_figure1 import halves, paragram_figure1, read_pairs
from paranmt_hf.experiments.paragram_table6 import paragram_table6
from paranmt_hf.experiments.paranmt_table6 import paranmt_table6
from paranmt_hf.supervised.config import SupervisedRecord
from tests.cli.commands import recorded_options
from tests.evaluation.toys import WORDS, write_all
from tests.refused import refused
from tests.toys import scored_release
from tests.training.toys import synonyms

ROWS = 120
FAST = {"dimension": 16, "batch_size": 10, "mega_batch": 2, "learning_rate": 0.05}
table4, table5 = paranmt_table4.paranmt_table4, paranmt_table5.paranmt_table5


def write_corpus(folder, seed=1):
    """Pairs whose translations are those of their references only from the score 0.5 on."""
    references, translations = synonyms(ROWS, seed=seed)
    # In steps of 1/60, each score twice, in no order.
    scores = np.random.default_rng(seed).permutation(np.repeat(np.arange(60) / 60, 2)).astype(np.float32)
    shuffled = translations[1:] + translations[:1]
    made = [good if score >= 0.5 else bad for good, bad, score in zip(translations, shuffled, scores, strict=True)]
    columns = {"reference": references, "translation": made, "para_score": pa.array(scores)}
    columns["origin"] = ["good" if score >= 0.5 else "bad" for score in scores]
    return scored_release(folder, columns, ReleaseConfig(license="mit"))


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return write_corpus(tmp_path_factory.mktemp("corpus") / "corpus")


@pytest.fixture(scope="module")
def development(tmp_path_factory):
    """Pairs that mean the same, and others."""
    left, right = synonyms(40, seed=7)
    other = right[20:][1:] + right[20:][:1]
    lines = [
        f"{score}\t{a}\t{b}" for score, a, b in zip([5.0] * 20 + [0.0] * 20, left, right[:20] + other, strict=True)
    ]
    path = tmp_path_factory.mktemp("development") / "pairs.tsv"
    path.write_text("\n".join(lines) + "\n")
    return str(path)


def models(development, names=("word",), **training):
    return ComparedModels(development, names, {**FAST, **training})


@pytest.fixture
def quarters(monkeypatch):
    """Four folds, because of which the corpus may be small."""
    monkeypatch.setattr(paranmt_table5, "FOLDS", 4)


@pytest.mark.slow
def test_folds_are_exact_and_good_ones_win(corpus, development, tmp_path, quarters, monkeypatch, caplog):
    caplog.set_level("INFO")

    def run(**training):
        chosen = models(development, max_pairs=25, epochs=6, **training)
        return table5(corpus, tmp_path / "out", chosen, scores=("para_score",))

    # Not all folds are in memory together.
    monkeypatch.setattr(comparison.Training, "samples_in_memory", lambda self, count, rows: 3)
    found = run()
    assert found.fresh
    counted = [line for line in caplog.messages if line.startswith("samples: ")]
    assert [line.split(",")[0] for line in counted[:4]] == [f"samples: {n} of 4 ({25 * n}%)" for n in (1, 2, 3, 4)]
    assert all(" left, para_score" in line for line in counted[:4])
    samples = found.record.samples
    assert [(part.name, part.rows, part.left, part.pairs) for part in samples] == [(n, 30, 30, 25) for n in "1234"]
    # 120 rows, each score twice: a fold holds fifteen scores.
    ends = [(round(part.low * 60), round(part.high * 60)) for part in samples]
    assert ends == [(0, 14), (15, 29), (30, 44), (45, 59)]
    bad, good = ([part.mean for part in samples if (part.low >= 0.5) == side] for side in (False, True))
    assert min(good) > 0.6 > max(bad)
    assert re.search(rf"\| 4 +\| +{100 * samples[3].mean:.1f} \|", found.summary())
    again = run()
    assert (again.record, again.fresh) == (found.record, False)
    assert not (tmp_path / "out.work").exists()
    with pytest.raises(InputError, match=r"sample.max_length: "):
        run(max_length=29)


def test_samples_of_folds_equal_a_plain_reading(corpus):
    rows = Source(corpus)
    table = pa.concat_tables([table for _, table in rows.tables(["para_score"])])
    order = sorted(zip(table["para_score"].to_pylist(), table["id"].to_pylist(), strict=True))
    fold_of = {number: 7 * rank // ROWS for rank, (_, number) in enumerate(order)}
    sizes = Counter(fold_of.values())
    ranks = paranmt_table5.folds_by_rank(rows, "para_score", 7)
    folds = {number: SampledPart(SampleConfig(10)) for number in range(1, 8)}
    for part in ([1, 2, 3], [4, 5, 6], [7]):
        paranmt_table5.sample_folds(rows, "para_score", ranks, {number: folds[number] for number in part})
    for index, fold in enumerate(folds.values()):
        assert fold.rows == sizes[index]
        ids = fold.sample.table()["id"].to_pylist()
        assert len(ids) == 10
        assert {fold_of[number] for number in ids} == {index}


@pytest.mark.slow
def test_an_interrupted_experiment_trains_no_model_twice(corpus, development, tmp_path, monkeypatch, quarters):
    given, settings = models(development, max_pairs=20), {"scores": ("para_score",)}
    expected = table5(corpus, tmp_path / "whole", given, **settings)
    calls, train = [], comparison.train

    def stopping(sample, out, **options):
        calls.append(sample[0].name)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return train(sample, out, **options)

    monkeypatch.setattr(comparison, "train", stopping)
    with pytest.raises(KeyboardInterrupt):
        table5(corpus, tmp_path / "out", given, **settings)
    assert (tmp_path / "out.work").exists() and not (tmp_path / "out").exists()
    found = table5(corpus, tmp_path / "out", given, **settings)
    assert len(calls) == 5 and calls[2] == calls[3]

    def figures(each):
        return [
            [(trial.model, trial.pearson, trial.settings) for trial in part.trials] for part in each.record.samples
        ]

    assert figures(found) == figures(expected)


def test_sources(corpus, development, tmp_path):
    found = table4([corpus], tmp_path / "out", models(development, max_pairs=40, epochs=6), by="origin")
    parts = {part.name: part for part in found.record.samples}
    assert {name: (part.rows, part.pairs) for name, part in parts.items()} == {"good": (60, 40), "bad": (60, 40)}
    assert parts["good"].mean > 0.6 > parts["bad"].mean
    assert re.search(r"\| good +\| +60 \| +40 \| ", found.summary())
    assert json.loads((tmp_path / "out" / "experiment.json").read_text())["settings"]["by"] == "origin"


@pytest.mark.slow
def test_releases_as_sources(corpus, development, tmp_path):
    other = write_corpus(tmp_path / "other", seed=2)
    found = table4([corpus, other], tmp_path / "out", models(development, max_pairs=500))
    assert [(part.name, part.pairs) for part in found.record.samples] == [("corpus", ROWS), ("other", ROWS)]


@pytest.mark.slow
def test_sizes_of_mega_batches(corpus, development, tmp_path):
    given = ComparedModels(development, ("word",), {"dimension": 16, "epochs": 1})
    found = paranmt_table6(corpus, tmp_path / "out", given)
    assert [(part.name, part.pairs) for part in found.record.samples] == [("1", ROWS), ("20", ROWS), ("40", ROWS)]
    assert [each.trials[0].settings["settings"][1]["mega_batch"] for each in found.record.samples] == [1, 20, 40]


@pytest.mark.parametrize(
    ("scores", "training", "option"),
    [
        (("translation_score",), {}, "scores"),
        (("reference",), {}, "scores"),
        (("para_score",), {"max_length": 1}, None),
        (("para_score",), {"max_pairs": 4_000_001}, "max_pairs"),
        (("para_score",), {"batch": 1}, "training"),
    ],
)
def test_what_cannot_be_compared(corpus, development, tmp_path, scores, training, option):
    with pytest.raises(InputError) as error:
        table5(corpus, tmp_path / "out", models(development, **training), scores=scores)
    assert error.value.option == option and not list(tmp_path.iterdir())


def test_sources_that_cannot_be_compared(corpus, development, tmp_path):
    out = tmp_path / "out"
    with refused():
        table4([corpus], out, models(development))
    with refused():
        table4([corpus, corpus], out, models(development))
    with refused("model"):
        table4([corpus], out, models(development, ("words",)), by="origin")
    with refused():
        table4([corpus], out, models("nowhere"), by="origin")
    with refused():
        paragram_figure1(corpus, out, models(development), sts=["nowhere"])
    with refused("training"):
        paranmt_table6(corpus, out, models(development))
    with refused("models"):
        models(development, ("word", "word"))
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_files_that_are_cut_off(corpus, development, tmp_path):
    copy = tmp_path / "corpus"
    shutil.copytree(corpus, copy)
    (file,) = (copy / "data").iterdir()
    file.write_bytes(file.read_bytes()[:-100])
    with pytest.raises(InputError) as caught:
        table5(copy, tmp_path / "out", models(development), scores=("para_score",))
    assert caught.value.path == file


@pytest.mark.slow
def test_the_command_and_its_figure(corpus, development, tmp_path, capsys, caplog, quarters):
    words = ["experiment", "paranmt-table5", str(corpus), "--development", development, "--out", str(tmp_path / "out")]
    words += ["--scores", "para_score", "reference_length", "--models", "word"]
    assert main([*words, "--training", "dimension=16,batch-size=5,max-pairs=10"]) == 0
    assert re.search(r"\| fold +\| +para_score \| +reference_length \|", capsys.readouterr().out)
    said = [record.getMessage() for record in caplog.records]
    assert [line.split(",")[0] for line in said if line.startswith("samples: ")][:2] == [
        "samples: 1 of 8 (12%)",
        "samples: 2 of 8 (25%)",
    ]
    # The corpus is read once for each score.
    assert not [line for line in said if "reading the training data" in line]
    training = comparison.Training(models(development, max_pairs=1_000_000))
    assert [training.samples_in_memory(10, rows) for rows in (100, 1_151_349, 51_409_585)] == [10, 10, 4]
    record = comparison.ComparisonRecord.read(tmp_path / "out")
    for line in paranmt_table5._lines(record):
        assert all(low < mean < high for mean, (low, high) in zip(line.pearson, line.intervals, strict=True))
    assert (
        recorded_options(tmp_path / "out" / "experiment.json")["training"] == "dimension=16,batch-size=5,max-pairs=10"
    )
    pytest.importorskip("matplotlib")
    assert (tmp_path / "out" / "figure.png").read_bytes().startswith(b"\x89PNG")


def test_too_many_origins(corpus, development, tmp_path, monkeypatch):
    monkeypatch.setattr(paranmt_table4, "MAX_ORIGINS", 1)
    with refused():
        table4([corpus], tmp_path / "out", models(development), by="origin")
    assert not (tmp_path / "out.work").exists()


@pytest.mark.slow
def test_sizes(corpus, development, tmp_path):
    """The first pairs of the corpus, and sampled ones of which a smaller sample is a part of a larger one."""
    settings = {"sizes": (20, 5000), "order": "both"}
    found = paragram_figure1(corpus, tmp_path / "out", models(development), sts=[development], **settings)
    samples = found.record.samples
    assert [(part.group, part.name, part.pairs, part.rows) for part in samples] == [
        (order, str(size), size, ROWS) for order in ("given", "random") for size in (20, ROWS)
    ]
    # The development set is the STS data here.
    assert all(part.sts == pytest.approx(part.mean) for part in samples)
    whole = [part.mean for part in samples if part.pairs == ROWS]
    assert whole[0] == whole[1], "the same pairs, in whatever order"
    assert re.search(r"\| pairs +\| +order \| +STS word \| +STS mean \| +word \| +mean \|", found.summary())
    with pytest.raises(InputError, match=r"was made with other settings: .*sts"):
        paragram_figure1(corpus, tmp_path / "out", models(development), **settings)
    pytest.importorskip("matplotlib")
    assert (tmp_path / "out" / "figure.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(InputError, match="the corpus has 0 pairs left of 120, too few"):
        paragram_figure1(corpus, tmp_path / "other", models(development, max_length=1))


def test_sizes_are_halved():
    """PPDB XL has 3,033,753 pairs; the paper divides them by two until there are fewer than 10."""
    sizes = halves(3_033_753)
    assert sizes[:3] == [3_033_753, 1_516_876, 758_438] and sizes[-2:] == [11, 5] and len(sizes) == 20
    assert halves(9) == [9]


def test_the_pairs_of_sizes(corpus):
    def pairs_of(largest):
        part = SampledPart(SampleConfig(largest))
        return part, read_pairs(Source(corpus), part, largest)

    part, first = pairs_of(30)
    assert part.sample.seen == ROWS
    assert first["id"].to_pylist() == list(range(30))
    drawn = part.sample.table()["id"].to_pylist()
    smaller = pairs_of(10)[0].sample.table()["id"].to_pylist()
    assert drawn[:10] == smaller and len(set(drawn)) == 30 and drawn != sorted(drawn)


@pytest.mark.slow
def test_fixed_vectors_as_features(tmp_path, monkeypatch):
    """Each figure is that of the model which is best on the development items, of all that were tried."""
    write_all(tmp_path / "senteval", items=20)
    texts = [f"{word} of number {item}" for word in WORDS for item in range(4)]
    pq.write_table(pa.table({"reference": texts, "translation": texts[::-1]}), tmp_path / "pairs.parquet")
    given = {"dimension": 4, "batch_size": 8, "mega_batch": 1, "epochs": 1}
    settings = {"data": tmp_path / "senteval", "tasks": ["SICK-R", "SST2"], "dimensions": (6,), "lambdas": (0.1, 1e-4)}

    def run():
        return paragram_table6(tmp_path / "pairs.parquet", tmp_path / "out", training=given, **settings)

    found = run()
    assert [each.model for each in found] == ["PARAGRAM-PHRASE (4)", "projection to 6 (6)"]
    for name, each in zip(("word", "projection-6"), found, strict=True):
        for row, measure in zip(each.rows, ("pearson", "accuracy"), strict=True):
            tried = [SupervisedRecord.read(path) for path in (tmp_path / "out").glob(f"{row.name}-{name}-*")]
            best = max(record.figures["dev"][measure] for record in tried)
            assert len(tried) == 4 and row.details["development"] == best
            assert row.main in [
                each.figures["test"][measure] for each in tried if each.figures["dev"][measure] == best
            ]
            assert all(record.settings.training.way == "fixed" for record in tried)
    assert json.loads((tmp_path / "out" / "encoders" / "projection-6" / "training.json").read_text())["dimension"] == 6
    made = sorted((path, path.stat().st_mtime_ns) for path in (tmp_path / "out").rglob("*"))
    assert run() == found
    assert sorted((path, path.stat().st_mtime_ns) for path in (tmp_path / "out").rglob("*")) == made


def test_features_of_no_task(tmp_path):
    with refused():
        paragram_table6("small", tmp_path / "out", data=tmp_path / "nowhere")
    assert not list(tmp_path.iterdir())
