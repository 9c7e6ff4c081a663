"""`paranmt evaluate mteb`: local data in the Hub's layout, figures, what is kept, what mteb knows of an encoder."""

import json
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paranmt_hf import load
from paranmt_hf.cli import main
from paranmt_hf.encoders.saving import save
from paranmt_hf.evaluation.correlation import spearman
from paranmt_hf.evaluation.mteb import evaluate_mteb, find_tasks, model_meta, with_local_data
from paranmt_hf.evaluation.similarities import pair_similarities
from paranmt_hf.evaluation.sts_data import read_sts
from paranmt_hf.hub.repository import ASSETS, locate
from paranmt_hf.util.optional import available
from tests.cli.commands import fails
from tests.encoders.toys import encoder
from tests.refused import refused

needs_mteb = pytest.mark.skipif(not available("mteb"), reason="needs paranmt-hf[mteb]")
TEXTS = ["the cat sat .", "cat , cat", "the café is 3.5", "it is n't"] * 4


def write(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".jsonl":
        path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    else:
        pq.write_table(pa.Table.from_pylist(rows), path)


def configs(folder, **places):
    entries = "".join(
        f"- config_name: {name}\n  data_files: [{{split: test, path: {place}}}]\n" for name, place in places.items()
    )
    (folder / "README.md").write_text(f"---\nconfigs:\n{entries}---\n")


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Data sets as they lie on the Hub: by the name of the task, and by the id of the data set."""
    data = tmp_path_factory.mktemp("data")
    (judged,) = read_sts(ASSETS / "sample" / "similarity.tsv")
    pairs = zip(judged.left, judged.right, judged.gold.tolist(), strict=True)
    rows = [{"sentence1": left, "sentence2": right, "score": gold} for left, right, gold in pairs]
    write(data / "STS12" / "data" / "test-00000-of-00001.parquet", rows)
    write(data / "STS17" / "test.parquet", [{**row, "lang": lang} for lang in ("en-en", "ko-ko") for row in rows[:9]])
    labelled = [{"text": text, "label": "cat" in text} for text in TEXTS]
    for split in ("train", "test"):
        rows = [{**row, "label": int(row["label"]), "label_text": str(row["label"])} for row in labelled]
        write(data / "mteb" / "banking77" / f"{split}.jsonl", rows)
    texts = ["the cat", "is it n't", "café"]
    folder = data / "mteb" / "nfcorpus"
    write(folder / "corpus.parquet", [{"_id": f"d{n}", "title": "", "text": text} for n, text in enumerate(texts)])
    write(folder / "queries.parquet", [{"_id": "q0", "text": "café ."}, {"_id": "q1", "text": "sat the cat"}])
    answers = [{"query-id": "q0", "corpus-id": "d2", "score": 1}, {"query-id": "q1", "corpus-id": "d0", "score": 1}]
    write(folder / "qrels.parquet", answers)
    configs(folder, corpus="corpus.parquet", queries="queries.parquet", default="qrels.parquet")
    return data


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models") / "word"
    save(encoder("word"), folder)
    return folder


@needs_mteb
class TestFigures:
    @pytest.mark.slow
    def test_are_those_of_our_own_evaluation(self, data, tmp_path):
        """Spearman's rho of all pairs is what both print."""
        (made,) = evaluate_mteb("small", tasks="STS12", out=tmp_path / "out", data=data)
        (row,) = made.tables["Task"]
        (judged,) = read_sts(ASSETS / "sample" / "similarity.tsv")
        ours = spearman(pair_similarities(load(), judged.left, judged.right, "small").values, judged.gold)
        assert row.main == pytest.approx(ours, abs=1e-4)
        assert ours > 0.8
        assert (row.name, row.details["type"], row.details["measure"]) == ("STS12", "STS", "cosine_spearman")

    @pytest.mark.slow
    def test_of_other_kinds_of_tasks(self, data, model, tmp_path):
        tasks = ["Banking77Classification", "NFCorpus", "STS17"]
        (made,) = evaluate_mteb(model, tasks=tasks, out=tmp_path / "out", data=data)
        # Every text of the one class holds a word that no text of the other does; each query shares words with one.
        assert made.value("Banking77Classification") > 0.95
        assert made.value("NFCorpus") == pytest.approx(1)
        # Of the languages only English.
        assert [row.name for row in made.rows] == [*tasks, "Mean"]
        assert made.mean == pytest.approx(sum(row.main for row in made.tables["Task"]) / 3)
        (both,) = evaluate_mteb(model, tasks="STS17", out=tmp_path / "both", data=data, languages=["eng", "kor"])
        whole, korean, english = both.rows
        assert [korean.name, english.name] == ["STS17 ko-ko test", "STS17 en-en test"]
        assert korean.group == english.group == whole.name == "STS17"
        assert whole.main == pytest.approx((korean.main + english.main) / 2)

    @pytest.mark.slow
    def test_of_a_task_that_is_the_mean_of_two(self, data, model, tmp_path):
        """mteb 2.26 has replaced STSBenchmark by STSBenchmark.v2, whose score is the mean of two parts."""
        rows = pq.read_table(next((data / "STS12").rglob("*.parquet"))).to_pylist()
        tasks = ["STSBenchmark", "STSBenchmark.v2"]
        for place in ("STSBenchmark/test", "STSBenchmark.v2/validation", "STSBenchmark.v2/test"):
            write(tmp_path / "data" / f"{place}.parquet", rows)
        (made,) = evaluate_mteb(model, tasks=tasks, out=tmp_path / "out", data=tmp_path / "data")
        first, second = (row for row in made.tables["Task"] if row.group is None)
        assert [first.name, second.name] == tasks and first.main == pytest.approx(second.main)


@needs_mteb
class TestResults:
    @pytest.fixture
    def out(self, data, model, tmp_path):
        evaluate_mteb(model, tasks="STS12", out=tmp_path / "out", data=data)
        return tmp_path / "out"

    @pytest.mark.slow
    def test_finished_tasks_are_not_run_again(self, out, data, model):
        (first,) = evaluate_mteb(model, tasks="STS12", out=out, data=data)
        kept = next((out / "results").rglob("STS12.json"))
        before = kept.stat().st_mtime_ns
        (made,) = evaluate_mteb(model, tasks=["STS12", "NFCorpus"], out=out, data=data)
        assert [row.name for row in made.tables["Task"]] == ["STS12", "NFCorpus"]
        assert made.tables["Task"][0] == first.tables["Task"][0]
        assert kept.stat().st_mtime_ns == before

    def test_mteb_finds_them(self, out, model):
        from mteb import ResultCache

        revision = locate(model).revision.removeprefix("sha256:")[:40]
        found = ResultCache(out).load_task_result("STS12", "ORGANISATION/word", revision)
        # The files were not compared with the Hub's.
        assert found.dataset_revision.startswith("sha256:")
        assert [path.name for path in out.iterdir()] == ["results"]

    def test_results_on_other_data_are_refused(self, out, data, model, tmp_path):
        shutil.copytree(data / "STS12", tmp_path / "data" / "STS12")
        (tmp_path / "data" / "STS12" / "README.md").write_text("# other files")
        with refused("out"):
            evaluate_mteb(model, tasks="STS12", out=out, data=tmp_path / "data")

    def test_other_weights_or_settings_have_another_folder(self, out, data, model, tmp_path):
        (own,) = evaluate_mteb(model, tasks="STS12", out=out, data=data)
        shutil.copytree(model, tmp_path / "word")
        file = tmp_path / "word" / "config_sentence_transformers.json"
        file.write_text(json.dumps({**json.loads(file.read_text()), "truncate_dim": 2}))
        (cut,) = evaluate_mteb(tmp_path / "word", tasks="STS12", out=out, data=data)
        other = encoder("word")
        other[0].embedding.weight.data *= 2
        save(other, tmp_path / "word")
        (scaled,) = evaluate_mteb(tmp_path / "word", tasks="STS12", out=out, data=data)
        assert own.mean is None and cut.value("STS12") != own.value("STS12")
        assert scaled.value("STS12") == pytest.approx(own.value("STS12"))
        assert len(list((out / "results" / "ORGANISATION__word").iterdir())) == 3

    def test_a_damaged_result_is_refused(self, out, data, model):
        path = next((out / "results").rglob("STS12.json"))
        path.write_text(path.read_text()[:200])
        with refused(path=path):
            evaluate_mteb(model, tasks="STS12", out=out, data=data)

    def test_a_folder_of_something_else_is_left_alone(self, data, model):
        with refused("out"):
            evaluate_mteb(model, tasks="STS12", out=data, data=data)


@needs_mteb
def test_what_mteb_knows_of_an_encoder(tmp_path):
    save(encoder("word"), tmp_path / "word")
    model = locate(tmp_path / "word")
    meta = model_meta(load(model))
    assert (meta.name, meta.embed_dim, meta.max_tokens) == ("ORGANISATION/word", 4, float("inf"))
    assert meta.revision == model.revision.removeprefix("sha256:")[:40]


@needs_mteb
@pytest.mark.slow
def test_the_library_keeps_the_results_of_two_encoders_apart(data, tmp_path):
    """`mteb.evaluate` of mteb 2.26 keeps results by the name and the revision in the card data."""
    import mteb

    save(encoder("word"), tmp_path / "word")
    save(encoder("trigram"), tmp_path / "trigram")
    (task,) = find_tasks(["STS12"], ["eng"])
    cache, scores = mteb.ResultCache(tmp_path / "cache"), []
    for name in ("word", "trigram", "word"):
        result = mteb.evaluate(load(tmp_path / name), with_local_data(task, data), cache=cache, co2_tracker=False)
        scores.append(result.task_results[0].get_score())
    # Kept with six digits.
    assert scores[2] == pytest.approx(scores[0], abs=1e-6) != scores[1]
    found = {path.parent.parent.name for path in (tmp_path / "cache").rglob("STS12.json")}
    assert found == {"ORGANISATION__word", "ORGANISATION__trigram"}


@needs_mteb
class TestBadInput:
    @pytest.mark.parametrize(
        ("changes", "option"),
        [
            pytest.param({"tasks": "sts benchmark"}, "tasks", marks=pytest.mark.slow),
            pytest.param({"tasks": "MTEB(eng, v2)"}, "data", marks=pytest.mark.slow),
            ({"tasks": []}, "tasks"),
            ({"tasks": "CIFAR10"}, "tasks"),
            ({"models": []}, "models"),
            ({"tasks": "BornholmBitextMining"}, "languages"),
            ({"tasks": "STS13"}, "data"),
            ({"data": Path("nowhere")}, "data"),
        ],
    )
    def test_is_told_before_anything_is_written(self, data, tmp_path, changes, option):
        given = {"models": "small", "tasks": "STS12", "data": data, **changes}
        with refused(option):
            evaluate_mteb(given.pop("models"), out=tmp_path / "out", **given)
        assert not list(tmp_path.iterdir())

    @pytest.mark.parametrize(
        "rows",
        [
            [{"sentence1": "a", "text": "b", "score": 1.0}],
            [{"sentence1": "a", "sentence2": "b", "score": "x"}] * 3,
            [{"sentence1": "a", "sentence2": None, "score": 1.0}] * 3,
            None,
        ],
    )
    def test_data_of_another_kind(self, model, tmp_path, rows):
        (tmp_path / "data" / "STS12").mkdir(parents=True)
        if rows is not None:
            write(tmp_path / "data" / "STS12" / "test.parquet", rows)
        with refused():
            evaluate_mteb(model, tasks="STS12", out=tmp_path / "out", data=tmp_path / "data")
        assert [path.name for path in tmp_path.iterdir()] == ["data"]

    def test_a_figure_that_is_no_number(self, model, tmp_path):
        """The model knows none of the words, so that all similarities are 0."""
        rows = [{"sentence1": "zqx", "sentence2": "xkz", "score": float(score)} for score in range(4)]
        write(tmp_path / "data" / "STS12" / "test.parquet", rows)
        with refused():
            evaluate_mteb(model, tasks="STS12", out=tmp_path / "out", data=tmp_path / "data")
        assert [path.name for path in tmp_path.iterdir()] == ["data"]

    def test_data_elsewhere_are_not_read(self, data, model, tmp_path):
        (tmp_path / "data" / "STS12").mkdir(parents=True)
        configs(tmp_path / "data" / "STS12", default=data / "STS12" / "data" / "*.parquet")
        with refused():
            evaluate_mteb(model, tasks="STS12", out=tmp_path / "out", data=tmp_path / "data")

    def test_a_hub_that_is_not_there(self, model, tmp_path, monkeypatch):
        def unreachable(*arguments, **options):
            raise ConnectionError("no route")

        monkeypatch.setattr("mteb.abstasks.abstask.load_dataset", unreachable)
        with refused():
            evaluate_mteb(model, tasks="STS12", out=tmp_path / "out")
        assert not list(tmp_path.iterdir())


@needs_mteb
def test_the_command(data, model, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    command = ["evaluate", "mteb", str(model), "--tasks", "STS12", "--data", str(data), "--out", "out"]
    assert main([*command, "--json", "r.json"]) == 0
    assert "| STS12 |" in capsys.readouterr().out
    assert main(["evaluate", "mteb", "--config", "r.json.json", "--out", "again"]) == 0
    assert (tmp_path / "again" / "results").is_dir()
    fails(
        capsys, [*command[:-1], "other", "--languages", "dan"], "the task STS12 has no part in dan alone; it has eng"
    )


def test_without_mteb(tmp_path, without):
    without("mteb")
    with refused():
        evaluate_mteb("small", tasks="STS12", out=tmp_path / "out")
