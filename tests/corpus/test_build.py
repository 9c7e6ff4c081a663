"""From files to a release that `load_dataset` reads, with a translator that needs no model."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from functools import partial

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from paranmt_hf import InputError, ReleaseConfig, import_pairs
from paranmt_hf.corpus.reading.readers import LineFiles, TableFiles
from paranmt_hf.corpus.release.release import release_files
from paranmt_hf.corpus.score import rescore
from paranmt_hf.hub.repository import ASSETS
from tests.refused import refused
from tests.toys import LOCAL, RELEASE, FakeTranslatorConfig, bytes_of, make, rows_of, write_vectors


@pytest.fixture
def vectors(tmp_path):
    return write_vectors(tmp_path / "vectors.txt", ["wort", "word", "a", "b", "c", *map(str, range(60))])


@pytest.fixture
def bitext(tmp_path):
    (tmp_path / "text.de").write_text("".join(f"wort {n} a b\n" for n in range(35)) + "lang 2 3 4 5 6 7\nstumm\n\nx\n")
    (tmp_path / "text.en").write_text("".join(f"word {n}  c\n" for n in range(35)) + "long\nsilent\nempty\nx\n")
    return LineFiles({"source": tmp_path / "text.de", "reference": tmp_path / "text.en"})


def test_build_by_hand(bitext, vectors, tmp_path):
    built = make(bitext, tmp_path / "corpus", vectors)
    rows = rows_of(tmp_path / "corpus")
    # Lines 35 (too long), 36 (no translation) and 37 (empty source) are gone; the others keep their numbers.
    assert [row["id"] for row in rows] == [*range(35), 38]
    assert rows[3]["reference"] == "word 3 c"
    assert rows[3]["translation"] == "b a 3 wort"
    assert rows[3]["source"] == "wort 3 a b"
    assert rows[3]["translation_score"] == pytest.approx(-0.1)
    assert (rows[3]["reference_length"], rows[3]["translation_length"]) == (3, 4)
    assert rows[3]["trigram_overlap"] == 0
    assert rows[35]["trigram_overlap"] is None
    assert built.record.dropped == {"empty": 1, "source over 6 pieces": 1, "empty translation": 1}
    assert not (tmp_path / "corpus.work").exists()


def test_lines_without_a_letter_and_in_capitals(vectors, tmp_path):
    (tmp_path / "text.de").write_text("wort 1\n-\nwort 2\nWORT A B C D\n")
    (tmp_path / "text.en").write_text("word 1\n-\n...\nWORD A\n")
    text = LineFiles({"source": tmp_path / "text.de", "reference": tmp_path / "text.en"})
    built = make(text, tmp_path / "corpus", vectors)
    assert [(row["id"], row["translation"]) for row in rows_of(tmp_path / "corpus")] == [
        (0, "1 wort"),
        (3, "d c b a Wort"),
    ]
    assert (built.record.dropped, built.record.capitals) == ({"without a letter": 2}, 1)
    card = (tmp_path / "corpus" / "README.md").read_text()
    assert "2 without a letter" in card
    assert "in capitals: 1 line." in card


@pytest.mark.slow
def test_load_dataset_in_a_clean_process(bitext, vectors, tmp_path):
    make(bitext, tmp_path / "corpus", vectors)
    code = """
from datasets import load_dataset
everything = load_dataset("corpus")
assert everything["train"].num_rows == 36, everything
best = load_dataset("corpus", "filtered", split="train")
few = load_dataset("corpus", "sample", split="train")
assert 7 <= best.num_rows < 36 and few.num_rows == 36
assert min(best["para_score"]) >= sorted(everything["train"]["para_score"])[-7] - 1e-6
options = {"columns": ["id", "para_score"], "filters": [("para_score", ">", 0.1)]}
stream = load_dataset("corpus", split="train", streaming=True, **options)
rows = list(stream)
assert set(rows[0]) == {"id", "para_score"}
assert [r["id"] for r in rows] == [r["id"] for r in everything["train"] if r["para_score"] > 0.1] and rows
# Flushed, because some releases of Arrow abort now and then while the interpreter ends after a stream.
print("loaded", flush=True)
"""
    environment = {"HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path / "cache"), "PATH": "/usr/bin:/bin"}
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert result.stdout.strip() == "loaded", result.stderr


def test_card_tells_the_truth(bitext, vectors, tmp_path):
    make(bitext, tmp_path / "corpus", vectors)
    card = (tmp_path / "corpus" / "README.md").read_text()
    header = yaml.safe_load(card.split("---\n")[1])
    assert header["license"] == "cc-by-4.0"
    assert [config["config_name"] for config in header["configs"]] == ["default", "filtered", "sample"]
    for config, info in zip(header["configs"], header["dataset_info"], strict=True):
        files = sorted((tmp_path / "corpus").glob(config["data_files"][0]["path"]))
        assert sum(path.stat().st_size for path in files) == info["download_size"]
        rows = sum(pq.read_metadata(path).num_rows for path in files)
        assert f"| `{config['config_name']}` | {rows:,} |" in card
    # What `filtered` is for, and what measures another choice.
    assert "`filtered` is" in card and "benchmarks/papers/paranmt_table5.py" in card
    assert all(text in card for text in ("36 pairs", "1 source over 6 pieces", "average of vectors.txt"))


def test_text_cannot_break_out_of_the_card(vectors, tmp_path):
    evil = "a | b <script>alert(1)</script> [x](http://y) `c`"
    worse = "`a` <img src=x onerror=alert(1)> `b`"
    pq.write_table(pa.table({"reference": [evil, worse], "translation": [evil, worse]}), tmp_path / "p.parquet")
    import_pairs(tmp_path / "p.parquet", tmp_path / "corpus", scorer=vectors, release=RELEASE, engine=LOCAL)
    card = (tmp_path / "corpus" / "README.md").read_text()
    assert not re.search(r"(?<!\\)<(script|img)", card)
    assert r"\`a\` \<img src=x onerror=alert(1)\> \`b\`" in card
    assert r"a \| b \<script\>alert(1)\</script\> \[x\](http://y) \`c\`" in card
    assert rows_of(tmp_path / "corpus")[0]["reference"] == evil


def test_same_command_again_does_nothing(bitext, vectors, tmp_path):
    log = tmp_path / "log"
    translator = FakeTranslatorConfig(log=str(log))
    assert make(bitext, tmp_path / "corpus", vectors, translator=translator).fresh
    before = bytes_of(tmp_path / "corpus"), log.read_text()
    assert not make(bitext, tmp_path / "corpus", vectors, translator=translator).fresh
    assert (bytes_of(tmp_path / "corpus"), log.read_text()) == before


def test_other_settings_are_refused(bitext, vectors, tmp_path):
    make(bitext, tmp_path / "corpus", vectors)
    with refused("out", path=tmp_path / "corpus"):
        make(bitext, tmp_path / "corpus", vectors, translator=FakeTranslatorConfig(beam=4))
    with refused("out", path=tmp_path / "corpus"):
        make(bitext, tmp_path / "corpus", vectors, release=replace(RELEASE, license="mit"))
    with (tmp_path / "text.en").open("a") as more, (tmp_path / "text.de").open("a") as mehr:
        more.write("y\n"), mehr.write("y\n")
    with refused("out", path=tmp_path / "corpus"):
        make(bitext, tmp_path / "corpus", vectors)


def test_licence_is_checked_before_the_work(bitext, vectors, tmp_path):
    log = tmp_path / "log"
    for licence in (None, "", "CC BY", "cc-by-4.0\nx: y", "cc-by-sa4.0", "other"):
        with pytest.raises(InputError) as error:
            translator = FakeTranslatorConfig(log=str(log))
            make(bitext, tmp_path / "out", vectors, translator=translator, release=ReleaseConfig(license=licence))
        assert error.value.option == "license"
    assert not log.exists() and not list(tmp_path.glob("out*"))
    licence = "Mine 1.0 <https://example.org>"
    record = make(bitext, tmp_path / "out", vectors, release=ReleaseConfig(license=licence)).record
    assert record.license == "mine-1.0 <https://example.org>"
    named = {"license": "other", "license_name": "mine-1.0", "license_link": "https://example.org"}
    header = yaml.safe_load((tmp_path / "out" / "README.md").read_text().split("---\n")[1])
    assert {name: header[name] for name in named} == named
    # The same again is there already, and scoring again keeps the licence.
    assert not make(bitext, tmp_path / "out", vectors, release=ReleaseConfig(license=licence)).fresh
    (tmp_path / "other.txt").write_text("word 1 0\n")
    again = rescore(tmp_path / "out", scorer=tmp_path / "other.txt", engine=LOCAL)
    assert again.record.license == record.license


def test_interrupted_build_ends_with_the_same_bytes(bitext, vectors, tmp_path, killed_after):
    from paranmt_hf.corpus.jobs import job

    make(bitext, tmp_path / "whole" / "corpus", vectors)
    log = tmp_path / "log"
    translator = FakeTranslatorConfig(log=str(log))
    given = bitext, tmp_path / "corpus", vectors
    killed_after(2, make, *given, kind=job, name="run_shard", translator=translator)
    make(bitext, tmp_path / "corpus", vectors, translator=translator)
    whole, resumed = bytes_of(tmp_path / "whole" / "corpus"), bytes_of(tmp_path / "corpus")
    assert whole == resumed
    sentences = log.read_text().split("\n")[:-1]
    assert len(sentences) == len(set(sentences)) == 38


def test_import_keeps_awkward_text(tmp_path):
    text = ['He said "no', "it''s", "tab\tinside", "carriage\rreturn", "back\\slash", "№ ½ ﬁ"]
    table = pa.table({"ref": text, "mt": [t.upper() for t in text], "from": ["x", "y", None, "x", "y", "x"]})
    pq.write_table(table, tmp_path / "p.parquet")
    pairs = TableFiles(
        [tmp_path / "p.parquet"], {"reference": "ref", "translation": "mt", "origin": "from"}, optional={"origin"}
    )
    (tmp_path / "he.txt").write_text("he 1 0\n")
    scorer = tmp_path / "he.txt"
    import_pairs(pairs, tmp_path / "corpus", scorer=scorer, release=RELEASE, engine=LOCAL)
    rows = rows_of(tmp_path / "corpus")
    assert [row["reference"] for row in rows] == [
        'He said "no', "it''s", "tab inside", "carriage return", "back\\slash", "№ ½ ﬁ"
    ]  # fmt: skip
    assert [row["origin"] for row in rows] == ["x", "y", None, "x", "y", "x"]
    assert "translation_score" not in rows[0], "no column without a value"


def test_rescoring_changes_one_column(bitext, vectors, tmp_path):
    folder = tmp_path / "corpus"
    make(bitext, folder, vectors)
    before = rows_of(folder)
    other = tmp_path / "other.txt"
    other.write_text("word 1 0\nwort 1 0\nc 0 1\n")
    (folder / "notes").mkdir()
    (folder / "notes" / "mine.md").write_text("mine")
    built = rescore(folder, scorer=other, engine=LOCAL)
    after = rows_of(folder)
    assert built.record.settings["scorer"]["name"] == "average of other.txt"
    assert built.record.dropped == {"empty": 1, "source over 6 pieces": 1, "empty translation": 1}
    # (1, 1) . (1, 0) / sqrt(2), and no known word at all in the last line.
    assert [row["para_score"] for row in after] == [pytest.approx(0.5**0.5)] * 35 + [0]
    assert [row["para_score"] for row in before] != [row["para_score"] for row in after]
    for row in [*before, *after]:
        del row["para_score"]
    assert before == after
    assert sorted(path.name for path in tmp_path.iterdir() if "corpus" in path.name) == ["corpus"]
    assert not rescore(folder, scorer=other, engine=LOCAL).fresh
    # What a person put beside the release stays.
    assert (folder / "notes" / "mine.md").read_text() == "mine"


def test_every_line_dropped(vectors, tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).write_text("\n\n")
    bitext = LineFiles({"source": tmp_path / "a", "reference": tmp_path / "b"})
    with refused():
        make(bitext, tmp_path / "corpus", vectors)
    assert not (tmp_path / "corpus").exists()


def test_mended_input_is_taken(vectors, tmp_path):
    (tmp_path / "a").write_text("a\nb\n")
    (tmp_path / "b").write_text("a\nb\nc\n")
    files = {"source": tmp_path / "a", "reference": tmp_path / "b"}
    with refused():
        make(LineFiles(files), tmp_path / "corpus", vectors)
    (tmp_path / "a").write_text("a\nb\nc\n")
    assert make(LineFiles(files), tmp_path / "corpus", vectors).record.statistics.rows == 3


def test_builder_sees_a_new_score(bitext, vectors, tmp_path):
    from paranmt_hf import ParaNMTBuilder

    make(bitext, tmp_path / "corpus", vectors)
    (tmp_path / "other.txt").write_text("word 1 0\nwort 1 0\nc 0 1\n")
    for _ in range(2):
        builder = ParaNMTBuilder(data_dir=str(tmp_path / "corpus"), cache_dir=str(tmp_path / "cache"))
        builder.download_and_prepare()
        built = builder.as_dataset(split="train")["para_score"][:]
        assert list(built) == [row["para_score"] for row in rows_of(tmp_path / "corpus")]
        rescore(tmp_path / "corpus", scorer=tmp_path / "other.txt", engine=LOCAL)


def test_all_pairs_too_long_for_the_filter(vectors, tmp_path):
    long = " ".join(["a"] * 40)
    pq.write_table(pa.table({"reference": [long], "translation": [long]}), tmp_path / "p.parquet")
    scorer = vectors
    built = import_pairs(tmp_path / "p.parquet", tmp_path / "corpus", scorer=scorer, release=RELEASE, engine=LOCAL)
    assert list(built.record.configs) == ["default", "sample"]
    assert "filtered" not in (tmp_path / "corpus" / "README.md").read_text()
    assert not (tmp_path / "corpus" / "filtered").exists()


def test_another_scorer_keeps_the_translations(bitext, vectors, tmp_path):
    log = tmp_path / "log"
    translator = FakeTranslatorConfig(log=str(log))
    (tmp_path / "broken.txt").write_text("a nan\n")
    with refused(path=tmp_path / "broken.txt"):
        make(bitext, tmp_path / "corpus", tmp_path / "broken.txt", translator=translator)
    assert not log.exists(), "a broken scorer must show before the translation"
    make(bitext, tmp_path / "corpus", vectors, translator=translator)
    assert len(log.read_text().split("\n")[:-1]) == 38


def test_damaged_release_is_not_taken_for_built(bitext, vectors, tmp_path):
    make(bitext, tmp_path / "corpus", vectors)
    path = release_files(tmp_path / "corpus")[0]
    path.write_bytes(b"")
    for again in (
        lambda: make(bitext, tmp_path / "corpus", vectors),
        lambda: rescore(tmp_path / "corpus", scorer=vectors, engine=LOCAL),
    ):
        with pytest.raises(InputError):
            again()


SAMPLE = ASSETS / "sample"


def command(out, workers):
    arguments = [
        "--source",
        SAMPLE / "sample.cs",
        "--reference",
        SAMPLE / "sample.en",
        "--translator",
        "captions-cs-en",
    ]
    arguments += ["--license", "cc-by-nc-sa-4.0", "--out", out]
    arguments += ["--engine", f"workers={workers},threads=1,shard_rows=40"]
    return [sys.executable, "-m", "paranmt_hf.cli", "build", *map(str, arguments)]


def done(out) -> int:
    path = out.with_name(f"{out.name}.work") / "1-translate" / "manifest.json"
    return len(json.loads(path.read_text())["shards"]) if path.exists() else 0


def data(folder) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*.parquet"))}


def stopped(out, signal_number, environment) -> bool:
    """Stop a build after two shards and then after six; whether it was stopped, and had not ended before."""
    for wanted in (2, 6):
        # A shell's background commands, and so their children, ignore SIGINT.
        process = subprocess.Popen(
            command(out, 2),
            env=environment,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=partial(signal.signal, signal.SIGINT, signal.default_int_handler),
        )
        while done(out) < wanted and process.poll() is None:
            time.sleep(0.02)
        process.send_signal(signal_number)
        _, error = process.communicate()
        if process.returncode == 0:
            return False
        assert "Traceback" not in error
        assert process.returncode == (130 if signal_number == signal.SIGINT else -9), error
        assert 0 < done(out) < 12
        time.sleep(1)
    return True


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="sends signals")
@pytest.mark.parametrize("signal_number", [9, signal.SIGINT])
def test_killed_build_ends_with_the_same_bytes(tmp_path, signal_number):
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    whole = tmp_path / "whole" / "corpus"
    assert subprocess.run(command(whole, 1), env=environment, capture_output=True).returncode == 0
    # On a busy machine a build may end before the signal reaches it.
    folders = (tmp_path / str(attempt) / "corpus" for attempt in range(5))
    killed = next(folder for folder in folders if stopped(folder, signal_number, environment))
    last = subprocess.run(command(killed, 2), env=environment, capture_output=True, text=True)
    assert last.returncode == 0, last.stderr
    assert data(whole) == data(killed)
    assert (whole / "README.md").read_text() == (killed / "README.md").read_text()
    assert not killed.with_name("corpus.work").exists()
