"""`paranmt evaluate mteb`: local data in the Hub's layout, figures, what is kept, what mteb knows of an encoder."""

import json
import shutil

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from filelock import FileLock

from paranmt_hf import InputError
from paranmt_hf.cli import main
from paranmt_hf.encoders.loading import load
from paranmt_hf.encoders.saving import save
from paranmt_hf.evaluation.correlation import spearman
from paranmt_hf.evaluation.evaluate import evaluate_mteb
from paranmt_hf.evaluation.mteb.meta import learned_from
from paranmt_hf.evaluation.mteb.record import MtebRecord, MtebScore, MtebTask, compare_mteb
from paranmt_hf.evaluation.similarities import pair_similarities
from paranmt_hf.evaluation.sts_data import read_sts
from paranmt_hf.hub.repository import ASSETS, weights_checksum
from paranmt_hf.util.optional import available
from tests.cli.commands import fails
from tests.encoders.toys import encoder

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
    def test_are_those_of_our_own_evaluation(self, data, tmp_path):
        """Spearman's rho of all pairs is what both print."""
        (made,) = evaluate_mteb("embedded", "STS12", tmp_path / "out", data=data)
        (task,) = made.record.tasks
        (judged,) = read_sts(ASSETS / "sample" / "similarity.tsv")
        ours = spearman(pair_similarities(load(), judged.left, judged.right, "embedded").values, judged.gold)
        assert task.score == pytest.approx(ours, abs=1e-4)
        assert ours > 0.8
        assert (task.name, task.type, task.measure) == ("STS12", "STS", "cosine_spearman")

    def test_of_other_kinds_of_tasks(self, data, model, tmp_path):
        tasks = ["Banking77Classification", "NFCorpus", "STS17"]
        (made,) = evaluate_mteb(model, tasks, tmp_path / "out", data=data)
        by_name = {task.name: task for task in made.record.tasks}
        # Every text of the one class holds a word that no text of the other does; each query shares words with one.
        assert by_name["Banking77Classification"].score > 0.95
        assert by_name["NFCorpus"].score == pytest.approx(1)
        # Of the languages only English.
        assert [part.subset for part in by_name["STS17"].parts] == ["en-en"]
        assert json.loads((tmp_path / "out" / "ORGANISATION__word.json").read_text()) == {
            **made.record.to_json(),
            "tasks": sorted(made.record.to_json()["tasks"], key=lambda task: task["name"]),
        }
        korean = evaluate_mteb(model, "STS17", tmp_path / "korean", data=data, languages=["kor"])
        assert [part.subset for part in korean[0].record.tasks[0].parts] == ["ko-ko"]


@needs_mteb
class TestResults:
    @pytest.fixture
    def out(self, data, model, tmp_path):
        evaluate_mteb(model, "STS12", tmp_path / "out", data=data)
        return tmp_path / "out"

    def test_finished_tasks_are_not_run_again(self, out, data, model, monkeypatch):
        import paranmt_hf.evaluation.mteb.run as runs

        first = json.loads((out / "ORGANISATION__word.json").read_text())
        run, ran = runs.run_task, []
        monkeypatch.setattr(runs, "run_task", lambda *a, **k: ran.append(a[2].metadata.name) or run(*a, **k))
        # A kill between a result and its place in the layout of mteb.
        submitted = next((out / "results").rglob("STS12.json"))
        before = submitted.read_bytes()
        submitted.unlink()
        (made,) = evaluate_mteb(model, ["STS12", "NFCorpus"], out, data=data)
        assert ran == ["NFCorpus"]
        assert made.record.to_json()["tasks"][0] == first["tasks"][0]
        # Figures of all commands stand together.
        whole = json.loads((out / "ORGANISATION__word.json").read_text())
        (made,) = evaluate_mteb(model, "NFCorpus", out, data=data)
        assert [task.name for task in made.record.tasks] == ["NFCorpus"]
        assert json.loads((out / "ORGANISATION__word.json").read_text()) == whole
        assert [task["name"] for task in whole["tasks"]] == ["NFCorpus", "STS12"]
        assert submitted.read_bytes() == before

    def test_mteb_finds_them(self, out, model):
        from mteb import ResultCache

        revision = weights_checksum(model).removeprefix("sha256:")[:40]
        found = ResultCache(out).load_task_result("STS12", "ORGANISATION/word", revision)
        kept = json.loads((out / "ORGANISATION__word.json").read_text())
        assert found.main_score == pytest.approx(kept["tasks"][0]["score"], abs=1e-6)
        # The files were not compared with the Hub's.
        assert found.dataset_revision.startswith("sha256:")
        assert {path.name for path in out.iterdir()} == {
            "tasks",
            "results",
            "ORGANISATION__word.json",
            "ORGANISATION__word.py",
        }

    def test_other_weights_or_data_are_told(self, out, data, model, tmp_path):
        other = encoder("word")
        other[0].embedding.weight.data *= 2
        save(other, tmp_path / "word")
        with pytest.raises(InputError, match=r"holds results of other weights \(STS12\); choose another --out"):
            evaluate_mteb(tmp_path / "word", "NFCorpus", out, data=data)
        shutil.copytree(data / "STS12", tmp_path / "data" / "STS12")
        (tmp_path / "data" / "STS12" / "README.md").write_text("# other files")
        with pytest.raises(InputError, match=r"STS12.json is the result of another evaluation: data: was .*--out"):
            evaluate_mteb(model, "STS12", out, data=tmp_path / "data")

    def test_other_settings_are_told(self, out, data, model, tmp_path):
        shutil.copytree(model, tmp_path / "word")
        file = tmp_path / "word" / "config_sentence_transformers.json"
        file.write_text(json.dumps({**json.loads(file.read_text()), "truncate_dim": 2}))
        with pytest.raises(InputError, match=r"holds results of other settings \(STS12\); choose another --out"):
            evaluate_mteb(tmp_path / "word", "STS12", out, data=data)

    def test_one_command_at_a_time(self, out, data, model):
        with FileLock(out / ".lock"), pytest.raises(InputError, match="another command is writing .*out; wait for it"):
            evaluate_mteb(model, "NFCorpus", out, data=data)
        # What a kill leaves is no hindrance, and does not stay.
        (out / ".lock").touch()
        halves = [folder / f".{name}.4711.tmp" for folder in (out, *(out / "tasks").iterdir()) for name in ("a", "b")]
        for half in halves:
            half.write_text("{")
        evaluate_mteb(model, "NFCorpus", out, data=data)
        assert len(halves) == 4 and not any(half.exists() for half in halves)

    def test_a_damaged_result_is_told(self, out, data, model):
        path = out / "tasks" / "ORGANISATION__word" / "STS12.json"
        path.write_text(path.read_text().replace('"score"', '"mark"'))
        with pytest.raises(InputError, match=r"STS12.json is damaged: .*score"):
            evaluate_mteb(model, "STS12", out, data=data)

    def test_a_folder_of_something_else_is_left_alone(self, data, model):
        with pytest.raises(InputError, match="exists and holds no results of mteb; choose another --out"):
            evaluate_mteb(model, "STS12", data, data=data)


def trained(folder, **changes):
    """Put a record of training beside an encoder, and a card that names a data set."""
    save(encoder("word"), folder)
    card = json.loads((ASSETS.parents[1] / "model_cards" / "word-trigram.json").read_text())
    record = {**card["training"], **changes}
    (folder / "training.json").write_text(json.dumps(record))
    (folder / "README.md").write_text("---\nlicense: mit\ndatasets: [mteb/sts12-sts]\n---\n# x\n")


@needs_mteb
class TestModelMeta:
    def test_says_what_an_encoder_learned_from(self, data, tmp_path):
        trained(tmp_path / "word", inputs={}, mean_of=[{"name": "a", "revision": "b"}])
        (made,) = evaluate_mteb(tmp_path / "word", "STS12", tmp_path / "out", data=data, name="you/my-word.1")
        namespace = {}
        exec(made.meta, namespace)  # what a person would put into mteb
        meta = namespace["my_word_1"]
        own = {"mteb/sts12-sts", "STS12", "captions.parquet", "every.parquet", "STS17", "STSBenchmark"}
        assert meta.training_datasets == own
        assert (meta.name, meta.license, meta.embed_dim, meta.n_parameters) == ("you/my-word.1", "mit", 4, 44)
        assert (meta.loader_kwargs, meta.max_tokens, meta.n_embedding_parameters) == ({}, float("inf"), 44)
        assert meta.revision == weights_checksum(tmp_path / "word").removeprefix("sha256:")[:40]
        assert made.open == ["release_date", "public_training_code", "public_training_data", "adapted_from"]
        assert [note.split(";")[0] for note in made.notes] == [
            "STS17 and STSBenchmark: it was not trained on their pairs but chosen by those of STS 2017",
            "made from a: add what those were trained on",
        ]
        assert (tmp_path / "out" / "you__my-word.1.py").read_text() == made.meta

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("teacher", "known", "note"),
        [
            ("all-MiniLM-L6-v2", {"MSMARCO", "NQ"}, "what mteb names of its data counts too"),
            ("sentence-transformers/all-MiniLM-L6-v2", {"MSMARCO", "NQ"}, "what mteb names of its data counts too"),
            ("mine", set(), "mteb does not know its data: add them"),
        ],
    )
    def test_counts_what_a_teacher_learned_from(self, tmp_path, teacher, known, note):
        trained(tmp_path / "word", inputs={"teacher": teacher})
        learned = learned_from(tmp_path / "word")
        assert known <= learned.datasets
        assert ("MSMARCO" in learned.datasets) == bool(known)
        assert f"teacher: {teacher}; {note}" in learned.notes

    def test_says_that_nothing_is_known(self, data, model, tmp_path):
        (made,) = evaluate_mteb(model, "STS12", tmp_path / "out", data=data, name="you/import")
        compile(made.meta, "meta", "exec")
        assert "training_datasets=None" in made.meta
        assert made.notes == [
            "there is no training.json and no 'datasets' in the card: say yourself what it learned from"
        ]


@needs_mteb
class TestBadInput:
    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            pytest.param(
                {"tasks": "sts benchmark"},
                "no task or benchmark 'sts benchmark'; did you mean STSBenchmark or ",
                marks=pytest.mark.slow,
            ),
            pytest.param(
                {"tasks": "zzzqqq"}, "no task or benchmark 'zzzqqq'; `mteb avail.* lists them", marks=pytest.mark.slow
            ),
            pytest.param(
                {"tasks": "MTEB(eng, v2)"}, "no data of the task ArguAna in .*ArguAna or", marks=pytest.mark.slow
            ),
            ({"tasks": []}, "name a task of mteb"),
            ({"tasks": "CIFAR10"}, "the task CIFAR10 is about image, and encoders read text"),
            ({"models": []}, "name a model to evaluate"),
            ({"tasks": "BornholmBitextMining"}, "has no part in eng alone; it has dan: name one with --languages"),
            (
                {"tasks": "STS13"},
                "no data of the task STS13 in .*: expected the folder .*STS13 or .*mteb/sts13-sts with",
            ),
            ({"data": "nowhere"}, "--data nowhere: there is no such folder"),
            ({"name": "mine"}, "--name must be ORGANISATION/NAME, as on the Hub; was 'mine'"),
            ({"models": ["embedded", "embedded"]}, "two models would have the name ORGANISATION/word-trigram-small"),
            (
                {"models": ["embedded", "word"], "name": "you/word"},
                "--name is the name of one model, and 2 were given",
            ),
            ({"models": "nowhere"}, "no model 'nowhere'"),
        ],
    )
    def test_is_told_before_anything_is_written(self, data, tmp_path, changes, message):
        given = {"models": "embedded", "tasks": "STS12", "data": data, **changes}
        with pytest.raises(InputError, match=message):
            evaluate_mteb(given.pop("models"), given.pop("tasks"), tmp_path / "out", **given)
        assert not list(tmp_path.iterdir())

    @pytest.mark.parametrize(
        ("rows", "message"),
        [
            ([{"sentence1": "a", "text": "b", "score": 1.0}], "no column 'sentence2' in the split 'test': expected"),
            ([{"sentence1": "a", "sentence2": "b", "score": "x"}] * 3, "do not fit it: .*'str'.*columns sentence1"),
            ([{"sentence1": "a", "sentence2": None, "score": 1.0}] * 3, "do not fit it: .*None"),
            (None, "cannot be read: .*doesn't contain any data files"),
        ],
    )
    def test_data_of_another_kind(self, model, tmp_path, rows, message):
        (tmp_path / "data" / "STS12").mkdir(parents=True)
        if rows is not None:
            write(tmp_path / "data" / "STS12" / "test.parquet", rows)
        with pytest.raises(InputError, match=f"the data of the task STS12 in .*STS12 .*{message}"):
            evaluate_mteb(model, "STS12", tmp_path / "out", data=tmp_path / "data")
        assert [path.name for path in tmp_path.iterdir()] == ["data"]

    def test_a_figure_that_is_no_number(self, model, tmp_path):
        """The model knows none of the words, so that all similarities are 0."""
        rows = [{"sentence1": "zqx", "sentence2": "xkz", "score": float(score)} for score in range(4)]
        write(tmp_path / "data" / "STS12" / "test.parquet", rows)
        with pytest.raises(
            InputError, match=r"the task STS12 gives no cosine_spearman in the split 'test' \(default\)"
        ):
            evaluate_mteb(model, "STS12", tmp_path / "out", data=tmp_path / "data")
        assert [path.name for path in tmp_path.iterdir()] == ["data"]

    def test_a_model_that_diverged(self, data, tmp_path):
        """It is told before a task finds fault with its data."""
        diverged = encoder("word")
        diverged[0].embedding.weight.data[1, 0] = np.nan
        save(diverged, tmp_path / "word")
        with pytest.raises(
            InputError, match="word/.*model.safetensors: the tensor .* holds a number that is not finite"
        ):
            evaluate_mteb(tmp_path / "word", "STS12", tmp_path / "out", data=data)
        assert [path.name for path in tmp_path.iterdir()] == ["word"]

    def test_a_card_whose_data_sets_are_no_list(self, model, tmp_path):
        shutil.copytree(model, tmp_path / "word")
        (tmp_path / "word" / "README.md").write_text("---\ndatasets: 5\n---\n")
        assert learned_from(tmp_path / "word").datasets is None

    def test_data_elsewhere_are_not_read(self, data, model, tmp_path):
        (tmp_path / "data" / "STS12").mkdir(parents=True)
        configs(tmp_path / "data" / "STS12", default=data / "STS12" / "data" / "*.parquet")
        with pytest.raises(InputError, match="lies outside of that folder and is not read"):
            evaluate_mteb(model, "STS12", tmp_path / "out", data=tmp_path / "data")

    def test_a_hub_that_is_not_there(self, model, tmp_path, monkeypatch):
        def unreachable(*arguments, **options):
            raise ConnectionError("no route")

        monkeypatch.setattr("mteb.abstasks.abstask.load_dataset", unreachable)
        with pytest.raises(
            InputError, match="the task STS12: .*'mteb/sts12-sts'.*or give --data FOLDER with these data"
        ):
            evaluate_mteb(model, "STS12", tmp_path / "out")
        assert not list(tmp_path.iterdir())


@needs_mteb
def test_the_command(data, model, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    command = ["evaluate", "mteb", str(model), "--tasks", "STS12", "--data", str(data), "--out", "out"]
    assert main(command) == 0
    out = capsys.readouterr().out
    assert out.startswith("Task   Kind          Measure  ")
    for expected in ("word = ModelMeta(", "training_datasets: there is no training.json", "to submit: out/results\n"):
        assert expected in out
    assert main([*command, "--markdown"]) == 0
    assert "| STS12 | STS | cosine_spearman |" in capsys.readouterr().out
    assert main(["evaluate", "mteb", "--config", "out/paranmt.yaml", "--out", "again"]) == 0
    assert (tmp_path / "again" / "ORGANISATION__word.json").is_file()
    fails(
        capsys, [*command[:-1], "other", "--languages", "dan"], "the task STS12 has no part in dan alone; it has eng"
    )


def test_without_mteb(tmp_path, monkeypatch):
    monkeypatch.setattr("paranmt_hf.util.optional.available", lambda package: False)
    with pytest.raises(InputError, match=r"pip install 'paranmt-hf\[mteb\]'"):
        evaluate_mteb("embedded", "STS12", tmp_path / "out")


def test_the_table():
    def task(name, kind, *scores):
        parts = [MtebScore("test", f"s{index}", score) for index, score in enumerate(scores)]
        return MtebTask(name, kind, "f1", float(np.mean(scores)), parts, 1.0, {}, {})

    tasks = [task("A", "STS", 0.5), task("B", "STS", 0.25, 0.75), task("C", "Retrieval", 0.8)]
    table = compare_mteb([MtebRecord("m", "x/m", "sha256:", tasks, {})])
    assert [line.split() for line in table.split("\n")] == [
        ["Task", "Kind", "Measure", "m"],
        ["A", "STS", "f1", "50.0"],
        ["B", "STS", "f1", "50.0"],
        ["s0", "test", "25.0"],
        ["s1", "test", "75.0"],
        ["C", "Retrieval", "f1", "80.0"],
        ["mean", "of", "STS", "50.0"],
        ["mean", "of", "Retrieval", "80.0"],
        ["mean", "of", "tasks", "60.0"],
    ]
