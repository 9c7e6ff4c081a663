"""Files of the user stay: next to a result, in a folder that it is made from, and where nothing can be made."""

import os
import signal
import threading

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paranmt_hf import (
    InputError,
    Lexicon,
    ReleaseConfig,
    ReleaseFilter,
    TextInput,
    build,
    import_pairs,
    mine_pairs,
    select,
    train_sent2vec,
)
from paranmt_hf.apps.annotate.annotate import sample_for_annotation
from paranmt_hf.apps.explore.explore import write_report
from paranmt_hf.apps.explore.explorer import Explorer
from paranmt_hf.apps.serve.serve import serve_encoder
from paranmt_hf.cli import main
from paranmt_hf.corpus.release.record import RELEASE_RECORD
from paranmt_hf.evaluation.evaluate import transfer
from paranmt_hf.tuning.tune import tune
from paranmt_hf.util.parquet import database
from tests.toys import scored_release


@pytest.fixture(scope="module")
def release(tmp_path_factory):
    columns = {
        "reference": [f"A dog number {row} runs in the park ." for row in range(8)],
        "translation": [f"In the park the dog {row} ran ." for row in range(8)],
        "para_score": pa.array([0.1 * row for row in range(8)], pa.float32()),
    }
    return scored_release(tmp_path_factory.mktemp("own") / "corpus", columns, ReleaseConfig(license="mit"))


def contents(folder):
    return {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.mark.parametrize(
    "command",
    [
        lambda release, out: select(release, out, ReleaseFilter(drop_identical=True)),
        lambda release, out: Lexicon.build(release, out),
        lambda release, out: sample_for_annotation(release, out),
        lambda release, out: write_report(release, out.with_suffix(".html"), encoder=None),
        lambda release, out: mine_pairs(release, out, release=ReleaseConfig(license="mit")),
        lambda release, out: mine_pairs(release, out.with_suffix(".parquet")),
        lambda release, out: train_sent2vec(release, out),
        lambda release, out: tune(release, out, grid={"seed": [1, 2]}),
        lambda release, out: import_pairs(str(release), out),
        lambda release, out: build(TextInput(data=(str(release),)), out, translator="captions-cs-en"),
        lambda release, out: transfer("small", data=release, out=out),
    ],
    ids=[
        "select",
        "lexicon",
        "annotate",
        "report",
        "mine",
        "mine-parquet",
        "sent2vec",
        "tune",
        "import",
        "build",
        "transfer",
    ],
)
def test_no_result_is_made_inside_what_it_is_made_from(command, release):
    before = contents(release)
    with pytest.raises(InputError) as refused:
        command(release, release / "data" / "inside")
    assert refused.value.option == "out" and release in refused.value.path.parents
    assert contents(release) == before


def test_a_file_of_the_user_in_place_of_a_record(release, tmp_path, capsys):
    """Of a result that is a file, and of a file that is asked for."""
    (tmp_path / "in.txt").write_text("a dog\nA dog!\n")
    report = ["explore", "report", str(release), "--encoder", "none"]
    for command, name in ((["dedup", str(tmp_path / "in.txt")], "out.txt"), (report, "out.html")):
        own = tmp_path / f"{name}.json"
        own.write_text('{"mine": 1}')
        assert main([*command, "--out", str(tmp_path / name)]) == 1
        assert own.read_text() == '{"mine": 1}' and not (tmp_path / name).exists()


@pytest.mark.slow
def test_a_report_is_of_one_release(release, tmp_path, monkeypatch):
    """Another command replaces the release between two queries."""
    table = pq.read_table(next(release.glob("data/*.parquet")), columns=["reference", "translation", "para_score"])
    columns = {name: table[name].combine_chunks()[:5] for name in table.column_names}
    copy = scored_release(tmp_path / "corpus", columns, ReleaseConfig(license="mit"))
    examples = Explorer.examples

    def replaced(self, *arguments, **options):
        (copy / RELEASE_RECORD).write_bytes((release / RELEASE_RECORD).read_bytes())
        return examples(self, *arguments, **options)

    monkeypatch.setattr(Explorer, "examples", replaced)
    with pytest.raises(InputError) as refused:
        write_report(copy, tmp_path / "report.html", encoder=None)
    assert refused.value.path == copy and not (tmp_path / "report.html").exists()


@pytest.mark.slow
@pytest.mark.parametrize("command", ["run", "train --config", "tune x --out y --grid"])
def test_a_deep_file_of_a_command(tmp_path, command, capsys):
    (tmp_path / "deep.yaml").write_text("a: " + "[" * 3000 + "]" * 3000)
    assert main([*command.split(), str(tmp_path / "deep.yaml")]) == 1
    assert "Traceback" not in capsys.readouterr().err


def test_a_token_comes_from_a_file(tmp_path):
    for name in ("missing", "."):
        with pytest.raises(InputError):
            serve_encoder("small", token_file=tmp_path / name)


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="needs POSIX")
def test_ctrl_c_in_a_query_is_ctrl_c():
    # A shell's background commands, and so their children, ignore SIGINT.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
    try:
        with pytest.raises(KeyboardInterrupt), database() as connection:
            for _ in range(1000):
                connection.execute("SELECT sum(hash(range)) FROM range(3000000)").fetchall()
    finally:
        signal.signal(signal.SIGINT, before)
