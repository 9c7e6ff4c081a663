"""`paranmt run`: steps are parsed before any runs, found where they are there, and compared with their input."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import yaml

from paranmt_hf import InputError, publish
from paranmt_hf.cli import main, pipeline
from paranmt_hf.cli.pipeline import run_pipeline
from paranmt_hf.errors import OtherSettingsError
from paranmt_hf.text.word_vectors import WordVectors, write_vectors
from tests.cli.commands import fails, recorded_options, write_pairs
from tests.evaluation.toys import WORDS, write_all
from tests.refused import refused

STEPS = {
    "corpus": {"command": "import", "data": "pairs.tsv", "license": "mit", "scorer": "vectors.txt", "workers": 1},
    "chosen": {"command": "select", "corpus": "{corpus}", "max-length": 30},
    "word": {
        "command": "train",
        "data": "{chosen}",
        "dimension": 4,
        "batch-size": 2,
        "mega-batch": 2,
        "epochs": 2,
    },
    "report": {"command": "evaluate sts", "models": ["{word}"], "data": "judged.tsv", "json": "results.json"},
}


@pytest.fixture(autouse=True)
def inputs(folder):
    lines = [f"{letter} x\t{letter} y {letter}\n" for letter in "abcdefghij"]
    (folder / "pairs.tsv").write_text("".join(lines))
    (folder / "judged.tsv").write_text("".join(f"{row % 5}\ta {a}\tb {a} {a}\n" for row, a in enumerate("abcdefgh")))
    return folder


def write(steps, path="pipeline.yaml"):
    Path(path).write_text(yaml.safe_dump({"steps": steps}, sort_keys=False))
    return path


def states(path="pipeline.yaml", **options):
    """What a dry run says of each step, after its name and its command."""
    lines = [line for line in run_pipeline(path, dry_run=True, **options) if not line.startswith("  ")]
    return [line.split(", ", 1)[1] for line in lines]


def tree(folder):
    """All files and their bytes, but for what is never twice the same: seconds, and what has their checksums."""
    found = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    timed = ("training.json", "results.json", "results.json.json")
    return {name: None if path.name in timed else path.read_bytes() for name, path in found.items()}


@pytest.fixture
def done(inputs):
    """The folder after all steps."""
    write(STEPS)
    assert main(["run", "pipeline.yaml"]) == 0
    return inputs


def change(**options):
    """The steps with other options of some of them."""
    return write({name: step | options.get(name, {}) for name, step in STEPS.items()})


def test_steps_run_once(done):
    before = {path: path.stat().st_mtime_ns for path in done.rglob("*")}
    assert (done / "word" / "modules.json").is_file()
    assert json.loads((done / "results.json").read_text())
    assert list(run_pipeline("pipeline.yaml")) == [f"{name}: {step['command']}, there" for name, step in STEPS.items()]
    assert {path: path.stat().st_mtime_ns for path in done.rglob("*")} == before
    assert states() == ["there"] * 4


def test_each_step_is_the_command_that_one_would_type(done, monkeypatch):
    words = ["train", "--data", "chosen", "--dimension", "4", "--batch-size", "2", "--mega-batch", "2"]
    assert main([*words, "--epochs", "2", "--out", "typed"]) == 0
    assert (done / "typed" / "model.safetensors").read_bytes() == (done / "word" / "model.safetensors").read_bytes()
    assert recorded_options("typed/training.json") == recorded_options("word/training.json")
    # The command finds the result of the step, and the other way round.
    assert main([*words, "--epochs", "2", "--out", "word"]) == 0
    (done / "elsewhere").mkdir()
    monkeypatch.chdir(done / "elsewhere")
    assert states("../pipeline.yaml") == ["there"] * 4
    assert Path.cwd() == done / "elsewhere"


def test_results_in_another_folder(inputs):
    write(STEPS)
    lines = run_pipeline("pipeline.yaml", out="new/results")
    for _ in lines:
        assert Path.cwd() == inputs, "who reads the lines keeps its folder"
    assert sorted(path.name for path in (inputs / "new" / "results").glob("[!.]*")) == [
        *("chosen", "corpus", "results.json", "results.json.json", "word")
    ]
    assert states() == ["to run"] * 4 and states(out="new/results") == ["there"] * 4


@pytest.mark.parametrize("stopped", ["corpus", "chosen", "word", "report"])
@pytest.mark.parametrize("when", ["before", "after"])
def test_an_interruption_between_steps(done, inputs, monkeypatch, stopped, when):
    place = inputs / ("results.json" if stopped == "report" else stopped)
    perform, whole = pipeline.perform, tree(inputs)

    def stopping(command, values):
        own = command.name == STEPS[stopped]["command"]
        if not own or when == "after":
            yield from perform(command, values)
        if own:
            raise KeyboardInterrupt

    for name in ("corpus", "chosen", "word"):
        shutil.rmtree(inputs / name)
    for path in inputs.glob("results.json*"):
        path.unlink()
    with monkeypatch.context() as patch:
        patch.setattr(pipeline, "perform", stopping)
        assert main(["run", "pipeline.yaml"]) == 130
    assert place.exists() == (when == "after")
    assert main(["run", "pipeline.yaml"]) == 0
    assert tree(inputs) == whole and states() == ["there"] * 4


@pytest.mark.slow
def test_other_options_are_refused(done):
    change(word={"epochs": 3})
    assert states()[0:2] == ["there", "there"] and "to run" not in states()
    with refused("out", path=done / "word", kind=OtherSettingsError) as told:
        list(run_pipeline("pipeline.yaml"))
    assert "epochs: was 2, now 3" in str(told.value) and "step 'word'" in str(told.value)
    shutil.rmtree(done / "word")
    assert main(["run", "pipeline.yaml"]) == 0
    assert states() == ["there"] * 4


@pytest.mark.slow
def test_changed_data_are_noticed_all_the_way_down(done):
    results = (done / "results.json").read_bytes()
    with (done / "pairs.tsv").open("a") as file:
        file.write("k x\tk y k\n")
    first, *others = states()
    assert "sha256" in first and [each.split(",")[0] for each in others] == ["there"] * 3
    for name in ("corpus", "chosen", "word"):
        with pytest.raises(OtherSettingsError):
            list(run_pipeline("pipeline.yaml"))
        shutil.rmtree(done / name)
    assert main(["run", "pipeline.yaml"]) == 0
    assert states() == ["there"] * 4 and (done / "results.json").read_bytes() != results


def test_a_step_in_the_middle_that_is_gone_is_made_again(done):
    shutil.rmtree(done / "chosen")
    assert states() == ["there", "to run", "there, to be compared when chosen has run", states()[3]]
    assert main(["run", "pipeline.yaml"]) == 0
    assert states() == ["there"] * 4


@pytest.mark.slow
def test_results_of_an_evaluation_are_those_of_its_input(done):
    record = done / "results.json.json"
    for name, text in (("judged.tsv", (done / "judged.tsv").read_text() + "3\tc d\td c\n"), ("results.json", "[]\n")):
        (done / name).write_text(text)
        assert states() == ["there"] * 3 + ["to run"]
        assert main(["run", "pipeline.yaml"]) == 0
        assert states() == ["there"] * 4
    # As the command line alone writes it.
    record.write_text(json.dumps({**json.loads(record.read_text()), "settings": {}}))
    assert states()[3] == "to run"
    change(report={"speed": True})
    assert main(["run", "pipeline.yaml"]) == 0 and states() == ["there"] * 4
    record.write_text("{")
    with refused("json", path=Path("results.json.json")):
        list(run_pipeline("pipeline.yaml"))
    assert record.read_text() == "{"


@pytest.mark.slow
def test_the_result_of_transfer_tasks_is_their_figures(folder):
    write_all(folder / "senteval", items=20)
    write_vectors(folder / "v.txt", WordVectors(WORDS, np.eye(len(WORDS), dtype=np.float32)))
    step = {"command": "evaluate transfer", "vectors": "v.txt", "data": "senteval", "tasks": ["CR"], "folds": 2}
    for name, kept in (("figures", {}), ("others", {"out": "tasks"})):
        write({name: step | kept})
        list(run_pipeline("pipeline.yaml"))
        assert json.loads((folder / f"{name}.json").read_text())
        assert states() == ["there"]
    assert [path.name.split("-")[0] for path in (folder / "tasks").iterdir()] == ["CR"]


def test_publishing_needs_an_option(encoder, monkeypatch):
    write({"card": {"command": "publish", "folder": "encoder", "name": "you/encoder", "license": "mit"}})
    sent = []

    def called(*arguments, dry_run=False, **options):
        sent.append(not dry_run)
        return publish(*arguments, dry_run=True, **options)

    # As the command calls it.
    command = pipeline.COMMANDS["publish"]
    call = type(command).call
    monkeypatch.setattr(
        type(command),
        "call",
        lambda self, values: called(**self.arguments(values)) if self is command else call(self, values),
    )
    assert states() == ["to run"]
    for words in ([], ["--allow", "publish"], ["--allow", "publish", "--dry-run"]):
        assert main(["run", "pipeline.yaml", *words]) == 0
    assert sent == [False, True]


def test_a_release_of_others_is_scored_in_place(folder):
    write_pairs(folder / "pairs.parquet")
    assert main(["import", "pairs.parquet", "--out", "theirs", "--license", "mit", "--scorer", "vectors.txt"]) == 0
    write(
        {
            "scored": {"command": "score", "corpus": "theirs", "add": "number_mismatch", "workers": 1},
            "chosen": {"command": "select", "corpus": "{scored}", "max-length": 30},
        }
    )
    assert states() == ["to run", "to run"]
    assert main(["run", "pipeline.yaml"]) == 0
    assert states() == ["there", "there"]


def test_braces_that_name_no_step(folder):
    (folder / "asked.tsv").write_text("a\n")
    step = {"command": "search query", "index": "none", "queries": "{{word}} in {{braces}}"}
    write({"asked": step})
    with pytest.raises(InputError) as told:
        list(run_pipeline("pipeline.yaml"))
    assert told.value.path is None or told.value.path.name != "pipeline.yaml", "it was parsed"


def stats(**options):
    return {"command": "stats", "data": "pairs.tsv", **options}


MISTYPED = {
    "no steps": ({}, None),
    "a list": ([stats()], None),
    "a text": ({"b": "stats"}, None),
    "no command": ({"b": {"data": "pairs.tsv"}}, None),
    "an unknown command": ({"b": {"command": "stat"}}, None),
    "a pipeline": ({"b": {"command": "run", "file": "pipeline.yaml"}}, None),
    "a name that is no file's": ({"../b": stats()}, None),
    "no name": ({None: stats()}, None),
    "an unknown option": ({"b": stats(epoch=3)}, None),
    "a mistyped value": ({"b": STEPS["word"] | {"data": "x", "epochs": "many"}}, "epochs"),
    "a number out of its range": ({"b": STEPS["word"] | {"data": "x", "margin": 3}}, "margin"),
    "settings that do not fit": ({"b": {**STEPS["corpus"], "license": "mit", "language": "xx"}}, None),
    "an option without its argument": ({"b": {"command": "select"}}, "corpus"),
    "several files for one": ({"b": stats(json=["a", "b"])}, "json"),
    "an unknown step": ({"b": stats(data="{c}")}, "data"),
    "itself": ({"b": stats(data="{b}")}, "data"),
    "a later step": ({"b": stats(data="{c}"), "c": stats()}, "data"),
    "a step without a result": (
        {"b": {"command": "publish", "folder": "x", "name": "y/z"}, "c": stats(data=["x", "{b}/y"])},
        "data",
    ),
    "no quotation marks": ({"b": stats(), "c": stats(data={"b": None})}, "data"),
    "one place": ({"b": stats(json="x"), "c": stats(json="x")}, None),
    "a place inside another": ({"b": {**STEPS["corpus"]}, "c": stats(json="b/x.json")}, None),
    "a place around another": ({"b": stats(json="c/x.json"), "c": {**STEPS["corpus"]}}, None),
    "a corpus changed in place": ({"b": STEPS["corpus"], "c": {"command": "score", "corpus": "{b}"}}, None),
}


@pytest.mark.parametrize("case", MISTYPED)
def test_all_steps_are_parsed_before_any_runs(folder, case):
    steps, option = MISTYPED[case]
    first = {"first": stats()} if isinstance(steps, dict) and steps else {}
    write({**first, **steps} if first else steps)
    before = sorted(folder.rglob("*"))
    with refused(option):
        list(run_pipeline("pipeline.yaml"))
    assert sorted(folder.rglob("*")) == before


@pytest.mark.parametrize(
    "text", ["steps: {a: {command: stats}, a: {command: stats}}", "a: b: c", "- a", "step: {}", ""]
)
def test_bad_files(folder, capsys, text):
    (folder / "bad.yaml").write_text(text)
    fails(capsys, ["run", "bad.yaml"], "bad.yaml")
    fails(capsys, ["run", "none.yaml"], "none.yaml")


def test_a_later_step_that_fails_keeps_the_earlier_ones(inputs, capsys):
    change(word={"vectors": "none.txt"})
    fails(capsys, ["run", "pipeline.yaml"], "step 'word'", "none.txt")
    assert states()[:3] == ["there", "there", "to run"]
    write(STEPS)
    assert main(["run", "pipeline.yaml"]) == 0
