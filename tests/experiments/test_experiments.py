"""Folds, sources and sizes: many small trainings on samples of a corpus."""

import json
import shutil
from collections import Counter
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paranmt_hf.corpus.bitext.readers import ParquetFiles
from paranmt_hf.corpus.import_pairs import import_pairs
from paranmt_hf.corpus.jobs.engine import EngineConfig
from paranmt_hf.corpus.release_run import ReleaseConfig
from paranmt_hf.corpus.selection.run_filters import ReleaseRows
from paranmt_hf.encoders.config import EncoderConfig
from paranmt_hf.errors import InputError
from paranmt_hf.evaluation.data_configs import FoldsConfig, SizesConfig, SourcesConfig
from paranmt_hf.experiments import experiment
from paranmt_hf.experiments import folds as folds_module
from paranmt_hf.experiments import sizes as sizes_module
from paranmt_hf.experiments import sources as sources_module
from paranmt_hf.experiments.experiment import Outcome, Part, Trial, Trials
from paranmt_hf.experiments.folds import compare_folds, plot_folds
from paranmt_hf.experiments.sizes import compare_sizes
from paranmt_hf.experiments.sources import compare_sources
from paranmt_hf.training.config import TrainConfig
from paranmt_hf.util.records import from_json, to_json
from tests.training.toys import synonyms

ROWS = 120


def write_corpus(folder, seed=1):
    """Pairs whose translations are those of their references only from the score 0.5 on."""
    references, translations = synonyms(ROWS, seed=seed)
    # In steps of 1/60, each score twice, in no order.
    scores = np.random.default_rng(seed).permutation(np.repeat(np.arange(60) / 60, 2)).astype(np.float32)
    shuffled = translations[1:] + translations[:1]
    made = [good if score >= 0.5 else bad for good, bad, score in zip(translations, shuffled, scores, strict=True)]
    columns = {"reference": references, "translation": made, "para_score": pa.array(scores)}
    columns["origin"] = ["good" if score >= 0.5 else "bad" for score in scores]
    file = folder.with_suffix(".parquet")
    pq.write_table(pa.table(columns), file)
    pairs = ParquetFiles([file], {name: name for name in columns}, numbers={"para_score"})
    release = ReleaseConfig(license="mit")
    import_pairs(pairs, folder, scorer=None, release=release, engine=EngineConfig("local", 1, 1))
    return folder


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


def trials(development, models=("word",), **settings):
    given = {"epochs": 6, "batch_size": 10, "mega_batch": 2, "learning_rate": 0.05, **settings}
    return Trials(models, EncoderConfig(dimension=16), TrainConfig(**given), development)


def test_folds_are_exact_and_good_ones_win(corpus, development, tmp_path):
    config = FoldsConfig(scores=("para_score",), folds=4, sample=25, draw_seed=3)
    outcome, fresh = compare_folds(corpus, tmp_path / "out", trials(development), config)
    assert fresh
    assert [(part.name, part.rows, part.left, part.pairs) for part in outcome.parts] == [
        (name, 30, 30, 25) for name in "1234"
    ]
    # 120 rows, each score twice: a fold holds fifteen scores.
    assert [(round(part.low * 60), round(part.high * 60)) for part in outcome.parts] == [
        (0, 14),
        (15, 29),
        (30, 44),
        (45, 59),
    ]
    bad, good = (
        [part.trials[0].pearson for part in outcome.parts if (part.low >= 0.5) == side] for side in (False, True)
    )
    assert min(good) > 0.6 > max(bad)
    table = (tmp_path / "out" / "folds.md").read_text()
    assert f"| 4 | {100 * outcome.parts[3].mean:.1f} |" in table
    assert outcome.parts[3].mean == np.mean([trial.pearson for trial in outcome.parts[3].trials])
    again, fresh = compare_folds(corpus, tmp_path / "out", trials(development), config)
    assert (again, fresh) == (outcome, False)
    assert not (tmp_path / "out.work").exists()
    with pytest.raises(InputError, match=r"was measured with other settings: sample: was 25, now 26"):
        compare_folds(
            corpus,
            tmp_path / "out",
            trials(development),
            FoldsConfig(("para_score",), 4, 26, 30, 3),
        )


def test_samples_of_folds_equal_a_plain_reading(corpus):
    config = FoldsConfig(scores=("para_score",), folds=7, sample=10, max_length=None)
    rows = ReleaseRows(list((corpus / "data").glob("*.parquet")))
    table = pa.concat_tables([table for _, table in rows.tables(["para_score"])])
    order = sorted(zip(table["para_score"].to_pylist(), table["id"].to_pylist(), strict=True))
    fold_of = {number: 7 * rank // ROWS for rank, (_, number) in enumerate(order)}
    sizes = Counter(fold_of.values())
    for index, fold in enumerate(folds_module._draw(rows, "para_score", config)):
        assert fold.rows == sizes[index]
        ids = fold.sample.table()["id"].to_pylist()
        assert len(ids) == 10
        assert {fold_of[number] for number in ids} == {index}


@pytest.mark.slow
def test_a_command_that_was_stopped_trains_no_model_twice(corpus, development, tmp_path, monkeypatch):
    config = FoldsConfig(scores=("para_score",), folds=3, sample=20)
    expected, _ = compare_folds(corpus, tmp_path / "whole", trials(development), config)
    calls = []

    def stopping(sample, out, **settings):
        calls.append(out.name)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return train(sample, out, **settings)

    train = experiment.train
    monkeypatch.setattr(experiment, "train", stopping)
    with pytest.raises(KeyboardInterrupt):
        compare_folds(corpus, tmp_path / "out", trials(development), config)
    assert (tmp_path / "out.work").exists()
    assert not (tmp_path / "out").exists()
    outcome, _ = compare_folds(corpus, tmp_path / "out", trials(development), config)
    assert len(calls) == 4
    assert calls[2] == calls[3]
    without = [[(trial.model, trial.pearson, trial.identity) for trial in part.trials] for part in outcome.parts]
    assert without == [
        [(trial.model, trial.pearson, trial.identity) for trial in part.trials] for part in expected.parts
    ]


def test_sources(corpus, development, tmp_path):
    config = SourcesConfig(sample=40, by="origin")
    outcome, _ = compare_sources([corpus], tmp_path / "out", trials(development), config)
    found = {part.name: part for part in outcome.parts}
    assert {name: (part.rows, part.pairs) for name, part in found.items()} == {"good": (60, 40), "bad": (60, 40)}
    assert found["good"].mean > 0.6 > found["bad"].mean
    assert "| good | 60 | 40 | " in (tmp_path / "out" / "sources.md").read_text()
    assert json.loads((tmp_path / "out" / "experiment.json").read_text())["identity"]["by"] == "origin"


@pytest.mark.slow
def test_releases_as_sources(corpus, development, tmp_path):
    other = write_corpus(tmp_path / "other", seed=2)
    outcome, _ = compare_sources([corpus, other], tmp_path / "out", trials(development), SourcesConfig(sample=500))
    assert [(part.name, part.pairs) for part in outcome.parts] == [("corpus", ROWS), ("other", ROWS)]


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (
            {"scores": ("translation_score",)},
            "has no column translation_score, by which it would be ranked; `paranmt build` makes",
        ),
        ({"scores": ("reference",)}, "the column reference of .* holds no numbers"),
        ({"scores": ("para_score", "para_score")}, "each score is taken once"),
        ({"folds": 1}, "folds must be from 2 to 100, was 1"),
        ({"folds": 100, "sample": 100_000}, "100 folds of 100,000 pairs are more than the 3,000,000"),
        ({"scores": ("para_score",), "max_length": 1}, "fold 1 of 10 by para_score has 0 pairs left of 12"),
    ],
)
def test_what_cannot_be_compared(corpus, development, tmp_path, config, message):
    with pytest.raises(InputError, match=message):
        compare_folds(corpus, tmp_path / "out", trials(development), FoldsConfig(**config))
    assert not list(tmp_path.iterdir())


def test_sources_that_cannot_be_compared(corpus, development, tmp_path):
    with pytest.raises(InputError, match="there is one source, corpus; name several releases, or give --by origin"):
        compare_sources([corpus], tmp_path / "out", trials(development))
    with pytest.raises(InputError, match="sources are told apart by the names of their folders"):
        compare_sources([corpus, corpus], tmp_path / "out", trials(development))
    with pytest.raises(InputError, match="model must be one to three"):
        compare_sources([corpus], tmp_path / "out", trials(development, ("words",)), SourcesConfig(by="origin"))
    with pytest.raises(InputError, match="there is no development set nowhere"):
        compare_sources([corpus], tmp_path / "out", trials("nowhere"), SourcesConfig(by="origin"))
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_files_that_are_cut_off(corpus, development, tmp_path):
    copy = tmp_path / "corpus"
    shutil.copytree(corpus, copy)
    (file,) = (copy / "data").iterdir()
    file.write_bytes(file.read_bytes()[:-100])
    with pytest.raises(InputError, match=f"{file} is no Parquet file, or cut off; copy it or build the release again"):
        compare_folds(copy, tmp_path / "out", trials(development))


@pytest.mark.slow
def test_the_picture(corpus, development, tmp_path):
    config = FoldsConfig(scores=("para_score", "reference_length"), folds=2, sample=10)
    outcome, _ = compare_folds(corpus, tmp_path / "out", trials(development, ("word", "trigram"), epochs=1), config)
    assert [len(part.trials) for part in outcome.parts] == [2] * 4
    pytest.importorskip("matplotlib")
    assert (tmp_path / "out" / "folds.png").read_bytes().startswith(b"\x89PNG")
    assert plot_folds(outcome, tmp_path / "again.png")
    assert (tmp_path / "again.png").read_bytes() == (tmp_path / "out" / "folds.png").read_bytes()


def test_too_many_origins(corpus, development, tmp_path, monkeypatch):
    monkeypatch.setattr(sources_module, "MAX_ORIGINS", 1)
    with pytest.raises(InputError, match="there are more than 1 origins, such as"):
        compare_sources([corpus], tmp_path / "out", trials(development), SourcesConfig(by="origin"))
    assert not (tmp_path / "out.work").exists()


@pytest.mark.parametrize(
    "change",
    [
        lambda parts: parts.clear(),
        lambda parts: parts[0]["trials"].clear(),
        lambda parts: parts[1]["trials"][0].update(model="lstm"),
        lambda parts: parts[1]["trials"][0].update(sts=0.5),
    ],
)
def test_parts_that_no_table_can_show(change):
    trial = Trial("word", 9, 0.5, 1.0, {})
    values = to_json(Outcome({}, [Part("", name, 9, 9, None, None, [trial]) for name in "ab"], "1"))
    change(values["parts"])
    with pytest.raises(InputError, match=r"^FILE is damaged: its 'parts' are none, have no 'trials', or those of"):
        from_json(Outcome, values, "FILE")


def test_names_from_data_stay_in_their_folder():
    names = ["../../etc/passwd", "a/b", "a b", "a-b", "", "x" * 300, "ü"]
    made = [experiment._file_name(name) for name in names]
    assert len(set(made)) == len(names)
    assert all("/" not in name and not name.startswith(".") and len(name) < 80 for name in made)


def test_sizes(corpus, development, tmp_path):
    """The first pairs of the corpus, and drawn ones of which a smaller sample is a part of a larger one."""
    config = SizesConfig(sizes=(20, 5000), order="both")
    measured = replace(trials(development, epochs=1), sts=(development,))
    outcome, fresh = compare_sizes(corpus, tmp_path / "out", measured, config)
    assert fresh
    assert [(part.group, part.name, part.pairs, part.rows) for part in outcome.parts] == [
        (order, str(size), size, ROWS) for order in ("given", "random") for size in (20, ROWS)
    ]
    # What is measured on the development set and on STS is the same file here.
    assert all(part.sts == pytest.approx(part.mean) for part in outcome.parts)
    whole = [part.mean for part in outcome.parts if part.pairs == ROWS]
    assert whole[0] == whole[1], "the same pairs, in whatever order"
    table = (tmp_path / "out" / "sizes.md").read_text()
    assert "| pairs | order | word | mean | STS word | STS mean |" in table and "| 20 | random | " in table
    again, fresh = compare_sizes(corpus, tmp_path / "out", measured, config)
    assert (again, fresh) == (outcome, False)
    with pytest.raises(InputError, match=r"was measured with other settings: .*sts"):
        compare_sizes(corpus, tmp_path / "out", trials(development, epochs=1), config)
    pytest.importorskip("matplotlib")
    assert (tmp_path / "out" / "sizes.png").read_bytes().startswith(b"\x89PNG")


def test_the_pairs_of_sizes(corpus):
    rows = ReleaseRows(list((corpus / "data").glob("*.parquet")))
    left, tables = sizes_module._draw(rows, SizesConfig(sizes=(30, 10), order="both"))
    assert left == ROWS
    assert tables["given"]["id"].to_pylist() == list(range(30))
    drawn = tables["random"]["id"].to_pylist()
    smaller = sizes_module._draw(rows, SizesConfig(sizes=(10,)))[1]["random"]["id"].to_pylist()
    assert drawn[:10] == smaller and len(set(drawn)) == 30 and drawn != sorted(drawn)
    left, tables = sizes_module._draw(rows, SizesConfig(sizes=(30,), order="given", max_length=1))
    assert (left, tables) == (0, {})


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"sizes": (1,)}, "sizes must be values that are each from 2 to 3,000,000"),
        ({"sizes": (5, 5)}, "each size is trained on once, but --sizes is 5 5"),
        ({"max_length": 1}, "the corpus has 0 pairs left of 120, which is too few"),
        ({"order": "other"}, "order must be one of random, given, both"),
    ],
)
def test_sizes_that_cannot_be_compared(corpus, development, tmp_path, config, message):
    with pytest.raises(InputError, match=message):
        compare_sizes(corpus, tmp_path / "out", trials(development), SizesConfig(**config))
    with pytest.raises(InputError, match="there is no file or folder nowhere"):
        compare_sizes(corpus, tmp_path / "out", replace(trials(development), sts=("nowhere",)), SizesConfig())
    assert not list(tmp_path.iterdir())
