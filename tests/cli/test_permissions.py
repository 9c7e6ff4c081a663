"""A file of steps or options that somebody else wrote: it writes, sends and serves nothing without consent."""

import pytest
import yaml

from paranmt_hf import InputError
from paranmt_hf.cli import find_command, main, run_command
from paranmt_hf.cli.pipeline import run_pipeline

IMPORT = {"command": "import", "data": "pairs.tsv", "license": "mit", "scorer": "vectors.txt"}
ASK = {"command": "build", "reference": "text.txt", "license": "mit", "language-model": "model.yaml"}
TRAIN = {"command": "train", "data": "pairs.tsv"}
STATS = {"command": "stats", "data": "text.txt"}


@pytest.fixture
def inputs(folder):
    """A folder `shared` with a pipeline's data, below a folder of the user."""
    shared = folder / "shared"
    shared.mkdir()
    (folder / "vectors.txt").rename(shared / "vectors.txt")
    (shared / "pairs.tsv").write_text("a x\ta y\nb x\tb y\n")
    (shared / "text.txt").write_text("a b\n")
    (shared / "model.yaml").write_text("name: m\nbase_url: http://127.0.0.1:9/v1\n")
    (folder / "mine").mkdir()
    (shared / "link").symlink_to(folder / "mine")
    return shared


def pipeline(folder, **steps):
    path = folder / "pipeline.yaml"
    path.write_text(yaml.safe_dump({"steps": steps}, sort_keys=False))
    return path


REFUSED = {
    "a result above": ("outside", IMPORT | {"out": "../other"}),
    "a result at home": ("outside", IMPORT | {"out": "~/other"}),
    "a file of figures": ("outside", STATS | {"json": "/other.json"}),
    "a file of text": ("outside", STATS | {"write": "../other.txt"}),
    "dropped rows": (
        "outside",
        {"command": "dedup", "file": "text.txt", "keep-dropped": "../x.parquet"},
    ),
    "vectors of a teacher": ("outside", TRAIN | {"teacher": "small", "teacher-cache": "../cache"}),
    "a link": ("outside", IMPORT | {"out": "link/other"}),
    "a corpus changed in place": ("outside", {"command": "score", "corpus": "../theirs", "add": "number_mismatch"}),
    "answers of others": ("outside", {"command": "annotate import", "folder": "../judged", "file": "answers.csv"}),
    "text to a server": ("addresses", ASK),
    "figures to a service": ("addresses", TRAIN | {"report-to": "wandb"}),
    "vectors for all": ("servers", {"command": "serve", "encoder": "small"}),
    "a page": ("servers", {"command": "explore page", "folder": "theirs"}),
    "a page for people": ("servers", {"command": "annotate serve", "folder": "judged", "annotators": "Ada"}),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_pipeline_needs_consent(inputs, case):
    needs, step = REFUSED[case]
    path, others = pipeline(inputs, first=STATS, step=step), {"outside", "addresses", "servers"} - {needs}
    before = sorted(inputs.parent.rglob("*"))
    for allow in ((), sorted(others)):
        with pytest.raises(InputError) as refused:
            list(run_pipeline(path, allow=allow))
        assert refused.value.option == "allow"
    shown = [line for line in run_pipeline(path, dry_run=True) if line.endswith(f"--allow {needs}")]
    assert len(shown) == 1 and sorted(inputs.parent.rglob("*")) == before


def test_what_is_allowed_is_done(inputs):
    path = pipeline(inputs, figures=STATS | {"json": "../figures.json"})
    assert main(["run", str(path)]) == 1 and not (inputs.parent / "figures.json").exists()
    assert main(["run", str(path), "--allow", "outside"]) == 0 and (inputs.parent / "figures.json").is_file()


def test_results_below_out_and_the_usual_server_need_no_consent(inputs, monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    path = pipeline(inputs, corpus=IMPORT, asked=ASK, word=TRAIN | {"report-to": "tensorboard"})
    lines = list(run_pipeline(path, out=inputs.parent / "results", dry_run=True))
    assert not any("--allow" in line for line in lines)
    assert any(line.startswith("  writes") and line.endswith("results/corpus") for line in lines)
    assert any(line.endswith("http://127.0.0.1:9/v1") for line in lines)


CONFIGS = {
    "import": ("out", {"data": "pairs.tsv", "license": "mit", "out": "~/other"}),
    "stats": ("write", {"data": "text.txt", "write": ["../../other.txt"]}),
    "build": (
        "language_model",
        {"reference": "t", "license": "mit", "language-model": "shared/model.yaml", "out": "x"},
    ),
    "train": ("report_to", {"data": "pairs.tsv", "report-to": "wandb", "out": "x"}),
    "serve": ("host", {"encoder": "small", "host": "0.0.0.0"}),
    "run": ("allow", {"file": "pipeline.yaml", "allow": ["outside"]}),
}


@pytest.mark.parametrize("command", CONFIGS)
def test_a_file_of_options_needs_consent_too(inputs, monkeypatch, command):
    def called(self, values):
        raise InputError("it was called", option="called")

    monkeypatch.setattr("paranmt_hf.cli.command.Command.call", called)
    option, given = CONFIGS[command]
    flag = option.replace("_", "-")
    (inputs / "options.yaml").write_text(yaml.safe_dump(given))
    words = [command, "--config", "shared/options.yaml"]
    typed = given[flag] if isinstance(given[flag], list) else [given[flag]]
    for added, refused in (([], option), ([f"--{flag}", *typed], "called")):
        before = sorted(inputs.parent.rglob("*"))
        with pytest.raises(InputError) as error:
            run_command(*find_command([*words, *added]))
        assert error.value.option == refused
        assert sorted(inputs.parent.rglob("*")) == before
